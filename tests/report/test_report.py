"""The report as a file: what it says is what is so, for every estimator; and what it refuses."""

import base64
import hashlib
import re
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import halfseen as hs
from halfseen.errors import DataError, DataWarning, HalfseenError, ParameterError
from halfseen.metrics.value_scores import given_not_lowest
from halfseen.report.page import format_value
from tests.report.models import CASES, fitted, quiet, survey, table, words
from tests.report.pages import Page, page_of, split


@cache
def html_of(name):
    """The report of a case with its data, made once."""
    with quiet():
        return hs.make_report(*fitted(name)).html


@pytest.mark.parametrize("name", CASES)
def test_every_estimator_has_a_report(name, tmp_path):
    model, _ = fitted(name)
    model.save(tmp_path / "model.hs")
    html = html_of(name)
    with quiet():
        again = page_of(hs.load(tmp_path / "model.hs"))
    check_that_it_is_one_file_with_one_script(html)
    if name == "OrdNMF":
        assert hs.make_report(*fitted(name)).html == html
    page = Page(html)
    titles = [title for tag, title in page.headings if tag == "h2"]
    assert titles[:3] == ["Observed data", "Fit", "Components"]
    assert len(page.ids) == len(set(page.ids))
    assert page.facts["Status"] == model.status_.name
    assert model.status_.message in page.notes
    n, m = len(model.W_), len(model.H_)
    assert (page.facts["Rows"], page.facts["Columns"]) == (str(n), str(m))
    assert page.headings[0] == ("h1", f"{type(model).__name__} of {n} rows and {m} columns")
    for fact in ("Rows", "Columns", "Status"):  # without data, from a file
        assert again.facts[fact] == page.facts[fact]
    levels = [title for title in titles if title == "Thresholds between levels"]
    assert bool(levels) == hasattr(model, "thresholds_")
    assert ("Posterior predictive check" in titles) == hasattr(model, "sample")


def test_the_sections_are_those_of_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    listed = {row.split(" | ")[0].removeprefix("| ") for row in re.findall(r"^\| [A-Z].*$", text, re.MULTILINE)}
    headings = [title for name in CASES for tag, title in Page(html_of(name)).headings if tag == "h2"]
    made = {"Examples" if title.startswith("Examples") else title for title in headings}
    assert made == listed - {"Quality on held-out cells"}


def check_that_it_is_one_file_with_one_script(html):
    addresses = set(re.findall(r"""[\w-]*(?:src|href|xmlns:?\w*|url\()\s*=?\s*["']?(https?:[^"')\s]*)""", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script>alert" not in html
    assert "<img" not in html
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert "default-src 'none'" in html


def test_what_was_seen():
    X = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, 5.0], [1.0, 1.0, np.nan], [np.nan, 2.0, 2.0]])
    model = hs.WeightedNMF(1, random_state=0).fit(X)
    page = page_of(model, X)
    assert page.facts["Cells seen"] == "8 of 12 (66.7%)"
    assert page.facts["Cells seen per row"] == "2 to 2, median 2"
    assert page.facts["Cells seen per column"] == "2 to 3, median 3"
    assert page.facts["Values"] == "1 to 5, mean 2"
    assert page.numbers("Numbers of cells by value") == {"1": [3], "2": [4], "5": [1]}
    assert "Histogram of 8 cells by value, from 1 to 5; most have 2." in page.alts
    bare = page_of(model)
    assert bare.facts["Cells seen"] == page.facts["Cells seen"]
    assert "Values" not in bare.facts
    assert "Pass the training data to see their values here." in bare.notes


def test_components_are_listed_by_their_strength():
    model, X = fitted("WeightedNMF")
    page = page_of(model, X, top=4)
    x = np.einsum("uk,ik->kui", model.W_, model.H_)
    shares = {int(row[0]): float(row[1]) for row in page.tables["All components"][1:]}
    assert_allclose([shares[0], shares[1]], x.sum(axis=(1, 2)) / x.sum(), atol=5e-5)
    for component in range(2):
        means = x[component].mean(axis=0)  # what the component adds in each column for an average row
        listed = page.tables[f"Strongest columns of component {component}"][1:]
        assert len(listed) == 4
        assert_allclose([float(row[1]) for row in listed], np.sort(means)[::-1][:4], rtol=5e-4)
        rows = page.tables[f"Strongest rows of component {component}"][1:]
        assert [int(row[0]) for row in rows] == np.argsort(-x[component].mean(axis=1))[:4].tolist()


def test_biases_are_told_beside_components():
    model, _ = fitted("RoundMF")
    page = Page(html_of("RoundMF"))
    assert [title for tag, title in page.headings if tag == "h3"][-1] != "Component 2"
    largest = page.tables["Largest biases of rows"][1:]
    assert_allclose([float(row[1]) for row in largest], model.row_biases_[[int(row[0]) for row in largest]], rtol=5e-4)


def test_many_components_are_not_all_listed():
    X = np.random.default_rng(0).random((60, 50)) + 0.1
    with quiet():
        model = hs.WeightedNMF(45, max_iter=5, random_state=0).fit(X)
    page = page_of(model, X)
    assert len(page.tables["All components"]) == 41
    assert any("The 40 largest of 45 are listed." in note for note in page.notes)


def test_thresholds_and_their_ratios_where_the_scale_is_free():
    model, _ = fitted("OrdinalMF of words")
    rows = Page(html_of("OrdinalMF of words")).tables["Thresholds, in units of the product"][1:]
    assert [row[0] for row in rows] == ["<b>fair</b>", "good"]
    assert_allclose([float(row[1]) for row in rows], model.thresholds_, rtol=5e-4)
    model, _ = fitted("OrdNMF")
    rows = Page(html_of("OrdNMF")).tables["Thresholds, in units of the product"][1:]
    assert_allclose([float(row[2]) for row in rows], model.thresholds_ / model.thresholds_[0], rtol=5e-4)


def test_a_row_without_training_cells_has_the_mean_of_all():
    X = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, np.nan], [np.nan, np.nan, np.nan]])
    with quiet():
        model = hs.WeightedNMF(1, random_state=0).fit(X)
        page = page_of(model, X, np.array([[np.nan] * 3, [np.nan] * 3, [np.nan, 5.0, np.nan]]))
    table_ = page.numbers("Values of 1 cell: smaller is better")
    assert_allclose(table_["Mean of the row"], [5 - 2.2] * 2)
    assert_allclose(table_["Mean of the column"], [5 - 2.5] * 2)


def test_rankings_are_judged_beside_popularity():
    stars = table(60, 9, whole=True)
    train, test = split(stars, "zero")
    model = hs.OrdNMF(3, random_state=0).fit(train)
    page = page_of(model, train, test, k=3, relevant=2)
    (caption,) = (caption for caption in page.tables if caption.startswith("Rankings of unseen columns"))
    heads = ["NDCG@3", "Precision@3", "Recall@3", "MAP@3", "MRR@3", "Hit rate@3", "Coverage@3", "AUC"]
    assert page.tables[caption][0] == ["Ranked by", *heads]
    table_ = page.numbers(caption)
    seen = train.to_dense() > 0
    relevant = (test.to_dense() >= 2) & ~seen
    for name, scores in (("OrdNMF", model.W_ @ model.H_.T), ("Popularity", np.tile(seen.sum(axis=0), (60, 1)))):
        hits = []
        for row in np.flatnonzero(relevant.any(axis=1)):
            order = np.argsort(-np.where(seen[row], -np.inf, scores[row]), kind="stable")[:3]
            hits.append(relevant[row][order].mean())
        assert_allclose(table_[name][1], np.mean(hits), rtol=5e-4)
    bare = page_of(model, None, test, k=3, relevant=2)  # the model remembers what it has seen
    assert bare.numbers(caption) == table_


def test_levels_are_judged_beside_how_often_they_were_seen():
    train, test = split(table(60, 9, whole=True))
    model = hs.OrdinalMF(1, random_state=0).fit(train)
    page = page_of(model, train, test)
    table_ = page.numbers(f"Levels of {test.nnz} cells")
    levels = test.values.astype(int) - 1
    shares = np.bincount(train.values.astype(int), minlength=6)[1:] / train.nnz
    expected = {
        "How often each level was seen": np.tile(shares, (test.nnz, 1)),
        "OrdinalMF": model.predict_proba(test.row_of_cell(), model.column_labels_[test.indices]),
    }
    for name, p in expected.items():
        score = np.mean(np.sum((np.cumsum(p, axis=1) - (levels[:, None] <= np.arange(5))) ** 2, axis=1))
        log = np.mean(np.log(p[np.arange(levels.size), levels]))
        assert_allclose(table_[name], [score, log], rtol=5e-4)


def test_a_level_that_training_did_not_have_is_remarked():
    X = table(30, 9, whole=True, top=3)
    model = hs.OrdinalMF(1, random_state=0).fit(X)
    test = np.full(X.shape, np.nan)
    row, column = np.argwhere(X.isna().to_numpy())[0]
    test[row, column] = 9
    page = page_of(model, X, pd.DataFrame(test, columns=X.columns))
    assert any(
        note.startswith("Values must be among the levels that were fitted: 1, 2, 3. Found 9") for note in page.notes
    )
    assert "Values of 1 cell: smaller is better" in page.tables


def test_recommendations_are_those_of_the_model():
    model, X = fitted("PoissonFactorization")
    page = Page(html_of("PoissonFactorization"))
    shown = [caption for caption in page.tables if caption.startswith("Recommended to row")]
    assert 1 < len(shown) <= 4
    for caption in shown:
        row = int(caption.split()[-1])
        found = model.recommend(row, n=8)
        scores = [float(line[1]) for line in page.tables[caption][1:]]
        assert_allclose(scores, found.scores[0][~np.isnan(found.scores[0])], rtol=5e-4)
        best = X.iloc[row].dropna().sort_values(ascending=False, kind="stable").index[0]
        assert any(note.startswith(f"Highest observed values: {best[:10]}") for note in page.notes)


def test_columns_have_their_titles_where_there_are_any():
    model, X = fitted("PoissonFactorization")
    titles = {label: f"<b>{at}</b>" for at, label in enumerate(X.columns)} | {"no such column": "Aliens"}
    page, before = Page(hs.make_report(model, X, names=titles).html), Page(html_of("PoissonFactorization"))
    strongest = np.argsort(-model.H_[:, 0], kind="stable")[:3]
    shown = [line[0] for line in page.tables["Strongest columns of component 0"][1:]]
    assert shown[:3] == [titles[X.columns[at]] for at in strongest]
    caption = next(caption for caption in page.tables if caption.startswith("Recommended to row"))
    found = model.recommend(int(caption.split()[-1]), n=8)
    shown = [line[0] for line in page.tables[caption][1:]]
    assert shown == [titles[label] for label in found.ids[0][: len(shown)]]
    assert [line[1] for line in page.tables[caption]] == [line[1] for line in before.tables[caption]]
    one = Page(hs.make_report(model, X, names={X.columns[strongest[0]]: None}).html)  # without a title: by its label
    assert one.tables["Strongest columns of component 0"] == before.tables["Strongest columns of component 0"]


def test_completions_are_those_of_the_model_and_none_without_holes():
    X = table(20, 9, whole=True).set_axis(list("abcdefghi"), axis=1)
    model = hs.OrdinalMF(1, random_state=0).fit(X)
    page = page_of(model, X)
    heads, *lines = page.tables["Predictions of some missing cells"]
    assert heads == ["Row", "Column", "Predicted", "Level", "90% from", "to"]
    assert len(lines) == 12
    for row, column, predicted, level, low, high in lines:
        assert np.isnan(X.loc[int(row), column])
        assert_allclose(float(predicted), model.predict(int(row), column), rtol=5e-4)
        assert float(level) == model.predict_level(int(row), column)
        assert float(low) <= float(level) <= float(high)
    full = np.random.default_rng(0).random((5, 4)) + 1
    page = page_of(hs.WeightedNMF(1, random_state=0).fit(full), full)
    assert "Examples of completions" not in [title for _, title in page.headings]


def test_uncoupled_data():
    model, seen = fitted("UncoupledNMF")
    truth = table(6, 8, seed=1)
    held = truth.set_axis([f"question {place}" for place in range(6)]).stack().dropna().reset_index()
    held.columns = ["row", "column", "value"]
    page = page_of(model, seen, held)
    assert str(seen.summary) in page.notes
    risk = model.disclosure_risk()
    assert page.facts["A guess of an answer is right"] == f"{100 * risk.mean():.3g}% of the time on average"
    heads, *lines = next(rows for caption, rows in page.tables.items() if "couplings" in caption)
    assert heads == ["Row", "Column", "Likeliest answer", "Probability", "Mean"]
    probabilities = [float(line[3]) for line in lines]
    assert_allclose(probabilities, np.sort(risk)[::-1][: len(lines)], rtol=5e-4)
    table_ = page.numbers(f"Values of {len(held)} cells: smaller is better")
    of_question = held.groupby("row")["value"].transform("mean")
    assert_allclose(table_["Mean of the question's answers"][1], (held["value"] - of_question).abs().mean(), rtol=5e-4)
    assert table_["UncoupledNMF"][1] < table_["Mean of the question's answers"][1]
    mixed = page.numbers("Convergence: a split R-hat near 1 is good")
    for name, found in model.diagnostics_.items():
        assert_allclose(mixed[name], found, rtol=5e-4)


@pytest.mark.parametrize("questions_are", ["rows", "columns"])
def test_error_bounds_of_questions_are_listed_the_largest_first(questions_are):
    seen = survey(questions_are=questions_are)
    model = hs.UncoupledNMF(2, method="unmf", random_state=0).fit(seen)
    heads, *lines = page_of(model).tables["Error bounds of questions"]
    assert heads == ["Question", "Error bound"]
    bounds = {f"question {place}": bound for place, bound in enumerate(model.error_bounds_)}
    assert [line[0] for line in lines] == sorted(bounds, key=bounds.get, reverse=True)
    assert_allclose([float(line[1]) for line in lines], sorted(bounds.values(), reverse=True), rtol=5e-4)


def test_train_may_come_in_any_order_or_be_other_data():
    frame = pd.DataFrame({"user": list("aabbcc"), "item": list("xyxzyz"), "rating": [1.0, 2, 3, 4, 5, 1]})
    model = hs.PoissonFactorization(1, random_state=0).fit(frame)
    note = "These are not exactly the cells that the model was fitted on."
    assert note not in page_of(model, frame[::-1]).notes
    with pytest.warns(DataWarning, match="1 of 7 that are not, the first at row 'new'"):
        other = page_of(model, pd.concat([frame, frame[:1].assign(user="new")]).assign(rating=1.0))
    assert note in other.notes
    assert any("1 of 7 that are not" in remark for remark in other.notes)
    assert other.facts["Rows"] == "3"


def test_large_data_give_a_small_page():
    random = np.random.default_rng(0)
    X = sparse.random(
        60_000, 8_000, 1e-3, random_state=random, format="csr", data_rvs=lambda n: 1.0 + random.poisson(1, n)
    )
    with quiet():
        model = hs.PoissonFactorization(20, max_iter=2, random_state=0).fit(X)
    report = hs.make_report(model, X)
    assert len(report.html) < 1_000_000
    assert "The data are too large to draw whole sets of them here." in report.html


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    model, X = fitted("WeightedNMF")
    report = hs.make_report(model, X, title="Mine <&>")
    report.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == report.html
    assert "<title>Mine &lt;&amp;&gt;</title>" in text
    for place in (tmp_path / "nowhere" / "report.html", tmp_path):
        with pytest.raises(DataError) as error:
            report.save(place)
        assert error.value.parameter == "path"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert repr(report) == f"Report('Mine <&>', {len(text.encode()):,} bytes)"


@pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
def test_without_what_it_is_made_with_there_is_a_sentence(name, monkeypatch):
    model, X = fitted("RankOneNMF")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(HalfseenError, match=f"pip install {name}"):
        hs.make_report(model, X)


def test_what_has_no_report():
    model, X = fitted("WeightedNMF")
    uncoupled, _ = fitted("UncoupledNMF by decoding")
    strange = pd.DataFrame({"user": ["zoe"], "item": ["zip"], "rating": [1.0]})
    unfitted = [hs.Quantizer([1, 2]).fit([[1.0, 2.0]]), hs.RankSearch(hs.WeightedNMF()), hs.OrdNMF()]
    cases = [
        *((ParameterError, "model", (one,), {}) for one in unfitted),
        (DataError, "train", (model, survey()), {}),
        (DataError, "train", (uncoupled, X), {}),
        *((DataError, name, (model,), {name: strange}) for name in ("train", "test")),
        *((ParameterError, name, (model, X), {name: 0}) for name in ("top", "k")),
        *((ParameterError, "relevant", (model, X), {"relevant": wrong}) for wrong in ([1, 2], "x", np.nan)),
    ]
    for kind, parameter, arguments, options in cases:
        with pytest.raises(kind) as error:
            hs.make_report(*arguments, **options)
        assert error.value.parameter == parameter


def test_levels_above_a_certain_lowest_one_are_equally_likely():
    """A square link may give a cell no chance at all of being above 0, where it was."""
    p = np.array([[1.0, 0.0, 0.0], [0.5, 0.1, 0.4]])
    assert_allclose(given_not_lowest(p), [[0.0, 0.5, 0.5], [0.0, 0.2, 0.8]], rtol=1e-15)


@pytest.mark.usefixtures("undrawn")
def test_words_are_counted_in_one_way():
    X = words()
    rows, columns = np.nonzero(X.isna().to_numpy())
    held = pd.DataFrame({"row": rows, "column": X.columns[columns], "value": "good"})
    model, _ = fitted("OrdinalMF of words")
    with quiet():
        page = page_of(model, X, held)
    assert "Values" not in page.facts
    caption = f"Values of {len(held)} cells, levels counted 0, 1, ... from bad: smaller is better"
    guess = model.predict(held["row"], held["column"])
    assert_allclose(page.numbers(caption)["OrdinalMF"][1], np.mean(np.abs(guess - 2)), rtol=5e-4)
    assert "Predicted values are means of levels counted 0, 1, ... from bad." in page.notes
    zeros, _ = fitted("OrdNMF of words")
    with quiet():
        notes = page_of(zeros, X, held).notes
    assert any("if its value is 1 or more (levels counted 1, 2, ... from bad)." in note for note in notes)


def tips(html, start):
    """Texts of the points of the picture whose description starts so."""
    (svg,) = re.findall(rf'aria-label="{start}[^"]*">(<svg.*?</svg>)', html, re.DOTALL)
    return re.findall(r"<title>(.*?)</title>", svg)


def test_points_and_bars_have_their_values():
    model, X = fitted("OrdNMF")
    html = html_of("OrdNMF")
    objective = model.trace_["objective"]
    steps, values = zip(*(text.split(": ") for text in tips(html, "Line of the")), strict=True)
    at = np.array([int(step.removeprefix("iteration ")) for step in steps]) - 1
    assert (len(at), at[0], at[-1]) == (min(60, objective.size), 0, objective.size - 1)
    assert_allclose([float(text.split()[-1].replace(",", "")) for text in values], objective[at], rtol=5e-6)
    check = hs.metrics.predictive_check(model, X, 10)
    table_ = Page(html).numbers("Cells by level")
    assert_allclose(list(table_.values()), np.stack(check[1:], axis=1), rtol=5e-4)
    shown = dict(text.split(": cells ") for text in "; ".join(tips(html, "Bars of the data")).split("; "))
    for name, counts in (("data", check.observed), ("OrdNMF", check.mean)):
        numbers = [float(shown[f"{name}, level {level:g}"].replace(",", "")) for level in check.levels]
        assert_allclose(numbers, counts, rtol=1e-5)
    spans = [text.partition("threshold ")[2] for text in tips(html, "Bars of the 6 levels")]
    cuts = [f"{cut:.4g}" for cut in model.thresholds_ / model.thresholds_[0]]
    inner = [f"{low} to {high}" for low, high in pairwise(cuts)]
    assert spans == [f"below {cuts[0]}", *inner, f"{cuts[-1]} and above"]
    _, X = fitted("WeightedNMF")
    counts, edges = np.histogram(X.to_numpy()[X.notna()], 30)
    for text, count, low, high in zip(tips(html_of("WeightedNMF"), "Hist"), counts, edges[:-1], edges[1:], strict=True):
        span, _, cells = text.removeprefix("value ").partition(": cells ")
        assert_allclose([float(end) for end in span.split(" to ")], [low, high], rtol=5e-4)
        assert int(cells) == count


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5546.0, "5,546"), (5546.4, "5,546"), (10607.2, "10,607"), (3.0, "3"), (0.25, "0.25"), (-1234.0, "-1,234"),
        (999.4, "999.4"), (1e12, "1e+12"), (float("nan"), "nan"), (float("-inf"), "-inf"), (None, "none"), ("x", "x"),
    ],
)  # fmt: skip
def test_numbers_are_written_alike(value, text):
    assert format_value(value) == text


@pytest.mark.usefixtures("undrawn")
def test_one_row_is_a_row_and_an_empty_title_is_none():
    model = hs.RankOneNMF().fit([[2.0]])
    for title in (None, "", "  "):
        assert hs.make_report(model, title=title).title == "RankOneNMF of 1 row and 1 column"


@pytest.mark.usefixtures("undrawn")
def test_rows_that_have_seen_all_get_no_recommendations():
    Y = np.ones((6, 4))
    Y[0, 0] = Y[1, 1] = 0.0
    with quiet():
        page = page_of(hs.PoissonFactorization(1, random_state=0).fit(Y), Y)
        full = page_of(hs.PoissonFactorization(1, random_state=0).fit(np.ones((6, 4))))
    shown = {caption: len(rows) for caption, rows in page.tables.items() if caption.startswith("Recommended")}
    assert shown == {"Recommended to row 0": 2, "Recommended to row 1": 2}
    assert "Examples of recommendations" not in [title for _, title in full.headings]


@pytest.mark.usefixtures("undrawn")
def test_the_report_of_a_search_is_that_of_its_best_model():
    X = table(20, 9)
    search = hs.RankSearch(hs.WeightedNMF(random_state=0), [1, 2], n_folds=2, random_state=0, n_jobs=1)
    with quiet():
        search.fit(X)
        assert hs.make_report(search, X).html == hs.make_report(search.best_estimator_, X).html
        search.set_params(refit=False).fit(X)
    with pytest.raises(ParameterError) as error:
        hs.make_report(search, X)
    assert "refit" in error.value.remedy

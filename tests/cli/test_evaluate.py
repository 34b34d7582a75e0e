"""halfseen evaluate and halfseen report: the quality of a model on held-out cells, as numbers and as a page."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

import halfseen
from halfseen.report import Report
from tests.cli.conftest import ITEMS, USERS, planted_counts, write_long
from tests.cli.program import done, misused, names_in, refused, refused_for_room, remarked
from tests.cli.program import halfseen as run
from tests.report.pages import Page

STARS = "user,item,rating\nann,x,1\nann,y,2\nann,z,4\nbob,x,2\nbob,y,1\nbob,w,4\ncid,z,2\ncid,w,2\ncid,x,4\n"
HELD = {("ann", "w"): 4, ("bob", "z"): 1, ("cid", "y"): 2}
WORDS = {"1": "bad", "2": "fair", "4": "good"}


@pytest.fixture
def stars(tmp_path):
    """Files of stars 1, 2 and 4 to learn from and to test by; dan is known to no model."""
    (tmp_path / "train.csv").write_text(STARS)
    held = "".join(f"{user},{item},{rating}\n" for (user, item), rating in HELD.items())
    (tmp_path / "test.csv").write_text(f"user,item,rating\n{held}dan,x,4\n")
    return tmp_path


@pytest.fixture
def words(stars):
    """The same in words."""
    for name in ("train.csv", "test.csv"):
        (stars / name).write_text(re.sub(r"\d", lambda found: WORDS[found[0]], (stars / name).read_text()))
    return stars


def evaluated(folder, model, *options):
    """The result for a model that is fitted now."""
    model.set_params(random_state=0).fit(folder / "train.csv").save(folder / "model.hs")
    result = run("evaluate", folder / "model.hs", "--test", folder / "test.csv", *options)
    assert result.exit_code == 0
    return result


def tables_of(result):
    """The printed tables by caption: of each model the numbers by their heads, without standard errors and marks."""
    tables, heads = {}, []
    for line in result.stdout.splitlines():
        name, *fields = re.split(r"  +", line.strip())
        if line.startswith(("Rankings", "Values", "Differences")):
            table = tables[line] = {}
        elif line == "Seconds":
            table = {}
        elif line.startswith(" "):
            heads = [name, *fields]
        elif fields:
            numbers = [float(field.partition(" ")[0].rstrip("*=")) for field in fields]
            table.setdefault(name, {}).update(zip(heads, numbers, strict=len(numbers) == len(heads)))
    return tables


def values_of(result):
    """The caption of values, and the numbers of the model."""
    ((caption, table),) = ((one, table) for one, table in tables_of(result).items() if one.startswith("Values of "))
    return caption, table["model.hs"]


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_ranking_and_likelihood_are_those_of_the_library(stars):
    model = halfseen.PoissonFactorization(2, max_iter=1000)
    ask = ("-k", 2, "--relevant", 1, "--relevant", 4)
    result = evaluated(stars, model, *ask)
    assert result.stderr.count("1 of 4") == 1  # dan is not known
    tables = tables_of(result)
    test = halfseen.observe(stars / "test.csv", unseen="zero")
    scores = halfseen.metrics.ranking_scores(model, None, test, k=2, relevant=[1, 4])
    for place, caption in enumerate(["relevant from 1: 3 rows", "relevant from 4: 1 row"]):
        found = tables[f"Rankings, {caption}"]
        assert list(found) == ["model.hs", "Popularity"]
        expected = [np.nanmean(metric[place]) for metric in scores]
        shown = [found["model.hs"][f"{head}@2"] for head in ("NDCG", "precision", "recall", "MAP")]
        np.testing.assert_allclose(shown, expected, atol=5.1e-5)
    logs = model.log_likelihood(stars / "test.csv", each=True)
    caption, found = values_of(result)
    assert caption == "Values of 3 cells, given that they are above 0"
    known = test.select_cells(test.row_labels[test.row_of_cell()] != "dan")
    rate = model.predict(known.row_labels[known.row_of_cell()], known.column_labels[known.indices])
    errors = np.abs(rate / -np.expm1(-rate) - known.values)  # the mean of a Poisson variable, given that it is above 0
    expected = {"RMSE": np.sqrt(np.mean(errors**2)), "MAE": errors.mean(), "within 0.5": np.mean(errors <= 0.5)}
    assert found == pytest.approx(expected | {"log loss": -logs.mean()}, abs=5.1e-5)
    others = evaluated(stars, model, *ask, "--train", stars / "train.csv")
    assert others.stdout.splitlines()[1].startswith(f"Read {stars / 'train.csv'}: ")
    for caption, table in tables_of(others).items():  # what is known may be given, and is that of the fit
        if not caption.startswith("Differences"):
            assert {name: table[name] for name in tables[caption]} == tables[caption]


@pytest.mark.parametrize("model", [halfseen.OrdinalMF(2, l2=0.5), halfseen.WeightedNMF(2, max_iter=1000)], ids=str)
def test_values_where_unseen_cells_are_missing(stars, model):
    """The same with cells of the fit among those held out, and a note that these were left out."""
    line, found = values_of(evaluated(stars, model))
    users, items = zip(*HELD, strict=True)
    seen = np.array(list(HELD.values()))
    errors = model.predict(list(users), list(items)) - seen
    expected = [np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors)), np.mean(np.abs(errors) <= 0.5)]
    if hasattr(model, "predict_proba"):
        up_to = np.cumsum(model.predict_proba(list(users), list(items)), axis=1)  # of levels 1, 2 and 4
        expected.append(np.mean((up_to[:, 0] - (seen <= 1)) ** 2 + (up_to[:, 1] - (seen <= 2)) ** 2))
    assert line == "Values of 3 cells"
    assert ("log loss" in found) == hasattr(model, "log_likelihood")
    np.testing.assert_allclose(list(found.values())[: len(expected)], expected, atol=5.1e-5)
    with (stars / "test.csv").open("a") as file:
        file.write(STARS.splitlines()[1] + "\n")
    result = evaluated(stars, model)
    assert values_of(result) == (line, found)
    assert len(result.stderr.splitlines()) == 2  # the other note is of dan


def test_a_level_that_training_did_not_have_leaves_the_ranking(stars):
    (stars / "test.csv").write_text("user,item,rating\nann,w,3\nbob,z,1\n")
    result = evaluated(stars, halfseen.OrdinalMF(1), "-k", 1)
    (table,) = (table for caption, table in tables_of(result).items() if caption == "Rankings, relevant from 1: 2 rows")
    assert [table["model.hs"][f"{head}@1"] for head in ("NDCG", "precision", "recall")] == [1, 1, 1]  # one candidate
    assert re.match(r"note: .*Found 3 at row 'ann', column 'w'", result.stderr)


@pytest.mark.parametrize(
    ("model", "default"),
    [(halfseen.OrdNMF(1), "bad: 3 rows"), (halfseen.OrdinalMF(1, l2=0.5), "fair: 2 rows")],
    ids=str,
)
def test_words_are_ranked_by_their_place(words, model, default):
    """The lowest is above the zeros of unseen cells; where these are missing every cell reaches it, and the second
    is relevant by default."""
    model.set_params(levels=list(WORDS.values()))
    result = evaluated(words, model)
    assert "levels 'bad' to 'good'." in result.stdout.splitlines()[0]
    assert f"Rankings, relevant from {default}" in tables_of(result)
    tables = tables_of(evaluated(words, model, "--relevant", "bad", "--relevant", "good"))
    assert {f"Rankings, relevant from {one}" for one in ("bad: 3 rows", "good: 1 row")} < set(tables)
    line = refused("evaluate", words / "model.hs", "--test", words / "test.csv", "--relevant", "god")
    assert line.endswith("'good'?")
    if not hasattr(model, "sample") or model.unseen == "missing":
        line, found = values_of(result)
        errors = model.predict_proba(["ann", "bob", "cid"], ["w", "z", "y"]) @ [0, 1, 2] - [2, 0, 1]
        assert "levels counted 0, 1, ... from 'bad'" in line
        assert found["RMSE"] == pytest.approx(np.sqrt(np.mean(errors**2)), abs=5.1e-5)
        assert found["within 0.5"] == pytest.approx(np.mean(np.abs(errors) <= 0.5), abs=5.1e-5)


def test_refusals_are_one_line_without_a_note(stars):
    evaluated(stars, halfseen.OrdinalMF(1))
    (stars / "test.csv").write_text("user,item,rating\nnobody,nothing,3\n")
    refused("evaluate", stars / "model.hs", "--test", stars / "test.csv")


def test_several_models_are_compared_and_all_numbers_go_to_a_table(stars):
    evaluated(stars, halfseen.OrdNMF(1))
    (stars / "model.hs").rename(stars / "a.hs")
    evaluated(stars, halfseen.PoissonFactorization(1))
    words = ("evaluate", stars / "a.hs", stars / "model.hs", "--test", stars / "test.csv", "-k", "1,2")
    result = run(*words, "-o", stars / "scores.csv")
    tables = tables_of(result)
    ranked = tables["Rankings, relevant from 1: 3 rows"]
    assert list(ranked) == ["a.hs", "model.hs", "Popularity"]
    assert {"NDCG@1", "NDCG@2", "AUC"} < set(ranked["a.hs"])
    assert "Differences from the best. Rankings, relevant from 1: 3 rows" in tables
    lines = pd.read_csv(stars / "scores.csv")
    ndcg = lines[(lines.metric == "ndcg") & (lines.k == 2)].set_index("model").value
    assert ndcg.to_dict() == pytest.approx({name: row["NDCG@2"] for name, row in ranked.items()}, abs=5.1e-5)
    found = json.loads(run(*words, "--json", "--no-baselines").stdout)
    assert found["k"] == [1, 2]
    assert [one["model"] for one in found["models"]] == ["a.hs", "model.hs"]
    assert "twice" in misused("evaluate", stars / "a.hs", stars / "a.hs", "--test", stars / "test.csv")
    assert "'ten'" in refused("evaluate", stars / "a.hs", "--test", stars / "test.csv", "-k", "ten")


def test_users_held_out_are_folded_in(ratings, tmp_path):
    files = {name: tmp_path / f"{name}.csv" for name in ("train", "history", "test")}
    split = ("--by", "user", "--held-out-users", 2, "--min-cells", 4)
    outputs = ("-o", files["train"], "--history", files["history"], "--held-out", files["test"])
    assert "2 users held out by seed 0" in done("split", ratings.path, *split, *outputs)[0]
    done("fit", files["train"], "--method", "poisson", "-k", 1, "-q", "-o", tmp_path / "model.hs")
    given = ("--train", files["train"], "--history", files["history"], "--test", files["test"])
    result = run("evaluate", tmp_path / "model.hs", *given, "-k", 2)
    assert result.exit_code == 0
    table = tables_of(result)["Rankings, relevant from 1: 2 rows"]
    model = halfseen.load(tmp_path / "model.hs")
    train, history, test = (halfseen.observe(files[name], unseen="zero") for name in files)
    report = halfseen.evaluate({"m": model}, train, test, history=history, k=2)
    assert table["model.hs"]["NDCG@2"] == pytest.approx(report.get("m", "ndcg").value, abs=5.1e-5)
    assert "--history" in misused("split", ratings.path, *split, *outputs[:2], *outputs[4:])
    assert "--by user" in misused("split", ratings.path, "--min-cells", 4, *outputs[:2], *outputs[4:])


# report


@pytest.fixture
def held_out(tmp_path):
    """A file of what the ratings do not have."""
    return write_long(tmp_path / "held_out.csv", np.where(np.isnan(planted_counts()), 2.0, np.nan))


@pytest.fixture
def kept(tmp_path):
    """A report that was there before, and must be there after a refusal."""
    path = tmp_path / "report.html"
    path.write_text("an older report")
    yield path
    assert path.read_text() == "an older report"
    assert names_in(tmp_path) == ["report.html"]


def page_at(path):
    return Page(path.read_text(encoding="utf-8"))


def test_a_report_of_everything(ratings, model, held_out, tmp_path):
    place = tmp_path / "report.html"
    words = ("--train", ratings.path, "--test", held_out, "-k", 3, "--relevant", 2, "-o", place)
    lines = done("report", model, *words)
    assert lines[0].startswith(f"Read {ratings.path}: {len(USERS)} x {len(ITEMS)}, ")
    assert lines[1].startswith(f"Read {held_out}: ")
    assert lines[2].startswith(f"Saved {place} (")
    page = page_at(place)
    assert page.headings[0][1] == f"PoissonFactorization of {len(USERS)} rows and {len(ITEMS)} columns"
    assert page.facts["Cells seen"].startswith(f"{np.count_nonzero(~np.isnan(ratings.values))} of ")
    (table,) = (rows for caption, rows in page.tables.items() if "Rankings" in caption)
    assert table[0][:5] == ["Ranked by", "NDCG@3", "Precision@3", "Recall@3", "MAP@3"]
    assert " ± " in table[1][1]


def test_a_report_of_a_model_alone_has_its_usual_place(model, elsewhere):
    assert done("report", model, "-q", "--title", "Drinks <2>", "--top", 2) == []
    page = page_at(elsewhere / "report.html")
    assert page.headings[0][1] == "Drinks <2>"
    assert len(page.tables["Strongest columns of component 0"]) == 3
    assert names_in(elsewhere) == ["report.html"]
    (elsewhere / "titles.csv").write_text("item,title\ngin,London Dry\n")
    done("report", model, "-q", "--names", elsewhere / "titles.csv")
    shown = [line[0] for line in page_at(elsewhere / "report.html").tables["Strongest columns of component 0"]]
    assert "London Dry" in shown
    assert "gin" not in shown


def test_a_survey(tmp_path):
    X = np.array([[1.0, 2, 3, 4], [4, 3, 1, 2], [2, 4, 1, 3]])
    seen = halfseen.Uncoupled.from_coupled(X, 6, random_state=0)
    halfseen.UncoupledNMF(1, n_sweeps=300, n_burn=50, random_state=0).fit(seen).save(tmp_path / "model.hs")
    done("report", tmp_path / "model.hs", "-q", "-o", tmp_path / "report.html")
    assert "Coupling of answers" in [title for _, title in page_at(tmp_path / "report.html").headings]
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    line = refused("report", tmp_path / "model.hs", "--train", tmp_path / "table.csv", "-o", tmp_path / "r.html")
    assert "--train" in line


def test_warnings_are_notes_and_on_the_page(model, ratings, tmp_path):
    (tmp_path / "more.csv").write_text(f"{ratings.path.read_text()}zoe,ale,3\n")
    note = remarked("report", model, "--train", tmp_path / "more.csv", "-q", "-o", tmp_path / "report.html")
    assert "row 'zoe', column 'ale'" in note
    assert note.removeprefix("note: ") in page_at(tmp_path / "report.html").notes


@pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
def test_without_what_pages_are_made_with(model, kept, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert f"pip install {name}" in refused("report", model, "-o", kept)


def test_a_full_disk(model, kept, full_disk):
    refused_for_room(full_disk, "report", model, "-o", kept)


def test_ctrl_c_leaves_the_older_report(model, kept, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Report, "save", interrupt)
    result = run("report", model, "-o", kept)
    assert (result.exit_code, result.stderr) == (130, "Interrupted; nothing was saved.\n")

"""hs.evaluate: several models on the same cells, beside baselines, with standard errors by row."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error

import halfseen as hs
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.metrics import evaluation, scorers
from tests.estimators.models import refused
from tests.metrics import oracle


def stars(seed=0, n=40, m=25, share=0.5, labelled=True):
    """A long frame of stars 1 to 5, some columns more popular than others."""
    random = np.random.default_rng(seed)
    x = random.random((n, 3)) @ random.random((3, m))
    values = 1 + np.argsort(np.argsort(x + 0.2 * random.random((n, m)), axis=None)).reshape(n, m) * 5 // (n * m)
    rows, columns = np.nonzero(random.random((n, m)) < share * (0.3 + np.arange(m) / m))
    names = [f"u{row}" for row in rows], [f"i{column}" for column in columns]
    frame = pd.DataFrame({"user": names[0], "item": names[1], "rating": values[rows, columns].astype(float)})
    return frame if labelled else frame.assign(user=rows, item=columns)


def dense_of(cells, row_labels, column_labels):
    """Cells as a dense array in the order of the given labels, NaN where there are none."""
    dense = np.full((len(row_labels), len(column_labels)), np.nan)
    rows, columns = ({label: at for at, label in enumerate(labels)} for labels in (row_labels, column_labels))
    for row, column, value in zip(cells.row_of_cell(), cells.indices, cells.values, strict=True):
        dense[rows[cells.row_labels[row]], columns[cells.column_labels[column]]] = value
    return dense


@pytest.fixture
def parts():
    return hs.data.split_cells(stars(), 0.3, random_state=0, unseen="zero")


def ordnmf(seed=0, k=2):
    return hs.OrdNMF(k, max_iter=30, tol=0, random_state=seed)


def test_rankings_are_those_of_the_metrics_with_errors_by_formula(parts):
    train, test = parts
    model = ordnmf().fit(train)
    report = hs.evaluate({"ours": model}, train, test, k=[3, 10], relevant=[1, 4])
    functions = {
        "ndcg": hs.metrics.ndcg_at_k,
        "precision": hs.metrics.precision_at_k,
        "recall": hs.metrics.recall_at_k,
        "map": hs.metrics.map_at_k,
        "mrr": hs.metrics.mrr_at_k,
        "hit_rate": hs.metrics.hit_rate_at_k,
        "coverage": hs.metrics.coverage_at_k,
        "novelty": hs.metrics.novelty_at_k,
    }
    for name, function in functions.items():
        expected = function(model, train, test, [3, 10], [1, 4])
        found = [[report.get("ours", name, k, s).value for s in (1, 4)] for k in (3, 10)]
        assert_allclose(found, expected, rtol=1e-14)
    aucs = hs.metrics.auc(model, train, test, [1, 4])
    assert_allclose([report.get("ours", "auc", relevant=s).value for s in (1, 4)], aucs, rtol=1e-14)
    of_rows = hs.metrics.ranking_scores(model, train, test, 3, 4).ndcg
    of_rows = of_rows[~np.isnan(of_rows)]
    score = report.get("ours", "ndcg", 3, 4)
    assert score.rows == of_rows.size
    assert score.standard_error == pytest.approx(np.std(of_rows, ddof=1) / np.sqrt(of_rows.size), rel=1e-12)


def test_differences_are_paired_by_row_and_ties_within_two_errors(parts):
    train, test = parts
    models = {"one": ordnmf(0).fit(train), "other": ordnmf(1).fit(train), "worst": -test.to_dense()}
    report = hs.evaluate(models, train, test, k=5, baselines=False)
    rows = {name: hs.metrics.ranking_scores(model, train, test, 5).ndcg for name, model in models.items()}
    best = max(rows, key=lambda name: np.nanmean(rows[name]))
    for name, of_rows in rows.items():
        score = report.get(name, "ndcg")
        gap = (of_rows - rows[best])[~np.isnan(of_rows)]
        assert score.difference == pytest.approx(gap.mean(), abs=1e-14)
        assert score.difference_error == pytest.approx(np.std(gap, ddof=1) / np.sqrt(gap.size), abs=1e-14)
        assert score.is_best == (name == best)
        assert score.is_tied == (name != best and abs(score.difference) <= 2 * score.difference_error)
    assert not report.get("worst", "ndcg").is_tied
    marks = {line.split()[0]: line for line in str(report).splitlines()[2:5]}
    assert re.search(r"\d\*", marks[best])


def test_the_error_of_coverage_is_its_jackknife(parts):
    train, test = parts
    model = ordnmf().fit(train)
    score = hs.evaluate(model, train, test, k=2, metrics=["coverage"], baselines=False).get("OrdNMF", "coverage")
    dense, held = train.to_dense(), test.to_dense()
    judged = np.flatnonzero((held >= 1).any(axis=1))
    lists = [oracle.ranked((model.W_[u] @ model.H_.T).tolist(), set(np.flatnonzero(dense[u])))[:2] for u in judged]

    def share(lists):
        return len(set().union(*lists)) / train.shape[1]

    without = [share(lists[:at] + lists[at + 1 :]) for at in range(len(lists))]
    n = len(lists)
    assert score.value == share(lists)
    assert score.standard_error == pytest.approx(np.sqrt((n - 1) / n * np.sum((without - np.mean(without)) ** 2)))


def test_unfitted_models_are_cloned_and_fitted(parts):
    train, test = parts
    model = ordnmf()
    report = hs.evaluate({"ours": model, "theirs": ordnmf().fit(train)}, train, test, k=5)
    assert not hasattr(model, "model_")
    assert_array_equal(report.models["ours"].W_, report.models["theirs"].W_)
    assert report.get("ours", "ndcg").value == report.get("theirs", "ndcg").value
    assert report.fit_seconds["ours"] > 0
    assert report.rank_seconds["ours"] > 0
    assert report.fit_seconds["theirs"] == report.models["theirs"].trace_["seconds"][-1]
    with refused(DataError, "train"):
        hs.evaluate(model, None, test)


@pytest.mark.parametrize("order", [False, True])
def test_rows_and_columns_are_matched_by_label(order):
    """Models that were fitted on other orders of rows are compared row by row all the same."""
    train, test = hs.data.split_cells(stars(), 0.3, random_state=0, unseen="zero")
    rows, columns = train.row_of_cell(), train.indices
    frame = pd.DataFrame(
        {"user": train.row_labels[rows], "item": train.column_labels[columns], "rating": train.values}
    ).sample(frac=1, random_state=1)
    other = ordnmf().fit(frame if order else train)
    scores = dict(zip(other.row_labels_, other.W_ @ other.H_.T, strict=True))
    by_label = {label: at for at, label in enumerate(other.column_labels_)}
    dense = np.array([scores[row][[by_label[column] for column in train.column_labels]] for row in train.row_labels])
    report = hs.evaluate(
        {"fitted": other, "scores": dense}, train, test, k=[5], metrics=["ndcg", "auc"], baselines=False
    )
    for metric in ("ndcg", "auc"):
        fitted, given = report.get("fitted", metric), report.get("scores", metric)
        assert fitted.value == pytest.approx(given.value, rel=1e-14)
        assert_allclose(fitted.of_rows, given.of_rows, rtol=1e-12)
        assert max(fitted.difference_error, given.difference_error) < 1e-12


def test_popularity_stands_beside_the_models_by_default(parts):
    train, test = parts
    report = hs.evaluate(ordnmf(), train, test, k=5)
    popular = (np.ones((train.shape[0], 1)), train.seen_per_column()[:, None])
    assert report.get("Popularity", "ndcg").value == hs.metrics.ndcg_at_k(popular, train, test, 5)
    alone = hs.evaluate(ordnmf(), train, test, k=5, baselines=False)
    assert {one.model for one in alone.scores} == {"OrdNMF"}
    assert all(one.difference is None for one in alone.scores)
    remembered = hs.evaluate(report.models["OrdNMF"], None, test, k=5)
    assert remembered.get("Popularity", "ndcg").value == report.get("Popularity", "ndcg").value


@pytest.mark.parametrize("cells_at_a_time", [7, 1 << 18])
def test_values_against_scikit_learn(cells_at_a_time, monkeypatch):
    monkeypatch.setattr(evaluation, "CELLS_AT_A_TIME", cells_at_a_time)
    train, test = hs.data.split_cells(stars(), 0.3, random_state=0)
    model = hs.OrdinalMF(1, random_state=0).fit(train)
    report = hs.evaluate({"ours": model}, train, test, k=5)
    users, items = test.row_labels[test.row_of_cell()], test.column_labels[test.indices]
    predicted, p = model.predict(users, items), model.predict_proba(users, items)
    found = {name: report.get("ours", name) for name in ("rmse", "mae", "within_half", "rps", "log_loss")}
    assert found["rmse"].value == pytest.approx(np.sqrt(mean_squared_error(test.values, predicted)), rel=1e-12)
    assert found["rmse"].value == pytest.approx(hs.metrics.rmse(test.values, predicted), rel=1e-14)
    assert found["mae"].value == pytest.approx(mean_absolute_error(test.values, predicted), rel=1e-12)
    assert found["mae"].value == pytest.approx(hs.metrics.mae(test.values, predicted), rel=1e-14)
    assert found["log_loss"].value == pytest.approx(log_loss(test.values, p, labels=[1, 2, 3, 4, 5]), rel=1e-9)
    assert found["log_loss"].value == pytest.approx(
        hs.metrics.log_loss(test.values, p, labels=model.levels_), rel=1e-12
    )
    rps = hs.metrics.ranked_probability_score(test.values, p, labels=model.levels_)
    assert found["rps"].value == pytest.approx(rps, rel=1e-12)
    assert found["within_half"].value == np.mean(np.abs(predicted - test.values) <= 0.5)
    assert {one.cells for one in found.values()} == {test.nnz}
    # baselines, and their probabilities
    assert report.get("Mean of all", "mae").value == pytest.approx(np.mean(np.abs(train.values.mean() - test.values)))
    dense = train.to_dense()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        of_row, of_column = (np.nanmean(dense, axis=axis) for axis in (1, 0))
    for name, guess in (
        ("Mean of the row", of_row[test.row_of_cell()]),
        ("Mean of the column", of_column[test.indices]),
    ):
        expected = np.sqrt(mean_squared_error(test.values, guess))
        assert report.get(name, "rmse").value == pytest.approx(expected, rel=1e-12)
    shares = np.bincount(train.values.astype(int), minlength=6)[1:] / train.nnz
    expected = -np.mean(np.log(shares[test.values.astype(int) - 1]))
    assert report.get("Frequency of levels", "log_loss").value == pytest.approx(expected, rel=1e-12)


def test_errors_of_values_are_those_of_bootstrapped_rows():
    """The linearized standard errors by row, against rows drawn again and again."""
    train, test = hs.data.split_cells(stars(n=300), 0.3, random_state=0, by="row")
    model = hs.WeightedNMF(2, max_iter=30, tol=0, random_state=0).fit(train)
    report = hs.evaluate(model, train, test, k=5, metrics=["rmse", "mae"])
    rows = test.row_of_cell()
    errors = model.predict(test.row_labels[rows], test.column_labels[test.indices]) - test.values
    squares, sizes, counts = (np.bincount(rows, of, 300) for of in (errors**2, np.abs(errors), np.ones(rows.size)))
    random, drawn = np.random.default_rng(0), []
    for _ in range(4000):
        some = random.integers(0, 300, 300)
        n = counts[some].sum()
        drawn.append((np.sqrt(squares[some].sum() / n), sizes[some].sum() / n))
    for name, error in zip(("rmse", "mae"), np.std(drawn, axis=0), strict=True):
        assert report.get("WeightedNMF", name).standard_error == pytest.approx(error, rel=0.05)


def test_levels_of_models_of_zeros_are_judged_given_that_they_are_seen(parts):
    train, test = parts
    model = ordnmf().fit(train)
    report = hs.evaluate(model, train, test, k=5)
    p = model.predict_proba(test.row_labels[test.row_of_cell()], test.column_labels[test.indices])[:, 1:]
    p /= p.sum(axis=1, keepdims=True)
    y = test.values.astype(int) - 1
    assert report.get("OrdNMF", "rmse").value == pytest.approx(
        np.sqrt(np.mean((p @ np.arange(1, 6) - test.values) ** 2))
    )
    assert report.get("OrdNMF", "log_loss").value == pytest.approx(-np.mean(np.log(p[np.arange(y.size), y])), rel=1e-6)
    assert report.get("Mean of all", "rmse").value == pytest.approx(
        np.sqrt(np.mean((train.values.mean() - test.values) ** 2))
    )
    assert f"Values of {test.nnz} cells, given that they are above 0" in str(report)


@pytest.mark.parametrize("is_squared", [False, True], ids=["poisson", "squared"])
def test_counts_of_models_of_zeros_are_judged_given_that_they_are_seen(parts, is_squared):
    """E[y | y > 0] = rate / (1 - exp(-rate)) with rate x or x^2, at held-out cells and in rows that are folded in."""
    train, test = parts
    kind = hs.SquaredPoisson if is_squared else hs.PoissonFactorization

    def errors(x, values):
        rate = x**2 if is_squared else x
        return rate / -np.expm1(-rate) - values

    model = kind(2, max_iter=30, tol=0, random_state=0).fit(train)
    report = hs.evaluate({"m": model}, train, test, k=5)
    of_cells = errors((model.W_ @ model.H_.T)[test.row_of_cell(), test.indices], test.values)
    assert report.get("m", "rmse").value == pytest.approx(np.sqrt(np.mean(of_cells**2)), rel=1e-9)
    assert report.get("m", "mae").value == pytest.approx(np.mean(np.abs(of_cells)), rel=1e-9)
    assert report.get("Mean of all", "mae").value == pytest.approx(np.mean(np.abs(train.values.mean() - test.values)))

    train, history, test = hs.data.split_rows(stars(), 8, 0.3, random_state=0, unseen="zero")
    report = hs.evaluate({"m": model.fit(train)}, train, test, history=history, k=5)
    of_cells = errors((model.transform(history) @ model.H_.T)[test.row_of_cell(), test.indices], test.values)
    assert report.get("m", "rmse").value == pytest.approx(np.sqrt(np.mean(of_cells**2)), rel=1e-6)


def test_the_order_of_models_changes_nothing(parts):
    """Whichever comes first: preferences, presence, counts or levels; presence says nothing about values."""
    train, test = parts
    models = {
        "implicit": hs.ImplicitMF(2, random_state=0).fit(train),
        "presence": hs.BernoulliPoisson(2, max_iter=10, tol=0, random_state=0).fit(train),
        "items": hs.ItemGraph().fit(train),
        "counts": hs.PoissonFactorization(2, max_iter=10, tol=0, random_state=0).fit(train),
        "levels": ordnmf().fit(train),
    }
    alone = hs.evaluate({"levels": models["levels"]}, train, test, k=5)
    for first in models:
        some = {first: models[first]} | models
        report = hs.evaluate(some, train, test, k=5)
        for name, metric in (
            ("levels", "rmse"),
            ("Mean of all", "rmse"),
            ("Mean of the column", "mae"),
            ("Frequency of levels", "rps"),
        ):
            assert report.get(name, metric).value == alone.get(name, metric).value
        about_values = {one.model for one in report.scores if one.metric in ("rmse", "rps", "log_loss")}
        assert about_values.isdisjoint({"implicit", "presence", "items"})


@pytest.mark.parametrize("estimator", [ordnmf(), hs.OrdinalMF(1, random_state=0)], ids=["zero", "missing"])
@pytest.mark.parametrize("scores_at_a_time", [60, 1 << 20])
def test_rows_held_out_are_folded_in(estimator, scores_at_a_time, monkeypatch):
    """Against `transform`, whose rows are folded in all at once."""
    monkeypatch.setattr(evaluation, "SCORES_AT_A_TIME", scores_at_a_time)
    train, history, test = hs.data.split_rows(stars(), 8, 0.3, random_state=0, unseen=estimator.unseen)
    report = hs.evaluate({"m": estimator}, train, test, history=history, k=[3, 5], relevant=4)
    model = report.models["m"]
    seen = np.zeros(history.shape, bool)
    seen[history.row_of_cell(), history.indices] = True
    held = np.full(test.shape, np.nan)
    held[test.row_of_cell(), test.indices] = test.values
    past = np.where(seen, 1.0, np.nan)
    scores = model.transform(history) @ model.H_.T
    rows = oracle.all_rows(scores.tolist(), past.tolist(), held.tolist(), 5, 4)
    expected = np.mean([row for row in rows if row is not None], axis=0)
    found = [report.get("m", name, 5).value for name in ("ndcg", "precision", "recall", "map")]
    assert_allclose(found, expected, rtol=1e-9)
    given = hs.evaluate({"scores": scores}, train, test, history=history, k=[3, 5], relevant=4)
    for name in ("ndcg", "auc", "coverage", "novelty"):
        assert report.get("m", name).value == pytest.approx(given.get("scores", name).value, rel=1e-9)
    counts = np.tile(train.seen_per_column().astype(float), (test.shape[0], 1))
    rows = oracle.all_rows(counts.tolist(), past.tolist(), held.tolist(), 5, 4)
    popular = np.mean([row[0] for row in rows if row is not None])
    assert report.get("Popularity", "ndcg", 5).value == pytest.approx(popular, rel=1e-12)
    if estimator.unseen == "missing":
        predicted = model.predict(history)[test.row_of_cell(), test.indices]
        expected = np.sqrt(np.mean((predicted - test.values) ** 2))
        assert report.get("m", "rmse").value == pytest.approx(expected, rel=1e-9)


def test_history_is_read_by_label_in_blocks(monkeypatch):
    monkeypatch.setattr(scorers, "ROWS_AT_A_TIME", 3)
    train, history, test = hs.data.split_rows(stars(), 8, 0.3, random_state=0, unseen="zero")
    model = ordnmf().fit(train)

    def as_frame(cells):
        lines = {"user": cells.row_labels[cells.row_of_cell()], "item": cells.column_labels[cells.indices]}
        return pd.DataFrame(lines | {"rating": cells.values}).sample(frac=1, random_state=2)

    whole = hs.evaluate({"m": model}, train, test, history=history, k=5)
    by_label = hs.evaluate({"m": model}, train, as_frame(test), history=as_frame(history), k=5)
    for name in ("ndcg", "auc", "coverage", "novelty", "rps"):
        for one in ("m", "Popularity"):
            if (one, name) != ("Popularity", "rps"):
                assert by_label.get(one, name).value == pytest.approx(whole.get(one, name).value, rel=1e-10)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_the_same_bits_for_any_number_of_threads(n_jobs, parts):
    train, test = parts
    model = ordnmf().fit(train)
    one, many = (hs.evaluate(model, train, test, k=[2, 9], relevant=[1, 4], n_jobs=jobs) for jobs in (1, n_jobs))
    for a, b in zip(one.scores, many.scores, strict=True):
        assert (a.model, a.metric, a.value, a.standard_error) == (b.model, b.metric, b.value, b.standard_error)


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow", None])
def test_frames_and_dicts_have_all_scores(parts, backend):
    train, test = parts
    report = hs.evaluate({"ours": ordnmf()}, train, test, k=[2, 9], relevant=[1, 4])
    frame = report.to_frame(backend)
    if backend is not None:
        assert type(frame).__module__.partition(".")[0] == backend
    columns = {
        name: list(frame[name].to_pylist() if backend == "pyarrow" else frame[name]) for name in ("metric", "value")
    }
    seconds = [name for name in columns["metric"] if name.endswith("_seconds")]
    assert len(columns["metric"]) == len(report.scores) + len(seconds)
    assert columns["value"][: len(report.scores)] == [one.value for one in report.scores]
    listed = report.to_dict()
    assert [one["model"] for one in listed["models"]][:2] == ["ours", "Popularity"]
    ours = listed["models"][0]
    assert ours["scores"][0]["value"] == report.get("ours", ours["scores"][0]["metric"]).value
    with refused(ParameterError, "backend"):
        report.to_frame("numpy")


def test_warnings_of_several_models_come_once_and_name_the_caller(parts):
    train, test = parts
    user, item = test.row_labels[test.row_of_cell()[0]], test.column_labels[test.indices[0]]
    extra = pd.DataFrame({"user": [user, "nobody"], "item": [item, "i3"], "rating": [5.0, 1.0]})
    models = {"a": ordnmf().fit(train), "b": ordnmf(1).fit(train)}
    with pytest.warns(DataWarning, match="'nobody'") as caught:
        hs.evaluate(models, train, extra, k=5, metrics=["ndcg"])
    told = [one for one in caught if "nobody" in str(one.message)]
    assert len(told) == 1
    assert told[0].filename == __file__


def test_a_level_that_training_did_not_have_leaves_the_ranking():
    train, test = hs.data.split_cells(stars(), 0.3, random_state=0)
    model = hs.OrdinalMF(1, random_state=0).fit(train)
    other = pd.DataFrame(
        {"user": [test.row_labels[test.row_of_cell()[0]]], "item": [test.column_labels[test.indices[0]]]}
    )
    report = hs.evaluate(model, train, other.assign(rating=3.5), k=5)
    assert {one.metric for one in report.scores}.isdisjoint({"rmse", "rps"})
    assert "3.5" in report.notes[0]


def test_models_are_named_by_their_classes_in_a_list(parts):
    train, test = parts
    popular = (np.ones((train.shape[0], 1)), train.seen_per_column()[:, None])

    def at_random(rows):
        return np.random.default_rng(0).random((rows.size, train.shape[1]))

    report = hs.evaluate([ordnmf(), ordnmf(1), popular, at_random], train, test, k=5, baselines=False)
    assert list(report.models) == ["OrdNMF", "OrdNMF (2)", "factors", "at_random"]


def test_invalid_parameters_are_refused(parts):
    train, test = parts
    model = ordnmf().fit(train)
    for parameter, value in (("metrics", ["rmsd"]), ("baselines", "yes"), ("k", [0]), ("relevant", "4"), ("n_jobs", 0)):
        with refused(ParameterError, parameter):
            hs.evaluate(model, train, test, **{parameter: value})
    for models in ([], {}):
        with refused(ParameterError, "models"):
            hs.evaluate(models, train, test)
    with refused(ParameterError, "model"):
        hs.evaluate("ours", train, test)
    with refused(DataError, "train"):
        hs.evaluate(np.ones(train.shape), None, test)
    with refused(DataError, "test"):
        hs.evaluate(model, train, None)


@pytest.mark.parametrize(
    "model", [hs.SquaredOrdNMF(3, l2=2.0, random_state=0), hs.ImplicitMF(3, random_state=0), hs.ItemGraph(l2=3.0)]
)
def test_what_unseen_cells_of_a_history_mean_is_the_models_to_say(model):
    parts = [hs.data.split_rows(stars(), 8, 0.3, random_state=0, unseen=unseen) for unseen in ("missing", "zero")]
    first, second = (
        hs.evaluate({"m": model}, train, test, history=history, k=5).to_dict()["models"][0]
        for train, history, test in parts
    )
    assert first["scores"][0]["metric"] == "ndcg"
    assert first["scores"] == second["scores"]

"""RankOneNMF: forms of the same data, weights, folding in, completing, files, ends of runs, refusals."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import halfseen
from halfseen import RankOneNMF, Status, observe, rankone
from halfseen.errors import DataError
from halfseen.rankone import Step, exact_solution
from tests.estimators.models import refused
from tests.rank_one import oracle
from tests.rank_one.cases import (
    NAN,
    blocks,
    chain,
    counts,
    factors,
    fitted,
    gammas,
    grid_like,
    holed,
    product,
    weights_for,
)

METHODS = ["exact", "a1gm", "em"]
every_method = pytest.mark.parametrize("method", METHODS)


def table(share=0.15):
    """Counts with zeros and holes, a row and a column without a hole."""
    X = holed(counts((9, 7), 1, 4.0), share)
    X[4], X[:, 3] = np.arange(1.0, 8.0), np.arange(1.0, 10.0)
    return X


def stored(X):
    cells = np.nonzero(~np.isnan(X))
    return sparse.coo_array((X[cells], cells), X.shape)


def long_lines(X):
    rows, columns = np.nonzero(~np.isnan(X))
    return {"user": [f"u{i}" for i in rows], "item": [f"i{j}" for j in columns], "rating": X[rows, columns].tolist()}


def wide_lines(X):
    return {f"i{j}": [None if np.isnan(value) else value for value in column] for j, column in enumerate(X.T.tolist())}


def masked(X, order="C"):
    filled = np.where(np.isnan(X), X.dtype.type(-9.0), X)
    return np.ma.MaskedArray(np.asarray(filled, order=order), np.asarray(np.isnan(X), order=order))


SAME_DATA = {
    "column by column": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "read only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "other byte order": lambda X: X.astype(">f8"),
    "list of lists": lambda X: X.tolist(),
    "objects with None": lambda X: np.where(np.isnan(X), None, X.astype(object)),
    "masked": masked,
    "csr": lambda X: stored(X).tocsr(),
    "csc": lambda X: stored(X).tocsc(),
    "stored NaN": lambda X: sparse.coo_array((X.ravel(), np.indices(X.shape).reshape(2, -1)), X.shape),
    "observed": observe,
    "pandas wide": lambda X: pd.DataFrame(X, columns=[f"i{j}" for j in range(X.shape[1])]),
    "pandas without names": pd.DataFrame,
    "pandas long": lambda X: pd.DataFrame(long_lines(X)),
    "polars wide": lambda X: pl.DataFrame(wide_lines(X)),
    "polars long": lambda X: pl.DataFrame(long_lines(X)),
    "arrow wide": lambda X: pa.table(wide_lines(X)),
}


def in_order(model, X):
    """W and H with rows and columns as X has them: a long table numbers them as they appear."""
    W, H = model.W_, model.H_
    if model.row_labels_ is not None:
        W = W[[model.row_labels_.tolist().index(f"u{i}") for i in range(X.shape[0])]]
    if model.column_labels_ is not None:
        H = H[[model.column_labels_.tolist().index(f"i{j}") for j in range(X.shape[1])]]
    return W, H


@pytest.mark.parametrize("share", [0.15, 0.6], ids=["holes listed", "seen listed"])
@pytest.mark.parametrize("way", SAME_DATA.values(), ids=SAME_DATA)
def test_every_form_of_the_same_data(way, share):
    X = table(share)
    plain = fitted(X)
    model = fitted(way(X))
    for found, expected in zip(in_order(model, X), (plain.W_, plain.H_), strict=True):
        assert_allclose(found, expected, rtol=1e-9)
        assert found.dtype == np.float64
    assert model.n_features_in_ == 7


@pytest.mark.parametrize("way", ["column by column", "csr", "observed", "pandas wide", "polars long"])
@pytest.mark.parametrize("method", ["a1gm", "em"])
def test_every_form_with_every_method(way, method):
    X = table()
    plain, model = fitted(X, method), fitted(SAME_DATA[way](X), method)
    for found, expected in zip(in_order(model, X), (plain.W_, plain.H_), strict=True):
        assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_])
def test_whole_numbers(dtype):
    X = np.minimum(counts((9, 7), 2), 1.0 if dtype == np.bool_ else 100.0)
    model = fitted(X.astype(dtype))
    assert_allclose(product(model), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-13)


@every_method
@pytest.mark.parametrize("way", ["column by column", "csr", "masked", "observed", "pandas wide"])
def test_single_precision_is_kept(way, method):
    X = table()
    model = fitted(SAME_DATA[way](X.astype(np.float32)), method)
    assert model.W_.dtype == model.H_.dtype == np.float32
    assert_allclose(product(model), product(fitted(X, method)), rtol=1e-6)


def test_a_path(tmp_path):
    X = table()
    pd.DataFrame(long_lines(X)).to_csv(tmp_path / "cells.csv", index=False)
    model = fitted(tmp_path / "cells.csv")
    for found, expected in zip(in_order(model, X), (fitted(X).W_, fitted(X).H_), strict=True):
        assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("way", ["dense", "csr", "long", "observed"])
def test_unseen_zeros_are_zeros(way):
    X = counts((9, 7), 3, 0.8)
    X[:, 2], X[5] = 0.0, 0.0
    nonzero = np.nonzero(X)
    cells = sparse.coo_array((X[nonzero], nonzero), X.shape)
    data = {"dense": X, "csr": cells.tocsr(), "observed": observe(cells, unseen="zero")}.get(way)
    if way == "long":
        X = X[np.ix_(X.any(1), X.any(0))]
        lines = np.nonzero(X)
        data = pd.DataFrame({"user": lines[0], "item": lines[1], "rating": X[lines]})
    model = fitted(data, unseen="zero")
    order = (
        np.argsort(model.row_labels_) if way == "long" else slice(None),
        (np.argsort(model.column_labels_) if way == "long" else slice(None)),
    )
    assert_allclose(product(model)[order[0]][:, order[1]], product(fitted(X)), rtol=1e-12, atol=1e-15)
    assert model.n_parts_ == 1


def test_holes_of_a_dense_array_are_zeros_if_unseen_cells_are():
    X = table()
    assert_allclose(product(fitted(X, unseen="zero")), product(fitted(np.nan_to_num(X))), rtol=1e-12)


def test_unseen_zeros_with_weights():
    X, C = counts((9, 7), 4, 1.0), weights_for(np.zeros((9, 7)))
    C = np.where(X > 0, C, 1.0)
    model = fitted(X, cell_weight=C, unseen="zero")
    assert_allclose(product(model), product(fitted(X, cell_weight=C)), rtol=1e-9)
    cells = sparse.csr_array(X)
    weights = sparse.csr_array(np.where(X > 0, C, 0.0))
    assert_allclose(product(fitted(cells, cell_weight=weights, unseen="zero")), product(model), rtol=1e-9)


# Weights


@pytest.mark.parametrize("way", ["dense", "csr", "list", "long", "observed", "masked"])
def test_every_form_of_weights(way):
    X = table()
    C = weights_for(X)
    expected = np.outer(*oracle.best(X, C))
    weight = C[~np.isnan(X)]
    if way == "dense":
        model = fitted(X, cell_weight=C)
    elif way == "csr":
        model = fitted(stored(X).tocsr(), cell_weight=stored(np.where(np.isnan(X), NAN, C)).tocsr())
    elif way == "list":
        model = fitted(stored(X), cell_weight=weight)
    elif way == "long":
        frame = pd.DataFrame(long_lines(X) | {"trust": weight})
        model = fitted(frame, cell_weight="trust")
        assert list(model.row_labels_) == [f"u{i}" for i in range(9)]
        expected = expected[:, [int(label[1:]) for label in model.column_labels_]]
    elif way == "masked":
        model = fitted(masked(X), cell_weight=C)
    else:
        model = fitted(observe(X, cell_weight=C))
    assert_allclose(product(model), expected, rtol=1e-9)


@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_a_cell_seen_twice_weighs_two(unseen):
    for seed in range(5):
        X = counts((6, 5), seed, 3.0) + 1.0
        X = X if unseen == "missing" and seed % 2 else holed(X, 0.3, seed)
        rows, columns = np.nonzero(~np.isnan(X))
        twice = np.random.default_rng(seed).random(rows.size) < 0.4
        again = np.append(rows, rows[twice]), np.append(columns, columns[twice])
        repeated = observe(sparse.coo_array((X[again], again), X.shape), duplicates="keep", unseen=unseen)
        C = np.ones(X.shape)
        C[rows[twice], columns[twice]] = 2.0
        truth = np.outer(*oracle.best(X if unseen == "missing" else np.nan_to_num(X), C))
        assert_allclose(product(fitted(repeated, unseen=unseen)), truth, rtol=1e-9)


def test_two_values_of_one_cell():
    cells = sparse.coo_array(([1.0, 5.0, 2.0, 3.0, 4.0], ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1])), (2, 2))
    model = fitted(observe(cells, duplicates="keep"))
    X, C = np.array([[3.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 1.0], [1.0, 1.0]])
    assert_allclose(product(model), np.outer(*oracle.best(X, C)), rtol=1e-9)
    with refused(DataError, where="row 0, column 0"):
        fitted(cells)


# Folding in, predicting, completing, scoring


@pytest.mark.parametrize("share", [0.0, 0.15, 0.6])
def test_training_rows_fold_in_to_their_factors(share):
    X = table(share)
    model = fitted(X)
    assert_allclose(model.transform(X), model.W_, rtol=1e-9)
    assert_allclose(model.transform(np.asfortranarray(X)), model.W_, rtol=1e-9)
    assert_allclose(model.transform(stored(X)), model.W_, rtol=1e-9)
    assert_allclose(fitted(X).fit_transform(X), model.W_, rtol=1e-9)


def test_weighted_rows_fold_in_to_their_factors():
    X = table()
    C = weights_for(X)
    model = fitted(X, cell_weight=C)
    assert_allclose(model.transform(X, cell_weight=C), model.W_, rtol=1e-9)
    assert np.abs(model.transform(X) / model.W_ - 1).max() > 1e-3


@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_new_rows_in_closed_form(unseen):
    model = fitted(table(), unseen=unseen)
    h = model.H_[:, 0]
    new = holed(counts((5, 7), 9), 0.4)
    new[3] = NAN
    seen = ~np.isnan(new)
    with np.errstate(invalid="ignore"):
        expected = np.nansum(new, 1) / ((seen * h).sum(1) if unseen == "missing" else h.sum())
    if unseen == "missing":
        expected[3] = model.W_.mean()
    for data in (new, np.asfortranarray(new), stored(new).tocsr(), observe(new, unseen=unseen)):
        assert_allclose(model.transform(data)[:, 0], expected, rtol=1e-12)
    for row in range(5):
        assert_allclose(model.transform(new[[row]])[0], expected[row], rtol=1e-12)


def test_columns_that_were_always_0_tell_nothing_of_a_new_row():
    X = gammas((5, 4))
    X[:, 2] = 0.0
    model = fitted(X)
    new = np.full((2, 4), NAN)
    new[0, 2], new[1, 2] = 3.0, 0.0
    W = model.transform(new)
    assert W[0] == pytest.approx(model.W_.mean())
    assert W[1] in (0.0, pytest.approx(model.W_.mean()))


@every_method
@pytest.mark.parametrize("way", ["plain", "column by column", "csr", "observed", "pandas wide", "pandas without names",
                                 "polars wide", "masked", "objects with None"])  # fmt: skip
def test_what_was_fitted_is_completed_as_it_is_predicted(method, way):
    X = table()
    data = X if way == "plain" else SAME_DATA[way](X)
    model = fitted(data, method)
    filled = np.asarray(model.complete(data), dtype=float)
    assert_allclose(filled, np.where(np.isnan(X), product(model), X), rtol=1e-12)
    rows, columns = np.nonzero(np.isnan(X))
    names = columns if model.column_labels_ is None else [f"i{j}" for j in columns]
    assert_allclose(model.predict(rows, names), filled[rows, columns], rtol=1e-12)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


@every_method
def test_data_in_another_form_are_completed_alike(method):
    """Fitted row by row, completed from any other kind of table of the same cells."""
    X = table()
    model = fitted(X, method)
    expected = np.where(np.isnan(X), product(model), X)
    for way in ("column by column", "csr", "observed", "masked", "list of lists"):
        assert_allclose(model.complete(SAME_DATA[way](X)), expected, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_other_holes_with_the_same_sums_are_another_table(weighted):
    """All sums and all numbers of seen cells agree, and yet the rows are not those of the fit."""
    X = np.array([[NAN, 2.0, 3.0], [2.0, NAN, 3.0], [4.0, 1.0, 1.0]])
    other = np.array([[2.0, NAN, 3.0], [NAN, 2.0, 3.0], [4.0, 1.0, 1.0]])
    model = fitted(X, cell_weight=np.ones((3, 3)) if weighted else None)
    assert_allclose(model.complete(X), np.where(np.isnan(X), product(model), X), rtol=1e-12)
    expected = np.where(np.isnan(other), model.transform(other) @ model.H_.T, other)
    assert_allclose(model.complete(other), expected, rtol=1e-9)
    assert np.abs(expected[0, 1] / product(model)[0, 1] - 1) > 0.1


@every_method
def test_nearly_the_same_table_is_another_one(method):
    X = table()
    model = fitted(X, method)
    other = X * (1 + 1e-6)
    expected = np.where(np.isnan(X), model.transform(other) @ model.H_.T, other)
    assert_allclose(model.complete(other), expected, rtol=1e-12)


def test_long_tables_are_completed_with_a_line_for_every_pair():
    X = table()
    for frame in (pd.DataFrame(long_lines(X)), pl.DataFrame(long_lines(X))):
        model = fitted(frame)
        filled = model.complete(frame)
        assert type(filled) is type(frame)
        assert len(filled) == X.size
        for user, item, rating in zip(filled["user"], filled["item"], filled["rating"], strict=True):
            i, j = int(user[1:]), int(item[1:])
            given = X[i, j]
            assert rating == pytest.approx(model.predict(user, item) if np.isnan(given) else given, rel=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
@every_method
def test_new_rows_are_completed_by_folding_them_in(method, order):
    model = fitted(table(), method)
    new = holed(counts((4, 7), 11) + 1.0, 0.4)
    new[2] = NAN
    expected = np.where(np.isnan(new), model.transform(new) @ model.H_.T, new)
    assert_allclose(model.complete(np.asarray(new, order=order)), expected, rtol=1e-12)
    assert_allclose(model.predict(new), model.transform(new) @ model.H_.T, rtol=1e-12)
    square = holed(counts((7, 7), 12) + 1.0, 0.4)
    expected = np.where(np.isnan(square), model.transform(square) @ model.H_.T, square)
    assert_allclose(model.complete(np.asarray(square, order=order)), expected, rtol=1e-12)


@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_the_score_is_minus_the_divergence_a_cell(unseen):
    X = table()
    model = fitted(X, unseen=unseen)
    Y = X if unseen == "missing" else np.nan_to_num(X)
    cost = oracle.cost(Y, *factors(model))
    assert model.score(X) == pytest.approx(-cost / (~np.isnan(Y)).sum(), rel=1e-9)


def test_a_dictionary_of_labels_is_a_row():
    model = fitted(pd.DataFrame(long_lines(table())))
    _, H = in_order(model, table())
    assert_allclose(model.transform([{"i0": 2.0, "i3": 5.0}]), [[7.0 / (H[0, 0] + H[3, 0])]], rtol=1e-12)


# Recommending


@pytest.mark.parametrize("share", [0.2, 0.7], ids=["holes listed", "seen listed"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_was_seen_is_not_recommended(share, order, tmp_path):
    X = table(share)
    model = fitted(np.asarray(X, order=order))
    model.save(tmp_path / "model")
    for one in (model, halfseen.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for row in range(9):
            ids, scores = one.recommend([row], n=7)
            holes = np.flatnonzero(np.isnan(X[row]))
            best = holes[np.argsort(-model.H_[holes, 0], kind="stable")]
            assert_array_equal(ids[0], best)
            assert_allclose(scores[0], model.W_[row, 0] * model.H_[best, 0], rtol=1e-12)
        ids, _ = one.recommend([4, 0], n=3)  # row 4 has no hole
        assert (ids[0] == -1).all()
        ids, _ = one.recommend([4], n=7, exclude_seen=False)
        assert_array_equal(ids[0], np.argsort(-model.H_[:, 0], kind="stable"))


def test_a_zero_that_holds_no_parts_together_was_seen_all_the_same():
    """The fit leaves it out, for it is met in a limit only."""
    X = np.array([[1.0, 0.0, NAN], [NAN, 1.0, 2.0]])
    for data in (X, np.asfortranarray(X), stored(X)):
        model = fitted(data)
        assert model.n_parts_ == 2
        assert_array_equal(model.recommend([0], n=3).ids, [[2]])
        assert_array_equal(model.recommend([1], n=3).ids, [[0]])
        assert_allclose(model.complete(data), np.where(np.isnan(X), product(model), X), rtol=1e-12)


def test_recommendations_for_new_rows():
    model = fitted(table())
    new = np.full((1, 7), NAN)
    new[0, [1, 2]] = 4.0
    ids, scores = model.recommend(new, n=2)
    others = np.setdiff1d(np.arange(7), [1, 2])
    assert_array_equal(ids[0], others[np.argsort(-model.H_[others, 0])][:2])
    assert_allclose(scores[0], model.transform(new)[0, 0] * model.H_[ids[0], 0], rtol=1e-12)


# The end of a run


def test_max_iter_is_warned_of():
    X = chain(12)
    with pytest.warns(ConvergenceWarning, match="RankOneNMF: Stopped at max_iter") as told:
        model = RankOneNMF(max_iter=3).fit(X)
    assert told[0].filename == __file__
    assert (model.status_, model.n_iter_, len(model.trace_["objective"])) == (Status.MAX_ITER, 3, 3)


@pytest.mark.filterwarnings("error")
def test_a_run_that_ends_at_max_iter_by_itself_has_converged():
    X = holed(gammas((9, 7)), 0.1)
    needed = RankOneNMF().fit(X).n_iter_
    assert needed > 2
    model = RankOneNMF(max_iter=needed).fit(X)
    assert (model.status_, model.n_iter_) == (Status.CONVERGED, needed)
    assert RankOneNMF(max_iter=1).fit(gammas((9, 7))).status_ is Status.CONVERGED
    assert RankOneNMF("a1gm", max_iter=1).fit(gammas((9, 7))).status_ is Status.CONVERGED


def test_ctrl_c_keeps_the_fit_so_far(monkeypatch):
    X = chain(12)
    sweeps = []
    sweep = exact_solution.sweep

    def interrupted(*args, **kwargs):
        sweeps.append(1)
        if len(sweeps) == 5:
            raise KeyboardInterrupt
        return sweep(*args, **kwargs)

    monkeypatch.setattr(exact_solution, "sweep", interrupted)
    model = RankOneNMF()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == len(model.trace_["objective"]) == len(model.trace_["seconds"]) == 4
    four = fitted(X, max_iter=4)
    assert_array_equal(model.W_, four.W_)
    assert_allclose(model.complete(X), np.where(np.isnan(X), product(four), X), rtol=1e-12)


def test_a_run_that_leaves_all_numbers_keeps_its_last_good_step(monkeypatch):
    X = holed(gammas((9, 7)), 0.2)

    def steps(parts, *_):
        good = tuple(np.ones(sums.size) for sums in parts.marginals.sums)
        yield Step(good, 5.0, 1.0)
        yield Step((good[0] * NAN, good[1]), NAN, 1.0)
        pytest.fail("it went on")

    monkeypatch.setattr(rankone, "exact", steps)
    with pytest.warns(ConvergenceWarning, match="RankOneNMF: ") as told:
        model = RankOneNMF().fit(X)
    assert told[0].filename == __file__
    assert (model.status_, model.n_iter_) == (Status.NOT_FINITE, 1)
    assert np.isfinite(product(model)).all()
    assert model.W_.sum() == pytest.approx(model.H_.sum())


def test_factors_that_are_not_finite_are_warned_of(monkeypatch):
    monkeypatch.setattr(rankone, "rescale", lambda *_: (np.full(3, np.inf), np.ones(2)))
    with pytest.warns(ConvergenceWarning):
        assert RankOneNMF().fit(gammas((3, 2))).status_ is Status.NOT_FINITE


def test_the_trace_has_seconds_that_grow():
    model = fitted(chain(12))
    assert len(model.trace_["seconds"]) == model.n_iter_
    assert (np.diff(model.trace_["seconds"]) >= 0).all()
    assert model.trace_["seconds"][0] > 0


# scikit-learn's company, files


@every_method
def test_a_file_holds_all_of_it(method, tmp_path):
    X = blocks(table(), gammas((2, 2))) if method != "a1gm" else table()
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(len(X))], columns=[f"c{j}" for j in range(X.shape[1])])
    for data in (X, np.asfortranarray(X), frame, stored(X)):
        model = fitted(data, method)
        model.save(tmp_path / "model")
        back = halfseen.load(tmp_path / "model")
        assert back.get_params() == model.get_params()
        assert (back.n_parts_, back.n_iter_, back.status_) == (model.n_parts_, model.n_iter_, model.status_)
        assert back.n_parts_ == (2 if method != "a1gm" else 1)
        arrays = [(*one.parts_, *one.axis_factors_, one.W_, one.H_) for one in (model, back)]
        for mine, theirs in zip(*arrays, strict=True):
            assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
        assert hasattr(back, "increase_rate_") == (method == "a1gm")
        if method == "a1gm":
            assert back.increase_rate_ == model.increase_rate_ > 1
        assert_array_equal(np.asarray(back.complete(data)), np.asarray(model.complete(data)))
        assert_array_equal(back.transform(data), model.transform(data))
        back.save(tmp_path / "again")
        assert halfseen.load(tmp_path / "again").n_parts_ == model.n_parts_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back.fit(X)  # what was loaded can be fitted anew
    assert_allclose(product(back), product(model), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_a_search_over_methods_and_a_pipeline():
    X = grid_like(30, 8, [3, 17], [2, 5])
    search = GridSearchCV(RankOneNMF(), {"method": METHODS, "tol": [1e-6, 1e-10]}, cv=3).fit(X)
    assert set(search.cv_results_["param_method"]) == set(METHODS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    pipeline = make_pipeline(RankOneNMF(), LinearRegression())
    target = fitted(X).W_[:, 0] * 3.0 + 1.0
    assert pipeline.fit(X, target).score(X, target) > 1 - 1e-9
    assert list(pipeline[:-1].get_feature_names_out()) == ["rankonenmf0"]


# Odd tables


@every_method
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_a_row_a_column_a_cell(shape, order, method):
    X = np.asarray(gammas(shape), order=order)
    assert_allclose(product(fitted(X, method)), X, rtol=1e-12)
    assert_allclose(product(fitted(np.zeros(shape), method)), 0.0)
    if max(shape) == 5 and method != "a1gm":
        X.flat[2] = NAN
        model = fitted(X, method)
        assert_allclose(product(model)[~np.isnan(X)], X[~np.isnan(X)], rtol=1e-9)
        blank = model.W_ if shape[0] == 5 else model.H_
        assert blank[2] == pytest.approx(np.delete(blank, 2).mean(), rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "em"])
def test_nothing_but_zeros_and_holes(method):
    X = holed(np.zeros((5, 4)), 0.5)
    X[2] = NAN
    model = fitted(X, method)
    assert_array_equal(product(model), 0.0)
    assert (model.n_parts_, model.status_) == (0, Status.CONVERGED)
    assert_array_equal(np.concatenate(model.parts_), -1)
    assert_array_equal(model.complete(X), np.where(np.isnan(X), 0.0, X))


@every_method
@pytest.mark.parametrize("order", ["C", "F"])
def test_lines_of_zeros_are_met_exactly(order, method):
    X = gammas((6, 5))
    X[3], X[:, 1] = 0.0, 0.0
    X[2, 4] = NAN
    model = fitted(np.asarray(X, order=order), method)
    assert model.W_[3] == model.H_[1] == 0
    assert_array_equal(model.parts_[0], [0, 0, 0, -1, 0, 0])
    assert_array_equal(model.parts_[1], [0, -1, 0, 0, 0])
    assert_allclose(model.transform(X), model.W_, rtol=1e-9)


@every_method
@pytest.mark.parametrize("order", ["C", "F"])
def test_invalid_values_are_refused_with_their_place(order, method):
    for value in (-2.0, np.inf, -np.inf):
        X = table()
        X[3, 1] = value
        for data in (np.asarray(X, order=order), stored(X)):
            with refused(DataError, found=f"{value:g}", where="row 3, column 1"):
                RankOneNMF(method).fit(data)
    with refused(DataError, found="'a'", where="row 0, column 0"):
        RankOneNMF(method).fit([["a", "b"], ["c", "d"]])
    for nothing in (np.full((3, 4), NAN, order=order), np.empty((0, 4)), np.empty((4, 0)), np.ones(3), None):
        with refused(DataError):
            RankOneNMF(method).fit(nothing)
    with refused(DataError, found="inf"):  # the sum of a row
        RankOneNMF(method).fit(np.full((2, 2), 1e308, order=order))


def test_new_rows_that_do_not_fit_are_refused():
    model = fitted(table())
    for call in (model.transform, model.complete):
        with refused(DataError, found="-1", where="row 0, column 0"):
            call(-np.ones((2, 7)))
    with refused(DataError, "X", found="sparse"):
        model.predict(stored(table()))


def test_the_data_are_left_alone():
    X = table()
    kept = X.copy()
    for data in (X, np.asfortranarray(X), masked(X)):
        model = fitted(data)
        model.complete(data)
        model.transform(data)
        assert_array_equal(np.asarray(np.ma.filled(data, NAN)), kept)
    cells = stored(X).tocsr()
    weights = np.ones(cells.nnz)
    model = fitted(cells, cell_weight=weights)
    before = model.recommend([0]).ids
    expected = model.complete(stored(X).tocsr())
    cells.data[:], cells.indices[:], weights[:] = 0.0, 0, 5.0  # the model keeps what it knows
    assert_array_equal(model.recommend([0]).ids, before)
    assert_allclose(model.complete(stored(X).tocsr()), expected, rtol=1e-9)

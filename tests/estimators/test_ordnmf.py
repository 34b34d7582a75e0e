"""OrdNMF against the paper's algorithm written densely, and what a user does with it."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import halfseen
from halfseen import Observed, OrdNMF, Status, observe
from halfseen.errors import DataError, ParameterError
from tests.ordinal import noises, oracle

U1 = Path(os.environ.get("HALFSEEN_DATA", "")) / "movielens-100k"


def levels_matrix(n=30, m=20, highest=5, share=0.4, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.integers(1, highest + 1, (n, m)) * (rng.random((n, m)) < share)
    Y[4], Y[:, 7] = 0, 0
    return Y


def start(n, m, k=4, seed=1):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, 1.0, (n, k)), rng.gamma(1.0, 1.0, (m, k))


def with_holes(Y, share=0.3, seed=2):
    return np.where(np.random.default_rng(seed).random(Y.shape) < share, np.nan, Y)


def assert_like(model, record):
    assert_allclose(model.W_, record.w.mean, rtol=1e-9)
    assert_allclose(model.H_, record.h.mean, rtol=1e-9)
    assert_allclose(model.W_shape_, record.w.shape, rtol=1e-9)
    assert_allclose(model.H_rate_, record.h.rate, rtol=1e-9)
    assert_allclose(model.thresholds_, record.family.thresholds, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-11)


@pytest.mark.parametrize("kind", ["dense", "sparse", "long"])
def test_fifty_iterations_are_those_of_algorithm_1(kind):
    Y = levels_matrix()
    W, H = start(*Y.shape)
    data = {"dense": Y, "sparse": sparse.csr_array(Y.astype(float)), "long": None}[kind]
    if kind == "long":
        data = Observed.from_cells(*np.nonzero(Y), Y[np.nonzero(Y)].astype(float), Y.shape, unseen="zero")
    model = OrdNMF(4, init=(W, H), accelerate=False, max_iter=50, tol=0).fit(data)
    *_, record = oracle.ordnmf(Y, W, H, 50)
    assert model.n_iter_ == 50
    assert_like(model, record)
    assert np.all(np.diff(model.trace_["objective"]) > -1e-9 * abs(model.trace_["objective"][-1]))


def test_missing_cells_say_nothing_and_the_lowest_level_seen_is_the_lowest():
    Y = with_holes(levels_matrix() + 1.0)  # stars 1..6
    Y[4], Y[:, 7] = 1.0, 1.0
    W, H = start(*Y.shape)
    model = OrdNMF(4, init=(W, H), accelerate=False, max_iter=50, tol=0, unseen="missing").fit(Y)
    *_, record = oracle.ordnmf(Y - 1.0, W, H, 50, unseen="missing")
    assert_like(model, record)
    assert_array_equal(model.levels_, [1, 2, 3, 4, 5, 6])


def test_thresholds_that_are_given_stay():
    Y = levels_matrix(highest=3)
    W, H = start(*Y.shape)
    model = OrdNMF(4, thresholds=[1.0, 2.0, 5.0], init=(W, H), accelerate=False, max_iter=20, tol=0).fit(Y)
    *_, record = oracle.ordnmf(Y, W, H, 20, thresholds=[1.0, 2.0, 5.0])
    assert_like(model, record)
    assert_allclose(model.thresholds_, [1.0, 2.0, 5.0], rtol=1e-15)


def test_a_weight_of_two_is_a_cell_seen_twice():
    Y = with_holes(levels_matrix(highest=3)).astype(float)
    Y[4], Y[:, 7] = 1.0, 1.0
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 3, Y.shape)
    rows, columns = np.nonzero(~np.isnan(Y))
    times = weight[rows, columns]
    twice = Observed.from_cells(
        np.repeat(rows, times),
        np.repeat(columns, times),
        np.repeat(Y[rows, columns], times),
        Y.shape,
        duplicates="keep",
    )
    W, H = start(*Y.shape)
    ask = {"init": (W, H), "max_iter": 20, "tol": 0, "unseen": "missing"}
    once = OrdNMF(4, **ask).fit(Y, cell_weight=weight)
    also = OrdNMF(4, **ask).fit(twice)
    assert_allclose(once.W_, also.W_, rtol=1e-10)
    assert_allclose(once.thresholds_, also.thresholds_, rtol=1e-10)


def test_levels_may_be_any_numbers_and_are_kept():
    Y = levels_matrix(highest=4)
    stars = np.array([0.0, 0.5, 2.5, 4.0, 5.0])
    W, H = start(*Y.shape)
    plain = OrdNMF(4, init=(W, H), max_iter=10, tol=0).fit(Y)
    half = OrdNMF(4, init=(W, H), max_iter=10, tol=0).fit(stars[Y])
    assert_array_equal(half.W_, plain.W_)
    assert_array_equal(half.levels_, stars)
    rows, columns = np.array([0, 3, 9]), np.array([1, 5, 2])
    probabilities = half.predict_proba(rows, columns)
    assert_allclose(half.predict(rows, columns), probabilities @ stars, rtol=1e-12)
    assert set(half.predict_level(rows, columns)) <= set(stars)
    assert_allclose(half.transform(stars[Y])[:3], plain.transform(Y)[:3], rtol=1e-12)


def test_probabilities_are_those_of_the_model():
    Y = levels_matrix()
    model = OrdNMF(4, random_state=0, max_iter=20, tol=0).fit(Y)
    x = model.W_ @ model.H_.T
    up_to = np.exp(-x[..., None] / np.append(model.thresholds_, np.inf))
    everything = model.predict_proba(*np.indices(Y.shape).reshape(2, -1)).reshape(*Y.shape, 6)
    assert_allclose(everything.cumsum(axis=-1), up_to, rtol=1e-10)
    assert_allclose(everything.sum(axis=-1), 1.0, rtol=1e-12)
    median = np.array([[np.argmax(cell >= 0.5) for cell in row] for row in up_to])
    assert_array_equal(model.predict_level(*np.indices(Y.shape).reshape(2, -1)), median.reshape(-1))
    assert model.predict_proba(0, 1).shape == (6,)
    assert model.predict_proba(Y[:2].astype(float)).shape == (2, 20, 6)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_new_rows_reach_the_fixed_point_of_the_fit_with_h_fixed(unseen):
    """That of the oracle's ascent from the same start, with q(H) and the thresholds of the fit."""
    Y, new = levels_matrix(), levels_matrix(5, 20, seed=9)
    model = OrdNMF(3, random_state=0, max_iter=200, tol=0, unseen=unseen).fit(Y)
    h = oracle.Gamma(model.H_shape_, model.H_rate_)
    family = oracle.Ordinal(-np.diff(1 / model.thresholds_, append=0.0))
    record = oracle.Record(None, h, None, None, family, None)
    start = np.repeat(model.W_.mean(axis=0)[None], 5, axis=0)
    expected = oracle.fold_in(new, record, start, 4000, unseen=unseen)[-1].w.mean
    folded = model.set_params(max_iter=4000, tol=0).transform(new)
    assert_allclose(folded, expected, rtol=1e-6, atol=1e-9 * expected.max())
    for row, alone in zip(folded, new, strict=True):
        assert_allclose(model.transform(alone[None])[0], row, rtol=1e-9)


def test_a_saved_model_says_the_same(tmp_path):
    frame = pd.DataFrame({"user": list("aabbcc"), "item": list("xyxzyz"), "rating": [1.0, 5.0, 3.0, 5.0, 1.0, 3.0]})
    model = OrdNMF(2, random_state=0).fit(frame)
    model.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    assert_array_equal(again.predict_proba(["a", "b"], "z"), model.predict_proba(["a", "b"], "z"))
    assert_array_equal(again.thresholds_, model.thresholds_)
    assert_array_equal(again.levels_, [0.0, 1.0, 3.0, 5.0])
    assert_array_equal(again.transform(frame), model.transform(frame))
    assert again.recommend(["a"], n=1).ids[0, 0] == model.recommend(["a"], n=1).ids[0, 0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_nothing(n_jobs):
    Y = levels_matrix(300, 250, share=0.9)
    ask = {"random_state": 0, "max_iter": 5, "tol": 0}
    assert_array_equal(OrdNMF(3, n_jobs=n_jobs, **ask).fit(Y).W_, OrdNMF(3, n_jobs=3, **ask).fit(Y).W_)


@pytest.mark.parametrize(
    ("data", "ask", "sentence"),
    [
        (np.random.default_rng(0).random((30, 20)), {}, "at most 100 ordered levels. Found 600 .* Quantizer"),
        (np.ones((3, 4)), {"unseen": "missing"}, "two levels or more. Found only 1."),
        (
            np.array([[1.0, -2.0], [0.0, 3.0]]),
            {},
            "Negative values in data passed to OrdNMF.*Found -2 at row 0, column 1",
        ),
        (np.array([[1.0, 2.0], [0.0, 3.0]]), {"levels": [1, 2]}, "levels that were given: 0, 1, 2. Found 3 at row 1"),
        (np.array([[1.0, 2.0], [0.0, 2.0]]), {"levels": [1, 2, 3]}, "Found none at level 3. Leave it out"),
    ],
)
def test_data_that_are_not_levels_are_refused(data, ask, sentence):
    with pytest.raises(DataError, match=sentence):
        OrdNMF(2, **ask).fit(data)


def test_a_level_that_was_not_fitted_is_refused():
    model = OrdNMF(2, random_state=0, max_iter=5, tol=0).fit(np.array([[1.0, 2.0, 0.0], [0.0, 2.0, 1.0]]))
    with pytest.raises(DataError, match=r"levels that were fitted: 0, 1, 2\. Found 5 at row 0, column 1"):
        model.transform(np.array([[1.0, 5.0, 0.0]]))


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        ({"thresholds": [2.0, 1.0]}, "thresholds must be None or rising numbers above 0"),
        ({"thresholds": [0.0, 1.0]}, "thresholds must be None or rising numbers above 0"),
        ({"thresholds": [1.0]}, "thresholds must stand between the 3 levels: 2 of them. Found 1."),
        ({"levels": [1, 1]}, "levels must be None, rising numbers or different texts"),
        ({"levels": "many"}, "levels must be None, rising numbers or different texts"),
    ],
)
def test_parameters_that_can_not_be(ask, sentence):
    with pytest.raises(ParameterError, match=sentence):
        OrdNMF(2, **ask).fit(np.array([[1.0, 2.0, 0.0], [0.0, 2.0, 1.0]]))


def test_a_binary_matrix_has_one_threshold():
    Y = levels_matrix(highest=1)
    model = OrdNMF(3, random_state=0, max_iter=300).fit(Y)
    assert model.status_ is Status.CONVERGED
    assert model.thresholds_.shape == (1,)


@pytest.mark.parametrize("seed", range(5))
def test_the_toy_example_gives_its_thresholds_back(seed):
    """Within a tenth; divided by the first, because thresholds and factors share a free scale."""
    truth = np.array([1.0, 5.0, 10.0, 20.0, 50.0])
    Y, *_ = noises.simulate(100, 200, 3, truth, seed)
    model = OrdNMF(3, random_state=seed).fit(Y)
    assert model.status_ is Status.CONVERGED
    assert_allclose(model.thresholds_ / model.thresholds_[0], truth, rtol=0.1)


@pytest.mark.skipif(not U1.exists(), reason="MovieLens 100K is not in the data folder")
def test_movielens_100k_comes_out_as_it_was_found():
    """204 iterations, an evidence bound of -333,716, and NDCG@100 .5355 / .5271 / .4922 / .4135: an independent run."""
    cells = {name: np.loadtxt(U1 / f"u1.{name}", dtype=int) for name in ("base", "test")}
    train, test = (
        Observed.from_cells(one[:, 0] - 1, one[:, 1] - 1, one[:, 2].astype(float), (943, 1682), unseen="zero")
        for one in cells.values()
    )
    random = np.random.RandomState(0)
    start = random.gamma(1.0, 1.0, (943, 50)), random.gamma(1.0, 1.0, (1682, 50))
    model = OrdNMF(50, init=start, accelerate=False).fit(train)
    assert model.n_iter_ == 204
    assert model.trace_["objective"][-1] == pytest.approx(-333715.94, abs=0.01)
    found = halfseen.metrics.ndcg_at_k(model, train, test, k=100, relevant=[1, 3, 4, 5])
    assert_allclose(found, [0.5355, 0.5271, 0.4922, 0.4135], atol=6e-5)
    assert observe(train, unseen=None) is train

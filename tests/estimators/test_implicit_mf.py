"""ImplicitMF against its loss written out, and each of its half-steps against dense normal equations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import halfseen as hs
from halfseen import ImplicitMF, Observed
from halfseen.datasets.synthetic import skewed_cells
from halfseen.errors import DataError, ParameterError
from halfseen.model import Status
from tests.estimators.models import refused


def plays(n=17, m=12, seed=0, share=0.3):
    """Counts, most of them unseen, a row and a column of nothing, a row and a column of one cell."""
    rng = np.random.default_rng(seed)
    X = rng.geometric(0.3, (n, m)) * (rng.random((n, m)) < share)
    X[3], X[:, 5], X[4], X[:, 6] = 0, 0, 0, 0
    X[4, 2], X[8, 6] = 3, 2
    return X.astype(float)


CONFIDENCES = {"values": lambda X: X, "log": np.log1p, "ones": lambda X: (X > 0) * 1.0, 0.5: np.sqrt}


def weights_of_cells(C, unseen_weight):
    """The weight of all cells of each row, and of each column."""
    return C.sum(axis=1) + unseen_weight * C.shape[1], C.sum(axis=0) + unseen_weight * C.shape[0]


def loss(C, W, H, unseen_weight, l2, frequency):
    """As the docstring has it."""
    x = W @ H.T
    rows, columns = (weight**frequency for weight in weights_of_cells(C, unseen_weight))
    penalty = l2 * (rows @ (W**2).sum(axis=1) + columns @ (H**2).sum(axis=1))
    return 0.5 * ((C * (1 - x) ** 2).sum() + unseen_weight * (x**2).sum() + penalty)


def solve_rows(C, H, unseen_weight, l2_of_row):
    """The best rows, each by its normal equations."""
    gram, eye = unseen_weight * H.T @ H, np.eye(H.shape[1])
    return np.stack(
        [np.linalg.solve(gram + (H.T * c) @ H + l2 * eye, H.T @ c) for c, l2 in zip(C, l2_of_row, strict=True)]
    )


def start(n, m, k, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 0.3, (n, k)), rng.normal(0, 0.3, (m, k))


def exact(**parameters):
    """So many steps that each half of an iteration is the solution."""
    return ImplicitMF(**{"n_components": 4, "n_steps": 40, "tol": 0, "dtype": None, "n_jobs": 1} | parameters)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("unseen_weight", "l2", "frequency"), [(0.5, 0.03, 1.0), (0.05, 0.4, 0.0), (3.0, 0.1, 0.5)])
def test_iterations_solve_the_normal_equations_of_every_row(confidence, unseen_weight, l2, frequency):
    X = plays()
    C = CONFIDENCES[confidence](X)
    W, H = start(*X.shape, 4)
    ask = {"unseen_weight": unseen_weight, "l2": l2, "frequency": frequency, "confidence": confidence}
    model = exact(init=(W, H), max_iter=5, **ask).fit(X)
    of_rows, of_columns = (l2 * weight**frequency for weight in weights_of_cells(C, unseen_weight))
    losses = []
    for _ in range(5):
        W = solve_rows(C, H, unseen_weight, of_rows)
        H = solve_rows(C.T, W, unseen_weight, of_columns)
        losses.append(loss(C, W, H, unseen_weight, l2, frequency))
    assert_allclose(model.W_, W, rtol=1e-7, atol=1e-10)
    assert_allclose(model.H_, H, rtol=1e-7, atol=1e-10)
    constant = 0.5 * (C * unseen_weight / (C + unseen_weight)).sum()
    assert_allclose(unseen_weight * model.trace_["objective"] + constant, losses, rtol=1e-10)
    assert model.unseen_weight_ == unseen_weight
    assert model.l2_ == pytest.approx(l2)
    assert_array_equal(model.W_[3], 0)
    assert_array_equal(model.H_[5], 0)


@pytest.mark.parametrize("n_steps", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_never_rises_and_comes_to_rest_where_it_is_flat(n_steps, seed):
    X = plays(seed=seed)
    model = exact(n_steps=n_steps, unseen_weight=0.3, l2=0.05, max_iter=3000, tol=1e-16, random_state=seed).fit(X)
    objective = model.trace_["objective"]
    assert np.all(np.diff(objective) <= 1e-12 * objective[0])
    factors = np.concatenate([model.W_, model.H_]).ravel()

    def at(z):
        return loss(X, z[: 17 * 4].reshape(17, 4), z[17 * 4 :].reshape(12, 4), 0.3, 0.05, 1.0)

    steps = 1e-5 * np.eye(factors.size)
    slope = [(at(factors + step) - at(factors - step)) / 2e-5 for step in steps]
    assert_allclose(slope, 0, atol=1e-4 * at(factors))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_folding_in_solves_the_normal_equations(dtype):
    X = plays()
    model = ImplicitMF(4, dtype=dtype, random_state=0).fit(X)
    new = np.concatenate([plays(seed=5)[:6], np.zeros((1, 12))])
    of_rows = model.l2_ * weights_of_cells(new, model.unseen_weight_)[0]
    truth = solve_rows(new, model.H_.astype(float), model.unseen_weight_, of_rows)
    W = model.transform(new)
    assert W.dtype == dtype
    assert_allclose(W, truth, rtol=1e-3 if dtype == "float32" else 1e-8, atol=1e-4 if dtype == "float32" else 1e-9)
    assert_array_equal(W[6], 0)
    assert_array_equal(model.transform(new[2:3]), W[2:3])  # a row depends on its cells alone


def test_a_weight_multiplies_all_that_a_cell_costs():
    """Its zero, too: a cell of weight 0 says nothing, and one of weight 2 says all of it twice."""
    X = plays()
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0], X.shape)
    W, H = start(*X.shape, 4)
    cells = sparse.csr_array(X)
    given = sparse.csr_array((np.where(weight[X > 0] > 0, weight[X > 0], 0.0), cells.indices, cells.indptr), X.shape)
    model = exact(init=(W, H), max_iter=1, unseen_weight=0.5, l2=0.1, frequency=0.0)
    model.fit(cells, cell_weight=given)
    all_weights = np.where(X > 0, weight, 1.0)
    eye = 0.1 * np.eye(4)
    truth = [
        np.linalg.solve((H.T * (w * (x + 0.5))) @ H + eye, H.T @ (w * x)) for x, w in zip(X, all_weights, strict=True)
    ]
    assert_allclose(model.W_, truth, rtol=1e-8, atol=1e-12)


def test_the_default_weight_of_zeros_and_penalty():
    X = plays()
    model = ImplicitMF(4, random_state=0).fit(X)
    n_seen, rows, columns = (X > 0).sum(), X.any(axis=1).sum(), X.any(axis=0).sum()
    assert model.unseen_weight_ == pytest.approx(min(5 * X.sum() / X.size, X.sum() / n_seen))
    assert model.l2_ == pytest.approx(0.067 * ((n_seen / rows) ** -0.5 + (n_seen / columns) ** -0.5))
    sparser = plays(60, 50, share=0.02)
    assert ImplicitMF(4, random_state=0).fit(sparser).unseen_weight_ == pytest.approx(5 * sparser.mean())


@pytest.mark.parametrize("factor", [1e-200, 1e-30, 1e-3, 1e6, 1e30, 1e200])
def test_a_factor_of_all_values_changes_nothing(factor):
    X = plays()
    one, other = (ImplicitMF(4, random_state=0).fit(scale * X) for scale in (1.0, factor))
    assert other.status_ is Status.CONVERGED
    assert_allclose(other.W_ @ other.H_.T, one.W_ @ one.H_.T, rtol=1e-3, atol=1e-4)


def test_the_penalty_by_default_is_the_same_at_the_mean_weight_for_any_frequency():
    X = plays()
    penalties = []
    for frequency in (0.0, 0.5, 1.0):
        model = ImplicitMF(4, frequency=frequency, random_state=0).fit(X)
        weights = np.sqrt(np.prod([weight.mean() for weight in weights_of_cells(X, model.unseen_weight_)]))
        penalties.append(model.l2_ * weights**frequency)
    assert_allclose(penalties, penalties[2], rtol=1e-12)


def test_zeros_that_are_stored_are_unseen_but_for_recommending():
    X = plays()
    rows, columns = np.nonzero(X)
    cells = sparse.coo_array(
        (np.append(X[rows, columns], 0.0), (np.append(rows, 0), np.append(columns, np.flatnonzero(X[0] == 0)[0]))),
        X.shape,
    )
    with_zero, without = (ImplicitMF(4, random_state=0, dtype=None).fit(one) for one in (cells, sparse.coo_array(X)))
    assert_allclose(with_zero.W_ @ with_zero.H_.T, without.W_ @ without.H_.T, rtol=1e-9, atol=1e-12)
    assert np.isin(np.flatnonzero(X[0] == 0)[0], without.recommend([0], n=12).ids)
    assert not np.isin(np.flatnonzero(X[0] == 0)[0], with_zero.recommend([0], n=12).ids)


def test_one_cell_and_none():
    model = ImplicitMF(2, random_state=0).fit(np.array([[0.0, 2.0], [0.0, 0.0]]))
    assert model.predict(0, 1) > 10 * abs(model.predict(0, 0))
    assert_array_equal(model.W_[1], 0)


def test_labels_new_users_and_files(tmp_path):
    ratings = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1), ("cid", "Clue", 5)]
    model = ImplicitMF(2, random_state=0).fit(ratings)
    model.save(tmp_path / "model.hs")
    again = hs.load(tmp_path / "model.hs")
    for one in (model, again):
        assert one.recommend([{"Alien": 5.0}], n=1).ids.tolist() == [["Brazil"]]
        assert one.unseen_weight_ == model.unseen_weight_
    assert_array_equal(again.transform([{"Clue": 2.0}]), model.transform([{"Clue": 2.0}]))


def test_wide_counts_are_taken_by_their_logarithm():
    X = plays()
    assert ImplicitMF(2, random_state=0).fit(X).confidence_ == "values"
    X[0, np.flatnonzero(X[0])[0]] = 1e5
    wide, log = (ImplicitMF(2, confidence=how, random_state=0).fit(X) for how in ("auto", "log"))
    assert wide.confidence_ == "log"
    assert_array_equal(wide.W_, log.W_)
    assert_array_equal(wide.transform(X[:1]), log.transform(X[:1]))
    assert ImplicitMF(2, confidence=0.5).fit(X).confidence_ == 0.5


def test_what_is_refused():
    X = plays()
    with refused(DataError, found="-"):
        ImplicitMF(2).fit(-X)
    with refused(ParameterError, "unseen"):
        ImplicitMF(2, unseen="missing").fit(X)
    for confidence in ("value", -1.0, None):
        with refused(ParameterError, "confidence"):
            ImplicitMF(2, confidence=confidence).fit(X)
    with refused(ParameterError, "unseen_weight"):
        ImplicitMF(2, unseen_weight=0.0).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_wherever_arrays_lie_and_for_any_number_of_threads(dtype):
    """A compiled loop that both sums and stores does not always add in the same order."""
    size = 3000, 1000
    values = np.random.default_rng(0).integers(1, 6, 45_000).astype(dtype)
    observed = Observed.from_cells(*skewed_cells(*size, values.size, 0), values, size, unseen="zero")
    found = set()
    for number in range(5):
        _elsewhere = [np.empty(37 * number + 1) for _ in range(3)]
        model = ImplicitMF(17, max_iter=3, tol=0, random_state=0, n_jobs=1 + number % 2).fit(observed)
        found.add((model.W_.tobytes(), model.H_.tobytes(), model.trace_["objective"].tobytes()))
    assert len(found) == 1

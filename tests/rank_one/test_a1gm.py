"""A1GM: the best fit where the holes are grid-like, Algorithm 1 elsewhere, a sentence where nothing is left."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from halfseen import RankOneNMF, Status, observe
from halfseen.errors import DataError, ParameterError

from . import oracle
from .cases import GRID_LIKE, NAN, TABLES, counts, factors, fitted, gammas, grid_like, holed, product

every_grid = pytest.mark.parametrize("X", GRID_LIKE.values(), ids=GRID_LIKE)


@every_grid
def test_on_grid_like_holes_it_is_the_exact_method(X):
    model, exact = fitted(X, "a1gm"), fitted(X)
    assert_allclose(product(model), product(exact), rtol=1e-10)
    assert_allclose(model.W_, exact.W_, rtol=1e-10)
    assert model.increase_rate_ == 1.0
    assert (model.n_iter_, model.status_) == (1, Status.CONVERGED)


@every_grid
def test_and_a_long_run_of_kl_wnmf(X):
    assert_allclose(np.outer(*oracle.kl_wnmf(X, 3000)), product(fitted(X, "a1gm")), rtol=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_on_random_grids(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 12, 2)
    rows, columns = (rng.choice(size, rng.integers(1, size), replace=False) for size in (n, m))
    X = grid_like(n, m, rows, columns, seed)
    for table in (X, np.asfortranarray(X), observe(X), X.astype(np.float32).astype(float)):
        model = fitted(table, "a1gm")
        assert_allclose(product(model), product(fitted(table)), rtol=1e-10)
        assert model.increase_rate_ == 1.0


def free_of_holes(X):
    return (~np.isnan(X).any(1)).any() and (~np.isnan(X).any(0)).any()


SCATTERED = {name: X for name, X in TABLES.items() if free_of_holes(X)} | {
    f"random {seed}": holed(gammas((14, 11), seed), 0.04, seed) for seed in range(6)
}


@pytest.mark.parametrize("X", SCATTERED.values(), ids=SCATTERED)
@pytest.mark.parametrize("kind", ["rows", "columns", "listed", "sparse"])
def test_elsewhere_it_is_algorithm_1(X, kind):
    stored = np.nonzero(~np.isnan(X))
    data = {
        "rows": X,
        "columns": np.asfortranarray(X),
        "listed": observe(X),
        "sparse": sparse.coo_array((X[stored], stored), X.shape),
    }[kind]
    model = fitted(data, "a1gm")
    assert_allclose(product(model), np.outer(*oracle.a1gm(X)), rtol=1e-12)
    assert_allclose(model.W_.sum(), model.H_.sum(), rtol=1e-12)
    holes, rows, columns = np.isnan(X).sum(), np.isnan(X).any(1).sum(), np.isnan(X).any(0).sum()
    assert model.increase_rate_ == pytest.approx(rows * columns / holes if holes else 1.0, rel=1e-14)
    assert oracle.cost(X, *factors(model)) >= oracle.cost(X, *factors(fitted(X))) * (1 - 1e-12) - 1e-12


def test_the_objective_is_the_cost_but_for_a_constant():
    """The same constant as in the exact method, which knows the same of the data."""
    X = SCATTERED["random 1"]
    gap = [oracle.cost(X, *factors(model)) - model.trace_["objective"][-1] for model in (fitted(X), fitted(X, "a1gm"))]
    assert gap[0] == pytest.approx(gap[1], rel=1e-12)


def test_the_increase_rate_of_the_exact_method_is_not_told():
    X = GRID_LIKE["one"]
    model = RankOneNMF("a1gm").fit(X)
    assert model.increase_rate_ == 1.0
    assert not hasattr(model.set_params(method="exact").fit(X), "increase_rate_")


@pytest.mark.parametrize(("X", "which"), [(np.eye(4, 5), "row"), (np.eye(5, 4), "column")])
def test_where_nothing_is_left_it_names_the_exact_method(X, which):
    X = np.where(X > 0, NAN, gammas(X.shape))
    for data in (X, np.asfortranarray(X), observe(X)):
        with pytest.raises(DataError) as error:
            RankOneNMF("a1gm").fit(data)
        sentence = "A1GM must find a row and a column without a hole. Found a hole in every "
        assert str(error.value) == f'{sentence}{which}. Use method="exact", which takes any holes.'


def test_where_nothing_above_0_is_left_it_names_the_exact_method():
    X = np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 1.0], [2.0, 1.0, NAN]])
    for data in (X, np.asfortranarray(X), observe(X)):
        with pytest.raises(DataError, match=r'where rows and columns without holes meet\. .*Use method="exact"'):
            RankOneNMF("a1gm").fit(data)


@pytest.mark.parametrize("X", [
    [[1, 2, 3, 4], [0, 0, NAN, 5], [2, 0, 1, NAN]],
    [[1, 2, 0, 4], [3, 1, NAN, 5], [2, 5, 4, NAN]],
])  # fmt: skip
def test_what_the_closed_form_can_not_see_is_refused_or_told(X):
    """The row (column) has a value above 0, but none beside the block: Theorem 1 gives it 0, at an endless cost."""
    X = np.array(X, dtype=float)
    try:
        model = fitted(X, "a1gm")
    except DataError as error:
        assert 'method="exact"' in str(error)  # noqa: PT017
    else:
        assert_allclose(product(model), np.outer(*oracle.a1gm(X)), rtol=1e-12)


def test_all_zeros_and_lines_of_zeros():
    assert_allclose(product(fitted(np.zeros((3, 4)), "a1gm")), 0.0)
    X = grid_like(6, 5, [2], [3])
    X[4], X[:, 1] = 0.0, 0.0
    model = fitted(X, "a1gm")
    assert_allclose(product(model), product(fitted(X)), rtol=1e-10)
    assert model.W_[4] == model.H_[1] == 0
    X = grid_like(6, 5, [2], [3])
    X[2, [0, 1, 2, 4]], X[[0, 1, 3, 4, 5], 3] = 0.0, 0.0
    assert_allclose(product(fitted(X, "a1gm")), product(fitted(X)), rtol=1e-10, atol=1e-12)


def test_unseen_zeros_are_no_holes():
    X = counts((7, 6), 3)
    model = fitted(sparse.csr_array(X), "a1gm", unseen="zero")
    assert_allclose(product(model), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-12)
    assert model.increase_rate_ == 1.0


def test_giants_beside_the_block():
    """Sums over rows without holes are not the difference of two giants."""
    X = grid_like(6, 5, [2], [3])
    X[2] *= 1e20
    assert_allclose(product(fitted(X, "a1gm")), np.outer(*oracle.a1gm(X)), rtol=1e-12)
    assert_allclose(product(fitted(np.asfortranarray(X), "a1gm")), np.outer(*oracle.a1gm(X)), rtol=1e-12)


@pytest.mark.parametrize("method", ["a1gm", "em"])
def test_weights_repetitions_and_tensors_are_for_the_exact_method(method):
    X = gammas((4, 3))
    rows, columns = np.append(*np.nonzero(X)[:1], [0, 1]), np.append(np.nonzero(X)[1], [0, 2])
    twice = observe(sparse.coo_array((X[rows, columns], (rows, columns)), X.shape), duplicates="keep")
    for data, weight, found in (
        (X, np.full(X.shape, 2.0), "weights"),
        (twice, None, ""),
        (X[None] + 1, None, "a tensor"),
    ):
        with pytest.raises(ParameterError) as error:
            RankOneNMF(method).fit(data, cell_weight=weight)
        assert str(error.value).startswith(
            f"method='{method}' must have a matrix in which every seen cell counts once. Found {found}"
        )
        assert str(error.value).endswith('Use method="exact".')


def test_thousands_of_rows_are_those_of_the_oracle():
    X = gammas((3000, 6), 9)
    X[::700, 1] = NAN
    X[5::900, 4] = NAN
    assert_allclose(product(fitted(X, "a1gm")), np.outer(*oracle.a1gm(X)), rtol=1e-12)

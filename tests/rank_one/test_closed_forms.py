"""Theorem 1, A1GM and em against brute force, Algorithm 1 and the filled matrix; where they are exact; refusals."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse, special

from halfseen import RankOneNMF, Status, observe
from halfseen.errors import DataError, ParameterError
from halfseen.rankone import rank_one_nmmf, rank_one_nmtf

from . import oracle
from .cases import GRID_LIKE, NAN, TABLES, counts, factors, fitted, gammas, grid_like, holed, product

# Rank-one NMMF


def triple(seed, shape=(3, 4, 2, 5), mean=3.0):
    """Counts, some of them 0: X (I, J), Y (N, J), Z (I, M)."""
    rng = np.random.default_rng(seed)
    I, J, N, M = shape  # noqa: E741
    return tuple(rng.poisson(mean, size).astype(float) for size in ((I, J), (N, J), (I, M)))


def cost(X, Y, Z, w, h, a, b, alpha=1.0, beta=1.0):
    """Eq. 1."""
    pairs = ((1.0, X, np.outer(w, h)), (alpha, Y, np.outer(a, h)), (beta, Z, np.outer(w, b)))
    return sum(weight * special.kl_div(data, fit).sum() for weight, data, fit in pairs)


def by_brute_force(X, Y, Z, alpha, beta):
    """The least value of Eq. 1 that scipy finds in the logarithms of all factors."""
    ends = np.cumsum([X.shape[0], X.shape[1], Y.shape[0]])

    def value(logs):
        return cost(X, Y, Z, *np.split(np.exp(logs), ends), alpha, beta)

    start = np.zeros(ends[-1] + Z.shape[1])
    return optimize.minimize(value, start, method="BFGS", options={"gtol": 1e-7}).fun


@pytest.mark.parametrize(("seed", "alpha", "beta"), [(0, 1.0, 1.0), (1, 0.3, 2.5), (2, 4.0, 0.01)])
def test_brute_force_finds_nothing_lower_and_no_step_leads_down(seed, alpha, beta):
    data = triple(seed)
    best = rank_one_nmmf(*data, alpha=alpha, beta=beta)
    lowest, theirs = cost(*data, *best, alpha, beta), by_brute_force(*data, alpha, beta)
    assert lowest == pytest.approx(theirs, rel=1e-7)
    assert lowest <= theirs * (1 + 1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-5, 1e-3, 0.1, 1.0):
        for _ in range(20):
            moved = [factor * np.exp(size * rng.normal(size=factor.size)) for factor in best]
            assert cost(*data, *moved, alpha, beta) >= lowest * (1 - 1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_best_fit_to_a_table_with_a_missing_block(seed):
    """Eq. 4, with alpha and beta as the weights of cells."""
    X, Y, Z = triple(seed)
    w, h, a, b = rank_one_nmmf(X, Y, Z, alpha=0.5, beta=3.0)
    full = np.block([[X, Z], [Y, np.full((2, 5), NAN)]])
    weights = np.block([[np.ones(X.shape), np.full(Z.shape, 3.0)], [np.full(Y.shape, 0.5), np.ones((2, 5))]])
    assert_allclose(np.outer(np.append(w, a), np.append(h, b)), np.outer(*oracle.best(full, weights)), rtol=1e-11)


def test_without_y_or_z_and_at_any_scale():
    X, Y, Z = triple(7)
    w, h, a, b = rank_one_nmmf(X)
    assert_allclose(np.outer(w, h), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-14)
    assert a.shape == b.shape == (0,)
    for nothing in ((X, Y[:0], Z[:, :0]), (X, None, Z[:, :0])):
        for ours, same in zip(rank_one_nmmf(*nothing), (w, h, a, b), strict=True):
            assert_array_equal(ours, same)
    w, h, a, b = rank_one_nmmf(X, Y)
    stacked = np.vstack([X, Y])
    by_sums = np.outer(stacked.sum(1), stacked.sum(0)) / stacked.sum()
    assert_allclose(np.outer(np.append(w, a), h), by_sums, rtol=1e-13)
    # Rows 2, 4 meet columns 2, 4 in holes. Algorithm 1 swaps 2 and 5, so that the lines stand as 1, 5, 3 | 4,
    # 2.
    table = np.array([[2, 3, 3, 1, 4], [3, 4, 1, 0, 1], [3, 9, 1, 1, 3], [5, 0, 3, 4, 1], [1, 4, 2, 2, 3]])
    whole, holed = [0, 4, 2], [3, 1]
    found = rank_one_nmmf(table[np.ix_(whole, whole)], table[np.ix_(holed, whole)], table[np.ix_(whole, holed)])
    printed = ([1.5, 1.3, 1.9], [1.8, 1.6, 1.3], [1.9, 1.1], [0.85, 3.4])
    for factor, digits in zip(found, printed, strict=True):
        assert [float(f"{number:.2g}") for number in factor] == digits


def test_weights_multiply_and_transposing_transposes():
    """alpha D(Y, a h') = D(alpha Y, alpha a h'), so weighting Y is multiplying it, and dividing a again."""
    X, Y, Z = triple(9)
    weighted, multiplied = rank_one_nmmf(X, Y, Z, alpha=0.4, beta=7.0), rank_one_nmmf(X, 0.4 * Y, 7.0 * Z)
    for factor, other, scale in zip(weighted, multiplied, (1, 1, 0.4, 7.0), strict=True):
        assert_allclose(factor * scale, other, rtol=1e-14)
    alone, silenced = rank_one_nmmf(X), rank_one_nmmf(X, Y, Z, alpha=0, beta=0)
    assert_array_equal(silenced.w, alone.w)
    assert_array_equal(silenced.h, alone.h)
    assert_allclose(silenced.a, Y.sum(1) / silenced.h.sum(), rtol=1e-14)  # the best a for D(Y, a h')
    assert_allclose(silenced.b, Z.sum(0) / silenced.w.sum(), rtol=1e-14)
    h = rank_one_nmmf(X, 1e10 * Y, Z, alpha=1e308).h
    assert_allclose(h, np.sqrt(X.sum()) * Y.sum(0) / Y.sum(), rtol=1e-13)
    X, Y, Z = triple(11)
    before = [part.copy() for part in (X, Y, Z)]
    w, h, a, b = rank_one_nmmf(X, Y, Z, alpha=0.5, beta=2.0)
    for ours, theirs in zip(rank_one_nmmf(X.T, Z.T, Y.T, alpha=2.0, beta=0.5), (h, w, b, a), strict=True):
        assert_allclose(ours, theirs, rtol=1e-14)
    for part, same in zip((X, Y, Z), before, strict=True):
        assert_array_equal(part, same)


def test_kinds_and_precision_of_matrices():
    pandas, (X, Y, Z) = pytest.importorskip("pandas"), triple(12, mean=0.7)
    for data in ((pandas.DataFrame(X), Y.tolist(), Z.astype(int).astype(str).tolist()),
                 (sparse.csr_array(X), sparse.coo_matrix(Y), sparse.dia_array(Z))):  # fmt: skip
        for ours, dense in zip(rank_one_nmmf(*data), rank_one_nmmf(X, Y, Z), strict=True):
            assert_allclose(ours, dense, rtol=1e-14)
    data = [np.full((2, 50_000), 0.1, dtype=np.float32), None, np.full((2, 1), 0.1, dtype=np.float32)]
    tenth = float(np.float32(0.1))
    for made in (np.asarray, sparse.csr_array):
        w, h, _, b = rank_one_nmmf(*(part if part is None else made(part) for part in data))
        assert w.dtype == h.dtype == b.dtype == np.float32
        assert_allclose(w, np.sqrt(100_000 * tenth) / 2, rtol=1e-7)
        assert_allclose(h, np.sqrt(100_000 * tenth) / 50_000, rtol=1e-7)
    assert rank_one_nmmf(data[0], None, data[2].astype(np.float64)).h.dtype == np.float64


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_scales(scale):
    data = [part.clip(0.5) for part in triple(14)]
    for ours, plain in zip(rank_one_nmmf(*(scale * part for part in data)), rank_one_nmmf(*data), strict=True):
        assert_allclose(ours, plain * np.sqrt(scale), rtol=1e-13)


GOOD = np.ones((2, 3))


@pytest.mark.parametrize(("arguments", "parameter", "found"), [
    ((0 * GOOD, GOOD), "X", "only 0"),
    (([[1, 2], [3, NAN]],), "X", "nan at row 1, column 1"),
    ((GOOD, [[1, 2, np.inf]]), "Y", "inf at row 0, column 2"),
    ((GOOD, None, [[1], [-2]]), "Z", "-2 at row 1, column 0"),
    ((sparse.csr_array([[0, 0], [0, -1.5]]),), "X", "-1.5 at row 1, column 1"),
    ((np.ma.masked_array([[1, 2]], mask=[[0, 1]]),), "X", "nan at row 0, column 1"),
    ((GOOD, GOOD.T), "Y", "shape (3, 2)"),
    ((GOOD, None, GOOD.T), "Z", "shape (3, 2)"),
    ((GOOD[:0],), "X", "shape (0, 3)"),
    (([1, 2],), "X", "shape (2,)"),
    ((sparse.coo_array([1.0, 2.0]),), "X", "shape (2,)"),
    (("table.csv",), "X", "a str"),
    (([[1, 2], [3]],), "X", "different ones"),
    ((np.full((2, 2), 1e308),), "X", "inf"),
    (([[1e-300]], [[1e300]]), None, "inf at position 0"),
    (([[1e300]], None, [[1.0, 1e-300]]), None, "0 at position 1"),
    ((np.float32([[1e-30]]), np.float32([[1e38]])), None, "inf at position 0"),
])  # fmt: skip
def test_refusals(arguments, parameter, found):
    with pytest.raises(DataError) as error:
        rank_one_nmmf(*arguments)
    assert (error.value.parameter, f"{error.value.found} {error.value.where}".strip()) == (parameter, found)
    for name in ("alpha", "beta"):
        for value in (-1, NAN, np.inf, "1", None):
            with pytest.raises(ParameterError) as error:
                rank_one_nmmf(GOOD, GOOD, GOOD, **{name: value})
            assert error.value.parameter == name


# A1GM


@pytest.mark.parametrize("X", GRID_LIKE.values(), ids=GRID_LIKE)
def test_on_grid_like_holes_a1gm_em_and_a_long_run_of_kl_wnmf_are_the_exact_method(X):
    model, exact = fitted(X, "a1gm"), fitted(X)
    assert_allclose(product(model), product(exact), rtol=1e-10)
    assert_allclose(model.W_, exact.W_, rtol=1e-10)
    assert model.increase_rate_ == 1.0
    assert (model.n_iter_, model.status_) == (1, Status.CONVERGED)
    assert_allclose(product(fitted(X, "em")), product(model), rtol=1e-8)
    assert_allclose(np.outer(*oracle.kl_wnmf(X, 3000)), product(model), rtol=1e-9)
    assert not hasattr(model.set_params(method="exact").fit(X), "increase_rate_")


def free_of_holes(X):
    return (~np.isnan(X).any(1)).any() and (~np.isnan(X).any(0)).any()


def with_giants():
    """Sums over rows without holes must not be the difference of two giants."""
    X = grid_like(6, 5, [2], [3])
    X[2] *= 1e20
    return X


def tall():
    X = gammas((3000, 6), 9)
    X[::700, 1], X[5::900, 4] = NAN, NAN
    return X


SCATTERED = {name: X for name, X in TABLES.items() if free_of_holes(X)} | {
    f"random {seed}": holed(gammas((14, 11), seed), 0.04, seed) for seed in range(6)
}
SCATTERED |= {"giants": with_giants(), "tall": tall()}


@pytest.mark.parametrize("X", SCATTERED.values(), ids=SCATTERED)
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, observe])
def test_elsewhere_it_is_algorithm_1(X, kind):
    model, exact = fitted(kind(X), "a1gm"), fitted(X)
    assert_allclose(product(model), np.outer(*oracle.a1gm(X)), rtol=1e-12)
    assert_allclose(model.W_.sum(), model.H_.sum(), rtol=1e-12)
    holes, rows, columns = np.isnan(X).sum(), np.isnan(X).any(1).sum(), np.isnan(X).any(0).sum()
    assert model.increase_rate_ == pytest.approx(rows * columns / holes if holes else 1.0, rel=1e-14)
    costs = [oracle.cost(X, *factors(one)) for one in (model, exact)]
    assert costs[0] >= costs[1] * (1 - 1e-12) - 1e-12
    # both traces leave out the same constant of the data
    gaps = [cost - one.trace_["objective"][-1] for cost, one in zip(costs, (model, exact), strict=True)]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-12, abs=1e-12 * np.nansum(X))


@pytest.mark.parametrize(("X", "found"), [
    (np.where(np.eye(4, 5) > 0, NAN, gammas((4, 5))), "a hole in every row"),
    (np.where(np.eye(5, 4) > 0, NAN, gammas((5, 4))), "a hole in every column"),
    (np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 1.0], [2.0, 1.0, NAN]]), "none there"),
    (np.array([[1, 2, 3, 4], [0, 0, NAN, 5], [2, 0, 1, NAN]]), "one that has none there"),
    (np.array([[1, 2, 0, 4], [3, 1, NAN, 5], [2, 5, 4, NAN]]), "one that has none there"),
])  # fmt: skip
def test_where_the_closed_form_does_not_apply_it_names_the_exact_method(X, found):
    for data in (X, np.asfortranarray(X), observe(X)):
        with pytest.raises(DataError) as error:
            RankOneNMF("a1gm").fit(data)
        assert (error.value.parameter, error.value.found) == ("method", found)
        assert 'Use method="exact"' in str(error.value)


def test_zeros_and_lines_of_zeros():
    X, Y, Z = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[0.0], [0.0]])
    for factor, expected in zip(rank_one_nmmf(X, Y, Z), ([1, 0], [1, 0], [0, 2], [0]), strict=True):
        assert_array_equal(factor, expected)
    X = counts((7, 6), 3)  # unseen zeros are no holes
    model = fitted(sparse.csr_array(X), "a1gm", unseen="zero")
    assert_allclose(product(model), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-12)
    assert model.increase_rate_ == 1.0
    assert_allclose(product(fitted(np.zeros((3, 4)), "a1gm")), 0.0)
    X = grid_like(6, 5, [2], [3])
    X[4], X[:, 1] = 0.0, 0.0
    model = fitted(X, "a1gm")
    assert_allclose(product(model), product(fitted(X)), rtol=1e-10)
    assert model.W_[4] == model.H_[1] == 0
    X = grid_like(6, 5, [2], [3])
    X[2, [0, 1, 2, 4]], X[[0, 1, 3, 4, 5], 3] = 0.0, 0.0
    assert_allclose(product(fitted(X, "a1gm")), product(fitted(X)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["a1gm", "em"])
def test_weights_and_repetitions_are_for_the_exact_method(method):
    X = gammas((4, 3))
    rows, columns = np.append(*np.nonzero(X)[:1], [0, 1]), np.append(np.nonzero(X)[1], [0, 2])
    twice = observe(sparse.coo_array((X[rows, columns], (rows, columns)), X.shape), duplicates="keep")
    for data, weight in ((X, np.full(X.shape, 2.0)), (twice, None)):
        with pytest.raises(ParameterError, match='Use method="exact"'):
            RankOneNMF(method).fit(data, cell_weight=weight)


# The em algorithm


@pytest.mark.parametrize("name", ["one hole", "few holes", "half of it", "counts", "chain", "uneven"])
@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_steps_of_em_are_those_of_the_oracle(name, iterations):
    X = TABLES[name]
    ours = fitted(X, "em", max_iter=iterations, tol=0)
    assert (ours.status_, ours.n_iter_) == (Status.MAX_ITER, iterations)
    assert_allclose(product(ours), np.outer(*oracle.em(X, iterations)), rtol=1e-12)
    assert ours.W_.sum() == pytest.approx(ours.H_.sum(), rel=1e-12)


@pytest.mark.parametrize("name", ["one hole", "few holes", "half of it", "counts", "dead lines", "rank one", "uneven"])
def test_em_ends_where_the_exact_method_does(name):
    X = TABLES[name]
    model, exact = fitted(X, "em"), fitted(X)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ < 300
    lives = np.outer(model.parts_[0] >= 0, model.parts_[1] >= 0)
    assert_allclose(product(model)[lives], product(exact)[lives], rtol=1e-8)
    assert oracle.cost(X, *factors(model)) == pytest.approx(oracle.cost(X, *factors(exact)), rel=1e-9)


def test_empty_lines_take_no_part_in_em_and_nothing_but_zeros_is_fitted_by_zeros():
    X = holed(gammas((9, 7)), 0.2)
    X[4], X[:, 2] = NAN, NAN
    rows, columns = np.arange(9) != 4, np.arange(7) != 2
    model, small = fitted(X, "em"), fitted(X[rows][:, columns], "em")
    assert_allclose(model.W_[rows], small.W_, rtol=1e-9)
    assert_allclose(model.H_[columns], small.H_, rtol=1e-9)
    assert model.W_[4] == pytest.approx(model.W_[rows].mean(), rel=1e-12)
    assert model.H_[2] == pytest.approx(model.H_[columns].mean(), rel=1e-12)
    assert_allclose(product(fitted(np.where(np.eye(3) > 0, NAN, 0.0), "em")), 0.0)


# Tensors


def grid_like_tensor(shape, seed, every=()):
    """Slices with holes along each axis (all of them along `every`) meet in holes, and there are no others."""
    rng = np.random.default_rng(seed)
    X, masks = rng.gamma(2.0, 1.0, shape) + 0.01, [rng.random(size) < 0.5 for size in shape]
    for axis, mask in enumerate(masks):
        mask[0], mask[-1] = axis in every, True
        mask |= axis in every
    X[np.ix_(*masks)] = NAN
    return X, masks


def lowest_cost(X, seed=0):
    """The least cost over seen cells that scipy finds in the logarithms of all factors."""
    ends, seen = np.cumsum(X.shape)[:-1], ~np.isnan(X)

    def value(logs):
        fit = oracle.fit_tensor(list(map(np.exp, np.split(logs, ends))))
        excess = np.where(seen, fit - np.nan_to_num(X), 0.0)
        slope = [excess.sum(axis=tuple(other for other in range(X.ndim) if other != axis)) for axis in range(X.ndim)]
        return special.kl_div(X[seen], fit[seen]).sum(), np.concatenate(slope)

    start = 0.1 * np.random.default_rng(seed).normal(size=sum(X.shape))
    return optimize.minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}).fun


@pytest.mark.parametrize("method", ["exact", "em"])
@pytest.mark.parametrize("name", ["one hole", "few holes", "counts", "a hole in every row"])
def test_exact_and_em_cost_what_a_general_minimiser_finds(name, method):
    """D_Phi of Eq. 2, over cells that are not grid-like, against the best of three BFGS runs."""
    X = TABLES[name]
    ours = oracle.cost_tensor(X, fitted(X, method).axis_factors_)
    theirs = min(lowest_cost(X, seed) for seed in range(3))
    assert ours == pytest.approx(theirs, rel=1e-8)
    assert ours <= theirs * (1 + 1e-12)


SHAPES = [((4, 5, 3), ()), ((4, 5, 3), (1,)), ((3, 4, 2, 3), ()), ((2, 3, 2, 2, 3), ()), ((3, 2, 4, 2), (0, 3))]


@pytest.mark.parametrize(("shape", "every"), SHAPES)
def test_a1gm_is_the_best_fit_to_a_tensor_with_grid_like_holes(shape, every):
    for seed in range(3):
        X, _ = grid_like_tensor(shape, seed, every)
        model = fitted(X, "a1gm")
        ours, theirs = oracle.cost_tensor(X, model.axis_factors_), lowest_cost(X)
        assert ours == pytest.approx(theirs, rel=1e-8)
        assert ours <= theirs * (1 + 1e-12)
        assert (model.increase_rate_, model.n_iter_) == (1.0, 1)
        for found, best in zip(model.axis_factors_, oracle.best_tensor(X), strict=True):
            assert_allclose(found, best, rtol=1e-9)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (3, 4, 2, 3), (2, 3, 2, 2, 3)])
def test_the_total_of_the_fit_is_a_root_of_a_polynomial_of_degree_one_less_than_the_order(shape):
    """t^d - T t^(d-1) - prod (t - P_k), in which t^d cancels."""
    X, masks = grid_like_tensor(shape, 1)
    sums = [np.nansum(np.compress(~mask, X, axis)) for axis, mask in enumerate(masks)]
    polynomial = np.poly1d([1.0, -np.nansum(X)] + [0.0] * (len(shape) - 1)) - np.poly1d(sums, r=True)
    coefficients = polynomial.coeffs[1:] if polynomial.order == len(shape) else polynomial.coeffs
    roots = np.roots(coefficients)
    assert roots.size == len(shape) - 1
    above = roots[np.isreal(roots) & (roots.real >= max(sums) * (1 - 1e-12))].real
    assert_allclose(above, oracle.fit_tensor(fitted(X, "a1gm").axis_factors_).sum(), rtol=1e-10)
    assert above.size == 1


def test_no_formula_of_sums_products_and_ratios_gives_the_fit_to_a_tensor():
    """Whole numbers and one hole: Theorem 1 would give a ratio of whole numbers, the best total is irrational.

    P = 5 along each axis and T = 8, so 7 t^2 - 75 t + 125 = 0, and 75^2 - 4 * 7 * 125 = 2125 is no square.
    """
    X = np.ones((2, 2, 2))
    X[0, 0, 0], X[1, 1, 1] = 2.0, NAN
    expected = (75 + np.sqrt(2125)) / 14
    for found in (fitted(X, "a1gm").axis_factors_, oracle.best_tensor(X)):
        assert oracle.fit_tensor(found).sum() == pytest.approx(expected, rel=1e-12)
    assert math.isqrt(2125) ** 2 != 2125


def test_other_holes_of_a_tensor_are_made_grid_like():
    X, masks = grid_like_tensor((5, 4, 3), 4)
    more = X.copy()
    more[1, 0, 0] = NAN
    masks[0][1] = masks[1][0] = masks[2][0] = True
    grid = X.copy()
    grid[np.ix_(*masks)] = NAN
    model = fitted(more, "a1gm")
    assert model.increase_rate_ == np.isnan(grid).sum() / np.isnan(more).sum()
    assert_allclose(oracle.fit_tensor(model.axis_factors_), oracle.fit_tensor(oracle.best_tensor(grid)), rtol=1e-9)
    assert model.complete(more)[1, 0, 0] == pytest.approx(model.predict(1, 0, 0))


def test_tensors_without_holes_and_matrices_in_disguise():
    whole = gammas((4, 3, 2), 1)
    best = [whole.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
    for model in (fitted(whole, "a1gm"), fitted(whole, "a1gm", unseen="zero")):
        assert_allclose(oracle.fit_tensor(model.axis_factors_), oracle.fit_tensor(best) / whole.sum() ** 2, rtol=1e-12)
        assert model.increase_rate_ == 1.0
    X = GRID_LIKE["spread"]
    for axis in range(3):
        factors = fitted(np.expand_dims(X, axis), "a1gm").axis_factors_
        assert_allclose(oracle.fit_tensor(factors).reshape(X.shape), np.outer(*oracle.a1gm(X)), rtol=1e-12)
    zeros = fitted(np.zeros((2, 2, 2)), "a1gm")
    assert not oracle.fit_tensor(zeros.axis_factors_).any()


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 3, 4, 2)])
def test_a_fit_to_a_tensor_scales_with_it(shape):
    X, _ = grid_like_tensor(shape, 2)
    best = oracle.fit_tensor(fitted(X, "a1gm").axis_factors_)
    for scale in 10.0 ** np.arange(-250, 251, 50):
        model = fitted(scale * X, "a1gm")
        assert model.status_ is Status.CONVERGED
        assert_allclose(oracle.fit_tensor(model.axis_factors_) / scale, best, rtol=1e-13)


def test_small_tensors_of_zeros_and_holes():
    """Where holes are grid-like, nothing costs less; anywhere, the fit is finite and 0 where only zeros were seen."""
    rng, n_fitted, n_exact = np.random.default_rng(3), 0, 0
    for _ in range(300):
        shape = tuple(rng.integers(1, 4, size=rng.integers(3, 5)))
        X = rng.poisson(rng.choice([0.0, 0.5, 2.0]), shape).astype(float)
        X[np.ix_(*(rng.random(size) < 0.5 for size in shape))] = NAN
        X[rng.random(shape) < rng.choice([0.0, 0.1])] = NAN
        try:
            model = fitted(X, "a1gm")
        except DataError:  # no cell seen, or zeros in the way
            continue
        n_fitted += 1
        assert model.status_ is Status.CONVERGED
        assert all(np.isfinite(factor).all() for factor in model.axis_factors_)
        if not np.nansum(X):
            assert not oracle.fit_tensor(model.axis_factors_).any()
        if model.increase_rate_ == 1.0:
            costs = [oracle.cost_tensor(X, one.axis_factors_) for one in (model, fitted(X))]
            assert costs[0] <= costs[1] + 1e-9 * np.nansum(X)
            n_exact += 1
    assert n_fitted > 180
    assert n_exact > 120
    assert not oracle.fit_tensor(fitted(np.array([[[0.0]], [[NAN]]]), "a1gm").axis_factors_).any()


def test_tensors_that_a1gm_refuses():
    X = np.ones((3, 3, 3))
    one_axis = X.copy()
    one_axis[np.eye(3, dtype=bool), 2] = NAN  # a hole in every slice along the first two axes
    with pytest.raises(DataError, match=r"without a hole along two axes of a tensor or more\. Found 1 such axes"):
        RankOneNMF("a1gm").fit(one_axis)
    apart = np.zeros((2, 2, 2))
    apart[0, 1, 1] = apart[1, 0, 1] = apart[1, 1, 0] = 1.0
    apart[1, 1, 1] = NAN
    with pytest.raises(DataError, match=r"where slices without a hole along two axes meet\. Found none there"):
        RankOneNMF("a1gm").fit(apart)
    inside = np.ones((3, 2, 2))
    inside[2, 1, 1] = NAN
    inside[1] = [[0, 0], [0, 5]]
    inside[1, 1, 0] = NAN
    inside[2, 1, 0] = NAN
    inside[1, 0] = 0.0
    with pytest.raises(DataError, match="in every slice that has one, outside the block"):
        RankOneNMF("a1gm").fit(inside)
    with pytest.raises(ParameterError, match=r"a matrix in which every seen cell counts once\. Found a tensor"):
        RankOneNMF("em").fit(X)


def nmtf_cost(X, others, factors):
    """The sum of divergences, X first."""
    pairs = [
        (1.0, X, factors.x),
        *((weight, Y, mine) for (Y, _, weight), mine in zip(others, factors.others, strict=True)),
    ]
    return sum(weight * special.kl_div(data, oracle.fit_tensor(list(mine))).sum() for weight, data, mine in pairs)


def lowest_nmtf_cost(X, others):
    """The least sum that scipy finds in the logarithms of all factors, with slopes by differences."""
    sizes = [
        *X.shape,
        *(size for Y, axes, _ in others for size, axis in zip(Y.shape, axes, strict=True) if axis is None),
    ]

    def value(logs):
        vectors = list(map(np.exp, np.split(logs, np.cumsum(sizes)[:-1])))
        x, own = vectors[: X.ndim], iter(vectors[X.ndim :])
        cost = special.kl_div(X, oracle.fit_tensor(x)).sum()
        for Y, axes, weight in others:
            mine = [next(own) if axis is None else x[axis] for axis in axes]
            cost += weight * special.kl_div(Y, oracle.fit_tensor(mine)).sum()
        return cost

    return optimize.minimize(value, np.zeros(sum(sizes)), method="BFGS", options={"gtol": 1e-6}).fun


@pytest.mark.parametrize(("shape", "described"), [
    ((2, 3, 2), [((4, 3, 2), (None, 1, 2), 1.0), ((2, 2, 2), (0, None, 2), 0.3), ((2, 3, 3), (0, 1, None), 2.0)]),
    ((2, 3, 2), [((4, 3), (None, 1), 0.7), ((3, 2, 2), (1, None, None), 1.5), ((2, 2, 3), (2, None, 1), 0.4)]),
    ((2, 2, 3, 2), [((3, 3), (None, 2), 1.0), ((2, 2), (1, None), 0.2)]),
    ((3,), [((3, 4), (0, None), 2.0)]),
], ids=["each axis longer", "some axes", "four axes", "a vector"])  # fmt: skip
def test_theorem_1_carries_over_to_tensors_that_share_modes(shape, described):
    rng = np.random.default_rng(5)
    X = rng.gamma(2.0, 1.0, shape)
    others = [(rng.poisson(2.0, size).astype(float), axes, weight) for size, axes, weight in described]
    factors = rank_one_nmtf(X, *others)
    ours, theirs = nmtf_cost(X, others, factors), lowest_nmtf_cost(X, others)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours <= theirs * (1 + 1e-12)
    # every sum is conserved, that of each tensor and, along shared axes, that of all together
    for (Y, axes, _), mine in zip(others, factors.others, strict=True):
        assert oracle.fit_tensor(list(mine)).sum() == pytest.approx(Y.sum(), rel=1e-12)
        assert all(mine[place] is factors.x[axis] for place, axis in enumerate(axes) if axis is not None)
    assert_allclose([factor.sum() for factor in factors.x], X.sum() ** (1 / X.ndim), rtol=1e-12)


def test_nmtf_of_matrices_is_nmmf():
    X, Y, Z = triple(3)
    w, h, a, b = rank_one_nmmf(X, Y, Z, alpha=0.4, beta=2.0)
    (x_w, x_h), ((y_a, y_h), (z_w, z_b)) = rank_one_nmtf(X, (Y, (None, 1), 0.4), (Z, (0, None), 2.0))
    for ours, same in ((x_w, w), (x_h, h), (y_a, a), (y_h, h), (z_w, w), (z_b, b)):
        assert_allclose(ours, same, rtol=1e-13)
    alone, silenced = rank_one_nmtf(X), rank_one_nmtf(X, (Y, (None, 1), 0.0))
    assert_allclose(silenced.x[1], alone.x[1], rtol=1e-14)
    assert_allclose(silenced.others[0][0], Y.sum(1) / np.sqrt(X.sum()), rtol=1e-13)
    assert not rank_one_nmtf(X, (0.0 * Y, (None, 1), 1.0)).others[0][0].any()


@pytest.mark.parametrize(("arguments", "message"), [
    ((np.zeros((2, 2)),), "The sum of X must be finite and above 0. Found 0"),
    ((np.array([[1.0, -1.0]]),), r"Cells of X must be finite and not negative. Found -1 at position \(0, 1\)"),
    ((np.empty((0, 2)),), r"Every axis of X must have a length of 1 or more. Found shape \(0, 2\)"),
    ((np.ones((2, 2)), (np.full((2, 2), NAN), (0, None), 1.0)), "Cells of tensor 1 must be finite"),
    ((np.ones((2, 3)), (np.ones((2, 2)), (None, 1), 1.0)), "Shared axes must have the same length in tensor 1 and X"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (0, 1), 1.0)), "At least one axis of tensor 1 must be its own"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (0, 0), 1.0)), "The axes of tensor 1 must be an axis of X"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (0,), 1.0)), "The axes of tensor 1 must be an axis of X"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (None, 2), 1.0)), "The axes of tensor 1 must be an axis of X"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (None, -1), 1.0)), r"The axes of tensor 1 .* Found \(None, -1\)"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (None, 1.0), 1.0)), r"The axes of tensor 1 .* Found \(None, 1.0\)"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (None, True), 1.0)), r"The axes of tensor 1 .* Found \(None, True\)"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (None, [1]), 1.0)), r"The axes of tensor 1 .* Found \(None, \[1\]\)"),
    ((np.ones((2, 3)), (np.ones((2, 3)), 1, 1.0)), r"The axes of tensor 1 .* Found \(1,\)"),
    ((np.ones((2, 3)), (np.ones((2, 3)), (None, 1))), r"Tensor 1 must be a tuple .* Found tuple of length 2. Give"),
    ((np.ones((2, 3)), np.ones((3, 3))), r"Tensor 1 must be a tuple \(tensor, axes, weight\). Found ndarray"),
])  # fmt: skip
def test_tensors_that_nmtf_refuses(arguments, message):
    with pytest.raises(DataError, match=message):
        rank_one_nmtf(*arguments)
    with pytest.raises(ParameterError, match="weight must be"):
        rank_one_nmtf(np.ones((2, 2)), (np.ones((3, 2)), (None, 1), -1.0))

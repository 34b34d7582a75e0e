"""Theorem 1: the closed form against brute force, its neighbours, the paper's example, and every kind of input."""

import numpy as np
import pytest
from scipy import optimize, sparse, special

from halfseen.errors import DataError, ParameterError
from halfseen.rank_one.nmmf import rank_one_nmmf

from . import oracle

NAN = np.nan


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


WEIGHTS = [(1.0, 1.0), (0.3, 2.5), (4.0, 0.01)]


@pytest.mark.parametrize(("alpha", "beta"), WEIGHTS)
@pytest.mark.parametrize("seed", range(3))
def test_brute_force_finds_nothing_lower(seed, alpha, beta):
    data = triple(seed)
    ours = cost(*data, *rank_one_nmmf(*data, alpha=alpha, beta=beta), alpha, beta)
    theirs = by_brute_force(*data, alpha, beta)
    assert ours == pytest.approx(theirs, rel=1e-7)
    assert ours <= theirs * (1 + 1e-12)


@pytest.mark.parametrize(("alpha", "beta"), WEIGHTS)
def test_no_step_leads_down(alpha, beta):
    data = triple(5)
    factors = rank_one_nmmf(*data, alpha=alpha, beta=beta)
    lowest = cost(*data, *factors, alpha, beta)
    rng = np.random.default_rng(0)
    for size in (1e-5, 1e-3, 0.1, 1.0):
        for _ in range(20):
            moved = [factor * np.exp(size * rng.normal(size=factor.size)) for factor in factors]
            assert cost(*data, *moved, alpha, beta) >= lowest * (1 - 1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_best_fit_to_a_table_with_a_missing_block(seed):
    """Eq. 4, with alpha and beta as the weights of cells."""
    X, Y, Z = triple(seed)
    w, h, a, b = rank_one_nmmf(X, Y, Z, alpha=0.5, beta=3.0)
    full = np.block([[X, Z], [Y, np.full((2, 5), NAN)]])
    weights = np.block([[np.ones(X.shape), np.full(Z.shape, 3.0)], [np.full(Y.shape, 0.5), np.ones((2, 5))]])
    fits = [np.outer(*factors) for factors in ((np.append(w, a), np.append(h, b)), oracle.best(full, weights))]
    np.testing.assert_allclose(*fits, rtol=1e-11)


def test_the_example_of_figure_4():
    """Rows 2, 4 meet columns 2, 4 in holes. Algorithm 1 swaps 2 and 5, so that the lines stand as 1, 5, 3 | 4, 2."""
    table = np.array([[2, 3, 3, 1, 4], [3, 4, 1, 0, 1], [3, 9, 1, 1, 3], [5, 0, 3, 4, 1], [1, 4, 2, 2, 3]])
    whole, holed = [0, 4, 2], [3, 1]
    w, h, a, b = rank_one_nmmf(table[np.ix_(whole, whole)], table[np.ix_(holed, whole)], table[np.ix_(whole, holed)])
    printed = ([1.5, 1.3, 1.9], [1.8, 1.6, 1.3], [1.9, 1.1], [0.85, 3.4])
    for factor, digits in zip((w, h, a, b), printed, strict=True):
        assert [float(f"{number:.2g}") for number in factor] == digits


def test_without_y_and_z_it_is_ho_and_van_doorens_formula():
    X, Y, Z = triple(7)
    w, h, a, b = rank_one_nmmf(X)
    np.testing.assert_allclose(np.outer(w, h), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-14)
    assert a.shape == b.shape == (0,)
    for nothing in ((X, Y[:0], Z[:, :0]), (X, None, Z[:, :0])):
        for ours, same in zip(rank_one_nmmf(*nothing), (w, h, a, b), strict=True):
            np.testing.assert_array_equal(ours, same)


def test_with_one_neighbour_it_is_the_formula_for_both_stacked():
    X, Y, _ = triple(8)
    w, h, a, b = rank_one_nmmf(X, Y)
    stacked = np.vstack([X, Y])
    np.testing.assert_allclose(
        np.outer(np.append(w, a), h), np.outer(stacked.sum(1), stacked.sum(0)) / stacked.sum(), rtol=1e-13
    )
    assert b.size == 0


def test_a_weight_is_a_multiple_of_the_matrix():
    """alpha D(Y, a h') = D(alpha Y, alpha a h'), so weighting Y is multiplying it, and dividing a again."""
    X, Y, Z = triple(9)
    weighted, multiplied = rank_one_nmmf(X, Y, Z, alpha=0.4, beta=7.0), rank_one_nmmf(X, 0.4 * Y, 7.0 * Z)
    for factor, other, scale in zip(weighted, multiplied, (1, 1, 0.4, 7.0), strict=True):
        np.testing.assert_allclose(factor * scale, other, rtol=1e-14)


def test_weight_zero_silences_a_matrix_that_still_gets_its_factor():
    X, Y, Z = triple(10)
    alone, factors = rank_one_nmmf(X), rank_one_nmmf(X, Y, Z, alpha=0, beta=0)
    np.testing.assert_array_equal(factors.w, alone.w)
    np.testing.assert_array_equal(factors.h, alone.h)
    np.testing.assert_allclose(factors.a, Y.sum(1) / factors.h.sum(), rtol=1e-14)  # the best a for D(Y, a h')
    np.testing.assert_allclose(factors.b, Z.sum(0) / factors.w.sum(), rtol=1e-14)


def test_turning_all_matrices_turns_the_answer():
    X, Y, Z = triple(11)
    w, h, a, b = rank_one_nmmf(X, Y, Z, alpha=0.5, beta=2.0)
    for ours, theirs in zip(rank_one_nmmf(X.T, Z.T, Y.T, alpha=2.0, beta=0.5), (h, w, b, a), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_empty_rows_and_columns_get_zeros():
    X, Y, Z = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[0.0], [0.0]])
    for factor, expected in zip(rank_one_nmmf(X, Y, Z), ([1, 0], [1, 0], [0, 2], [0]), strict=True):
        np.testing.assert_array_equal(factor, expected)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia"])
def test_sparse_matrices(form):
    data = triple(12, mean=0.7)
    for make in (sparse.coo_array, sparse.coo_matrix):
        found = rank_one_nmmf(*(make(part).asformat(form) for part in data))
        for ours, dense in zip(found, rank_one_nmmf(*data), strict=True):
            np.testing.assert_allclose(ours, dense, rtol=1e-14)


def test_frames_lists_and_text_are_matrices():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, Y, Z = triple(13)
    columns = [f"c{j}" for j in range(4)]
    others = (pandas.DataFrame(X), polars.DataFrame(Y, schema=columns), Z.astype(int).astype(str).tolist())
    for ours, dense in zip(rank_one_nmmf(*others), rank_one_nmmf(X, Y, Z), strict=True):
        np.testing.assert_array_equal(ours, dense)


def test_float32_stays_and_is_added_up_in_double_precision():
    data = [np.full((2, 50_000), 0.1, dtype=np.float32), None, np.full((2, 1), 0.1, dtype=np.float32)]
    tenth = float(np.float32(0.1))
    for made in (np.asarray, sparse.csr_array):
        w, h, _, b = rank_one_nmmf(*(part if part is None else made(part) for part in data))
        assert w.dtype == h.dtype == b.dtype == np.float32
        np.testing.assert_allclose(w, np.sqrt(100_000 * tenth) / 2, rtol=1e-7)
        np.testing.assert_allclose(h, np.sqrt(100_000 * tenth) / 50_000, rtol=1e-7)
    assert rank_one_nmmf(data[0], None, data[2].astype(np.float64)).h.dtype == np.float64


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_scales(scale):
    data = [part.clip(0.5) for part in triple(14)]
    for ours, plain in zip(rank_one_nmmf(*(scale * part for part in data)), rank_one_nmmf(*data), strict=True):
        np.testing.assert_allclose(ours, plain * np.sqrt(scale), rtol=1e-13)


def test_a_huge_weight_lets_one_matrix_speak_alone():
    X, Y, Z = triple(15)
    h = rank_one_nmmf(X, 1e10 * Y, Z, alpha=1e308).h
    np.testing.assert_allclose(h, np.sqrt(X.sum()) * Y.sum(0) / Y.sum(), rtol=1e-13)


GOOD = np.ones((2, 3))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0 * GOOD, GOOD), "X must have a cell above 0, as its sum divides. Found only 0."),
        (([[1, 2], [3, NAN]],), "Cells of X must be finite and not negative. Found nan at row 1, column 1. Correct it"),
        ((GOOD, [[1, 2, np.inf]]), "Cells of Y must be finite and not negative. Found inf at row 0, column 2."),
        ((GOOD, None, [[1], [-2]]), "Cells of Z must be finite and not negative. Found -2 at row 1, column 0."),
        ((sparse.csr_array([[0, 0], [0, -1.5]]),), "not negative. Found -1.5 at row 1, column 1."),
        ((np.ma.masked_array([[1, 2]], mask=[[0, 1]]),), "Found nan at row 0, column 1."),
        ((GOOD, GOOD.T), "Y must have 3 columns like X. Found shape (3, 2). Transpose Y, or pass it as Z."),
        ((GOOD, None, GOOD.T), "Z must have 2 rows like X. Found shape (3, 2). Transpose Z, or pass it as Y."),
        ((GOOD[:0],), "X must have a row and a column. Found shape (0, 3)."),
        (([1, 2],), "X must have rows and columns. Found shape (2,). Pass an array of two axes."),
        ((sparse.coo_array([1.0, 2.0]),), "X must have rows and columns. Found shape (2,)."),
        (("table.csv",), "X must have rows and columns. Found a str."),
        (([[1, 2], [3]],), "The rows of X must be of one length."),
        (([["one"]],), "Values must be numbers. Found 'one' at row 0, column 0."),
        ((np.full((2, 2), 1e308),), "The sum of X must be finite. Found inf."),
        (([[1e-300]], [[1e300]]), "a must lie in the range of float64. Found inf at position 0. Bring"),
        (([[1e300]], None, [[1.0, 1e-300]]), "b must lie in the range of float64. Found 0 at position 1. Bring"),
        ((np.float32([[1e-30]]), np.float32([[1e38]])), "a must lie in the range of float32. Found inf at position 0."),
    ],
)
def test_refusals(arguments, sentence):
    with pytest.raises(DataError) as caught:
        rank_one_nmmf(*arguments)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [-1, NAN, np.inf, "1", None])
def test_refused_weights(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be a finite number of at least 0. Found"):
        rank_one_nmmf(GOOD, GOOD, GOOD, **{name: value})


def test_the_data_are_left_alone():
    data = triple(16)
    before = [part.copy() for part in data]
    rank_one_nmmf(*data, alpha=0.5)
    for part, same in zip(data, before, strict=True):
        np.testing.assert_array_equal(part, same)

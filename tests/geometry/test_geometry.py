"""Information geometry: the formulas of the paper, cell by cell, and what its propositions claim."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from halfseen import geometry
from halfseen.errors import DataError, ParameterError
from halfseen.rank_one.nmmf import rank_one_nmmf
from tests.rank_one import oracle

NAN = np.nan

#: (I, J, N, M): with a missing block, without one, and at the edge.
SHAPES = [
    (3, 4, 2, 3),
    (2, 2, 1, 1),
    (1, 1, 2, 3),
    (3, 1, 2, 2),
    (1, 3, 2, 2),
    (3, 4, 2, 0),
    (3, 4, 0, 2),
    (3, 4, 0, 0),
]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def triple(shape, seed=0):
    """Any positive triple."""
    rng = np.random.default_rng(seed)
    I, J, N, M = shape  # noqa: E741
    return tuple(rng.uniform(0.2, 3.0, size) for size in ((I, J), (N, J), (I, M)))


def rank_one_triple(shape, seed=0):
    rng = np.random.default_rng(seed)
    w, h, a, b = (rng.uniform(0.2, 3.0, size) for size in shape)
    return np.outer(w, h), np.outer(a, h), np.outer(w, b)


def distribution(X, Y, Z):
    """p as a dictionary over Omega, whose cells are numbered from 1 as in the paper."""
    I, J = X.shape  # noqa: E741
    p = {(i + 1, j + 1): X[i, j] for i, j in np.ndindex(X.shape)}
    p |= {(I + n + 1, j + 1): Y[n, j] for n, j in np.ndindex(Y.shape)}
    p |= {(i + 1, J + m + 1): Z[i, m] for i, m in np.ndindex(Z.shape)}
    return {cell: value / sum(p.values()) for cell, value in p.items()}


def below(cell, other):
    return cell[0] <= other[0] and cell[1] <= other[1]


def at(table, cell):
    return table[cell[0] - 1, cell[1] - 1]


@every_shape
def test_equation_3(shape):
    data = triple(shape)
    theta, p = geometry.natural_parameters(*data), distribution(*data)
    for cell, value in p.items():
        assert np.exp(sum(at(theta, other) for other in p if below(other, cell))) == pytest.approx(value, rel=1e-13)
    assert np.isnan(theta).sum() == shape[2] * shape[3]


@every_shape
def test_the_expectation_parameters(shape):
    data = triple(shape)
    eta, p = geometry.expectation_parameters(*data), distribution(*data)
    for cell in p:
        assert at(eta, cell) == pytest.approx(sum(p[other] for other in p if below(cell, other)), rel=1e-13)
    assert np.isnan(eta).sum() == shape[2] * shape[3]
    assert eta[0, 0] == pytest.approx(1.0, abs=1e-15)


@every_shape
def test_there_and_back(shape):
    data = triple(shape)
    total = sum(part.sum() for part in data)
    back_from = (
        geometry.from_natural_parameters(geometry.natural_parameters(*data), shape[:2], total=total),
        geometry.from_expectation_parameters(geometry.expectation_parameters(*data), shape[:2], total=total),
    )
    for back in back_from:
        for part, same in zip(back, data, strict=True):
            np.testing.assert_allclose(part, same, rtol=1e-12)


def moebius(cells):
    """The Moebius function of the order, by its recursion (slides: mu of (i, j) and (k, l))."""
    mu = {}
    for low in cells:
        for high in sorted(cells, key=sum):
            between = [mu[low, cell] for cell in cells if below(low, cell) and below(cell, high) and cell != high]
            mu[low, high] = 1 if low == high else -sum(between) if below(low, high) else 0
    return mu


def test_the_way_back_is_the_moebius_inversion_of_the_poset():
    data = triple((2, 3, 2, 2))
    eta, p = geometry.expectation_parameters(*data), distribution(*data)
    mu = moebius(sorted(p, key=sum))
    X, Y, Z = geometry.from_expectation_parameters(eta, (2, 3))
    ours = distribution(X, Y, Z)
    for cell in p:
        assert ours[cell] == pytest.approx(sum(mu[cell, other] * at(eta, other) for other in p), rel=1e-11)


def test_theta_11_is_the_normalisation():
    theta = geometry.natural_parameters(*triple((2, 3, 1, 2)))
    moved = theta.copy()
    moved[0, 0] = 5.0
    for part, same in zip(
        geometry.from_natural_parameters(moved, (2, 3)), geometry.from_natural_parameters(theta, (2, 3)), strict=True
    ):
        np.testing.assert_allclose(part, same, rtol=1e-14)


def test_theta_does_not_feel_the_scale_and_eta_allows_zeros_and_sparse_matrices():
    X, Y, Z = triple((2, 3, 1, 2))
    for scale in (1e-300, 1e300):
        scaled = geometry.natural_parameters(scale * X, scale * Y, scale * Z)
        np.testing.assert_allclose(scaled, geometry.natural_parameters(X, Y, Z), rtol=0, atol=1e-12)
    X[0, 1] = 0.0
    eta = geometry.expectation_parameters(sparse.csr_array(X), Y, Z)
    np.testing.assert_array_equal(eta, geometry.expectation_parameters(X, Y, Z))
    assert geometry.from_expectation_parameters(eta, (2, 3)).X[0, 1] == pytest.approx(0.0, abs=1e-16)


@every_shape
def test_one_body_and_two_body_parameters(shape):
    data = triple(shape)
    eta = geometry.expectation_parameters(*data)
    cells = sorted(distribution(*data))
    assert geometry.one_body(eta).tolist() == [at(eta, cell) for cell in cells if 1 in cell]
    assert geometry.two_body(eta).tolist() == [at(eta, cell) for cell in cells if 1 not in cell]


@every_shape
def test_both_conditions_know_rank_one(shape):
    """Propositions 1 and 2 (the second in its corrected form)."""
    data = rank_one_triple(shape)
    assert geometry.is_simultaneously_rank_one(*data)
    assert geometry.expectations_factorize(*data)


def moved(data, cell, by):
    """One cell of the triple, multiplied."""
    parts = [part.copy() for part in data]
    which, row, column = cell
    parts[which][row, column] *= by
    return parts


@every_shape
def test_both_conditions_notice_a_single_cell(shape):
    """Save where no table of more than one line is left, and every triple is of rank one."""
    data = rank_one_triple(shape)
    cells = [(which, *cell) for which, part in enumerate(data) for cell in np.ndindex(part.shape)]
    for cell in cells:
        other = moved(data, cell, 1.01)
        X, Y, Z = other
        expected = all(np.linalg.matrix_rank(part, tol=1e-6) <= 1 for part in (np.vstack([X, Y]), np.hstack([X, Z])))
        assert geometry.is_simultaneously_rank_one(*other) == expected
        assert geometry.expectations_factorize(*other) == expected


def printed_condition(X, Y, Z):
    """Proposition 2 as the paper prints it: eta_ij = eta_i1 eta_1j."""
    eta = geometry.expectation_parameters(X, Y, Z)
    return np.allclose(
        geometry.two_body(eta), geometry.two_body(np.where(np.isnan(eta), NAN, np.outer(eta[:, 0], eta[0])))
    )


@every_shape
def test_where_proposition_2_holds_as_printed(shape):
    I, J, N, M = shape  # noqa: E741
    for seed in range(5):
        assert printed_condition(*rank_one_triple(shape, seed)) == (N == 0 or M == 0 or I == J == 1)


def test_as_printed_proposition_2_also_accepts_what_is_not_of_rank_one():
    """eta_22 = 1/4 = eta_21 eta_12, though the rows of X and Y are not proportional."""
    data = np.array([[0.25, 0.1]]), np.array([[0.25, 0.25]]), np.array([[0.15]])
    assert printed_condition(*data)
    assert not geometry.expectations_factorize(*data)
    assert not geometry.is_simultaneously_rank_one(*data)


def test_rank_one_with_zeros_has_factorizing_expectations():
    w, h, a, b = np.array([0.0, 1.0, 2.0]), np.array([3.0, 0.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 0.0])
    assert geometry.expectations_factorize(np.outer(w, h), np.outer(a, h), np.outer(w, b))
    assert not geometry.expectations_factorize([[1.0, 0.0], [0.0, 1.0]])


def test_the_tolerance_is_a_relative_error_of_cells():
    data = moved(rank_one_triple((3, 4, 2, 3)), (0, 1, 1), 1.001)
    assert geometry.is_simultaneously_rank_one(*data, tol=1.01e-3)
    assert not geometry.is_simultaneously_rank_one(*data, tol=0.99e-3)
    assert geometry.expectations_factorize(*data, tol=1e-2)
    with pytest.raises(ParameterError, match="tol must be a finite number of at least 0"):
        geometry.is_simultaneously_rank_one(*data, tol=-1)
    with pytest.raises(ParameterError, match="tol must be a finite number of at least 0"):
        geometry.expectations_factorize(*data, tol=NAN)


@every_shape
def test_theorem_1_is_the_projection_that_keeps_the_one_body_expectations(shape):
    data = triple(shape)
    w, h, a, b = rank_one_nmmf(*data)
    fit = np.outer(w, h), np.outer(a, h), np.outer(w, b)
    before, after = geometry.expectation_parameters(*data), geometry.expectation_parameters(*fit)
    np.testing.assert_allclose(geometry.one_body(after), geometry.one_body(before), rtol=1e-13)
    np.testing.assert_allclose(geometry.two_body(geometry.natural_parameters(*fit)), 0.0, atol=1e-13)
    X, Y, Z = data
    table = np.block([[X, Z], [Y, np.full((len(Y), Z.shape[1]), NAN)]])
    assert geometry.conservation_gap(table, np.append(w, a), np.append(h, b)) < 1e-14


def half_seen(seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((6, 5)) < 0.3, NAN, rng.poisson(3.0, (6, 5)).astype(float))


def test_marginals():
    X, C = np.array([[1.0, NAN, 3.0], [0.0, 5.0, NAN]]), np.array([[2.0, 9.0, 1.0], [4.0, 0.5, 9.0]])
    for given in (X, X.astype(np.float32), X.tolist()):
        rows, columns = geometry.marginals(given)
        assert (rows.tolist(), columns.tolist()) == ([4.0, 5.0], [1.0, 5.0, 3.0])
    rows, columns = geometry.marginals(X, C)
    assert (rows.tolist(), columns.tolist()) == ([5.0, 2.5], [2.0, 2.5, 3.0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_closes_at_the_best_fit_alone(seed, weighted):
    X = half_seen(seed)
    C = np.random.default_rng(seed).uniform(0.5, 2.0, X.shape) if weighted else None
    w, h = oracle.best(X, C)
    assert geometry.conservation_gap(X, w, h, C) < 1e-12
    assert geometry.conservation_gap(X, 3 * w[:, None], h[:, None] / 3, C) < 1e-12
    assert geometry.conservation_gap(X, *oracle.kl_wnmf(X, 1, weights=C), C) > 1e-6
    assert geometry.conservation_gap(X, 1.01 * w, h, C) == pytest.approx(1 - 1 / 1.01, rel=1e-9)


def test_sums_of_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    assert geometry.conservation_gap(X, [0, 1], [1, 2]) == 0
    assert geometry.conservation_gap(X, [0.1, 1], [1, 2]) == 1
    assert geometry.conservation_gap(X, [0, 0], [1, 2]) == 1
    assert geometry.conservation_gap(0 * X, [0, 0], [1, 2]) == 0


GOOD = np.ones((2, 3))
L_SHAPED = np.where([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], NAN, 0.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: geometry.natural_parameters(GOOD, [[1, 0, 1]]),
            "above 0, as theta knows no 0. Found 0 at row 2, column 1.",
        ),
        (lambda: geometry.natural_parameters(GOOD, GOOD.T), "Y must have 3 columns like X. Found shape (3, 2)."),
        (lambda: geometry.expectation_parameters([[1, NAN]]), "finite and not negative. Found nan at row 0, column 1."),
        (
            lambda: geometry.expectation_parameters(0 * GOOD),
            "The sum of X, Y and Z must be finite and above 0. Found 0.",
        ),
        (lambda: geometry.expectation_parameters(1e308 * GOOD), "must be finite and above 0. Found inf. Rescale"),
        (
            lambda: geometry.expectations_factorize(0 * GOOD, GOOD, GOOD),
            "X must have a cell above 0, because U divides",
        ),
        (lambda: geometry.from_natural_parameters(L_SHAPED, (2, 2)), "NaN on the missing block and finite elsewhere"),
        (
            lambda: geometry.from_natural_parameters(L_SHAPED, (4, 3)),
            "around an X of shape (4, 3). Found shape (3, 4).",
        ),
        (lambda: geometry.from_natural_parameters([1.0], (1, 1)), "around an X of shape (1, 1). Found shape (1,)."),
        (
            lambda: geometry.from_expectation_parameters(L_SHAPED + 2, (2, 3)),
            "eta_11 must be 1, the sum of p. Found 2.",
        ),
        (
            lambda: geometry.from_expectation_parameters([[1.0, 0.2], [0.3, 0.5]], (2, 2)),
            "must not be negative. Found -0.3 at row 0, column 1. No triple has this eta",
        ),
        (lambda: geometry.marginals([[1, -2]]), "Cells of X must not be negative. Found -2 at row 0, column 1."),
        (lambda: geometry.marginals([[1e308, 1e308]]), "Sums of rows and columns must be finite. Found inf."),
        (
            lambda: geometry.conservation_gap(GOOD, [1, 1], [1, 1]),
            "h must hold one number for each of 3 columns. Found shape (2,)",
        ),
        (
            lambda: geometry.conservation_gap(GOOD, [1, -1], [1, 1, 1]),
            "w must be finite and not negative. Found -1 at row 1.",
        ),
        (
            lambda: geometry.conservation_gap(GOOD, [1, 1e300], [1, 1, 1e300]),
            "must be finite. Found inf. Divide X, and w",
        ),
        (
            lambda: geometry.conservation_gap(GOOD, [1, 1], [1, 1, 1], GOOD.T),
            "cell_weight must have the shape of X, (2, 3).",
        ),
    ],
    ids=itertools.count(),
)
def test_refusals(call, sentence):
    with pytest.raises(DataError) as caught:
        call()
    assert sentence in str(caught.value)


def test_a_total_is_a_number_above_0():
    for call in (geometry.from_natural_parameters, geometry.from_expectation_parameters):
        with pytest.raises(ParameterError, match="total must be a finite number above 0"):
            call([[1.0]], (1, 1), total=0)

"""Information geometry: the formulas of the paper, cell by cell, and what its propositions claim."""

import numpy as np
import pytest
from scipy import sparse

from halfseen import geometry, observe
from halfseen.errors import DataError, ParameterError
from halfseen.rankone import rank_one_nmmf

from . import oracle

NAN = np.nan

#: (I, J, N, M): with a missing block, without one, and at the edge.
SHAPES = [
    (3, 4, 2, 3), (2, 2, 1, 1), (1, 1, 2, 3), (3, 1, 2, 2), (1, 3, 2, 2), (3, 4, 2, 0), (3, 4, 0, 2), (3, 4, 0, 0),
]  # fmt: skip
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
def test_the_parameters_cell_by_cell_and_the_way_back(shape):
    data = triple(shape)
    p, total = distribution(*data), sum(part.sum() for part in data)
    theta, eta = geometry.natural_parameters(*data), geometry.expectation_parameters(*data)
    for cell, value in p.items():
        assert np.exp(sum(at(theta, other) for other in p if below(other, cell))) == pytest.approx(value, rel=1e-13)
        assert at(eta, cell) == pytest.approx(sum(p[other] for other in p if below(cell, other)), rel=1e-13)
    assert np.isnan(theta).sum() == np.isnan(eta).sum() == shape[2] * shape[3]
    assert eta[0, 0] == pytest.approx(1.0, abs=1e-15)
    assert geometry.one_body(eta).tolist() == [at(eta, cell) for cell in sorted(p) if 1 in cell]
    assert geometry.two_body(eta).tolist() == [at(eta, cell) for cell in sorted(p) if 1 not in cell]
    for back in (
        geometry.from_natural_parameters(theta, shape[:2], total=total),
        geometry.from_expectation_parameters(eta, shape[:2], total=total),
    ):
        for part, same in zip(back, data, strict=True):
            np.testing.assert_allclose(part, same, rtol=1e-12)


def test_theta_and_eta_under_scales_and_zeros():
    theta = geometry.natural_parameters(*triple((2, 3, 1, 2)))
    before = geometry.from_natural_parameters(theta, (2, 3))
    theta[0, 0] = 5.0
    for part, same in zip(geometry.from_natural_parameters(theta, (2, 3)), before, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-14)
    X, Y, Z = triple((2, 3, 1, 2))
    for scale in (1e-300, 1e300):
        scaled = geometry.natural_parameters(scale * X, scale * Y, scale * Z)
        np.testing.assert_allclose(scaled, geometry.natural_parameters(X, Y, Z), rtol=0, atol=1e-12)
    X[0, 1] = 0.0
    eta = geometry.expectation_parameters(sparse.csr_array(X), Y, Z)
    np.testing.assert_array_equal(eta, geometry.expectation_parameters(X, Y, Z))
    assert geometry.from_expectation_parameters(eta, (2, 3)).X[0, 1] == pytest.approx(0.0, abs=1e-16)


def moved(data, cell, by):
    """One cell of the triple, multiplied."""
    parts = [part.copy() for part in data]
    which, row, column = cell
    parts[which][row, column] *= by
    return parts


@every_shape
def test_both_conditions_hold_for_rank_one_and_notice_a_single_cell(shape):
    """Propositions 1 and 2 (corrected). Where no table of more than one line is left, every triple is of rank one."""
    data = rank_one_triple(shape)
    assert geometry.is_simultaneously_rank_one(*data)
    assert geometry.expectations_factorize(*data)
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
    product = np.where(np.isnan(eta), NAN, np.outer(eta[:, 0], eta[0]))
    return np.allclose(geometry.two_body(eta), geometry.two_body(product))


@every_shape
def test_where_proposition_2_holds_as_printed(shape):
    I, J, N, M = shape  # noqa: E741
    for seed in range(5):
        assert printed_condition(*rank_one_triple(shape, seed)) == (N == 0 or M == 0 or I == J == 1)


def test_zeros_tolerance_and_proposition_2_as_printed():
    """eta_22 = 1/4 = eta_21 eta_12, though the rows of X and Y are not proportional."""
    data = np.array([[0.25, 0.1]]), np.array([[0.25, 0.25]]), np.array([[0.15]])
    assert printed_condition(*data)
    assert not geometry.expectations_factorize(*data)
    assert not geometry.is_simultaneously_rank_one(*data)
    w, h, a, b = np.array([0.0, 1.0, 2.0]), np.array([3.0, 0.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 0.0])
    assert geometry.expectations_factorize(np.outer(w, h), np.outer(a, h), np.outer(w, b))
    assert not geometry.expectations_factorize([[1.0, 0.0], [0.0, 1.0]])
    data = moved(rank_one_triple((3, 4, 2, 3)), (0, 1, 1), 1.001)
    assert geometry.is_simultaneously_rank_one(*data, tol=1.01e-3)
    assert not geometry.is_simultaneously_rank_one(*data, tol=0.99e-3)
    assert geometry.expectations_factorize(*data, tol=1e-2)


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


def test_marginals_and_sums_of_zero():
    X, C = np.array([[1.0, NAN, 3.0], [0.0, 5.0, NAN]]), np.array([[2.0, 9.0, 1.0], [4.0, 0.5, 9.0]])
    for given in (X, X.astype(np.float32), X.tolist()):
        rows, columns = geometry.marginals(given)
        assert (rows.tolist(), columns.tolist()) == ([4.0, 5.0], [1.0, 5.0, 3.0])
    rows, columns = geometry.marginals(X, C)
    assert (rows.tolist(), columns.tolist()) == ([5.0, 2.5], [2.0, 2.5, 3.0])
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    assert geometry.conservation_gap(X, [0, 1], [1, 2]) == 0
    assert geometry.conservation_gap(X, [0.1, 1], [1, 2]) == 1
    assert geometry.conservation_gap(X, [0, 0], [1, 2]) == 1
    assert geometry.conservation_gap(0 * X, [0, 0], [1, 2]) == 0


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


GOOD = np.ones((2, 3))
L_SHAPED = np.where([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], NAN, 0.0)


WRONG = [("from_natural_parameters", "total", 0), ("from_expectation_parameters", "total", 0),
         ("is_simultaneously_rank_one", "tol", -1), ("expectations_factorize", "tol", NAN)]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "value"), WRONG)
def test_refused_parameters(call, name, value):
    with pytest.raises(ParameterError) as error:
        getattr(geometry, call)(*(([[1.0]], (1, 1)) if name == "total" else (GOOD,)), **{name: value})
    assert error.value.parameter == name


@pytest.mark.parametrize(("call", "arguments", "parameter", "found"), [
    ("natural_parameters", (GOOD, [[1, 0, 1]]), None, "0 at row 2, column 1"),
    ("natural_parameters", (GOOD, GOOD.T), "Y", "shape (3, 2)"),
    ("expectation_parameters", ([[1, NAN]],), "X", "nan at row 0, column 1"),
    ("expectation_parameters", (0 * GOOD,), None, "0"),
    ("expectation_parameters", (1e308 * GOOD,), None, "inf"),
    ("expectations_factorize", (0 * GOOD, GOOD, GOOD), "X", "only 0"),
    ("from_natural_parameters", (L_SHAPED, (2, 2)), None, "0 at row 2, column 2"),
    ("from_natural_parameters", (L_SHAPED, (4, 3)), "theta", "shape (3, 4)"),
    ("from_natural_parameters", ([1.0], (1, 1)), "theta", "shape (1,)"),
    ("from_expectation_parameters", (L_SHAPED + 2, (2, 3)), "eta", "2"),
    ("from_expectation_parameters", ([[1.0, 0.2], [0.3, 0.5]], (2, 2)), None, "-0.3 at row 0, column 1"),
    ("one_body", ([1.0],), "parameters", "shape (1,)"),
    ("marginals", ([[1, -2]],), "X", "-2 at row 0, column 1"),
    ("marginals", ([[1e308, 1e308]],), "X", "inf"),
    ("marginals", (observe(GOOD, unseen="zero"),), "X", 'unseen="zero"'),
    ("conservation_gap", (GOOD, [1, 1], [1, 1]), "h", "shape (2,)"),
    ("conservation_gap", (GOOD, [1, -1], [1, 1, 1]), "w", "-1 at row 1"),
    ("conservation_gap", (GOOD, [1, 1e300], [1, 1, 1e300]), "X", "inf"),
])  # fmt: skip
def test_refusals(call, arguments, parameter, found):
    with pytest.raises(DataError) as error:
        getattr(geometry, call)(*arguments)
    assert (error.value.parameter, f"{error.value.found} {error.value.where}".strip()) == (parameter, found)

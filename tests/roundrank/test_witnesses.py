"""Behind "open": other matrices with all seen levels; and the thesis's conditions, by trying all sets of seen cells."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from halfseen.roundrank import witnesses
from halfseen.roundrank.certainty import UniquenessProblem
from halfseen.roundrank.exact_rounding import exact_levels
from halfseen.roundrank.witnesses import LinearProgram
from tests.roundrank import oracle


def sides_of(W, H, thresholds, levels, mask, biases=False):
    return UniquenessProblem(W, H, thresholds, oracle.seen_codes(levels, mask), biases).sides


def with_biases(seed, n, m):
    rng = np.random.default_rng(seed)
    W = np.column_stack([rng.standard_normal((n, 2)), np.ones(n)])
    H = np.column_stack([rng.standard_normal(m), np.ones(m), rng.standard_normal(m)])
    thresholds = np.array([-1.0, 0.5, 1.5])
    return W, H, thresholds, np.searchsorted(thresholds, W @ H.T), rng.random((n, m)) < 0.7


def test_programs_without_an_optimum_do_not_spoil_the_others():
    bounded = LinearProgram(np.array([1.0, 1.0]), np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    unbounded = LinearProgram(np.array([1.0]), np.array([[-1.0]]), np.array([1.0]))
    impossible = LinearProgram(np.array([1.0]), np.array([[1.0], [-1.0]]), np.array([0.0, -1.0]))
    optima = witnesses.solve_linear_programs([bounded, unbounded, bounded, impossible, bounded])
    assert [optimum is None for optimum in optima] == [False, True, False, True, False]
    np.testing.assert_allclose(optima[4].z, [1.0, 1.0])
    np.testing.assert_allclose(bounded.A.T @ optima[0].multipliers, bounded.objective)


def test_a_factor_moves_as_far_as_a_linear_program_and_keeps_all_levels():
    W, H, thresholds, levels, mask = oracle.planted(0, (8, 7), 2, 4, 0.7)
    lower, upper = oracle.ends_of(levels, mask, thresholds)
    _, columns = sides_of(W, H, thresholds, levels, mask)
    u, i = np.nonzero(~mask)
    for row, column, v in zip(u, i, columns.maximize(i, W[u]), strict=True):
        seen = mask[:, column]
        left = np.vstack([W[seen], -W[seen]])
        right = np.concatenate([upper[seen, column], -lower[seen, column]])
        bounded = np.isfinite(right)
        truth = linprog(-W[row], A_ub=left[bounded], b_ub=right[bounded], bounds=(None, None))
        if truth.status == 3:  # without limit: as far as beyond the last threshold
            assert W[row] @ v > thresholds[-1]
        else:
            assert W[row] @ v == pytest.approx(-truth.fun, abs=1e-5)
        assert np.array_equal(np.ravel(oracle.levels_of(W[seen], [v], thresholds.tolist())), levels[seen, column])


@pytest.mark.parametrize("biases", [False, True])
def test_the_walk_stays_among_matrices_of_the_same_form_with_all_seen_levels(biases):
    planted = with_biases(3, 7, 6) if biases else oracle.planted(1, (7, 6), 2, 3, 0.7)
    *_, thresholds, levels, mask = planted
    unseen = []
    for rows, columns in witnesses.hit_and_run(*sides_of(*planted, biases), 30, np.random.RandomState(0)):
        here = np.array(oracle.levels_of(rows.own, columns.own, thresholds.tolist()))
        np.testing.assert_array_equal(here[mask], levels[mask])
        unseen.append(here[~mask])
        if biases:
            np.testing.assert_array_equal(rows.own[:, -1], 1.0)
            np.testing.assert_array_equal(columns.own[:, -2], 1.0)
    assert np.count_nonzero(np.ptp(unseen, axis=0)) > 3  # levels of unseen cells do change on the way


def test_row_and_column_together_reach_more_than_either_alone():
    """x11, x12, x21 in (1, 2], x22 unseen, rank one: 1/2 < x22 < 4. With u fixed at (1.1, 1.1) x22 = x12, in (1, 2]."""
    thresholds = np.array([0.6, 1.0, 2.0, 3.9])
    W, H = np.array([[1.1], [1.1]]), np.array([[1.1], [1.1]])
    rows, columns = sides_of(W, H, thresholds, np.full((2, 2), 2), np.array([[True, True], [True, False]]))
    cell = np.array([1])
    assert [exact_levels(W[cell], columns.maximize(cell, sign * W[cell]), thresholds)[0] for sign in (-1, 1)] == [2, 2]
    lowest, highest = witnesses.attained_levels(rows, columns, cell, cell)
    assert (lowest[0], highest[0]) == (1, 3)  # 1 / 1.21 and 4 / 1.21: only row 2 and column 2 move


def test_factors_that_miss_a_few_cells_are_repaired():
    W, H, thresholds, levels, mask = oracle.planted(5, (9, 9), 2, 3, 0.9)
    H = H.copy()
    H[2] *= 1.6
    rows, columns = sides_of(W, H, thresholds, levels, mask)
    assert 0 < rows.violations().size == columns.violations().size
    rows, columns = witnesses.repair(rows, columns)
    repaired = np.array(oracle.levels_of(rows.own, columns.own, thresholds.tolist()))
    np.testing.assert_array_equal(repaired[mask], levels[mask])
    np.testing.assert_array_equal(rows.own, W)  # a column was enough


@pytest.mark.parametrize(("rank", "some_hold"), [(1, True), (2, False)])
def test_the_conditions_of_the_thesis_are_those_of_the_best_set_of_seen_cells(rank, some_hold):
    """U_i = sum a_k U_k by every r seen rows of the column: the least sum |a_k|, and Eq. 3.12 with these r."""
    W, H, thresholds, levels, mask = oracle.planted(2, (10, 10), rank, 5, 0.6)
    lower, upper = oracle.ends_of(levels, np.ones_like(mask), thresholds)
    X = W @ H.T
    _, columns = sides_of(W, H, thresholds, levels, mask)
    u, i = np.nonzero(~mask)
    holds = 0
    for row, column, total, sufficient in zip(u, i, *witnesses.fixed_row_conditions(columns, W, u, i), strict=True):
        sets = [list(places) for places in itertools.combinations(np.flatnonzero(mask[:, column]), rank)]
        tried = [(np.linalg.solve(W[places].T, W[row]), places) for places in sets]
        if not tried:
            assert total == np.inf
            assert not sufficient
            continue
        a, best = min(tried, key=lambda one: np.abs(one[0]).sum())
        assert total == pytest.approx(np.abs(a).sum(), rel=1e-6)
        up, down = upper[best, column] - X[best, column], lower[best, column] - X[best, column]
        rise = np.sum(a * np.where(a > 0, up, down))
        fall = np.sum(a * np.where(a > 0, down, up))
        distance = min(X[row, column] - lower[row, column], upper[row, column] - X[row, column])
        assert sufficient == (distance >= max(rise, abs(fall)))
        holds += sufficient
    assert holds > 0 or not some_hold


def test_the_bound_of_the_thesis():
    assert witnesses.coefficient_bound(np.array([0.0, 1.0, 1.5, 4.0])) == pytest.approx(0.5 / 2.5)
    assert np.isnan(witnesses.coefficient_bound(np.array([0.5])))  # no interval has two ends

"""Behind "open": other matrices with all seen levels; and the thesis's conditions, by trying all sets of seen cells."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from halfseen.rank.uniqueness.answers import Question
from halfseen.rank.uniqueness.conditions import bound_of_sums, conditions_at
from halfseen.rank.uniqueness.exact_levels import exact_levels
from halfseen.rank.uniqueness.programs import Program, solved
from halfseen.rank.uniqueness.walks import walked
from halfseen.rank.uniqueness.witnesses import mended, reached
from tests.rank import certainty_oracle
from tests.rank.oracle import levels_of


def sides_of(W, H, thresholds, levels, mask, biases=False):
    seen = np.nonzero(mask)
    return Question(W, H, thresholds, coo_array((levels[seen] + 1, seen), shape=mask.shape), biases).sides


def with_biases(seed, n, m):
    rng = np.random.default_rng(seed)
    W = np.column_stack([rng.standard_normal((n, 2)), np.ones(n)])
    H = np.column_stack([rng.standard_normal(m), np.ones(m), rng.standard_normal(m)])
    thresholds = np.array([-1.0, 0.5, 1.5])
    return W, H, thresholds, np.searchsorted(thresholds, W @ H.T), rng.random((n, m)) < 0.7


def test_levels_are_exact_where_floats_are_not():
    W, H = np.array([[0.1, 0.2], [1.0, 1e-17], [1.0, -1e-17], [0.0, 0.0]]), np.ones((4, 2))
    thresholds = np.array([0.0, 0.3, 1.0])
    truth = [levels_of([w], [h], thresholds.tolist())[0][0] for w, h in zip(W, H, strict=True)]
    assert truth == [2, 3, 2, 0]
    np.testing.assert_array_equal(exact_levels(W, H, thresholds), truth)


def test_programs_without_an_optimum_do_not_spoil_the_others():
    bounded = Program(np.array([1.0, 1.0]), np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
    unbounded = Program(np.array([1.0]), np.array([[-1.0]]), np.array([1.0]))
    impossible = Program(np.array([1.0]), np.array([[1.0], [-1.0]]), np.array([0.0, -1.0]))
    found = solved([bounded, unbounded, bounded, impossible, bounded])
    assert [optimum is None for optimum in found] == [False, True, False, True, False]
    np.testing.assert_allclose(found[4].z, [1.0, 1.0])
    np.testing.assert_allclose(bounded.left.T @ found[0].multipliers, bounded.goal)


def test_a_pushed_factor_goes_as_far_as_a_linear_program_and_keeps_all_levels():
    W, H, thresholds, levels, mask = certainty_oracle.planted(0, (8, 7), 2, 4, 0.7)
    lower, upper = certainty_oracle.ends_of(levels, mask, thresholds)
    _, columns = sides_of(W, H, thresholds, levels, mask)
    u, i = np.nonzero(~mask)
    far = columns.pushed(i, W[u])
    for row, column, v in zip(u, i, far, strict=True):
        seen = mask[:, column]
        left = np.vstack([W[seen], -W[seen]])
        right = np.concatenate([upper[seen, column], -lower[seen, column]])
        bounded = np.isfinite(right)
        truth = linprog(-W[row], A_ub=left[bounded], b_ub=right[bounded], bounds=(None, None))
        if truth.status == 3:  # without limit: as far as beyond the last threshold
            assert W[row] @ v > thresholds[-1]
        else:
            assert W[row] @ v == pytest.approx(-truth.fun, abs=1e-5)
        assert np.array_equal(np.ravel(levels_of(W[seen], [v], thresholds.tolist())), levels[seen, column])


@pytest.mark.parametrize("biases", [False, True])
def test_the_walk_stays_among_matrices_of_the_same_form_with_all_seen_levels(biases):
    if biases:
        W, H, thresholds, levels, mask = with_biases(3, 7, 6)
    else:
        W, H, thresholds, levels, mask = certainty_oracle.planted(1, (7, 6), 2, 3, 0.7)
    moved = []
    start = sides_of(W, H, thresholds, levels, mask, biases)
    for rows, columns in walked(*start, 30, np.random.RandomState(0)):
        found = np.array(levels_of(rows.own, columns.own, thresholds.tolist()))
        np.testing.assert_array_equal(found[mask], levels[mask])
        moved.append(found[~mask])
        if biases:
            np.testing.assert_array_equal(rows.own[:, -1], 1.0)
            np.testing.assert_array_equal(columns.own[:, -2], 1.0)
    assert np.count_nonzero(np.ptp(moved, axis=0)) > 3  # levels of unseen cells do change on the way


def test_row_and_column_together_reach_more_than_either_alone():
    """x11, x12, x21 in (1, 2], x22 unseen, rank one: 1/2 < x22 < 4. With u fixed at (1.1, 1.1) x22 = x12, in (1, 2]."""
    thresholds = np.array([0.6, 1.0, 2.0, 3.9])
    W, H = np.array([[1.1], [1.1]]), np.array([[1.1], [1.1]])
    levels = np.array([[2, 2], [2, 2]])
    mask = np.array([[True, True], [True, False]])
    rows, columns = sides_of(W, H, thresholds, levels, mask)
    alone = [exact_levels(W[[1]], columns.pushed(np.array([1]), way * W[[1]]), thresholds)[0] for way in (-1, 1)]
    assert alone == [2, 2]
    lowest, highest = reached(rows, columns, np.array([1]), np.array([1]))
    assert (lowest[0], highest[0]) == (1, 3)  # 1 / 1.21 and 4 / 1.21: only row 2 and column 2 move


def test_factors_that_miss_a_few_cells_are_mended():
    W, H, thresholds, levels, mask = certainty_oracle.planted(5, (9, 9), 2, 3, 0.9)
    H = H.copy()
    H[2] *= 1.6
    rows, columns = sides_of(W, H, thresholds, levels, mask)
    assert 0 < rows.missed().size == columns.missed().size
    rows, columns = mended(rows, columns)
    found = np.array(levels_of(rows.own, columns.own, thresholds.tolist()))
    np.testing.assert_array_equal(found[mask], levels[mask])
    np.testing.assert_array_equal(rows.own, W)  # a column was enough


@pytest.mark.parametrize(("rank", "some_hold"), [(1, True), (2, False)])
def test_the_conditions_of_the_thesis_are_those_of_the_best_set_of_seen_cells(rank, some_hold):
    """U_i = sum a_k U_k by every r seen rows of the column: the least sum |a_k|, and Eq. 3.12 with these r."""
    W, H, thresholds, levels, mask = certainty_oracle.planted(2, (10, 10), rank, 5, 0.6)
    lower, upper = certainty_oracle.ends_of(levels, np.ones_like(mask), thresholds)
    X = W @ H.T
    _, columns = sides_of(W, H, thresholds, levels, mask)
    u, i = np.nonzero(~mask)
    found = conditions_at(columns, W, u, i)
    holds = 0
    for row, column, total, sufficient in zip(u, i, found.sums, found.sufficient, strict=True):
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
    assert bound_of_sums(np.array([0.0, 1.0, 1.5, 4.0])) == pytest.approx(0.5 / 2.5)
    assert np.isnan(bound_of_sums(np.array([0.5])))  # no interval has two ends

"""The proofs behind "forced": games by linear programs, independence by corners, rank one by signs and logarithms."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from halfseen.errors import DataError
from halfseen.roundrank.certainty import UniquenessProblem
from halfseen.roundrank.chains import rank_one_level_ranges
from halfseen.roundrank.exact_rounding import Intervals
from halfseen.roundrank.forcing import IntervalMatrix
from halfseen.roundrank.independence import are_independent, solve_matrix_games
from tests.roundrank import oracle


@pytest.mark.parametrize("rounded", [False, True])
def test_mixtures_are_those_of_linear_programs(rounded):
    payoffs = np.random.default_rng(0).normal(-0.3, 1.0, (40, 12, 3))
    payoffs = np.round(payoffs) if rounded else payoffs  # many ties
    mixtures = solve_matrix_games(payoffs)
    for A, basis, weights, value in zip(payoffs, mixtures.basis, mixtures.weights, mixtures.value, strict=True):
        n, size = A.shape
        truth = linprog(
            np.append(np.zeros(n), -1.0), A_ub=np.column_stack([-A.T, np.ones(size)]), b_ub=np.zeros(size),
            A_eq=[np.append(np.ones(n), 0.0)], b_eq=[1.0], bounds=[(0, None)] * n + [(None, None)],
        )  # fmt: skip
        assert value == pytest.approx(-truth.fun, abs=1e-9)
        y = np.zeros(n + size)
        y[basis] = weights
        assert (y[:n] @ A).min() == pytest.approx(value, abs=1e-9)
        assert y[:n].sum() == pytest.approx(1.0)


def closed(lower, upper):
    return Intervals(lower, upper, np.zeros(lower.shape, bool), np.zeros(upper.shape, bool))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_square_blocks_are_independent_if_no_corner_changes_the_sign_of_the_determinant(size):
    """The determinant is linear in every entry: its extremes over a box are at corners."""
    rng = np.random.default_rng(size)
    centre = rng.standard_normal((120, size, size))
    half = rng.exponential(0.15, centre.shape)
    lower, upper = centre - half, centre + half
    corners = np.array(list(itertools.product([False, True], repeat=size * size))).reshape(-1, size, size)
    determinants = np.array([np.linalg.det(np.where(corners, up, low)) for low, up in zip(lower, upper, strict=True)])
    truth = (determinants.min(axis=1) > 0) | (determinants.max(axis=1) < 0)
    assert 20 < truth.sum() < 100
    np.testing.assert_array_equal(are_independent(closed(lower, upper)), truth)


def test_wide_blocks_called_independent_are_so_wherever_one_looks():
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((200, 3, 6))
    lower, upper = centre - rng.exponential(0.4, centre.shape), centre + rng.exponential(0.4, centre.shape)
    lower[rng.random(lower.shape) < 0.1] = -np.inf
    upper[rng.random(upper.shape) < 0.1] = np.inf
    proved = are_independent(closed(lower, upper))
    assert 20 < proved.sum() < 180
    for low, up in zip(np.maximum(lower[proved], -50.0), np.minimum(upper[proved], 50.0), strict=True):
        share = np.concatenate([rng.random((100, 3, 6)), rng.integers(0, 2, (100, 3, 6))])
        assert np.linalg.svd(low + share * (up - low), compute_uv=False)[:, -1].min() > 1e-9


def test_rows_around_dependent_ones_are_never_called_independent():
    rng = np.random.default_rng(1)
    centre = rng.standard_normal((100, 3, 2)) @ rng.standard_normal((100, 2, 7))
    inside = closed(centre - rng.exponential(1e-9, centre.shape), centre + rng.exponential(1e-9, centre.shape))
    assert not are_independent(inside).any()
    twice = closed(np.round(centre), np.round(centre))[:, [0, 0, 1]]  # a row twice, exactly
    assert not are_independent(twice).any()


def test_open_ends_count():
    """x11 > 0, x12 > 0, x21 > 0, x22 <= 0: the determinant is below 0. With 0 allowed everywhere it may be 0."""
    lower, upper = np.array([[[0.0, 0.0], [0.0, -np.inf]]]), np.array([[[np.inf, np.inf], [np.inf, 0.0]]])
    is_open = np.array([[[True, True], [True, False]]])
    assert are_independent(Intervals(lower, upper, is_open, np.zeros_like(is_open))).all()
    for i, j in ((0, 0), (0, 1), (1, 0)):
        less = is_open.copy()
        less[0, i, j] = False
        determinant_can_vanish = (i, j) != (0, 0)  # x12 x21 > x11 x22 even for x11 = 0
        assert are_independent(Intervals(lower, upper, less, np.zeros_like(less)))[0] != determinant_can_vanish


def ranges(thresholds, levels, mask):
    hidden = np.nonzero(~mask)
    return hidden, *rank_one_level_ranges(oracle.seen_codes(levels, mask), thresholds, *hidden)


def test_rank_one_is_exact():
    """Against linear programs over all signs. Where an extreme is a threshold itself, its being open decides.

    Levels that are attained are inside the range, and those of forced cells are the whole of it.
    """
    cells = exact = n_open = 0
    for seed in range(25):
        W, H, thresholds, levels, mask = oracle.planted(seed, (3, 4), 1, 4, 0.75)
        lower, upper = oracle.ends_of(levels, mask, thresholds)
        without_zero = (lower >= 0) | (upper < 0)
        if not (without_zero.any(axis=0).all() and without_zero.any(axis=1).all()):
            continue
        least, most = oracle.ranges_at_rank_one(lower, upper)
        hidden, lowest, highest = ranges(thresholds, levels, mask)
        inside = [np.searchsorted(thresholds, each[hidden] + way * 1e-7) for each, way in ((least, 1), (most, -1))]
        outside = [np.searchsorted(thresholds, each[hidden] + way * 1e-7) for each, way in ((least, -1), (most, 1))]
        assert np.all(lowest <= inside[0])
        assert np.all(inside[1] <= highest)
        exact += np.count_nonzero((outside[0] <= lowest) & (highest == inside[1]))
        cells += lowest.size
        problem = UniquenessProblem(W, H, thresholds, oracle.seen_codes(levels, mask))
        decision = problem.decide(*hidden, 50, np.random.RandomState(0))
        n_open += np.count_nonzero(decision.lowest < decision.highest)
        assert np.all(outside[0] <= decision.lowest)
        assert np.all(outside[1] >= decision.highest)
        assert np.all((inside[0] == inside[1])[decision.forced])
    assert cells > 30
    assert exact == cells
    assert n_open > 5


def test_chains_of_any_length_count():
    """x00 = x01 x12 x20 / (x11 x22): its interval follows from five cells around."""
    thresholds = np.array([1.0, 2.0, 4.0, 8.0])
    levels, mask = np.full((3, 3), 0), np.zeros((3, 3), bool)
    for i, j, level in ((0, 1, 3), (1, 2, 3), (2, 0, 3), (1, 1, 1), (2, 2, 1)):  # in (4, 8] and in (1, 2]
        levels[i, j], mask[i, j] = level, True
    # x00 above 4^3 / 2^2 = 16; x22 in (2, 4]: above 4^3 / (2 * 4) = 8, itself excluded; x22 in (4, 8]: above 4
    for x22, expected in ((1, (4, 4)), (2, (4, 4)), (3, (3, 4))):
        levels[2, 2] = x22
        _, lowest, highest = ranges(thresholds, levels, mask)
        assert (lowest[0], highest[0]) == expected  # x00 is the first hidden cell


def test_ends_that_can_be_reached_are():
    """x11 in (2, 4], x12 and x21 at most -4: then x22 >= 4, and it may be 4, which is not above the threshold 4."""
    thresholds, mask = np.array([-4.0, 2.0, 4.0]), np.array([[True, True], [True, False]])
    _, lowest, highest = ranges(thresholds, np.array([[2, 0], [0, 0]]), mask)
    assert (lowest.tolist(), highest.tolist()) == ([2], [3])
    assert oracle.levels_of([[4.0], [-4.0]], [[1.0], [-1.0]], thresholds) == [[2, 0], [0, 2]]


def test_a_row_may_be_zero():
    """u1 v1 > 0, u2 v2 > 0, u1 v2 < 0, u3 v2 <= 0: then u3 v1 >= 0. It is above 0, or 0 with u3."""
    levels = np.array([[1, 0], [0, 1], [0, 0]])
    mask = np.array([[True, True], [True, True], [False, True]])
    _, lowest, highest = ranges(np.array([0.0]), levels, mask)
    assert (lowest.tolist(), highest.tolist()) == ([0], [1])
    for u3, level in ((0.0, 0), (1.0, 1)):
        possible = np.array(oracle.levels_of([[1.0], [-1.0], [u3]], [[1.0], [-1.0]], [0.0]))
        np.testing.assert_array_equal(possible[mask], levels[mask])
        assert possible[2, 0] == level


def test_levels_without_any_matrix_of_rank_one_are_refused():
    signs = np.array([[1, 1, 1], [1, 0, 0]]), np.array([0.0])  # x11 x22 = x12 x21 > 0, but x22 <= 0
    sizes = np.array([[3, 1, 1], [1, 3, 0]]), np.array([0.0, 1.0, 2.0])  # x11 x22 > 4, but x12 x21 <= 1
    mask = np.array([[True, True, True], [True, True, False]])
    for levels, thresholds in (signs, sizes):
        with pytest.raises(DataError, match="must be those of a matrix of rank 1"):
            ranges(thresholds, levels, mask)


def test_signs_alone_force_a_cell_at_rank_two():
    """Row 3 = a row 1 + b row 2. By columns 1 to 3 neither a nor b is negative, and one is above 0: so is the cell."""
    levels = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 1]])
    mask = np.ones((3, 4), bool)
    mask[2, 3] = False

    def is_forced(level, mask):
        seen = oracle.seen_codes(levels, mask)
        problem = UniquenessProblem(np.zeros((3, 2)), np.zeros((4, 2)), np.array([0.0]), seen)
        return problem.prove(np.array([2]), np.array([3]), np.array([level]), 10)[0].all()

    assert is_forced(1, mask)
    assert not is_forced(0, mask)
    for column in range(3):  # each of the three is needed
        less = mask.copy()
        less[:, column] = False
        assert not is_forced(1, less)


def test_a_cell_that_is_forced_twice_counts_once():
    matrix = IntervalMatrix.of(coo_array(([1, 2], ([0, 1], [0, 1])), shape=(3, 3)), np.array([0.0]), 2, False)
    more = matrix.with_levels(np.array([2, 2]), np.array([0, 0]), np.array([1, 1]))
    np.testing.assert_array_equal(more.codes.toarray(), [[1, 0, 0], [0, 2, 0], [2, 0, 0]])


def test_biases_are_known_ones():
    """x = b_i + c_j and one product more: with rank 3 alone less would be forced than with the ones of the biases."""
    n_forced = {True: 0, False: 0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        w, h = rng.integers(-2, 3, (8, 1)).astype(float), rng.integers(-2, 3, (8, 1)).astype(float)
        W = np.column_stack([w, rng.integers(-1, 2, 8), np.ones(8)])
        H = np.column_stack([h, np.ones(8), rng.integers(-1, 2, 8)])
        thresholds = np.arange(-3.0, 4.0) - 0.5
        levels = np.searchsorted(thresholds, W @ H.T)
        mask = rng.random((8, 8)) < 0.93
        u, i = np.nonzero(~mask)
        for biases in (True, False):
            problem = UniquenessProblem(W, H, thresholds, oracle.seen_codes(levels, mask), biases)
            n_forced[biases] += problem.prove(u, i, levels[u, i], 60)[0].sum()
            assert not problem.prove(u, i, (levels[u, i] + 1) % 8, 60)[0].any()
    assert n_forced[True] > n_forced[False]


def proofs(seed, shape, rank, n_thresholds, seen, kind):
    """The number of unseen cells, and of forced ones. No cell may be forced to a wrong level."""
    W, H, thresholds, levels, mask = oracle.planted(seed, shape, rank, n_thresholds, seen, kind)
    u, i = np.nonzero(~mask)
    problem = UniquenessProblem(W, H, thresholds, oracle.seen_codes(levels, mask))
    forced, forced_levels = problem.prove(u, i, levels[u, i], effort=40)
    np.testing.assert_array_equal(forced_levels[forced], levels[u, i][forced])
    if rank > 1:  # at rank one the level is computed, not given
        others = (levels[u, i] + 1 + seed % n_thresholds) % (n_thresholds + 1)
        assert not problem.prove(u, i, others, effort=40)[0].any()
    return u.size, np.count_nonzero(forced)


@pytest.mark.parametrize(
    ("cases", "shape", "rank", "n_thresholds", "seen", "kind", "share"),
    [
        (450, (6, 6), 1, 3, 0.7, "real", 0.1),
        (150, (9, 5), 1, 1, 0.6, "real", 0.1),
        (200, (5, 7), 1, 4, 0.6, "whole", 0.1),
        (60, (12, 12), 2, 3, 0.96, "real", 0.05),
        (40, (9, 14), 2, 5, 0.96, "real", 0.03),
        (60, (8, 8), 2, 4, 0.95, "whole", 0.05),
        (40, (7, 7), 3, 3, 0.9, "real", 0.0),
    ],
)
def test_a_thousand_planted_matrices(cases, shape, rank, n_thresholds, seen, kind, share):
    """A thousand in all. The last number is the share of the unseen cells that must be forced at least."""
    unseen, forced = np.sum([proofs(seed, shape, rank, n_thresholds, seen, kind) for seed in range(cases)], axis=0)
    assert unseen > cases
    assert forced >= share * unseen

"""The proofs behind "forced": games by linear programs, independence by corners, rank one by signs and logarithms."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from halfseen.errors import DataError
from halfseen.rank.uniqueness.answers import Question, proven
from halfseen.rank.uniqueness.chains import proven_levels
from halfseen.rank.uniqueness.games import best_mixtures
from halfseen.rank.uniqueness.independence import surely_independent
from halfseen.rank.uniqueness.intervals import Intervals
from tests.rank import certainty_oracle as oracle


@pytest.mark.parametrize("rounded", [False, True])
def test_mixtures_are_those_of_linear_programs(rounded):
    payoffs = np.random.default_rng(0).normal(-0.3, 1.0, (40, 12, 3))
    payoffs = np.round(payoffs) if rounded else payoffs  # many ties
    mixtures = best_mixtures(payoffs)
    for A, basis, weights, worst in zip(payoffs, *mixtures, strict=True):
        n, size = A.shape
        truth = linprog(
            np.append(np.zeros(n), -1.0), A_ub=np.column_stack([-A.T, np.ones(size)]), b_ub=np.zeros(size),
            A_eq=[np.append(np.ones(n), 0.0)], b_eq=[1.0], bounds=[(0, None)] * n + [(None, None)],
        )  # fmt: skip
        assert worst == pytest.approx(-truth.fun, abs=1e-9)
        y = np.zeros(n + size)
        y[basis] = weights
        assert (y[:n] @ A).min() == pytest.approx(worst, abs=1e-9)
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
    np.testing.assert_array_equal(surely_independent(closed(lower, upper)), truth)


def test_wide_blocks_called_independent_are_so_wherever_one_looks():
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((200, 3, 6))
    lower, upper = centre - rng.exponential(0.4, centre.shape), centre + rng.exponential(0.4, centre.shape)
    lower[rng.random(lower.shape) < 0.1] = -np.inf
    upper[rng.random(upper.shape) < 0.1] = np.inf
    sure = surely_independent(closed(lower, upper))
    assert 20 < sure.sum() < 180
    for low, up in zip(np.maximum(lower[sure], -50.0), np.minimum(upper[sure], 50.0), strict=True):
        share = np.concatenate([rng.random((100, 3, 6)), rng.integers(0, 2, (100, 3, 6))])
        assert np.linalg.svd(low + share * (up - low), compute_uv=False)[:, -1].min() > 1e-9


def test_rows_around_dependent_ones_are_never_called_independent():
    rng = np.random.default_rng(1)
    coefficients = rng.standard_normal((100, 3, 2))
    centre = coefficients @ rng.standard_normal((100, 2, 7))
    inside = closed(centre - rng.exponential(1e-9, centre.shape), centre + rng.exponential(1e-9, centre.shape))
    assert not surely_independent(inside).any()
    assert not surely_independent(
        closed(np.round(centre), np.round(centre))[:, [0, 0, 1]]
    ).any()  # a row twice, exactly


def test_open_ends_tell():
    """x11 > 0, x12 > 0, x21 > 0, x22 <= 0: the determinant is below 0. With 0 allowed everywhere it may be 0."""
    lower, upper = np.array([[[0.0, 0.0], [0.0, -np.inf]]]), np.array([[[np.inf, np.inf], [np.inf, 0.0]]])
    is_open = np.array([[[True, True], [True, False]]])
    assert surely_independent(Intervals(lower, upper, is_open, np.zeros_like(is_open))).all()
    for i, j in ((0, 0), (0, 1), (1, 0)):
        less = is_open.copy()
        less[0, i, j] = False
        determinant_can_vanish = (i, j) != (0, 0)  # x12 x21 > x11 x22 even for x11 = 0
        assert surely_independent(Intervals(lower, upper, less, np.zeros_like(less)))[0] != determinant_can_vanish


def question(W, H, thresholds, levels, mask, biases=False):
    seen = np.nonzero(mask)
    return Question(W, H, thresholds, coo_array((levels[seen] + 1, seen), shape=mask.shape), biases)


def proven_at_rank_one(thresholds, levels, mask):
    seen, hidden = np.nonzero(mask), np.nonzero(~mask)
    known = Intervals.of_levels(levels[seen], levels[seen], thresholds)
    return hidden, *proven_levels(seen, known, mask.shape, thresholds, hidden)


def test_rank_one_is_exact():
    """Against linear programs over all signs. Where an extreme is a threshold itself, its being open decides."""
    cells = exact = 0
    for seed in range(25):
        _, _, thresholds, levels, mask = oracle.planted(seed, (3, 4), 1, 4, 0.75)
        lower, upper = oracle.ends_of(levels, mask, thresholds)
        without_zero = (lower >= 0) | (upper < 0)
        if not (without_zero.any(axis=0).all() and without_zero.any(axis=1).all()):
            continue
        least, most = oracle.ranges_at_rank_one(lower, upper)
        hidden, lowest, highest = proven_at_rank_one(thresholds, levels, mask)
        inside = [np.searchsorted(thresholds, each[hidden] + way * 1e-7) for each, way in ((least, 1), (most, -1))]
        assert np.all(lowest <= inside[0])
        assert np.all(inside[1] <= highest)
        outside = np.searchsorted(thresholds, least[hidden] - 1e-7)
        exact += np.count_nonzero((outside <= lowest) & (highest == inside[1]))
        cells += lowest.size
    assert cells > 30
    assert exact == cells


def test_chains_of_any_length_count():
    """x00 = x01 x12 x20 / (x11 x22): its interval follows from five cells around."""
    thresholds = np.array([1.0, 2.0, 4.0, 8.0])
    levels = np.full((3, 3), 0)
    mask = np.zeros((3, 3), bool)
    for i, j, level in ((0, 1, 3), (1, 2, 3), (2, 0, 3), (1, 1, 1), (2, 2, 1)):  # in (4, 8] and in (1, 2]
        levels[i, j], mask[i, j] = level, True
    hidden, lowest, highest = proven_at_rank_one(thresholds, levels, mask)
    cell = next(place for place, (i, j) in enumerate(zip(*hidden, strict=True)) if (i, j) == (0, 0))
    assert (lowest[cell], highest[cell]) == (4, 4)  # above 4^3 / 2^2 = 16
    levels[2, 2] = 2  # in (2, 4]: above 4^3 / (2 * 4) = 8, itself excluded
    _, lowest, highest = proven_at_rank_one(thresholds, levels, mask)
    assert (lowest[cell], highest[cell]) == (4, 4)
    levels[2, 2] = 3
    _, lowest, highest = proven_at_rank_one(thresholds, levels, mask)
    assert (lowest[cell], highest[cell]) == (3, 4)


def test_ends_that_can_be_reached_are():
    """x11 in (2, 4], x12 and x21 at most -4: then x22 >= 4, and it may be 4, which is not above the threshold 4."""
    thresholds, mask = np.array([-4.0, 2.0, 4.0]), np.array([[True, True], [True, False]])
    _, lowest, highest = proven_at_rank_one(thresholds, np.array([[2, 0], [0, 0]]), mask)
    assert (lowest.tolist(), highest.tolist()) == ([2], [3])
    assert oracle_level(4.0 * np.outer([1, -1], [1, -1]), thresholds) == [[2, 0], [0, 2]]


def test_a_row_may_be_zero():
    """u1 v1 > 0, u2 v2 > 0, u1 v2 < 0, u3 v2 <= 0: then u3 v1 >= 0. It is above 0, or 0 with u3."""
    levels = np.array([[1, 0], [0, 1], [0, 0]])
    mask = np.array([[True, True], [True, True], [False, True]])
    _, lowest, highest = proven_at_rank_one(np.array([0.0]), levels, mask)
    assert (lowest.tolist(), highest.tolist()) == ([0], [1])
    for u3, level in ((0.0, 0), (1.0, 1)):
        found = np.array(oracle_level(np.outer([1, -1, u3], [1, -1]), [0.0]))
        np.testing.assert_array_equal(found[mask], levels[mask])
        assert found[2, 0] == level


def oracle_level(X, thresholds):
    return [[sum(tau < x for tau in thresholds) for x in row] for row in X]


def test_levels_without_any_matrix_of_rank_one_are_refused():
    signs = np.array([[1, 1, 1], [1, 0, 0]]), np.array([0.0])  # x11 x22 = x12 x21 > 0, but x22 <= 0
    sizes = np.array([[3, 1, 1], [1, 3, 0]]), np.array([0.0, 1.0, 2.0])  # x11 x22 > 4, but x12 x21 <= 1
    mask = np.array([[True, True, True], [True, True, False]])
    for levels, thresholds in (signs, sizes):
        with pytest.raises(
            DataError, match=r"matrix of rank 1, without noise\. Found that no such matrix .* Fit with more"
        ):
            proven_at_rank_one(thresholds, levels, mask)


def test_signs_alone_force_a_cell_at_rank_two():
    """Row 3 = a row 1 + b row 2. By columns 1 to 3 neither a nor b is negative, and one is above 0: so is the cell."""
    levels = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 1]])
    mask = np.ones((3, 4), bool)
    mask[2, 3] = False
    u, i = np.array([2]), np.array([3])
    ask = question(np.zeros((3, 2)), np.zeros((4, 2)), np.array([0.0]), levels, mask)
    for level, is_forced in ((1, True), (0, False)):
        assert proven(ask, u, i, np.array([level]), 10)[0].tolist() == [is_forced]
    for column in range(3):  # each of the three is needed
        less = mask.copy()
        less[:, column] = False
        ask = question(np.zeros((3, 2)), np.zeros((4, 2)), np.array([0.0]), levels, less)
        assert not proven(ask, u, i, np.array([1]), 10)[0].any()


def test_biases_are_known_ones():
    """x = b_i + c_j and one product more: with rank 3 alone less would be forced than with the ones of the biases."""
    with_ones = without = 0
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
            sure, _ = proven(question(W, H, thresholds, levels, mask, biases), u, i, levels[u, i], 60)
            wrong, _ = proven(question(W, H, thresholds, levels, mask, biases), u, i, (levels[u, i] + 1) % 8, 60)
            assert not wrong.any()
            with_ones, without = with_ones + biases * sure.sum(), without + (not biases) * sure.sum()
    assert with_ones > without

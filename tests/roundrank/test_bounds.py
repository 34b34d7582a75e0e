"""Bounds on the round-rank that hold, and meet where the rank is known; the thesis' claims; the epsilon-rank."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.sparse import eye_array

import halfseen as hs
from halfseen.errors import DataError, ParameterError
from halfseen.rank import approximation_errors, band, epsilon_rank, grf, identity, round_rank, triangular
from tests.roundrank import oracle


def ends(bounds):
    return bounds.lower, bounds.upper


def checked(Y, thresholds=None, **settings):
    """The bounds, after a check of the upper one with fractions."""
    bounds = round_rank(Y, thresholds, **settings)
    assert bounds.W.shape == (len(Y), bounds.upper)
    assert bounds.H.shape == (len(Y[0]), bounds.upper)
    assert np.all(np.diff(bounds.thresholds) > 0)
    if thresholds is not None:
        np.testing.assert_array_equal(bounds.thresholds, thresholds)
    assert oracle.levels_of(bounds.W, bounds.H, bounds.thresholds.tolist()) == np.asarray(Y).tolist()
    assert 0 <= bounds.lower <= bounds.upper
    assert bounds.exact == (bounds.lower == bounds.upper)
    return bounds


KNOWN = {
    "triangular": (triangular(50).Y, 1),
    "identity": (identity(50).Y, 2),
    "band of width 3": (band(50, 3).Y, 2),
    "band of width 10": (band(50, 10).Y, 2),
}


@pytest.mark.parametrize(("Y", "rank"), KNOWN.values(), ids=KNOWN)
def test_triangular_1_identity_2_band_2(Y, rank):
    for thresholds in (None, [0.5], [-2.0], [1e-9]):
        assert ends(checked(Y, thresholds)) == (rank, rank)
    random = np.random.default_rng(0)
    Y = Y[random.permutation(50)][:, random.permutation(50)]
    assert ends(round_rank(Y)) == ends(round_rank(1 - Y)) == ends(round_rank(Y, [0.5])) == (rank, rank)


def test_small_identities_and_the_threshold_0():
    """Small identities are outer products. With threshold 0 a triangle has rank 2, a large identity 3."""
    assert [round_rank(identity(n).Y).upper for n in (1, 2, 3)] == [0, 1, 2]
    assert ends(checked(triangular(20).Y, [0.0])) == (2, 2)
    assert ends(checked(identity(3).Y, [0.0])) == (2, 2)
    assert ends(checked(identity(20).Y, [0.0])) == (3, 3)


def test_constant_matrices():
    """0 with the right thresholds, else 1."""
    for level in range(4):
        bounds = checked(np.full((2, 3), level))
        assert ends(bounds) == (0, 0)
        assert bounds.thresholds.size == level
    for level, thresholds, rank in ((0, [0.0], 0), (1, [0.0], 1), (1, [-1.0, 0.0], 0), (2, [-1.0, 0.0], 1), (0, [], 0)):
        assert ends(checked(np.full((2, 3), level), thresholds)) == (rank, rank)


levels = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**32 - 1)).map(
    lambda drawn: np.random.default_rng(drawn[3]).integers(0, drawn[2] + 1, drawn[:2])
)


@given(levels, st.lists(st.integers(-3, 3), min_size=3, max_size=4, unique=True).map(sorted))
@settings(deadline=None, max_examples=60)
def test_bounds_of_random_matrices_are_in_their_order(Y, thresholds):
    free, fixed = checked(Y, n_init=2), checked(Y, thresholds, n_init=2)
    assert free.lower <= fixed.upper  # more thresholds to choose from can't make the rank larger
    assert free.upper <= min(Y.shape)
    turned = round_rank(Y.T, thresholds, n_init=2)
    assert max(turned.lower, fixed.lower) <= min(turned.upper, fixed.upper)  # Eq. A.2


@given(levels.map(lambda Y: np.minimum(Y, 1)), st.integers(-1, 1))
@settings(deadline=None, max_examples=40)
def test_lemma_2_1_1_one_threshold_makes_a_difference_of_one_at_most(Y, tau):
    free, fixed = checked(Y, n_init=2), checked(Y, [tau], n_init=2)
    assert fixed.lower <= free.upper + 1
    if free.upper <= 1:
        assert fixed.upper <= free.upper + 1


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_no_lower_bound_is_above_the_rank_that_was_planted(data):
    """Small whole numbers: many cells are on thresholds, many factors are 0."""
    rank = data.draw(st.integers(0, 3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    W, H = random.integers(-2, 3, (20, rank)), random.integers(-2, 3, (12, rank))
    thresholds = data.draw(st.lists(st.integers(-4, 4), min_size=1, max_size=3, unique=True).map(sorted))
    Y = oracle.levels_of(W, H, thresholds)
    assert checked(Y, thresholds, search=False).lower <= rank
    assert checked(Y, search=False).lower <= rank


@pytest.mark.parametrize(("n", "n_thresholds", "rank"), [(10, 5, 2), (30, 1, 2), (30, 3, 2), (20, 2, 3), (12, 4, 1)])
def test_planted_factors_are_matched_by_the_search(n, n_thresholds, rank):
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = random.standard_normal((n, rank)) @ random.standard_normal((rank, n))
        thresholds = np.quantile(X, np.arange(1, n_thresholds + 1) / (n_thresholds + 1))
        Y = np.searchsorted(thresholds, X)
        assert checked(Y).upper <= rank
        assert checked(Y, thresholds).upper <= rank


def test_repeated_rows_and_columns_count_once_and_skipped_levels_do_not_matter():
    Y = np.random.default_rng(5).integers(0, 3, (5, 4))
    repeated = np.repeat(np.repeat(Y, 3, axis=0), 2, axis=1)[np.random.default_rng(0).permutation(15)]
    assert ends(checked(Y)) == ends(checked(repeated))
    Y = np.random.default_rng(3).integers(0, 3, (6, 6))
    skipped = checked(np.array([2, 3, 7])[Y])
    assert ends(checked(Y)) == ends(skipped)
    assert skipped.thresholds.size == 7


def test_a_hadamard_matrix_is_bounded_by_forster():
    bounds = checked(hadamard(64) > 0, search=False)
    assert bounds.lower >= 7
    assert "Forster" in bounds.why_lower
    # [[1, 0], [0, 0]] has sign-rank 2 and bound 2, but 0 counts as below: an outer product rounds to it
    Y = [[1, 0], [0, 0]]
    assert hs.rank.forster_bound(Y) == 2
    assert ends(checked(Y, [0.0])) == (1, 1)


def test_the_search_narrows_the_bounds_and_is_repeatable():
    Y = np.random.default_rng(1).integers(0, 2, (12, 12))
    quick, thorough = checked(Y, search=False), checked(Y, n_init=1)
    assert quick.lower == thorough.lower
    assert quick.upper > thorough.upper
    first, second = (round_rank(Y, n_init=1, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.W, second.W)
    np.testing.assert_array_equal(first.H, second.H)


def test_bounds_give_their_reasons():
    assert str(round_rank(identity(5).Y)) == (
        "Round-rank 2. No outer product rounds to Y: the signs or the sizes of its factors would contradict each "
        "other. The ones of Y are runs, in some order."
    )
    assert str(round_rank(identity(20).Y, [0.0], search=False)).startswith("Round-rank 3. No products of vectors in")
    assert str(round_rank(np.random.default_rng(1).integers(0, 2, (12, 12)), search=False)).startswith(
        "Round-rank from 3 to "
    )


@pytest.mark.parametrize(
    ("Y", "found", "where"),
    [
        ([[0, 1], [np.nan, 1]], "NaN", "at row 1, column 0"),
        ([[0, 1], [0.5, 1]], "0.5", "at row 1, column 0"),
        ([[0, -1]], "-1", "at row 0, column 1"),
        ([[0, np.inf]], "inf", "at row 0, column 1"),
        ([[0, 3]], "3", "at row 0, column 1"),
        (eye_array(3), "a sparse matrix", ""),
    ],
)
def test_a_cell_without_a_level_is_named(Y, found, where):
    with pytest.raises(DataError) as error:
        round_rank(Y, [0.0, 1.0])
    assert (error.value.parameter, error.value.found, error.value.where) == ("Y", found, where)


def test_bad_parameters_are_named():
    largest = np.finfo(float).max  # no number above it
    bad = [("n_init", 0), ("search", "yes"), ("random_state", "x"), ("thresholds", [1, 0]), ("thresholds", [largest])]
    for name, value in bad:
        with pytest.raises(ParameterError, match=f"^{name} must"):
            round_rank([[0, 1, 0], [1, 0, 0], [0, 0, 1]], **{name: value})


# The thesis' claims: what holds is shown, and what does not is refuted by an example.


def test_theorem_2_1_1_as_printed():
    assert hs.rank.bound_for_any_thresholds(3, 1) == 4  # Remark 2.1.1: one more, with one threshold
    assert hs.rank.bound_for_any_thresholds(2, 5) == 11
    assert hs.rank.bound_for_any_thresholds(0, 4) == 1  # a constant matrix
    for rank, n_thresholds, name in ((2, 0, "n_thresholds"), (-1, 2, "rank")):
        with pytest.raises(ParameterError, match=f"^{name} must be a whole number"):
            hs.rank.bound_for_any_thresholds(rank, n_thresholds)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-5, 5), min_size=2, max_size=2, unique=True).map(sorted))
@settings(deadline=None, max_examples=30)
def test_two_thresholds_cost_one_column_at_most(seed, thresholds):
    """k X + c, with k > 0, moves two thresholds anywhere: less than Theorem 2.1.1 asks for."""
    Y = np.random.default_rng(seed).integers(0, 3, (4, 5))
    free = round_rank(Y, n_init=1)
    assert round_rank(Y, thresholds, n_init=1).lower <= free.upper + 1


def test_lemma_2_1_2_thresholds_can_be_scaled_by_a_positive_number():
    Y = np.random.default_rng(4).integers(0, 3, (4, 4))
    for thresholds in ([-1.0, 2.0], [1.0, 3.0], [0.0, 1.0]):
        plain = checked(Y, thresholds, n_init=1)
        for scale in (1e-6, 2.0**20):
            scaled = checked(Y, [scale * tau for tau in thresholds], n_init=1)
            assert max(plain.lower, scaled.lower) <= min(plain.upper, scaled.upper)
    # but not by a negative one: 0 rounds to ones with threshold -1, not with threshold 1 = -1 * -1
    assert round_rank(np.ones((2, 2)), [-1.0]).upper == 0
    assert round_rank(np.ones((2, 2)), [1.0]).lower == 1


def test_a_round_rank_may_be_larger_than_the_linear_rank():
    """With thresholds between the levels it is not: Y itself rounds to Y. With others, zeros have linear rank 0."""
    assert round_rank(np.zeros((2, 2)), [0.5]).upper == 0
    assert round_rank(np.zeros((2, 2)), [-0.5]).lower == 1


def disjoint_outer_products():
    """A and B, each rounded from an outer product with threshold 1, of which the sum has all rows of 0 and 1."""
    rows_a = {(0, 0, 0): 0.0, (1, 0, 0): 0.8, (1, 1, 0): 1.5, (0, 0, 1): -1.5}
    rows_b = {(0, 0, 0): 0.0, (0, 1, 0): 0.8, (0, 1, 1): 1.5, (1, 0, 0): -1.5}
    va, vb = np.array([2.0, 1.0, -1.0]), np.array([-1.0, 2.0, 1.0])
    rows = {}
    for (a, ua), (b, ub) in itertools.product(rows_a.items(), rows_b.items()):
        if all(x + y <= 1 for x, y in zip(a, b, strict=True)):
            rows[tuple(x + y for x, y in zip(a, b, strict=True))] = (ua, ub)
    u = np.array(list(rows.values()))
    return grf(np.outer(u[:, 0], va), [1.0]), grf(np.outer(u[:, 1], vb), [1.0]), np.array(list(rows))


def test_equation_A3_does_not_hold():
    """GRR(A + B) <= GRR(A) + GRR(B) fails: numbers that are each below a threshold may add up to one above it."""
    A, B, total = disjoint_outer_products()
    np.testing.assert_array_equal(A + B, total)
    assert len(total) == 8
    for thresholds in (None, [1.0]):
        assert [round_rank(Y, thresholds).upper for Y in (A, B)] == [1, 1]
        assert round_rank(A + B, thresholds).lower == 3


@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
@settings(deadline=None, max_examples=30)
def test_lemma_A3_some_thresholds_ask_for_less(seed, left_out):
    """Leaving out a threshold merges two levels; the factors stay what they are."""
    thresholds = [-1.0, 0.5, 2.0]
    Y = np.random.default_rng(seed).integers(0, 4, (4, 4))
    merged = Y - np.greater(Y, left_out)
    bounds = round_rank(Y, thresholds, n_init=1)
    others = thresholds[:left_out] + thresholds[left_out + 1 :]
    assert oracle.levels_of(bounds.W, bounds.H, others) == merged.tolist()
    assert round_rank(merged, others, n_init=1).lower <= bounds.upper


def test_theorem_2_2_1_does_not_hold():
    """k different rows with two columns of ones, different elsewhere: the linear rank may be less than k."""
    bits = np.array(list(itertools.product([0, 1], repeat=3)))
    Y = np.hstack([np.ones((8, 2)), bits, bits])
    Y = np.vstack([Y, [1, 0, *np.zeros(6)]])
    assert len(np.unique(Y[:8], axis=0)) == 8
    assert oracle.linear_rank(Y) == 5


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_lemmas_A5_and_A6_thresholds_add_up_as_the_factors_do(seed):
    """The columns of both factorizations together round to Y with the sums of the thresholds, or with their means."""
    Y = np.random.default_rng(seed).integers(0, 3, (4, 4))
    one, other = (round_rank(Y, thresholds, n_init=1) for thresholds in ([-1.0, 2.0], [0.5, 0.75]))
    W, H = np.hstack([one.W, other.W]), np.hstack([one.H, other.H])
    total = one.thresholds + other.thresholds
    assert oracle.levels_of(W, H, total.tolist()) == Y.tolist()
    assert oracle.levels_of(W / 2, H, (total / 2).tolist()) == Y.tolist()


def rotated(values, shape, seed=0):
    """A matrix of given singular values."""
    random = np.random.default_rng(seed)
    left, right = (np.linalg.qr(random.standard_normal((size, len(values))))[0] for size in shape)
    return left @ np.diag(values) @ right.T


def test_errors_are_sums_of_squares_of_the_singular_values_left_out():
    X = rotated([5.0, 3.0, 1.0], (6, 4))
    np.testing.assert_allclose(approximation_errors(X), [35.0, 10.0, 1.0, 0.0, 0.0], atol=1e-12)
    assert approximation_errors(X)[-1] == 0


def test_no_approximation_is_better_than_these():
    """Alternating least squares, without singular values, comes down to the same errors."""
    random = np.random.default_rng(1)
    X = random.standard_normal((8, 6))
    for rank, error in enumerate(approximation_errors(X)[1:], start=1):
        H = random.standard_normal((6, rank))
        for _ in range(500):
            W = np.linalg.lstsq(H, X.T, rcond=None)[0].T
            H = np.linalg.lstsq(W, X, rcond=None)[0].T
        assert np.sum((X - W @ H.T) ** 2) == pytest.approx(error, abs=1e-8)


@pytest.mark.parametrize("n", [1, 7, 50])
def test_the_identity_is_worth_as_much_as_its_size(n):
    """n - k is the error of rank k (section 2.2.2): at eps = n - k exactly, whatever the rounding, k will do."""
    np.testing.assert_allclose(approximation_errors(np.eye(n)), n - np.arange(n + 1), atol=1e-12)
    turned = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    for k in range(n):
        assert epsilon_rank(np.eye(n), n - k) == epsilon_rank(turned, n - k) == k
        assert epsilon_rank(turned, n - k - 1e-9) == k + 1


def test_without_an_error_it_is_the_linear_rank():
    assert epsilon_rank(rotated([1.0, 1e-3, 1e-8], (9, 7)), 0) == 3
    assert epsilon_rank(rotated([1.0, 1e-3, 1e-8], (9, 7)), 1e-15) == 2
    assert epsilon_rank(np.outer([1.0, 2.0, 3.0], [0.1, 0.7]), 0) == 1
    assert epsilon_rank(np.zeros((3, 2)), 0) == 0
    for seed in range(5):
        X = np.random.default_rng(seed).integers(-1, 2, (7, 5))
        assert epsilon_rank(X, 0) == np.linalg.matrix_rank(X)


def test_numbers_must_be_finite_and_eps_not_negative():
    for X, where in (([[1.0], [np.nan]], "at row 1, column 0"), ([[1.0, np.inf]], "at row 0, column 1")):
        with pytest.raises(DataError) as error:
            approximation_errors(X)
        assert (error.value.parameter, error.value.where) == ("X", where)
    with pytest.raises(ParameterError, match="eps must"):
        epsilon_rank([[1.0]], -1)

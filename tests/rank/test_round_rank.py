"""Bounds on the round-rank that hold, and meet where the rank is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

import halfseen as hs
from halfseen.errors import DataError, ParameterError
from halfseen.rank import band, identity, round_rank, rounds_to, triangular
from tests.rank import oracle


def bounds(found):
    return found.lower, found.upper


def checked(Y, thresholds=None, **settings):
    """The bounds, after a look at the proof of the upper one in fractions."""
    found = round_rank(Y, thresholds, **settings)
    assert found.W.shape == (len(Y), found.upper)
    assert found.H.shape == (len(Y[0]), found.upper)
    assert np.all(np.diff(found.thresholds) > 0)
    if thresholds is not None:
        np.testing.assert_array_equal(found.thresholds, thresholds)
    assert oracle.levels_of(found.W, found.H, found.thresholds.tolist()) == np.asarray(Y).tolist()
    assert 0 <= found.lower <= found.upper
    assert found.exact == (found.lower == found.upper)
    return found


KNOWN = {
    "triangular": (triangular(50), 1),
    "identity": (identity(50), 2),
    "band of width 3": (band(50, 3), 2),
    "band of width 10": (band(50, 10), 2),
}


@pytest.mark.parametrize(("made", "rank"), KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("thresholds", [None, [0.5], [-2.0], [1e-9]])
def test_triangular_1_identity_2_band_2(made, rank, thresholds):
    assert bounds(checked(made.Y, thresholds)) == (rank, rank)


@pytest.mark.parametrize(("made", "rank"), KNOWN.values(), ids=KNOWN)
def test_whatever_the_order_of_rows_and_columns(made, rank):
    random = np.random.default_rng(0)
    Y = made.Y[random.permutation(50)][:, random.permutation(50)]
    assert bounds(round_rank(Y)) == bounds(round_rank(1 - Y)) == bounds(round_rank(Y, [0.5])) == (rank, rank)


def test_small_identities_are_outer_products():
    assert [round_rank(identity(n).Y).upper for n in (1, 2, 3)] == [0, 1, 2]


def test_with_the_threshold_0_a_triangle_has_rank_2_and_a_large_identity_at_most_3():
    assert bounds(checked(triangular(20).Y, [0.0])) == (2, 2)
    assert bounds(checked(identity(3).Y, [0.0])) == (2, 2)
    assert checked(identity(20).Y, [0.0]).upper == 3


def test_constant_matrices():
    """0 with the right thresholds, else 1."""
    for level in range(4):
        found = checked(np.full((2, 3), level))
        assert bounds(found) == (0, 0)
        assert found.thresholds.size == level
    assert bounds(checked(np.zeros((2, 3), int), [0.0])) == (0, 0)
    assert bounds(checked(np.ones((2, 3), int), [0.0])) == (1, 1)
    assert bounds(checked(np.ones((2, 3), int), [-1.0, 0.0])) == (0, 0)
    assert bounds(checked(np.full((2, 3), 2), [-1.0, 0.0])) == (1, 1)
    assert bounds(checked(np.zeros((2, 3), int), [])) == (0, 0)


levels = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**32 - 1)).map(
    lambda drawn: np.random.default_rng(drawn[3]).integers(0, drawn[2] + 1, drawn[:2])
)


@given(levels, st.lists(st.integers(-3, 3), min_size=3, max_size=4, unique=True).map(sorted))
@settings(deadline=None, max_examples=60)
def test_bounds_of_random_matrices_are_in_their_order(Y, thresholds):
    free, given_ones = checked(Y, n_init=2), checked(Y, thresholds, n_init=2)
    assert free.lower <= given_ones.upper  # more thresholds to choose from can't make the rank larger
    assert free.upper <= min(Y.shape)
    turned = round_rank(Y.T, thresholds, n_init=2)
    assert max(turned.lower, given_ones.lower) <= min(turned.upper, given_ones.upper)  # Eq. A.2


@given(levels.map(lambda Y: np.minimum(Y, 1)), st.integers(-1, 1))
@settings(deadline=None, max_examples=40)
def test_one_threshold_makes_a_difference_of_one_at_most(Y, tau):
    free, given_one = checked(Y, n_init=2), checked(Y, [tau], n_init=2)
    assert given_one.lower <= free.upper + 1  # Lemma 2.1.1
    if free.upper <= 1:
        assert given_one.upper <= free.upper + 1


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
@pytest.mark.parametrize("seed", range(3))
def test_planted_factors_are_matched_by_the_search(n, n_thresholds, rank, seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, rank)) @ random.standard_normal((rank, n))
    thresholds = np.quantile(X, np.arange(1, n_thresholds + 1) / (n_thresholds + 1))
    Y = np.searchsorted(thresholds, X)
    assert checked(Y).upper <= rank
    assert checked(Y, thresholds).upper <= rank


def test_repeated_rows_and_columns_count_once():
    Y = np.random.default_rng(5).integers(0, 3, (5, 4))
    repeated = np.repeat(np.repeat(Y, 3, axis=0), 2, axis=1)[np.random.default_rng(0).permutation(15)]
    once, often = checked(Y), checked(repeated)
    assert bounds(once) == bounds(often)


def test_skipped_levels_do_not_matter_for_free_thresholds():
    Y = np.random.default_rng(3).integers(0, 3, (6, 6))
    plain, skipped = checked(Y), checked(np.array([2, 3, 7])[Y])
    assert bounds(plain) == bounds(skipped)
    assert skipped.thresholds.size == 7


def test_lemma_2_1_2_thresholds_can_be_scaled_by_a_positive_number():
    Y = np.random.default_rng(4).integers(0, 3, (4, 4))
    for thresholds in ([-1.0, 2.0], [1.0, 3.0], [0.0, 1.0]):
        plain = checked(Y, thresholds, n_init=1)
        for scale in (1e-6, 2.0**20):
            scaled = checked(Y, [scale * tau for tau in thresholds], n_init=1)
            assert max(plain.lower, scaled.lower) <= min(plain.upper, scaled.upper)


def test_a_hadamard_matrix_is_bounded_by_forster():
    found = checked(hadamard(64) > 0, search=False)
    assert found.lower >= 7
    assert "Forster" in found.why_lower


def test_the_threshold_0_lowers_forsters_bound_by_one_as_well():
    """[[1, 0], [0, 0]] has sign-rank 2 and bound 2, but 0 counts as below: an outer product rounds to it."""
    Y = [[1, 0], [0, 0]]
    assert hs.rank.forster_bound(Y) == 2
    assert bounds(checked(Y, [0.0])) == (1, 1)


def test_without_a_search_the_bounds_hold_but_may_be_wider():
    Y = np.random.default_rng(1).integers(0, 2, (12, 12))
    quick, thorough = checked(Y, search=False), checked(Y, n_init=1)
    assert quick.lower == thorough.lower
    assert quick.upper > thorough.upper


def test_the_same_seed_gives_the_same_factors():
    Y = np.random.default_rng(1).integers(0, 2, (12, 12))
    first, second = (round_rank(Y, n_init=1, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.W, second.W)
    np.testing.assert_array_equal(first.H, second.H)


def test_it_says_what_it_found():
    assert str(round_rank(identity(5).Y)) == (
        "Round-rank 2. No outer product rounds to Y: the signs or the sizes of its factors would contradict each "
        "other. The ones of Y are runs, in some order."
    )
    assert str(round_rank(identity(20).Y, [0.0], search=False)).startswith("Round-rank from 2 to 3.")


def test_lists_booleans_and_frames_are_read():
    pandas = pytest.importorskip("pandas")
    for Y in ([[1, 0], [1, 1]], np.array([[True, False], [True, True]]), pandas.DataFrame([[1.0, 0.0], [1.0, 1.0]])):
        found = round_rank(Y)
        assert bounds(found) == (1, 1)
        assert rounds_to(found.W, found.H, found.thresholds, Y)


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        ([[0, 1], [np.nan, 1]], r"Levels must be known everywhere\. Found NaN at row 1, column 0\. Leave out its row"),
        ([[0, 1], [0.5, 1]], r"Levels must be whole numbers from 0 to 1000000\. Found 0\.5 at row 1, column 0\. Round"),
        ([[0, -1]], r"Levels must be whole numbers from 0 .* Found -1 at row 0, column 1\."),
        ([[0, np.inf]], r"Levels must be whole numbers from 0 .* Found inf at row 0, column 1\."),
        ([[0, 3]], r"Levels must be 0 to 2, as there are 2 thresholds\. Found 3 at row 0, column 1\. Give more"),
        ([[]], "0 feature"),
        ([1, 2], "Expected 2D array"),
        ([["a", "b"]], "Values must be numbers"),
    ],
)
def test_what_are_no_levels_is_named(Y, sentence):
    with pytest.raises(DataError, match=sentence):
        round_rank(Y, [0.0, 1.0])


def test_a_sparse_matrix_must_be_made_dense():
    from scipy.sparse import eye_array

    with pytest.raises(DataError, match=r"Found a sparse matrix\. Pass Y\.toarray\(\)"):
        round_rank(eye_array(3))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"thresholds": [1, 0]}, "thresholds must be rising numbers"),
        ({"n_init": 0}, "n_init must be a whole number of at least 1"),
        ({"search": "yes"}, "search must be True or False"),
        ({"random_state": "x"}, "random_state must be"),
        ({"thresholds": [1.7976931348623157e308]}, "thresholds must leave room"),
    ],
)
def test_bad_parameters_are_named(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        round_rank([[0, 1, 0], [1, 0, 0], [0, 0, 1]], **settings)

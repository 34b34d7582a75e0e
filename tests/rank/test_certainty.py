"""`hs.rank.certainty`: what it says of small matrices that can be thought through, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array
from sklearn.exceptions import NotFittedError

import halfseen as hs
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.rank.uniqueness.forcing import Sheet

nan = np.nan

#: At rank one, x22 = x12 x21 / x11.
GEOMETRIC = [1.0, 2.0, 4.0, 8.0]


def model_of(W, H, thresholds, Y, **more):
    """A model with these factors: where its fit got to does not matter here."""
    levels = range(len(thresholds) + 1)
    more = {"levels": levels, "biases": False, "random_state": 0, "max_iter": 1, "tol": 0.0, **more}
    model = hs.RoundMF(len(W[0]), loss="round", thresholds=thresholds, **more).fit(Y)
    model.W_, model.H_ = np.array(W, dtype=float), np.array(H, dtype=float)
    return model


@pytest.mark.parametrize(
    ("u", "v", "Y", "verdict", "lowest", "highest"),
    [
        ([1, 4], [1.5, 6], [[1, 3], [3, nan]], "forced", 4, 4),  # above 4 * 4 / 2 = 8
        ([1, 2], [1.5, 1.5], [[1, 1], [2, nan]], "open", 1, 3),  # from 1 * 2 / 2 = 1 to 2 * 4 / 1 = 8
        ([1, 0.15], [10, 1.5], [[4, 1], [1, nan]], "forced", 0, 0),  # at most 2 * 2 / 8
        ([1, 0.15], [10, 10], [[4, 4], [1, nan]], "open", 0, 4),  # from 0 on, without end
    ],
)
def test_a_cell_of_two_by_two(u, v, Y, verdict, lowest, highest):
    W, H = np.array(u)[:, None], np.array(v)[:, None]
    found = hs.rank.certainty(model_of(W, H, GEOMETRIC, Y), Y)
    assert found.verdict.tolist() == [verdict]
    assert lowest <= found.lowest[0] <= found.level[0] <= found.highest[0] <= highest
    assert (found.lowest[0] < found.highest[0]) == (verdict == "open")


def test_signs_at_threshold_zero():
    """u1, u2, v1, v2, v4 > 0, but of u3 and v3 it is only known that they are at most 0: x33 = 0 would be level 0."""
    Y = np.array([[1, 1, 0, 1], [1, nan, 0, nan], [0, 0, nan, nan]])
    found = hs.rank.certainty(model_of([[1], [1], [-1]], [[1], [1], [-1], [1]], [0.0], Y), Y)
    assert list(zip(found.rows, found.columns, found.lowest, strict=True)) == [
        (1, 1, 1),
        (1, 3, 1),
        (2, 2, 1),
        (2, 3, 0),
    ]
    assert (found.verdict == "forced").tolist() == [True, True, False, True]


def test_a_cell_forced_by_signs_at_rank_two():
    """Row 3 is a combination of rows 1 and 2 with coefficients that can't be negative: see the test of the proofs."""
    Y = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, nan]])
    W, H = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, -2.0], [-2.0, 1.0], [1.0, 1.0]]
    found = hs.rank.certainty(model_of(W, H, [0.0], Y), Y)
    assert (found.verdict.tolist(), found.lowest.tolist()) == (["forced"], [1])
    assert np.isnan(found.bound)
    more = np.vstack([Y, [[1, nan, 0, 1]]])  # row 4 = a row 1 + b row 2, and with a large a it is above 0 in column 2
    found = hs.rank.certainty(model_of([*W, [1.0, 1.0]], H, [0.0], more), more)
    assert found.counts == {"forced": 1, "open": 1, "undecided": 0}
    np.testing.assert_array_equal(found.as_matrix()[[2, 3], [3, 1]], ["forced", "open"])
    assert np.count_nonzero(found.as_matrix() == "") == more.size - 2


def test_only_the_cells_asked_for():
    Y = np.array([[1, 3, 3, nan], [3, nan, nan, 0]])
    model = model_of([[1], [4]], [[1.5], [6], [6], [0]], GEOMETRIC, Y)
    found = hs.rank.certainty(model, Y, cells=([1, 1], [2, 1]))
    assert (found.rows.tolist(), found.columns.tolist()) == ([1, 1], [2, 1])
    assert found.verdict.tolist() == ["forced", "forced"]
    everything = hs.rank.certainty(model, Y)
    assert sum(everything.counts.values()) == 3
    one = hs.rank.certainty(model, Y, cells=(1, 2))
    assert one.verdict.tolist() == ["forced"]


def test_a_cell_asked_for_twice_is_answered_twice_and_used_once():
    """Were its level counted twice, it would force others wrongly."""
    W, H = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, -2.0], [-2.0, 1.0], [1.0, 1.0]]
    Y = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, nan], [1, nan, 0, 1]])
    model = model_of(W, H, [0.0], Y)
    once = hs.rank.certainty(model, Y, cells=([2, 3], [3, 1]))
    twice = hs.rank.certainty(model, Y, cells=([2, 2, 3, 2], [3, 3, 1, 3]))
    assert once.verdict.tolist() == ["forced", "open"]
    assert twice.verdict.tolist() == ["forced", "forced", "open", "forced"]
    sheet = Sheet.of(coo_array(([1, 2], ([0, 1], [0, 1])), shape=(3, 3)), np.array([0.0]), 2, False)
    more = sheet.with_levels(np.array([2, 2]), np.array([0, 0]), np.array([1, 1]))
    np.testing.assert_array_equal(more.codes.toarray(), [[1, 0, 0], [0, 2, 0], [2, 0, 0]])


def test_labels_and_levels_are_those_of_the_data():
    words = ["bad", "fair", "good", "great", "superb"]
    table = pd.DataFrame(
        {"user": ["ann", "ann", "bob", "bob"], "item": ["x", "y", "x", "z"], "rating": [words[k] for k in (1, 3, 3, 4)]}
    )
    model = model_of([[1], [4]], [[1.5], [6], [3]], GEOMETRIC, table, levels=words)
    found = hs.rank.certainty(model, table)
    assert list(zip(found.rows, found.columns, strict=True)) == [("ann", "z"), ("bob", "y")]
    assert found.verdict[1] == "forced"
    assert (found.level[1], found.lowest[1], found.highest[1]) == ("superb", "superb", "superb")
    asked = hs.rank.certainty(model, table, cells=("bob", "y"))
    assert asked.verdict.tolist() == ["forced"]


def test_biases_stay_biases():
    """x = w_i h_j + b_i + c_j: what is forced is so for all of this form, the planted one among them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 1)) @ rng.standard_normal((1, 8)) + rng.standard_normal((7, 1)) + rng.standard_normal(8)
    levels = np.searchsorted([-1.0, 0.0, 1.0], X)
    Y = np.where(rng.random(X.shape) < 0.8, levels, nan)
    model = hs.RoundMF(1, loss="round", thresholds=[-1.0, 0.0, 1.0], n_init=5, random_state=0, tol=0.0).fit(Y)
    assert model.W_.shape[1] == 3
    found = hs.rank.certainty(model, Y, effort=60)
    assert found.counts["open"] > 0
    is_forced = found.verdict == "forced"
    np.testing.assert_array_equal(found.lowest[is_forced], levels[found.positions][is_forced])


def test_the_answer_is_repeatable():
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((2, 6, 2))
    Y = np.where(rng.random((6, 6)) < 0.7, np.searchsorted([-1.0, 0.0, 1.0], W @ H.T), nan)
    model = model_of(W, H, [-1.0, 0.0, 1.0], Y)
    first, second = (hs.rank.certainty(model, Y, effort=30, random_state=1) for _ in range(2))
    for one, other in ((first.verdict, second.verdict), (first.lowest, second.lowest), (first.highest, second.highest)):
        np.testing.assert_array_equal(one, other)


def test_a_model_that_misses_seen_cells_opens_nothing():
    """Levels of rank four, without noise, and factors of rank two."""
    rng = np.random.default_rng(3)
    Y = np.searchsorted([-1.0, 0.0, 1.0], rng.standard_normal((9, 4)) @ rng.standard_normal((4, 9))).astype(float)
    Y[rng.random(Y.shape) < 0.2] = nan
    W, H = rng.standard_normal((2, 9, 2))
    missed = np.count_nonzero((np.searchsorted([-1.0, 0.0, 1.0], W @ H.T) != Y) & ~np.isnan(Y))
    seen = np.count_nonzero(~np.isnan(Y))
    with pytest.warns(
        DataWarning, match=rf"seen cell its level\. Found {missed} of {seen} that it misses\. No cell was"
    ):
        found = hs.rank.certainty(model_of(W, H, [-1.0, 0.0, 1.0], Y), Y)
    assert found.counts["open"] == 0
    np.testing.assert_array_equal(found.lowest, found.highest)


def test_a_few_missed_cells_are_mended():
    """The levels are those of u v'; the model has x11 wrong, and the forced x22 as well."""
    thresholds = [1.0, 2.0, 4.0, 8.0]
    Y = np.array([[1, 3] + [2] * 9, [3, nan] + [nan] * 9])
    H = np.array([[1.5], [6.0]] + [[3.0]] * 9)
    model = model_of([[1.0], [1.2]], H, thresholds, Y)
    assert model.predict_level(1, 1) == 3
    found = hs.rank.certainty(model, Y, cells=(1, 1))
    assert (found.level[0], found.verdict[0], found.lowest[0], found.highest[0]) == (3, "forced", 4, 4)


def test_nothing_unseen_gives_an_empty_table():
    Y = np.array([[1, 3], [3, 4]])
    found = hs.rank.certainty(model_of([[1], [4]], [[1.5], [6]], GEOMETRIC, Y), Y)
    assert found.counts == {"forced": 0, "open": 0, "undecided": 0}
    assert found.rows.size == found.coefficients.size == 0
    np.testing.assert_array_equal(found.as_matrix(), [["", ""], ["", ""]])


def test_models_without_common_thresholds_are_refused():
    Y = np.array([[1.0, 3.0], [3.0, nan]])
    with pytest.raises(NotFittedError):
        hs.rank.certainty(hs.RoundMF(1), Y)
    for model, name in ((hs.WeightedNMF(1).fit(Y), "WeightedNMF"), (hs.OrdNMF(1).fit(Y), "OrdNMF"), (3, "int")):
        with pytest.raises(
            ParameterError, match=rf"by thresholds: a RoundMF or an OrdinalMF\. Found a {name}\. Fit one"
        ):
            hs.rank.certainty(model, Y)
    assert hs.rank.certainty(model_of([[1], [4]], [[1.5], [6]], GEOMETRIC, Y), Y).counts["forced"] == 1
    with pytest.raises(ParameterError, match=r"same thresholds in all cells\. Found .* own\. Fit with"):
        hs.rank.certainty(hs.OrdinalMF(1, own_thresholds="rows").fit(Y), Y)


def test_data_that_the_model_does_not_know_are_refused():
    Y = np.array([[1, 3, 3], [3, nan, nan]])
    model = model_of([[1], [4]], [[1.5], [6], [6]], GEOMETRIC, Y)
    for other, match in (
        (Y[:1], r"Y must have the 2 rows of the model, or labels\. Found 1 rows"),
        (Y[:, :2], r"Y must have the 3 columns of the model, or labels\. Found 2 columns"),
        (Y + 3, r"among the levels that were fitted: 0, 1, 2, 3, 4\. Found 6 at row 0, column 1"),
        (None, r"Y must be data, as for fit\. Found None"),
    ):
        with pytest.raises(DataError, match=match):
            hs.rank.certainty(model, other)
    zeros = hs.observe(np.nan_to_num(Y), unseen="zero")
    with pytest.raises(ParameterError, match=r'Unseen cells of Y must be missing\. Found unseen="zero"'):
        hs.rank.certainty(model, zeros)


def test_cells_that_can_not_be_asked_about_are_refused():
    Y = np.array([[1, 3, 3], [3, nan, nan]])
    model = model_of([[1], [4]], [[1.5], [6], [6]], GEOMETRIC, Y)
    for cells, error, match in (
        ("x", ParameterError, r"cells must be a pair \(rows, cols\), or None for all\. Found 'x'"),
        (([0, 1], [2, 2]), DataError, r"cells must be unseen in Y\. Found row 0, column 2 \(1 seen in all\)\. Leave"),
        (([0, 1], [1, 2, 2]), DataError, r"rows and cols must be equally long"),
        ((5, 1), DataError, r"Positions of rows must be 0 to 1\. Found 5"),
    ):
        with pytest.raises(error, match=match):
            hs.rank.certainty(model, Y, cells=cells)
    with pytest.raises(ParameterError, match=r"effort must be a whole number of at least 1\. Found 0"):
        hs.rank.certainty(model, Y, effort=0)


def test_many_cells_must_be_named():
    Y = np.full((150, 150), nan)
    Y[:, 0] = Y[0, :] = 1
    model = model_of(np.full((150, 1), 1.5), np.ones((150, 1)), GEOMETRIC, Y)
    with pytest.raises(ParameterError, match=r"more than 20000 are unseen\. Found 22201 unseen cells\. Pass cells=\("):
        hs.rank.certainty(model, Y)
    assert hs.rank.certainty(model, Y, cells=([5, 6], [7, 7])).counts["open"] == 2

"""The posterior predictive check of the histogram of levels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import CompoundPoisson, Observed, OrdNMF, PoissonFactorization, Quantizer, SquaredOrdNMF, WeightedNMF
from halfseen.errors import DataError, ParameterError
from halfseen.metrics import predictive_check
from tests.estimators.models import counts, levels_matrix, refused
from tests.ordinal import noises

ASK = {"random_state": 0, "max_iter": 60, "tol": 0}


def expected_levels(model, draws=300, seed=5):
    """The sum over the grid of p(v | x), the mean over factors drawn by brute force."""
    rng = np.random.default_rng(seed)
    sums = []
    for _ in range(draws):
        W, H = (rng.gamma(a, 1 / b) for a, b in ((model.W_shape_, model.W_rate_), (model.H_shape_, model.H_rate_)))
        sums.append(-np.diff(1 - noises.cumulative(W @ H.T, model.thresholds_), axis=-1, prepend=1).sum(axis=(0, 1)))
    return np.mean(sums, axis=0), np.std(sums, axis=0)


def test_the_mean_of_draws_is_the_expected_number_of_cells():
    Y = levels_matrix()
    model = OrdNMF(3, **ASK).fit(Y)
    check = predictive_check(model, Y, n=200)
    assert_array_equal(check.levels, model.levels_)
    assert_array_equal(check.observed, np.bincount(Y.reshape(-1)))
    expected, spread = expected_levels(model)
    one_set = np.sqrt(spread**2 + expected * (1 - expected / Y.size))  # of one data set drawn
    assert_allclose(check.mean, expected, atol=4 * one_set.max() / np.sqrt(200) + 4 * spread.max() / np.sqrt(300))
    assert np.all((check.low <= check.mean) & (check.mean <= check.high))
    assert_allclose((check.high - check.low) / (2 * 1.645 * one_set), 1.0, atol=0.35)
    assert check.mean.sum() == pytest.approx(Y.size)


def test_data_of_the_model_itself_look_like_it():
    Y, *_ = noises.simulate(60, 80, 2, [1.0, 5.0, 10.0], seed=0)
    check = predictive_check(OrdNMF(2, random_state=0).fit(Y), Y, n=100, level=0.99)
    assert np.all((check.low <= check.observed) & (check.observed <= check.high))


def test_counts_are_classed_as_a_quantizer_does():
    Y = counts()
    for model in (PoissonFactorization(3, **ASK).fit(Y), CompoundPoisson(3, **ASK).fit(Y)):
        check = predictive_check(model, Y, n=3, edges=[1, 2, 5, 10])
        assert check.levels.tolist() == ["0", "1", "2-4", "5-9", "10 and more"]
        levels = Quantizer([1, 2, 5, 10]).fit_transform(Y)
        assert_array_equal(check.observed, np.bincount(levels.astype(int).reshape(-1), minlength=5))
        random = np.random.RandomState(0)
        drawn = [Quantizer([1, 2, 5, 10]).fit_transform(model.sample(1, random)[0].toarray()) for _ in range(3)]
        expected = np.mean([np.bincount(one.astype(int).reshape(-1), minlength=5) for one in drawn], axis=0)
        assert_allclose(check.mean, expected)
    assert predictive_check(model, Y, n=1).levels[-1] == "500 and more"


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_where_unseen_cells_say_nothing_those_of_the_fit_are_counted():
    Y = np.where(levels_matrix() > 0, levels_matrix(), np.nan)
    model = OrdNMF(3, unseen="missing", prior_rate=1.0, **ASK).fit(Y)
    check = predictive_check(model, Y, n=2)
    assert_array_equal(check.observed, np.bincount(Y[~np.isnan(Y)].astype(int))[1:])
    assert check.mean.sum() == check.observed.sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_names_of_levels_and_of_rows_are_kept():
    words = np.array(["bad", "fair", "good"])
    rows, columns = np.nonzero(levels_matrix(highest=3))
    frame = pd.DataFrame({
        "user": [f"u{i}" for i in rows], "item": columns, "rating": words[levels_matrix(highest=3)[rows, columns] - 1],
    })  # fmt: skip
    model = SquaredOrdNMF(3, levels=words, l2=1.0, **ASK).fit(frame)
    check = predictive_check(model, frame.sample(frac=1.0, random_state=0), n=2)
    assert check.levels.tolist() == [None, *words]
    seen = [np.count_nonzero(frame.rating == word) for word in words]
    n, m = len(model.W_), len(model.H_)
    assert check.observed.tolist() == [n * m - len(frame), *seen]


def test_invalid_checks_are_refused():
    Y = levels_matrix()
    model = OrdNMF(3, **ASK).fit(Y)
    with refused(ParameterError, "model", found="WeightedNMF"):
        predictive_check(WeightedNMF(2, unseen="zero", **ASK).fit(Y), Y)
    with refused(ParameterError, "edges", found="[1, 2]"):
        predictive_check(model, Y, edges=[1, 2])
    with refused(DataError, "X", found="None"):
        predictive_check(model, None)


def repeated(unseen):
    rows, columns, values = ([0, 1, 0], [0, 1, 1], [1.0, 2.0, 1.0])
    cells = (np.repeat(one, 40) for one in (rows, columns, values))
    return Observed.from_cells(*cells, tuple(np.array([2, 2])), unseen=unseen, duplicates="keep")


def test_cells_seen_oftener_leave_the_places_of_a_grid_as_they_are():
    model = OrdNMF(1, random_state=0, max_iter=5, tol=0).fit(repeated("zero"))
    assert_array_equal(predictive_check(model, repeated("zero"), 1).observed, [1, 80, 40])


def test_a_place_that_was_seen_oftener_is_drawn_once(tmp_path):
    model = OrdNMF(1, random_state=0, max_iter=5, tol=0, unseen="missing").fit(repeated("missing"))
    drawn = model.sample(1, random_state=0)[0]
    assert drawn.has_canonical_format
    assert drawn.nnz == 3
    model.save(tmp_path / "model.hs")  # a shape of NumPy's integers must not stop this
    assert (tmp_path / "model.hs").exists()

"""Matrices without noise that rounding explains exactly and lines do not."""

import numpy as np
import pytest

from halfseen import RoundMF
from tests.graded.data import band, of_round_rank, upper_triangular


def error(model, Y):
    """How many cells are not at their level."""
    rows, columns = (places.ravel() for places in np.indices(Y.shape))
    return int((model.predict_level(rows, columns) != Y.ravel()).sum())


def errors(make, k, **parameters):
    def fitted(seed):
        Y = make(seed)
        model = RoundMF(k, biases=False, n_init=5, random_state=seed, n_jobs=1, **parameters).fit(Y)
        return error(model, Y)

    return np.array([fitted(seed) for seed in range(10)])


CASES = {
    "random": (lambda seed: of_round_rank(seed=seed), 2, {}),
    "upper-triangular": (lambda seed: upper_triangular(), 1, {"thresholds": [0.5]}),
    "band-diagonal": (lambda seed: band(), 2, {"thresholds": [0.5]}),
}
every_case = pytest.mark.parametrize(("make", "k", "parameters"), CASES.values(), ids=CASES)


@every_case
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rounding_is_exact_for_nine_of_ten_seeds_and_lines_are_not(make, k, parameters):
    assert (errors(make, k, loss="round", **parameters) == 0).sum() >= 9
    assert (errors(make, k, loss="linear") >= 10).all()

"""What dcPF says of levels, against counts put together one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

from halfseen.observed import Observed
from halfseen.studies.ordnmf.methods import log_likelihood_of_levels, survival


def compounded(x, p, most=400):
    """P(0), ..., P(most - 1) of a Poisson(x) number of logarithmic draws, by convolution."""
    k = np.arange(most)
    element = np.where(k > 0, p**k / (np.maximum(k, 1) * -np.log1p(-p)), 0.0)
    total, power = np.zeros(most), np.eye(1, most)[0]
    for number in range(60):
        total += poisson.pmf(number, x) * power
        power = np.convolve(power, element)[:most]
    return total


@pytest.mark.parametrize(("x", "p"), [(0.3, 0.9), (4.0, 0.5), (1.0, 0.95)])
def test_a_tail_is_what_the_compounded_counts_leave(x, p):
    chances = compounded(x, p)
    counts = np.array([1.0, 2, 3, 6, 21])
    np.testing.assert_allclose(
        survival(np.full(5, x), p, counts), 1 - np.cumsum(chances)[counts.astype(int) - 1], atol=1e-9
    )


def test_the_log_likelihood_of_levels_is_that_of_the_counts_in_them():
    random = np.random.default_rng(0)
    model = SimpleNamespace(W_=random.gamma(1.0, 1.0, (4, 2)), H_=random.gamma(1.0, 1.0, (3, 2)), p_=0.8)
    levels = Observed.from_cells([0, 1, 1, 3], [2, 0, 1, 2], [1.0, 3.0, 2.0, 4.0], (4, 3))
    classes = {1: [1], 2: [2, 3], 3: range(4, 9), 4: range(9, 5000)}
    expected = 0.0
    for row, column, level in zip([0, 1, 1, 3], [2, 0, 1, 2], [1, 3, 2, 4], strict=True):
        r = model.W_[row] @ model.H_[column] / -np.log(0.2)
        chances = nbinom.pmf(np.array(classes[level]), r, 0.2)
        expected += np.log(chances.sum() / (1 - nbinom.pmf(0, r, 0.2)))
    assert log_likelihood_of_levels(model, levels, (1, 2, 4, 9)) == pytest.approx(expected, rel=1e-10)

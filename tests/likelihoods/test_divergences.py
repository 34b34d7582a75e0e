"""From a user's `loss` to a likelihood."""

import numpy as np
import pytest

from halfseen.errors import ParameterError
from halfseen.likelihoods import LOSSES, BetaDivergence, Gaussian, Poisson, likelihood_for


@pytest.mark.parametrize(("kind", "losses"), [
    (Poisson, ("kullback-leibler", 1, 1.0, np.float32(1))), (Gaussian, ("frobenius", 2, np.int64(2))),
    (BetaDivergence, ("itakura-saito", 0, 1.5, -2)),
])  # fmt: skip
def test_names_and_numbers(kind, losses):
    for loss in losses:
        likelihood = likelihood_for(loss)
        assert type(likelihood) is kind
        assert likelihood.name == loss or not isinstance(loss, str)
        assert kind is not BetaDivergence or likelihood.beta == LOSSES.get(loss, loss)


@pytest.mark.parametrize("loss", ["frobenious", "kl", "hinge", None, True, np.nan, -np.inf, [1], 1j])
def test_other_things_are_refused_and_the_nearest_name_is_proposed(loss):
    with pytest.raises(ParameterError) as error:
        likelihood_for(loss)
    assert (error.value.parameter, error.value.found) == ("loss", repr(loss))
    meant = {"frobenious": "'frobenius'", "kl": "'kullback-leibler'"}.get(loss) if isinstance(loss, str) else None
    assert meant is None or error.value.remedy == f"Did you mean {meant}?"

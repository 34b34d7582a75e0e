"""From a user's `loss` to a likelihood."""

import numpy as np
import pytest

from halfseen.errors import ParameterError
from halfseen.likelihoods import LOSSES, BetaDivergence, Gaussian, Poisson, likelihood_for


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("kullback-leibler", Poisson),
        (1, Poisson),
        (1.0, Poisson),
        (np.float32(1), Poisson),
        ("frobenius", Gaussian),
        (2, Gaussian),
        (np.int64(2), Gaussian),
        ("itakura-saito", BetaDivergence),
        (0, BetaDivergence),
        (1.5, BetaDivergence),
        (-2, BetaDivergence),
    ],
)
def test_names_and_numbers(loss, kind):
    likelihood = likelihood_for(loss)
    assert type(likelihood) is kind
    if kind is BetaDivergence:
        assert likelihood.beta == LOSSES.get(loss, loss)


@pytest.mark.parametrize("name", LOSSES)
def test_a_likelihood_is_called_what_its_loss_is_called(name):
    assert likelihood_for(name).name == name


@pytest.mark.parametrize(("loss", "meant"), [("frobenious", "frobenius"), ("kl", "kullback-leibler"), ("hinge", None)])
def test_unknown_names_are_answered_with_the_nearest(loss, meant):
    with pytest.raises(ParameterError) as error:
        likelihood_for(loss)
    assert (error.value.parameter, error.value.found) == ("loss", repr(loss))
    assert error.value.remedy == (f"Did you mean {meant!r}?" if meant else "Choose one of these.")


@pytest.mark.parametrize("loss", [None, True, np.nan, -np.inf, [1], 1j])
def test_other_things_are_refused(loss):
    with pytest.raises(ParameterError) as error:
        likelihood_for(loss)
    assert error.value.parameter == "loss"

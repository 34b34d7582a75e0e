"""What a problem computes once, and what not at all."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.likelihoods import CompoundPoisson, Likelihood, Ordinal, Poisson
from halfseen.likelihoods import Squared as SquaredLikelihood

COUNTS = np.random.default_rng(0).poisson(1.5, (12, 9)).astype(float)


@pytest.fixture
def calls(monkeypatch):
    """The likelihoods that were asked for log p(y|y), in order."""
    calls = []
    for kind in (Likelihood, Poisson, SquaredLikelihood):

        def saturated(self, y, original=kind.saturated):
            calls.append(self)
            return original(self, y)

        monkeypatch.setattr(kind, "saturated", saturated)
    return calls


@pytest.mark.parametrize("unseen", ["missing", "zero"])
@pytest.mark.parametrize(
    "model",
    [hs.OrdNMF(2, max_iter=20, tol=0.0), hs.OrdNMF(2, max_iter=20, tol=0.0, noise="gamma", noise_shape=2.0),
     hs.CompoundPoisson(2, max_iter=20, tol=0.0), hs.SquaredOrdNMF(2, max_iter=20, tol=0.0)],
    ids=["OrdNMF", "OrdNMF, gamma noise", "CompoundPoisson", "SquaredOrdNMF"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_saturated_likelihood_that_is_zero_is_not_summed(calls, model, unseen):
    model.set_params(unseen=unseen, random_state=0).fit(COUNTS)
    assert model.n_iter_ > 5
    assert not calls


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_that_is_not_zero_is_summed_once(calls):
    hs.PoissonFactorization(2, max_iter=20, tol=0.0, random_state=0).fit(COUNTS)
    assert len(calls) == 1


def test_which_are_zero():
    ordinal = Ordinal(np.ones(2))
    assert ordinal.saturated_is_zero
    assert CompoundPoisson(0.7).saturated_is_zero
    assert SquaredLikelihood(ordinal).saturated_is_zero
    assert not SquaredLikelihood(Poisson()).saturated_is_zero
    assert not ordinal.saturated(np.arange(3.0)).any()

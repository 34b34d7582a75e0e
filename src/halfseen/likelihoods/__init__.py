"""Likelihoods: how hard an observed value pulls x up and pushes it down, and how likely it is."""

from halfseen.likelihoods.base import LearningLikelihood, Likelihood, UnseenPush
from halfseen.likelihoods.compound import CompoundPoisson
from halfseen.likelihoods.cumulative import Cumulative, OwnThresholds
from halfseen.likelihoods.divergences import LOSSES, BetaDivergence, Gaussian, Poisson, likelihood_for
from halfseen.likelihoods.gamma_noise import GammaNoise, InverseGammaNoise
from halfseen.likelihoods.links import LINKS
from halfseen.likelihoods.ordinal import Ordinal, SingleCountOrdinal
from halfseen.likelihoods.ordinal_base import Quadratic, SmoothOrdinal
from halfseen.likelihoods.rounding import Linear, MultiSigmoid, Round
from halfseen.likelihoods.squared import Squared

#: Every likelihood that a model file may hold, by name: a new one is added here.
LIKELIHOODS: dict[str, type[Likelihood]] = {
    likelihood.__name__: likelihood
    for likelihood in (
        BetaDivergence,
        CompoundPoisson,
        Cumulative,
        GammaNoise,
        Gaussian,
        InverseGammaNoise,
        Linear,
        MultiSigmoid,
        Ordinal,
        OwnThresholds,
        Poisson,
        Round,
        SingleCountOrdinal,
        Squared,
    )
}

__all__ = [
    "LIKELIHOODS",
    "LINKS",
    "LOSSES",
    "BetaDivergence",
    "CompoundPoisson",
    "Cumulative",
    "GammaNoise",
    "Gaussian",
    "InverseGammaNoise",
    "LearningLikelihood",
    "Likelihood",
    "Linear",
    "MultiSigmoid",
    "Ordinal",
    "OwnThresholds",
    "Poisson",
    "Quadratic",
    "Round",
    "SingleCountOrdinal",
    "SmoothOrdinal",
    "Squared",
    "UnseenPush",
    "likelihood_for",
]

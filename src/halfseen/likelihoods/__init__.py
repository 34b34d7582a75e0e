"""The entry rules: how hard a seen value pulls x up and pushes it down, and how likely it is."""

from halfseen.likelihoods.base import LearningLikelihood, Likelihood, UnseenPush
from halfseen.likelihoods.beta import BetaDivergence
from halfseen.likelihoods.compound import CompoundPoisson
from halfseen.likelihoods.gamma_noise import GammaNoise
from halfseen.likelihoods.gaussian import Gaussian
from halfseen.likelihoods.named import LOSSES, likelihood_for
from halfseen.likelihoods.ordinal import Ordinal
from halfseen.likelihoods.poisson import Poisson
from halfseen.likelihoods.squared import Squared

__all__ = [
    "LOSSES",
    "BetaDivergence",
    "CompoundPoisson",
    "GammaNoise",
    "Gaussian",
    "LearningLikelihood",
    "Likelihood",
    "Ordinal",
    "Poisson",
    "Squared",
    "UnseenPush",
    "likelihood_for",
]

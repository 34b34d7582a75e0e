"""The entry rules: how hard a seen value pulls x up and pushes it down, and how likely it is."""

from halfseen.likelihoods.base import LearningLikelihood, Likelihood, UnseenPush
from halfseen.likelihoods.beta import BetaDivergence
from halfseen.likelihoods.compound import CompoundPoisson
from halfseen.likelihoods.cumulative import Cumulative
from halfseen.likelihoods.gamma_noise import GammaNoise
from halfseen.likelihoods.gaussian import Gaussian
from halfseen.likelihoods.linear import Linear
from halfseen.likelihoods.links import LINKS
from halfseen.likelihoods.named import LOSSES, likelihood_for
from halfseen.likelihoods.ordinal import Ordinal
from halfseen.likelihoods.own_thresholds import OwnThresholds
from halfseen.likelihoods.poisson import Poisson
from halfseen.likelihoods.rounding import MultiSigmoid, Round
from halfseen.likelihoods.smooth import Local, Smooth
from halfseen.likelihoods.squared import Squared

__all__ = [
    "LINKS",
    "LOSSES",
    "BetaDivergence",
    "CompoundPoisson",
    "Cumulative",
    "GammaNoise",
    "Gaussian",
    "LearningLikelihood",
    "Likelihood",
    "Linear",
    "Local",
    "MultiSigmoid",
    "Ordinal",
    "OwnThresholds",
    "Poisson",
    "Round",
    "Smooth",
    "Squared",
    "UnseenPush",
    "likelihood_for",
]

"""How factors move. A solver knows pulls, pushes and priors; it knows neither likelihoods by name nor devices."""

from halfseen.solvers.base import Factor, Solver, State
from halfseen.solvers.gamma import Gamma, GammaFactor
from halfseen.solvers.inverse_gaussian import InverseGaussian, InverseGaussianFactor
from halfseen.solvers.momentum import Momentum
from halfseen.solvers.multiplicative import Multiplicative, PointFactor
from halfseen.solvers.newton import Newton
from halfseen.solvers.ridge import Ridge
from halfseen.solvers.stochastic import Stochastic
from halfseen.solvers.task import Task

__all__ = [
    "Factor",
    "Gamma",
    "GammaFactor",
    "InverseGaussian",
    "InverseGaussianFactor",
    "Momentum",
    "Multiplicative",
    "Newton",
    "PointFactor",
    "Ridge",
    "Solver",
    "State",
    "Stochastic",
    "Task",
]

"""How factors move. A solver knows pulls, pushes and priors; it knows neither likelihoods by name nor devices."""

from halfseen.solvers.base import Factor, Solver, State
from halfseen.solvers.gamma import Gamma, GammaFactor
from halfseen.solvers.multiplicative import Multiplicative, PointFactor
from halfseen.solvers.task import Task

__all__ = ["Factor", "Gamma", "GammaFactor", "Multiplicative", "PointFactor", "Solver", "State", "Task"]

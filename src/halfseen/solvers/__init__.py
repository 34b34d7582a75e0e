"""Solvers: how factors are updated, given pulls, pushes and priors; independent of likelihoods and devices."""

from typing import Any

from halfseen.solvers.base import ColumnPenalty, Factor, GammaPrior, Momentum, Penalty, Solver, State
from halfseen.solvers.gamma import Gamma, GammaFactor
from halfseen.solvers.inverse_gaussian import InverseGaussian, InverseGaussianFactor
from halfseen.solvers.least_squares import LeastSquares
from halfseen.solvers.multiplicative import Multiplicative, PointFactor
from halfseen.solvers.newton import BIAS_L2, Newton, Ridge
from halfseen.solvers.problem import Problem
from halfseen.solvers.sgd import GD, SGD

#: Every type of factor that a model file may hold, by name.
FACTORS: dict[str, Any] = {factor.__name__: factor for factor in (PointFactor, GammaFactor, InverseGaussianFactor)}
#: Everything that a model file may hold of the solver that folds new rows in, by name.
SOLVERS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Gamma,
        InverseGaussian,
        LeastSquares,
        Multiplicative,
        Newton,
        GammaPrior,
        Penalty,
        ColumnPenalty,
        Ridge,
    )
}

__all__ = [
    "BIAS_L2",
    "FACTORS",
    "GD",
    "SGD",
    "SOLVERS",
    "ColumnPenalty",
    "Factor",
    "Gamma",
    "GammaFactor",
    "GammaPrior",
    "InverseGaussian",
    "LeastSquares",
    "InverseGaussianFactor",
    "Momentum",
    "Multiplicative",
    "Newton",
    "Penalty",
    "PointFactor",
    "Problem",
    "Ridge",
    "Solver",
    "State",
]

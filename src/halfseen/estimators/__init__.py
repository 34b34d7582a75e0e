"""Thin scikit-learn estimators: a likelihood, a solver, and the paper's defaults."""

from halfseen.estimators.bernoulli_poisson import BernoulliPoisson
from halfseen.estimators.compound_poisson import CompoundPoisson
from halfseen.estimators.filing import load
from halfseen.estimators.ordinal_mf import OrdinalMF
from halfseen.estimators.ordnmf import OrdNMF
from halfseen.estimators.poisson_factorization import PoissonFactorization
from halfseen.estimators.quantizer import Quantizer
from halfseen.estimators.rank_one_nmf import RankOneNMF
from halfseen.estimators.recommending import Recommendations
from halfseen.estimators.round_mf import RoundMF
from halfseen.estimators.squared_ordnmf import SquaredOrdNMF
from halfseen.estimators.squared_poisson import SquaredPoisson
from halfseen.estimators.weighted_nmf import WeightedNMF

__all__ = [
    "BernoulliPoisson",
    "CompoundPoisson",
    "OrdNMF",
    "OrdinalMF",
    "PoissonFactorization",
    "Quantizer",
    "RankOneNMF",
    "Recommendations",
    "RoundMF",
    "SquaredOrdNMF",
    "SquaredPoisson",
    "WeightedNMF",
    "load",
]

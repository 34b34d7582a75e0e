"""scikit-learn estimators: each is a constructor, a docstring and what its parameters mean (`_method`)."""

from halfseen.estimators.ensemble import Blend
from halfseen.estimators.implicit_mf import ImplicitMF
from halfseen.estimators.item_graph import ItemGraph, Popularity
from halfseen.estimators.nmf import WeightedNMF
from halfseen.estimators.ordinal_mf import OrdinalMF, RoundMF
from halfseen.estimators.ordnmf import OrdNMF
from halfseen.estimators.poisson import BernoulliPoisson, CompoundPoisson, PoissonFactorization
from halfseen.estimators.quantizer import Quantizer
from halfseen.estimators.rank_one_nmf import RankOne, RankOneNMF, rank_one
from halfseen.estimators.squared_models import SquaredOrdNMF, SquaredPoisson
from halfseen.estimators.table_imputer import TableImputer

__all__ = [
    "BernoulliPoisson",
    "Blend",
    "CompoundPoisson",
    "ImplicitMF",
    "ItemGraph",
    "OrdNMF",
    "OrdinalMF",
    "PoissonFactorization",
    "Popularity",
    "Quantizer",
    "RankOne",
    "RankOneNMF",
    "RoundMF",
    "SquaredOrdNMF",
    "SquaredPoisson",
    "TableImputer",
    "WeightedNMF",
    "rank_one",
]

"""halfseen: factorize matrices one only half sees.

Names are imported when they are first used, so that `import halfseen` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from halfseen import data, errors, geometry, metrics, plots, rank
    from halfseen.data import Observed, Uncoupled, datasets, observe
    from halfseen.estimators import (
        BernoulliPoisson,
        CompoundPoisson,
        OrdinalMF,
        OrdNMF,
        PoissonFactorization,
        Quantizer,
        RankOneNMF,
        Recommendations,
        RoundMF,
        SquaredOrdNMF,
        SquaredPoisson,
        UncoupledNMF,
        WeightedNMF,
        load,
    )
    from halfseen.rank_one import rank_one_nmmf
    from halfseen.report import make_report
    from halfseen.result import Status
    from halfseen.selection import RankSearch

_ROOMS = {
    "BernoulliPoisson": "estimators",
    "CompoundPoisson": "estimators",
    "Observed": "data",
    "OrdNMF": "estimators",
    "OrdinalMF": "estimators",
    "PoissonFactorization": "estimators",
    "Quantizer": "estimators",
    "RankOneNMF": "estimators",
    "RankSearch": "selection",
    "Recommendations": "estimators",
    "RoundMF": "estimators",
    "SquaredOrdNMF": "estimators",
    "SquaredPoisson": "estimators",
    "Status": "result",
    "Uncoupled": "data",
    "UncoupledNMF": "estimators",
    "WeightedNMF": "estimators",
    "datasets": "data",
    "load": "estimators",
    "make_report": "report",
    "observe": "data",
    "rank_one_nmmf": "rank_one",
}

__all__ = [
    "BernoulliPoisson",
    "CompoundPoisson",
    "Observed",
    "OrdNMF",
    "OrdinalMF",
    "PoissonFactorization",
    "Quantizer",
    "RankOneNMF",
    "RankSearch",
    "Recommendations",
    "RoundMF",
    "SquaredOrdNMF",
    "SquaredPoisson",
    "Status",
    "Uncoupled",
    "UncoupledNMF",
    "WeightedNMF",
    "data",
    "datasets",
    "errors",
    "geometry",
    "load",
    "make_report",
    "metrics",
    "observe",
    "plots",
    "rank",
    "rank_one_nmmf",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(import_module(f"halfseen.{_ROOMS[name]}"), name)
    if name in __all__:
        return import_module(f"halfseen.{name}")
    raise AttributeError(f"module 'halfseen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

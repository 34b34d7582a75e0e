"""halfseen: factorize matrices one only half sees.

Names are imported when they are first used, so that `import halfseen` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from halfseen import data, datasets, errors, geometry, metrics, plots, rank
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
        WeightedNMF,
        load,
    )
    from halfseen.io import observe
    from halfseen.observed import Observed
    from halfseen.rank_one import rank_one_nmmf
    from halfseen.report import make_report
    from halfseen.result import Status
    from halfseen.selection import RankSearch
    from halfseen.uncoupled import Uncoupled, UncoupledNMF

_ROOMS = {
    "BernoulliPoisson": "estimators",
    "CompoundPoisson": "estimators",
    "Observed": "observed",
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
    "Uncoupled": "uncoupled",
    "UncoupledNMF": "uncoupled",
    "WeightedNMF": "estimators",
    "load": "estimators",
    "make_report": "report",
    "observe": "io",
    "rank_one_nmmf": "rank_one",
}

_MODULES = ("data", "datasets", "errors", "geometry", "metrics", "plots", "rank")

__all__ = sorted([*_ROOMS, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(import_module(f"halfseen.{_ROOMS[name]}"), name)
    if name in __all__:
        return import_module(f"halfseen.{name}")
    raise AttributeError(f"module 'halfseen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

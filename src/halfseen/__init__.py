"""halfseen: factorize matrices one only half sees.

Names are imported when they are first used, so that `import halfseen` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from halfseen import data, datasets, errors, geometry, metrics, plots, rank
    from halfseen.archive import load
    from halfseen.checkpoint import Checkpoint
    from halfseen.engines.cluster import local_cluster
    from halfseen.estimators import (
        BernoulliPoisson,
        Blend,
        CompoundPoisson,
        ImplicitMF,
        ItemGraph,
        OrdinalMF,
        OrdNMF,
        PoissonFactorization,
        Popularity,
        Quantizer,
        RankOne,
        RankOneNMF,
        RoundMF,
        SquaredOrdNMF,
        SquaredPoisson,
        TableImputer,
        WeightedNMF,
        rank_one,
    )
    from halfseen.io import observe
    from halfseen.metrics import evaluate
    from halfseen.model import Status
    from halfseen.observed import Observed
    from halfseen.ranking import Recommendations
    from halfseen.rankone import SharedFactors, TensorFactors, rank_one_nmmf, rank_one_nmtf
    from halfseen.report import make_report
    from halfseen.selection import RankSearch, Search
    from halfseen.uncoupled import Uncoupled, UncoupledNMF

#: Public names by module.
_EXPORTS = {
    "archive": "load",
    "checkpoint": "Checkpoint",
    "engines.cluster": "local_cluster",
    "estimators": "BernoulliPoisson Blend CompoundPoisson ImplicitMF ItemGraph OrdNMF OrdinalMF PoissonFactorization "
    "Popularity Quantizer RankOneNMF RoundMF SquaredOrdNMF SquaredPoisson TableImputer WeightedNMF RankOne rank_one",
    "io": "observe",
    "metrics": "evaluate",
    "model": "Status",
    "observed": "Observed",
    "ranking": "Recommendations",
    "rankone": "SharedFactors TensorFactors rank_one_nmmf rank_one_nmtf",
    "report": "make_report",
    "selection": "RankSearch Search",
    "uncoupled": "Uncoupled UncoupledNMF",
}
_MODULES = ("data", "datasets", "errors", "geometry", "metrics", "plots", "rank")
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names.split()}

__all__ = sorted([*_MODULE_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        found = globals()[name] = getattr(import_module(f"halfseen.{_MODULE_OF[name]}"), name)  # and not sought again
        return found
    if name in _MODULES:
        return import_module(f"halfseen.{name}")
    raise AttributeError(f"module 'halfseen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

"""Uncoupled data: answers collected apart from those who gave them (Kohjima, ICTIR 2022), and models of them.

Questions are rows and respondents are columns; a *cell* is a question that a respondent was asked. A *coupling* says
which answer is whose. The modules, in the order in which a fit passes them:

    lists                 reads the three lists: who was asked what, answers without names, comparisons
    list_checks           puts them in row order and checks them against each other; AskedCells, ListSummary
    collection            Uncoupled: the result of both, or a matrix split apart to simulate a collection
    pseudo_observations   methods "unmf", "bayes", "decode": one value per asked cell, then an ordinary factorization
    sampler               method "gibbs": chains (`halfseen.sampling`), and a factorization of the posterior mean
    posterior             what the draws say of cells: means, intervals, most likely answers; to and from model files
    estimator             UncoupledNMF, the scikit-learn class

`Uncoupled(...)` goes through the first three. `UncoupledNMF().fit(collection)` calls `fit_by_sampling` (`sampler`) or
`fit_by_loop` (`pseudo_observations`), each of which sets the fitted attributes: of a `halfseen.model.Fit` with trace
and status, and of the posterior if there is one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfseen.uncoupled.collection import Uncoupled
    from halfseen.uncoupled.estimator import Coupling, UncoupledNMF

_MODULES = {"Coupling": "estimator", "Uncoupled": "collection", "UncoupledNMF": "estimator"}
__all__ = ["Coupling", "Uncoupled", "UncoupledNMF"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"halfseen.uncoupled.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'halfseen.uncoupled' has no attribute {name!r}")

"""Factorizations found by the loop: a likelihood, a solver, a start."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from halfseen import checks
from halfseen.arrays import Array
from halfseen.engines import Side, open_engine
from halfseen.errors import ParameterError
from halfseen.estimators import watching
from halfseen.estimators.features import observe_for_fit
from halfseen.estimators.model import FactorModel
from halfseen.estimators.seen import Seen
from halfseen.estimators.telling import tell_the_end, warn_of_blanks
from halfseen.fitting import Watch, run
from halfseen.folding import fold_in
from halfseen.likelihoods import Likelihood
from halfseen.observed import Observed
from halfseen.result import Fit
from halfseen.solvers import Problem, Solver


class Factorization(CallbackSupportMixin, FactorModel):
    """A half-seen matrix as W H^T. Subclasses say by which likelihood and which solver."""

    n_components: int
    accelerate: bool
    init: Any
    random_state: Any

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        "n_components": checks.whole(1, checks.MOST_COMPONENTS),
        **FactorModel.parameter_rules,
        "accelerate": checks.flag(),
        "init": checks.start("random"),
        "random_state": checks.seed(),
    }

    @abstractmethod
    def _make_solver(self) -> Solver[Any]: ...

    def _make_folding_solver(self) -> Solver[Any]:
        """The solver that folds new rows in."""
        return self._make_solver()

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Self:
        """Find W and H.

        Parameters
        ----------
        X : a dense array with NaN, a scipy sparse matrix, a pandas, polars or Arrow frame (long or wide), the path of a
            CSV or Parquet file, or what `halfseen.observe` made of one.
        y : ignored, for scikit-learn's pipelines.
        cell_weight : how much each seen cell counts: an array of X's shape, a sparse matrix that stores the same cells,
            a list in the order of the cells, or the name of a column of a long frame.
        """
        checks.check_parameters(self.get_params(deep=False), self.parameter_rules)
        observed = observe_for_fit(self, X, cell_weight)
        coded, likelihood = self._begun(observed)
        solver = self._make_solver()
        likelihood.check(coded, type(self).__name__)
        solver.check(likelihood)
        _warn_of_blanks(observed)
        with open_engine(self.engine, self.n_jobs) as engine:
            task = Problem(engine, engine.place(coded, Side.ROWS, Side.COLUMNS), likelihood)
            with watching.watch(self, X, y, cell_weight, observed, task) as watch:
                fit = self._found(task, solver, watch)
                for name, value in self._attributes(fit, observed).items():
                    setattr(self, name, value)
                self.fingerprint_ = observed.fingerprint()
        tell_the_end(self, stacklevel=4)
        return self

    def _found(self, task: Problem, solver: Solver[Any], watch: Watch | None) -> Fit:
        """What the loop finds from the start that `init` asks for."""
        random = check_random_state(self.random_state)
        how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "accelerate": self.accelerate}
        return run(task, solver, lambda: self._start(task, solver, random), **how, watch=watch)

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        """The cells as the likelihood counts them, and the likelihood to start with."""
        return observed, self._make_likelihood()

    def _start(self, task: Problem, solver: Solver[Any], random: np.random.RandomState) -> tuple[Array, Array]:
        n, m = task.cells.observed.shape
        sizes = ((n, self.n_components), (m, self.n_components))
        if isinstance(self.init, str):
            return self._named_start(task, solver, sizes, random)
        W, H = (checked_start(*given, solver) for given in zip(self.init, sizes, ("W0", "H0"), strict=True))
        return W, H

    def _named_start(
        self, task: Problem, solver: Solver[Any], sizes: tuple[tuple[int, int], ...], random: np.random.RandomState
    ) -> tuple[Array, Array]:
        """The start that `init` names; here, "random"."""
        return solver.random(task, sizes[0], random), solver.random(task, sizes[1], random)

    @staticmethod
    def _attributes(fit: Fit, observed: Observed) -> dict[str, Any]:
        """What a fit leaves, by the names of the fitted attributes."""
        return {
            "factors_": (fit.rows, fit.columns),
            "W_": fit.rows.mean,
            "H_": fit.columns.mean,
            "likelihood_": fit.likelihood,
            "trace_": dict(fit.trace),
            "n_iter_": fit.n_iter,
            "status_": fit.status,
            "row_labels_": observed.row_labels,
            "column_labels_": observed.column_labels,
            "seen_": Seen.in_(observed),
        }

    def _folded_in(self, observed: Observed) -> Array:
        observed = self._coded(observed)
        with open_engine(self.engine, self.n_jobs) as engine:
            task = Problem(engine, engine.place(observed, Side.ROWS), self.likelihood_)
            task.likelihood.check(observed, type(self).__name__)
            far = self.factors_[1]._make(
                np.ascontiguousarray(array, dtype=observed.dtype) for array in self.factors_[1]
            )
            average = self.W_.mean(axis=0)
            near = fold_in(task, self._make_folding_solver(), far, average, max_iter=self.max_iter, tol=self.tol)
        W: Array = near.mean
        return W


def checked_start(factor: Any, size: tuple[int, int], name: str, solver: Solver[Any]) -> Array:
    """A given factor, if it has the right size and the solver can start from it."""
    factor = np.asarray(factor)
    if factor.shape != size:
        raise ParameterError(
            f"{name} of init must have a row for each {'row' if name == 'W0' else 'column'} of X and a column for each "
            f"component, shape {size}. Found shape {factor.shape}. Reshape it."
        )
    good = factor.dtype.kind in "fiub" and np.all(np.isfinite(factor))
    if not (good and (np.all(factor >= 0) or not solver.is_multiplicative) and solver.accepts_start(factor)):
        needs = f"finite numbers{' of 0 or more' if solver.is_multiplicative else ''}{solver.start_requirement}"
        raise ParameterError(f"{name} of init must hold {needs}. Found others. Replace them.")
    return factor.astype(np.float64) if factor.dtype.kind != "f" else factor


def _warn_of_blanks(observed: Observed) -> None:
    """Tell of rows and columns that nothing was seen of."""
    if observed.unseen == "zero":
        return
    for what, seen, labels in (
        ("row", observed.seen_per_row(), observed.row_labels),
        ("column", observed.seen_per_column(), observed.column_labels),
    ):
        warn_of_blanks(what, seen == 0, labels, stacklevel=5)

"""What factorizations through thresholds share: factors of any sign, biases, a ridge, restarts, early stopping."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.engines import Side
from halfseen.estimators.base import Factorization, checked_start
from halfseen.estimators.holding_out import Patience, held_out
from halfseen.estimators.leveled import LeveledMixin
from halfseen.fitting import Start, Watch, run
from halfseen.likelihoods import Likelihood, SmoothOrdinal
from halfseen.observed import Observed
from halfseen.result import Fit, Status
from halfseen.solvers import SGD, Newton, PointFactor, Problem, Ridge, Solver


class GradedFactorization(LeveledMixin, Factorization):
    """Levels cut out of x = <w_u, h_i> + b_u + c_i by thresholds."""

    biases: bool
    l2: float | None
    centred: bool
    solver: str
    learning_rate: float
    batch_size: int
    n_init: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int

    factor_type = PointFactor
    score_is_log_likelihood = False
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **Factorization.parameter_rules,
        **LeveledMixin.rules_of_levels,
        "biases": checks.flag(),
        "l2": checks.number(0.0, or_none=True),
        "centred": checks.flag(),
        "solver": checks.one_of("newton", "sgd"),
        "learning_rate": checks.number(0.0, above=True),
        "batch_size": checks.whole(1),
        "n_init": checks.whole(1),
        "early_stopping": checks.flag(),
        "validation_fraction": checks.between(0.0, 1.0),
        "n_iter_no_change": checks.whole(1),
    }

    @abstractmethod
    def _unfitted(self, thresholds: Array, learned: bool) -> SmoothOrdinal:
        """The likelihood, with these thresholds."""

    def _first_likelihood(self, histogram: Array) -> Likelihood:
        if self.thresholds is not None:
            return self._unfitted(np.asarray(self.thresholds, dtype=np.float64), False)
        likelihood = self._unfitted(np.zeros(histogram.size - 1), True)
        likelihood.check_unseen(self.unseen, type(self).__name__)  # else no cell would be at level 0
        return likelihood.initialize(histogram)

    def _make_solver(self) -> Solver[Any]:
        if self.solver == "newton":
            return Newton(self._ridge)
        return SGD(self._ridge, self.learning_rate, self.batch_size, check_random_state(self.random_state))

    def _make_folding_solver(self) -> Solver[Any]:
        """Rows alone have one best place, to which Newton's method is the shortest way."""
        return Newton(self.ridge_)

    @property
    def _ridge(self) -> Ridge:
        return Ridge(self.l2_, bool(self.biases), bool(self.centred))

    def _found(self, task: Problem, solver: Solver[Any], watch: Watch | None) -> Fit:
        """The best of `n_init` runs: by the cells held out, if there are any, else by the loss."""
        random = check_random_state(self.random_state)
        fitted, judges = task, None
        if self.early_stopping:
            cells, judges = held_out(task.cells.observed, self.validation_fraction, random)
            fitted = Problem(task.engine, task.engine.place(cells, Side.ROWS, Side.COLUMNS), task.likelihood)
        best: Fit | None = None
        # From a given start Newton's method goes one way, however often.
        starts = self.n_init if isinstance(self.init, str) or self.solver == "sgd" else 1
        for _ in range(starts):
            patience = None if judges is None else Patience(judges, self.n_iter_no_change)
            found = self._run(fitted, solver, random, watch if patience is None else patience.beside(watch))
            found = found if patience is None else patience.best(found, fitted, solver)
            if self._is_perfect(found, task):
                return found
            best = found if best is None or _judged(found) < _judged(best) else best
            if found.status in (Status.INTERRUPTED, Status.STOPPED):  # who asked for the end wants no other start
                break
        return best  # type: ignore[return-value]

    def _is_perfect(self, fit: Fit, task: Problem) -> bool:
        """Whether no other start could do better."""
        return False

    def _run(self, task: Problem, solver: Solver[Any], random: np.random.RandomState, watch: Watch | None) -> Fit:
        """One run, from a random start of its own or from the given one."""
        return self._run_from(lambda: self._start(task, solver, random), task, solver, watch)

    def _run_from(self, start: Start, task: Problem, solver: Solver[Any], watch: Watch | None) -> Fit:
        # Single cells in random order have no direction to go ahead in.
        accelerate = bool(self.accelerate) and self.solver == "newton"
        return run(task, solver, start, max_iter=self.max_iter, tol=self.tol, accelerate=accelerate, watch=watch)

    def _start(self, task: Problem, solver: Solver[Any], random: np.random.RandomState) -> tuple[Array, Array]:
        if isinstance(self.init, str):
            W, H = super()._start(task, solver, random)
            return self._ridge.initialize(W, Side.ROWS), self._ridge.initialize(H, Side.COLUMNS)
        return self._given_start(task.cells.observed.shape, solver)

    def _given_start(self, shape: tuple[int, int], solver: Solver[Any]) -> tuple[Array, Array]:
        """The pair of arrays, which may have the columns of biases already."""
        k = self.n_components
        has_biases = bool(self.biases) and all(np.shape(factor)[1:] == (k + 2,) for factor in self.init)
        factors = []
        for factor, count, name, side in zip(self.init, shape, ("W0", "H0"), Side, strict=True):
            given = checked_start(factor, (count, k + 2 if has_biases else k), name, solver)
            if self.biases and not has_biases:
                given = self._ridge.with_biases(given, side)
            held = self._ridge.penalty(given.shape[1], side).fixed
            factors.append(np.where(held == 1, 1.0, given).astype(given.dtype))
        return factors[0], factors[1]

    def _settle_l2(self, observed: Observed, likelihood: Any) -> None:
        self.l2_ = self._l2_by_noise(observed, likelihood) if self.l2 is None else float(self.l2)

    def _l2_by_noise(self, observed: Observed, likelihood: SmoothOrdinal) -> float:
        """rms(slope at x = 0) * (sqrt(cells a row) + sqrt(cells a column)).

        Were the cells nothing but noise, the matrix of their slopes would have a spectral norm of about this, and an l2
        on both factors must outweigh it, or else they fit noise.
        """
        slopes = likelihood.quadratic(observed.values, np.zeros_like(observed.values)).slope
        slopes = slopes if observed.weights is None else slopes * observed.weights
        if observed.is_first_at_cell is not None:  # what is seen twice in one place is one cell of the matrix
            slopes = np.bincount(np.cumsum(observed.is_first_at_cell.astype(np.int64)) - 1, slopes)
        return float(np.sqrt(np.mean(slopes**2)) * np.sqrt(slopes.size / np.array(observed.shape)).sum())

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        coded, likelihood = super()._begun(observed)
        self._settle_l2(coded, likelihood)
        self.ridge_ = self._ridge
        return coded, likelihood

    @property
    def thresholds_(self) -> Array:
        """tau_1 < ... < tau_N between the levels, in units of x."""
        thresholds: Array = self.likelihood_.cuts
        return thresholds

    @property
    def row_biases_(self) -> Array | None:
        """b, one for each row; None without biases."""
        biases: Array | None = self.W_[:, -2] if self.ridge_.biases else None
        return biases

    @property
    def column_biases_(self) -> Array | None:
        """c, one for each column; None without biases."""
        biases: Array | None = self.H_[:, -1] if self.ridge_.biases else None
        return biases

    def predict_level(self, rows: Any, cols: Any = None) -> Array:
        """GRF(x), the level whose interval holds x  (Eq. 2.5), by its name in `levels_`.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and every cell is told of.
        """
        check_is_fitted(self)
        x, likelihood = self._x_and_likelihood(rows, cols)
        levels: Array = self.levels_[likelihood.levels(x)]
        return levels

    def _kept_of_levels(self) -> dict[str, Array]:
        return {"thresholds": self.likelihood_.thresholds, "parameters": self.likelihood_.parameters}

    def _restored_likelihood(self, further: dict[str, Array]) -> Likelihood:
        return self._unfitted(further["thresholds"], self.thresholds is None)

    def _further_arrays(self) -> dict[str, Array]:
        return super()._further_arrays() | {"ridge": np.array(astuple(self.ridge_), dtype=np.float64)}

    def _restore(self, further: dict[str, Array]) -> None:
        super()._restore(further)
        l2, biases, centred = further["ridge"].tolist()
        self.ridge_, self.l2_ = Ridge(l2, bool(biases), bool(centred)), l2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


def _judged(fit: Fit) -> float:
    """What a run is judged by: smaller is better."""
    losses = fit.trace.get("held_out", fit.trace["objective"][-1:])
    return float(np.min(losses, initial=np.inf))

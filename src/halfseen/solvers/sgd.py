"""Gradient descent: stochastic, with AdaGrad's steps by rows, or by all cells at once, with a constant step.

A stochastic epoch visits every observed cell once, in mini-batches in random order. Slopes are computed for a batch at
once, at the factors before it; the cells of the batch then update their rows one after another. The likelihood's
parameters are updated once per batch. An epoch after which the loss is higher is repeated with half the learning rate,
so the loss never rises.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.engines import AdagradState, Gradients, RidgePenalty, Side
from halfseen.likelihoods import Likelihood, Linear, MultiSigmoid, Round
from halfseen.solvers.base import State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.newton import Newton, Ridge
from halfseen.solvers.problem import Problem

#: Attempts at an epoch, each with half the learning rate, before it is given up.
_MAX_HALVINGS = 6
#: Small data have smaller batches: an epoch should make many steps.
_MIN_BATCHES = 50
#: Largest entry of a random start of `GD`, and the step of thresholds as a part of that of factors, both as in the
#: program of the author of `grr-2018`.
_SMALL_START, _THRESHOLD_STEP = 0.005, 0.1


class SGD(Newton):
    """Stochastic epochs; folding in and the loss are those of Newton's method, which has the same optimum.

    Parameters
    ----------
    ridge : Ridge
        Penalty on the factors.
    learning_rate : float
        Length of the first step.
    batch_size : int
        Largest number of cells per batch.
    random : RandomState
        Draws the order of cells.
    """

    name = "stochastic"
    needs = frozenset({"newton", "sgd", "numpy"})

    def __init__(self, ridge: Ridge, learning_rate: float, batch_size: int, random: np.random.RandomState) -> None:
        super().__init__(ridge)
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.random_state = random

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        n, m = problem.cells.observed.shape
        likelihood: Any = problem.likelihood
        adagrad = AdagradState(self.learning_rate, np.zeros(n), np.zeros(m), np.zeros(likelihood.parameters.size))
        return self._state_with(problem, PointFactor(W), PointFactor(H), adagrad)

    def kept_to_save(self, kept: Any) -> Any:
        return tuple((np.asarray(array), "host") for array in kept)

    def kept_again(self, problem: Problem, rows: PointFactor, columns: PointFactor, saved: Any) -> Any:
        rate, *sums = saved
        likelihood: Any = problem.likelihood
        sizes = [*problem.cells.observed.shape, likelihood.parameters.size]
        if [(one.dtype, one.shape) for one in sums] != [(np.float64, (size,)) for size in sizes]:
            raise ValueError("the sums of gradients must be of these rows, columns and parameters")
        return AdagradState(float(rate), *sums)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        problem, rate = problem.with_likelihood(state.likelihood), state.kept.learning_rate
        for _ in range(_MAX_HALVINGS):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is repeated
                new = self._epoch(problem, state, rate)
            if new.objective <= state.objective:
                return new
            rate /= 2.0
        return state

    def _epoch(self, problem: Problem, state: State[PointFactor], rate: float) -> State[PointFactor]:
        engine, cells, observed = problem.engine, problem.cells, problem.cells.observed
        W, H = state.rows.mean.copy(), state.columns.mean.copy()
        adagrad = AdagradState(rate, *(sums.copy() for sums in state.kept[1:]))
        counts = (observed.seen_per_row(), observed.seen_per_column())
        penalties = (self.ridge.penalty(W.shape[1], Side.ROWS), self.ridge.penalty(H.shape[1], Side.COLUMNS))
        order = self.random_state.permutation(observed.nnz)
        size = max(1, min(self.batch_size, observed.nnz // _MIN_BATCHES))
        for first in range(0, observed.nnz, size):
            which = order[first : first + size]
            x = engine.sddmm_at(cells, which, W, H)
            weight = None if cells.weights is None else cells.weights[which]
            smooth: Any = problem.likelihood
            slope, gradient = smooth.gradients(cells.y[which], x, weight)
            engine.adagrad_step(cells, which, slope, W, H, adagrad, counts, penalties)
            if gradient.size:
                likelihood: Any = problem.likelihood
                sums = adagrad.parameters
                sums += gradient**2
                parameters = likelihood.parameters - rate * gradient / np.sqrt(np.maximum(sums, 1e-300))
                problem = problem.with_likelihood(likelihood.with_parameters(parameters))
        return self._state_with(problem, PointFactor(W), PointFactor(H), adagrad)

    def _state_with(
        self, problem: Problem, rows: PointFactor, columns: PointFactor, adagrad: AdagradState
    ) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, rows.mean, columns.mean)
        return replace(self._state(problem, rows, columns, x, problem.costs(x)), kept=adagrad)


class Descent(NamedTuple):
    """The gradient at a state of `GD`, and what stays the same: the weights of rows and columns, and the ridge."""

    gradients: Gradients
    counts: tuple[Array, Array]
    penalties: tuple[RidgePenalty, RidgePenalty]


class GD(Newton):
    """Gradient descent by all cells, with a constant step: the optimiser of `grr-2018`.

        f_u <- f_u - learning_rate * sum over cells of (slope * g_i + l2 (f_u - centre))    (Eqs. 1.8 and 1.9)
        tau <- tau - learning_rate / 10 * d/dtau,  sorted

    All move at once, and the ridge counts once for each cell (of weight 1). The ends of Round's outer intervals move no
    threshold, as in the program of the thesis. The loss may rise. Folding in is Newton's,
    with the ridge of a row that has as many cells as the rows of the fit have on average.

    Parameters
    ----------
    ridge : Ridge
        Penalty on the factors, per cell.
    learning_rate : float
        Step of the factors.
    cells_per_row : float
        Average number of cells in a row.
    """

    name = "gradient descent"
    needs = frozenset({"newton", "gd", "numpy"})
    is_monotone = False

    def __init__(self, ridge: Ridge, learning_rate: float, cells_per_row: float) -> None:
        super().__init__(ridge)
        self.learning_rate = learning_rate
        self.cells_per_row = cells_per_row

    @property
    def ridge_of_row(self) -> Ridge:
        """The ridge of an average row."""
        return replace(self.ridge, l2=self.ridge.l2 * self.cells_per_row)

    def check(self, likelihood: Likelihood) -> None:
        self._require(isinstance(likelihood, Linear | MultiSigmoid | Round), likelihood, "of rounding")

    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        return random.uniform(-_SMALL_START, _SMALL_START, size)

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        observed = problem.cells.observed
        sides = zip((observed.row_of_cell(), observed.indices), observed.shape, strict=True)
        of_rows, of_columns = (
            np.bincount(at, observed.weights, minlength=size).astype(np.float64) for at, size in sides
        )
        penalties = (self.ridge.penalty(W.shape[1], Side.ROWS), self.ridge.penalty(H.shape[1], Side.COLUMNS))
        return self._at(problem, W, H, (of_rows, of_columns), penalties)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        _, of_rows, of_columns, of_parameters = state.kept.gradients
        likelihood: Any = state.likelihood
        if likelihood.learned:
            step = _THRESHOLD_STEP * self.learning_rate * of_parameters
            if isinstance(likelihood, Linear):
                likelihood = replace(likelihood, offset=likelihood.offset - float(step[0]))
            else:
                thresholds = np.sort(likelihood.thresholds - step)
                for d in range(1, thresholds.size):  # equal ones would stay equal
                    thresholds[d] = max(thresholds[d], np.nextafter(thresholds[d - 1], np.inf))
                likelihood = replace(likelihood, thresholds=thresholds)
        W = state.rows.mean - self.learning_rate * of_rows
        H = state.columns.mean - self.learning_rate * of_columns
        return self._at(problem.with_likelihood(likelihood), W, H, *state.kept[1:])

    def kept_to_save(self, kept: Any) -> Any:
        return None

    def kept_again(self, problem: Problem, rows: PointFactor, columns: PointFactor, saved: Any) -> Any:
        return self.init_state(problem, rows.mean, columns.mean).kept

    def _at(
        self, problem: Problem, W: Array, H: Array, counts: tuple[Array, Array],
        penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> State[PointFactor]:  # fmt: skip
        """The state at these factors, with the gradient there."""
        likelihood: Any = problem.likelihood
        tau = np.array([likelihood.offset]) if isinstance(likelihood, Linear) else likelihood.thresholds
        shape = (0.0, np.inf, 1.0)
        if isinstance(likelihood, Round):
            shape = (float(likelihood.margin), float(likelihood.ends), float(likelihood.smoothing))
        cells, name = problem.cells, likelihood.name
        gradients = problem.engine.gradients(cells, name, tau, shape, W, H, counts, penalties)
        return State(PointFactor(W), PointFactor(H), Descent(gradients, counts, penalties), gradients.cost, likelihood)

    def escape(self, problem: Problem, state: State[PointFactor], least: float) -> State[PointFactor]:
        return state

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """|previous - current| / loss at the start <= tol."""
        return abs(previous - current) <= tol * abs(first)

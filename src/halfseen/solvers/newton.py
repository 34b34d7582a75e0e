"""Newton's method by rows: each row's step uses its own gradient and curvature, with the other side fixed.

    f_u <- f_u - (sum of c g_i g_i^T + l2)^{-1} (sum of s g_i + l2 (f_u - centre))

with s and c the slope and the curvature of each observed cell's cost. A row that its step would make worse tries
shorter ones, and stays if none helps: so the loss never rises. Rows are independent, so each is judged by its own loss.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from halfseen.arrays import Array, beside, namespace, smallest
from halfseen.engines import RidgePenalty, Side
from halfseen.likelihoods import Likelihood, Quadratic, SmoothOrdinal
from halfseen.likelihoods.rules import Terms
from halfseen.solvers.base import Solver, State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.problem import Problem

#: The l2 of biases, as a part of that of factors.
BIAS_L2 = 1.0 / 3.0
#: Largest change of a likelihood's parameter (an offset, the logarithm of a gap) in one step.
_LONGEST_STEP = 1.0
#: Parts of its step that a row tries.
_STEP_SIZES = (1.0, 0.4, 0.1, 0.01, 1e-3, 1e-4, 0.0)
#: Damping of the step of a likelihood's parameters, raised until the step helps.
_DAMPING = (0.0, 0.1, 1.0, 30.0)
#: Iterations of the power method for the largest singular value of the slopes.
_POWER_ITERATIONS = 10
#: Standard deviation of a random start.
_START = 0.1


@dataclass(frozen=True)
class Ridge:
    """l2 / 2 * sum over rows u of |f_u - centre|^2 for both factors, and with a third of that l2 for biases.

    Rows are drawn to sqrt(3) e_1 and columns to sqrt(3) e_2, not to 0: near there x is about sqrt(3) (h_1 + w_2), so
    that columns and rows have biases at the price of l2 / 3, and each row its own sensitivity w_1 to those of columns,
    each column its own to those of rows. (Around 0, what all rows have in common would be penalised in every single
    one; and around the mean of the rows, the means would grow until biases cost nothing.) Biases proper are the last
    two components: rows have [w, b, 1], columns [h, 1, c], so that x = w @ h + b + c.

    Parameters
    ----------
    l2 : float
        Penalty on the entries of both factors.
    biases : bool, default=False
        Whether the last two components are biases.
    centred : bool, default=True
        Whether the centre is as above, or 0.
    """

    l2: float
    biases: bool = False
    centred: bool = True

    state: ClassVar[Mapping[str, Any]] = {"l2": float, "biases": bool, "centred": bool}

    def penalty(self, size: int, side: Side) -> RidgePenalty:
        """The penalty of each component; the ones beside biases are fixed."""
        mine = 0 if side is Side.ROWS else 1
        l2, centre, fixed = np.full(size, self.l2), np.zeros(size), np.zeros(size)
        if self.centred and mine < size - 2 * self.biases:  # with one component, the centre of columns is 0
            centre[mine] = BIAS_L2**-0.5
        if self.biases:
            l2[-2:] = BIAS_L2 * self.l2
            centre[-1 - mine], fixed[-1 - mine] = 1.0, 1.0
        return RidgePenalty(l2, centre, fixed)

    def with_biases(self, factor: Array, side: Side) -> Array:
        """A factor with the two components of biases, which start at 0."""
        if not self.biases:
            return factor
        bias, ones = np.zeros((len(factor), 1), factor.dtype), np.ones((len(factor), 1), factor.dtype)
        return np.hstack([factor, bias, ones] if side is Side.ROWS else [factor, ones, bias])

    def initialize(self, factor: Array, side: Side) -> Array:
        """A small random factor moved to the centre, with biases if there are any."""
        wide = self.with_biases(factor, side)
        penalty = self.penalty(wide.shape[1], side)
        return wide + np.where(penalty.fixed == 1, 0.0, penalty.centre).astype(factor.dtype)

    def recentring(self, grams: Sequence[Array], learned: bool) -> tuple[tuple[Array, Array], float]:
        """How to lower the penalty of factors with biases as far as that changes the cost of no cell.

        For every v and s, x and the thresholds tau rise by s alike with

            (w_u + v) @ h_i + b_u + (c_i - v @ h_i + s) = x_ui + s

        and the best v and s solve the normal equations of

            l2 / 2 sum over u of |w_u + v - centre|^2 + l2 / 6 sum over i of (c_i - v @ h_i + s)^2

        (Thresholds that are given stay, and b_u - s takes the place of b_u.) A component whose centre of rows is z may
        be mirrored before: (2 z - w_u) (-h_i) + b_u + (c_i + 2 z h_i) = x_ui. Then the same with rows and columns
        exchanged. Steps of rows, columns and thresholds, each with the others fixed, take hundreds of epochs to get
        there.

        Parameters
        ----------
        grams : sequence of ndarray of shape (k + 2, k + 2)
            W^T W and H^T H.
        learned : bool
            Whether the thresholds may move.

        Returns
        -------
        maps : tuple of ndarray of shape (k + 2, k + 2)
            What W and what H is to be multiplied by.
        shift : float
            What the thresholds are to be raised by.
        """
        grams, size, shift = list(grams), len(grams[0]), 0.0
        maps, k = [np.eye(size), np.eye(size)], size - 2

        def multiply(number: int, change: Array) -> None:
            grams[number], maps[number] = change.T @ grams[number] @ change, maps[number] @ change

        for near, side in enumerate(Side):
            # where the far side has its biases, and this one its ones; and the other way round
            far, bias, ones = 1 - near, size - 1 - near, size - 2 + near
            centre = self.penalty(size, side).centre[:k]
            of_near, of_far = np.eye(size), np.eye(size)
            for j in np.flatnonzero(centre):
                if (
                    grams[far][j, bias] + centre[j] * grams[far][j, j] < 0
                ):  # the sum of (c + 2 z h)^2 is less than of c^2
                    of_near[j, j], of_far[j, j] = -1.0, -1.0
                    of_near[bias, j], of_far[j, bias] = 2.0 * centre[j], 2.0 * centre[j]
            multiply(near, of_near)
            multiply(far, of_far)
            terms, signs = [*range(k), ones], np.append(-np.ones(k), 1.0)  # of c - v @ h + s
            A = BIAS_L2 * signs[:, None] * grams[far][np.ix_(terms, terms)] * signs
            g = BIAS_L2 * signs * grams[far][terms, bias]
            n = grams[near][bias, bias]
            A[range(k), range(k)] += n
            g[:k] += grams[near][bias, :k] - n * centre
            if not learned:
                A[k, k] += BIAS_L2 * n
                g[k] -= BIAS_L2 * grams[near][bias, ones]
            step = -np.linalg.solve(A, g)
            of_near, of_far = np.eye(size), np.eye(size)
            of_near[bias, :k], of_far[terms, bias] = step[:k], signs * step
            if learned:
                shift += float(step[k])
            else:
                of_near[bias, ones] = -step[k]
            multiply(near, of_near)
            multiply(far, of_far)
        return (maps[0], maps[1]), shift


def ridge_costs(penalty: RidgePenalty, factor: Any) -> Terms:
    """l2 / 2 * |f_u - centre|^2 of each row u, and to be summed."""
    xp = namespace(factor)
    l2, centre = (beside(factor, array) for array in (penalty.l2, penalty.centre))
    costs = xp.sum(0.5 * l2 * (factor - centre) ** 2, axis=1)
    return Terms((costs,), (costs,))


@dataclass(frozen=True, eq=False)
class Newton(Solver[PointFactor]):
    """Alternating: rows, columns, then the likelihood's parameters, each from where the others have come to."""

    ridge: Ridge

    name = "newton"
    needs = frozenset({"newton"})
    minimizes = True
    is_multiplicative = False
    state: ClassVar[Mapping[str, Any]] = {"ridge": Ridge}

    def check(self, likelihood: Likelihood) -> None:
        self._require(isinstance(likelihood, SmoothOrdinal), likelihood, "with a slope everywhere")

    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Small numbers around 0: biases and thresholds come first, then the differences between rows."""
        return random.normal(0.0, _START, size)

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, W, H)
        return self._state(problem, PointFactor(W), PointFactor(H), x, problem.costs(x))

    def state_at(self, problem: Problem, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, rows.mean, columns.mean)
        return State(rows, columns, x, np.inf, problem.likelihood)

    def init_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        problem = problem.with_likelihood(state.likelihood)
        cells = problem.quadratic(state.kept)
        rows, _, cells = self._update(problem, state.rows, state.columns, Side.ROWS, cells, problem.quadratic)
        columns, x, cells = self._update(problem, state.columns, rows, Side.COLUMNS, cells, problem.costs)
        problem, cells = _update_parameters(problem, x, cells)
        engine, likelihood = problem.engine, cast(SmoothOrdinal, problem.likelihood)
        if self.ridge.biases and self.ridge.l2 > 0:
            grams = [
                engine.to_numpy(engine.gram(factor.mean, problem.shards(side))).astype(np.float64)
                for factor, side in ((rows, Side.ROWS), (columns, Side.COLUMNS))
            ]
            if np.isfinite(grams).all():  # else they will be rejected
                (of_rows, of_columns), shift = self.ridge.recentring(grams, bool(likelihood.parameters.size))
                rows = PointFactor(_times(problem, rows.mean, of_rows, Side.ROWS))
                columns = PointFactor(_times(problem, columns.mean, of_columns, Side.COLUMNS))
                if shift:
                    problem, x = problem.with_likelihood(likelihood.shifted(shift)), x + shift
        return self._state(problem, rows, columns, x, cells)

    def half_step(self, problem: Problem, near: PointFactor, far: PointFactor, side: Side) -> PointFactor:
        x = problem.engine.sddmm(
            problem.cells, *((near.mean, far.mean) if side is Side.ROWS else (far.mean, near.mean))
        )
        return self._update(problem, near, far, side, problem.quadratic(x), problem.costs)[0]

    def _update(
        self, problem: Problem, near: PointFactor, far: PointFactor, side: Side, cells: Quadratic,
        evaluate: Callable[[Any], Quadratic],
    ) -> tuple[PointFactor, Any, Quadratic]:  # fmt: skip
        """One side after its step, x there, and `evaluate(x)`. `cells` are cost, slope and curvature before it."""
        F, G = near.mean, far.mean
        penalty = self.ridge.penalty(F.shape[1], side)
        before = _row_losses(problem, cells, F, G, side, penalty)
        new = problem.engine.newton_step(problem.cells, cells.slope, cells.curvature, F, G, penalty, side)
        kept, worse = F, None
        for step_size in _STEP_SIZES:
            trial = F + step_size * (new - F) if step_size else F
            kept = trial if worse is None else namespace(trial).where(worse[:, None], trial, kept)
            x = problem.engine.sddmm(problem.cells, *((kept, G) if side is Side.ROWS else (G, kept)))
            evaluated = evaluate(x)
            worse = _row_losses(problem, evaluated, kept, G, side, penalty) > before
            if not problem.engine.fetch(problem.map(counted, None, worse, side=side)[1])[0][0]:
                break
        return PointFactor(kept), x, evaluated

    def kept_to_save(self, kept: Any) -> Any:
        return ((kept, "cells"),)  # x after a shift is not to the last bit what the factors give

    def kept_again(self, problem: Problem, rows: PointFactor, columns: PointFactor, saved: Any) -> Any:
        return saved[0]

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol."""
        return previous - current <= tol * abs(first)

    def escape(self, problem: Problem, state: State[PointFactor], least: float) -> State[PointFactor]:
        """The state after an epoch without momentum, or from beyond a saddle, if that gains more than `least`.

        Momentum gains little where it overshoots. And epochs that start near a saddle take long to depart, and seem to
        have converged.
        """
        problem = problem.with_likelihood(state.likelihood)
        x = problem.engine.sddmm(problem.cells, state.rows.mean, state.columns.mean)
        best = Newton.epoch(self, problem, replace(state, kept=x))  # after stochastic epochs, too
        if state.objective - best.objective <= least:
            for start in self._beyond_saddle(problem.with_likelihood(best.likelihood), best):
                best = min(best, Newton.epoch(self, problem, start), key=lambda new: new.objective)
        if state.objective - best.objective <= least:
            return state
        return self.init_state(problem.with_likelihood(best.likelihood), best.rows.mean, best.columns.mean)

    def _beyond_saddle(self, problem: Problem, state: State[PointFactor]) -> Iterator[State[PointFactor]]:
        """Where to start from on both sides of a saddle; nothing if the place is none.

        Let a component w, h, that which is nearest to its centre, move by t a and t b, and the thresholds by t s. The
        loss changes by t^2 Q / 2 + t^4 / 2 sum of curvature (a_u b_i)^2 + ...,

            Q = sum of (2 slope a_u b_i + curvature (a_u h_i + w_u b_i - s)^2) + l2 (|a|^2 + |b|^2)

        If that can be negative, the place is a saddle, and a better one is at t^2 = -Q / (2 sum of curvature (a_u
        b_i)^2) or, since all else will follow, farther away. Where there are biases, they and the thresholds take back
        the mean of w times b_i, and the mean of h times a_u: w and h are taken without their means, and

            l2 / 3 (mean(w)^2 sum of (b_i - mean(b))^2 + mean(h)^2 sum of (a_u - mean(a))^2)

        is the price. At its best s, Q = a A a + 2 a R b + b B b, with A and B diagonal but for a product U U^T of rank
        2, and a <- -A^{-1} R b, b <- -B^{-1} R^T a lead to the best directions, as the power method does.
        """
        engine, placed, factors = problem.engine, problem.cells, (state.rows.mean, state.columns.mean)
        size, l2, sides = factors[0].shape[1], self.ridge.l2, tuple(Side)
        has_biases, x, likelihood = self.ridge.biases, state.kept, cast(SmoothOrdinal, problem.likelihood)
        cells, learned = problem.quadratic(x), bool(likelihood.parameters.size)  # thresholds that are given stay

        def sum_of(array: Any, side: Side | None = None, axis: int | None = None) -> Any:
            """The sum over a side's rows, or over the cells."""
            shards = placed.cell_shards if side is None else problem.shards(side)
            return engine.to_numpy(engine.over_rows(total, axis, array, shards=shards))

        def products_of(left: Any, right: Any, side: Side) -> Array:
            return engine.to_numpy(engine.over_rows(products, None, left, right, shards=problem.shards(side)))

        curved = float(sum_of(cells.curvature))
        if not (l2 > 0 and curved > 0):
            return
        away = sum(
            sum_of((F - beside(F, self.ridge.penalty(size, side).centre)) ** 2, side, axis=0)
            for F, side in zip(factors, sides, strict=True)
        )
        j = int(np.argmin(away[: size - 2 * has_biases]))
        means = [
            float(sum_of(F[:, j], side) / len(F)) if has_biases else 0.0 for F, side in zip(factors, sides, strict=True)
        ]
        component = [F[:, j : j + 1] - mean for F, mean in zip(factors, means, strict=True)]
        R = cells.slope + cells.curvature * engine.sddmm(placed, *component)
        diagonals, Us = [], []
        for near, far in ((0, 1), (1, 0)):
            h = component[far]
            sums = engine.spmm(placed, cells.curvature, namespace(h).concat([h, h * h], axis=1), sides[near])
            xp = namespace(sums)
            price = BIAS_L2 * l2 * means[far] ** 2
            diagonals.append(sums[:, 1:] + (l2 + price))
            constant = xp.ones_like(sums[:, :1]) * (price / len(sums)) ** 0.5
            Us.append(xp.concat([sums[:, :1] * curved**-0.5, constant], axis=1) * float(learned))
        directions = [component[0], beside(component[1], np.random.RandomState(0).normal(size=component[1].shape))]
        rise = component[0]
        for near, far in ((0, 1), (1, 0)) * _POWER_ITERATIONS + ((0, 1),):
            v, U, diagonal = directions[far], Us[near], diagonals[near]
            directions[far] = v = v / max(float(sum_of(v * v, sides[far])) ** 0.5, smallest(v))
            rise = engine.spmm(placed, R, v, sides[near]) - U[:, :1] * beside(U, sum_of(Us[far][:, :1] * v, sides[far]))
            # the inverse of diagonal - U U^T, by Woodbury's identity
            inner = np.eye(2) - products_of(U, U / diagonal, sides[near])
            along = np.linalg.lstsq(inner, products_of(U, rise / diagonal, sides[near]), rcond=None)[0]
            directions[near] = -(rise + _times(problem, U, along, sides[near])) / diagonal
        a, b = directions
        aAa = -float(sum_of(a * rise, Side.ROWS))
        bBb = float(sum_of(diagonals[1] * b * b, Side.COLUMNS) - np.sum(products_of(Us[1], b, Side.COLUMNS) ** 2))
        if not aAa > bBb > 0:
            return
        Q = 2.0 * ((aAa * bBb) ** 0.5 - aAa)  # at lengths of a and b that make it lowest
        a, b = a * (bBb / aAa) ** 0.25, b * (aAa / bBb) ** 0.25
        fourth = float(sum_of(cells.curvature * engine.sddmm(placed, a, b) ** 2))
        gain = Q**2 / (8.0 * max(fourth, smallest(a)))
        if gain >= state.objective:  # that can't be
            return
        for t in np.array([1.0, -1.0, 3.0, -3.0]) * (-Q / (2.0 * fourth)) ** 0.5:
            moved = []
            for number, direction in enumerate((a, b)):
                entries = t * np.eye(size)[j]
                if has_biases:
                    entries[number - 2] = -t * means[1 - number]
                moved.append(factors[number] + direction * beside(direction, entries))
            new_x = engine.sddmm(placed, *moved)
            shift = float(sum_of(cells.curvature * (new_x - x))) / curved
            cut = likelihood.shifted(shift) if learned else likelihood
            yield State(PointFactor(moved[0]), PointFactor(moved[1]), new_x, np.inf, cut)

    def extrapolate(self, now: Any, before: Any, beta: float) -> Any:
        parameters = now.parameters
        if not parameters.size:
            return now
        step = np.clip(beta * (parameters - before.parameters), -_LONGEST_STEP, _LONGEST_STEP)
        return now.with_parameters(parameters + step)

    def default_factor(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _state(
        self, problem: Problem, rows: PointFactor, columns: PointFactor, x: Any, cells: Quadratic
    ) -> State[PointFactor]:
        loss = _cell_loss(problem, cells)
        for factor, side in ((rows.mean, Side.ROWS), (columns.mean, Side.COLUMNS)):
            penalty = self.ridge.penalty(factor.shape[1], side)
            loss += float(problem.engine.fetch(problem.map(ridge_costs, penalty, factor, side=side)[1])[0][0])
        return State(rows, columns, x, loss, problem.likelihood)


def _row_losses(problem: Problem, cells: Quadratic, F: Any, G: Any, side: Side, penalty: RidgePenalty) -> Any:
    """The loss of each row of F: its cells' costs, and its penalty. NaN counts as infinite."""
    xp = namespace(F)
    of_cells = problem.engine.spmm(problem.cells, cells.cost, namespace(G).ones_like(G[:, :1]), side)
    losses = of_cells[:, 0] + problem.map(ridge_costs, penalty, F, side=side)[0][0]
    return xp.where(xp.isnan(losses), xp.inf, losses)


def _update_parameters(problem: Problem, x: Any, cells: Quadratic) -> tuple[Problem, Quadratic]:
    """The likelihood's parameters after a step of Newton's method, damped until it helps."""
    likelihood: Any = problem.likelihood
    parameters = likelihood.parameters
    if not parameters.size:
        return problem, cells
    sums, loss = problem.parameter_sums(x), _cell_loss(problem, cells)
    if not np.isfinite(sums).all():  # from factors that will be rejected
        return problem, cells
    for damping in _DAMPING:
        step = np.clip(likelihood.parameter_step(sums, damping), -_LONGEST_STEP, _LONGEST_STEP)
        moved = problem.with_likelihood(likelihood.with_parameters(parameters + step))
        costs = moved.costs(x)
        if _cell_loss(moved, costs) < loss:
            return moved, costs
    return problem, cells


def _cell_loss(problem: Problem, cells: Quadratic) -> float:
    """The summed cost of the cells, and the penalty on the likelihood's parameters."""
    likelihood: Any = problem.likelihood
    (cost,) = problem.engine.fetch(problem.engine.map(summed, None, cells.cost, shards=problem.cells.cell_shards)[1])
    return float(cost[0]) + float(likelihood.parameter_penalty)


def summed(_: None, array: Any) -> Terms:
    """The array, to be summed."""
    return Terms((), (array,))


def counted(_: None, mask: Any) -> Terms:
    """Where a mask holds, to be counted."""
    xp = namespace(mask)
    return Terms((), (xp.astype(mask, xp.float64),))


def total(axis: int | None, array: Any) -> Any:
    """The sum of an array."""
    return namespace(array).sum(array, axis=axis)


def products(_: None, left: Any, right: Any) -> Any:
    """The products of all columns of two arrays."""
    return left.T @ right


def multiplied_by(matrix: Any, rows: Any) -> Any:
    """Rows times a matrix."""
    return rows @ beside(rows, matrix)


def _times(problem: Problem, factor: Any, matrix: Array, side: Side) -> Any:
    """A side's factor times a matrix."""
    return problem.engine.over_rows(multiplied_by, matrix, factor, shards=problem.shards(side), summed=False)

"""The problem to be fitted: the observed cells, their likelihood, and the contribution of unseen cells."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import DeviceCells, Engine, Side
from halfseen.likelihoods import Likelihood, Quadratic, UnseenPush

#: Cells per chunk of `saturated`, so that no temporary array of all cells is made.
_CELLS_PER_CHUNK = 1 << 17


class GramCache:
    """F^T F of the last two factors: those of both sides of a fit, each of which is needed several times."""

    def __init__(self, engine: Engine[Any]) -> None:
        self._engine = engine
        self._last: list[tuple[Any, Any]] = []

    def get(self, factor: Any) -> Any:
        for known, gram in self._last:
            if known is factor:
                return gram
        gram = self._engine.gram(factor)
        self._last = [*self._last[-1:], (factor, gram)]
        return gram


@dataclass(frozen=True)
class Problem:
    """Cells, likelihood and engine. Weights and unseen cells are handled here, for all solvers.

    Parameters
    ----------
    engine : Engine
        Where to compute.
    cells : DeviceCells
        The observed cells, as `engine.place` returns them.
    likelihood : Likelihood
        The likelihood of their values.
    """

    engine: Engine[Any]
    cells: DeviceCells
    likelihood: Likelihood

    @cached_property
    def grams(self) -> GramCache:
        return GramCache(self.engine)

    @property
    def zeros(self) -> UnseenPush | None:
        """The push of an unseen cell that counts as a zero; None if unseen cells are missing."""
        return self.likelihood.unseen if self.cells.observed.unseen == "zero" else None

    def pull_push(self, x: Any, spare: Any | None = None) -> tuple[Any, Any]:
        """Weighted pull and push of every observed cell. Where zeros count, the push of an unseen cell is subtracted,
        because `pushes` adds it for the whole grid. `x` and `spare` are overwritten with the two."""
        likelihood, zeros = self.likelihood, self.zeros
        push_cancels = zeros is not None and likelihood.pushes_as_unseen and not self._weight_arrays

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any, Any]:
            pull, push = likelihood.pull_push(y, x)
            if push_cancels:
                return pull, 0.0
            weight, first = self._weight_and_first(weights)
            if weight is not None:
                pull, push = pull * weight, push * weight
            return pull, push if zeros is None else push - first * zeros.at(x)

        pull, push = self.engine.map(rule, self.cells.y, x, *self._weight_arrays, into=self._targets(x, spare))
        return pull, push

    def pull_push_cost(self, x: Any, spare: Any | None = None) -> tuple[Any, Any, float]:
        """As `pull_push`, and the summed divergence of the observed cells, less their cost as unseen zeros."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any, Any, Any]:
            pull, push, cost = likelihood.pull_push_cost(y, x)
            weight, first = self._weight_and_first(weights)
            if weight is not None:
                pull, push, cost = pull * weight, push * weight, cost * weight
            if zeros is not None:
                push, cost = push - first * zeros.at(x), cost - first * zeros.cost(x)
            return _sum_vector(cost), pull, push

        targets = self._targets(x, spare)
        cost, pull, push = self.engine.map_reduce(rule, self.cells.y, x, *self._weight_arrays, into=targets)
        return pull, push, float(cost[0])

    def pull_and_bound(self, x: Any) -> tuple[Any, float, Array]:
        """At the geometric x: weighted pull of every observed cell; the local term of the evidence bound, the sum of
        log p(y|x) + push * x; and the sums of E[n] that a learning likelihood needs. `x` is overwritten."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any, Any]:
            pull, push, cost = likelihood.pull_push_cost(y, x)
            weight, _ = self._weight_and_first(weights)
            gain = push * x - cost
            sums = _sum_vector(gain if weight is None else gain * weight)
            if likelihood.learns:
                sums = np.append(sums, likelihood.sums_of_counts(y, pull * x, weight))
            return sums, pull if weight is None else pull * weight

        (gain, *of_counts), pull = self.engine.map_reduce(rule, self.cells.y, x, *self._weight_arrays, into=(x,))
        return pull, float(gain) + self.saturated, np.array(of_counts)

    def quadratic(self, x: Any) -> Quadratic:
        """Weighted cost, slope and curvature of every observed cell at x, under a `SmoothOrdinal` likelihood."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any, ...]:
            quadratic = likelihood.quadratic(y, x)
            return tuple(part * weights[0] for part in quadratic) if weights else tuple(quadratic)

        return Quadratic(*self.engine.map(rule, self.cells.y, x, *self._weight_arrays))

    def costs(self, x: Any) -> Quadratic:
        """Weighted cost of every observed cell at x, without derivatives."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> Any:
            cost = likelihood.divergence(y, x)
            return cost * weights[0] if weights else cost

        return Quadratic(self.engine.map(rule, self.cells.y, x, *self._weight_arrays), None, None)

    def gradients_at(self, which: Array, x: Any) -> tuple[Any, Array]:
        """Weighted slopes of some of the cells, by index, at x; and the gradient by the likelihood's parameters."""
        likelihood: Any = self.likelihood
        xp = namespace(x)
        y, weight = (
            None if array is None else xp.take(array, xp.asarray(which)) for array in (self.cells.y, self.cells.weights)
        )
        gradients: tuple[Any, Array] = likelihood.gradients(y, x, weight)
        return gradients

    def parameter_sums(self, x: Any) -> Array:
        """The sums that a `SmoothOrdinal` likelihood needs to update its parameters."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any]:
            return (likelihood.parameter_sums(y, x, weights[0] if weights else None),)

        sums: Array = self.engine.map_reduce(rule, self.cells.y, x, *self._weight_arrays)[0]
        return sums

    def with_likelihood(self, likelihood: Likelihood) -> "Problem":
        """The same cells with another likelihood."""
        if likelihood is self.likelihood:
            return self
        other = replace(self, likelihood=likelihood)
        # What does not depend on the likelihood stays cached.
        other.__dict__.update(grams=self.grams, _has_data_by_side=self._has_data_by_side)
        return other

    def push(self) -> Any:
        """Weighted push of every observed cell, less that of an unseen zero, where it does not depend on x."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, *weights: Any) -> Any:
            weight, first = self._weight_and_first(weights)
            push = likelihood.push(y, y)  # whatever x is
            push = push if weight is None else push * weight
            return push if zeros is None else push - first * zeros.scale

        return self.engine.map(rule, self.cells.y, *self._weight_arrays)

    def sums_of_counts(self, x: Any) -> Array:
        """The sums of E[n] = pull * x that a learning likelihood needs."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any]:
            weight, _ = self._weight_and_first(weights)
            return (likelihood.sums_of_counts(y, likelihood.pull_push(y, x)[0] * x, weight),)

        sums: Array = self.engine.map_reduce(rule, self.cells.y, x, *self._weight_arrays)[0]
        return sums

    def update_parameters(self, of_counts: Array, W: Any, H: Any, x: Any | None = None) -> "Problem":
        """With the likelihood refitted to the sums of E[n] and to the means x = W_u @ H_i."""
        likelihood: Any = self.likelihood  # a `LearningLikelihood`
        if not likelihood.learns_from_means:
            return self.with_likelihood(likelihood.refit(of_counts, np.empty(0), 0.0))
        zeros = self.zeros

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any]:
            weight, first = self._weight_and_first(weights)
            seen = first * (x if zeros is None or zeros.power == 0 else x * x)
            return (np.append(_sum_vector(seen), likelihood.sums_of_means(y, x, weight)),)

        x = self.engine.sddmm(self.cells, W, H) if x is None else x
        ((seen, *of_means),) = self.engine.map_reduce(rule, self.cells.y, x, *self._weight_arrays)
        unseen_mean = 0.0 if zeros is None else self._grid_sum(W, H) - float(seen)
        return self.with_likelihood(likelihood.refit(of_counts, np.array(of_means), unseen_mean))

    def _unseen_push(self, near: Any, far: Any) -> Any:
        """The push on each row of `near` if every cell of the grid were an unseen zero; the number 0 if none counts."""
        if self.zeros is None:
            return 0.0
        if self.zeros.power == 0:
            return self.zeros.scale * self.engine.column_sums(far)
        gram = self.zeros.scale * self.grams.get(far)
        return self.engine.map(lambda rows: rows @ gram, near)

    def pulls_and_pushes(self, pull: Any, push: Any, near: Any, far: Any, side: Side) -> tuple[Any, Any]:
        """P and Q of a half-step with one far factor for both."""
        P, from_seen = self.engine.spmm_both(self.cells, pull, push, far, side)
        return P, self._with_unseen(from_seen, near, far, side)

    def pushes(self, push: Any, near: Any, far: Any, side: Side) -> Any:
        """Q of the half-step: the pushes of all cells along each row of `near`, or one row for all of them."""
        return self._with_unseen(self.engine.spmm(self.cells, push, far, side), near, far, side)

    def _with_unseen(self, from_seen: Any, near: Any, far: Any, side: Side) -> Any:
        Q = from_seen + self._unseen_push(near, far)
        if self.zeros is None or self.cells.weights is None:
            return Q
        # Where cells of weight 0 cancel all of the grid's push, the rest is rounding error.
        xp = namespace(Q)
        return xp.where(xp.asarray(self._has_data(side)) & (Q > 0), Q, 0.0)

    def _has_data(self, side: Side) -> Array:
        """Mask of rows (or columns), as one column, with a cell that counts: an observed one, or an unseen zero."""
        if side not in self._has_data_by_side:
            observed, axis = self.cells.observed, 0 if side is Side.ROWS else 1
            position = observed.row_of_cell() if side is Side.ROWS else observed.indices
            is_first = observed.is_first_at_cell
            weight = np.bincount(position, observed.weights, minlength=observed.shape[axis])
            n_seen = np.bincount(
                position, np.ones(observed.nnz, bool) if is_first is None else is_first, minlength=observed.shape[axis]
            )
            self._has_data_by_side[side] = ((weight > 0) | (n_seen < observed.shape[1 - axis]))[:, None]
        return self._has_data_by_side[side]

    @cached_property
    def _has_data_by_side(self) -> dict[Side, Array]:
        return {}

    def divergence(self, x: Any, W: Any, H: Any) -> float:
        """The summed divergence between values and x, over the observed cells or, where zeros count, over all."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, x: Any, *weights: Any) -> Any:
            weight, first = self._weight_and_first(weights)
            cost = likelihood.divergence(y, x)
            cost = cost if weight is None else cost * weight
            return cost if zeros is None else cost - first * zeros.cost(x)

        return self.engine.sum(rule, self.cells.y, x, *self._weight_arrays) + self.cost_of_zeros(W, H)

    @cached_property
    def saturated(self) -> float:
        """The log-likelihood of the observed cells if every x were its y."""
        observed, total = self.cells.observed, 0.0
        if self.likelihood.saturated_is_zero:
            return total
        for start in range(0, observed.nnz, _CELLS_PER_CHUNK):
            part = slice(start, start + _CELLS_PER_CHUNK)
            saturated = self.likelihood.saturated(observed.values[part].astype(np.float64))
            total += float(np.sum(saturated if observed.weights is None else saturated * observed.weights[part]))
        return total

    @property
    def weight_of_cells(self) -> float:
        """The sum of the weights of all cells that count; where zeros count, of the unseen ones too."""
        observed = self.cells.observed
        seen = observed.nnz if observed.weights is None else float(observed.weights.sum(dtype=np.float64))
        return seen + (0 if self.zeros is None else observed.n_unobserved)

    def cost_of_zeros(self, W: Any, H: Any) -> float:
        """The cost of the whole grid if every cell were an unseen zero."""
        if self.zeros is None:
            return 0.0
        return self.zeros.scale * self._grid_sum(W, H) * (1.0 if self.zeros.power == 0 else 0.5)

    def _grid_sum(self, W: Any, H: Any) -> float:
        """The sum over the whole grid of x, or of x^2 where an unseen zero pushes in proportion to x."""
        if self.zeros is None or self.zeros.power == 0:
            return float(self.engine.column_sums(W) @ self.engine.column_sums(H))
        return float(namespace(W).sum(self.grams.get(W) * self.grams.get(H)))

    def _targets(self, x: Any, spare: Any | None) -> tuple[Any, Any]:
        """The arrays to overwrite with pull and push. A push that depends on x may be x itself, and stays there."""
        spare = None if isinstance(spare, float | int) else spare  # one number for all cells is no array
        return (x, spare) if self.likelihood.push_is_constant else (spare, x)

    @property
    def _weight_arrays(self) -> tuple[Any, ...]:
        """Those of the cell arrays `weights` and `is_first_at_cell` that there are."""
        return tuple(array for array in (self.cells.weights, self.cells.is_first_at_cell) if array is not None)

    def _weight_and_first(self, arrays: tuple[Any, ...]) -> tuple[Any, Any]:
        """A rule's part of `_weight_arrays`: the weight or None; 1 for the first value of a cell, 0 for others."""
        weight = None if self.cells.weights is None else arrays[0]
        return weight, 1.0 if self.cells.is_first_at_cell is None else arrays[-1]


def _sum_vector(array: Any) -> Array:
    """The sum in double precision, as a vector of one entry."""
    xp = namespace(array)
    return np.array([float(xp.sum(array, dtype=xp.float64))])


def has_data(seen: Array, unseen: str) -> Array:
    """Mask of rows (or columns) with a cell that counts: all where zeros count, else those with an observed cell."""
    return (seen > 0) | (unseen == "zero")


def where(mask: Array, yes: Any, no: Any) -> Any:
    """The rows of one factor where the mask holds, of the other elsewhere."""
    if not mask.any():
        return no
    xp = namespace(yes.mean)
    return yes._make(xp.where(xp.asarray(mask[:, None]), a, b) for a, b in zip(yes, no, strict=True))

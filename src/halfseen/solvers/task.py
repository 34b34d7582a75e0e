"""What is to be fitted: the seen cells, their likelihood, and what the unseen cells say."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Engine, Placed, Side
from halfseen.likelihoods import Likelihood, Local, UnseenPush

#: Cells whose constants are computed at a time, so that no further arrays of all cells are made.
_CELLS_AT_A_TIME = 1 << 17


class Grams:
    """F^T F of the last two factors asked for: both sides of a fit, of which each is asked for several times."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._last: list[tuple[Any, Any]] = []

    def of(self, factor: Any) -> Any:
        for known, gram in self._last:
            if known is factor:
                return gram
        gram = self._engine.gram(factor)
        self._last = [*self._last[-1:], (factor, gram)]
        return gram


@dataclass(frozen=True)
class Task:
    """Cells under a likelihood on an engine; weights and the meaning of unseen cells are settled here, once for all."""

    engine: Engine
    cells: Placed
    likelihood: Likelihood

    @cached_property
    def grams(self) -> Grams:
        return Grams(self.engine)

    @property
    def zeros(self) -> UnseenPush | None:
        """What an unseen cell pushes as an observation of zero; None if it is missing and says nothing."""
        return self.likelihood.unseen if self.cells.observed.unseen == "zero" else None

    def pull_push(self, x: Any, spare: Any | None = None) -> tuple[Any, Any]:
        """Every seen cell's weighted pull and push. Where zeros count, the push an unseen cell would have is taken off,
        because `pushes` adds it for the whole grid. `x` and `spare` are used up: the two are written over them."""
        likelihood, zeros = self.likelihood, self.zeros
        nothing_but_pull = zeros is not None and likelihood.pushes_as_unseen and not self._counts

        def rule(y: Any, x: Any, *counts: Any) -> tuple[Any, Any]:
            pull, push = likelihood.pull_push(y, x)
            if nothing_but_pull:
                return pull, 0.0
            weight, first = self._weight_and_first(counts)
            if weight is not None:
                pull, push = pull * weight, push * weight
            return pull, push if zeros is None else push - first * zeros.at(x)

        pull, push = self.engine.each(rule, self.cells.y, x, *self._counts, into=self._written_over(x, spare))
        return pull, push

    def pull_push_cost(self, x: Any, spare: Any | None = None) -> tuple[Any, Any, float]:
        """As `pull_push`, and the summed divergence of the seen cells, less what they would cost as unseen zeros."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, x: Any, *counts: Any) -> tuple[Any, Any, Any]:
            pull, push, cost = likelihood.pull_push_cost(y, x)
            weight, first = self._weight_and_first(counts)
            if weight is not None:
                pull, push, cost = pull * weight, push * weight, cost * weight
            if zeros is not None:
                push, cost = push - first * zeros.at(x), cost - first * zeros.cost(x)
            return _as_sum(cost), pull, push

        cost, pull, push = self.engine.tally(rule, self.cells.y, x, *self._counts, into=self._written_over(x, spare))
        return pull, push, float(cost[0])

    def pull_and_bound(self, x: Any) -> tuple[Any, float, Array]:
        """At the geometric x: every seen cell's weighted pull; the evidence bound's local term, the sum of
        log p(y|x) + push * x; and the sums of E[n] that a learning likelihood asks for. `x` is used up."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *counts: Any) -> tuple[Any, Any]:
            pull, push, cost = likelihood.pull_push_cost(y, x)
            weight, _ = self._weight_and_first(counts)
            gain = push * x - cost
            sums = _as_sum(gain if weight is None else gain * weight)
            if likelihood.learns:
                sums = np.append(sums, likelihood.sums_of_counts(y, pull * x, weight))
            return sums, pull if weight is None else pull * weight

        (gain, *of_counts), pull = self.engine.tally(rule, self.cells.y, x, *self._counts, into=(x,))
        return pull, float(gain) + self.saturated, np.array(of_counts)

    def local(self, x: Any) -> Local:
        """Every seen cell's weighted cost, slope and curvature at x, under a smooth likelihood."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any, ...]:
            local = likelihood.local(y, x)
            return tuple(part * weights[0] for part in local) if weights else tuple(local)

        return Local(*self.engine.each(rule, self.cells.y, x, *self._counts))

    def costs(self, x: Any) -> Local:
        """Every seen cell's weighted cost at x, and nothing else."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> Any:
            cost = likelihood.divergence(y, x)
            return cost * weights[0] if weights else cost

        return Local(self.engine.each(rule, self.cells.y, x, *self._counts), None, None)

    def descent_at(self, which: Array, x: Any) -> tuple[Any, Array]:
        """What some of the cells, by number, tell at x: their weighted slopes, and the gradient by the parameters."""
        likelihood: Any = self.likelihood
        xp = namespace(x)
        y, weight = (
            None if array is None else xp.take(array, xp.asarray(which)) for array in (self.cells.y, self.cells.weights)
        )
        descent: tuple[Any, Array] = likelihood.descent(y, x, weight)
        return descent

    def sums_of_parameters(self, x: Any) -> Array:
        """The sums that a smooth likelihood asks for, to move its parameters."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *weights: Any) -> tuple[Any]:
            return (likelihood.sums_of_parameters(y, x, weights[0] if weights else None),)

        sums: Array = self.engine.tally(rule, self.cells.y, x, *self._counts)[0]
        return sums

    def under(self, likelihood: Likelihood) -> "Task":
        """The same cells under another likelihood."""
        if likelihood is self.likelihood:
            return self
        other = replace(self, likelihood=likelihood)
        # What is known of cells and factors stays known, whatever the likelihood.
        other.__dict__.update(grams=self.grams, _heard_by_side=self._heard_by_side)
        return other

    def push(self) -> Any:
        """Every seen cell's weighted push, less that of an unseen zero, where it does not depend on x."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, *counts: Any) -> Any:
            weight, first = self._weight_and_first(counts)
            push = likelihood.push(y, y)  # whatever x is
            push = push if weight is None else push * weight
            return push if zeros is None else push - first * zeros.scale

        return self.engine.each(rule, self.cells.y, *self._counts)

    def sums_of_counts(self, x: Any) -> Array:
        """The sums of E[n] = pull * x that a learning likelihood asks for."""
        likelihood: Any = self.likelihood

        def rule(y: Any, x: Any, *counts: Any) -> tuple[Any]:
            return (likelihood.sums_of_counts(y, likelihood.pull_push(y, x)[0] * x, self._weight_and_first(counts)[0]),)

        sums: Array = self.engine.tally(rule, self.cells.y, x, *self._counts)[0]
        return sums

    def refitted(self, of_counts: Array, W: Any, H: Any, x: Any | None = None) -> "Task":
        """The task under the likelihood that is best for the sums of E[n] and for the means x = <W_u, H_i>."""
        likelihood: Any = self.likelihood  # a `LearningLikelihood`
        if not likelihood.learns_from_means:
            return self.under(likelihood.refit(of_counts, np.empty(0), 0.0))
        zeros = self.zeros

        def rule(y: Any, x: Any, *counts: Any) -> tuple[Any]:
            weight, first = self._weight_and_first(counts)
            seen = first * (x if zeros is None or zeros.power == 0 else x * x)
            return (np.append(_as_sum(seen), likelihood.sums_of_means(y, x, weight)),)

        x = self.engine.dots(self.cells, W, H) if x is None else x
        ((seen, *of_means),) = self.engine.tally(rule, self.cells.y, x, *self._counts)
        unseen_mean = 0.0 if zeros is None else self._grid_sum(W, H) - float(seen)
        return self.under(likelihood.refit(of_counts, np.array(of_means), unseen_mean))

    def _unseen_push(self, near: Any, far: Any) -> Any:
        """The push on each row of `near` if every cell of the grid were an unseen zero; the number 0 if none is."""
        if self.zeros is None:
            return 0.0
        if self.zeros.power == 0:
            return self.zeros.scale * self.engine.column_sums(far)
        gram = self.zeros.scale * self.grams.of(far)
        return self.engine.each(lambda rows: rows @ gram, near)

    def pulls_and_pushes(self, pull: Any, push: Any, near: Any, far: Any, side: Side) -> tuple[Any, Any]:
        """P and Q of a half-step with one far factor for both."""
        P, from_seen = self.engine.spread_both(self.cells, pull, push, far, side)
        return P, self._with_unseen(from_seen, near, far, side)

    def pushes(self, push: Any, near: Any, far: Any, side: Side) -> Any:
        """Q of the half-step: the pushes of all cells along each row of `near`, or one row that serves them all."""
        return self._with_unseen(self.engine.spread(self.cells, push, far, side), near, far, side)

    def _with_unseen(self, from_seen: Any, near: Any, far: Any, side: Side) -> Any:
        Q = from_seen + self._unseen_push(near, far)
        if self.zeros is None or self.cells.weights is None:
            return Q
        # Where cells of weight 0 take all of the grid's push away, what is left is rounding, and no push.
        xp = namespace(Q)
        return xp.where(xp.asarray(self._heard(side)) & (Q > 0), Q, 0.0)

    def _heard(self, side: Side) -> Array:
        """Which rows (or columns), as one column, have a cell that counts: a seen one, or an unseen zero."""
        if side not in self._heard_by_side:
            observed, axis = self.cells.observed, 0 if side is Side.ROWS else 1
            place = observed.row_of_cell() if side is Side.ROWS else observed.indices
            seen = observed.firsts if observed.firsts is not None else np.ones(observed.nnz, bool)
            weight = np.bincount(place, observed.weights, minlength=observed.shape[axis])
            places = np.bincount(place, seen, minlength=observed.shape[axis])
            self._heard_by_side[side] = ((weight > 0) | (places < observed.shape[1 - axis]))[:, None]
        return self._heard_by_side[side]

    @cached_property
    def _heard_by_side(self) -> dict[Side, Array]:
        return {}

    def divergence(self, x: Any, W: Any, H: Any) -> float:
        """The summed divergence between what was seen and x, over the seen cells or, where zeros count, over all."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, x: Any, *counts: Any) -> Any:
            weight, first = self._weight_and_first(counts)
            cost = likelihood.divergence(y, x)
            cost = cost if weight is None else cost * weight
            return cost if zeros is None else cost - first * zeros.cost(x)

        return self.engine.total(rule, self.cells.y, x, *self._counts) + self.cost_of_zeros(W, H)

    @cached_property
    def saturated(self) -> float:
        """The log-likelihood of the seen cells if every x were its y."""
        observed = self.cells.observed
        total = 0.0
        for start in range(0, observed.nnz, _CELLS_AT_A_TIME):
            part = slice(start, start + _CELLS_AT_A_TIME)
            saturated = self.likelihood.saturated(observed.values[part].astype(np.float64))
            total += float(np.sum(saturated if observed.weights is None else saturated * observed.weights[part]))
        return total

    @property
    def weight_of_cells(self) -> float:
        """How many cells count, by their weights; where zeros count, the unseen ones too."""
        observed = self.cells.observed
        seen = observed.nnz if observed.weights is None else float(observed.weights.sum(dtype=np.float64))
        return seen + (0 if self.zeros is None else observed.unseen_places)

    def cost_of_zeros(self, W: Any, H: Any) -> float:
        """What the whole grid would cost if every cell were an unseen zero."""
        if self.zeros is None:
            return 0.0
        return self.zeros.scale * self._grid_sum(W, H) * (1.0 if self.zeros.power == 0 else 0.5)

    def _grid_sum(self, W: Any, H: Any) -> float:
        """The sum over the whole grid of x, or of x^2 where an unseen zero pushes in proportion to x."""
        if self.zeros is None or self.zeros.power == 0:
            return float(self.engine.column_sums(W) @ self.engine.column_sums(H))
        return float(namespace(W).sum(self.grams.of(W) * self.grams.of(H)))

    def _written_over(self, x: Any, spare: Any | None) -> tuple[Any, Any]:
        """What pull and push may be written over. A push that knows x may be x itself, and keeps its place."""
        spare = None if isinstance(spare, float | int) else spare  # one number for all cells is no place
        return (x, spare) if self.likelihood.push_is_constant else (spare, x)

    @property
    def _counts(self) -> tuple[Any, ...]:
        """The cell arrays that say how much a cell counts, as far as there are any: weights, firsts."""
        return tuple(array for array in (self.cells.weights, self.cells.firsts) if array is not None)

    def _weight_and_first(self, counts: tuple[Any, ...]) -> tuple[Any, Any]:
        """A rule's share of `_counts`: the weight or None; how often the cell stands for its place in the grid."""
        weight = None if self.cells.weights is None else counts[0]
        return weight, 1.0 if self.cells.firsts is None else counts[-1]


def _as_sum(array: Any) -> Array:
    """A vector of one entry, the sum in double precision."""
    xp = namespace(array)
    return np.array([float(xp.sum(array, dtype=xp.float64))])

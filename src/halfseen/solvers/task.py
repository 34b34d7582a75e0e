"""What is to be fitted: the seen cells, their likelihood, and what the unseen cells say."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import Array, floored, namespace
from halfseen.engines import Engine, Placed, Side
from halfseen.likelihoods import Likelihood, UnseenPush

#: Cells whose constants are computed at a time, so that no further arrays of all cells are made.
_CELLS_AT_A_TIME = 1 << 17


@dataclass(frozen=True)
class Task:
    """Cells under a likelihood on an engine; weights and the meaning of unseen cells are settled here, once for all."""

    engine: Engine
    cells: Placed
    likelihood: Likelihood

    @property
    def zeros(self) -> UnseenPush | None:
        """What an unseen cell pushes as an observation of zero; None if it is missing and says nothing."""
        return self.likelihood.unseen if self.cells.observed.unseen == "zero" else None

    def pull_push(self, x: Any) -> tuple[Any, Any]:
        """Every seen cell's weighted pull and push. Where zeros count, the push an unseen cell would have is taken off,
        because `unseen_push` adds it for the whole grid. `x` is used up: one of the two is written over it."""
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

        # One of the two takes the place of x; a push that knows no x is mostly a number, and needs none.
        into = (x, None) if likelihood.push_is_constant else (None, x)
        pull, push = self.engine.each(rule, self.cells.y, x, *self._counts, into=into)
        return pull, push

    def under(self, likelihood: Likelihood) -> "Task":
        """The same cells under another likelihood."""
        return self if likelihood is self.likelihood else replace(self, likelihood=likelihood)

    def counts(self, x: Any) -> Any:
        """E[n] = pull * x at every seen cell: what it would count as under a Poisson likelihood."""
        likelihood = self.likelihood
        return self.engine.each(lambda y, x: likelihood.pull_push(y, x)[0] * x, self.cells.y, x)

    def pulls_of(self, counts: Any, x: Any) -> Any:
        """Every seen cell's weighted pull E[n] / x; `counts` is used up."""
        root = self.likelihood.root

        def rule(n: Any, x: Any, *weight: Any) -> Any:
            pull = n / floored(x, root)
            return pull * weight[0] if weight else pull

        weights = () if self.cells.weights is None else (self.cells.weights,)
        return self.engine.each(rule, counts, x, *weights, into=(counts,))

    def push(self, into: Any) -> Any:
        """Every seen cell's weighted push, less that of an unseen zero, where it does not depend on x."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, *counts: Any) -> Any:
            weight, first = self._weight_and_first(counts)
            push = likelihood.push(y, y)  # whatever x is
            push = push if weight is None else push * weight
            return push if zeros is None else push - first * zeros.scale

        return self.engine.each(rule, self.cells.y, *self._counts, into=(into,))

    def refitted(self, counts: Any, means: Any, W: Any, H: Any) -> "Task":
        """The task under the likelihood that is best for E[n] and E[x] at the seen cells."""
        likelihood: Any = self.likelihood  # a `LearningLikelihood`
        engine = self.engine

        def tally(y: Any, n: Any, x: Any, *counts: Any) -> Any:
            weight, _ = self._weight_and_first(counts)
            return likelihood.tally(y, n, x, weight)

        sums = engine.tally(tally, self.cells.y, counts, means, *self._counts)
        unseen_mean = 0.0
        if self.zeros is not None:
            firsts = (means,) if self.cells.firsts is None else (means, self.cells.firsts)
            rate = _itself if self.zeros.power == 0 else _squared
            seen = engine.total(lambda x, *first: rate(x) * first[0] if first else rate(x), *firsts)
            unseen_mean = self._grid_sum(W, H) - seen
        return self.under(likelihood.refit(sums, unseen_mean))

    def unseen_push(self, near: Any, far: Any) -> Any:
        """The push on each row of `near` if every cell of the grid were an unseen zero; the number 0 if none is."""
        if self.zeros is None:
            return 0.0
        if self.zeros.power == 0:
            return self.zeros.scale * self.engine.column_sums(far)
        gram = self.zeros.scale * self.engine.gram(far)
        return self.engine.each(lambda rows: rows @ gram, near)

    def pushes(self, push: Any, near: Any, far: Any, side: Side) -> Any:
        """Q of the half-step: the pushes of all cells along each row of `near`, or one row that serves them all."""
        from_seen, from_grid = self.engine.spread(self.cells, push, far, side), self.unseen_push(near, far)
        Q = from_seen + from_grid
        if self.zeros is None or self.cells.weights is None:
            return Q
        # Where cells of weight 0 take all of the grid's push away, what is left is rounding, and no push.
        xp = namespace(Q)
        return xp.where(xp.asarray(self._heard[side]) & (Q > 0), Q, 0.0)

    @cached_property
    def _heard(self) -> dict[Side, Array]:
        """Which rows and which columns, each as one column, have a cell that counts: a seen one, or an unseen zero."""
        observed = self.cells.observed
        seen = observed.firsts if observed.firsts is not None else np.ones(observed.nnz, bool)
        heard = {}
        for axis, (side, place) in enumerate(
            {Side.ROWS: observed.row_of_cell(), Side.COLUMNS: observed.indices}.items()
        ):
            weight = np.bincount(place, observed.weights, minlength=observed.shape[axis])
            places = np.bincount(place, seen, minlength=observed.shape[axis])
            heard[side] = ((weight > 0) | (places < observed.shape[1 - axis]))[:, None]
        return heard

    def divergence(self, x: Any, W: Any, H: Any) -> float:
        """The summed divergence between what was seen and x, over the seen cells or, where zeros count, over all."""
        likelihood, zeros = self.likelihood, self.zeros

        def rule(y: Any, x: Any, *counts: Any) -> Any:
            weight, first = self._weight_and_first(counts)
            cost = likelihood.divergence(y, x)
            cost = cost if weight is None else cost * weight
            return cost if zeros is None else cost - first * zeros.cost(x)

        return self.engine.total(rule, self.cells.y, x, *self._counts) + self._cost_of_zeros(W, H)

    def expected_log(self, x: Any) -> float:
        """The evidence bound's local term, sum of log p(y|x) + push * x, at the geometric x."""
        likelihood = self.likelihood

        def rule(y: Any, x: Any, *counts: Any) -> Any:
            weight, _ = self._weight_and_first(counts)
            gain = likelihood.push(y, x) * x - likelihood.divergence(y, x)
            return gain if weight is None else gain * weight

        return self.engine.total(rule, self.cells.y, x, *self._counts) + self.saturated

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

    def _cost_of_zeros(self, W: Any, H: Any) -> float:
        """What the whole grid would cost if every cell were an unseen zero."""
        if self.zeros is None:
            return 0.0
        return self.zeros.scale * self._grid_sum(W, H) * (1.0 if self.zeros.power == 0 else 0.5)

    def _grid_sum(self, W: Any, H: Any) -> float:
        """The sum over the whole grid of x, or of x^2 where an unseen zero pushes in proportion to x."""
        if self.zeros is None or self.zeros.power == 0:
            return float(self.engine.column_sums(W) @ self.engine.column_sums(H))
        return float(namespace(W).sum(self.engine.gram(W) * self.engine.gram(H)))

    @property
    def _counts(self) -> tuple[Any, ...]:
        """The cell arrays that say how much a cell counts, as far as there are any: weights, firsts."""
        return tuple(array for array in (self.cells.weights, self.cells.firsts) if array is not None)

    def _weight_and_first(self, counts: tuple[Any, ...]) -> tuple[Any, Any]:
        """A rule's share of `_counts`: the weight or None; how often the cell stands for its place in the grid."""
        weight = None if self.cells.weights is None else counts[0]
        return weight, 1.0 if self.cells.firsts is None else counts[-1]


def _itself(x: Any) -> Any:
    return x


def _squared(x: Any) -> Any:
    return x * x

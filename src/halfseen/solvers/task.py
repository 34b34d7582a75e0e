"""What is to be fitted: the seen cells, their likelihood, and what the unseen cells say."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import namespace
from halfseen.engines import Cells, Engine, Side
from halfseen.likelihoods import Likelihood

#: Cells whose constants are computed at a time, so that no further arrays of all cells are made.
_CELLS_AT_A_TIME = 1 << 17


@dataclass(frozen=True)
class Task:
    """Cells under a likelihood on an engine; weights and the meaning of unseen cells are settled here, once for all."""

    engine: Engine
    cells: Cells
    likelihood: Likelihood

    @property
    def zeros_count(self) -> bool:
        """Whether an unseen cell is an observation of zero."""
        return self.cells.observed.unseen == "zero"

    def pull_push(self, x: Any) -> tuple[Any, Any]:
        """Every seen cell's weighted pull and push. Where zeros count, the push an unseen cell would have is taken off,
        because `unseen_push` adds it for the whole grid. `x` is used up: the pushes may be written over it."""
        zeros_count, likelihood = self.zeros_count, self.likelihood

        def rule(y: Any, x: Any, weight: Any = None) -> tuple[Any, Any]:
            if weight is None and zeros_count and likelihood.pushes_as_unseen:
                return likelihood.pull_push(y, x)[0], 0.0
            pull, push = likelihood.pull_push(y, x)
            if weight is not None:
                pull, push = pull * weight, push * weight
            return pull, push - likelihood.unseen.at(x) if zeros_count else push  # type: ignore[union-attr]

        pull, push = self.engine.each(rule, *self._with_weights(x), into=(None, x))
        return pull, push

    def unseen_push(self, near: Any, far: Any) -> Any:
        """The push on each row of `near` if every cell of the grid were an unseen zero; the number 0 if none is."""
        if not self.zeros_count:
            return 0.0
        unseen = self.likelihood.unseen
        if unseen.power == 0:  # type: ignore[union-attr]
            return unseen.scale * self.engine.column_sums(far)  # type: ignore[union-attr]
        return near @ (unseen.scale * (far.T @ far))  # type: ignore[union-attr]

    def pushes(self, push: Any, near: Any, far: Any, side: Side) -> Any:
        """Q of the half-step: the pushes of all cells along each row of `near`, or one row that serves them all."""
        return self.engine.spread(self.cells, push, far, side) + self.unseen_push(near, far)

    def divergence(self, x: Any, W: Any, H: Any) -> float:
        """The summed divergence between what was seen and x, over the seen cells or, where zeros count, over all."""
        zeros_count, likelihood = self.zeros_count, self.likelihood

        def rule(y: Any, x: Any, weight: Any = None) -> Any:
            cost = likelihood.divergence(y, x)
            if weight is not None:
                cost = cost * weight
            return cost - likelihood.unseen.cost(x) if zeros_count else cost  # type: ignore[union-attr]

        return self.engine.total(rule, *self._with_weights(x)) + self._cost_of_zeros(W, H)

    def expected_log(self, x: Any) -> float:
        """The evidence bound's local term, sum of log p(y|x) + push * x, at the geometric x."""
        likelihood = self.likelihood

        def rule(y: Any, x: Any, weight: Any = None) -> Any:
            gain = likelihood.pull_push(y, x)[1] * x - likelihood.divergence(y, x)
            return gain if weight is None else gain * weight

        return self.engine.total(rule, *self._with_weights(x)) + self.saturated

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
        return seen + (observed.shape[0] * observed.shape[1] - observed.nnz if self.zeros_count else 0)

    def _cost_of_zeros(self, W: Any, H: Any) -> float:
        """What the whole grid would cost if every cell were an unseen zero."""
        if not self.zeros_count:
            return 0.0
        unseen = self.likelihood.unseen
        if unseen.power == 0:  # type: ignore[union-attr]
            return float(unseen.scale * (self.engine.column_sums(W) @ self.engine.column_sums(H)))  # type: ignore[union-attr]
        return float(0.5 * unseen.scale * namespace(W).sum((W.T @ W) * (H.T @ H)))  # type: ignore[union-attr]

    def _with_weights(self, x: Any) -> tuple[Any, ...]:
        cells = self.cells
        return (cells.y, x) if cells.weights is None else (cells.y, x, cells.weights)

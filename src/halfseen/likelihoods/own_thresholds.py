"""Cumulative links in which every row, or every column, has thresholds of its own: people use scales differently."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array
from halfseen.likelihoods.cumulative import Cumulative
from halfseen.likelihoods.graded import slopes_by_level
from halfseen.likelihoods.steps import jacobian, parameters_of, thresholds_of


@dataclass(frozen=True, eq=False)
class OwnThresholds(Cumulative):
    """`Cumulative` with tau_u made of the parameters p + d_u instead of p (see `steps`), at the cost l2 / 2 |d|^2.

    The first threshold and the logarithms of the gaps differ from owner to owner, and the thresholds of each stay
    ordered. A value y is owner * (N + 1) + level. The last owner stands for all who are not known: its d stays 0.
    """

    #: d, a row for each owner but the last.
    offsets: Array = field(default_factory=lambda: np.zeros((0, 0)))
    l2: float = 1.0
    #: Who the owners are: "rows" or "columns".
    who: str = "rows"

    @cached_property
    def of_owners(self) -> Array:
        """The thresholds of each owner, those of the unknown one last."""
        offsets = np.vstack([self.offsets, np.zeros(self.highest)])
        return thresholds_of(parameters_of(self.thresholds) + offsets)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        first, last = (np.full((len(self.of_owners), 1), end) for end in self._outermost)
        return np.hstack([first, self.of_owners]).ravel(), np.hstack([self.of_owners, last]).ravel()

    def at_owners(self, owners: Any) -> "CumulativeAt":
        """The likelihood of levels at cells of these owners."""
        thresholds = np.moveaxis(self.of_owners[owners], -1, 0)
        return CumulativeAt(thresholds, self.learned, self.values, self.link)

    @property
    def parameters(self) -> Array:
        return np.concatenate([super().parameters, self.offsets.ravel()])

    def at(self, parameters: Array) -> Self:
        common, offsets = parameters[: self.highest], parameters[self.highest :].reshape(self.offsets.shape)
        return replace(self, thresholds=thresholds_of(common), offsets=offsets)

    @property
    def penalty(self) -> float:
        return 0.5 * self.l2 * float(np.sum(self.offsets**2))

    def _by_owner(self, sums: Array) -> tuple[Array, Array]:
        """Gradient and second derivatives by each owner's p + d."""
        gradient, curvature = slopes_by_level(sums.reshape(5, len(self.of_owners), -1)[:, :-1])
        chain = jacobian(parameters_of(self.thresholds) + self.offsets)
        turned = chain.transpose(0, 2, 1)
        return (turned @ gradient[..., None])[..., 0], turned @ curvature @ chain

    def slopes(self, sums: Array) -> tuple[Array, Array]:
        """The gradient by p and by all d; the second derivatives in blocks, one for each owner."""
        gradient, blocks = self._by_owner(sums)
        return np.concatenate([gradient.sum(axis=0), (gradient + self.l2 * self.offsets).ravel()]), blocks

    def step(self, sums: Array, stiffness: float = 0.0) -> Array:
        """Newton's step for p and all d at once. With B_u an owner's block and g_u his gradient,

            (B_u + l2) delta_u = -(g_u + l2 d_u) - B_u delta,    sum of B_u (delta + delta_u) = -sum of g_u

        so that delta is found first, and each delta_u after it.
        """
        gradient, blocks = self._by_owner(sums)
        blocks = blocks + stiffness * np.mean(np.diagonal(blocks, axis1=1, axis2=2)) * np.eye(self.highest)
        # Owners without cells and without a price would have no best place.
        bent = blocks + (self.l2 + 1e-10 * (1.0 + np.abs(blocks).max())) * np.eye(self.highest)
        by_gradient = np.linalg.solve(bent, (gradient + self.l2 * self.offsets)[..., None])
        by_common = np.linalg.solve(bent, blocks)
        remaining = (blocks - blocks @ by_common).sum(axis=0)
        wanted = gradient.sum(axis=0) - (blocks @ by_gradient).sum(axis=0)[:, 0]
        common = -np.linalg.lstsq(remaining, wanted, rcond=None)[0]
        own = -by_gradient[..., 0] - by_common @ common
        return np.concatenate([common, own.ravel()])

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y < self._bounds[0].size) & (y == np.floor(y))


@dataclass(frozen=True, eq=False)
class CumulativeAt(Cumulative):
    """`Cumulative` at cells that each have thresholds of their own: their first axis is that of levels."""

    def _interval(self, y: Any, x: Any) -> tuple[Any, Any]:
        owners, shape = self.thresholds.shape[1:], np.broadcast_shapes(self.thresholds.shape[1:], np.shape(x))
        beside = self.thresholds.reshape(self.highest, *[1] * (len(shape) - len(owners)), *owners)
        thresholds = np.broadcast_to(beside, (self.highest, *shape))
        first, last = (np.full((1, *shape), end) for end in self._outermost)
        level = np.broadcast_to(np.asarray(y).astype(np.intp), shape)[None]
        lower = np.take_along_axis(np.concatenate([first, thresholds]), level, axis=0)[0]
        upper = np.take_along_axis(np.concatenate([thresholds, last]), level, axis=0)[0]
        return lower - x, upper - x

    def levels(self, x: Array) -> Array:
        return sum(x > threshold for threshold in self.thresholds)

    @property
    def highest(self) -> int:  # type: ignore[override]
        return len(self.thresholds)

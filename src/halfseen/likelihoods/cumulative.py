"""Cumulative link models: levels as intervals of x plus noise; thresholds common to all, or per row or column."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from halfseen.arrays import Array, ArraySpec, namespace
from halfseen.likelihoods.base import StateSpec
from halfseen.likelihoods.links import LINKS, Link
from halfseen.likelihoods.ordinal_base import (
    IntervalCost,
    IntervalOrdinal,
    Quadratic,
    interval_gradient,
    parameters_from_thresholds,
    threshold_jacobian,
    thresholds_from_parameters,
)

#: Larger than any distance of a threshold from x.
_FARTHEST = 1e30


@dataclass(frozen=True, eq=False)
class Cumulative(IntervalOrdinal):
    """P(y <= v | x) = F(tau_{v+1} - x)  (section 2.1 of `ordnmf-2020`), F the distribution of the noise.

    cost = -log(F(b) - F(a)),   a = tau_y - x,  b = tau_{y+1} - x,   tau_0 = -inf, tau_{N+1} = inf
    pull = f(a) / (F(b) - F(a)),   push = f(b) / (F(b) - F(a))
    """

    link: Link = LINKS["logit"]

    state: ClassVar[StateSpec] = {**IntervalOrdinal.state, "link": str}
    name = "cumulative"

    @property
    def _outermost(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def _interval_cost(self, a: Any, b: Any) -> IntervalCost:
        return self.link.interval_cost(*self._representable(a, b))

    def quadratic(self, y: Any, x: Any) -> Quadratic:
        """Where the cost is not convex (as with cauchit), the square of the slope stands for the curvature."""
        cost, slope, curvature = self.link.quadratic(*self._representable(*self._interval(y, x)))
        return Quadratic(cost, slope, namespace(curvature).where(curvature > 0.0, curvature, slope * slope))

    def divergence(self, y: Any, x: Any) -> Any:
        return self.link.cost(*self._representable(*self._interval(y, x)))

    def _representable(self, a: Any, b: Any) -> tuple[Any, Any]:
        """The interval; moved to where the link can compute it if it lies farther out, and widened to the smallest
        representable one if it was lost in rounding."""
        xp, far = namespace(a), self.link.far
        if far < np.inf:
            beyond = xp.clip(a - far, 0.0, None) + xp.clip(b + far, None, 0.0)
            a, b = a - beyond, b - beyond
        size = xp.clip(xp.abs(a), None, _FARTHEST)  # where a is -inf, it stays so
        return a, xp.where(b <= a, a + 4.0 * float(xp.finfo(a.dtype).eps) * (1.0 + size), b)

    def initialize(self, histogram: Array) -> Self:
        """Thresholds at the quantiles of the noise that the levels have among the cells."""
        below = np.cumsum(histogram)[:-1] / histogram.sum()
        return replace(self, thresholds=np.asarray(self.link.quantile(below)))

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis."""
        levels = (np.full_like(x, level) for level in range(self.highest + 1))
        return np.stack([np.exp(-self._at_cells(level, x).cost) for level in levels], axis=-1)

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        up_to = np.cumsum(self.probabilities(x), axis=-1)
        return (up_to[..., :-1] < random.random((*x.shape, 1))).sum(axis=-1).astype(np.float64)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], sizes: dict[str, int] | None = None) -> Self:
        arguments = cls._arguments(state, {} if sizes is None else sizes)
        for name, allowed in (("link", tuple(LINKS)), ("axis", ("rows", "columns"))):
            if name in arguments and arguments[name] not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}. Found {arguments[name]!r}.")
        return cls(**arguments | {"link": LINKS[arguments["link"]]})

    def mean(self, x: Any) -> Any:
        """E[y] = lowest value + sum over v of (value of level v + 1 - value of level v) P(y > v)."""
        return self._mean_of_steps(x, lambda z: 1.0 - self.link.cdf(-z))


@dataclass(frozen=True, eq=False)
class OwnThresholds(Cumulative):
    """`Cumulative` with thresholds per row or column: people use scales differently.

    tau_u is made of the parameters p + d_u instead of p, with the penalty l2 / 2 |d|^2, where the owner u is a row or a
    column. The thresholds of each owner stay ordered. A value y is owner * (N + 1) + level. The last owner stands for
    all unknown ones: its d stays 0.
    """

    #: d, one row per owner except the last.
    offsets: Array = field(default_factory=lambda: np.zeros((0, 0)))
    l2: float = 1.0
    #: Which side the owners are on: "rows" or "columns".
    axis: str = "rows"

    state: ClassVar[StateSpec] = {
        **Cumulative.state,
        "offsets": ArraySpec("f", ("owners", "levels-1")),
        "l2": float,
        "axis": str,
    }

    @cached_property
    def owner_thresholds(self) -> Array:
        """The thresholds of each owner, those of the unknown one last."""
        offsets = np.vstack([self.offsets, np.zeros(self.highest)])
        return thresholds_from_parameters(parameters_from_thresholds(self.thresholds) + offsets)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        first, last = (np.full((len(self.owner_thresholds), 1), end) for end in self._outermost)
        return np.hstack([first, self.owner_thresholds]).ravel(), np.hstack([self.owner_thresholds, last]).ravel()

    def for_owners(self, owners: Any) -> "CellwiseCumulative":
        """The likelihood of levels at cells of these owners."""
        thresholds = np.moveaxis(self.owner_thresholds[owners], -1, 0)
        return CellwiseCumulative(thresholds, self.learned, self.values, self.link)

    @property
    def parameters(self) -> Array:
        return np.concatenate([super().parameters, self.offsets.ravel()])

    def with_parameters(self, parameters: Array) -> Self:
        common, offsets = parameters[: self.highest], parameters[self.highest :].reshape(self.offsets.shape)
        return replace(self, thresholds=thresholds_from_parameters(common), offsets=offsets)

    @property
    def parameter_penalty(self) -> float:
        return 0.5 * self.l2 * float(np.sum(self.offsets**2))

    def _owner_gradients(self, sums: Array) -> tuple[Array, Array]:
        """Gradient and second derivatives by each owner's p + d."""
        gradient, curvature = interval_gradient(sums.reshape(5, len(self.owner_thresholds), -1)[:, :-1])
        chain = threshold_jacobian(parameters_from_thresholds(self.thresholds) + self.offsets)
        transposed = chain.transpose(0, 2, 1)
        return (transposed @ gradient[..., None])[..., 0], transposed @ curvature @ chain

    def parameter_gradient(self, sums: Array) -> tuple[Array, Array]:
        """The gradient by p and by all d; the second derivatives in blocks, one per owner."""
        gradient, blocks = self._owner_gradients(sums)
        return np.concatenate([gradient.sum(axis=0), (gradient + self.l2 * self.offsets).ravel()]), blocks

    def parameter_step(self, sums: Array, damping: float = 0.0) -> Array:
        """Newton step of p and all d at once. With B_u an owner's block and g_u its gradient,

            (B_u + l2) delta_u = -(g_u + l2 d_u) - B_u delta,    sum of B_u (delta + delta_u) = -sum of g_u

        so that delta is computed first, and each delta_u after it.
        """
        gradient, blocks = self._owner_gradients(sums)
        blocks = blocks + damping * np.mean(np.diagonal(blocks, axis1=1, axis2=2)) * np.eye(self.highest)
        # Without cells and without a penalty, an owner's system would be singular.
        regularized = blocks + (self.l2 + 1e-10 * (1.0 + np.abs(blocks).max())) * np.eye(self.highest)
        by_gradient = np.linalg.solve(regularized, (gradient + self.l2 * self.offsets)[..., None])
        by_common = np.linalg.solve(regularized, blocks)
        remaining = (blocks - blocks @ by_common).sum(axis=0)
        wanted = gradient.sum(axis=0) - (blocks @ by_gradient).sum(axis=0)[:, 0]
        common = -np.linalg.lstsq(remaining, wanted, rcond=None)[0]
        own = -by_gradient[..., 0] - by_common @ common
        return np.concatenate([common, own.ravel()])

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        raise NotImplementedError(
            "Levels are drawn at cells of known owners: use for_owners(owners).sample(x, random)."
        )

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y < self._bounds[0].size) & (y == np.floor(y))


@dataclass(frozen=True, eq=False)
class CellwiseCumulative(Cumulative):
    """`Cumulative` with thresholds per cell: their first axis is that of levels."""

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
    def highest(self) -> int:
        return len(self.thresholds)

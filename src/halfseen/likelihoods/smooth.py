"""What likelihoods offer to solvers that follow slopes: factors of any sign, and parameters that move with them."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.likelihoods.base import Likelihood
from halfseen.observed import Observed


class Local(NamedTuple):
    """A cell's cost at its x, the slope there, and a curvature of 0 or more by which a step may be judged."""

    cost: Any
    slope: Any
    curvature: Any


class Smooth(Likelihood):
    """cost(y, x) with a slope in x everywhere, and in parameters of its own (thresholds, an offset).

    `parameters` is a vector that may take any value; what it stands for keeps its order by how it is made of them.
    """

    powers = None
    x_is_positive = False
    #: tau_1 < ... < tau_N  (Eq. 2.5 of `grr-2018`).
    thresholds: Array
    #: The highest level N; values y are the codes 0..N.
    highest: int
    #: What the levels 0..N stand for; themselves, if None.
    values: Array | None

    instead_of_zeros: ClassVar[str] = "OrdNMF, which takes them for a level below all others"
    domain: ClassVar[str] = "Ordinal levels must be integers 0..V."
    remedy: ClassVar[str] = "Round the values, or use WeightedNMF."

    @property
    @abstractmethod
    def parameters(self) -> Array:
        """The parameters that are learned, in a vector without bounds; empty if all are fixed."""

    @abstractmethod
    def at(self, parameters: Array) -> Self:
        """The same likelihood with other parameters."""

    @abstractmethod
    def local(self, y: Any, x: Any) -> Local:
        """Cost, slope and curvature in x, cell by cell."""

    @abstractmethod
    def sums_of_parameters(self, y: Any, x: Any, weight: Any) -> Array:
        """A vector of sums over cells, from which `slopes` tells how the cost changes with the parameters."""

    @abstractmethod
    def slopes(self, sums: Array) -> tuple[Array, Array]:
        """The gradient of the summed cost by the parameters, and a matrix of curvatures by which to judge a step."""

    def descent(self, y: Any, x: Any, weight: Any) -> tuple[Any, Array]:
        """The slope in x of each cell, times its weight, and the gradient by the parameters: what single cells tell."""
        slope = self.local(y, x).slope
        gradient = self.slopes(self.sums_of_parameters(y, x, weight))[0] if self.parameters.size else np.empty(0)
        return slope if weight is None else slope * weight, gradient

    def step(self, sums: Array, stiffness: float = 0.0) -> Array:
        """The step of Newton's method for the parameters, all of them that much stiffer than they are on average."""
        gradient, curvature = self.slopes(sums)
        stiffer = curvature + stiffness * np.mean(np.diag(curvature)) * np.eye(gradient.size)
        step: Array = -np.linalg.lstsq(stiffer, gradient, rcond=None)[0]
        return step

    @property
    def penalty(self) -> float:
        """What the parameters cost by themselves."""
        return 0.0

    @abstractmethod
    def started(self, histogram: Array) -> Self:
        """With those parameters that are best if x is 0 everywhere, by the number of cells at each level."""

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return _signed(self.local(y, x).slope)

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        cost, slope, _ = self.local(y, x)
        return *_signed(slope), cost

    def divergence(self, y: Any, x: Any) -> Any:
        """The cost, 0 or larger: the best that an x can do is not taken off."""
        return self.local(y, x).cost

    def saturated(self, y: Array) -> Array:
        return np.zeros_like(y)

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y <= self.highest) & (y == np.floor(y))

    @property
    def cuts(self) -> Array:
        """Where x passes from level to level."""
        return self.thresholds

    def levels(self, x: Array) -> Array:
        """GRF(x): the number of cuts below x  (Eq. 2.5)."""
        return np.searchsorted(self.cuts, x, side="left")

    def valued(self, code: Any) -> Any:
        """What codes stand for, those between two levels by interpolation, those beyond by extrapolation."""
        if self.values is None:
            return code
        xp = namespace(code)
        value = xp.zeros_like(code) + float(self.values[0])
        # From each level to the next the value rises by its gap; the first and the last slope go on for ever.
        for level, gap in enumerate(np.diff(self.values)):
            low = 0.0 if level else -np.inf
            high = 1.0 if level < self.values.size - 2 else np.inf
            value = value + float(gap) * xp.clip(code - float(level), low, high)
        return value

    def start(self, observed: Observed) -> float:
        return 0.0


def _signed(slope: Any) -> tuple[Any, Any]:
    """A slope as pull and push: one of the two is 0."""
    xp = namespace(slope)
    return xp.maximum(-slope, xp.zeros_like(slope)), xp.maximum(slope, xp.zeros_like(slope))

"""The beta divergence, a family of losses with Itakura-Saito (0), Kullback-Leibler (1) and Frobenius (2) among them."""

from typing import Any

import numpy as np

from halfseen.arrays import Array, floored, namespace
from halfseen.likelihoods.base import Likelihood


class BetaDivergence(Likelihood):
    """d(y|x) = (y^b + (b-1) x^b - b y x^(b-1)) / (b (b-1));  pull = y x^(b-2), push = x^(b-1).

    For b = 0 it is y/x - log(y/x) - 1. The cases b = 1 and b = 2 have their own classes, `Poisson` and `Gaussian`.
    """

    def __init__(self, beta: float) -> None:
        self.beta = float(beta)

    @property
    def name(self) -> str:  # type: ignore[override]
        return "itakura-saito" if self.beta == 0 else f"beta={self.beta:g}"

    @property
    def powers(self) -> tuple[float, float]:
        # A concave term is replaced by its tangent, which is linear: hence the 1 in both.
        return min(self.beta - 1.0, 1.0), max(self.beta, 1.0)

    @property
    def root(self) -> float:
        return 2.0 * max(1.0, 2.0 - self.beta)

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        x = floored(x, self.root)
        push = x ** (self.beta - 1.0)
        return y * push / x, push

    def divergence(self, y: Any, x: Any) -> Any:
        x, b = floored(x, self.root), self.beta
        if b == 0:
            return y / x - namespace(x).log(y / x) - 1.0
        return (y**b + (b - 1.0) * x**b - b * y * x ** (b - 1.0)) / (b * (b - 1.0))

    def saturated(self, y: Array) -> Array:
        return np.zeros_like(y)

    def legal(self, y: Array) -> Array:
        # For b <= 0 a zero is infinitely far from every x > 0.
        return y > 0 if self.beta <= 0 else y >= 0

    @property
    def domain(self) -> str:  # type: ignore[override]
        return f"Values must be {'above 0' if self.beta <= 0 else '0 or larger'} for beta = {self.beta:g}."

    @property
    def remedy(self) -> str:  # type: ignore[override]
        other = " For zeros, use a beta above 0." if self.beta <= 0 else ""
        return f"Shift or drop these values, or set them to NaN if they are unknown.{other}"

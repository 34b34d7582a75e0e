"""The Gaussian likelihood with unit variance, whose divergence is half the squared error."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.likelihoods.base import Likelihood, UnseenPush


class Gaussian(Likelihood):
    """y ~ Normal(x, 1): log p = -(y - x)^2 / 2 - log(2 pi) / 2;  pull = y, push = x."""

    name = "frobenius"
    unseen = UnseenPush(power=1)
    pushes_as_unseen = True
    powers = (1.0, 2.0)
    domain = "Values must be 0 or larger for non-negative factors."
    remedy = "Shift or drop these values, or set them to NaN if they are unknown."

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return y, x

    def divergence(self, y: Any, x: Any) -> Any:
        return 0.5 * (y - x) ** 2

    def saturated(self, y: Array) -> Array:
        return np.full_like(y, -0.5 * np.log(2 * np.pi))

    def legal(self, y: Array) -> Array:
        return y >= 0

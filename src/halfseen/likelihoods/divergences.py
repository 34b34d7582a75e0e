"""Gaussian, Poisson and beta-divergence likelihoods, and the `loss` that names one of them.

The beta divergence is a family of losses with Itakura-Saito (0), Kullback-Leibler (1) and Frobenius (2) among them.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln, xlogy

from halfseen.arrays import Array, floored, namespace
from halfseen.errors import ParameterError
from halfseen.likelihoods.base import Likelihood, StateSpec, UnseenPush
from halfseen.validation import did_you_mean

_REMEDY = "Shift or drop these values, or mark them as missing."


class Gaussian(Likelihood):
    """y ~ Normal(x, 1): log p = -(y - x)^2 / 2 - log(2 pi) / 2;  pull = y, push = x.

    The divergence is half the squared error.
    """

    name = "frobenius"
    unseen = UnseenPush(power=1)
    pushes_as_unseen = True
    powers = (1.0, 2.0)
    domain = "Values must be 0 or larger for non-negative factors."
    remedy = _REMEDY

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return y, x

    def divergence(self, y: Any, x: Any) -> Any:
        return 0.5 * (y - x) ** 2

    def saturated(self, y: Array) -> Array:
        return np.full_like(y, -0.5 * np.log(2 * np.pi))

    def legal(self, y: Array) -> Array:
        return y >= 0


class Poisson(Likelihood):
    """y ~ Poisson(x): log p = y log x - x - log y!;  pull = y / x, push = 1.

    The divergence is Kullback-Leibler's. Non-negative values need not be whole numbers: y! is then gamma(y + 1).
    """

    name = kernel = "kullback-leibler"
    unseen = UnseenPush(power=0)
    pushes_as_unseen = True
    push_is_constant = True
    powers = (0.0, 1.0)
    domain = "Counts, and values under the Kullback-Leibler loss, must be 0 or larger."
    remedy = _REMEDY

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return y / floored(x, self.root), 1.0

    def divergence(self, y: Any, x: Any) -> Any:
        # The floor under y makes 0 * log(0 / x) the 0 that it should be.
        return y * namespace(x).log(floored(y, self.root) / floored(x, self.root)) - y + x

    def saturated(self, y: Array) -> Array:
        saturated: Array = xlogy(y, y) - y - gammaln(y + 1)
        return saturated

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        return random.poisson(x).astype(np.float64)

    def legal(self, y: Array) -> Array:
        return y >= 0


@dataclass(frozen=True, eq=False)
class BetaDivergence(Likelihood):
    """d(y|x) = (y^b + (b-1) x^b - b y x^(b-1)) / (b (b-1));  pull = y x^(b-2), push = x^(b-1).

    For b = 0 it is y/x - log(y/x) - 1. The cases b = 1 and b = 2 have their own classes, `Poisson` and `Gaussian`.
    """

    beta: float

    state: ClassVar[StateSpec] = {"beta": float}

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", float(self.beta))

    @property
    def name(self) -> str:
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

    def legal(self, y: Array) -> Array:
        # For b <= 0 a zero is infinitely far from every x > 0.
        return y > 0 if self.beta <= 0 else y >= 0

    @property
    def domain(self) -> str:
        return f"Values must be {'above 0' if self.beta <= 0 else '0 or larger'} for beta = {self.beta:g}."

    @property
    def remedy(self) -> str:
        return f"{_REMEDY}{' For zeros, use a beta above 0.' if self.beta <= 0 else ''}"


#: The names, spelled as in scikit-learn, and the beta that each stands for.
LOSSES = {"itakura-saito": 0.0, "kullback-leibler": 1.0, "frobenius": 2.0}

#: Other names of the losses, for suggestions.
_OTHER_NAMES = {
    "kl": "kullback-leibler",
    "poisson": "kullback-leibler",
    "is": "itakura-saito",
    "euclidean": "frobenius",
    "gaussian": "frobenius",
    "squared_error": "frobenius",
    "mse": "frobenius",
}


def likelihood_for(loss: str | float) -> Likelihood:
    """The likelihood of a loss: one of the names in `LOSSES`, or any number beta."""
    if isinstance(loss, str) and loss in LOSSES:
        beta = LOSSES[loss]
    elif isinstance(loss, Real) and not isinstance(loss, bool) and abs(loss) < float("inf"):
        beta = float(loss)
    else:
        near = _OTHER_NAMES.get(str(loss)) or did_you_mean(str(loss), LOSSES)
        names = ", ".join(f'"{name}"' for name in LOSSES)
        raise ParameterError(
            f"must be one of {names} or a finite number.",
            found=repr(loss),
            remedy=f"Did you mean {near!r}?" if near else "Choose one of these.",
            parameter="loss",
        )
    # Next to a special case the general formula divides one rounding error by another.
    beta = next((special for special in LOSSES.values() if abs(beta - special) < 1e-8), beta)
    if beta == 1.0:
        return Poisson()
    return Gaussian() if beta == 2.0 else BetaDivergence(beta)

"""The Poisson likelihood, whose divergence is Kullback and Leibler's."""

from typing import Any

from scipy.special import gammaln, xlogy

from halfseen.arrays import Array, floored, namespace
from halfseen.likelihoods.base import Likelihood, UnseenPush


class Poisson(Likelihood):
    """y ~ Poisson(x): log p = y log x - x - log y!;  pull = y / x, push = 1.

    Non-negative values that are no whole numbers are welcome: y! is then gamma(y + 1).
    """

    name = "kullback-leibler"
    unseen = UnseenPush(power=0)
    pushes_as_unseen = True
    push_is_constant = True
    powers = (0.0, 1.0)
    domain = "Counts, and values under the Kullback-Leibler loss, must be 0 or larger."
    remedy = "Shift or drop these values, or set them to NaN if they are unknown."

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return y / floored(x, self.root), 1.0

    def divergence(self, y: Any, x: Any) -> Any:
        # The floor under y lets 0 * log(0 / x) be the 0 that it stands for.
        return y * namespace(x).log(floored(y, self.root) / floored(x, self.root)) - y + x

    def saturated(self, y: Array) -> Array:
        saturated: Array = xlogy(y, y) - y - gammaln(y + 1)
        return saturated

    def legal(self, y: Array) -> Array:
        return y >= 0

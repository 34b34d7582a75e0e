"""What is believed of the factors before any cell is seen."""

from dataclasses import dataclass
from typing import Any

from halfseen.arrays import Array, floored, namespace


@dataclass(frozen=True)
class Penalty:
    """l1 * sum(F) + l2 / 2 * sum(F^2), for both factors: an exponential and a half-normal prior, at their mode."""

    l1: float = 0.0
    l2: float = 0.0

    def push(self, factor: Any) -> Any:
        """The derivative, which pushes every entry down."""
        return self.l1 + self.l2 * factor

    def cost(self, factor: Any) -> Any:
        return factor * (self.l1 + 0.5 * self.l2 * factor)

    @property
    def power(self) -> float:
        """The highest power of a factor in the penalty; 0 without one."""
        return 2.0 if self.l2 else 1.0 if self.l1 else 0.0

    def __bool__(self) -> bool:
        return bool(self.l1 or self.l2)


@dataclass(frozen=True)
class GammaPrior:
    """Every entry of a factor ~ Gamma(shape, rate), where each row of the factor may learn a rate of its own.

    The learned rate is the one that makes the evidence bound largest, shape / mean over k of E[w_uk].
    """

    shape: float = 0.3
    rate: float | None = None

    def rates(self, mean: Array) -> Any:
        """The rate in force: the fixed one, or a column with one learned rate a row."""
        if self.rate is not None:
            return self.rate
        return self.shape / floored(namespace(mean).mean(mean, axis=1, keepdims=True), 2.0)

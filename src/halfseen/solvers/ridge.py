"""The prior of factors of any sign, and biases as components of which one side is fixed at 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Engine, Pulled, Side


@dataclass(frozen=True)
class Ridge:
    """l2 / 2 * sum over rows u of |f_u - centre|^2, where the centre is the mean of the rows; another l2 for biases.

    Around the mean and not around 0: a row of which nothing is known is then the average row. Biases are the last two
    of the components: rows have [w, b, 1], columns [h, 1, c], so that x = <w, h> + b + c.
    """

    l2: float
    biases: bool = False
    l2_of_biases: float = 0.0
    #: Where the centre is known; None: the mean of the rows.
    centre: Array | None = None

    def pulled(self, engine: Engine, factor: Any, side: Side) -> Pulled:
        """What pulls the rows of a factor; the ones beside biases are held."""
        size = factor.shape[1]
        penalty, held = np.full(size, self.l2), np.zeros(size)
        if self.biases:
            penalty[-2:] = self.l2_of_biases
            held[-1 if side is Side.ROWS else -2] = 1.0
        centre = engine.fetch(engine.column_sums(factor)) / factor.shape[0] if self.centre is None else self.centre
        return Pulled(penalty, centre, held)

    def with_biases(self, factor: Array, side: Side) -> Array:
        """A factor with the two components of biases, which start at 0."""
        if not self.biases:
            return factor
        bias, ones = np.zeros((len(factor), 1), factor.dtype), np.ones((len(factor), 1), factor.dtype)
        return np.hstack([factor, bias, ones] if side is Side.ROWS else [factor, ones, bias])


def costs_of_rows(factor: Any, pulled: Pulled) -> Any:
    """penalty / 2 * |f_u - centre|^2 of each row u."""
    xp = namespace(factor)
    penalty, centre = (xp.asarray(array, dtype=factor.dtype) for array in (pulled.penalty, pulled.centre))
    return xp.sum(0.5 * penalty * (factor - centre) ** 2, axis=1)

"""The prior of factors of any sign, and biases as components of which one side is fixed at 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Pulled, Side

#: How much weaker biases are held than factors.
OF_BIASES = 1.0 / 3.0


@dataclass(frozen=True)
class Ridge:
    """l2 / 2 * sum over rows u of |f_u - centre|^2 for both factors, and with a third of that l2 for biases.

    Rows are drawn to sqrt(3) e_1 and columns to sqrt(3) e_2, not to 0: near there x is about sqrt(3) (h_1 + w_2), so
    that columns and rows have biases at the price of l2 / 3, and each row its own sensitivity w_1 to those of columns,
    each column its own to those of rows. (Around 0, what all rows have in common would be paid for by every single one;
    and around the mean of the rows, the means would grow until biases cost nothing.) Biases proper are the last two
    components: rows have [w, b, 1], columns [h, 1, c], so that x = <w, h> + b + c.
    """

    l2: float
    biases: bool = False
    #: False draws all to 0.
    centred: bool = True

    def pulled(self, size: int, side: Side) -> Pulled:
        """What pulls each component; the ones beside biases are held."""
        mine = 0 if side is Side.ROWS else 1
        penalty, centre, held = np.full(size, self.l2), np.zeros(size), np.zeros(size)
        if self.centred and mine < size - 2 * self.biases:  # with one component, columns are drawn to 0
            centre[mine] = OF_BIASES**-0.5
        if self.biases:
            penalty[-2:] = OF_BIASES * self.l2
            centre[-1 - mine], held[-1 - mine] = 1.0, 1.0
        return Pulled(penalty, centre, held)

    def with_biases(self, factor: Array, side: Side) -> Array:
        """A factor with the two components of biases, which start at 0."""
        if not self.biases:
            return factor
        bias, ones = np.zeros((len(factor), 1), factor.dtype), np.ones((len(factor), 1), factor.dtype)
        return np.hstack([factor, bias, ones] if side is Side.ROWS else [factor, ones, bias])

    def started(self, factor: Array, side: Side) -> Array:
        """A small random factor around the centre, with biases if there are to be any."""
        wide = self.with_biases(factor, side)
        pulled = self.pulled(wide.shape[1], side)
        return wide + np.where(pulled.held == 1, 0.0, pulled.centre).astype(factor.dtype)


def costs_of_rows(factor: Any, pulled: Pulled) -> Any:
    """penalty / 2 * |f_u - centre|^2 of each row u."""
    xp = namespace(factor)
    penalty, centre = (xp.asarray(array, dtype=factor.dtype) for array in (pulled.penalty, pulled.centre))
    return xp.sum(0.5 * penalty * (factor - centre) ** 2, axis=1)

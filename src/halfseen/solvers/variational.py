"""What solvers with gamma priors share, whatever the posteriors."""

import numpy as np

from halfseen.arrays import Array
from halfseen.engines import Side
from halfseen.priors import GammaPrior
from halfseen.solvers.base import FactorT, Solver
from halfseen.solvers.task import Task


class Variational(Solver[FactorT]):
    """Coordinate ascent on a lower bound of the evidence, which therefore never falls."""

    falls = False
    #: Momentum in the wild first epochs makes more components die, and the bound end lower.
    settling = 3e-3
    start_needs = ", in every row at least one above 0"

    def __init__(self, rows: GammaPrior | None = None, columns: GammaPrior | None = None) -> None:
        self.priors = {Side.ROWS: rows or GammaPrior(), Side.COLUMNS: columns or GammaPrior()}

    def starts(self, factor: Array) -> bool:
        """A row of zeros has no distribution: nothing could ever lift it."""
        return bool(np.all(factor.sum(axis=1) > 0))

    def random(self, task: Task, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Means from Gamma(1, 1), as in `ordnmf-2020`."""
        return random.standard_gamma(1.0, size=size)

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """The bound's relative rise is at most tol."""
        return current - previous <= tol * abs(current)

"""The matrices of Chapters 2 and 4, each of a generalized round-rank of 2 at most."""

from collections.abc import Callable
from typing import NamedTuple

from halfseen.arrays import Array
from halfseen.data.synthetic import planted_levels
from halfseen.rank import band, identity, triangular

#: The random matrices have levels 0..N.
N = 5


class Family(NamedTuple):
    """Matrices of one form: their generalized round-rank, the thesis's fixed thresholds, and one by size and seed."""

    title: str
    k: int
    fixed: tuple[float, ...]
    levels: Callable[[int, int], Array]


def band_width(size: int) -> int:
    """The thesis's: 3 at size 10, where the rank is 8 as it says, and 10 at size 50."""
    return 3 if size == 10 else size // 5


IDENTITY = Family("identity", 2, (0.5,), lambda size, seed: identity(size).Y)
UPPER_TRIANGLE = Family("upper triangle", 1, (0.5,), lambda size, seed: triangular(size).Y)
BAND = Family("band diagonal", 2, (0.5,), lambda size, seed: band(size, band_width(size)).Y)
RANDOM_SIGNS = Family("random, levels 0 and 1", 2, (0.0,), lambda size, seed: planted_levels(size, size, 2, 1, seed)[0])
RANDOM = Family(
    f"random, levels 0 to {N}",
    2,
    tuple(map(float, range(N))),
    lambda size, seed: planted_levels(size, size, 2, N, seed)[0],
)

"""The matrices of Chapters 2 and 4, each of a generalized round-rank of 2 at most, and the ratings of section 4.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from halfseen.arrays import Array
from halfseen.datasets import draw_active, load_ratings, load_smallnetflix, load_split, planted_levels, source
from halfseen.io import split_cells
from halfseen.observed import Observed
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
    f"random, levels 0 to {N}", 2, tuple(map(float, range(N))),
    lambda size, seed: planted_levels(size, size, 2, N, seed)[0],
)  # fmt: skip


class Ratings(NamedTuple):
    """A data set: its name, how it is split, in words, and its training and test cells by a seed."""

    name: str
    words: str
    load: Callable[[int], tuple[Observed, Observed]]

    @property
    def title(self) -> str:
        return source(self.name).title


SMALLNETFLIX = Ratings("smallnetflix", "its own training and validation cells", lambda seed: load_smallnetflix())
MOVIELENS_1M = Ratings(
    "movielens-1m", "a fifth of the cells, drawn uniformly, for test",
    lambda seed: split_cells(load_ratings("movielens-1m"), 0.2, random_state=seed),
)  # fmt: skip
MOVIELENS_100K = Ratings("movielens-100k", "its own split u1", lambda seed: load_split("u1"))

#: What a quick run takes, and in words.
QUICK_SIZE = (120, 100)
OF_A_PART = (
    f"{QUICK_SIZE[0]} users and {QUICK_SIZE[1]} films, drawn by how many cells they have; a fifth of their cells, "
    "drawn uniformly, is for test"
)


def small_split(cells: Observed, seed: int) -> tuple[Observed, Observed]:
    """Training and test cells of some of the rows and columns."""
    return split_cells(draw_active(cells, *QUICK_SIZE, random_state=seed), 0.2, random_state=seed)

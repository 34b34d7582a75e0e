"""The ratings of Table 4.4 and Figures 4.4 to 4.6: whole, as they are parted, or a small part for a quick run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from halfseen.data import Observed, split_cells
from halfseen.data.datasets import draw_active, load_ratings, load_smallnetflix, load_split, source

#: What a quick run takes, and how it is told.
QUICK_SIZE = (120, 100)
OF_A_PART = (
    f"{QUICK_SIZE[0]} users and {QUICK_SIZE[1]} films, drawn by how many cells they have; a fifth of their cells, "
    "drawn uniformly, is for test"
)

#: Training and test cells, by a seed.
Load = Callable[[int], tuple[Observed, Observed]]


class Ratings(NamedTuple):
    """A data set: its name, how it is parted, in words, and its parts."""

    name: str
    words: str
    load: Load

    @property
    def title(self) -> str:
        return source(self.name).title


SMALLNETFLIX = Ratings("smallnetflix", "its own training and validation cells", lambda seed: load_smallnetflix())
MOVIELENS_1M = Ratings(
    "movielens-1m",
    "a fifth of the cells, drawn uniformly, for test",
    lambda seed: split_cells(load_ratings("movielens-1m"), 0.2, random_state=seed),
)
MOVIELENS_100K = Ratings("movielens-100k", "its own split u1", lambda seed: load_split("u1"))


class Cells(NamedTuple):
    """What a run works with: its title, in words how it was parted, and the parts."""

    title: str
    words: str
    train: Observed
    test: Observed

    @classmethod
    def of(cls, ratings: Ratings, seed: int) -> Cells:
        return cls(ratings.title, ratings.words, *ratings.load(seed))

    @classmethod
    def part_of(cls, ratings: Ratings, seed: int) -> Cells:
        """A part of the training cells, parted anew."""
        words = f"{ratings.words}; of the training cells a part, {OF_A_PART}"
        return cls(part_of(ratings.title), words, *small_split(ratings.load(seed)[0], seed))


def small_split(cells: Observed, seed: int) -> tuple[Observed, Observed]:
    """Training and test cells of some of the rows and columns."""
    return split_cells(draw_active(cells, *QUICK_SIZE, random_state=seed), 0.2, random_state=seed)


def part_of(title: str) -> str:
    """How a part of the data is called."""
    return f"{title} (a part)"

"""The data: the paper's where the user has them, else smaller ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import halfseen
from halfseen.datasets import as_in_ordnmf, draw_active, k_core, load_ratings, source
from halfseen.observed import Observed

#: Where the paper's classes of play counts begin: 1, 2, 3 to 5, 6 to 10, ..., 201 to 500, and more.
EDGES = (1, 2, 3, 6, 11, 21, 51, 101, 201, 501)

#: What is drawn of a set for a quick run.
QUICK_SIZE = (250, 200)


@dataclass(frozen=True)
class Prepared:
    """A set by name, and what is done to it before it is split into training and test cells; a part of it (`is_part`)
    for a quick run."""

    name: str
    words: str
    prepare: Callable[[Observed, int], Observed]
    is_part: bool = False

    def load(self, seed: int) -> Observed:
        """The cells as the methods see them."""
        return self.prepare(load_ratings(self.name), seed)

    def part(self) -> Prepared:
        """Some of its rows and columns."""

        def prepare(raw: Observed, seed: int) -> Observed:
            return draw_active(self.prepare(raw, seed), *QUICK_SIZE, random_state=seed)

        rows, columns = QUICK_SIZE
        words = f"{self.words}; of this a part, {rows} rows and {columns} columns, drawn by how many cells they have"
        return replace(self, words=words, prepare=prepare, is_part=True)

    @property
    def title(self) -> str:
        return f"{source(self.name).title}{' (a part)' if self.is_part else ''}"


def in_half_stars(observed: Observed) -> Observed:
    """Stars times 2: the paper's levels from 1 to 10."""
    return replace(observed, values=2 * observed.values)


def quantized(counts: Observed) -> Observed:
    """The paper's classes 1 to 10 of play counts."""
    return halfseen.Quantizer(EDGES).fit(counts).transform(counts)


MOVIELENS_20M = Prepared(
    "movielens-20m",
    "films, then users, with 20 and more ratings, 20,000 users drawn, both again; stars times 2",
    lambda ratings, seed: in_half_stars(as_in_ordnmf(ratings, random_state=seed)),
)
FILMS = (
    Prepared("movielens-1m", "stars times 2", lambda ratings, seed: in_half_stars(ratings)),
    Prepared("movielens-latest-small", "half stars: stars times 2", lambda ratings, seed: in_half_stars(ratings)),
    Prepared("movietweetings-100k", "users and films with 5 and more", lambda ratings, seed: k_core(ratings, 5)),
)
TASTE_PROFILE = Prepared(
    "taste-profile",
    "songs, then users, with 20 and more, 20,000 users and songs drawn, both again",
    lambda counts, seed: as_in_ordnmf(counts, n_columns=20_000, random_state=seed),
)
PLAYS = (Prepared("lastfm-hetrec2011", "users and artists with 5 and more", lambda counts, seed: k_core(counts, 5)),)


def at_hand(of_the_paper: Prepared, instead: Sequence[Prepared], absent: Sequence[str]) -> Sequence[Prepared]:
    """The paper's set if it is there, else those of the others that are, else the first, whose loader will raise."""
    if of_the_paper.name not in absent:
        return (of_the_paper,)
    return tuple(one for one in instead if one.name not in absent) or instead[:1]

"""Public ratings and play counts, by name: who rated or played what, and how high or how often."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from halfseen.checks import check_parameters, one_of
from halfseen.data.catalogue import MOVIELENS_SPLITS, RATINGS
from halfseen.data.observed import Observed
from halfseen.data.readers import observe
from halfseen.data.shelf import paths_of


class Format(NamedTuple):
    """Where row, column and value stand in a file: by name in one with a header, else by position."""

    columns: tuple[str, str, str] | tuple[int, int, int]

    def read(self, path: Path) -> Observed:
        return observe(path, columns=self.columns, header=isinstance(self.columns[0], str))


UNHEADED = Format((0, 1, 2))
MOVIELENS_CSV = Format(("userId", "movieId", "rating"))

FORMATS = {
    "movielens-100k": UNHEADED,
    "movielens-1m": UNHEADED,
    "movielens-latest-small": MOVIELENS_CSV,
    "movielens-20m": MOVIELENS_CSV,
    "movietweetings-100k": UNHEADED,
    "lastfm-hetrec2011": Format(("userID", "artistID", "weight")),
    "taste-profile": UNHEADED,
}


def load_ratings(name: str) -> Observed:
    """Public ratings or play counts: users by films, artists or songs, labelled by their ids, values as in the file.

    The names are those of `ratings_names()`, and `source(name)` says where a set comes from and on which terms. The
    files must lie in the data folder, which the environment variable HALFSEEN_DATA names (by default `halfseen` in
    the user's cache directory), as published, or packed by gzip.

    Stars are 1 to 5 in movielens-100k and movielens-1m, and 0.5 to 5 in movielens-latest-small and movielens-20m;
    movietweetings-100k has 0 to 10; lastfm-hetrec2011 and taste-profile have play counts.
    """
    check_parameters({"name": name}, {"name": one_of(*RATINGS)})
    (path,) = paths_of(RATINGS[name])
    return FORMATS[name].read(path)


def load_split(split: str) -> tuple[Observed, Observed]:
    """Training and test cells of MovieLens 100K as published; `split` is "u1" to "u5", "ua" or "ub".

    Both have all 943 users and 1,682 films, in the order of their ids, as after `split_cells`.
    """
    check_parameters({"split": split}, {"split": one_of(*MOVIELENS_SPLITS)})
    train, test = map(UNHEADED.read, paths_of(MOVIELENS_SPLITS[split]))
    users, films = (np.union1d(*ids) for ids in zip(_ids(train), _ids(test), strict=True))
    return _with_labels(train, users, films), _with_labels(test, users, films)


def ratings_names() -> tuple[str, ...]:
    """The names `load_ratings` knows."""
    return tuple(RATINGS)


def _ids(observed: Observed) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(observed.row_labels), np.asarray(observed.column_labels)


def _with_labels(observed: Observed, rows: np.ndarray, columns: np.ndarray) -> Observed:
    """The same cells among these rows and columns, whose labels ascend."""
    row_ids, column_ids = _ids(observed)
    row_of_cell = np.searchsorted(rows, row_ids)[observed.row_of_cell()]
    column_of_cell = np.searchsorted(columns, column_ids)[observed.indices]
    return Observed.from_cells(
        row_of_cell, column_of_cell, observed.values, (rows.size, columns.size), row_labels=rows, column_labels=columns
    )

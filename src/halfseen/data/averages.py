"""Mean ratings of kinds of things, as Kohjima (2022) has them: by genre of film, and by group of sushi."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from halfseen.data.catalogue import AVERAGES
from halfseen.data.columns import named_table, text_columns
from halfseen.data.labels import positions_or_nowhere, text_array
from halfseen.data.observed import Observed
from halfseen.data.ratings import UNHEADED
from halfseen.data.shelf import paths_of
from halfseen.errors import DataError

#: How the description of the data names the minor groups 0 to 11.
SUSHI_GROUPS = (
    "aomono", "akami", "shiromi", "tare", "clam or shell", "squid or octopus", "shrimp or crab", "roe",
    "other seafood", "egg", "meat other than fish", "vegetables",
)  # fmt: skip
SUSHI_ITEM = (
    "id", "name", "style", "major group", "minor group", "heaviness", "eating frequency", "price", "sold frequency",
)  # fmt: skip
NOT_RATED = -1
FILM = ("film", "title", "release date", "video release date", "address")
UNKNOWN_GENRE = "unknown"


def load_movielens_genres() -> Observed:
    """The mean rating that each user of MovieLens 100K gave to the films of each genre: 943 users by 18 genres.

    A film counts in each of its genres; the genre "unknown" is left out. Users are labelled by their numbers, in
    ascending order, genres by their names. The files u.data, u.item and u.genre must lie in the folder
    `movielens-100k` of the data folder, which the environment variable HALFSEEN_DATA names.
    """
    ratings_path, films_path, genres_path = paths_of(AVERAGES["movielens-genres"])
    ratings = UNHEADED.read(ratings_path)
    films, genres, belongs = _genres_of_films(films_path, genres_path)
    film_of_column = positions_or_nowhere(np.asarray(ratings.column_labels), films)
    if (film_of_column < 0).any():
        film = np.asarray(ratings.column_labels)[int(np.argmax(film_of_column < 0))]
        raise DataError(
            f"{films_path.name} must have every film that was rated. Found no film {film}. "
            "Copy or download the files again."
        )
    users = np.sort(np.asarray(ratings.row_labels))
    user_of_cell = np.searchsorted(users, np.asarray(ratings.row_labels))[ratings.row_of_cell()]
    cells, columns = np.nonzero(belongs[film_of_column[ratings.indices]])
    return _means(user_of_cell[cells], columns, ratings.values[cells], users, text_array(genres))


def load_sushi_groups() -> Observed:
    """The mean score that each user of the SUSHI preference data gave to the sushi of each minor group: 5,000 by 12.

    Scores are 0 (most disliked) to 4 (most preferred). Users are labelled by their line, from 0, groups by their names.
    Kohjima (2022) speaks of 11 groups; the file has 12, none of them empty. The files sushi3b.5000.10.score and
    sushi3.idata must lie in the folder `sushi` of the data folder, which the environment variable HALFSEEN_DATA names.
    """
    scores_path, items_path = paths_of(AVERAGES["sushi-groups"])
    items = text_columns(items_path, ("id", "minor group"), header=SUSHI_ITEM)
    groups = items["minor group"][np.argsort(items["id"])].astype(np.intp)
    scores = np.column_stack(list(text_columns(scores_path, header=[str(one) for one in range(groups.size)]).values()))
    users, sushi = np.nonzero(scores != NOT_RATED)
    return _means(users, groups[sushi], scores[users, sushi], np.arange(len(scores)), text_array(SUSHI_GROUPS))


def _genres_of_films(films_path: Path, genres_path: Path) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The numbers of the films, the names of the genres, and which film belongs to which."""
    names = named_table(genres_path, ("genre", "number")).column("genre")
    films = text_columns(films_path, ("film", *names), header=(*FILM, *names))
    genres = [name for name in names if name != UNKNOWN_GENRE]
    belongs = np.column_stack([films[genre] for genre in genres]) == 1
    return films["film"].astype(np.int64), genres, belongs


def _means(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, row_labels: np.ndarray, column_labels: np.ndarray
) -> Observed:
    return Observed.from_cells(
        rows, columns, values, (row_labels.size, column_labels.size),
        row_labels=row_labels, column_labels=column_labels, duplicates="mean",
    )  # fmt: skip

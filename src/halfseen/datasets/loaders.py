"""Loaders of the built-in and the public datasets, as published."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.datasets.catalogue import StoredFile, read_catalogue, source, sources
from halfseen.datasets.pickled import read_pickled_csr
from halfseen.datasets.preprocess import as_in_a1gm
from halfseen.datasets.registry import UNREADABLE, local_paths, open_binary
from halfseen.errors import DataError
from halfseen.io import observe, read_table
from halfseen.labels import Index, text_array
from halfseen.observed import Observed
from halfseen.validation import check_parameters, one_of

SAMPLES = Path(__file__).parent / "samples"
AGAIN = "Download the file again."


def load_movietweetings() -> Observed:
    """Load the built-in film ratings on the ordered levels 0..10.

    The part of MovieTweetings 100K (Simon Dooms et al., 2013; MIT licence) in which every user and every film has at
    least 8 ratings.

    Returns
    -------
    Observed
        Ratings by 2,728 users (numbers) of 1,478 films (titles).
    """
    ratings = observe(SAMPLES / "movietweetings.csv.gz")
    films = read_table(SAMPLES / "movietweetings-titles.csv.gz", header=True)
    titles = dict(zip(films.texts("item"), films.texts("title"), strict=True))
    return replace(ratings, column_labels=text_array(titles[film] for film in np.asarray(ratings.column_labels)))


def ratings_names() -> tuple[str, ...]:
    """Return the names that `load_ratings` knows."""
    return tuple(name for name, one in sources().items() if one.loader == "load_ratings")


def load_ratings(name: str) -> Observed:
    """Load public ratings or play counts.

    Stars are 1 to 5 in movielens-100k and movielens-1m, and 0.5 to 5 in movielens-latest-small and movielens-20m;
    movietweetings-100k has 0 to 10; lastfm-hetrec2011 and taste-profile have play counts. ordnmf-movielens (half stars,
    1 to 10) and ordnmf-taste-profile (play counts) are the matrices of Gouvert, Oberlin and Févotte (2020), pickled
    files that are read without running anything they name. Nothing is downloaded: the files must be in the data folder,
    plain or gzipped, see `fetch` and `data_folder`.

    Parameters
    ----------
    name : str
        Name of the dataset, see `ratings_names`. ``source(name)`` tells its origin and terms.

    Returns
    -------
    Observed
        Users by films, artists or songs, labelled by their ids (but for ordnmf-...), values as in the file.
    """
    check_parameters({"name": name}, {"name": one_of(*ratings_names())})
    (path,), (file,) = local_paths(source(name)), source(name).files
    if file.key:
        return read_pickled_csr(path, file.key)
    return observe(path, columns=file.columns or (0, 1, 2), header=bool(file.columns))


def load_split(split: str) -> tuple[Observed, Observed]:
    """Load a published split of MovieLens 100K.

    Parameters
    ----------
    split : {"u1", "u2", "u3", "u4", "u5", "ua", "ub"}
        Name of the split.

    Returns
    -------
    train, test : Observed
        Stars 1 to 5, both with all 943 users and 1,682 films in ascending order.
    """
    check_parameters({"split": split}, {"split": one_of("u1", "u2", "u3", "u4", "u5", "ua", "ub")})
    movielens = source("movielens-100k")
    files = [file for file in movielens.extras if file.path.endswith((f"{split}.base", f"{split}.test"))]
    parts = [observe(path, columns=(0, 1, 2), header=False) for path in local_paths(movielens, files)]
    return _on_common_ids(*((*ids_of_cells(part), part.values) for part in parts))


def load_smallnetflix() -> tuple[Observed, Observed]:
    """Load smallnetflix as published by GraphLab, in Matrix Market format with or without its header lines.

    Returns
    -------
    train, validation : Observed
        3,298,163 and 545,177 ratings of 1 to 5 stars, both with all 95,526 users and 3,561 films, labelled by their
        numbers, in ascending order.
    """
    return _on_common_ids(*map(_read_matrix_market, local_paths(source("smallnetflix"))))


def _read_matrix_market(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns, from 1, and values of a Matrix Market file, or of its lines `row column value` alone."""
    from scipy.io import mmread

    try:
        with open_binary(path) as lines, warnings.catch_warnings(action="ignore"):  # of an empty file
            has_banner = lines.read(14).lower() == b"%%matrixmarket"
            lines.seek(0)
            if has_banner:
                matrix = mmread(lines)
                if isinstance(matrix, np.ndarray):
                    raise ValueError("a dense matrix")
                cells = np.column_stack([matrix.row + 1.0, matrix.col + 1.0, matrix.data])
            else:
                cells = np.loadtxt(lines, comments="%", ndmin=2)
        if cells.shape[1] != 3 or not len(cells) or (cells[:, :2] < 1).any() or (cells[:, :2] % 1 != 0).any():
            raise ValueError("lines of another kind")
    except (ValueError, OverflowError, *UNREADABLE) as error:
        must = "lines of a row number, a column number, both from 1, and a value, as in the Matrix Market format"
        raise DataError(f"{path} must have {must}.", found=f"otherwise: {error}", remedy=AGAIN) from None
    return cells[:, 0].astype(np.int64), cells[:, 1].astype(np.int64), cells[:, 2]


def ids_of_cells(observed: Observed) -> tuple[np.ndarray, np.ndarray]:
    """Row and column label of every cell."""
    return np.asarray(observed.row_labels)[observed.row_of_cell()], np.asarray(observed.column_labels)[observed.indices]


def _on_common_ids(*parts: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[Observed, Observed]:
    """Two sets of (row ids, column ids, values) as matrices with the rows and columns of both, in ascending order."""
    rows, columns = (np.unique(np.concatenate([part[axis] for part in parts])) for axis in (0, 1))
    shape, labels = (rows.size, columns.size), dict[str, Any](row_labels=rows, column_labels=columns)
    train, test = (
        Observed.from_cells(np.searchsorted(rows, users), np.searchsorted(columns, films), values, shape, **labels)
        for users, films, values in parts
    )
    return train, test


def load_movielens_genres() -> Observed:
    """Load the mean ratings of genres by the users of MovieLens 100K, as in Kohjima (2022).

    A film counts in each of its genres; the genre "unknown" is left out.

    Returns
    -------
    Observed
        943 users, labelled by their numbers, in ascending order, by 18 genres, labelled by their names.
    """
    _, films_file, _ = source("movielens-genres").files
    ratings_path, films_path, genres_path = local_paths(source("movielens-genres"))
    table = read_table(genres_path, header=False)
    genres = table.texts(table.names[0])
    films_file = replace(films_file, header=(*films_file.header, *genres), columns=("film", *genres))
    films = _read_columns(films_path, films_file)
    genres.remove("unknown")
    ratings = observe(ratings_path, columns=(0, 1, 2), header=False)
    user_of_cell, film_of_cell = ids_of_cells(ratings)
    position = Index(films["film"].astype(np.int64)).find(film_of_cell)
    if (position < 0).any():
        film = film_of_cell[int(np.argmin(position))]
        raise DataError(f"{films_path} must have every film that was rated.", found=f"no film {film}", remedy=AGAIN)
    users, row_of_cell = np.unique(user_of_cell, return_inverse=True)
    cells, columns = np.nonzero(np.column_stack([films[genre] for genre in genres])[position] == 1)
    shape, labels = (users.size, len(genres)), dict[str, Any](row_labels=users, column_labels=text_array(genres))
    return Observed.from_cells(row_of_cell[cells], columns, ratings.values[cells], shape, duplicates="mean", **labels)


def load_sushi_groups() -> Observed:
    """Load the mean scores of minor groups of sushi by the users of the SUSHI preference data, as in Kohjima (2022).

    Returns
    -------
    Observed
        Scores from 0 (most disliked) to 4 (most preferred) by 5,000 users, labelled by their line, from 0, of 12
        groups, labelled by their names; the paper speaks of 11 groups.
    """
    scores_file, items_file = source("sushi-groups").files
    scores_path, items_path = local_paths(source("sushi-groups"))
    items = _read_columns(items_path, items_file)
    group = items["minor group"][np.argsort(items["id"])].astype(np.intp)
    by_item = _read_columns(scores_path, replace(scores_file, header=tuple(map(str, range(group.size)))))
    scores, names = np.column_stack(list(by_item.values())), text_array(read_catalogue()["sushi_groups"])
    users, sushi = np.nonzero(scores != -1)  # -1: not rated
    shape, labels = (len(scores), names.size), dict[str, Any](row_labels=np.arange(len(scores)), column_labels=names)
    return Observed.from_cells(users, group[sushi], scores[users, sushi], shape, duplicates="mean", **labels)


def tabular_names() -> tuple[str, ...]:
    """Return the names that `load_tabular` knows, in the order of Table 1 of Ghalamkari and Sugiyama (2022)."""
    return tuple(name for name, one in sources().items() if one.loader == "load_tabular")


def load_tabular(name: str, *, prepared: bool = False) -> Observed:
    """Load one of the seventeen public tables with missing values of Table 1 of Ghalamkari and Sugiyama (2022).

    Nothing is downloaded: the files must be in the data folder, see `fetch` and `data_folder`. Sizes and missing values
    are those of the paper, but big_mart has one more row, credit_approval is the original of 690 rows, and
    human_resources, which needs openpyxl, has 54 missing values, not 519. mts_library and board_game_geek were not at
    hand to compare: their columns, which the paper does not name, are the numeric ones (of the latter without the id),
    as many as it has. sunspots_daily has the row number, from 0, as its first column; -1 is missing among the counts,
    but a value among the standard deviations, as in the paper. credit_approval has its class A16 as 1 for "+" and 0 for
    "-"; heart_disease, lung_cancer, arrhythmia and hcc_survival have their class among the columns, too.

    Parameters
    ----------
    name : str
        Name of the table, see `tabular_names`. ``source(name)`` tells its origin and terms.
    prepared : bool, default=False
        Make every value positive as in the paper, see `as_in_a1gm`.

    Returns
    -------
    Observed
        The numeric columns under their names, values as in the file.
    """
    check_parameters({"name": name}, {"name": one_of(*tabular_names())})
    paths, files = local_paths(source(name)), source(name).files
    columns = (_read_auto_mpg if name == "auto_mpg" else _read_columns)(paths[0], files[0])
    if name == "human_resources":  # facts about each employee, and evaluations
        evaluations = _read_columns(paths[1], files[1])
        wanted, known = columns.pop("employee_id"), evaluations.pop("EMPLOYEE #")
        if not np.array_equal(np.sort(wanted), np.sort(known)):
            raise DataError(f"{paths[1]} must have every employee of {paths[0]} once. It does not.", remedy=AGAIN)
        order = Index(known).find(wanted)
        columns = {key: values[order] for key, values in evaluations.items()} | columns
    elif name == "sunspots_daily":
        spots = columns["Number of Sunspots"]
        counts = {"Number of Sunspots": np.where(spots == -1, np.nan, spots)}
        columns = {"row": np.arange(float(spots.size))} | columns | counts
    table = np.column_stack(list(columns.values()))
    rows, places = np.nonzero(~np.isnan(table))
    observed = Observed.from_cells(rows, places, table[rows, places], table.shape, column_labels=text_array(columns))
    return as_in_a1gm(observed) if prepared else observed


def _read_columns(path: Path, file: StoredFile) -> dict[str, np.ndarray]:
    """The columns of a table as numbers by name, NaN where missing."""
    table = read_table(path, header=not file.header)
    names = file.header or [" ".join(name.split()) for name in table.names]  # some names have stray blanks
    if len(names) != len(table.names):
        raise DataError(f"{path} must have {len(names)} columns.", found=str(len(table.names)), remedy=AGAIN)
    own_names = dict(zip(names, table.names, strict=True))
    kept = file.columns or names
    if absent := [name for name in kept if name not in own_names]:
        raise DataError(f"{path} must have the column {absent[0]!r}.", found=", ".join(names)[:200], remedy=AGAIN)
    table.read_columns([own_names[name] for name in kept])
    return {name: table.numbers(own_names[name], codes=file.codes.get(name)) for name in kept}


def _read_auto_mpg(path: Path, file: StoredFile) -> dict[str, np.ndarray]:
    """Numbers between blanks; then a tab and the name of the car."""
    names, table = file.header, read_table(path, header=False)
    records = [text.split() for text in table.texts(table.names[0])]
    try:
        if {len(record) for record in records} != {len(names)}:
            raise ValueError("lines with more or fewer fields")
        numbers = np.array([[np.nan if field == "?" else float(field) for field in record] for record in records])
    except ValueError as error:
        must = f"Every line of {path} must have {len(names)} numbers."
        raise DataError(must, found=f"otherwise: {error}", remedy=AGAIN) from None
    return dict(zip(names, numbers.T, strict=True))

"""Data by name: those that come with the library, and public ones whose files lie in the data folder."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from importlib.resources import as_file, files
from typing import Any

import numpy as np

from halfseen.data.averages import load_movielens_genres, load_sushi_groups
from halfseen.data.fetching import fetch
from halfseen.data.labels import text_array
from halfseen.data.listing import Entry, listing
from halfseen.data.observed import Observed
from halfseen.data.preparing import as_in_a1gm
from halfseen.data.ratings import load_ratings, load_split, ratings_names
from halfseen.data.readers import observe
from halfseen.data.shelf import Source, data_folder
from halfseen.data.smallnetflix import load_smallnetflix
from halfseen.data.surveys import Survey, make_survey
from halfseen.data.tabular import load_tabular, source, tabular_names
from halfseen.data.thinning import as_in_ordnmf, draw_active, k_core, keep_active

__all__ = [
    "Entry",
    "Source",
    "Survey",
    "as_in_a1gm",
    "as_in_ordnmf",
    "data_folder",
    "draw_active",
    "fetch",
    "k_core",
    "keep_active",
    "listing",
    "load_movielens_genres",
    "load_movietweetings",
    "load_ratings",
    "load_smallnetflix",
    "load_split",
    "load_sushi_groups",
    "load_tabular",
    "make_survey",
    "ratings_names",
    "source",
    "tabular_names",
]

SAMPLES = files("halfseen.data") / "samples"


def load_movietweetings() -> Observed:
    """Real ratings of films on the ordered levels 0..10: 2,728 users (numbers) by 1,478 films (titles).

    The part of MovieTweetings 100K (Simon Dooms and others, 2013; MIT licence) in which every user and every film has
    at least 8 ratings.
    """
    with as_file(SAMPLES / "movietweetings.csv.gz") as path:
        ratings = observe(path)
    return replace(ratings, column_labels=_titled(ratings.column_labels))


def _titled(films: Any) -> np.ndarray:
    titles = _titles()
    return text_array(titles[film] for film in films)


def _titles() -> dict[str, str]:
    """The title of each film by its IMDb number."""
    packed = (SAMPLES / "movietweetings-titles.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("utf-8").splitlines()
    return {record["item"]: record["title"] for record in csv.DictReader(lines)}

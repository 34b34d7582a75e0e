"""Datasets by name: built in, public ones in the data folder, and synthetic ones."""

from halfseen.datasets.catalogue import Source, source
from halfseen.datasets.loaders import (
    load_movielens_genres,
    load_movietweetings,
    load_ratings,
    load_smallnetflix,
    load_split,
    load_sushi_groups,
    load_tabular,
    ratings_names,
    tabular_names,
)
from halfseen.datasets.preprocess import as_in_a1gm, as_in_ordnmf, draw_active, k_core, keep_active
from halfseen.datasets.registry import Entry, data_folder, fetch, listing
from halfseen.datasets.synthetic import Survey, make_survey, planted, planted_levels, unmf_synthetic

__all__ = [
    "Entry", "Source", "Survey", "as_in_a1gm", "as_in_ordnmf", "data_folder", "draw_active", "fetch", "k_core",
    "keep_active", "listing", "load_movielens_genres", "load_movietweetings", "load_ratings", "load_smallnetflix",
    "load_split", "load_sushi_groups", "load_tabular", "make_survey", "planted", "planted_levels", "ratings_names",
    "source", "tabular_names", "unmf_synthetic",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

"""The built-in sample of real ratings, and the door to the others."""

from importlib.resources import files

import numpy as np

from halfseen.data import datasets, load_movietweetings, observe


def test_movietweetings_are_levels_of_well_known_films():
    ratings = load_movietweetings()
    assert (ratings.shape, ratings.nnz, ratings.unseen) == ((2728, 1478), 53368, "missing")
    assert np.unique(ratings.values).tolist() == list(range(11))
    assert min(ratings.seen_per_row().min(), ratings.seen_per_column().min()) == 8
    assert ratings.row_labels.dtype == np.int64
    assert (ratings.place(0), ratings.values[0]) == ("row 10, column 'Network (1976)'", 9)
    assert ratings.column_labels[ratings.seen_per_column().argmax()] == "Iron Man 3 (2013)"
    assert observe(ratings) is ratings
    assert observe(ratings, unseen="zero").nnz == 53368


def test_the_licence_comes_with_the_data():
    assert "MIT License" in (files("halfseen.data") / "samples" / "MOVIETWEETINGS-LICENSE").read_text()


def test_one_door_to_all_data():
    assert datasets.load_tabular.__module__ == "halfseen.data.tabular"
    assert all(callable(getattr(datasets, name)) for name in datasets.__all__)
    assert len(datasets.tabular_names()) == 15

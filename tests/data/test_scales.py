"""Texts with an order, and lists of triples, as `observe` reads them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from halfseen import observe
from halfseen.data import split_cells
from halfseen.errors import DataError, ParameterError

ORDER = ["low", "high"]


def test_texts_become_the_numbers_of_their_places():
    frame = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "y"], "rating": ["high", None, "low"]})
    observed = observe(frame, levels=ORDER)
    assert_array_equal(observed.to_dense(), [[2, np.nan], [np.nan, 1]])
    assert observed.level_names.tolist() == ORDER
    assert repr(observed).endswith("row_labels, column_labels, level_names)")
    assert observe(observed, unseen="zero").level_names.tolist() == ORDER
    assert observe(observed, levels=["high", "low"]).values.tolist() == [1, 2]
    train, test = split_cells(observed, test_size=1, random_state=0)
    assert train.level_names.tolist() == test.level_names.tolist() == ORDER


def test_numbers_beside_texts_are_the_numbers_of_levels():
    assert_array_equal(observe([["low", 2], [None, "high"]], levels=ORDER).to_dense(), [[1, 2], [np.nan, 2]])
    assert observe(np.array([[1.0, 2.0]]), levels=ORDER).level_names.tolist() == ORDER


def test_weights_stay_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating,sure\na,x,high,2\nb,x,low,0.5\n")
    observed = observe(tmp_path / "t.csv", levels=ORDER, cell_weight="sure")
    assert (observed.values.tolist(), observed.weights.tolist()) == ([2, 1], [2, 0.5])


@pytest.mark.parametrize("levels", ["high", [], ["low", "low"], ["low", 2], ["low", " "]])
def test_lists_that_are_no_order(levels):
    with pytest.raises(ParameterError) as caught:
        observe([["low", "high"]], levels=levels)
    assert str(caught.value) == (
        f'levels must be None, "ordered", or different texts from the lowest to the highest. Found {levels!r}. Give '
        'such a list: levels=["bad", "fair", "good"].'
    )


def test_categories_without_an_order_are_no_levels():
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "rating": pd.Categorical(["low", "high"])})
    with pytest.raises(DataError, match=r"^Values must be numbers, or texts whose order is told\. Found 'low' at"):
        observe(frame, levels="ordered")
    numbers = frame.assign(rating=pd.Categorical([1, 2], [1, 2], ordered=True))
    assert observe(numbers, levels="ordered").values.tolist() == [1, 2]
    assert observe(numbers, levels="ordered").level_names is None


def test_triples_are_a_long_table():
    triples = [("ann", "x", 5), ("bob", "y", 3), ("ann", "y", None)]
    observed = observe(triples)
    assert observed.row_labels.tolist() == ["ann", "bob"]
    assert observed.column_labels.tolist() == ["x", "y"]
    assert_array_equal(observed.to_dense(), [[5, np.nan], [np.nan, 3]])
    assert observe([(7, 1, 5), (8, 1, 3)], layout="long").row_labels.tolist() == [7, 8]
    assert observe([(7, 1, 5), (8, 1, 3)]).shape == (2, 3)  # a table of three columns, unless it is said
    assert observe([("low", "high", "low")], levels=ORDER).shape == (1, 3)
    weighted = observe(triples[:2], cell_weight=[2.0, 1.0])
    assert weighted.weights.tolist() == [2.0, 1.0]


def test_a_triple_that_has_no_number():
    with pytest.raises(DataError) as caught:
        observe([("ann", "x", 5), ("bob", "y", "three")])
    assert str(caught.value) == (
        "Values must be numbers. Found 'three' in triple 1, for row 'bob', column 'y'. Use None if it is unknown."
    )

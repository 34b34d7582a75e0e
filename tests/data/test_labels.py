"""Labels: numbered by first appearance, exact, of one kind, and aligned."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.data import Observed, labels
from halfseen.data.labels import labels_of_text, numbered, positions_among, uniform
from halfseen.errors import DataError

from .strategies import CALM

ids = st.one_of(
    st.lists(st.text(max_size=3), min_size=1),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(0, 2**64 - 1), min_size=1),
    st.lists(st.integers(-3, 3), min_size=1),
    st.lists(st.booleans(), min_size=1),
)


@CALM
@given(ids)
def test_ids_are_numbered_in_the_order_of_their_first_appearance(some):
    codes, found = numbered(some, "row")
    assert found.tolist() == list(dict.fromkeys(some))
    assert found[codes].tolist() == some


@CALM
@given(ids)
def test_arrays_and_lists_are_numbered_alike(some):
    for a, b in zip(numbered(uniform(some, "row"), "row"), numbered(some, "row"), strict=True):
        np.testing.assert_array_equal(a, b)


@CALM
@given(ids)
def test_chunks_do_not_show(some):
    whole = numbered(uniform(some, "row"), "row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "IDS_PER_CHUNK", 3)
        for a, b in zip(numbered(uniform(some, "row"), "row"), whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_kinds_of_labels_keep_their_kind():
    assert uniform([1, 2], "row").dtype == np.int64
    assert uniform([2**63], "row").dtype == np.uint64
    assert uniform([1.5], "row").dtype == np.float64
    assert uniform([True], "row").dtype == np.bool_
    assert uniform([datetime.date(2020, 1, 2)], "row").tolist() == [datetime.datetime(2020, 1, 2)]
    assert uniform(np.array(["a", "b"]), "row").dtype == object


@pytest.mark.parametrize(
    ("some", "sentence"),
    [
        ([1, "a"], "ids of rows must be all of one kind. Found integer and text ids together"),
        ([1, 2.5], "Found float and integer ids together"),
        (["a", None], "Found no row id at position 1"),
        ([1.0, float("nan")], "Found no row id at position 1"),
        ([("a", "b")], "must be numbers, text or dates. Found a tuple at position 0"),
        ([2**64], r"must fit in 64 bits\. Found 18446744073709551616\. Turn the ids into text"),
        ([-1, 2**63], "must fit in 64 bits. Found 9223372036854775808"),
        (np.array([1j]), "must be a list of numbers, text or dates. Found dtype complex128"),
    ],
)
def test_bad_ids_are_refused(some, sentence):
    with pytest.raises(DataError, match=sentence):
        uniform(some, "row")


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["1", "-5", "0"], [1, -5, 0]),
        (["9007199254740993", "18446744073709551615"], [9007199254740993, 18446744073709551615]),
        (["18446744073709551616"], ["18446744073709551616"]),
        (["7", "007"], ["7", "007"]),
        (["1", "1.0"], ["1", "1.0"]),
    ],
)
def test_ids_read_from_text(texts, labels):
    assert labels_of_text(texts, "row").tolist() == labels


def test_positions_among_wanted_labels():
    wanted = uniform(["x", "y", "z"], "column")
    assert positions_among(uniform(["z", "x"], "column"), wanted).tolist() == [2, 0]


def test_ids_read_from_text_are_text_where_the_fitted_are():
    fitted = uniform(["123", "99X"], "column")
    assert labels_of_text(["123"], "column", fitted).tolist() == ["123"]
    assert labels_of_text(["123"], "column", np.array([123])).tolist() == [123]


def test_integers_and_text_find_each_other_by_their_plain_spelling():
    isbn = uniform(["123", "456", "99X", "007"], "column")
    assert positions_among(np.array([456, 123]), isbn).tolist() == [1, 0]
    assert positions_among(uniform(["5", "-3"], "column"), np.array([-3, 5])).tolist() == [1, 0]
    assert positions_among(uniform(["5"], "column"), np.array([5], dtype=np.uint64)).tolist() == [0]
    for asked, wanted, unknown in (
        (np.array([7]), isbn, "Found 7 "),
        (np.array([7]), uniform(["7", "007"], "column"), "Found 7 "),
        (uniform(["5", "05"], "column"), np.array([5]), "Found '5' "),
        (uniform(["5.0"], "column"), np.array([5]), "Found '5.0' "),
    ):
        with pytest.raises(DataError, match=unknown):
            positions_among(asked, wanted)


def test_dates_are_found_whatever_their_unit():
    wanted = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")
    assert positions_among(np.array(["2021-01-01"], dtype="datetime64[D]"), wanted).tolist() == [1]


def test_unknown_columns_are_refused():
    with pytest.raises(DataError, match=r"among the 2 that were fitted\. Found 'q' \(2 unknown in all\)"):
        positions_among(uniform(["x", "q", "r"], "column"), uniform(["x", "y"], "column"))


def test_labels_must_fit_the_matrix_and_differ():
    with pytest.raises(DataError, match=r"one label for each row. Found 1 labels for 2 rows"):
        Observed.from_cells([0], [0], [1.0], (2, 1), row_labels=["a"])
    with pytest.raises(DataError, match=r"Every column must have its own label. Found 'a' more than once"):
        Observed.from_cells([0], [0], [1.0], (1, 2), column_labels=["a", "a"])

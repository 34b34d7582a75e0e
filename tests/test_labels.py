"""Labels: of one kind, exact, numbered by first appearance, and found by their plain spelling."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.labels import Index, encode, index_dtype, uniform
from tests.data.strategies import CALM
from tests.io.conftest import refused

ids = st.one_of(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), min_size=1),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(0, 2**64 - 1), min_size=1),
    st.lists(st.integers(-3, 3), min_size=1),
    st.lists(st.booleans(), min_size=1),
)


@CALM
@given(ids)
def test_ids_are_numbered_in_the_order_of_their_first_appearance(some):
    for given_as in (some, uniform(some, "row")):
        codes, found = encode(given_as, "row")
        assert found.tolist() == list(dict.fromkeys(some))
        assert found[codes].tolist() == some


@CALM
@given(ids)
def test_every_label_is_found_where_it_is(some):
    labels = uniform(list(dict.fromkeys(some)), "row")
    assert Index(labels).find(uniform(some, "row")).tolist() == [labels.tolist().index(one) for one in some]


def test_kinds_of_labels_are_kept():
    dates, texts, short = [datetime.date(2020, 1, 2)], np.array(["a", "b"]), np.array([1, 2], np.int8)
    kinds = [np.int64, np.uint64, np.float64, np.bool_, "datetime64[us]", object, np.int8]
    for some, dtype in zip(([1, 2], [2**63], [1.5], [True], dates, texts, short), kinds, strict=True):
        assert uniform(some, "row").dtype == dtype


def test_bad_ids_are_refused():
    for some, found, where in (
        ([1, "a"], "integer and text ids together", ""),
        ([1, 2.5], "float and integer ids together", ""),
        (["a", None], "no row id", "at position 1"),
        ([1.0, float("nan")], "no row id", "at position 1"),
        ([("a", "b")], "a tuple", "at position 0"),
        ([2**64], "18446744073709551616", ""),
        ([-1, 2**63], "9223372036854775808", ""),
        (np.array([1j]), "dtype complex128", ""),
        (["a", "\ud800"], "text that UTF-8 cannot hold", ""),
    ):
        with refused(found=found, where=where):
            encode(some, "row")


@pytest.mark.parametrize(("known", "asked", "positions"), [
    (["123", "456", "99X"], [456, 123, 456, 9], [1, 0, 1, -1]), ([-3, 5], ["5", "-3", "5", "x"], [1, 0, 1, -1]),
    (np.array([5], np.uint64), ["5"], [0]), ([3, 5], np.array([5, 5], np.int32), [1, 1]),
    (["2.0", "3.0"], ["2", "3.0", "4"], [0, 1, -1]), (["2.0", "3.0"], [3, 2], [1, 0]),
    (["2", "3"], [3.0, 2.0], [1, 0]), ([2.0, 3.0], ["3", "2.0"], [1, 0]), (["007", "8"], [7, 8], [-1, 1]),
    (["007", "7"], [7], [-1]), (["007", "7"], ["7", "007"], [1, 0]), ([5], ["5", "05"], [0, -1]),
])  # fmt: skip
def test_labels_of_other_kinds_are_found_by_their_plain_spelling(known, asked, positions):
    assert Index(uniform(known, "row")).find(uniform(asked, "row")).tolist() == positions


def test_dates_are_found_whatever_their_unit():
    known = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")
    assert Index(known).find(np.array(["2021-01-01", "2022-01-01"], dtype="datetime64[D]")).tolist() == [1, -1]


def test_indices_have_64_bits_where_32_are_too_few():
    largest = 2**31 - 1
    assert index_dtype((largest, largest), largest) == np.int32
    for shape, nnz in (((2**31 + 1, 1), 1), ((1, 2**31), 1), ((1, 1), 2**31)):
        assert index_dtype(shape, nnz) == np.int64

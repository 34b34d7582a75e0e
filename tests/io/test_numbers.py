"""Numbers in text: decimal marks, thousands separators, missing-value markers, ordered levels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from halfseen.errors import DataError, ParameterError
from halfseen.io import observe, read_wide_table, split_cells
from tests.data.strategies import CALM, half_seen
from tests.io.conftest import refused


def written(number, decimal, thousands):
    whole, _, part = f"{number:,.6f}".partition(".")
    return whole.replace(",", thousands) + decimal + part


@CALM
@given(half_seen(), st.sampled_from([";", "\t", "|", ","]), st.sampled_from([",", "."]), st.booleans())
def test_marks_do_not_change_a_number(tmp_path_factory, values, separator, decimal, in_thousands):
    values = np.round(values, 6)
    values = np.vstack([values, np.full(values.shape[1], 0.5)])  # which can't be thousands
    thousands = {",": ".", ".": ","}[decimal] if in_thousands else ""
    path = tmp_path_factory.mktemp("wide") / "t.csv"
    lines = [["name", *(f"c{place}" for place in range(values.shape[1]))]]
    for place, row in enumerate(values):
        fields = ["" if np.isnan(one) else written(one, decimal, thousands) for one in row]
        lines.append([f"r{place}", *(f'"{one}"' if separator == "," else one for one in fields)])
    path.write_text("".join(separator.join(line) + "\n" for line in lines))
    options = {"thousands": thousands} if thousands else {}
    found = observe(path, **options)
    assert_array_equal(found.to_dense(), values)
    assert found.summary.decimal == decimal
    assert_array_equal(observe(path, decimal=decimal, **options).to_dense(), values)
    assert_array_equal(read_wide_table(path, **options).observed.to_dense(), values)


@pytest.mark.parametrize("header", ["user;item;rating;sure\n", ""], ids=["header", "no header"])
def test_a_long_file_and_its_weights(read, header):
    found = read(f"{header}ann;1,5x;3,5;0,25\nbob;y;4;1\nann;y;,5;2\n", **({"cell_weight": "sure"} if header else {}))
    assert_array_equal(found.to_dense(), [[3.5, 0.5], [np.nan, 4]])
    assert found.column_labels.tolist() == ["1,5x", "y"]
    assert found.weights is None or found.weights.tolist() == [0.25, 2, 1]


VALUE = "user;item;rating\nann;x;2\nbob;y;{}\n"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("user;item;rating\nann;x;1.5\nbob;y;2\n\nann;y;2,5\n", ["'2,5' on line 5", "'1.5' on line 2"]),
        ("name;a;b\nx;1,5;2\ny;2,5;2.5\n", ["'1,5' on line 2 of t.csv, column 'a'", "'2.5' on line 3 of t.csv, col"]),
        ("name\ta\tb\nx\t2.5\t1\ny\t2\t2,5\n", ["'2,5' on line 3 of t.csv, column 'b'", "'2.5' on line 2"]),
        ('user,item,rating\nann,x,"1,250"\nbob,y,"2,500"\n', ["'1,250' on line 2", "thousands=','"]),
        ("name,p\na,5%\nb,7\n", ["'5%' on line 2", "'7' on line 3"]),
        *((VALUE.format(one), [f"'{one}' on line 3", "thous"]) for one in ("1.234,5", "1,234,567", "1.234.567")),
        *((VALUE.format(one), [f"'{one}' on line 3"]) for one in ("1,2,3", "a,5", "1,", ",", "1,5 kg", "1_0", "0x10")),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_refused(read, text, places):
    with pytest.raises(DataError) as caught:
        read(text)
    assert all(place in str(caught.value) for place in places)


def test_the_caller_or_another_number_decides(read):
    text = 'user,item,rating\nann,x,"1,250"\nbob,y,{}\n'
    assert read(text.format(3), decimal=",").values.tolist() == [1.25, 3]
    assert read(text.format(3), thousands=",").values.tolist() == [1250, 3]
    assert read(text.format('"0,5"')).values.tolist() == [1.25, 0.5]
    for options in ({"thousands": ",", "decimal": ","}, {"decimal": "ab"}, {"thousands": "1"}):
        with refused(ParameterError, parameter=next(iter(options))):
            read(text, **options)


@pytest.mark.parametrize("mark", ["", "NA", "n/a", "nan", "#N/A", ".", "--", "?", "NULL", "<NA>", " none "])
def test_missing_values_have_many_markers(read, mark):
    for decimal in (".", ","):
        text = f"name;p;q\na;1{decimal}5;2\nb;{mark};4\n"
        assert_array_equal(read(text).to_dense(), [[1.5, 2], [np.nan, 4]])


def test_more_markers_may_be_given_also_numbers(read):
    text = "name,p,q\na,1,2\nb,k.A.,-99\nc,-,3\n"
    assert_array_equal(read(text, na_values=["K.A.", "-99"]).to_dense(), [[1, 2], [np.nan] * 2, [np.nan, 3]])
    with pytest.raises(DataError, match=r"'k\.A\.' on line 3"):
        read(text, na_values=["-99"])


def test_codes_are_left_out_of_the_amounts_and_reported(read):
    with pytest.warns(UserWarning, match="column 'zip'"):
        assert read("zip,a\n01013,1\n90210,2\n").column_labels.tolist() == ["a"]


# Texts with an order.

ORDER = ["low", "high"]


def test_texts_become_the_numbers_of_their_places(read):
    frame = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "y"], "rating": ["high", None, "low"]})
    seen = observe(frame, levels=ORDER)
    assert_array_equal(seen.to_dense(), [[2, np.nan], [np.nan, 1]])
    for one in (seen, observe(seen, unseen="zero"), *split_cells(seen, test_size=1, random_state=0)):
        assert one.level_names.tolist() == ORDER
    assert observe(seen, levels=["high", "low"]).values.tolist() == [1, 2]
    assert_array_equal(observe([["low", 2], [None, "high"]], levels=ORDER).to_dense(), [[1, 2], [np.nan, 2]])
    assert observe([("low", "high", "low")], levels=ORDER).shape == (1, 3)
    weighted = read("user,item,rating,sure\na,x,high,2\nb,x,low,0.5\n", levels=ORDER, cell_weight="sure")
    assert (weighted.values.tolist(), weighted.weights.tolist()) == ([2, 1], [2, 0.5])
    assert read("user;item;rating\nann;x;1,5\nbob;x;0.5\n", levels=["0.5", "1,5"]).values.tolist() == [2, 1]


def test_texts_that_are_no_levels_are_refused(read):
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "rating": pd.Categorical(["low", "high"])})
    with pytest.raises(DataError, match=r"'low' at position 0 of column 'rating'.*levels"):
        observe(frame, levels="ordered")
    ordered = frame.assign(rating=frame["rating"].cat.set_categories(ORDER, ordered=True))
    assert observe(ordered, levels="ordered").level_names.tolist() == ORDER
    numbers = frame.assign(rating=pd.Categorical([1, 2], [1, 2], ordered=True))
    assert observe(numbers, levels="ordered").level_names is None
    with pytest.raises(DataError, match=r"'medium' on line 2 of t.csv"):
        read("user,item,rating\na,x,medium\n", levels=ORDER)
    with pytest.raises(DataError, match="'high' at row 'b', column 'x'"):
        observe(observe(ordered, levels="ordered"), levels=["low"])

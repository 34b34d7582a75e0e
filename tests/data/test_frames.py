"""Frames of pandas, polars and Arrow, long and wide."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.data import frames, observe
from halfseen.data.frames import as_frame, long_header_of
from halfseen.errors import DataError

from .strategies import CALM, assert_same, half_seen

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
LONG = {"user": ["ann", "bob", "ann"], "item": [7, 7, 9], "rating": [1.0, 2.0, 3.0]}


@CALM
@given(half_seen(), st.sampled_from(sorted(KINDS)))
def test_long_and_wide_frames_hold_the_same_cells(dense, kind):
    make = KINDS[kind]
    names = [f"c{j}" for j in range(dense.shape[1])]
    rows, columns = np.indices(dense.shape)
    long = {"row": rows.ravel(), "column": [names[j] for j in columns.ravel()], "value": dense.ravel()}
    wide = {name: dense[:, j] for j, name in enumerate(names)}
    a, b = observe(make(long)), observe(make(wide))
    assert_same(a, b)
    assert_same(a, observe(dense))
    assert a.column_labels.tolist() == b.column_labels.tolist() == names


@every_kind
def test_labels_come_in_the_order_of_first_appearance(make):
    seen = observe(make({"user": ["b", "a", "b"], "item": [9, 7, 7], "rating": [1.0, 2.0, 3.0]}))
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["b", "a"], [9, 7])
    np.testing.assert_array_equal(seen.to_dense(), [[1, 3], [np.nan, 2]])


@every_kind
def test_chunks_of_text_do_not_show(make, monkeypatch):
    monkeypatch.setattr(frames, "IDS_PER_CHUNK", 2)
    texts = list("babcdacb")
    seen = observe(make({"user": texts, "item": range(8), "rating": range(8)}))
    assert seen.row_labels.tolist() == list("bacd")
    assert seen.row_labels[np.argmax(~np.isnan(seen.to_dense()), axis=0)].tolist() == texts


@every_kind
@pytest.mark.parametrize(
    "names",
    [
        ("User_ID", "movie-id", "Rating"),
        ("userId", "movieId", "stars"),
        ("customer", "Product ID", "quantity"),
        ("respondent", "question", "answer"),
        ("u", "i", "y"),
        ("uid", "iid", "play count"),
        ("userID", "artistID", "weight"),
    ],
)
def test_usual_headers_are_recognised(make, names):
    seen = observe(make({**dict(zip(names, LONG.values(), strict=True)), "timestamp": [5, 6, 7]}))
    np.testing.assert_array_equal(seen.to_dense(), [[1, 3], [2, np.nan]])


@every_kind
def test_columns_may_be_named(make):
    frame = make({"how_much": [1.0, 2.0], "who": ["a", "b"], "what": ["x", "x"], "user": [1, 2], "item": [3, 4]})
    seen = observe(frame, columns=("who", "what", "how_much"))
    assert (seen.values.tolist(), seen.column_labels.tolist()) == ([1, 2], ["x"])


@every_kind
def test_pairs_without_values_count_as_one(make):
    seen = observe(make({"user": [1, 2], "item": [5, 5], "timestamp": [8, 9], "title": ["p", "q"]}))
    assert seen.values.tolist() == [1, 1]
    assert observe(make(LONG), columns=("user", "item")).values.tolist() == [1, 1, 1]


@every_kind
def test_pairs_beside_an_unknown_number_leave_it_open(make):
    with pytest.raises(DataError, match=r"Say columns=\('user', 'item', 'warmth'\), or columns=\('user', 'item'\)"):
        observe(make({"user": [1, 2], "item": [5, 5], "warmth": [8, 9]}))


@every_kind
def test_an_unusual_long_frame_is_read_in_order_if_told_so(make):
    frame = make({"a": [1, 2], "b": ["x", "y"], "c": [3, 4]})
    np.testing.assert_array_equal(observe(frame, layout="long").to_dense(), [[3, np.nan], [np.nan, 4]])
    with pytest.raises(DataError, match=r"must have a row, a column and a value column. Found these: a, b, c, d"):
        observe(make({"a": [1], "b": [1], "c": [1], "d": [1]}), layout="long")


@every_kind
def test_a_long_looking_frame_may_be_wide(make):
    seen = observe(make({"user": [1.0, 2.0], "item": [3.0, 4.0], "rating": [5.0, 6.0]}), layout="wide")
    assert seen.shape == (2, 3)


@every_kind
def test_the_value_column_may_be_weights_of_another(make):
    frame = make({"user": [1, 2], "item": [5, 5], "count": [3, 4], "weight": [0.5, 2.0]})
    seen = observe(frame, cell_weight="weight")
    assert (seen.values.tolist(), seen.weights.tolist()) == ([3, 4], [0.5, 2])
    named = observe(frame, cell_weight=[7, 8], columns=("user", "item", "count"))
    assert named.weights.tolist() == [7, 8]


@every_kind
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["userId", "thing", "rating"],
            r"Found 'userId' and 'rating', but no column of items among: userId, thing, rating\. "
            r"Name them: columns=\('userId', 'thing', 'rating'\); or say layout=\"wide\"",
        ),
        (
            ["user", "rating"],
            r"no column of items among: user, rating\. Name them: columns=\('user', 'item', 'rating'\)",
        ),
        (
            ["who", "movieId", "stars", "timestamp"],
            r"no column of users among: .*columns=\('who', 'movieId', 'stars'\)",
        ),
    ],
)
def test_a_long_table_that_lacks_a_side_is_not_taken_for_a_wide_one(make, names, sentence):
    frame = make({name: [1, 2] for name in names})
    with pytest.raises(DataError, match=sentence):
        observe(frame)
    assert observe(frame, layout="wide").column_labels.tolist() in (names, names[1:])


@every_kind
@pytest.mark.parametrize(
    "names",
    [
        ["age", "income", "score", "level"],
        ["weight", "count", "user_score"],
        ["u", "x", "y"],
        ["i", "value", "b"],
        ["person", "height", "b", "c", "d", "score"],
        list("abcdefghijklmnopqrstuvwxyz"),
        ["product", "price", "size"],
    ],
    ids=" ".join,
)
def test_ordinary_wide_tables_stay_wide(make, names):
    seen = observe(make({name: [1.5, 2.5] for name in names}))
    assert seen.column_labels.tolist() == names


@every_kind
def test_other_numbers_beside_a_long_table_leave_it_open(make):
    frame = make({name: [1.0, 2.0] for name in ("age", "person", "product", "score", "income")})
    sentence = (
        r"Found 'person', 'product' and 'score', and 'age' beside them\. Say columns=\('person', .* layout=\"wide\""
    )
    with pytest.raises(DataError, match=sentence):
        observe(frame)
    assert observe(frame, layout="wide").shape == (2, 5)
    assert observe(frame, columns=("person", "product", "score")).nnz == 2
    assert observe(frame, layout="long").nnz == 2


@every_kind
def test_two_columns_of_values_leave_it_open(make):
    frame = {"user": [1, 2], "item": [5, 5], "plays": [8, 9], "rating": [1, 2]}
    for layout in ("auto", "long"):
        with pytest.raises(DataError, match=r"which column holds the values. Found 'plays' and 'rating' beside 'user'"):
            observe(make(frame), layout=layout)
    assert observe(make({**frame, "rating": ["good", "bad"]})).values.tolist() == [8, 9]


@every_kind
def test_a_table_of_fitted_columns_is_wide_whatever_their_names(make):
    names = ["age", "person", "product", "score"]
    assert observe(make({name: [1.0, 2.0] for name in names}), column_labels=names).shape == (2, 4)


def test_a_look_at_the_headers_refuses_nothing():
    for names in (["user", "item", "plays", "rating"], ["age", "person", "product", "score"]):
        assert long_header_of(as_frame(pd.DataFrame({name: [1] for name in names}))) is not None
    assert long_header_of(as_frame(pd.DataFrame({"userId": [1], "thing": [1], "rating": [1]}))) is None


@every_kind
def test_missing_columns_are_named_with_those_found(make):
    with pytest.raises(DataError, match=r"Found no 'stars'\. The table has: user, item, rating"):
        observe(make(LONG), columns=("user", "item", "stars"))
    with pytest.raises(DataError, match=r"Found no 'w'"):
        observe(make(LONG), cell_weight="w")


@every_kind
@pytest.mark.parametrize(
    "ids", [[2**53 + 1, 2**53], np.array([2**63 + 1, 2**63], dtype=np.uint64), [str(2**70 + 1), str(2**70)]]
)
def test_huge_ids_are_exact(make, ids):
    seen = observe(make({"user": ids, "item": [1, 1], "rating": [1.0, 2.0]}))
    assert seen.row_labels.tolist() == list(ids)


def test_huge_ids_are_exact_in_nullable_and_object_columns():
    for ids in (pd.array([2**53 + 1, 5], dtype="Int64"), pd.Series([2**63 + 1, 5], dtype=object)):
        seen = observe(pd.DataFrame({"user": ids, "item": [1, 1], "rating": [1.0, 2.0]}))
        assert seen.row_labels.tolist() == list(ids)


@every_kind
def test_dates_and_bools_may_be_ids(make):
    days = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]
    seen = observe(make({"user": days, "item": [True, False], "rating": [1.0, 2.0]}))
    assert seen.row_labels.dtype.kind == "M"
    assert seen.row_labels.astype("datetime64[us]").tolist() == days
    assert seen.column_labels.tolist() == [True, False]


def test_categories_are_ids():
    for frame in (
        pd.DataFrame({"user": pd.Categorical(["b", "a", "b"]), "item": [1, 1, 2], "rating": [1, 2, 3]}),
        pl.DataFrame(
            {"user": pl.Series(["b", "a", "b"], dtype=pl.Categorical), "item": [1, 1, 2], "rating": [1, 2, 3]}
        ),
    ):
        assert observe(frame).row_labels.tolist() == ["b", "a"]


@every_kind
@pytest.mark.parametrize("ids", [["a", None], [1, None]])
def test_missing_ids_are_refused(make, ids):
    with pytest.raises(
        DataError, match=r"Every cell must name its row. Found no row id at position 1 of column 'user'"
    ):
        observe(make({"user": ids, "item": [1, 1], "rating": [1.0, 2.0]}))


@every_kind
def test_a_float_id_that_is_nan_is_missing(make):
    with pytest.raises(DataError, match=r"Found no column id"):
        observe(make({"user": [1, 2], "item": [1.5, float("nan")], "rating": [1.0, 2.0]}))


def test_mixed_ids_are_refused():
    with pytest.raises(DataError, match=r"ids of rows must be all of one kind. Found integer and text"):
        observe(pd.DataFrame({"user": [1, "a"], "item": [1, 1], "rating": [1.0, 2.0]}))


@every_kind
def test_numbers_written_as_text_are_values(make):
    seen = observe(make({"user": [1, 2, 3], "item": [1, 1, 1], "rating": ["1.5", "NA", " 2 "]}))
    assert seen.values.tolist() == [1.5, 2]


@every_kind
def test_values_that_are_no_numbers_are_refused(make):
    with pytest.raises(DataError, match=r"Values must be numbers\. Found 'good' at position 1 of column 'rating'"):
        observe(make({"user": [1, 2], "item": [1, 1], "rating": ["1", "good"]}))


@every_kind
def test_nulls_are_unseen_and_bools_are_numbers(make):
    long = observe(make({"user": [1, 2], "item": [1, 1], "rating": [True, None]}))
    assert (long.shape, long.values.tolist()) == ((2, 1), [1])
    wide = observe(make({"a": [1, None, 3], "b": [None, None, None], "c": [True, False, None]}))
    assert (wide.shape, wide.values.tolist()) == ((3, 3), [1, 1, 0, 3])


def test_nullable_columns_of_every_library():
    for frame in (
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.array([None, 0.5], dtype="Float64")}),
        pd.DataFrame({"a": pd.Series([1, None], dtype="int64[pyarrow]"), "b": [None, 0.5]}),
        pd.DataFrame({"a": pd.Series([1, None], dtype=object), "b": pd.Series([None, 0.5], dtype=object)}),
        pl.DataFrame({"a": [1, None], "b": [float("nan"), 0.5]}),
    ):
        np.testing.assert_array_equal(observe(frame).to_dense(), [[1, np.nan], [np.nan, 0.5]])


@every_kind
def test_float32_frames_stay_float32(make):
    single = np.array([1, 2], dtype=np.float32)
    assert observe(make({"a": single, "b": single})).dtype == np.float32
    assert observe(make({"a": single, "b": single.astype(float)})).dtype == np.float64
    assert observe(make({"user": [1, 2], "item": [1, 1], "rating": single})).dtype == np.float32


def test_float32_with_nulls_stays_float32():
    for frame in (
        pd.DataFrame({"a": pd.array([1, None], dtype="Float32")}),
        pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Float32)}),
        pa.table({"a": pa.array([1, None], type=pa.float32())}),
    ):
        assert (observe(frame).dtype, observe(frame).to_dense()[0, 0]) == (np.float32, 1)


@every_kind
def test_a_first_column_of_different_texts_names_the_rows(make):
    seen = observe(make({"name": ["ann", "bob"], "x": [1, 2], "y": [3.0, None]}))
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["ann", "bob"], ["x", "y"])


@every_kind
@pytest.mark.parametrize("wrong", [["a", "b"], [datetime.datetime(2020, 1, 1)] * 2], ids=["text", "dates"])
def test_other_columns_of_a_wide_frame_must_be_numbers(make, wrong):
    with pytest.raises(DataError, match=r"must be numbers\. Found column 'y' of type .*Drop it, make it the index"):
        observe(make({"x": [1, 2], "y": wrong}))


def test_a_pandas_index_names_the_rows_unless_it_counts_them():
    frame = pd.DataFrame({"x": [1, 2]})
    assert observe(frame).row_labels is None
    assert observe(frame[::-1]).row_labels.tolist() == [1, 0]
    assert observe(frame.set_axis(["p", "q"])).row_labels.tolist() == ["p", "q"]


def test_a_pandas_frame_without_names_has_no_labels():
    assert observe(pd.DataFrame(np.ones((2, 3)))).column_labels is None


def test_the_index_that_pandas_hides_in_arrow_names_the_rows():
    table = pa.Table.from_pandas(pd.DataFrame({"x": [1, 2]}, index=[5, 6]))
    seen = observe(table)
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == ([5, 6], ["x"])


@every_kind
def test_frames_are_placed_among_the_fitted_columns(make):
    wide = observe(make({"z": [1.0], "x": [2.0]}), column_labels=["x", "y", "z"])
    np.testing.assert_array_equal(wide.to_dense(), [[2, np.nan, 1]])
    long = observe(make({"user": [1], "item": ["y"], "rating": [5]}), column_labels=["x", "y", "z"])
    np.testing.assert_array_equal(long.to_dense(), [[np.nan, 5, np.nan]])
    for frame in (make({"x": [1.0], "q": [2.0]}), make({"user": [1], "item": ["q"], "rating": [5]})):
        with pytest.raises(DataError, match=r"among the 3 that were fitted\. Found 'q' \(1 unknown in all\)"):
            observe(frame, column_labels=["x", "y", "z"])


@every_kind
def test_frames_without_rows_or_columns_are_refused(make):
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        observe(make({"a": np.empty(0)}))
    with pytest.raises(DataError, match=r"At least one cell must be seen"):
        observe(make({"user": np.empty(0, int), "item": np.empty(0, int), "rating": np.empty(0)}))


@every_kind
def test_repeated_cells_follow_duplicates(make):
    frame = make({"user": ["ann", "ann"], "item": ["x", "x"], "rating": [1, 4]})
    with pytest.raises(DataError, match=r"Found 2 values for row 'ann', column 'x'"):
        observe(frame)
    assert observe(frame, duplicates="max").values.tolist() == [4]


def test_a_wide_frame_has_no_column_of_weights():
    with pytest.raises(DataError, match=r"a weight for every cell. Found only the column 'w'"):
        observe(pd.DataFrame({"a": [1], "w": [2]}), cell_weight="w")
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [2.0, 3.0]})
    assert observe(frame, cell_weight=frame * 10).weights.tolist() == [10, 20, 30]


@every_kind
def test_a_frame_of_weights_is_matched_by_name(make):
    frame = make({"name": ["p", "q"], "a": [1.0, None], "b": [2.0, 3.0]})
    for weights in ({"b": [20, 30], "a": [10, 7]}, {"name": ["p", "q"], "b": [20, 30], "a": [10, 7]}):
        assert observe(frame, cell_weight=make(weights)).weights.tolist() == [10, 20, 30]
    unnamed = pd.DataFrame([[1.0, np.nan], [2.0, 3.0]])
    assert observe(unnamed, cell_weight=make({"b": [1, 2], "a": [3, 4]})).weights.tolist() == [1, 2, 4]


@every_kind
@pytest.mark.parametrize(
    ("names", "odd"), [("ac", "no 'b'"), ("abc", "'c'"), ("a", "no 'b'")], ids=["other", "more", "fewer"]
)
def test_weights_of_other_columns_are_refused(make, names, odd):
    with pytest.raises(DataError, match=rf"must have the columns of X\. Found {odd} among its columns"):
        observe(make({"a": [1.0, 2.0], "b": [3.0, 4.0]}), cell_weight=make({name: [1, 2] for name in names}))


def test_weights_of_rows_in_another_order_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"])
    with pytest.raises(DataError, match=r"the rows of X, in their order\. Found row 'q' in the place of row 'p'"):
        observe(frame, cell_weight=frame[::-1])
    assert observe(frame, cell_weight=frame.reset_index(drop=True)).weights.tolist() == [1, 2]


@pytest.mark.parametrize(
    "index", [[0, 0], ["p", "p"], pd.MultiIndex.from_tuples([("p", 1), ("p", 2)])], ids=["numbers", "texts", "levels"]
)
def test_an_index_that_is_no_name_leaves_the_rows_unlabelled(index):
    frame = pd.DataFrame({"x": [1.0, 2.0], "z": [3.0, 4.0]}, index=index)
    for X in (frame, pa.Table.from_pandas(frame)):
        seen = observe(X)
        assert (seen.shape, seen.row_labels) == ((2, 2), None)
        assert seen.column_labels.tolist() == ["x", "z"]


@every_kind
@pytest.mark.parametrize("name", ["user", "userId", "user_id", "CustomerID", "id", "row id", "Unnamed: 0"])
def test_a_first_column_of_row_ids_names_the_rows(make, name):
    seen = observe(make({name: [2**53 + 1, 7], "x": [1, 2], "z": [3.0, None]}))
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == ([2**53 + 1, 7], ["x", "z"])


@every_kind
@pytest.mark.parametrize(
    "first", [{"user": [7, 7]}, {"user": [7.5, 8.5]}, {"age": [7, 8]}, {"u": [7, 8]}, {"user": [7, None]}]
)
def test_other_first_columns_of_numbers_are_values(make, first):
    assert observe(make({**first, "x": [1, 2]})).shape == (2, 2)


@every_kind
def test_a_column_that_was_fitted_names_no_rows(make):
    seen = observe(make({"user": [7, 8], "x": [1, 2]}), column_labels=["user", "x"])
    np.testing.assert_array_equal(seen.to_dense(), [[7, 1], [8, 2]])


def test_lazy_frames_and_series_are_refused():
    with pytest.raises(DataError, match=r"must be in memory\. Found a lazy one\. Collect it first"):
        observe(pl.LazyFrame({"a": [1]}))
    with pytest.raises(DataError, match=r"2-dimensional container"):
        observe(pd.Series([1.0, 2.0]))


@pytest.mark.parametrize("frame", [pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])])
def test_columns_of_one_name_are_refused(frame):
    with pytest.raises(DataError, match=r"Every column must have its own name. Found .*'a' 2 times"):
        observe(frame)


def test_the_frame_is_unchanged():
    frame = pd.DataFrame({"user": [2, 1], "item": [1, 1], "rating": [5.0, np.nan]})
    before = frame.copy(deep=True)
    observe(frame, unseen="zero")
    pd.testing.assert_frame_equal(frame, before)

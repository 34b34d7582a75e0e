"""Frames of pandas, polars and Arrow, lazy ones, datasets, databases, records, and files that hold frames."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.errors import DataError
from halfseen.io import observe
from tests.data.strategies import CALM, assert_same, half_seen
from tests.io.conftest import refused

MEMORY = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
STREAMS = {
    "lazy": pl.LazyFrame,
    "dataset": lambda columns: pa.dataset.dataset(pa.table(columns)),
    "reader": lambda columns: pa.table(columns).to_reader(max_chunksize=2),
    "batch": pa.RecordBatch.from_pydict,
}
every_kind = pytest.mark.parametrize("make", MEMORY.values(), ids=MEMORY)
LONG = {"user": ["bob", "ann", "bob"], "item": [9, 7, 7], "rating": [1.5, None, 3.0]}


@CALM
@given(half_seen(), st.sampled_from(sorted(MEMORY | STREAMS)))
def test_long_and_wide_frames_hold_the_same_cells(dense, kind):
    make = (MEMORY | STREAMS)[kind]
    names = [f"c{j}" for j in range(dense.shape[1])]
    rows, columns = np.indices(dense.shape)
    long = {"row": rows.ravel(), "column": [names[j] for j in columns.ravel()], "value": dense.ravel()}
    a, b = observe(make(long)), observe(make({name: dense[:, j] for j, name in enumerate(names)}))
    assert_same(a, b)
    assert_same(a, observe(dense))
    assert a.column_labels.tolist() == b.column_labels.tolist() == names


def check_long(seen):
    """The cells of LONG, labels in the order of their first appearance."""
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["bob", "ann"], [9, 7])
    np.testing.assert_array_equal(seen.to_dense(), [[1.5, 3], [np.nan, np.nan]])


@every_kind
def test_frames_are_read_and_stay_as_they_were(make):
    frame, before = make(LONG), make(LONG)
    check_long(observe(frame))
    assert frame.equals(before)


FILES = {
    "t.parquet": pa.parquet.write_table,
    "t.feather": lambda table, path: pa.feather.write_feather(table, str(path)),
    "t.jsonl": lambda table, path: path.write_text("".join(json.dumps(one) + "\n" for one in table.to_pylist())),
    "t.xlsx": lambda table, path: table.to_pandas().to_excel(path, index=False),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_hold_frames(tmp_path, name):
    if name == "t.xlsx":
        pytest.importorskip("openpyxl")
    FILES[name](pa.table({"name": ["p", "q"], "a": [1.0, None], "b": [2, 3]}), tmp_path / name)
    np.testing.assert_array_equal(observe(tmp_path / name).to_dense(), [[1, 2], [np.nan, 3]])
    assert observe(tmp_path / name).row_labels.tolist() == ["p", "q"]
    FILES[name](pa.table(LONG), tmp_path / name)
    check_long(observe(tmp_path / name))
    if name != "t.xlsx":
        check_long(observe(tmp_path / f"*{tmp_path.joinpath(name).suffix}"))
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2] if name != "t.jsonl" else b'{"a": 1}\n{"a": [2]}\n')
    with pytest.raises(DataError, match=name):
        observe(tmp_path / name)


def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "ratings.db")) as base:
        base.execute("create table r (who varchar, item bigint, stars decimal(3, 1))")
        base.execute("insert into r values ('bob', 9, 1.5), ('ann', 7, null), ('bob', 7, 3)")
        check_long(observe(base.sql("select who as user, item, stars from r")))
        counts = observe(base.sql("select who as user, count(*) as plays, item from r group by all order by all"))
        assert counts.values.tolist() == [1, 1, 1]


def test_adbc(tmp_path):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with dbapi.connect(str(tmp_path / "ratings.sqlite")) as base, base.cursor() as cursor:
        cursor.execute("create table r (user text, item integer, rating real)")
        cursor.executemany("insert into r values (?, ?, ?)", list(zip(*LONG.values(), strict=True)))
        for fetch in (cursor.fetch_arrow, cursor.fetch_record_batch, cursor.fetch_arrow_table):
            cursor.execute("select * from r")
            check_long(observe(fetch()))


def test_records():
    check_long(observe([dict(zip(LONG, one, strict=True)) for one in zip(*LONG.values(), strict=True)]))
    np.testing.assert_array_equal(observe([{"a": 1, "b": 2.5}, {"b": 3}]).to_dense(), [[1, 2.5], [np.nan, 3]])
    with refused(found="'x'", where="at position 1 of column 'rating'"):
        observe([{"user": "a", "item": "x", "rating": 3}, {"user": "b", "item": "x", "rating": "x"}])


@every_kind
def test_ids_are_exact(make):
    dates, unsigned = [datetime.datetime(2020, 1, day) for day in (1, 2)], np.array([2**63 + 1, 2**63], dtype=np.uint64)
    for ids in ([2**53 + 1, 2**53], unsigned, [str(2**70 + 1), str(2**70)], [True, False], [1.5, 2.5], dates):
        labels = observe(make({"user": ids, "item": [1, 1], "rating": [1.0, 2.0]})).row_labels
        assert (labels.astype("M8[us]") if labels.dtype.kind == "M" else labels).tolist() == list(ids)


def test_ids_of_other_types_are_exact_and_in_the_order_of_first_appearance():
    for make, users, labels in (
        (pd.DataFrame, pd.Categorical(["b", "a", "b"], categories=["a", "b", "c"]), ["b", "a"]),
        (pl.DataFrame, pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b", "c"])), ["b", "a"]),
        (pa.table, pa.chunked_array([pa.array(one).dictionary_encode() for one in (["b", "a"], ["b"])]), ["b", "a"]),
        (pd.DataFrame, pd.array([2**53 + 1, 5, 5], dtype="Int64"), [2**53 + 1, 5]),
        (pd.DataFrame, pd.Series([2**63 + 1, 5, 5], dtype=object), [2**63 + 1, 5]),
    ):
        assert observe(make({"user": users, "item": [1, 2, 3], "rating": [1, 2, 3]})).row_labels.tolist() == labels


@every_kind
def test_what_is_wrong_with_a_frame_is_named(make):
    for columns, found, where in (
        ({"user": ["a", None]}, "no row id", "at position 1 of column 'user'"),
        ({"user": [1, None]}, "no row id", "at position 1 of column 'user'"),
        ({"item": [1.5, float("nan")]}, "no column id", "at position 1 of column 'item'"),
        ({"rating": ["1", "good"]}, "'good'", "at position 1 of column 'rating'"),
        ({"user": ["a", "a"], "item": [7, 7]}, "2 values", "for row 'a', column 7 (1 cell is repeated)"),
    ):
        with refused(found=found, where=where):
            observe(make({"user": [1, 2], "item": [1, 1], "rating": [1.0, 2.0], **columns}))


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (pd.DataFrame({"user": [1, "a"], "item": [1, 1], "rating": [1.0, 2.0]}), "integer and text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "'a'"),
        (pl.DataFrame({"a": np.empty(0)}), "0 sample"),
        (pl.DataFrame({"user": [], "item": [], "rating": []}), "At least one cell"),
        (pl.DataFrame({"x": [1, 2], "y": ["a", "b"]}), "'y'"),
    ],
)
def test_frames_that_cannot_be_used(frame, found):
    with pytest.raises(DataError, match=found):
        observe(frame)


@every_kind
def test_float32_frames_stay_float32_and_written_numbers_are_numbers(make):
    single = np.array([1, 2], dtype=np.float32)
    assert observe(make({"a": single, "b": single})).dtype == np.float32
    assert observe(make({"a": single, "b": single.astype(float)})).dtype == np.float64
    assert observe(make({"user": [1, 2], "item": [1, 1], "rating": single})).dtype == np.float32
    assert observe(make({"user": [1, 2], "item": [1, 1], "rating": ["1.5", "NA"]})).values.tolist() == [1.5]
    wide = observe(make({"a": [1, None, 3], "b": [None, None, None], "c": [True, False, None]}))
    assert (wide.shape, wide.values.tolist()) == ((3, 3), [1, 1, 0, 3])
    decimals = pa.table({"a": pa.array([1, None], pa.decimal128(4, 2)), "b": pa.array([None, 0.5], pa.float16())})
    np.testing.assert_array_equal(observe(decimals).to_dense(), [[1, np.nan], [np.nan, 0.5]])


def test_the_index_of_pandas_names_the_rows_unless_it_counts_them(tmp_path):
    frame = pd.DataFrame({"x": [1, 2], "z": [3, 4]})
    assert observe(frame).row_labels is observe(pd.DataFrame(np.ones((2, 3)))).column_labels is None
    several = pd.MultiIndex.from_tuples([("p", 1), ("p", 2)])
    for index, labels in (([1, 0], [1, 0]), (["p", "q"], ["p", "q"]), ([0, 0], None), (several, None)):
        named = frame.set_axis(index)
        named.to_parquet(tmp_path / "t.parquet")
        for X in (named, pa.Table.from_pandas(named), tmp_path / "t.parquet"):
            seen = observe(X)
            assert (None if seen.row_labels is None else seen.row_labels.tolist()) == labels
            assert seen.column_labels.tolist() == ["x", "z"]


# Weights of a wide frame, and fitted columns.


@every_kind
def test_a_frame_of_weights_is_matched_by_name(make):
    frame = make({"name": ["p", "q"], "a": [1.0, None], "b": [2.0, 3.0]})
    for weights in ({"b": [20, 30], "a": [10, 7]}, {"name": ["p", "q"], "b": [20, 30], "a": [10, 7]}):
        assert observe(frame, cell_weight=make(weights)).weights.tolist() == [10, 20, 30]
    unnamed = pd.DataFrame([[1.0, np.nan], [2.0, 3.0]])
    assert observe(unnamed, cell_weight=make({"b": [1, 2], "a": [3, 4]})).weights.tolist() == [1, 2, 4]
    for names, odd in (("ac", "no 'b'"), ("abc", "'c'"), ("a", "no 'b'")):
        with refused(parameter="cell_weight", found=f"{odd} among its columns"):
            observe(frame, cell_weight=make({name: [1, 2] for name in names}))


def test_weights_of_rows_in_another_order_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"])
    with refused(parameter="cell_weight", found="row 'q' in the place of row 'p'"):
        observe(frame, cell_weight=frame[::-1])
    assert observe(frame, cell_weight=frame.reset_index(drop=True)).weights.tolist() == [1, 2]
    with refused(parameter="cell_weight", found="only the column 'w'"):
        observe(pd.DataFrame({"a": [1], "w": [2]}), cell_weight="w")


@every_kind
def test_frames_are_placed_among_the_fitted_columns(make):
    fitted = {"column_labels": ["x", "y", "z"]}
    np.testing.assert_array_equal(observe(make({"z": [1.0], "x": [2.0]}), **fitted).to_dense(), [[2, np.nan, 1]])
    long = observe(make({"user": [1], "item": ["y"], "rating": [5]}), **fitted)
    np.testing.assert_array_equal(long.to_dense(), [[np.nan, 5, np.nan]])
    for frame in (make({"x": [1.0], "q": [2.0]}), make({"user": [1], "item": ["q"], "rating": [5]})):
        with refused(found="'q' (1 unknown in all)"):
            observe(frame, **fitted)
    names = ["user", "person", "product", "score"]  # fitted columns are no ids, whatever they are called
    assert observe(make({name: [1.0, 2.0] for name in names}), column_labels=names).shape == (2, 4)

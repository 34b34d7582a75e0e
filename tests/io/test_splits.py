"""Cells split into training and test: in memory, and in files that appear both or not at all."""

import json
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from halfseen.errors import DataError, ParameterError
from halfseen.io import k_folds, observe, read_table, split_cells, split_rows
from halfseen.io.schema import ReadOptions, recognise
from halfseen.io.splits import SIDECAR, check_pair, split_file
from halfseen.observed import Observed
from tests.cli.program import names_in
from tests.data.strategies import CALM, assert_same, half_seen
from tests.io.conftest import refused


def cells_of(observed):
    """Every cell as (row, column, value, weight), in order."""
    weights = np.ones(observed.nnz) if observed.weights is None else observed.weights
    return list(zip(observed.row_of_cell(), observed.indices, observed.values, weights, strict=True))


def together(*parts):
    return sorted(cell for part in parts for cell in cells_of(part))


@CALM
@given(half_seen(least=2), st.floats(0.01, 0.99), st.integers(0, 100))
def test_every_cell_goes_to_one_part(dense, share, seed):
    seen = observe(dense)
    count = round(share * seen.nnz)
    if not 0 < count < seen.nnz:
        with refused(parameter="test_size", found=f"{seen.nnz} cells, {count} of them for test"):
            split_cells(dense, share, seed)
        return
    train, test = split_cells(dense, share, seed)
    assert test.nnz == split_cells(dense, count, seed)[1].nnz == count
    assert together(train, test) == together(seen)
    for part in (train, test):
        assert_same(part, observe(part.to_dense()))


@CALM
@given(half_seen(least=2), st.integers(1, 3), st.data())
def test_splits_per_row_and_by_time(dense, last, data):
    seen = observe(dense)
    times = np.array(data.draw(st.permutations(range(seen.nnz))))
    per_row, rows = seen.seen_per_row(), seen.row_of_cell()
    everywhere = np.minimum(last, np.maximum(per_row - 1, 0))  # a training cell stays in every row
    for options in ({"test_size": last, "by": "row", "random_state": 0}, {"by": "time", "last": last, "time": times}):
        if not everywhere.any():
            with refused(found=f"at most {per_row.max()} per row"):
                split_cells(seen, **options)
            continue
        train, test = split_cells(seen, **options)
        assert together(train, test) == together(seen)
        assert test.seen_per_row().tolist() == everywhere.tolist()
        if options["by"] == "time":
            held = np.isin(rows * seen.shape[1] + seen.indices, test.row_of_cell() * seen.shape[1] + test.indices)
            for row in np.flatnonzero(everywhere):
                assert times[held & (rows == row)].min() > times[~held & (rows == row)].max()
    if last < seen.nnz:
        _, test = split_cells(seen, last, by="time", time=times)
        assert cells_of(test) == cells_of(seen.select_cells(times >= seen.nnz - last))


@CALM
@given(half_seen(least=2), st.integers(2, 6))
def test_folds_part_the_cells(dense, n_folds):
    seen = observe(dense)
    if seen.nnz < n_folds:
        with refused(parameter="n_folds", found=f"{seen.nnz} cells for {n_folds} folds"):
            k_folds(dense, n_folds)
        return
    pairs = list(k_folds(dense, n_folds, 0))
    assert all(together(*pair) == together(seen) for pair in pairs)
    assert together(*(test for _, test in pairs)) == together(seen)
    sizes = [test.nnz for _, test in pairs]
    assert (len(sizes), max(sizes) - min(sizes) <= 1) == (n_folds, True)


def test_labels_weights_and_types_go_with_the_cells(tmp_path):
    dense = np.where(np.eye(5) > 0, np.nan, np.arange(25.0).reshape(5, 5) + 1)
    rows, columns = np.nonzero(~np.isnan(dense))
    long = pd.DataFrame({"user": rows, "item": columns, "rating": dense[rows, columns], "w": 2.0})
    long.to_csv(tmp_path / "cells.csv", index=False, columns=["user", "item", "rating"])
    weighted = observe(long, cell_weight="w", unseen="zero")
    for X in (pd.DataFrame(dense), tmp_path / "cells.csv", weighted):
        train, test = split_cells(X, 5, 0)
        assert (train.nnz, test.nnz) == (15, 5)
        assert together(train, test) == together(observe(X, unseen=None))
    assert (train.row_labels is weighted.row_labels, test.unseen, test.shape) == (True, "zero", (5, 5))
    assert all(part.dtype == np.float32 for part in split_cells(np.ones((4, 4), np.float32), 0.5, 0))
    assert sum(part.nnz for part in split_cells(np.eye(3), 0.5, 0)) == 9
    assert sum(part.nnz for part in split_cells(np.eye(3), 0.5, 0, unseen="zero")) == 3


def test_the_seed_decides_and_every_cell_is_equally_likely():
    dense = np.random.default_rng(0).random((20, 20))
    first, again, other = (cells_of(split_cells(dense, 0.3, seed)[1]) for seed in (7, np.random.RandomState(7), 8))
    assert first == again != other
    drawn, state = np.zeros(10), np.random.RandomState(0)
    for _ in range(2000):
        drawn[split_cells(np.ones((2, 5)), 0.3, state)[1].to_dense().reshape(-1) == 1] += 1
    assert drawn.sum() == 6000
    assert stats.chisquare(drawn).pvalue > 1e-3


def test_values_of_one_cell_stay_together():
    rows = np.repeat(np.arange(30), 3)
    seen = Observed.from_cells(rows, np.repeat(np.arange(30) % 4, 3), np.arange(90.0), (30, 4), duplicates="keep")
    times = np.arange(90) % 3 * 30 + np.arange(90) // 3  # the last value of a pair is as late as its row
    by_time = split_cells(seen, 1 / 3, by="time", time=times)
    for train, test in (split_cells(seen, 1 / 3, 0), by_time, *k_folds(seen, 3, 0)):
        assert (train.nnz, test.nnz) == (60, 30)
        assert not set(train.row_of_cell()) & set(test.row_of_cell())
    assert set(by_time[1].row_of_cell()) == set(range(20, 30))


def test_bad_options_are_refused():
    for error, parameter, options in (
        *((ParameterError, "test_size", {"test_size": one}) for one in (0, 1.0, -0.1, None, "0.2", True, np.nan)),
        *((DataError, "test_size", {"test_size": one}) for one in (0.01, 0.99, 9)),
        (ParameterError, "random_state", {"random_state": "0"}),
        (ParameterError, "unseen", {"unseen": "none"}),
        (ParameterError, "by", {"by": "luck"}),
        (ParameterError, "last", {"last": 1}),
        (DataError, "time", {"by": "time"}),
        (ParameterError, "last", {"by": "time", "time": np.arange(9), "last": 0}),
    ):
        with refused(error, parameter=parameter):
            split_cells(np.ones((3, 3)), **options)


# Files.

HEADER = "user;item;rating;note;timestamp"
LINES = [f"u{r};i{c}; {r + 10 * c},5;x,y;{(7 * r + 3 * c) % 48}" for r in range(8) for c in range(6)]


@pytest.fixture
def ratings(tmp_path):
    (tmp_path / "r.csv").write_text("\n".join([HEADER, *LINES, ""]))
    return tmp_path / "r.csv"


@pytest.fixture
def split(tmp_path):
    """Split a file, and give the lines of both parts."""

    def split(path, ending=".csv", **options):
        parts = [tmp_path / f"{side}{ending}" for side in ("train", "test")]
        split.told = split_file(path, *parts, **{"random_state": 0, **options})
        return [part.read_text().splitlines() for part in parts]

    return split


HOW = [({}, 10), ({"test_size": 3}, 3), ({"by": "row"}, 8), ({"by": "time"}, 10), ({"by": "time", "last": 2}, 16)]


@pytest.mark.parametrize(("options", "n_test"), [*HOW, ({"folds": 4, "fold": 3}, 12)])
def test_every_line_is_in_one_part_as_it_was_and_in_its_order(ratings, split, options, n_test):
    train, test = split(ratings, **options)
    assert train[0] == test[0] == HEADER
    assert sorted(train[1:] + test[1:]) == sorted(LINES)
    assert [line for line in LINES if line in set(train)] == train[1:]
    assert len(test) - 1 == n_test == split.told.n_test


def test_the_choice_is_that_of_split_cells(ratings, split):
    for options, _ in HOW:
        _, test = split(ratings, **options)
        _, cells = split_cells(ratings, **{"random_state": 0, **options})
        rows, columns = cells.row_labels[cells.row_of_cell()], cells.column_labels[cells.indices]
        assert sorted(tuple(line.split(";")[:2]) for line in test[1:]) == sorted(zip(rows, columns, strict=True))


def test_lines_of_a_pair_stay_together_and_folds_cover_all(tmp_path, split):
    (tmp_path / "r.csv").write_text("\n".join([HEADER, *LINES, *LINES[::-1]]))
    held = []
    for fold in range(3):
        train, test = split(tmp_path / "r.csv", folds=3, fold=fold)
        assert not set(train[1:]) & set(test[1:])
        held += test[1:]
    assert sorted(held) == sorted(2 * LINES)


@pytest.mark.parametrize("text", ["1 2  3\n1 3  4\n2 2  5\n", "a,x,3\n\nb,x,4\nb,y,5", "1::2::3\n1::3::4\n2::2::5\n"])
def test_files_without_a_header_stay_so(tmp_path, split, text):
    (tmp_path / "r.txt").write_text(text)
    train, test = split(tmp_path / "r.txt", ".txt")
    assert sorted(train + test) == sorted(filter(None, text.splitlines()))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_lines_of_other_encodings_are_whole(tmp_path, encoding):
    (tmp_path / "r.csv").write_bytes("\n".join([HEADER, *LINES]).replace("u1;", "ü1;").encode(encoding))
    parts = [tmp_path / "a.csv", tmp_path / "b.csv"]
    split_file(tmp_path / "r.csv", *parts, random_state=0, encoding=encoding)
    train, test = map(observe, parts)
    assert (train.nnz + test.nnz, "ü1" in train.row_labels) == (len(LINES), True)


def test_words_need_no_order_and_other_formats_are_written(ratings, tmp_path, split):
    words = tmp_path / "words.csv"
    words.write_text("customer,title,how\na,x,good\na,y,bad\nb,x,good\n")
    train, test = split(words, columns=("customer", "title", "how"))
    assert sorted(train[1:] + test[1:]) == ["a,x,good", "a,y,bad", "b,x,good"]
    parts = tmp_path / "train.parquet", tmp_path / "test.csv.gz"
    split_file(ratings, *parts, random_state=0)
    cells = [observe(part, columns=("user", "item", "rating"), allow_empty=True) for part in parts]
    assert sorted(np.concatenate([one.values for one in cells])) == sorted(observe(ratings).values)
    assert pq.read_table(parts[0]).column("note").to_pylist()[0] == "x,y"


@CALM
@given(half_seen(values=st.integers(0, 99).map(float), least=2), st.sampled_from([".csv", ".parquet"]))
def test_a_cell_of_a_wide_table_is_empty_in_one_part(tmp_path_factory, dense, ending):
    folder = tmp_path_factory.mktemp("wide")
    frame = pd.DataFrame(dense, columns=[f"c{j}" for j in range(dense.shape[1])])
    frame.insert(0, "town", [f"t{i}" for i in range(len(dense))])
    frame.to_csv(folder / "t.csv", index=False)
    parts = [folder / f"{side}{ending}" for side in ("train", "test")]
    if observe(dense).nnz == 1:
        return
    told = split_file(folder / "t.csv", *parts, test_size=1, random_state=0)
    train, test = (observe(part, allow_empty=True) for part in parts)
    assert (told.layout, test.nnz, train.shape, test.shape) == ("wide", 1, dense.shape, dense.shape)
    assert together(train, test) == together(observe(dense))
    assert train.row_labels.tolist() == test.row_labels.tolist() == frame["town"].tolist()


def test_splits_that_cannot_be_made_leave_nothing(ratings, tmp_path):
    for options, error, found in (
        ({"by": "time", "time": "when"}, DataError, "no 'when'"),
        ({"by": "time", "time": "note"}, DataError, "'x,y'"),
        ({"folds": 3, "fold": 3}, ParameterError, "'random', fold 3"),
        ({"folds": 3, "by": "row"}, ParameterError, "'row', fold 0"),
    ):
        with refused(error, found=found):
            split_file(ratings, tmp_path / "a.csv", tmp_path / "b.csv", **options)
    assert names_in(tmp_path) == ["r.csv"]


@pytest.mark.parametrize("move", [1, 2, 3])
@pytest.mark.parametrize("old", [[], ["b.csv"], ["a.csv", "b.csv", f"b.csv{SIDECAR}"]], ids=len)
def test_both_files_are_written_or_none(ratings, tmp_path, monkeypatch, old, move):
    for name in old:
        (tmp_path / name).write_text(f"old {name}")
    before = {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)}
    count, replace = [], os.replace

    def failing(*paths):
        count.append(paths)
        if len(count) == move:
            raise OSError(28, "No space left on device")
        replace(*paths)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(DataError, match="No space"):
        split_file(ratings, tmp_path / "a.csv", tmp_path / "b.csv", random_state=1)
    assert {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)} == before


def test_a_training_file_of_another_split_is_refused(ratings, tmp_path):
    """As a split leaves it that is killed between its moves, which can't be undone."""
    pair, new = [tmp_path / "a.csv", tmp_path / "b.csv"], [tmp_path / "c.csv", tmp_path / "d.csv"]
    split_file(ratings, *pair, random_state=3, by="row")
    record = json.loads((tmp_path / f"b.csv{SIDECAR}").read_text())
    assert (record["seed"], record["by"], record["train"]["file"]) == (3, "row", "a.csv")
    check_pair(*pair)
    split_file(ratings, *new, random_state=1)
    new[0].replace(pair[0])
    with pytest.raises(DataError, match=r"b.csv, held out of a.csv by seed 3, and another a.csv"):
        check_pair(*pair)
    new[1].replace(pair[1])
    check_pair(*pair)  # both are new: only the record is old
    check_pair(ratings, ratings)  # of which there is no record


# Commands agree about what a file is.

NAMES = ["user", "item", "rating", "userId", "movieId", "score", "timestamp", "id", "name", "plays", "2001", "u", "i"]
FIELDS = {
    "int": st.integers(0, 9).map(str),
    "decimal": st.integers(0, 99).map(lambda tenth: f"{tenth / 10}"),
    "comma": st.integers(0, 99).map(lambda tenth: f"{tenth / 10}".replace(".", ",")),
    "text": st.sampled_from(["ann", "bob", "cy", "x y", "NA", "nan", ""]),
    "padded": st.integers(0, 99).map("{:03d}".format),
}


@st.composite
def tables(draw):
    width = draw(st.integers(2, 6))
    kinds = draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=width, max_size=width))
    rows = draw(st.lists(st.tuples(*(FIELDS[kind] for kind in kinds)), min_size=2, max_size=6))
    if draw(st.booleans()):
        common = draw(st.sampled_from([[], ["user", "item"], ["userId", "movieId", "rating"]]))
        rows = [list(dict.fromkeys(common + draw(st.permutations(NAMES))))[:width], *rows]
    separator = draw(st.sampled_from([",", ";", "\t", "|", "::", " "]))
    clean = [[(one.replace(" ", "") or "NA") if separator == " " else one for one in row] for row in rows]
    quoted = [[f'"{one}"' if separator == "," and "," in one else one for one in row] for row in clean]
    return "\n".join(separator.join(row) for row in quoted) + "\n"


def outcome(work):
    try:
        return work()
    except DataError as error:
        return str(error)


#: How sentences begin that are about cells, not about what the columns are.
ABOUT_CELLS = (
    *("Values must", "Every row must have", "Every cell must", "Training and test", "A wide table must have"),
    *("At least one cell", "Numbers must have one", "A point in", "A comma in", "Found array with"),
)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_split_and_fit_agree_about_layout_and_roles(tmp_path_factory, text):
    """What the recogniser says of a file, or refuses it with, both commands say; they differ only about cells."""
    folder = tmp_path_factory.getbasetemp() / "agree"
    folder.mkdir(exist_ok=True)
    path, pair = folder / "t.csv", [folder / "a.csv", folder / "b.csv"]
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        split = outcome(lambda: split_file(path, *pair, test_size=1, random_state=0))
    seen = outcome(lambda: observe(path, duplicates="last", allow_empty=True))
    header = outcome(lambda: recognise(read_table(path, "auto"), ReadOptions()))
    if isinstance(header, str):
        assert split == seen == header
        return
    layout = "wide" if header is None else "long"
    for found in (split, seen):
        assert found.startswith(ABOUT_CELLS) if isinstance(found, str) else True
    assert isinstance(split, str) or split.layout == layout
    assert isinstance(seen, str) or seen.summary.layout == layout
    if layout == "long" and not isinstance(split, str) and not isinstance(seen, str):
        parts = [read_table(part, "long", seen.summary.has_header) for part in pair]
        assert all(part.names == read_table(path, "auto").names for part in parts)
        pairs = observe(path, columns=header[:2], header=seen.summary.has_header, duplicates="last")
        rows, columns = pairs.row_labels[pairs.row_of_cell()], pairs.column_labels[pairs.indices]
        fields = [zip(part.texts(header.row), part.texts(header.column), strict=True) for part in parts]
        found = {(row.strip(), column.strip()) for part in fields for row, column in part}
        assert found == set(zip(map(str, rows), map(str, columns), strict=True))


# Rows


def test_rows_held_out_have_a_history_and_cells_for_test():
    random = np.random.default_rng(0)
    X = np.where(random.random((30, 20)) < 0.5, random.integers(1, 6, (30, 20)), np.nan)
    X[:, 19] = np.nan
    X[:4] = np.nan
    X[:4, :3], X[10, 19] = 2.0, 3.0  # four rows with three cells; a column that one row has
    names = np.array([f"r{row}" for row in range(30)], object)
    observed = replace(observe(X), row_labels=names)
    for seed in range(5):
        train, history, test = split_rows(observed, 6, 0.25, seed)
        assert (train.shape, history.shape, test.shape) == ((24, 20), (6, 20), (6, 20))
        assert list(history.row_labels) == list(test.row_labels)
        assert set(train.row_labels) | set(test.row_labels) == set(names)
        assert not set(test.row_labels) & {f"r{row}" for row in range(4)}  # of fewer than five cells
        at = [int(label[1:]) for label in test.row_labels]
        assert_array_equal(train.to_dense(), np.delete(X, at, axis=0))
        past, held = history.to_dense(), test.to_dense()
        assert not np.any(~np.isnan(past) & ~np.isnan(held))
        both, known = np.where(np.isnan(past), held, past), train.seen_per_column() > 0
        assert_array_equal(both[:, known], X[at][:, known])
        assert np.isnan(both[:, ~known]).all()  # nothing that no model can rank
        counts = (~np.isnan(both)).sum(axis=1)
        assert_array_equal((~np.isnan(held)).sum(axis=1), [round(count * 0.25) for count in counts.tolist()])
    again = split_rows(observed, 6, 0.25, 4)
    assert_array_equal(again[2].to_dense(), test.to_dense())
    assert split_rows(observed, 0.5, random_state=0)[1].shape[0] == 13  # of 26 with five cells


def test_repeated_cells_stay_together_when_rows_are_held_out():
    rows, columns = np.repeat([0, 1, 2, 3], 12), np.tile(np.repeat(np.arange(6), 2), 4)
    observed = Observed.from_cells(rows, columns, np.arange(48.0), (4, 6), duplicates="keep")
    _, history, test = split_rows(observed, 2, 0.5, 0)
    for row in range(2):
        past, held = (set(part.indices[part.indptr[row] : part.indptr[row + 1]]) for part in (history, test))
        assert (len(past), len(held), past & held) == (3, 3, set())


@pytest.mark.parametrize(("test_rows", "min_cells"), [(0, 5), (1.5, 5), ("x", 5), (5, 5), (4, 2), (0.1, 7), (2, 1)])
def test_rows_that_cannot_be_held_out(test_rows, min_cells):
    with pytest.raises((ParameterError, DataError)):
        split_rows(np.ones((4, 6)), test_rows, min_cells=min_cells)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_split_by_user_is_that_of_its_cells(tmp_path, ending):
    random = np.random.default_rng(0)
    rows, columns = np.nonzero(random.random((30, 20)) < 0.5)
    kept = (columns < 19) | (rows == 10)
    frame = pd.DataFrame({"user": rows[kept], "item": columns[kept], "rating": 1.0 + columns[kept] % 5})
    frame.loc[3, "rating"] = np.nan
    frame.to_csv(tmp_path / "all.csv", index=False)
    names = [tmp_path / f"{name}.{ending}" for name in ("train", "history", "test")]
    done = split_file(
        tmp_path / "all.csv", names[0], names[2], by="user", history=names[1], test_rows=6, random_state=0
    )
    parts = [pd.read_csv(name) if ending == "csv" else pd.read_parquet(name) for name in names]
    train, history, test = parts
    assert (done.n_train, done.n_history, done.n_test, done.n_rows) == (*map(len, parts), 6)
    assert set(history.user) == set(test.user)
    assert test.user.nunique() == 6
    assert not set(test.user) & set(train.user)
    assert set(pd.concat([history, test]).item) <= set(train.item)
    known = frame[frame.user.isin(train.user) | frame.item.isin(train.item)]
    both = pd.concat(parts).astype(float).sort_values(["user", "item"]).to_numpy()
    assert_array_equal(both, known.astype(float).sort_values(["user", "item"]).to_numpy())
    assert not test.rating.isna().any()
    check_pair(names[0], names[2])
    with pytest.raises(DataError):
        check_pair(tmp_path / "all.csv", names[2])
    with pytest.raises(ParameterError):
        split_file(tmp_path / "all.csv", names[0], names[2], by="user")
    pd.DataFrame(np.ones((9, 9)), columns=list("abcdefghi")).to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(DataError):
        split_file(tmp_path / "wide.csv", names[0], names[2], by="user", history=names[1])

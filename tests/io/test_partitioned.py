"""Partitioned files that are read in parts: what comes out is, to the last bit, what reading them at once gives."""

import gc
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from distributed import Client
from sklearn.base import clone

import halfseen
from halfseen import array_files, arrays
from halfseen.engines.cluster import local_cluster, on_dask
from halfseen.errors import DataError
from halfseen.io import observe, partitioned
from halfseen.io.partitioned import observe_files

LEVELS = ["bad", "fair", "good", "best"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(partitioned, "ROWS_PER_PART", 64)
    monkeypatch.setattr(partitioned, "CELLS_PER_BUCKET", 90)
    monkeypatch.setattr(partitioned, "ROWS_PER_BATCH", 16)


def ids(kind, random, n, size):
    numbers = random.integers(0, size, n)
    if kind == "text":
        return pa.array([f"no {one}" for one in numbers])
    if kind == "dictionary":  # of its own in every file, in an order of its own, with entries that no row has
        names = [f"no {one}" for one in random.permutation(size + 3)]
        return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(names))
    if kind == "float":
        return pa.array(np.where(numbers == 0, random.choice([0.0, -0.0], n), numbers.astype(float)))
    if kind == "uint64":
        return pa.array(numbers.astype(np.uint64) + np.uint64(2**63))
    if kind == "date":
        return pa.array(numbers.astype("datetime64[D]"))
    return pa.array(numbers.astype(kind))


def values(kind, random, n):
    stars = random.integers(0, 6, n)
    if kind == "holes":
        return pa.array(stars.astype("f4"), mask=random.random(n) < 0.2)
    if kind == "nan":
        return pa.array(np.where(random.random(n) < 0.2, np.nan, stars + 0.1))
    if kind == "levels":
        return pa.array([LEVELS[one % 4] for one in stars])
    if kind == "ordered":
        names = pa.array(LEVELS)
        return pa.DictionaryArray.from_arrays(pa.array(stars % 4, pa.int8()), names, ordered=True)
    return pa.array(stars.astype(kind))


CASES = {
    "numbers": ("int64", "int32", "float32", {}),
    "text, holes": ("text", "int64", "holes", {}),
    "dictionaries of the files": ("dictionary", "dictionary", "nan", {}),
    "floats": ("float", "bool", "int8", {}),
    "large integers and dates": ("uint64", "date", "float64", {}),
    "zeros": ("int64", "text", "int64", {"unseen": "zero"}),
    "pairs": ("int64", "text", None, {"columns": ("user", "item")}),
    "levels": ("text", "int64", "levels", {"levels": LEVELS}),
    "ordered categories": ("int64", "int64", "ordered", {"levels": "ordered"}),
}


def write(folder, case, seed, *, form="parquet", weights=False, lengths=(90, 0, 333, 7), size=(60, 40)):
    """Files of a generated table, one of them without a row; their pattern."""
    random, (row, column, value, _) = np.random.default_rng(seed), CASES[case]
    for number, n in enumerate(lengths):
        columns = {"user": ids(row, random, n, size[0]), "item": ids(column, random, n, size[1])}
        if value is not None:
            columns["rating"] = values(value, random, n)
        if weights:
            columns["certainty"] = pa.array(random.integers(0, 4, n) / 3)
        path = folder / f"part-{number}.{form}"
        if form == "parquet":
            pq.write_table(pa.table(columns), path, row_group_size=50)
        else:
            feather.write_feather(pa.table(columns), str(path), chunksize=50)
    return f"{folder}/part-*.{form}"


def both(pattern, **options):
    at_once, in_parts = observe(pattern, **options), observe_files(pattern, smallest=1, **options)
    assert at_once.shape == in_parts.shape
    assert at_once.unseen == in_parts.unseen
    assert isinstance(in_parts.values, np.memmap)
    assert at_once.fingerprint() == in_parts.fingerprint()
    for name in ("indptr", "indices", "values", "weights", "row_labels", "column_labels", "level_names"):
        one, other = getattr(at_once, name), getattr(in_parts, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
            if one.dtype.kind == "O":
                assert set(map(type, other)) == {str}
    assert at_once.summary == in_parts.summary
    return in_parts


@pytest.mark.parametrize("form", ["parquet", "feather"])
@pytest.mark.parametrize("case", CASES)
def test_parts_give_what_the_whole_gives(tmp_path, case, form):
    options = CASES[case][3]
    pattern = write(tmp_path, case, seed=len(case), form=form)
    for duplicates in ("first", "last", "max", "keep"):
        both(pattern, duplicates=duplicates, **options)


@pytest.mark.parametrize("unseen", ["missing", "zero"])
@pytest.mark.parametrize("duplicates", ["sum", "mean", "min", "first", "keep"])
def test_weights_and_repeated_cells(tmp_path, unseen, duplicates):
    """Few places, so that a cell has many values, from all files; the least of dozens of stars is always 0."""
    size = (20, 12) if duplicates == "min" else (7, 3)
    pattern = write(tmp_path, "numbers", 3, weights=True, size=size, lengths=(300, 250))
    both(pattern, unseen=unseen, duplicates=duplicates, cell_weight="certainty")


def test_one_file_of_one_row_group_and_one_bucket(tmp_path, monkeypatch):
    pattern = write(tmp_path, "text, holes", 5, lengths=(120,))
    both(pattern, duplicates="mean")
    monkeypatch.setattr(partitioned, "ROWS_PER_PART", 10**6)
    monkeypatch.setattr(partitioned, "CELLS_PER_BUCKET", 10**6)
    both(pattern, duplicates="mean")


def test_small_files_wide_tables_and_text_are_read_at_once(tmp_path):
    pattern = write(tmp_path, "numbers", 1, size=(2000, 2000))
    assert not isinstance(observe_files(pattern).values, np.memmap)
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, None]}), tmp_path / "wide.parquet")
    assert observe_files(tmp_path / "wide.parquet", smallest=1).shape == (2, 2)
    (tmp_path / "long.csv").write_text("user,item,rating\n1,2,3\n")
    assert observe_files(tmp_path / "long.csv", smallest=1).nnz == 1


def refusal(read, pattern, **options):
    with pytest.raises(DataError) as error:
        read(pattern, **options)
    return str(error.value)


BROKEN = {
    "no user": ("user", 250, pa.scalar(None, pa.float64())),
    "NaN as a user, before none": ("user", 100, pa.scalar(np.nan)),
    "an inexact item": ("item", 200, pa.scalar(2.0**60)),
    "an infinite value": ("rating", 301, pa.scalar(np.inf)),
    "a negative weight": ("certainty", 12, pa.scalar(-1.0)),
}


@pytest.mark.parametrize("broken", [[one] for one in BROKEN] + [list(BROKEN), list(BROKEN)[1:], list(BROKEN)[2:]])
def test_errors_are_those_of_the_whole(tmp_path, broken):
    random = np.random.default_rng(0)
    n = 400
    columns = {
        "user": random.integers(0, 50, n) * 1.0, "item": random.integers(0, 50, n) * 1.0,
        "rating": random.integers(1, 5, n) * 1.0, "certainty": random.random(n),
    }  # fmt: skip
    lists = {name: column.tolist() for name, column in columns.items()}
    for one in broken:
        name, row, scalar = BROKEN[one]
        lists[name][row] = scalar.as_py()
    for number in range(4):
        part = {name: pa.array(column[100 * number : 100 * number + 100]) for name, column in lists.items()}
        pq.write_table(pa.table(part), tmp_path / f"{number}.parquet", row_group_size=30)
    options = {"cell_weight": "certainty", "duplicates": "first"}
    message = refusal(observe, f"{tmp_path}/*.parquet", **options)
    assert refusal(observe_files, f"{tmp_path}/*.parquet", smallest=1, **options) == message


def test_other_refusals_are_those_of_the_whole(tmp_path):
    pattern = write(tmp_path, "levels", 2, size=(9, 5))
    for options in (
        {},  # texts whose order is not known
        {"levels": LEVELS[:3]},
        {"levels": LEVELS},  # repeated cells
        {"columns": ("user", "items")},
        {"duplicates": "add", "levels": LEVELS},
    ):
        with pytest.raises(Exception) as of_whole:
            observe(pattern, **options)
        with pytest.raises(type(of_whole.value)) as of_parts:
            observe_files(pattern, smallest=1, **options)
        assert str(of_parts.value) == str(of_whole.value)
    nothing = pa.table({"user": [1, 2], "item": [1, 2], "rating": pa.array([None, None], pa.float64())})
    pq.write_table(nothing, tmp_path / "nothing.parquet")
    path = tmp_path / "nothing.parquet"
    assert refusal(observe_files, path, smallest=1) == refusal(observe, path)
    both(tmp_path / "part-0.parquet", levels=LEVELS, duplicates="first")
    damaged = tmp_path / "part-2.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-200] + damaged.read_bytes()[-200:].replace(b"PAR1", b"PARX"))
    assert refusal(observe_files, pattern, smallest=1, levels=LEVELS) == refusal(observe, pattern, levels=LEVELS)


def test_files_go_with_the_arrays(tmp_path):
    pattern = write(tmp_path, "numbers", 4)
    place = tmp_path / "temporary"
    place.mkdir()
    found = observe_files(pattern, place, smallest=1, duplicates="mean")
    (folder,) = place.iterdir()
    assert sorted(path.name for path in folder.glob("[!.]*")) == ["indices", "indptr", "values"]
    values = found.values[3:5]
    del found
    gc.collect()
    assert [path.name for path in folder.glob("[!.]*")] == ["values"]
    del values
    gc.collect()
    assert not list(place.iterdir())
    refusal(observe_files, pattern, folder=place, smallest=1)
    assert not list(place.iterdir())


FITS = {
    "OrdNMF": {}, "SquaredOrdNMF": {}, "PoissonFactorization": {"unseen": "missing"}, "BernoulliPoisson": {},
    "WeightedNMF": {"loss": "frobenius"},
}  # fmt: skip


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_fits_to_mapped_cells_have_the_same_bits(tmp_path, monkeypatch, name, weights):
    """Encoders, checks and records go through mapped arrays in parts, and leave none of them in memory."""
    pattern = write(tmp_path, "text, holes", 8, weights=weights, size=(50, 30), lengths=(400, 0, 500))
    options = {"duplicates": "max", "cell_weight": "certainty" if weights else None}
    model = getattr(halfseen, name)(3, max_iter=4, tol=0.0, random_state=0, **FITS[name])
    at_once = clone(model).fit(observe(pattern, unseen=model.unseen, **options))
    monkeypatch.setattr(arrays, "ENTRIES_PER_PART", 97)
    monkeypatch.setattr(array_files, "ENTRIES_PER_PART", 97)
    mapped = model.fit(observe_files(pattern, smallest=1, unseen=model.unseen, **options))
    for side in ("W_", "H_"):
        np.testing.assert_array_equal(getattr(mapped, side), getattr(at_once, side))
    assert mapped.model_.fingerprint == at_once.model_.fingerprint
    for part in ("indptr", "indices", "values", "weights"):
        one, other = getattr(at_once.seen_, part), getattr(mapped.seen_, part)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
            assert isinstance(other, np.memmap)
    mapped.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    np.testing.assert_array_equal(again.recommend(["no 3"], 5), at_once.recommend(["no 3"], 5))


def test_what_a_killed_process_left_is_removed(tmp_path):
    pattern = write(tmp_path, "numbers", 4)
    place = tmp_path / "new" / "temporary"
    found = observe_files(pattern, place, smallest=1, duplicates="mean")
    (folder,) = place.iterdir()
    program = (
        f"import os; from halfseen.array_files import temporary_folder; temporary_folder({str(place)!r}); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    (left,) = set(place.iterdir()) - {folder}
    again = observe_files(pattern, place, smallest=1, duplicates="mean")
    assert not left.exists()
    assert len(list(place.iterdir())) == 2
    assert found.fingerprint() == again.fingerprint()
    (tmp_path / "file").touch()
    assert "must have room" in refusal(observe_files, pattern, folder=tmp_path / "file", smallest=1)


def test_workers_of_a_cluster_read_the_parts(tmp_path, monkeypatch):
    """Real processes, which do not know the small parts of the other tests: files are what they share."""
    monkeypatch.setattr(partitioned, "ROWS_PER_PART", 10_000)
    monkeypatch.setattr(partitioned, "CELLS_PER_BUCKET", 10_000)
    random, pattern = np.random.default_rng(0), f"{tmp_path}/*.parquet"
    for number in range(3):
        n = 50_000
        names = pa.array([f"u{one}" for one in random.permutation(9_000)])
        users = pa.DictionaryArray.from_arrays(pa.array(random.integers(0, 9_000, n), pa.int32()), names)
        columns = {"user": users, "item": random.integers(0, 5_000, n), "rating": random.random(n).astype("f4")}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=7_000)
    with local_cluster(2) as cluster, Client(cluster):
        on_workers = observe_files(pattern, **on_dask(tmp_path), duplicates="mean", smallest=1)
        assert refusal(observe_files, pattern, **on_dask(tmp_path), smallest=1) == refusal(observe, pattern)
    here = observe(pattern, duplicates="mean")
    assert on_workers.fingerprint() == here.fingerprint()
    np.testing.assert_array_equal(on_workers.row_labels, here.row_labels)

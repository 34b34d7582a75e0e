"""--engine dask: clusters of this machine and others, and lists by parts of a folder."""

from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfseen
from halfseen import engines
from halfseen.array_files import lock_file
from halfseen.cli import options
from halfseen.cli import recommend as module
from tests.cli.program import done, misused, refused


@pytest.fixture
def logs(tmp_path):
    """A pattern of two files."""
    random = np.random.default_rng(0)
    users, items = np.nonzero(random.random((50, 20)) < 0.4)
    stars = random.integers(1, 6, users.size)
    for number, part in enumerate(np.array_split(random.permutation(users.size), 2)):
        table = {"user": [f"u{one}" for one in users[part]], "item": items[part], "rating": stars[part]}
        pq.write_table(pa.table(table), tmp_path / f"log-{number}.parquet")
    return f"{tmp_path}/log-*.parquet"


def test_two_workers_fit_and_rank_as_one_process_does(logs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_OF_PART", 16)
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 8)
    fit = ["fit", logs, "--method", "ordnmf", "-k", 3, "--tol", 1e-2, "-q"]
    cluster = ["--engine", "dask", "--workers", 2, "--memory", "1GB"]
    assert done(*fit, "-o", tmp_path / "one.hs") == []
    assert done(*fit, *cluster, "-o", tmp_path / "two.hs") == []
    one, two = (halfseen.load(tmp_path / name) for name in ("one.hs", "two.hs"))
    assert two.engine == "dask"
    np.testing.assert_array_equal(one.W_, two.W_)
    np.testing.assert_array_equal(one.H_, two.H_)

    lists = ["recommend", tmp_path / "two.hs", "--all", "-n", 4]
    done(*lists, "-o", tmp_path / "lists.parquet")
    of_one, folder = pq.read_table(tmp_path / "lists.parquet"), tmp_path / "lists"
    assert done(*lists, *cluster, "-o", f"{folder}/") == [f"Saved {folder}: 4 parts."]
    assert pq.read_table(folder).equals(of_one)


def test_a_folder_of_lists_goes_on_where_it_ended(model, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_OF_PART", 3)
    folder = tmp_path / "lists"
    lists = ["recommend", model, "--all", "-n", 2, "-o", f"{folder}/"]
    assert done(*lists) == [f"Saved {folder}: 3 parts."]
    whole = pq.read_table(folder)
    (folder / "part-000001.parquet").unlink()
    (folder / ".part-000001.parquet.abc.part").touch()  # as of a killed command
    kept = (folder / "part-000000.parquet").stat()
    assert done(*lists) == [f"Saved {folder}: 3 parts (2 of them were there)."]
    assert (folder / "part-000000.parquet").stat().st_mtime_ns == kept.st_mtime_ns
    assert not list(folder.glob(".*"))
    assert pq.read_table(folder).equals(whole)
    done("recommend", model, "--all", "-n", 2, "-o", tmp_path / "lists.parquet")
    assert pq.read_table(tmp_path / "lists.parquet").equals(whole)
    assert "some of the same lists" in refused(*lists, "--exclude", "gin")
    (folder / "part-000001.parquet").unlink()
    (folder / ".part-000001.parquet.abc.part").touch()  # as of a command that still runs
    with lock_file(folder / module.LOCK) or nullcontext() as lock:
        if lock is not None:
            assert "of one command at a time. Found another one" in refused(*lists)
            assert (folder / ".part-000001.parquet.abc.part").exists()
    assert done(*lists) == [f"Saved {folder}: 3 parts (2 of them were there)."]
    assert pq.read_table(folder).equals(whole)


def test_options_of_a_cluster_need_one(model, logs, tmp_path, monkeypatch):
    fit, lists = ["fit", logs, "-o", tmp_path / "m.hs"], ["recommend", model, "--all"]
    assert misused(*fit, "--workers", 2) == "--workers 2 is for --engine dask: add it, or leave --workers out."
    assert misused(*fit, "--engine", "cpu", "--scheduler", "tcp://a:1").startswith("--scheduler tcp://a:1 is for")
    busy = misused(*fit, "--engine", "dask", "--scheduler", "tcp://a:1", "--memory", "2GB")
    assert busy == "--memory is for a cluster of this machine: leave it out with --scheduler."
    for size in ("2", "lots"):
        sentence = refused(*fit, "--engine", "dask", "--memory", size)
        assert sentence.startswith(f"halfseen: --memory must be a size of at least 700MB. Found '{size}'.")
    assert misused(*lists, "--engine", "dask").startswith("--engine dask is for the lists of all rows in a folder")
    monkeypatch.setattr(options, "SECONDS_TO_ANSWER", 1)
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        sentence = refused(*fit, "--engine", "dask", "--scheduler", address)
        assert sentence.startswith(
            f"halfseen: The scheduler must answer within 1 second. Found no answer from {address!r}"
        )
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert "pip install 'halfseen[cluster]'" in refused(*fit, "--engine", "dask")
    assert not (tmp_path / "m.hs").exists()

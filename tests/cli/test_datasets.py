"""halfseen datasets: the list, one dataset, its files, fetching, and writing ratings as a table."""

import json
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import halfseen
from halfseen.datasets import listing, registry
from halfseen.datasets.catalogue import sources
from tests.cli.program import done, misused, refused
from tests.cli.program import halfseen as run
from tests.cli.test_terminal import OnTerminal, listening, plain  # noqa: F401  (a fixture for Ctrl-C)
from tests.datasets.server import ONE, TWO, folder, offered, published  # noqa: F401  (fixtures)


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """An empty data folder."""
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    return tmp_path


# The list, and one dataset.


def test_the_list_has_a_line_for_every_dataset(empty):
    lines = done("datasets")
    end = lines.index("")
    assert [line.split()[0] for line in lines[1:end]] == [entry.name for entry in listing()]
    assert str(empty) in lines[end + 1]
    (line,) = (line for line in lines if line.startswith("movielens-100k "))
    assert line.endswith(f"  {registry.NOT_FETCHED}")
    assert "943 x 1,682, 100,000 ratings" in line
    assert json.loads("\n".join(done("datasets", "--json"))) == [entry._asdict() for entry in listing()]


def test_the_details_of_a_dataset(empty):
    details = "\n".join(done("datasets", "movielens-100k"))
    source = sources()["movielens-100k"]
    for part in (source.terms, source.citation, source.address, source.size, "movielens-100k/u.data"):
        assert part in details
    assert json.loads("\n".join(done("datasets", "movielens-100k", "--json")))["terms"] == source.terms


# Paths.


def test_the_path_of_a_dataset(empty):
    (empty / "movielens-1m").mkdir()
    (empty / "movielens-1m" / "ratings.dat").write_text("1::2::3::4\n")
    result = run("datasets", "movielens-1m", "--path")
    assert (result.exit_code, result.stdout) == (0, f"{empty}/movielens-1m/ratings.dat\n")
    assert result.stderr.startswith("note: ")  # the checksum differs


def test_the_built_in_ratings_can_be_fitted_by_their_path():
    (path,) = done("datasets", "movietweetings", "--path")
    assert halfseen.observe(path).shape == halfseen.datasets.load_movietweetings().shape


def test_there_is_no_path(empty):
    assert "halfseen datasets movielens-100k --fetch" in refused("datasets", "movielens-100k", "--path")
    assert "halfseen.datasets.make_survey()" in refused("datasets", "survey", "--path")


# Ratings as a table.


def test_the_built_in_ratings_are_written_with_titles(tmp_path):
    path = tmp_path / "ratings.parquet"
    assert str(path) in done("datasets", "movietweetings", "-o", path)[-1]
    frame, ratings = pd.read_parquet(path), halfseen.datasets.load_movietweetings()
    assert frame.columns.tolist() == ["user", "item", "rating"]
    assert (frame.dtypes["user"], frame.dtypes["rating"]) == (np.int64, np.int64)
    assert frame["item"].tolist() == ratings.column_labels[ratings.indices].tolist()
    assert frame["rating"].tolist() == ratings.values.tolist()


@pytest.mark.filterwarnings("ignore:.*sha256:halfseen.errors.DataWarning")
def test_public_ratings_are_written_with_their_ids(empty):
    (empty / "movielens-latest-small").mkdir()
    lines = "userId,movieId,rating,timestamp\n7,20,3.5,9\n7,3,5.0,9\n"
    (empty / "movielens-latest-small" / "ratings.csv").write_text(lines)
    result = run("datasets", "movielens-latest-small", "-o", "-", "-q")
    assert (result.exit_code, result.stdout) == (0, "user,item,rating\n7,20,3.5\n7,3,5.0\n")
    result = run("datasets", "movielens-latest-small", "-o", empty / "r.csv", "--json")
    assert json.loads(result.stdout)["cells"] == 2
    refused("datasets", "movielens-latest-small", "-o", empty / "movielens-latest-small/ratings.csv")


@pytest.mark.parametrize(
    ("name", "part"), [("wiki4he", "load_tabular"), ("survey", "make_survey"), ("movielens-100k", "--fetch")]
)
def test_what_cannot_be_written(empty, name, part):
    assert part in refused("datasets", name, "-o", empty / "r.csv")
    assert list(empty.iterdir()) == []


# Fetching.


def test_terms_are_shown_at_the_first_download(offered, folder):  # noqa: F811
    offered()
    result = run("datasets", "some-set", "--fetch")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"Saved {folder}/some/set/{name}.csv" for name in ("one", "two")]
    assert result.stderr.splitlines() == ["Terms of Some set: CC0.", "Please cite: Nobody (2000)."]
    assert (folder / "some/set/one.csv").read_bytes() == ONE
    again = run("datasets", "some-set", "--fetch")
    assert (again.exit_code, again.stderr) == (0, "")
    assert all(line.startswith("Already there:") for line in again.stdout.splitlines())
    paths = json.loads("\n".join(done("datasets", "some-set", "--fetch", "-q", "--json")))
    assert [Path(path).read_bytes() for path in paths] == [ONE, TWO]


def test_refusals_of_fetch(offered, published, empty):  # noqa: F811
    offered()
    published[0]["/both.zip"] = 404
    sentence = refused("datasets", "some-set", "--fetch")
    assert "404" in sentence
    assert "https://example.org/page" in sentence
    assert f"{empty}/tabular/big_mart/train.csv" in refused("datasets", "big_mart", "--fetch")
    assert "built in" in refused("datasets", "movietweetings", "--fetch")
    assert list(empty.iterdir()) == []


# The real program; the server is its proxy, and so answers for every address.

NETFLIX = "http://www.select.cs.cmu.edu/code/graphlab/datasets/smallnetflix_mm"
RATINGS = b"1 1 5\n2 1 3\n"


@pytest.fixture
def network(published, folder, monkeypatch):  # noqa: F811
    answers, address = published
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    answers |= {f"{NETFLIX}.train": RATINGS, f"{NETFLIX}.validate": RATINGS}
    return answers


def test_the_real_program_downloads_with_a_progress_bar(network, folder):  # noqa: F811
    with OnTerminal("datasets", "smallnetflix", "--fetch") as running:
        assert running.ended() == 0
    assert f"{len(RATINGS)}/{len(RATINGS)} bytes" in plain(running.shown)
    assert "Netflix prize: research use" in plain(running.shown)
    for part in ("train", "validate"):
        assert (folder / "smallnetflix" / f"smallnetflix_mm.{part}").read_bytes() == RATINGS
    assert halfseen.datasets.load_smallnetflix()[0].nnz == 2


def test_ctrl_c_in_a_download_leaves_nothing(network, folder):  # noqa: F811
    network["hold"] = threading.Event()
    network[f"{NETFLIX}.train"] = (RATINGS, 10**9)
    try:
        with OnTerminal("datasets", "smallnetflix", "--fetch") as running:
            running.wait_for(re.compile("smallnetflix .*GB"))
            running.process.send_signal(signal.SIGINT)
            assert running.ended() == 130
            assert running.process.stdout.read() == ""
    finally:
        network["hold"].set()
    assert "Interrupted" in plain(running.shown)
    assert "Traceback" not in running.shown
    assert not folder.exists()


def test_misuse():
    assert refused("datasets", "movielens-100").endswith("'movielens-100k'?")
    for words in (("--path", "--fetch"), ("--path", "-o", "r.csv")):
        assert "--path" in misused("datasets", "movielens-100k", *words)
    assert misused("datasets", "--fetch").startswith("--fetch")

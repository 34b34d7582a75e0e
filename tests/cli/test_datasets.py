"""halfseen datasets: the list, one set, its files, and fetching."""

import json
import re
import signal
import threading
from pathlib import Path

import pytest

import halfseen
from halfseen.data.catalogue import SOURCES
from halfseen.data.datasets import listing
from tests.cli.program import done, misused, program, refused
from tests.cli.program import halfseen as run
from tests.cli.test_terminal import OnTerminal, listening, plain  # noqa: F401  (a fixture for Ctrl-C)
from tests.data.test_fetching import ONE, TWO, folder, offered, published  # noqa: F401  (fixtures)


@pytest.fixture
def nothing_there(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    return tmp_path


# The list.


def test_the_list_has_a_line_for_every_set(nothing_there):
    lines = done("datasets")
    names = [line.split()[0] for line in lines[1 : lines.index("")]]
    assert names == [entry.name for entry in listing()]
    assert lines[-1] == (
        f"Public data are kept in {nothing_there}. All of one: halfseen datasets NAME. "
        "Fetch one: halfseen datasets NAME --fetch."
    )
    (line,) = (line for line in lines if line.startswith("movielens-100k "))
    assert line.split("  ")[-1] == "to fetch"
    assert "943 x 1,682, 100,000 ratings" in line


def test_the_list_for_programs(nothing_there):
    told = json.loads("\n".join(done("datasets", "--json")))
    assert told == [entry._asdict() for entry in listing()]


def test_what_cannot_be_compared_is_not_told_as_right(nothing_there):
    """No sha256 is known of smallnetflix; that of a file of MovieLens 1M is, and this is another."""
    names = [file.path for source in ("smallnetflix", "movielens-1m") for file in SOURCES[source].files]
    for name in names:
        (nothing_there / name).parent.mkdir(exist_ok=True)
        (nothing_there / name).write_text("anything")
    states = {entry["name"]: entry["state"] for entry in json.loads("\n".join(done("datasets", "--json")))}
    assert states["smallnetflix"] == "there, not checked"
    assert states["movielens-1m"] == "there, with other contents"
    assert states["movielens-100k"] == "to fetch"
    (line,) = (line for line in done("datasets") if line.startswith("smallnetflix "))
    assert line.endswith("  there, not checked")
    assert "state:     there, not checked" in done("datasets", "smallnetflix")
    assert done("datasets", "smallnetflix", "--fetch")[0].endswith("smallnetflix_mm.train was there already.")


def test_one_set_says_all_that_is_known_of_it(nothing_there):
    told = "\n".join(done("datasets", "movielens-100k"))
    source = SOURCES["movielens-100k"]
    for said in (source.terms, source.citation, source.address, source.size, "movielens-100k/u.data", "to fetch"):
        assert said in told
    as_json = json.loads("\n".join(done("datasets", "movielens-100k", "--json")))
    assert as_json["terms"] == source.terms


# Where it lies.


def test_the_path_of_what_is_there(nothing_there):
    (nothing_there / "movielens-1m").mkdir()
    (nothing_there / "movielens-1m" / "ratings.dat").write_text("1::2::3::4\n")
    result = run("datasets", "movielens-1m", "--path")
    assert (result.exit_code, result.stdout) == (0, f"{nothing_there}/movielens-1m/ratings.dat\n")
    assert result.stderr.startswith("note: ")  # the contents are others


def test_the_path_of_what_is_built_in_can_be_fitted(tmp_path):
    (path,) = done("datasets", "movietweetings", "--path")
    assert Path(path).is_file()
    assert halfseen.observe(path).shape == halfseen.datasets.load_movietweetings().shape


def test_the_path_of_what_is_absent(nothing_there):
    sentence = refused("datasets", "movielens-100k", "--path")
    assert "Get it by halfseen datasets movielens-100k --fetch, or from https://grouplens.org/" in sentence
    result = program("datasets", "movielens-100k", "--path")
    assert (result.returncode, result.stdout, result.stderr.strip()) == (2, "", sentence)


def test_what_is_generated_has_no_path():
    assert refused("datasets", "survey", "--path").endswith("Call halfseen.datasets.make_survey() in Python.")


# Fetching.


def test_what_is_fetched_is_told_with_its_terms_once(offered, folder):  # noqa: F811
    offered()
    result = run("datasets", "some-set", "--fetch")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"{folder}/some/set/{name}.csv is there." for name in ("one", "two")]
    assert result.stderr.splitlines() == ["Terms of Some set: CC0.", "Please cite: Nobody (2000)."]
    assert (folder / "some/set/one.csv").read_bytes() == ONE
    again = run("datasets", "some-set", "--fetch")
    assert (again.exit_code, again.stderr) == (0, "")
    assert all(line.endswith("was there already.") for line in again.stdout.splitlines())


def test_quietly_and_for_programs(offered, folder):  # noqa: F811
    offered()
    assert done("datasets", "some-set", "--fetch", "-q") == []
    paths = json.loads("\n".join(done("datasets", "some-set", "--fetch", "-q", "--json")))
    assert [Path(path).read_bytes() for path in paths] == [ONE, TWO]


def test_a_refusal_is_one_line(offered, published, folder):  # noqa: F811
    offered()
    published[0]["/both.zip"] = 404
    assert "It answered 404 Not Found. Open https://example.org/page in a browser" in refused(
        "datasets", "some-set", "--fetch"
    )
    assert not folder.exists()


def test_by_hand(nothing_there):
    sentence = refused("datasets", "big_mart", "--fetch")
    assert "https://www.kaggle.com/datasets/brijbhushannanda1979/bigmart-sales-data in a browser and save" in sentence
    assert sentence.endswith(f"train.csv as {nothing_there}/tabular/big_mart/train.csv.")


def test_an_interrupt(offered, folder, monkeypatch):  # noqa: F811
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    offered()
    monkeypatch.setattr("halfseen.data.parcels.copied", interrupt)
    monkeypatch.setattr("halfseen.data.fetching.copied", interrupt)
    result = run("datasets", "some-set", "--fetch")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted; nothing was saved.\n")
    assert not folder.exists()


def test_what_is_built_in_is_not_fetched():
    assert "it is built in" in refused("datasets", "movietweetings", "--fetch")


# The real program, for which this machine is the network: what it asks of others goes through a proxy.

NETFLIX = "http://www.select.cs.cmu.edu/code/graphlab/datasets/smallnetflix_mm"
RATINGS = b"1 1 5\n2 1 3\n"


@pytest.fixture
def network(published, folder, monkeypatch):  # noqa: F811
    shelf, address = published
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.delenv("no_proxy", raising=False)
    shelf |= {f"{NETFLIX}.train": RATINGS, f"{NETFLIX}.validate": RATINGS}
    return shelf


def test_fetched_by_the_real_program(network, folder):  # noqa: F811
    result = program("datasets", "smallnetflix", "--fetch")
    assert result.returncode == 0, result.stderr
    assert [(folder / "smallnetflix" / f"smallnetflix_mm.{part}").read_bytes() for part in ("train", "validate")] == [
        RATINGS,
        RATINGS,
    ]
    assert "Netflix prize: research use" in result.stderr
    train, _ = halfseen.datasets.load_smallnetflix()
    assert train.nnz == 2


def test_on_a_terminal_a_bar_is_shown(network, folder):  # noqa: F811
    with OnTerminal("datasets", "smallnetflix", "--fetch") as running:
        assert running.ended() == 0
    assert "smallnetflix" in plain(running.shown)
    assert f"{len(RATINGS)}/{len(RATINGS)} bytes" in plain(running.shown)


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
    assert "Interrupted; nothing was saved." in plain(running.shown)
    assert "Traceback" not in running.shown
    assert not folder.exists()


# What cannot be understood.


def test_an_unknown_set():
    assert refused("datasets", "movielens-100").endswith("Found 'movielens-100'. Did you mean 'movielens-100k'?")


def test_options_that_do_not_go_together():
    assert misused("datasets", "movielens-100k", "--path", "--fetch") == "Say either --path or --fetch."
    assert misused("datasets", "--fetch") == "Say of which data --fetch is, such as movielens-100k."

"""Public data brought to the data folder: whole and right, or not at all."""

import errno
import hashlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from halfseen.data import datasets, fetching, parcels
from halfseen.data.catalogue import MOVIELENS_SPLITS, SOURCES
from halfseen.data.shelf import Download, Source, StoredFile
from halfseen.errors import DataError, DataWarning, ParameterError

ONE, TWO = b"a,b\n1,2\n" * 1000, b"c\n3\n"


def sha(contents):
    return hashlib.sha256(contents).hexdigest()


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members.items():
            archive.writestr(f"folder/inside/{name}", contents)
    return buffer.getvalue()


class Publisher(BaseHTTPRequestHandler):
    """Gives what lies in `shelf` by path; a number is a status; a pair announces more bytes than come.

    "hold" in the shelf is waited for before an answer ends.
    """

    def __init__(self, shelf, *args):
        self.shelf = shelf
        super().__init__(*args)

    def do_GET(self):
        given = self.shelf.get(self.path, 404)
        self.shelf.setdefault("asked", []).append(self.path)
        if isinstance(given, int):
            self.send_error(given)
            return
        contents, announced = given if isinstance(given, tuple) else (given, len(given))
        self.send_response(200)
        self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(contents)
        self.wfile.flush()
        if "hold" in self.shelf:
            self.shelf["hold"].wait(60)

    def log_message(self, *_):
        pass


@pytest.fixture
def published():
    """What a server on this machine gives, and its address."""
    shelf = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Publisher, shelf))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield shelf, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The data folder, which is not there yet."""
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "cache" / "data"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def offered(monkeypatch, folder, published):
    """Offers a set under the name "some-set": two files of one zip, unless told otherwise."""
    shelf, address = published

    def offer(where="/both.zip", sha256=None, files=None, **fields):
        files = files or (StoredFile("some/set/one.csv", sha(ONE)), StoredFile("some/set/two.csv", sha(TWO)))
        downloads = (Download(f"{address}{where}", sha256),) if where else ()
        source = Source("Some set", "https://example.org/page", "CC0", "Nobody (2000)", files)
        source = replace(source, name="some-set", downloads=downloads, **fields)
        monkeypatch.setitem(SOURCES, "some-set", source)
        return source

    shelf["/both.zip"] = zipped(**{"one.csv": ONE, "two.csv": TWO, "three.csv": b"nobody asks for this"})
    return offer


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) if folder.exists() else []


def nothing_is_left(folder):
    return everything_in(folder.parent.parent) == []


# What comes.


def test_an_archive_is_unpacked_to_the_names_that_are_read(offered, folder):
    offered()
    paths = datasets.fetch("some-set")
    assert [path.read_bytes() for path in paths] == [ONE, TWO]
    assert paths == [folder / "some/set/one.csv", folder / "some/set/two.csv"]
    assert everything_in(folder) == ["some", "some/set", "some/set/one.csv", "some/set/two.csv"]


@pytest.mark.parametrize("where", ["/one.csv", "/deep/one.csv", "/one.csv?download=1", "/one.csv.gz"])
def test_a_file_comes_as_it_is_or_packed(offered, published, folder, where):
    import gzip

    path = where.partition("?")[0]
    published[0][where] = gzip.compress(ONE) if path.endswith(".gz") else ONE
    offered(where, files=(StoredFile("some/one.csv", sha(ONE)),))
    (path,) = datasets.fetch("some-set")
    assert path.read_bytes() == ONE


def test_several_addresses_for_the_files_of_one_set(offered, published, folder, monkeypatch):
    shelf, address = published
    shelf |= {"/one.csv": ONE, "/two.csv": TWO}
    source = replace(offered(), downloads=tuple(Download(f"{address}/{name}.csv") for name in ("one", "two")))
    monkeypatch.setitem(SOURCES, "some-set", source)
    assert [path.read_bytes() for path in datasets.fetch("some-set")] == [ONE, TWO]


def test_what_comes_along_for_others_is_kept(offered, folder):
    offered(files=(StoredFile("some/one.csv", sha(ONE)),), extras=(StoredFile("some/two.csv", sha(TWO)),))
    assert datasets.fetch("some-set") == [folder / "some/one.csv"]
    assert (folder / "some/two.csv").read_bytes() == TWO


def test_who_wants_to_be_told_is_told_of_every_byte(offered, published, folder):
    shelf, _ = published
    shelf["/one.csv"] = big = os.urandom(3 * parcels.CHUNK + 5)
    offered("/one.csv", files=(StoredFile("one.csv", sha(big)),))
    told = []
    datasets.fetch("some-set", tell=lambda so_far, total: told.append((so_far, total)))
    assert told[-1] == (len(big), len(big))
    assert [so_far for so_far, _ in told] == sorted({so_far for so_far, _ in told})


def test_what_is_there_is_not_fetched_again(offered, published, folder):
    offered()
    first = datasets.fetch("some-set")
    assert datasets.fetch("some-set") == first
    assert published[0]["asked"] == ["/both.zip"]


@pytest.mark.parametrize("damage", ["other contents", "absent"])
def test_what_is_not_right_is_fetched_again(offered, published, folder, damage):
    offered()
    _, two = datasets.fetch("some-set")
    two.write_bytes(b"wrong") if damage == "other contents" else two.unlink()
    assert [path.read_bytes() for path in datasets.fetch("some-set")] == [ONE, TWO]
    assert len(published[0]["asked"]) == 2


def test_a_file_of_no_known_sha256_is_taken_if_its_archive_is_right(offered, published, folder):
    files = (StoredFile("some/one.csv"),)
    offered(files=files, sha256=sha(published[0]["/both.zip"]))
    assert datasets.fetch("some-set")[0].read_bytes() == ONE


# What does not come: nothing is left, and the sentence says what to do.


def refusal(folder, *found):
    with pytest.raises(DataError) as told:
        datasets.fetch("some-set")
    sentence = str(told.value)
    for part in found:
        assert part in sentence
    assert nothing_is_left(folder)
    return sentence


def test_wrong_contents(offered, folder):
    offered(files=(StoredFile("some/one.csv", sha(ONE)), StoredFile("some/two.csv", "0" * 64)))
    refusal(folder, f"two.csv must hold the data that are known here, of sha256 {'0' * 64}. Found {sha(TWO)} at ")


def test_a_wrong_archive(offered, folder):
    offered(files=(StoredFile("some/one.csv"),), sha256="0" * 64)
    refusal(folder, "both.zip must hold the data that are known here")


def test_a_download_that_ends_early(offered, published, folder):
    shelf, _ = published
    shelf["/one.csv"] = (ONE[:1000], len(ONE))
    offered("/one.csv", files=(StoredFile("one.csv"),))
    refusal(folder, f"must give {len(ONE):,} bytes. Found the end after 1,000. Try again.", "in a browser")


@pytest.mark.parametrize("keep", [100, 2000])
def test_an_archive_that_is_damaged(offered, published, folder, keep):
    shelf, _ = published
    shelf["/both.zip"] = os.urandom(keep) if keep == 100 else shelf["/both.zip"][:-30]
    offered()
    refusal(folder, "must give a whole archive. Found it damaged")


def test_a_damaged_file_in_an_archive(offered, published, folder):
    shelf, _ = published
    whole = bytearray(shelf["/both.zip"])
    place = whole.index(b"one.csv") + 20
    whole[place] ^= 0xFF
    shelf["/both.zip"] = bytes(whole)
    offered()
    refusal(folder, "must give a whole archive. Found it damaged")


def test_an_archive_without_the_file(offered, published, folder):
    published[0]["/both.zip"] = zipped(**{"one.csv": ONE})
    offered()
    refusal(folder, "The file two.csv must be in what http://", "It is not. Open https://example.org/page in a browser")


@pytest.mark.parametrize("status", [403, 404, 500])
def test_an_address_that_gives_nothing(offered, published, folder, status):
    published[0]["/both.zip"] = status
    offered()
    sentence = refusal(folder, f"must give a file. It answered {status} ")
    assert f"save the file one.csv as {folder}/some/set/one.csv, and the file two.csv as {folder}" in sentence


def test_no_network(offered, folder, monkeypatch):
    source = offered()
    nowhere = replace(source, downloads=(Download("http://no-such-host.invalid/both.zip"),))
    monkeypatch.setitem(SOURCES, "some-set", nowhere)
    refusal(folder, "must be reachable over the network", "Open https://example.org/page in a browser and save")


def test_nobody_at_the_other_end(offered, folder, monkeypatch):
    source = offered()
    closed = replace(source, downloads=(Download("http://127.0.0.1:9/both.zip"),))
    monkeypatch.setitem(SOURCES, "some-set", closed)
    refusal(folder, "must be reachable over the network", "refused")


def test_a_silence(offered, folder, monkeypatch):
    """A server that takes the call and never speaks."""
    import socket

    source = offered()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/both.zip"
        monkeypatch.setitem(SOURCES, "some-set", replace(source, downloads=(Download(address),)))
        monkeypatch.setattr(parcels, "PATIENCE", 0.2)
        refusal(folder, "must be reachable over the network", "timed out")


def test_only_by_hand(offered, folder):
    offered(where=None, hint="Turn it into CSV.")
    sentence = refusal(folder, "must be fetched by hand: no address gives them. Open https://example.org/page")
    assert sentence.endswith(". Turn it into CSV.")


@pytest.mark.parametrize("name", ["write", "move"])
def test_a_full_disk(offered, folder, monkeypatch, name):
    offered()

    def no_room(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if name == "move":
        monkeypatch.setattr(os, "replace", no_room)
    else:
        monkeypatch.setattr(parcels.shutil, "copyfileobj", no_room)
    refusal(folder, "must be writable, with room enough", os.strerror(errno.ENOSPC), "nothing was kept")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_closed(offered, tmp_path):
    offered()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match="must be writable"):
            datasets.fetch("some-set")
    finally:
        tmp_path.chmod(0o700)


def test_an_interrupt_leaves_nothing(offered, folder):
    offered()

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datasets.fetch("some-set", tell=interrupt)
    assert nothing_is_left(folder)


def test_an_interrupt_between_two_files_leaves_nothing(offered, folder, monkeypatch):
    offered()
    copied = fetching.copied

    def second(contents, path):
        if "two.csv" in path.name:
            raise KeyboardInterrupt
        return copied(contents, path)

    monkeypatch.setattr(fetching, "copied", second)
    with pytest.raises(KeyboardInterrupt):
        datasets.fetch("some-set")
    assert nothing_is_left(folder)


def test_what_was_there_stays_when_a_fetch_fails(offered, published, folder):
    offered()
    one, _ = datasets.fetch("some-set")
    one.write_bytes(b"my own")
    published[0]["/both.zip"] = 404
    with pytest.raises(DataError):
        datasets.fetch("some-set")
    assert one.read_bytes() == b"my own"
    assert everything_in(folder) == ["some", "some/set", "some/set/one.csv", "some/set/two.csv"]


def test_a_name_that_is_not_known(folder):
    with pytest.raises(ParameterError, match=r"name must be one of .*movielens-100k"):
        datasets.fetch("movielens")


def test_a_real_ctrl_c_in_the_middle(published, tmp_path):
    """The program is interrupted while a download that never ends is under way."""
    shelf, address = published
    shelf["/one.csv"] = (b"x" * 1000, 10**9)
    code = (  # in the background SIGINT would be ignored
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import halfseen.data.catalogue as c; from dataclasses import replace; from halfseen.data.shelf import *\n"
        "import time, http.client\n"
        f"d = (Download('{address}/one.csv'),)\n"
        "c.SOURCES['auto_mpg'] = replace(c.SOURCES['auto_mpg'], downloads=d)\n"
        "def slow(*_):\n    print('coming', flush=True)\n    time.sleep(60)\n"
        "from halfseen.data import datasets\n"
        "datasets.fetch('auto_mpg', tell=slow)\n"
    )
    environment = {**os.environ, "HALFSEEN_DATA": str(tmp_path / "data")}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "coming\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert "KeyboardInterrupt" in said
    assert everything_in(tmp_path) == []


# What is offered.


@pytest.mark.parametrize("name", SOURCES)
def test_every_set_can_be_fetched_or_says_how_by_hand(name):
    source = SOURCES[name]
    assert source.size
    for download in source.downloads:
        assert download.address.startswith(("https://", "http://"))
    if source.downloads and source.downloads[0].address.endswith(".zip"):
        names = [file.path.rpartition("/")[2] for file in source.wanted]
        assert len(set(names)) == len(names)
    elif source.downloads:
        given = {download.address.rpartition("/")[2] for download in source.downloads}
        assert {file.path.rpartition("/")[2] for file in source.wanted} == given
    assert source.address in fetching.by_hand(source)


def test_fetching_movielens_100k_brings_what_its_other_loaders_read():
    wanted = {file.path for file in SOURCES["movielens-100k"].wanted}
    assert {file.path for file in SOURCES["movielens-genres"].files} <= wanted
    for split in MOVIELENS_SPLITS.values():
        assert {file.path for file in split.files} <= wanted
        assert split.name == "movielens-100k"


def test_loaders_never_fetch(monkeypatch, folder):
    def no_network(*_, **__):
        pytest.fail("A loader went to the network.")

    monkeypatch.setattr(parcels, "urlopen", no_network)
    with pytest.raises(DataError, match=r'Get it by halfseen.datasets.fetch\("movielens-1m"\), or from https'):
        datasets.load_ratings("movielens-1m")
    with pytest.raises(DataError, match=r'Get it by halfseen.datasets.fetch\("movielens-100k"\)'):
        datasets.load_split("u1")


# The list.


def test_the_list_has_every_set_once_and_its_loader_is_there(folder):
    entries = datasets.listing()
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names)
    assert set(SOURCES) < set(names)
    import halfseen

    for entry in entries:
        found = halfseen
        for part in entry.call.partition("(")[0].split("."):
            found = getattr(found, part)
        assert callable(found)
        assert entry.state == ("there" if entry.kind != "public" else entry.state)
        assert all(entry)


def test_the_list_says_what_is_there(offered, folder):
    offered()
    state = {entry.name: entry.state for entry in datasets.listing()}
    assert state["some-set"] == "to fetch"
    assert state["big_mart"] == "by hand"
    one, _ = datasets.fetch("some-set")
    assert {entry.name: entry.state for entry in datasets.listing()}["some-set"] == "there"
    one.write_bytes(b"mine")
    with pytest.warns(DataWarning):
        fetching.paths_of(SOURCES["some-set"])
    assert {entry.name: entry.state for entry in datasets.listing()}["some-set"] == "there, with other contents"


@pytest.mark.parametrize("name", datasets.tabular_names())
def test_sizes_are_those_of_the_data(name):
    if SOURCES[name].files and next(e for e in datasets.listing() if e.name == name).state != "there":
        pytest.skip(f"{name} is not in the data folder")
    table = datasets.load_tabular(name)
    n, m = table.shape
    assert SOURCES[name].size == f"{n:,} x {m:,}, {n * m - table.nnz:,} holes"


@pytest.mark.parametrize("name", datasets.ratings_names())
def test_sizes_are_those_of_the_ratings(name):
    if next(e for e in datasets.listing() if e.name == name).state != "there":
        pytest.skip(f"{name} is not in the data folder")
    ratings = datasets.load_ratings(name)
    n, m = ratings.shape
    assert SOURCES[name].size.startswith(f"{n:,} x {m:,}, {ratings.nnz:,} ")

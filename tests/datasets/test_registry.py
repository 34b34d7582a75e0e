"""Files in the data folder, found and verified; downloads, complete or not at all; the list of datasets."""

import errno
import gzip
import os
import socket
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from halfseen import datasets
from halfseen.datasets import registry
from halfseen.datasets.catalogue import Source, StoredFile, sources
from halfseen.errors import DataError, DataWarning
from tests.datasets.server import ONE, TWO, sha, zipped


@pytest.mark.parametrize(("platform", "variables", "expected"), [
    ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/halfseen"), ("linux", {}, "/home/.cache/halfseen"),
    ("linux", {"XDG_CACHE_HOME": "/c", "HALFSEEN_DATA": "~/tables"}, "/home/tables"),
    ("darwin", {"XDG_CACHE_HOME": "/c"}, "/home/Library/Caches/halfseen"),
    ("win32", {"LOCALAPPDATA": "/local"}, "/local/halfseen"),
])  # fmt: skip
def test_the_variable_names_the_folder_else_the_platform(monkeypatch, platform, variables, expected):
    monkeypatch.setattr(os, "environ", {"HOME": "/home", **variables})
    monkeypatch.setattr(registry.sys, "platform", platform)
    assert datasets.data_folder() == Path(expected)


def source_of(*checksums):
    file = StoredFile("small/one.csv", checksums, StoredFile("small/other.csv", (sha(TWO),)))
    return Source("One file", "https://example.org/one", "CC0", "Nobody (2000)", (file,))


def test_a_file_is_found_plain_gzipped_and_under_another_name_with_its_own_checksum(put):
    for name, contents in (("small/other.csv.gz", TWO), ("small/one.csv.gz", ONE), ("small/one.csv", ONE)):
        expected = [put(name, contents)]  # the file itself comes first; any of its checksums will do
        assert registry.local_paths(source_of("0" * 64, sha(ONE))) == expected


def test_another_checksum_is_a_warning_at_the_caller_of_the_loader(put):
    path = put("small/one.csv.gz", ONE)
    loader = lambda: registry.local_paths(source_of("0" * 64))  # noqa: E731
    with pytest.warns(DataWarning, match=f"one.csv.*{'0' * 64}.*{sha(ONE)}.*example.org") as warned:
        assert loader() == [path]
    assert warned[0].filename == __file__
    assert registry.local_paths(source_of()) == [path]  # no checksum is known


def test_an_absent_file_says_where_to_get_it_and_an_unreadable_one_is_named(folder, put):
    with pytest.raises(DataError, match=rf"'One file'.*example.org/one.* {folder}/small/one.csv,.*HALFSEEN_DATA"):
        registry.local_paths(source_of())
    with pytest.raises(DataError, match=r'by halfseen.datasets.fetch\("movielens-100k"\)'):  # the program rewrites it
        datasets.load_split("u1")
    put("small/one.csv.gz", ONE).write_bytes(gzip.compress(ONE)[:-9])
    with pytest.raises(DataError, match=r"one\.csv\.gz"):
        registry.local_paths(source_of(sha(ONE)))
    (folder / "small/one.csv").mkdir()
    with pytest.raises(DataError, match=r"one\.csv must"):
        registry.local_paths(source_of(sha(ONE)))


BY_HAND = "Open https://example.org/page in a browser and save one.csv as "
SAVED = ["some", "some/set", "some/set/one.csv", "some/set/two.csv"]


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refusal(folder, *parts):
    """The message of a fetch that fails, and leaves nothing."""
    with pytest.raises(DataError) as error:
        datasets.fetch("some-set")
    assert all(part in str(error.value) for part in parts), str(error.value)
    assert everything_in(folder.parent.parent) == []
    return str(error.value)


def test_the_files_of_an_archive_are_saved_unless_they_are_there(offered, published, folder):
    offered()
    one, two = datasets.fetch("some-set")
    assert (one, two) == (folder / "some/set/one.csv", folder / "some/set/two.csv")
    for change, n_downloads in ((one.read_bytes, 1), (two.unlink, 2), (lambda: two.write_bytes(b"other"), 3)):
        change()
        assert [path.read_bytes() for path in datasets.fetch("some-set")] == [ONE, TWO]
        assert (len(published[0]["asked"]), everything_in(folder)) == (n_downloads, SAVED)
    published[0]["/both.zip"] = 404
    one.write_bytes(b"my own")
    with pytest.raises(DataError):
        datasets.fetch("some-set")
    assert (one.read_bytes(), everything_in(folder)) == (b"my own", SAVED)


@pytest.mark.parametrize("url", ["/one.csv", "/deep/one.csv?download=1", "/one.csv.gz"])
def test_several_urls_of_plain_or_gzipped_files_and_files_for_other_loaders(offered, published, folder, url):
    published[0].update({url: gzip.compress(ONE) if url.endswith(".gz") else ONE, "/two.csv": TWO})
    one, two = StoredFile("some/one.csv", (sha(ONE),)), StoredFile("some/two.csv", (sha(TWO),))
    offered(url, "/two.csv", files=(one,), extras=(two,))
    assert datasets.fetch("some-set") == [folder / "some/one.csv"]
    assert [(folder / file.path).read_bytes() for file in (one, two)] == [ONE, TWO]


def test_progress_ends_at_the_size_of_the_file(offered, published):
    published[0]["/one.csv"], total = bytes(3 * registry.CHUNK + 5), 3 * registry.CHUNK + 5
    offered("/one.csv", files=(StoredFile("one.csv"),))
    datasets.fetch("some-set", progress=(progress := Mock()))
    calls = [call.args for call in progress.call_args_list]
    assert (calls[0], calls[-1], calls) == ((0, total), (total, total), sorted(calls))


ZIP = zipped(one=ONE, two=TWO)
FLIPPED = bytes(byte ^ (0xFF * (place == ZIP.index(b"one.csv") + 20)) for place, byte in enumerate(ZIP))


@pytest.mark.parametrize(("answer", "parts"), [
    (403, ["403"]), (404, ["404"]), ((ONE[:1000], len(ONE)), ["1000"]), (ONE, ["damaged"]), (ZIP[:-30], ["damaged"]),
    (FLIPPED, ["damaged"]), (zipped(one=ONE), ["contain two.csv"]), (zipped(one=ONE, two=b""), [sha(TWO), sha(b"")]),
], ids=["403", "404", "cut", "no archive", "cut archive", "flipped", "file absent", "other file"])  # fmt: skip
def test_what_a_server_may_return(offered, published, folder, answer, parts):
    offered()
    published[0]["/both.zip"] = answer
    refusal(folder, published[1] + "/both.zip", *parts, BY_HAND + str(folder / "some/set/one.csv"))


def test_an_archive_is_verified_where_its_files_have_no_checksums(offered, published, folder):
    whole = sha(published[0]["/both.zip"])
    offered(files=(StoredFile("some/one.csv"),), checksums=("0" * 64,))
    refusal(folder, "both.zip", "0" * 64, whole)
    offered(files=(StoredFile("some/one.csv"),), checksums=(whole,))
    assert datasets.fetch("some-set")[0].read_bytes() == ONE


@pytest.mark.parametrize(("host", "reason"), [("no-host.invalid", ""), ("127.0.0.1:9", "refused"), ("", "timed out")])
def test_a_server_that_does_not_answer(offered, folder, monkeypatch, host, reason):
    monkeypatch.setattr(registry, "TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://{host or f'127.0.0.1:{silent.getsockname()[1]}'}/both.zip"
        offered(url)
        message = refusal(folder, url, reason, BY_HAND)
    assert "Pool" not in message  # the reason alone, without the wrapping of requests and urllib3


def test_without_a_url_and_without_pooch(offered, folder, monkeypatch):
    offered(downloads=(), hint="Turn it into CSV.")
    assert refusal(folder, BY_HAND).endswith("Turn it into CSV.")
    monkeypatch.setitem(sys.modules, "pooch", None)
    offered()
    refusal(folder, "pip install 'halfseen[datasets]'", BY_HAND)


@pytest.mark.parametrize(("module", "function"), [(registry.shutil, "copyfileobj"), (os, "replace")])
def test_a_full_disk(offered, folder, monkeypatch, module, function):
    offered()
    monkeypatch.setattr(module, function, Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    refusal(folder, "No space left", str(folder))


@pytest.mark.parametrize("name", sources())
def test_every_source_is_complete(name):
    source = sources()[name]
    assert all((source.title, source.terms, source.citation, source.files, source.size))
    assert (source.name, source.address.partition("://")[0] in ("https", "http")) == (name, True)
    files = (*source.files, *source.extras)
    assert all(len(checksum) == 64 for file in (*files, *source.downloads) for checksum in file.checksums)
    names = [Path(file.path).name for file in files]
    assert len(set(names)) == len(names)
    if source.downloads and not source.downloads[0].address.endswith(".zip"):
        assert set(names) == {download.address.rpartition("/")[2] for download in source.downloads}


def test_fetching_movielens_100k_is_enough_for_all_its_loaders():
    whole, genres = ({file.path for file in sources()[f"movielens-{one}"].extras} for one in ("100k", "genres"))
    splits = {f"movielens-100k/u{one}.{part}" for one in "12345ab" for part in ("base", "test")}
    assert whole == genres | {"movielens-100k/u.item", "movielens-100k/u.genre"} > genres > splits


def test_the_list_has_every_dataset_once_and_how_to_load_it(folder):
    entries = {entry.name: entry for entry in datasets.listing()}
    assert len(entries) == len(datasets.listing())
    assert set(sources()) < set(entries)
    for entry in entries.values():
        assert all(entry)
        assert callable(getattr(datasets, entry.call.removeprefix("datasets.").partition("(")[0]))
        assert entry.kind == "public" or entry.state == registry.PRESENT
    assert (entries["wiki4he"].state, entries["big_mart"].state) == (registry.NOT_FETCHED, registry.MANUAL)
    assert dir(datasets) == sorted(datasets.__all__)


def test_the_states_of_files_in_the_list(offered, put):
    for contents, checksums, state in (
        (ONE, (sha(ONE),), registry.PRESENT), (TWO, (sha(ONE),), registry.MODIFIED), (TWO, (), registry.UNVERIFIED),
    ):  # fmt: skip
        put("some/one.csv", contents)
        offered(files=(StoredFile("some/one.csv", checksums),))
        assert datasets.listing()[-1].state == state

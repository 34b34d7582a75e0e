"""Where the files of public datasets lie, and what is said when they don't."""

import gzip
import hashlib
from pathlib import Path

import pytest

from halfseen.data import shelf
from halfseen.data.shelf import Source, StoredFile, data_folder, paths_of
from halfseen.errors import DataError, DataWarning

CONTENTS = b"a,b\n1,2\n"
SHA256 = hashlib.sha256(CONTENTS).hexdigest()


def source_of(name, sha256=SHA256):
    return Source("Two numbers", "https://example.org/two", "CC0", "Nobody (2000)", (StoredFile(name, sha256),))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    (tmp_path / "small").mkdir()
    return tmp_path


def test_the_variable_names_the_folder(monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", "~/tables")
    assert data_folder() == Path.home() / "tables"


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/halfseen"),
        ("linux", {}, "~/.cache/halfseen"),
        ("darwin", {"XDG_CACHE_HOME": "/c"}, "~/Library/Caches/halfseen"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/halfseen"),
        ("win32", {}, "~/AppData/Local/halfseen"),
    ],
)
def test_else_the_cache_directory_of_the_platform(monkeypatch, platform, variables, expected):
    for name in ("HALFSEEN_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(shelf.sys, "platform", platform)
    assert data_folder() == Path(expected).expanduser()


@pytest.mark.parametrize("recorded", ["small/two.csv", "small/two.csv.gz"])
@pytest.mark.parametrize("lying", ["small/two.csv", "small/two.csv.gz"])
def test_a_file_is_found_packed_and_unpacked(folder, recorded, lying):
    (folder / lying).write_bytes(gzip.compress(CONTENTS) if lying.endswith(".gz") else CONTENTS)
    assert paths_of(source_of(recorded)) == [folder / lying]


def test_of_two_the_recorded_one_is_taken(folder):
    (folder / "small" / "two.csv").write_bytes(CONTENTS)
    (folder / "small" / "two.csv.gz").write_bytes(gzip.compress(CONTENTS))
    for name in ("small/two.csv", "small/two.csv.gz"):
        assert paths_of(source_of(name)) == [folder / name]


def test_an_absent_file_is_told_with_address_and_place(folder):
    with pytest.raises(DataError) as refusal:
        paths_of(source_of("small/two.csv.gz"))
    assert str(refusal.value) == (
        "The data 'Two numbers' need the file small/two.csv, or the same packed as .gz, in the data folder. "
        f"Found neither in {folder}. Get it from https://example.org/two and save it as {folder}/small/two.csv, "
        "or set HALFSEEN_DATA to a folder that holds it."
    )


@pytest.mark.parametrize("name", ["small/two.csv", "small/two.csv.gz"])
def test_other_contents_are_warned_of_and_taken(folder, name):
    (folder / name).write_bytes(gzip.compress(CONTENTS) if name.endswith(".gz") else CONTENTS)

    def loader():
        return paths_of(source_of(name, "0" * 64))

    with pytest.warns(
        DataWarning, match=f"of sha256 {'0' * 64}. Found {SHA256}. It is read as it is; .*org/two"
    ) as told:
        assert loader() == [folder / name]
    assert told[0].filename == __file__


def test_what_is_no_whole_file_is_refused(folder):
    (folder / "small" / "two.csv").mkdir()
    with pytest.raises(DataError, match=r"must be a file. Found a directory"):
        paths_of(source_of("small/two.csv"))
    (folder / "small" / "cut.csv.gz").write_bytes(gzip.compress(CONTENTS)[:-9])
    with pytest.raises(DataError, match=r"cut.csv.gz must be a whole gzip file. Found it damaged"):
        paths_of(source_of("small/cut.csv.gz"))

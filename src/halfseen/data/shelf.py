"""The data folder: where the files of public datasets lie, and what to say when they don't."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from halfseen.data.textfiles import complaints, opened
from halfseen.errors import DataError, DataWarning

VARIABLE = "HALFSEEN_DATA"


@dataclass(frozen=True)
class StoredFile:
    """A file of a dataset: its place in the data folder, and the sha256 of what is in it, gzip unpacked.

    Where no sha256 is known (None), any contents are taken. `others` hold the same cells, written or named otherwise.
    """

    path: str
    sha256: str | None = None
    others: tuple[StoredFile, ...] = ()

    def digests(self, place: str) -> set[str | None]:
        """What may be in a file that lies at this place."""
        return {file.sha256 for file in (self, *self.others) if plain(file.path) == plain(place)}


@dataclass(frozen=True)
class Download:
    """A public address that gives a file to anybody: a file of a dataset as it is, packed by gzip, or a zip of several.

    The sha256 is that of what comes, for files of which none of their own is known.
    """

    address: str
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from, on which terms, whom to cite, and the files that are read.

    `size` says in words how much it is. `downloads` bring the files, and `extras`, which others read that come with
    them; where there are none, the files are to be had from the page `address` by hand, as `hint` may explain.
    """

    title: str
    """What it is."""
    address: str
    """The page that offers it."""
    terms: str
    """On which terms it may be used."""
    citation: str
    """Whom to cite."""
    files: tuple[StoredFile, ...]
    """What is read, with its place in the data folder."""
    name: str = ""
    """What it is asked for by."""
    size: str = ""
    """How much it is, in words."""
    downloads: tuple[Download, ...] = ()
    """What brings the files, if anything does."""
    extras: tuple[StoredFile, ...] = ()
    """What comes with them, and others read."""
    hint: str = ""
    """How to get it by hand."""

    @property
    def wanted(self) -> tuple[StoredFile, ...]:
        """All the files that are kept when it is fetched, each once."""
        return tuple({file.path: file for file in (*self.files, *self.extras)}.values())


def named(sources: dict[str, Source]) -> dict[str, Source]:
    """The same sources, each knowing its name."""
    return {name: replace(source, name=name) for name, source in sources.items()}


def data_folder() -> Path:
    """The folder that HALFSEEN_DATA names, else `halfseen` in the user's cache directory."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else _cache_directory() / "halfseen"


def _cache_directory() -> Path:
    """Where programs keep what can be fetched again: the custom of the platform."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def paths_of(source: Source, files: Sequence[StoredFile] = ()) -> list[Path]:
    """The files of a dataset (or these of them) in the data folder; an absent one is refused, other contents told."""
    paths = []
    for file in files or source.files:
        name = _found(file, source)
        path, known = data_folder() / name, file.digests(name)
        if None not in known and (digest := _digest(path)) not in known:
            warnings.warn(
                f"{path} should hold the data that are known here, of sha256 {file.sha256}. Found {digest}. "
                f"It is read as it is; if the numbers look wrong, get it again from {source.address}.",
                DataWarning,
                stacklevel=3,  # whoever called the loader
            )
        paths.append(path)
    return paths


def _found(file: StoredFile, source: Source) -> str:
    """The name under which a file lies in the data folder: its own, or packed by gzip, or unpacked, or another's."""
    folder = data_folder()
    for one in (file, *file.others):
        for name in (one.path, plain(one.path), f"{plain(one.path)}.gz"):
            if os.path.exists(folder / name):
                return name
    fetched = f'by halfseen.datasets.fetch("{source.name}"), or ' if source.downloads else ""
    raise DataError(
        f"The data {source.title!r} need the file {plain(file.path)}, or the same packed as .gz, in the data folder. "
        f"Found neither in {folder}. Get it {fetched}from {source.address} and save it as {folder / plain(file.path)}, "
        f"or set {VARIABLE} to a folder that holds it."
    )


def plain(name: str) -> str:
    """The name of a file unpacked."""
    return name.removesuffix(".gz")


def _digest(path: Path) -> str:
    with complaints(path), opened(path, None) as contents:
        return hashlib.file_digest(contents, "sha256").hexdigest()  # type: ignore[arg-type]

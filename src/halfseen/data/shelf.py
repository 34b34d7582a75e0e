"""The data folder: where the files of public datasets lie, and what to say when they don't."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from dataclasses import dataclass
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
        return {file.sha256 for file in (self, *self.others) if _plain(file.path) == _plain(place)}


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from, on which terms, whom to cite, and the files that are read."""

    title: str
    address: str
    terms: str
    citation: str
    files: tuple[StoredFile, ...]


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


def paths_of(source: Source) -> list[Path]:
    """The files of a dataset in the data folder; an absent one is refused, one with other contents warned of."""
    paths = []
    for file in source.files:
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
    plain = _plain(file.path)
    for one in (file, *file.others):
        for name in (one.path, _plain(one.path), f"{_plain(one.path)}.gz"):
            if os.path.exists(folder / name):
                return name
    raise DataError(
        f"The data {source.title!r} need the file {plain}, or the same packed as .gz, in the data folder. "
        f"Found neither in {folder}. Get it from {source.address} and save it as {folder / plain}, "
        f"or set {VARIABLE} to a folder that holds it."
    )


def _plain(name: str) -> str:
    return name.removesuffix(".gz")


def _digest(path: Path) -> str:
    with complaints(path), opened(path, None) as contents:
        return hashlib.file_digest(contents, "sha256").hexdigest()  # type: ignore[arg-type]

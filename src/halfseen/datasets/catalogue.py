"""The catalogue of public datasets, kept in catalogue.toml: origin, terms, citation, files, checksums, columns."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from halfseen.validation import check_parameters, one_of


@dataclass(frozen=True)
class StoredFile:
    """A file of a dataset, by its path in the data folder."""

    path: str
    checksums: tuple[str, ...] = ()  # sha256 of the contents, decompressed, in all known forms
    alternative: StoredFile | None = None  # a file with the same cells under another name
    header: tuple[str, ...] = ()  # names of the columns of a file without a header
    columns: tuple[str, ...] = ()  # the columns that are read; empty: all
    key: str = ""  # of the matrix in a pickled dict; empty: a table
    codes: dict[str, dict[str, str]] = field(default_factory=dict, hash=False)  # numbers for words, by column


@dataclass(frozen=True)
class Download:
    """A public URL of a file, plain or gzipped, or of a zip archive of several."""

    address: str
    checksums: tuple[str, ...] = ()  # sha256 of what is downloaded, for files without checksums of their own


@dataclass(frozen=True)
class Source:
    """Origin, terms, citation and files of a dataset.

    Attributes
    ----------
    title, address : str
        Title, and the web page that offers it.
    terms, citation : str
        Licence or terms of use, and the publication to cite.
    files : tuple of StoredFile
        Files that its loader reads.
    name, size : str
        Name to fetch it by; rows, columns and cells, in words.
    loader : str
        Function of `halfseen.datasets` that loads it.
    downloads : tuple of Download
        URLs of the files; empty if they must be downloaded by hand from `address`.
    extras : tuple of StoredFile
        Further files of the same archive, which other loaders read.
    hint : str
        Further advice on downloading by hand.
    """

    title: str
    address: str
    terms: str
    citation: str
    files: tuple[StoredFile, ...]
    name: str = ""
    size: str = ""
    loader: str = ""
    downloads: tuple[Download, ...] = ()
    extras: tuple[StoredFile, ...] = ()
    hint: str = ""


@cache
def read_catalogue() -> dict[str, Any]:
    """The tables of catalogue.toml."""
    return tomllib.loads(files("halfseen.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8"))


@cache
def sources() -> dict[str, Source]:
    """Every public dataset by name."""

    def tuples(record: dict[str, Any]) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}

    def stored(path: str) -> StoredFile:
        record = tuples(read_catalogue()["files"].get(path, {}))
        other = record.pop("alternative", None)
        return StoredFile(path, alternative=stored(other) if other else None, **record)

    def public(name: str, record: dict[str, Any]) -> Source:
        downloads = tuple(Download(**tuples(one)) for one in record.get("downloads", ()))
        paths = {part: tuple(map(stored, record.get(part, ()))) for part in ("files", "extras")}
        return Source(**{**record, **paths, "name": name, "downloads": downloads})

    return {name: public(name, record) for name, record in read_catalogue()["sources"].items()}


def source(name: str) -> Source:
    """Return the origin of a public dataset.

    Parameters
    ----------
    name : str
        Name of a public dataset, see `listing`.

    Returns
    -------
    Source
        Title, address, terms, citation and files.
    """
    check_parameters({"name": name}, {"name": one_of(*sources())})
    return sources()[name]

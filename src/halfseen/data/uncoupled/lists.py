"""The three lists of an uncoupled collection, each a frame, a file, an array or a list of tuples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from halfseen.data.frames import as_frame
from halfseen.data.parquet import is_parquet, read_parquet
from halfseen.data.textfiles import complaints
from halfseen.data.uncoupled.listfiles import FileList
from halfseen.data.uncoupled.listframes import FrameList, PlainList, columns_of_array, columns_of_tuples
from halfseen.data.uncoupled.listings import Listing
from halfseen.data.uncoupled.roles import ROLES, places_of, shared_name
from halfseen.errors import DataError


class ReadableList(Protocol):
    """A list that can be read: the names of its columns, and its contents, once it is known what stands where."""

    names: Sequence[Any]

    def read(self, places: Mapping[str, int]) -> Listing: ...


def read_lists(
    asked: Any, answers: Any, comparisons: Any, given: Mapping[str, Any]
) -> tuple[Listing, Listing, Listing]:
    """The lists in the order of ROLES; unless told, the one header that `asked` and `answers` share is the question."""
    lists = dict(zip(ROLES, (asked, answers, [] if comparisons is None else comparisons), strict=True))
    given = {role: name for role, name in given.items() if name is not None}
    sources = {what: opened_list(what, one, list(given.values())) for what, one in lists.items()}
    _check_some_names(sources, given)
    shared = shared_name(sources["asked"].names, sources["answers"].names)
    first, second, third = (_read(what, source, given, shared) for what, source in sources.items())
    return first, second, third


def _check_some_names(sources: Mapping[str, ReadableList], given: Mapping[str, Any]) -> None:
    """Refuse the name of a column where no list has names."""
    for role, name in given.items():
        if isinstance(name, str) and all(isinstance(sources[what], PlainList) for what in ROLES if role in ROLES[what]):
            raise DataError(
                f"Names of columns must be those of a frame or a file. Found {role}={name!r} with lists or arrays, "
                "which have none. Leave it out, and put the columns in their order."
            )


def _read(what: str, source: ReadableList, given: Mapping[str, Any], shared: Any) -> Listing:
    if isinstance(source, PlainList):
        given = {role: name for role, name in given.items() if not isinstance(name, str)}
    elif "question" not in given and shared in source.names:
        given = {**given, "question": shared}
    listing = source.read(places_of(what, source.names, given))
    for role in ("question", "respondent"):
        missing = listing.ids[role].missing() if role in listing.ids else np.zeros(1, dtype=bool)
        if missing.any():
            place = listing.place(int(np.argmax(missing)))
            raise DataError(
                f"Every line of {what} must name a {role}. Found none {place}. Fill it in, or drop the line."
            )
    return listing


def opened_list(what: str, table: Any, given: Sequence[Any]) -> ReadableList:
    """A list, ready to be read; a line with one of the given names is a header."""
    if isinstance(table, (str, os.PathLike)):
        path = Path(table)
        if not is_parquet(path):
            return FileList(what, path, given)
        with complaints(path):
            return FrameList(what, read_parquet(path))
    if (frame := as_frame(table)) is not None:
        return FrameList(what, frame)
    if isinstance(table, np.ndarray):
        return PlainList(what, columns_of_array(what, table))
    if isinstance(table, Sequence) and not isinstance(table, bytes):
        return PlainList(what, columns_of_tuples(what, table))
    raise DataError(
        f"{what} must be a pandas, polars or Arrow frame, the path of a CSV or Parquet file, a list of tuples or an "
        f"array. Found {'None' if table is None else f'a {type(table).__name__}'}. Turn it into one of these."
    )

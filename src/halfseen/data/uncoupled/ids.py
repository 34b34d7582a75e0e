"""Columns of ids: every line gets the code of its id, every code its label, in the order of their first appearance."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from halfseen.data.labels import numbered, positions_or_nowhere, text_array
from halfseen.data.numerals import is_missing

NOBODY = -1  # the code of a line without an id
ROOM_PER_ID = 4  # places of a look-up table, for every id looked up
WRITTEN_AS_FLOAT = re.compile(r"(-?[0-9]+)\.0+")


class Ids(NamedTuple):
    """`labels[codes[line]]` is the id of a line; a line without an id has the code -1."""

    codes: np.ndarray
    labels: np.ndarray

    def among(self, known: np.ndarray, nowhere: int) -> np.ndarray:
        """Where the id of each line stands among the known labels; -1 without an id, `nowhere` for an unknown one.

        A text that marks something missing is no id, unless somebody is called so.
        """
        positions = _positions(self.labels, known)
        positions[positions < 0] = nowhere
        if self.labels.dtype.kind == "O":
            marks = [code for code in np.flatnonzero(positions == nowhere) if is_missing(self.labels[code])]
            positions[marks] = NOBODY
        return np.append(positions, NOBODY)[self.codes]

    def missing(self) -> np.ndarray:
        """Which lines have no id: nothing, an empty text, or a mark of missing ones where all others are integers."""
        if self.labels.dtype.kind != "O":
            return self.codes == NOBODY
        marks = [code for code, label in enumerate(self.labels) if is_missing(label)]
        others = np.delete(self.labels, marks)
        if not all(text.removeprefix("-").isdecimal() for text in others):
            marks = [code for code in marks if not self.labels[code].strip()]
        return np.isin(self.codes, [NOBODY, *marks])


def ids_of_array(column: np.ndarray, side: str) -> Ids:
    """The ids of an array of integers, floats (NaN for none), dates, texts or objects."""
    if column.dtype.kind in "OUS":
        return ids_of_list(column.tolist(), side)
    if column.dtype.kind not in "fM":
        return _numbered_where(np.ones(column.size, dtype=bool), column, side)
    present = column == column
    return _numbered_where(present, _whole(column[present]), side)


def ids_of_list(column: list[Any], side: str) -> Ids:
    """The ids of a list; None and NaN are none."""
    if set(map(type, column)) <= {str}:
        return Ids(*numbered(column, side)) if column else Ids(np.empty(0, dtype=np.int64), text_array(()))
    present = np.array([isinstance(one, str) or not is_missing(one) for one in column], dtype=bool)
    kept = [one for one, is_there in zip(column, present, strict=True) if is_there]
    if set(map(type, kept)) == {float}:
        return _numbered_where(present, _whole(np.array(kept)), side)
    return _numbered_where(present, kept, side)


def _whole(ids: np.ndarray) -> np.ndarray:
    """Floats that are all whole as integers: a column of integers turns into floats where one of them is missing."""
    is_float = ids.dtype.kind == "f"
    return ids.astype(np.int64) if is_float and ((ids == np.floor(ids)) & (np.abs(ids) < 2.0**53)).all() else ids


def _numbered_where(present: np.ndarray, ids: Any, side: str) -> Ids:
    codes, labels = _numbered(ids, side)
    if present.all():
        return Ids(codes, labels)
    all_codes = np.full(present.size, NOBODY, dtype=np.int64)
    all_codes[present] = codes
    return Ids(all_codes, labels)


def _numbered(ids: Any, side: str) -> tuple[np.ndarray, np.ndarray]:
    """As `numbered`; integers that lie close together are looked up, which takes a tenth of the time of sorting."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and ids.size:
        ids = ids if ids.dtype.itemsize == 8 else ids.astype(np.int64)
        if int(ids.max()) - int(ids.min()) < ROOM_PER_ID * ids.size:
            return _numbered_by_table(ids, ids.min())
    return numbered(ids, side)


def _numbered_by_table(ids: np.ndarray, lowest: Any) -> tuple[np.ndarray, np.ndarray]:
    above = (ids - lowest).astype(np.int64)
    first = np.full(int(above.max()) + 1, above.size, dtype=np.int64)
    first[above[::-1]] = np.arange(above.size - 1, -1, -1)  # of repeated places the one assigned last stays
    present = np.flatnonzero(first < above.size)
    present = present[np.argsort(first[present])]
    code_of = first
    code_of[present] = np.arange(present.size)
    return code_of[above], present.astype(ids.dtype) + lowest


def _positions(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Where each label stands among the known ones, -1 for nowhere; "7.0" finds 7, as a float that was written out."""
    if labels.dtype == known.dtype and labels.dtype.kind in "iu":
        return _positions_of_integers(labels, known)
    positions = positions_or_nowhere(labels, known)
    if labels.dtype.kind == "O" and known.dtype.kind in "iu":
        floats = [code for code in np.flatnonzero(positions < 0) if WRITTEN_AS_FLOAT.fullmatch(labels[code])]
        whole = text_array(WRITTEN_AS_FLOAT.sub(r"\1", labels[code]) for code in floats)
        positions[floats] = positions_or_nowhere(whole, known)
    return positions


def _positions_of_integers(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, labels, sorter=order), known.size - 1)]
    return np.where(known[place] == labels, place, -1)

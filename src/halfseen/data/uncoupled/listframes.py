"""Lists of an uncoupled collection that are frames, arrays, or lists of tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from halfseen.data.frames import as_floats
from halfseen.data.labels import IDS_PER_CHUNK, text_array
from halfseen.data.longtext import IdColumn
from halfseen.data.numerals import NotANumber, numbers
from halfseen.data.uncoupled.ids import NOBODY, Ids, ids_of_array, ids_of_list
from halfseen.data.uncoupled.listings import Listing, not_a_number
from halfseen.data.uncoupled.roles import ROLES, noun_of
from halfseen.errors import DataError


class FrameList:
    """A list that is a frame."""

    def __init__(self, what: str, frame: nw.DataFrame[Any]) -> None:
        self.what, self.frame = what, frame
        self.names: Sequence[Any] = list(frame.columns)

    def read(self, places: Mapping[str, int]) -> Listing:
        columns = {role: self.frame.get_column(self.names[place]) for role, place in places.items()}
        values = as_floats(columns.pop("value")) if "value" in columns else np.empty(0)
        ids = {role: _ids_of_series(column, noun_of(role)) for role, column in columns.items()}
        return Listing(ids, values, lambda line: f"at position {line} of {self.what}")


def _ids_of_series(column: nw.Series[Any], side: str) -> Ids:
    absent = column.is_null().to_numpy()
    if not absent.any():
        return _ids_of_whole_series(column, side)
    ids = _ids_of_whole_series(column.filter((~absent).tolist()), side)
    codes = np.full(absent.size, NOBODY, dtype=np.int64)
    codes[~absent] = ids.codes
    return Ids(codes, ids.labels)


def _ids_of_whole_series(column: nw.Series[Any], side: str) -> Ids:
    if column.dtype.is_integer() or column.dtype.is_float() or column.dtype in (nw.Boolean, nw.Datetime):
        return ids_of_array(column.to_numpy(), side)
    texts = IdColumn(side)
    for start in range(0, len(column), IDS_PER_CHUNK):  # a list of all would take ten times the room of their codes
        chunk = column[start : start + IDS_PER_CHUNK].to_list()
        if set(map(type, chunk)) != {str}:
            return ids_of_list(column.to_list(), side)
        texts.add(chunk)
    return Ids(texts.codes(), text_array(texts.code_of))


class PlainList:
    """A list that is an array, or tuples: columns without names."""

    def __init__(self, what: str, columns: Sequence[Any]) -> None:
        self.what, self.columns = what, columns
        self.names: Sequence[Any] = range(len(columns))

    def read(self, places: Mapping[str, int]) -> Listing:
        columns = {role: self.columns[place] for role, place in places.items()}
        values = self._numbers(columns.pop("value")) if "value" in columns else np.empty(0)
        ids = {
            role: (ids_of_array if isinstance(column, np.ndarray) else ids_of_list)(column, noun_of(role))
            for role, column in columns.items()
        }
        return Listing(ids, values, self._place)

    def _numbers(self, column: Any) -> np.ndarray:
        if isinstance(column, np.ndarray) and column.dtype.kind in "iufb":
            return column.astype(np.float64)
        try:
            return numbers(list(column))
        except NotANumber as error:
            raise not_a_number(error.field, self._place(error.position)) from None

    def _place(self, line: int) -> str:
        return f"at position {line} of {self.what}"


def columns_of_array(what: str, array: np.ndarray) -> Sequence[Any]:
    """The columns of an array, which must have two dimensions unless it is empty."""
    roles = ROLES[what]
    if array.ndim != 2 and array.size:
        raise DataError(
            f"{what} must be an array of {len(roles)} columns: {', '.join(roles)}. Found shape {array.shape}. "
            "Put the columns side by side: np.column_stack."
        )
    return list(array.T) if array.ndim == 2 else [array.reshape(-1)] * len(roles)


def columns_of_tuples(what: str, lines: Sequence[Any]) -> Sequence[Any]:
    """The columns of lines that are all of one length."""
    roles = ROLES[what]
    width = len(lines[0]) if len(lines) and _is_line(lines[0]) else len(roles)
    wrong = next((place for place, line in enumerate(lines) if not _is_line(line) or len(line) != width), None)
    if wrong is not None:
        raise DataError(
            f"Every line of {what} must have {width} fields: {', '.join(roles)}. Found {repr(lines[wrong])[:80]} at "
            f"position {wrong}. Mend or drop the line."
        )
    return [list(column) for column in zip(*lines, strict=True)] if len(lines) else [[] for _ in roles]


def _is_line(line: Any) -> bool:
    return isinstance(line, (tuple, list, np.ndarray))

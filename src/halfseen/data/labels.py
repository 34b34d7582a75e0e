"""The names of rows and columns: made uniform, numbered, aligned, and said in error sentences."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from halfseen.errors import DataError

PLAIN_INTEGER = re.compile(r"0|[1-9][0-9]{0,19}|-[1-9][0-9]{0,17}")
NULL_TYPES = ("NoneType", "NAType", "NaTType")  # by name, because pandas is optional
IDS_PER_CHUNK = 1 << 13
LARGEST_SIGNED, LARGEST_UNSIGNED = np.iinfo(np.int64).max, np.iinfo(np.uint64).max
KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "integer": (int, np.integer),
    "float": (float, np.floating),
    "text": (str,),
    "date": (datetime.date, np.datetime64),
}


class Places(NamedTuple):
    """Says where a cell is, by labels where there are any: "row 17, column 'x'"."""

    row_labels: np.ndarray | None = None
    column_labels: np.ndarray | None = None

    def of(self, row: int, column: int) -> str:
        return f"{self.of_row(row)}, column {_said(column, self.column_labels)}"

    def of_row(self, row: int) -> str:
        return f"row {_said(row, self.row_labels)}"


def _said(position: int, labels: np.ndarray | None) -> str:
    return str(position) if labels is None else quoted(labels[position])


def quoted(label: Any) -> str:
    """A label as an error sentence shows it: text in quotes, numbers and dates plain."""
    return repr(str(label)) if isinstance(label, str) else str(label)


def as_labels(labels: Any, side: str, size: int) -> np.ndarray | None:
    """Labels for all `size` rows or columns (`side`), each a different one; None stays None."""
    if labels is None:
        return None
    labels = uniform(labels, side)
    if labels.shape != (size,):
        raise DataError(
            f"There must be one label for each {side}. Found {labels.size} labels for {size} {side}s. "
            f"Pass {size} labels, or none."
        )
    _check_different(labels, side)
    return labels


def _check_different(labels: np.ndarray, side: str) -> None:
    seen: set[Any] = set()
    for label in keys(labels):
        if label in seen:
            raise DataError(
                f"Every {side} must have its own label. Found {quoted(label)} more than once. "
                "Give each its own, or leave the labels out."
            )
        seen.add(label)


def uniform(ids: Any, side: str) -> np.ndarray:
    """Ids as one array of integers, floats, bools, dates, or an object array of str; nothing is rounded."""
    if not isinstance(ids, np.ndarray) or ids.dtype.kind in "OUS":
        ids = _uniform_objects(ids.tolist() if isinstance(ids, np.ndarray) else list(ids), side)
    if ids.dtype.kind not in "iufbMO" or ids.ndim != 1:
        raise DataError(f"The ids of {side}s must be a list of numbers, text or dates. Found dtype {ids.dtype}.")
    missing = np.flatnonzero(ids != ids) if ids.dtype.kind in "fM" else ids[:0]
    if missing.size:
        raise missing_id(side, f"at position {missing[0]}")
    return ids


def missing_id(side: str, where: str) -> DataError:
    return DataError(f"Every cell must name its {side}. Found no {side} id {where}. Drop it, or fill the id in.")


def _uniform_objects(ids: list[Any], side: str) -> np.ndarray:
    kind = _only_kind(ids, side)
    if kind == "integer":
        return _exact_integers(ids, side)
    if kind == "text":
        return text_array(ids)
    return np.array(ids, dtype={"bool": "bool", "float": "float64", "date": "datetime64[us]"}[kind])


def _only_kind(ids: list[Any], side: str) -> str:
    kinds = {_kind_of(kind) or _refuse_type(ids, kind, side) for kind in set(map(type, ids))}
    if len(kinds) > 1:
        raise DataError(
            f"The ids of {side}s must be all of one kind. Found {' and '.join(sorted(kinds))} ids together. "
            "Turn all of them into text, or all into integers."
        )
    return kinds.pop() if kinds else "integer"


def _kind_of(type_: type) -> str | None:
    return next((kind for kind, types in KINDS.items() if issubclass(type_, types)), None)


def _refuse_type(ids: list[Any], type_: type, side: str) -> str:
    position = next(position for position, one in enumerate(ids) if type(one) is type_)
    if type_.__name__ in NULL_TYPES:
        raise missing_id(side, f"at position {position}")
    raise DataError(
        f"The ids of {side}s must be numbers, text or dates. Found a {type_.__name__} at position {position}. "
        "Turn the ids into text."
    )


def _exact_integers(ids: list[int], side: str) -> np.ndarray:
    """Integers beyond 2**63 as uint64: NumPy alone would turn a mix with smaller ones into rounded floats."""
    lowest, highest = min(ids, default=0), max(ids, default=0)
    if highest <= LARGEST_SIGNED and lowest >= -LARGEST_SIGNED - 1:
        return np.array(ids, dtype=np.int64)
    if lowest >= 0 and highest <= LARGEST_UNSIGNED:
        return np.array(ids, dtype=np.uint64)
    worst = lowest if lowest < -LARGEST_SIGNED else highest
    raise DataError(f"Integer ids of {side}s must fit in 64 bits. Found {worst}. Turn the ids into text.")


def text_array(texts: Iterable[str]) -> np.ndarray:
    """An object array of plain str."""
    texts = [str(text) for text in texts]
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def labels_of_text(texts: Iterable[str], side: str, fitted: np.ndarray | None = None) -> np.ndarray:
    """Ids read from text: integers if all of them are written so, else text; text where the fitted labels are."""
    texts = list(texts)
    if (fitted is not None and fitted.dtype.kind == "O") or not all(map(is_plain_integer, texts)):
        return text_array(texts)
    return uniform(list(map(int, texts)), side)


def is_plain_integer(text: str) -> bool:
    """Whether a text is an integer of 64 bits, written as Python would: 007 is an id of its own, not 7."""
    return PLAIN_INTEGER.fullmatch(text) is not None and int(text) <= LARGEST_UNSIGNED


def numbered(ids: Any, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Number the ids in the order of their first appearance: (code of every id, label of every code)."""
    if isinstance(ids, list) and set(map(type, ids)) == {str}:
        return _numbered_text(ids)
    ids = uniform(ids, side)
    return _numbered_text(ids.tolist()) if ids.dtype.kind == "O" else _numbered_by_sorting(ids)


def _numbered_text(ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    code_of: dict[str, int] = {}
    codes = coded(ids, code_of)
    return codes, text_array(code_of)


def coded(ids: Iterable[str], code_of: dict[str, int]) -> np.ndarray:
    """The code of every id; new ids get the next code in `code_of`."""
    return np.array([code_of.setdefault(one, len(code_of)) for one in ids], dtype=np.int64)


def _numbered_by_sorting(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In chunks, because the inverse of np.unique takes five times the room of the ids."""
    distinct = np.unique(ids)
    small = np.dtype(np.int32 if ids.size <= np.iinfo(np.int32).max else np.int64)
    codes = np.empty(ids.size, small)
    code_of_rank: np.ndarray = np.full(distinct.size, -1, small)
    done = 0
    for start in range(0, ids.size, IDS_PER_CHUNK):
        here = slice(start, start + IDS_PER_CHUNK)
        ranks: np.ndarray = np.searchsorted(distinct, ids[here])
        new, first = np.unique(ranks[code_of_rank[ranks] < 0], return_index=True)
        code_of_rank[new[np.argsort(first)]] = np.arange(done, done := done + new.size)
        codes[here] = code_of_rank[ranks]
    labels = np.empty_like(distinct)
    labels[code_of_rank] = distinct
    return codes, labels


def keys(labels: np.ndarray) -> list[Any]:
    """Labels as dictionary keys; dates in one unit, because a year equals its first nanosecond."""
    return (labels.astype("datetime64[ns]") if labels.dtype.kind == "M" else labels).tolist()


def positions_among(labels: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each of `labels` (of columns) stands in `wanted`; an unknown one is refused."""
    positions = positions_or_nowhere(labels, wanted)
    unknown = np.flatnonzero(positions < 0)
    if unknown.size:
        raise DataError(
            f"Columns must be among the {wanted.size} that were fitted. Found {quoted(labels[unknown[0]])} "
            f"({unknown.size} unknown in all). Leave them out, or fit again with them."
        )
    return positions


def positions_or_nowhere(labels: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each of `labels` stands in `wanted`; -1 for nowhere.

    Integers and text find each other by their plain spelling: 7 finds "7", unless "007" is there as well.
    """
    asked, known = keys(labels), keys(wanted)
    if {labels.dtype.kind, wanted.dtype.kind} in ({"O", "i"}, {"O", "u"}):
        asked, known = _spelled_out(asked), _spelled_out(known)
    position_of = {label: position for position, label in enumerate(known)}
    return np.array([position_of.get(label, -1) for label in asked], dtype=np.int64)


def _spelled_out(labels: list[Any]) -> list[Any]:
    """Labels as text; those that would be one number for several texts, such as "7" and "007", as nothing."""
    texts = list(map(str, labels))
    times = Counter(map(_without_zeros, texts))
    return [text if times[_without_zeros(text)] == 1 else None for text in texts]


def _without_zeros(text: str) -> str:
    return text.lstrip("0") if text.isdigit() else text

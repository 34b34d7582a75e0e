"""Labels of rows and columns: ids to positions and back, and names of cells in error messages."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import ArraySpec
from halfseen.errors import DataError

PLAIN_INTEGER = re.compile(r"0|[1-9][0-9]{0,19}|-[1-9][0-9]{0,17}")
WHOLE_FLOAT = re.compile(r"(-?[0-9]+)\.0+")
NULL_TYPES = ("NoneType", "NAType", "NaTType")  # by name, because pandas is optional
LARGE = 1 << 17  # ids for which compiled code is worth its start
ROOM_PER_ID = 4  # entries of a look-up table for every id
LARGEST_SIGNED, LARGEST_UNSIGNED = np.iinfo(np.int64).max, np.iinfo(np.uint64).max
KINDS: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "integer": (int, np.integer),
    "float": (float, np.floating),
    "text": (str,),
    "date": (datetime.date, np.datetime64),
}


@dataclass(frozen=True, eq=False)
class Index:
    """The labels of rows or columns, and the position of each.

    Integers, whole floats and text find each other by their plain spelling: 7 finds "7", unless "007" is there too.
    """

    labels: np.ndarray

    #: Fields of an index in a model file.
    state: ClassVar[dict[str, Any]] = {"labels": ArraySpec("biufMO", ("*",), finite=False)}

    def check_state(self, path: str) -> None:
        """Refuse labels that are missing, or not all different."""
        is_missing = self.labels.dtype.kind in "fM" and bool(np.any(self.labels != self.labels))
        if is_missing or len(self.positions) != len(self) or None in self.positions:
            raise ValueError(f"{path} must have labels that are all different")

    def __len__(self) -> int:
        return self.labels.size

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """Position of each wanted label, -1 where there is none."""
        if {wanted.dtype.kind, self.labels.dtype.kind} <= {"i", "u"} and wanted.dtype == self.labels.dtype:
            if not self.labels.size:
                return np.full(wanted.size, -1, dtype=np.int64)
            order = self._order
            place = np.searchsorted(self.labels, wanted, sorter=order)
            place = order[np.minimum(place, self.labels.size - 1)]
            return np.where(self.labels[place] == wanted, place, -1)
        place = np.full(wanted.size, -1, dtype=np.int64)
        kinds = wanted.dtype.kind, self.labels.dtype.kind
        if kinds[0] == kinds[1] or not {"O", "M"} & set(kinds):
            place[:] = [self.positions.get(label, -1) for label in keys(wanted)]
        if "O" in kinds and (place < 0).any():
            by_spelling = [self._positions_by_spelling.get(_plain(text), -1) for text in map(str, wanted)]
            place = np.where(place < 0, by_spelling, place)
        return place

    @cached_property
    def positions(self) -> dict[Any, int]:
        """Position of each label, by `keys`."""
        return {label: position for position, label in enumerate(keys(self.labels))}

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.labels)

    @cached_property
    def _positions_by_spelling(self) -> dict[str, int]:
        """Position of each label as text, but for those whose number has several spellings, such as "7" and "007"."""
        plain = [_plain(text) for text in map(str, self.labels)]
        numbers = [text.lstrip("0") if text.isdigit() else text for text in plain]
        times = Counter(numbers)
        return {text: place for place, text in enumerate(plain) if times[numbers[place]] == 1}


def _plain(text: str) -> str:
    """Text of a whole float without its point: "7" for "7.0"."""
    return WHOLE_FLOAT.sub(r"\1", text) if WHOLE_FLOAT.fullmatch(text) else text


def keys(labels: np.ndarray) -> list[Any]:
    """Labels as dictionary keys; dates in one unit, because a year equals its first nanosecond."""
    return (labels.astype("datetime64[ns]") if labels.dtype.kind == "M" else labels).tolist()


class Places(NamedTuple):
    """Names cells in error messages, by label where there are labels: "row 17, column 'x'"."""

    row_labels: np.ndarray | None = None
    column_labels: np.ndarray | None = None

    def of(self, row: int, column: int) -> str:
        labels = self.column_labels
        return f"{self.of_row(row)}, column {column if labels is None else quoted(labels[column])}"

    def of_row(self, row: int) -> str:
        return f"row {row if self.row_labels is None else quoted(self.row_labels[row])}"


def quoted(label: Any) -> str:
    """A label as an error message shows it: text in quotes, numbers and dates plain."""
    return repr(str(label)) if isinstance(label, str) else str(label)


def missing_id(side: str, where: str) -> DataError:
    """The error for a cell without a row or column id."""
    must, remedy = f"Every cell must name its {side}.", "Drop it, or fill the id in."
    return DataError(must, found=f"no {side} id", where=where, remedy=remedy)


def as_labels(labels: Iterable[Any] | None, side: str, size: int) -> np.ndarray | None:
    """Labels for all `size` rows or columns (`side`), all different; None stays None."""
    if labels is None:
        return None
    labels = uniform(labels, side)
    if labels.shape != (size,):
        must, found = f"There must be one label for each {side}.", f"{labels.size} labels for {size} {side}s"
        raise DataError(must, found=found, remedy=f"Pass {size} labels, or none.", parameter=f"{side}_labels")
    check_unique(keys(labels), side)
    return labels


def check_unique(labels: Iterable[Any], side: str) -> None:
    """Refuse labels of which two are equal."""
    seen: set[Any] = set()
    for label in labels:
        if label in seen:
            must, remedy = f"Every {side} must have its own label.", "Rename one of them, or leave the labels out."
            raise DataError(must, found=f"{quoted(label)} more than once", remedy=remedy)
        seen.add(label)


def uniform(ids: Iterable[Any], side: str) -> np.ndarray:
    """Ids as an array of one kind: integers, floats, booleans, dates, or str objects. Nothing is rounded."""
    if not isinstance(ids, np.ndarray) or ids.dtype.kind in "OUS":
        ids = _uniform_objects(ids.tolist() if isinstance(ids, np.ndarray) else list(ids), side)
    if ids.dtype.kind not in "iufbMO" or ids.ndim != 1:
        raise DataError(f"The ids of {side}s must be a list of numbers, text or dates.", found=f"dtype {ids.dtype}")
    missing = np.flatnonzero(ids != ids) if ids.dtype.kind in "fM" else ids[:0]
    if missing.size:
        raise missing_id(side, f"at position {missing[0]}")
    return ids


def _uniform_objects(ids: list[Any], side: str) -> np.ndarray:
    kinds = set()
    for type_ in set(map(type, ids)):
        kind = next((kind for kind, types in KINDS.items() if issubclass(type_, types)), None)
        if kind is None:
            position = next(position for position, one in enumerate(ids) if type(one) is type_)
            if type_.__name__ in NULL_TYPES:
                raise missing_id(side, f"at position {position}")
            must, remedy = f"The ids of {side}s must be numbers, text or dates.", "Convert the ids to text."
            raise DataError(must, found=f"a {type_.__name__}", where=f"at position {position}", remedy=remedy)
        kinds.add(kind)
    if len(kinds) > 1:
        must, found = f"The ids of {side}s must be all of one kind.", f"{' and '.join(sorted(kinds))} ids together"
        raise DataError(must, found=found, remedy="Convert all of them to text, or all to integers.")
    kind = kinds.pop() if kinds else "integer"
    if kind == "integer":
        return exact_integers(ids, side)
    if kind == "text":
        return text_array(ids)
    return np.array(ids, dtype={"bool": "bool", "float": "float64", "date": "datetime64[us]"}[kind])


def exact_integers(ids: list[int], side: str) -> np.ndarray:
    """Integers beyond 2**63 as uint64: NumPy alone would turn a mix with smaller ones into rounded floats."""
    lowest, highest = min(ids, default=0), max(ids, default=0)
    if highest <= LARGEST_SIGNED and lowest >= -LARGEST_SIGNED - 1:
        return np.array(ids, dtype=np.int64)
    if lowest >= 0 and highest <= LARGEST_UNSIGNED:
        return np.array(ids, dtype=np.uint64)
    worst = lowest if lowest < -LARGEST_SIGNED else highest
    raise DataError(f"Integer ids of {side}s must fit in 64 bits.", found=str(worst), remedy="Convert the ids to text.")


def is_plain_integer(text: str) -> bool:
    """Whether a text is a 64-bit integer as Python writes it: 007 is another id than 7."""
    return PLAIN_INTEGER.fullmatch(text) is not None and int(text) <= LARGEST_UNSIGNED


def parse_labels(texts: Iterable[Any], labels: np.ndarray | None) -> list[Any]:
    """Texts as labels of the type of `labels`: integers where these are, or where there are none.

    A text that is no such label stays as it is, and is refused as unknown when it is looked up.
    """
    kind = "i" if labels is None else labels.dtype.kind

    def as_label(text: Any) -> Any:
        if kind == "O" or not isinstance(text, str):
            return str(text) if kind == "O" else text
        if kind in "iu":
            return int(text) if is_plain_integer(text.strip()) else text
        if kind == "f" and "_" in text:
            return text  # Python would read 1_0 as 10, which is another id
        try:
            return np.array([text]).astype(labels.dtype if labels is not None else float)[0]
        except ValueError:
            return text

    return [as_label(text) for text in texts]


def text_array(texts: Iterable[str]) -> np.ndarray:
    """An object array of plain str."""
    texts = [str(text) for text in texts]
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def index_dtype(shape: tuple[int, int], nnz: int) -> np.dtype:
    """int32 where shape and number of cells fit, else int64."""
    fits = max(*shape, nnz) <= np.iinfo(np.int32).max
    return np.dtype(np.int32 if fits else np.int64)


def encode(ids: Iterable[Any], side: str) -> tuple[np.ndarray, np.ndarray]:
    """Number ids in the order of their first appearance: (code of every id, label of every code)."""
    import pyarrow as pa

    ids = uniform(ids, side)
    if ids.dtype == np.float16:
        ids = ids.astype(np.float32)
    try:
        encoded = pa.array(ids, type=pa.large_string() if ids.dtype.kind == "O" else None).dictionary_encode()
    except (pa.ArrowInvalid, UnicodeEncodeError):  # lone surrogates
        must = f"The ids of {side}s must be valid text."
        raise DataError(must, found="text that UTF-8 cannot hold", remedy="Rename it.") from None
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    labels = encoded.dictionary.to_numpy(zero_copy_only=False)
    return codes, text_array(labels) if ids.dtype.kind == "O" else labels.astype(ids.dtype, copy=False)


def encode_integers(chunks: Sequence[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Codes and labels of many ids in Arrow string arrays; None if they are not all integers, or lie far apart.

    It takes a fifth of the time of encoding them as text.
    """
    count = sum(map(len, chunks))
    if count < LARGE or not is_plain_integer(chunks[0][0].as_py()):
        return None
    from halfseen.kernels.indexing import number_integers, parse_integers

    values, done = np.empty(count, dtype=np.int64), 0
    for chunk in chunks:
        _, offsets, text = chunk.buffers()
        offsets = np.frombuffer(offsets, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if not parse_integers(np.frombuffer(text, dtype=np.uint8), offsets, values[done : done + len(chunk)]):
            return None
        done += len(chunk)
    lowest, size = int(values.min()), int(values.max()) - int(values.min()) + 1
    if size > ROOM_PER_ID * count:
        return None
    codes, labels = np.empty(count, dtype=index_dtype((1, 1), count)), np.empty(min(size, count), dtype=np.int64)
    n_labels = number_integers(values, lowest, np.full(size, -1, dtype=codes.dtype), codes, labels)
    return codes, labels[:n_labels].copy()

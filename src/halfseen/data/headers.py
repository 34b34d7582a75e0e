"""Which columns of a table hold rows, columns and values: long tables recognised by the usual header spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from halfseen.data.reading import Reading
from halfseen.errors import DataError


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ROWS = _words(
    "user row customer subject respondent reader listener viewer person client participant patient member account "
    "visitor student u"
)
COLUMNS = _words("item column col product movie film artist song track question book isbn article game gene i")
VALUES = _words(
    "rating ratings value values score scores stars star count counts plays playcount listencount quantity answer "
    "response grade level y weight"
)
BESIDES = _words("timestamp time date datetime ts unixtime unixreviewtime index unnamed0 indexlevel0 session sessionid")


class LongHeader(NamedTuple):
    """The names of the columns of a long table; without `value` every listed pair counts as 1."""

    row: Any
    column: Any
    value: Any = None


def long_header(names: Sequence[Any], how: Reading, is_number: Callable[[Any], bool]) -> LongHeader | None:
    """Where a table is long, the names of its three columns; None for a wide one.

    `is_number` tells whether a column holds numbers: one beside the pairs that is neither a recognised value nor a
    time leaves it open what to read.
    """
    if how.columns is not None:
        return _as_named(names, how.columns)
    if how.layout == "wide":
        return None
    header = _recognised(names, how, is_number)
    return _in_given_order(names, how) if header is None and how.layout == "long" else header


def _as_named(names: Sequence[Any], wanted: Sequence[Any]) -> LongHeader:
    for name in wanted:
        check_present(name, names)
    return LongHeader(*wanted)


def check_present(name: Any, names: Sequence[Any]) -> None:
    """Refuse the name of a column that isn't there."""
    if name not in names:
        raise DataError(
            f"The columns named must be in the table. Found no {name!r}. The table has: {_listed(names)}. "
            "Name one of these."
        )


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown}, ... ({len(names)} in all)"


def _recognised(names: Sequence[Any], how: Reading, is_number: Callable[[Any], bool]) -> LongHeader | None:
    names = [name for name in names if name != how.weight_name]
    row, column, value = _spelled(names, _ids(ROWS)), _spelled(names, _ids(COLUMNS)), _spelled(names, VALUES)
    if row is None or column is None:
        return None
    if value is None:
        _check_nothing_else_counts(names, row, column, is_number)
    return LongHeader(row, column, value)


def _spelled(names: Sequence[Any], spellings: Sequence[str]) -> Any:
    plain = {_plain(name): name for name in reversed(names)}
    return next((plain[spelling] for spelling in spellings if spelling in plain), None)


def _ids(words: Sequence[str]) -> list[str]:
    """The usual ways to head a column of ids; where both stand in a table, "movieId" is meant rather than "movie"."""
    return [word + ending for word in words for ending in ("id", "", "index")]


def _plain(name: Any) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def _check_nothing_else_counts(names: Sequence[Any], row: Any, column: Any, is_number: Callable[[Any], bool]) -> None:
    for name in names:
        if name not in (row, column) and _plain(name) not in BESIDES and is_number(name):
            raise DataError(
                f"A long table must say which column holds the values. Found columns {row!r} and {column!r} and "
                f"{name!r}, which may or may not be it. "
                f"Say columns=({row!r}, {column!r}, {name!r}), or columns=({row!r}, {column!r}) to count pairs as 1."
            )


def _in_given_order(names: Sequence[Any], how: Reading) -> LongHeader:
    names = [name for name in names if name != how.weight_name]
    if len(names) not in (2, 3):
        raise DataError(
            f"A long table must have a row, a column and a value column. Found these: {_listed(names)}. "
            'Name them: columns=("user", "item", "rating").'
        )
    return LongHeader(*names)

"""Which columns of a table hold rows, columns and values: long tables recognised by the usual header spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from halfseen.data.reading import Reading
from halfseen.errors import DataError


def words(text: str) -> tuple[str, ...]:
    """Spellings, as they stand in a line of text."""
    return tuple(text.split())


ROWS = words(
    "user row customer subject respondent reader listener viewer person client participant patient member account "
    "visitor student reviewer u"
)
COLUMNS = words(
    "item column col product movie film artist song track question book isbn article game gene video anime business "
    "sku asin stockcode offer term word i"
)
VALUES = words(
    "rating ratings value values score scores stars star count counts plays playcount listencount quantity answer "
    "response grade level clicks views listens hours units qty amount purchases visits overall bookrating y weight"
)
BESIDES = words(
    "timestamp time date datetime ts unixtime unixreviewtime ratingtimestamp createdat updatedat index unnamed0 "
    "indexlevel0 session sessionid id ratingid reviewid"
)
GENERIC_LINE = 'columns=("user", "item", "rating")'
WIDEST_OF_LETTERS = 4  # u, i, y and a time
WIDEST_OF_DOUBT = 5  # a row, a column, a value and two columns beside


class LongHeader(NamedTuple):
    """The names of the columns of a long table; without `value` every listed pair counts as 1."""

    row: Any
    column: Any
    value: Any = None


def long_header(names: Sequence[Any], how: Reading, is_number: Callable[[Any], bool]) -> LongHeader | None:
    """Where a table is long, the names of its three columns; None for a wide one.

    `is_number` tells whether a column holds numbers: one beside the pairs that is neither the value nor a time leaves
    it open what to read, and so does a value with only one of its two ids. Both are refused.
    """
    if how.columns is not None:
        return _as_named(names, how.columns)
    if how.layout == "wide" or (how.layout == "auto" and all(map(how.fits_column, names))):
        return None
    names = [name for name in names if name != how.weight_name]
    header = _recognised(names, is_number)
    if how.layout == "long":
        if header is None:
            _check_not_half_long(names, is_number)  # the given order may not be the one that the header tells
        return header or _in_given_order(names)
    if header is None:
        _check_not_half_long(names, is_number)
    elif header.value is not None:
        _check_no_number_beside(names, header, is_number)
    return header


def heads_row_ids(name: Any) -> bool:
    """Whether a header is an id's of rows, such as "user_id", plain "id" or none; a single letter is not."""
    return plain_spelling(name) in ("", "id", "unnamed0", *without_letters(id_headers(ROWS)))


def _as_named(names: Sequence[Any], wanted: Sequence[Any]) -> LongHeader:
    for name in wanted:
        check_present(name, names)
    return LongHeader(*wanted)


def check_present(name: Any, names: Sequence[Any]) -> None:
    """Refuse the name of a column that isn't there."""
    if name not in names:
        raise DataError(
            f"The columns named must be in the table. Found no {name!r}. The table has: {names_listed(names)}. "
            "Name one of these."
        )


def names_listed(names: Sequence[Any]) -> str:
    """The names of a table's columns as an error sentence lists them."""
    shown = ", ".join(str(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown}, ... ({len(names)} in all)"


def _recognised(names: Sequence[Any], is_number: Callable[[Any], bool]) -> LongHeader | None:
    rows, columns, values = id_headers(ROWS), id_headers(COLUMNS), list(VALUES)
    if len(names) > WIDEST_OF_LETTERS:
        rows, columns, values = map(without_letters, (rows, columns, values))
    row, column = _spelled(names, rows), _spelled(names, columns)
    if row is None or column is None:
        return None
    value = _only_value(names, row, column, values, is_number)
    if value is None:
        _check_nothing_else_counts(names, row, column, is_number)
    return LongHeader(row, column, value)


def _only_value(
    names: Sequence[Any], row: Any, column: Any, spellings: Sequence[str], is_number: Callable[[Any], bool]
) -> Any:
    """The column of values: of several so spelled the one that holds numbers; two of them are refused."""
    numeric = [name for name in names if plain_spelling(name) in spellings and is_number(name)]
    if len(numeric) > 1:
        first, second, *_ = numeric
        raise DataError(
            f"A long table must say which column holds the values. Found {first!r} and {second!r} beside {row!r} and "
            f"{column!r}. Say columns=({row!r}, {column!r}, {first!r}) or columns=({row!r}, {column!r}, {second!r}); "
            'or layout="wide" if this is a table.'
        )
    return numeric[0] if numeric else _spelled(names, spellings)


def _check_no_number_beside(names: Sequence[Any], header: LongHeader, is_number: Callable[[Any], bool]) -> None:
    """Refuse what may be a wide table as well, before its other columns are dropped."""
    for name in names:
        if name not in header and plain_spelling(name) not in BESIDES and is_number(name):
            row, column, value = header
            raise DataError(
                "A long table must have no other column of numbers than its values, or say which to read. "
                f"Found {row!r}, {column!r} and {value!r}, and {name!r} beside them. "
                f'Say columns=({row!r}, {column!r}, {value!r}), or layout="wide" if this is a table.'
            )


def _check_not_half_long(names: Sequence[Any], is_number: Callable[[Any], bool]) -> None:
    """Refuse a small table with a value and only one of its two ids, before ids are read as values."""
    row, column = (_spelled(names, without_letters(id_headers(known))) for known in (ROWS, COLUMNS))
    value = _spelled(names, without_letters(VALUES))
    if len(names) > WIDEST_OF_DOUBT or value is None or (row is None) == (column is None) or not is_number(value):
        return
    others = [name for name in names if name not in (row, column, value) and plain_spelling(name) not in BESIDES]
    named = (row or (others or ["user"])[0], column or (others or ["item"])[0], value)
    raise DataError(
        f"A long table must have a row, a column and a value column. Found {row or column!r} and {value!r}, "
        f"but no column of {'users' if row is None else 'items'} among: {names_listed(names)}. "
        f'Name them: columns={named!r}; or say layout="wide" if this is a table.'
    )


def _spelled(names: Sequence[Any], spellings: Sequence[str]) -> Any:
    plain = {plain_spelling(name): name for name in reversed(names)}
    return next((plain[spelling] for spelling in spellings if spelling in plain), None)


def id_headers(stems: Sequence[str]) -> list[str]:
    """The usual ways to head a column of ids; where both stand in a table, "movieId" is meant rather than "movie"."""
    return [word + ending for word in stems for ending in ("id", "", "index", "idx", "no", "code", "key")]


def without_letters(spellings: Sequence[str]) -> list[str]:
    """The spellings of more than one letter."""
    return [spelling for spelling in spellings if len(spelling) > 1]


def plain_spelling(name: Any) -> str:
    """A header's letters and digits, all small: "User ID" is spelled as "user_id" is."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def _check_nothing_else_counts(names: Sequence[Any], row: Any, column: Any, is_number: Callable[[Any], bool]) -> None:
    for name in names:
        if name not in (row, column) and plain_spelling(name) not in BESIDES and is_number(name):
            raise DataError(
                f"A long table must say which column holds the values. Found columns {row!r} and {column!r} and "
                f"{name!r}, which may or may not be it. "
                f"Say columns=({row!r}, {column!r}, {name!r}), or columns=({row!r}, {column!r}) to count pairs as 1; "
                'or layout="wide" if this is a table.'
            )


def _in_given_order(names: Sequence[Any]) -> LongHeader:
    if len(names) not in (2, 3):
        raise DataError(
            f"A long table must have a row, a column and a value column. Found these: {names_listed(names)}. "
            f"Name them: {GENERIC_LINE}."
        )
    return LongHeader(*names)


def likely_long(names: Sequence[Any], is_number: Callable[[Any], bool]) -> LongHeader | None:
    """What a table's columns would be, were it long: of three columns, times and the like aside, the only one of
    numbers, or else the last, holds the values. None if it has not three."""
    speaking = [name for name in names if plain_spelling(name) not in BESIDES]
    if len(speaking) != 3 or not all(isinstance(name, str) and name for name in speaking):
        return None
    numeric = [name for name in speaking if is_number(name)]
    value = numeric[0] if len(numeric) == 1 else speaking[-1]
    row, column = (name for name in speaking if name != value)
    return LongHeader(row, column, value)


def line_of_columns(header: LongHeader | None) -> str:
    """How a caller names the columns of a long table."""
    return GENERIC_LINE if header is None else f"columns={tuple(header)!r}"

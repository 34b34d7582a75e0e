"""What the columns of a table mean: whether it has a header, is long or wide, and which column has which role.

The only place that decides this; what was recognised is kept with the data as `ReadSummary`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from halfseen.errors import DataError, ParameterError
from halfseen.io.numbers import COMMA, POINT, Levels, Scale, is_missing, is_number
from halfseen.io.tables import CellWeight, ColumnName, Table
from halfseen.io.text import Progress, Record, TextFile
from halfseen.labels import uniform

LAYOUTS = ("auto", "long", "wide")
#: Called with labels of columns that were not fitted, and the number of their cells.
OnUnknown = Callable[[np.ndarray, int], None]


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
TIMES = words("timestamp time date datetime ts unixtime unixreviewtime ratingtimestamp createdat updatedat")
#: Headers of ids and of titles in a table of names, and that of a list of ids.
IDS = words("id item itemid movieid user userid product productid isbn row column")
TITLES = words("title name label titles names itemname itemtitle movietitle username")
#: Columns that may stand beside row, column and value without being any of them; "" is an index that pandas wrote.
BESIDES = (*TIMES, *words("index unnamed0 indexlevel0 session sessionid id ratingid reviewid"), "")
#: Ends of names of columns that hold codes rather than amounts.
CODES = ("id", "zip", "zipcode", "postcode", "postalcode", "code", "phone", "year")
GENERIC_LINE = 'columns=("user", "item", "rating")'
THREE_COLUMNS = "A long table must have a row, a column and a value column."
OR_WIDE = 'or `layout="wide"` if this is a table.'
WIDEST_OF_LETTERS = 4  # u, i, y and a time
WIDEST_OF_DOUBT = 5  # a row, a column, a value and two columns beside
MOST_NAMED = 5  # unused columns in a summary; of more, the rest is counted
MOST_VALUES = 20  # different ones, as levels and small counts have


@dataclass(frozen=True)
class ReadOptions:
    """The options of `observe`, under the same names."""

    unseen: str = "missing"
    cell_weight: CellWeight = None
    duplicates: str = "error"
    layout: str = "auto"
    columns: Sequence[ColumnName] | None = None
    column_labels: Iterable[Any] | None = None
    allow_empty: bool = False
    header: bool | None = None
    levels: Levels = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    na_values: Sequence[str] | None = None
    comment: str | None = None
    encoding: str | None = None
    progress: Progress | None = None
    on_unknown: OnUnknown | None = None

    def __post_init__(self) -> None:
        Scale.of(self.levels)
        if self.layout not in LAYOUTS:
            raise ParameterError(f"must be one of {', '.join(LAYOUTS)}.", parameter="layout", found=repr(self.layout))
        if self.columns is not None:
            is_tuple = isinstance(self.columns, (tuple, list)) and len(self.columns) in (2, 3)
            if not is_tuple or len(set(self.columns)) < len(self.columns) or self.weight_name in self.columns[:2]:
                must = "must name different headers of rows, columns and values, or the first two when every pair "
                must, remedy = f"{must}counts as 1.", f"Name them: `{GENERIC_LINE}`."
                raise ParameterError(must, parameter="columns", found=repr(self.columns), remedy=remedy)
        if isinstance(self.na_values, str):
            must = 'must be a list of texts, such as ["-", "unknown"].'
            raise ParameterError(must, parameter="na_values", found=repr(self.na_values))

    @cached_property
    def scale(self) -> Scale:
        """Scale of the values, made of `levels`."""
        return Scale.of(self.levels)

    @property
    def weight_name(self) -> str | None:
        """Name of the column of weights, if `cell_weight` is one."""
        return self.cell_weight if isinstance(self.cell_weight, str) else None

    @cached_property
    def fitted_labels(self) -> np.ndarray | None:
        """Labels of the fitted columns as one array; None if there are none to find."""
        return None if self.column_labels is None else uniform(self.column_labels, "column")

    @cached_property
    def fitted_names(self) -> frozenset[ColumnName]:
        """Headers of fitted columns, which hold values whatever they look like."""
        return frozenset(() if self.fitted_labels is None else self.fitted_labels.tolist())

    @property
    def numbers_columns(self) -> bool:
        """Whether the columns of a long table are given by their positions."""
        return self.columns is not None and all(isinstance(name, int) for name in self.columns)

    def refuse_table_options(self) -> None:
        """Refuse options that only tables understand, for an array."""
        given = (self.columns, self.weight_name, self.header, self.separator, self.decimal, self.thousands)
        if self.layout == "long" or any(one is not None for one in given):
            must = (
                "layout, columns, header, separator, decimal, thousands and a weight's column name are for frames and "
            )
            remedy = "Pass a frame or a file, or leave them out."
            raise DataError(f"{must}files.", found="them with an array", remedy=remedy)


class LongHeader(NamedTuple):
    """Columns of a long table; without `value` every listed pair counts as 1."""

    row: ColumnName
    column: ColumnName
    value: ColumnName | None = None


@dataclass(frozen=True)
class ReadSummary:
    """What was recognised in a frame or file; `str` says it in sentences."""

    layout: str  # "long" or "wide"
    roles: dict[str, str]  # sources of rows, columns, values, weights, as far as known: {"rows": "column 'user'", ...}
    has_header: bool = True
    unused: tuple[str, ...] = ()  # other columns of a long table
    width: int = 0  # number of columns of a wide table
    holds: str = "numbers"  # or "levels", in a wide table
    decimal: str = POINT
    encoding: str = ""  # of a text file, if it is not a Unicode one
    if_long: str = ""  # option that reads a wide table that might as well be long as such

    @classmethod
    def of(cls, table: Table, layout: str, roles: dict[str, str], has_header: bool, **fields: Any) -> ReadSummary:
        """Summary of a table whose roles are known."""
        encoding = "" if not table.files or table.files[0].encoding.startswith("utf") else table.files[0].encoding
        decimal = table.parser.mark if table.is_text else POINT
        return cls(layout, roles, has_header, decimal=decimal, encoding=encoding, **fields)

    @classmethod
    def of_long(cls, table: Table, header: LongHeader, weight: ColumnName | None) -> ReadSummary:
        """Summary of a long table, `weight` naming its column of weights."""
        has_names = table.has_header and not all(isinstance(name, int) for name in table.names)
        shown = {name: repr(name) if has_names else str(cast(int, name) + 1) for name in table.names}
        roles = dict(zip(("rows", "columns", "values", "weights"), (*header, weight), strict=True))
        used = {role: name for role, name in roles.items() if name is not None}
        unused = tuple(shown[name] for name in table.names if name not in used.values())
        return cls.of(
            table, "long", {role: f"column {shown[name]}" for role, name in used.items()}, has_names, unused=unused
        )

    def __str__(self) -> str:
        return self.render()

    def render(self, code: Callable[[str], str] = str) -> str:
        """Return the summary as one text; `code` shows Python code, as in `halfseen.errors.Described.render`."""
        if self.layout == "long":
            start, *others = (
                f"{role} {'' if place else 'are '}from {of}" for place, (role, of) in enumerate(self.roles.items())
            )
            start = start[0].upper() + start[1:] if self.has_header else f"No header: {start}"
            text = ", ".join([start, *others])
            text += "" if "values" in self.roles else "; no column of values: every pair counts 1"
            if len(self.unused) == 1:
                text += f"; column {self.unused[0]} is not used"
            elif self.unused:
                *named, last = self.unused[:MOST_NAMED]
                more = len(self.unused) - MOST_NAMED
                text += f"; columns {', '.join([*named, last] if more > 0 else named)}"
                text += f" and {f'{more} more' if more > 0 else last} are not used"
            text += "."
        else:
            header = "" if self.has_header else " without a header"
            rows = f"names of rows from {self.roles['rows']}, " if self.roles else ""
            text = f"A wide table{header}: {rows}{self.width:,} column{'' if self.width == 1 else 's'} of {self.holds}."
        text += " Numbers have decimal commas." if self.decimal == COMMA else ""
        text += f" The text is not UTF-8 and was read as {self.encoding}." if self.encoding else ""
        return text + (f" If its lines are row, column, value, pass {code(self.if_long)}." if self.if_long else "")


# headers of text files


def has_header_line(file: TextFile, options: ReadOptions) -> bool:
    """Whether the first line holds names; where no option says so, it does unless it looks like data."""
    if options.header is not None:
        return options.header
    if options.columns is not None:
        return not options.numbers_columns
    first, *below = file.sample
    if options.layout != "wide" and looks_long(file.sample):
        return False
    corner, *names = first
    # an empty corner above an index, and different names, be they numbers such as years
    are_names = bool(names) and len(set(names)) == len(names) and not any(map(is_missing, names))
    if not corner.strip() and are_names and below and all(record[0].strip() for record in below):
        return True
    if any(is_number(name) and _is_fraction(name) for name in names):  # a fraction heads no column
        return False
    return not all(is_missing(name) or is_number(name) for name in first)


def looks_long(sample: Sequence[Record]) -> bool:
    """Whether lines look like row, column, value and perhaps a time; one alone might be a header of years."""
    width = len(sample[0])
    if width not in (3, 4):
        return False
    lines = [record for record in sample if len(record) == width]
    values = [record[2] for record in lines if not is_missing(record[2])]
    ids = [field for record in lines for field in record[:2]]
    return 2 * len(values) > len(lines) and all(map(is_number, values)) and not any(map(_is_fraction, ids))


def _is_fraction(field: str) -> bool:
    """Whether a field is missing, or a number as ids are not written."""
    return is_missing(field) or (is_number(field) and not field.strip().lstrip("+-").isdigit())


# roles of columns


def recognise(table: Table, options: ReadOptions) -> LongHeader | None:
    """Columns of row, column and value if a table is long; None if it is wide.

    Refused as ambiguous are another column of numbers beside the pairs that is neither the value nor a time, and a
    value with only one of its two ids.
    """
    names, is_number = table.names, table.is_numeric
    for name in (*(options.columns or ()), *([options.weight_name] if options.weight_name is not None else [])):
        check_present(name, names)
    if options.columns is not None:
        return LongHeader(*options.columns)
    if table.is_text and not table.has_header and options.layout != "wide" and looks_long(table.files[0].sample):
        return LongHeader(0, 1, 2)
    if options.layout == "wide" or (options.layout == "auto" and all(name in options.fitted_names for name in names)):
        return None
    names = [name for name in names if name != options.weight_name]
    header = spelled_long(names, is_number)
    if header is None:
        _check_not_half_long(names, is_number)  # the given order may not be the one that the header tells
    if options.layout == "long" and header is None:
        if len(names) not in (2, 3):
            found, remedy = f"these: {names_listed(names)}", f"Name them: `{GENERIC_LINE}`."
            raise DataError(THREE_COLUMNS, found=found, remedy=remedy, parameter="columns")
        return LongHeader(*names)
    if options.layout == "auto" and header is not None and header.value is not None:
        for name in names:
            if name not in header and not stands_beside(name, names) and is_number(name):
                must = "A long table must have no other column of numbers than its values, or say which to read."
                found = "{!r}, {!r} and {!r}, and {!r} beside them".format(*header, name)
                remedy = f"Pass `{columns_option(header)}`, {OR_WIDE}"
                raise DataError(must, found=found, remedy=remedy, parameter="columns")
    return header


def spelled_long(names: Sequence[ColumnName], is_number: Callable[[ColumnName], bool]) -> LongHeader | None:
    """Columns with the usual headers of a long table; None if there is no such pair of ids."""
    rows, columns, values = id_headers(ROWS), id_headers(COLUMNS), list(VALUES)
    if len(names) > WIDEST_OF_LETTERS:
        rows, columns, values = map(without_letters, (rows, columns, values))
    row, column = _spelled(names, rows), _spelled(names, columns)
    if row is None or column is None:
        return None
    which = "A long table must say which column holds the values."
    numeric = [name for name in names if plain_spelling(name) in values and is_number(name)]
    if len(numeric) > 1:
        first, second, *_ = numeric
        found = f"{first!r} and {second!r} beside {row!r} and {column!r}"
        remedy = f"Pass `columns={(row, column, first)}` or `columns={(row, column, second)}`; {OR_WIDE}"
        raise DataError(which, found=found, remedy=remedy, parameter="columns")
    value = numeric[0] if numeric else _spelled(names, values)
    if value is None:
        for name in names:
            if name not in (row, column) and not stands_beside(name, names) and is_number(name):
                found = f"columns {row!r} and {column!r} and {name!r}, which may or may not be it"
                remedy = f"Pass `columns={(row, column, name)}`, or `columns={(row, column)}` to count pairs as 1; "
                raise DataError(which, found=found, remedy=remedy + OR_WIDE, parameter="columns")
    return LongHeader(row, column, value)


def _check_not_half_long(names: Sequence[ColumnName], is_number: Callable[[ColumnName], bool]) -> None:
    """Refuse a small table with a value and only one of its two ids, before ids are read as values."""
    row, column = (_spelled(names, without_letters(id_headers(known))) for known in (ROWS, COLUMNS))
    value = _spelled(names, without_letters(VALUES))
    if len(names) > WIDEST_OF_DOUBT or value is None or (row is None) == (column is None) or not is_number(value):
        return
    others = [name for name in names if name not in (row, column, value) and plain_spelling(name) not in BESIDES]
    named = (row or (others or ["user"])[0], column or (others or ["item"])[0], value)
    found = f"{row or column!r} and {value!r}, but no column of {'users' if row is None else 'items'}"
    where = f"among: {names_listed(names)}"
    remedy = f'Name them: `columns={named!r}`; or pass `layout="wide"` if this is a table.'
    raise DataError(THREE_COLUMNS, found=found, where=where, remedy=remedy, parameter="columns")


def _spelled(names: Sequence[ColumnName], spellings: Sequence[str]) -> ColumnName | None:
    """The name that is spelled as the first possible of `spellings`."""
    plain = {plain_spelling(name): name for name in reversed(names)}
    return next((plain[spelling] for spelling in spellings if spelling in plain), None)


def plain_spelling(name: ColumnName) -> str:
    """Letters and digits of a header in lower case: "userid" for "User ID" and "user_id"."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def stands_beside(name: ColumnName, names: Sequence[ColumnName]) -> bool:
    """Whether a column is a time, an index and the like; without a name only the first, where pandas has its index."""
    plain = plain_spelling(name)
    return plain in BESIDES and (plain != "" or name == names[0])


def id_headers(stems: Sequence[str]) -> list[str]:
    """The usual headers of ids; where both are in a table, "movieId" is meant rather than "movie"."""
    return [word + ending for word in stems for ending in ("id", "", "index", "idx", "no", "code", "key")]


def without_letters(spellings: Sequence[str]) -> list[str]:
    """The spellings of more than one letter."""
    return [spelling for spelling in spellings if len(spelling) > 1]


def heads_row_ids(name: ColumnName) -> bool:
    """Whether a header is an id's of rows, such as "user_id", plain "id" or none; a single letter is not."""
    return plain_spelling(name) in ("", "id", "unnamed0", *without_letters(id_headers(ROWS)))


def heads_codes(name: ColumnName) -> bool:
    """Whether a header speaks of codes rather than amounts: zip_code, year, ..."""
    return str(name).strip().lower().replace("_", " ").replace("-", " ").split(" ")[-1] in CODES


def time_column(table: Table, header: LongHeader, name: ColumnName | None = None) -> ColumnName:
    """The column of times of a long table: the one named, or the only one with a usual header."""
    if name is not None:
        check_present(name, table.names)
        return name
    if not table.has_header and len(table.names) == 4:
        return 3
    times = [one for one in table.names if one not in header and plain_spelling(one) in TIMES]
    if len(times) != 1:
        must, remedy = "Splitting by time needs a column of times.", 'Name it: `time="timestamp"`.'
        found, where = " and ".join(map(repr, times)) or "none", f"among: {names_listed(table.names)}"
        raise DataError(must, found=found, where=where, remedy=remedy, parameter="time")
    return times[0]


def check_present(name: ColumnName, names: Sequence[ColumnName]) -> None:
    """Refuse the name of a column that is not in the table."""
    if name not in names:
        near = next(iter(get_close_matches(str(name), [one for one in names if isinstance(one, str)], 1)), None)
        hint = "Name one of these." if near is None else f"Did you mean {near!r}?"
        must, remedy = "The columns named must be in the table.", f"The table has: {names_listed(names)}. {hint}"
        raise DataError(must, found=f"no {name!r}", remedy=remedy)


def names_listed(names: Sequence[ColumnName]) -> str:
    """Names of columns as error messages list them."""
    shown = ", ".join(str(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown}, ... ({len(names)} in all)"


def likely_long(table: Table) -> LongHeader | None:
    """Columns of a table if it were long; None unless there are three, times and the like aside.

    The only column of numbers, or else the last, holds the values.
    """
    named = [name for name in table.names if plain_spelling(name) not in BESIDES]
    if len(named) != 3 or not all(isinstance(name, str) and name for name in named):
        return None
    numeric = [name for name in named if table.is_numeric(name)]
    value = numeric[0] if len(numeric) == 1 else named[-1]
    row, column = (name for name in named if name != value)
    return LongHeader(row, column, value)


def columns_option(header: LongHeader | None) -> str:
    """Option that names the columns of a long table."""
    return GENERIC_LINE if header is None else f"columns={tuple(header)!r}"


def might_be_long(array: np.ndarray) -> bool:
    """Whether three columns of numbers might be row, column and value: repeated ids, unique pairs, few values."""
    ids, values = array[:, :2], array[:, 2]
    if not len(array) or np.isnan(ids).any() or (ids != np.floor(ids)).any() or (ids < 0).any():
        return False
    come_again = all(np.unique(column).size < len(array) for column in ids.T)
    return come_again and np.unique(values).size <= MOST_VALUES and len(np.unique(ids, axis=0)) == len(array)

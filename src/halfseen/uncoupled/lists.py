"""Reading the three lists of an uncoupled collection through `halfseen.io`: which columns hold what, ids and values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io import schema
from halfseen.io.numbers import POINT, NotANumber, hint_about, is_missing, is_number, numbers
from halfseen.io.schema import BESIDES, ReadOptions, id_headers, names_listed, plain_spelling, words
from halfseen.io.sources import open_file, open_table
from halfseen.io.tables import Table, encode_column, encode_text, to_floats
from halfseen.io.text import Record
from halfseen.labels import Index, exact_integers, is_plain_integer

#: Roles of the columns of each list, in the order in which they stand where nothing else is known.
ROLES = {
    "asked": ("question", "respondent"),
    "answers": ("question", "value"),
    "comparisons": ("question", "higher", "lower"),
}
_ORDERED = ("row", "column", "col")  # don't distinguish questions from respondents: these go by their order
QUESTIONS = words("question q topic query statement task prompt") + tuple(
    word for word in schema.COLUMNS if word not in _ORDERED
)
RESPONDENTS = words("respondent worker annotator employee panelist j") + tuple(
    word for word in schema.ROWS if word not in _ORDERED
)
HIGHER = words("higher larger greater winner more plus better bigger high above older richer")
LOWER = words("lower smaller lesser loser less minus worse fewer low below younger poorer")
NO_ID = -1  # code of a line without an id


class Ids(NamedTuple):
    """`labels[codes[line]]` is the id of a line; a line without an id has the code -1."""

    codes: Array
    labels: Array

    def positions_among(self, known: Array, unknown: int) -> Array:
        """Position of the id of each line among the known labels; -1 without an id, `unknown` for any other.

        A text that marks a missing value is no id, unless a respondent has this name.
        """
        positions = Index(known).find(self.labels)
        positions[positions < 0] = unknown
        if self.labels.dtype.kind == "O":
            marks = [code for code in np.flatnonzero(positions == unknown) if is_missing(self.labels[code])]
            positions[marks] = NO_ID
        return np.append(positions, NO_ID)[self.codes]

    def missing(self) -> Array:
        """Mask of lines without an id: nothing, an empty text, or a missing-value marker among integers."""
        if self.labels.dtype.kind != "O":
            return self.codes == NO_ID
        marks = [code for code, label in enumerate(self.labels) if is_missing(label)]
        others = np.delete(self.labels, marks)
        if not all(text.removeprefix("-").isdecimal() for text in others):
            marks = [code for code in marks if not self.labels[code].strip()]
        return np.isin(self.codes, [NO_ID, *marks])


class ListData(NamedTuple):
    """A list as it was read: ids by role, values (of answers only), a function that names the place of a line, the
    column of each role in words, and the decimal mark."""

    ids: dict[str, Ids]
    values: Array
    place: Callable[[int], str]
    columns: dict[str, str]
    decimal: str = POINT

    @property
    def n_lines(self) -> int:
        return self.ids["question"].codes.size


class ListTable(NamedTuple):
    """A list as a table; `has_names` is False for arrays and tuples, `is_sure` if its header is known to be one."""

    name: str
    table: Table
    has_names: bool = True
    is_sure: bool = True


def read_lists(asked: Any, answers: Any, comparisons: Any, columns: Mapping[str, Any]) -> dict[str, ListData]:
    """Read the lists, by name; `columns` has the header, or the position, of the column of each role, or None.

    The only header that `asked` and `answers` share is the question by default.
    """
    lists = dict(zip(ROLES, (asked, answers, [] if comparisons is None else comparisons), strict=True))
    columns = {role: name for role, name in columns.items() if name is not None}
    tables = {name: _open_list(name, X, list(columns.values())) for name, X in lists.items()}
    for role, header in columns.items():
        if isinstance(header, str) and not any(tables[name].has_names for name in ROLES if role in ROLES[name]):
            must = "Names of columns must be those of a frame or a file."
            found = f"{role}={header!r} with lists or arrays, which have none"
            remedy = "Leave it out, and put the columns in their order."
            raise DataError(must, found=found, remedy=remedy, parameter=role)
    headers = [name for name in tables["asked"].table.names if isinstance(name, str)]
    shared = [one for one in headers if one in tables["answers"].table.names and plain_spelling(one) not in BESIDES]
    return {name: _read_list(one, columns, shared[0] if len(shared) == 1 else None) for name, one in tables.items()}


def _open_list(name: str, X: Any, headers: Sequence[Any]) -> ListTable:
    """Open a list as a table; a first line with one of the given headers is a header."""
    roles = ROLES[name]
    if isinstance(X, (str, os.PathLike)):
        table = open_file(X, ReadOptions(header=True))
        if not table.is_text:
            return ListTable(name, table)
        sample = table.files[0].sample
        by_position = any(isinstance(header, int) for header in headers)
        is_sure = any(_candidates(name, sample[0], {}).values()) or any(header in sample[0] for header in headers)
        has_header = is_sure or (not by_position and _seems_headed(sample))
        options = ReadOptions(header=has_header, columns=(0, 1) if by_position else None)
        return ListTable(name, open_file(X, options), is_sure=is_sure)

    if isinstance(X, np.ndarray):
        if X.ndim != 2 and X.size:
            must = f"must be an array of {len(roles)} columns: {', '.join(roles)}."
            remedy = "Put the columns side by side: `np.column_stack`."
            raise DataError(must, found=f"shape {X.shape}", remedy=remedy, parameter=name)
        arrays = list(X.T) if X.ndim == 2 else [X.reshape(-1)] * len(roles)
        is_text = X.dtype.kind in "OUS"
        fields = [one.astype(object) if is_text else pa.array(np.ascontiguousarray(one)) for one in arrays]
    elif isinstance(X, Sequence) and not isinstance(X, bytes):
        is_line = [isinstance(line, (tuple, list, np.ndarray)) for line in X]
        width = len(X[0]) if is_line[:1] == [True] else len(roles)
        wrong = next((at for at, line in enumerate(X) if not is_line[at] or len(line) != width), None)
        if wrong is not None:
            must = f"Every line of {name} must have {width} fields: {', '.join(roles)}."
            found, where = repr(X[wrong])[:80], f"at position {wrong}"
            raise DataError(must, found=found, where=where, remedy="Fix or remove this line.", parameter=name)
        fields = [np.empty(len(X), dtype=object) for _ in range(width)]
        for place, column in enumerate(fields):
            column[:] = [line[place] for line in X]
    else:
        frame = open_table(X, ReadOptions())
        if frame is None:
            kinds = "a pandas, polars or Arrow frame, the path of a text or Parquet file, a list of tuples or an array"
            found = "None" if X is None else f"a {type(X).__name__}"
            raise DataError(f"must be {kinds}.", found=found, remedy="Convert it to one of these.", parameter=name)
        return ListTable(name, frame)
    table = Table(list(range(len(fields))), lambda at: [fields[one] for one in at], has_header=False, name=name)
    return ListTable(name, table, has_names=False)


def _seems_headed(sample: Sequence[Record]) -> bool:
    """Whether the first line holds names, though not the usual ones: texts above numbers, or unlike any below."""
    first, *below = sample
    columns = list(zip(*(record for record in below if len(record) == len(first)), strict=True))
    if not columns or any(map(is_missing, first)):
        return False
    of_numbers = [all(map(is_number, column)) for column in columns]
    if any(of_numbers):
        return not any(is_number(name) for name, are in zip(first, of_numbers, strict=True) if are)
    return not any(name in column for name, column in zip(first, columns, strict=True))


def _read_list(source: ListTable, columns: Mapping[str, Any], shared: Any) -> ListData:
    """Find the columns of a list, and read its ids and values."""
    table = source.table
    if not source.has_names:
        columns = {role: name for role, name in columns.items() if not isinstance(name, str)}
    elif "question" not in columns and shared in table.names:
        columns = {**columns, "question": shared}
    positions = column_positions(source.name, table.names, columns)
    names = {role: table.names[position] for role, position in positions.items()}
    table.read_columns(list(dict.fromkeys(names.values())))
    nouns = {role: "question" if role == "question" else "respondent" for role in names if role != "value"}
    ids = {role: _encode_ids(table, names[role], noun) for role, noun in nouns.items()}
    if table.is_text and table.has_header and not source.is_sure:
        texts = {role: one.labels for role, one in ids.items() if one.labels.dtype.kind == "O"}
        if any(names[role] in labels for role, labels in texts.items()):
            # the supposed header is an id further down: it is a line of the list
            again = open_file(table.files[0].path, ReadOptions(header=False))
            return _read_list(source._replace(table=again, is_sure=True), positions, None)

    def place(line: int) -> str:
        return table.place(line) if table.is_text else f"at position {line} of {source.name}"

    # values as floats, NaN where missing
    values = np.empty(0)
    if "value" in names:
        column = table.column(names["value"])
        try:
            if table.is_text:
                parsed = table.parser.parse(column, names["value"])
                table.parser.settle()
                if parsed.text is not None:
                    raise NotANumber(*parsed.text)
                values = parsed.values
            else:
                values = numbers(column.tolist()) if isinstance(column, np.ndarray) else to_floats(column)
        except NotANumber as error:
            must, found, where = "Answers must be numbers.", repr(error.field), place(error.position)
            remedy = f"{hint_about(error.field)}Write a number, or nothing if there is no answer."
            raise DataError(must, found=found, where=where, remedy=remedy, parameter=source.name) from None

    for role in ("question", "respondent"):
        if role in ids and (missing := ids[role].missing()).any():
            must, where = f"Every line of {source.name} must name a {role}.", place(int(np.argmax(missing)))
            remedy = "Fill it in, or drop the line."
            raise DataError(must, found="none", where=where, remedy=remedy, parameter=source.name)
    # a name that is no usual spelling may be an id of a file without a header
    described = {
        role: f"column {name!r}" if source.is_sure and isinstance(name, str) else f"column {positions[role] + 1}"
        for role, name in names.items()
    }
    return ListData(ids, values, place, described, table.parser.mark)


def _encode_ids(table: Table, name: Any, noun: str) -> Ids:
    """Codes and labels of the ids of a column."""
    column = table.column(name)
    if table.is_text:
        codes, labels, is_integer = encode_text(column)
        if not is_integer and labels.size and all(map(is_plain_integer, labels)):
            labels = exact_integers([int(label) for label in labels], noun)
        return Ids(codes, labels)
    if isinstance(column, np.ndarray):
        present = np.array([isinstance(one, str) or not is_missing(one) for one in column], dtype=bool)
        kept = column if present.all() else column[present]
        if len(kept) and set(map(type, kept)) == {float}:
            kept = pa.array(kept.astype(np.float64))
    else:
        present = ~column.is_null(nan_is_null=pa.types.is_floating(column.type)).to_numpy(zero_copy_only=False)
        kept = column if present.all() else column.filter(pa.array(present))
    if not isinstance(kept, np.ndarray) and pa.types.is_floating(kept.type) and len(kept):
        floats = kept.to_numpy() if isinstance(kept, pa.ChunkedArray) else kept.to_numpy(zero_copy_only=False)
        if ((floats == np.floor(floats)) & (np.abs(floats) < 2.0**53)).all():
            kept = pa.array(floats.astype(np.int64))  # integers become floats where one of them is missing
    codes, labels = encode_column(kept, noun, lambda line: f"at position {line}")
    if not present.all():
        kept_codes, codes = codes, np.full(present.size, NO_ID, dtype=np.int64)
        codes[present] = kept_codes
    return Ids(codes, labels)


def column_positions(list_name: str, names: Sequence[Any], columns: Mapping[str, Any]) -> dict[str, int]:
    """Position of the column of each role of a list, among the names of its columns.

    Columns given by name, in `columns`, come first, then the usual spellings; the other roles and columns go by their
    order.
    """
    roles, positions = ROLES[list_name], {}
    for role in roles:
        name = columns.get(role)
        if name is not None and name not in names:
            must = f"The column named as `{role}={name!r}` must be in the list {list_name}."
            found, remedy = f"only: {names_listed(names)}", "Name one of these, or rename the column."
            raise DataError(must, found=found, remedy=remedy, parameter=role)
        if name is not None:
            positions[role] = list(names).index(name)
    candidates = _candidates(list_name, names, positions)

    # two columns of values, or two spelled as one role while another has none: one may well be the other
    ambiguous = next((role for role, places in candidates.items() if len(places) > 1), None)
    empty = next((role for role, places in candidates.items() if not places), None)
    if ambiguous is not None and (empty is not None or ambiguous == "value"):
        first, second = (names[place] for place in sorted(candidates[ambiguous][:2]))
        lacking = "" if empty is None else f", and nothing that is headed as the {empty}"
        must = f"The list {list_name} must say which column holds what."
        found = f"{first!r} and {second!r}, which may both be the {ambiguous}{lacking}"
        remedy = f"Say which it is: `{ambiguous}={first!r}` or `{ambiguous}={second!r}`."
        raise DataError(must, found=found, remedy=remedy, parameter=ambiguous)

    positions |= {role: places[0] for role, places in candidates.items() if places}
    missing = [role for role in roles if role not in positions]
    free = [place for place in range(len(names)) if place not in positions.values()]
    if missing and len(free) > len(missing):
        free = [place for place in free if plain_spelling(names[place]) not in BESIDES]
    if missing and len(free) != len(missing):
        must = f"The list {list_name} must have {len(roles)} columns: {', '.join(roles)}."
        settings = ", ".join(f"`{role}=...`" for role in roles)
        remedy = f"Name the columns: {settings}; or check that the right list was passed."
        raise DataError(must, found=f"{len(names)}: {names_listed(names)}", remedy=remedy, parameter=list_name)
    return positions | dict(zip(missing, free, strict=False))


def _candidates(list_name: str, names: Sequence[Any], known: Mapping[str, int]) -> dict[str, list[int]]:
    """Positions of the columns that are spelled as each role not yet known, the most usual spelling first."""
    spellings, candidates = {}, {}
    for place, name in enumerate(names):
        if place not in known.values():
            text = str(name).strip()
            sign = {"+": "plus", "-": "minus"}.get(text[-1:], "")  # the paper's j+, j-
            spellings[place] = plain_spelling(text) + sign
    for role in ROLES[list_name]:
        if role not in known:
            rank = {word: position for position, word in enumerate(_usual_headers(role, len(names)))}
            matching = (place for place, spelling in spellings.items() if spelling in rank)
            candidates[role] = sorted(matching, key=lambda place: rank[spellings[place]])
    return candidates


def _usual_headers(role: str, width: int) -> list[str]:
    """Usual headers of a role in a table of so many columns; sides also as higher_user, user_higher."""
    if role == "value":
        usual = [*schema.VALUES, "x"]
    elif role in ("higher", "lower"):
        sides = HIGHER if role == "higher" else LOWER
        combined = (one for word in sides for noun in RESPONDENTS for one in (word + noun, noun + word))
        usual = id_headers([*sides, *combined])
    else:
        usual = id_headers(QUESTIONS if role == "question" else RESPONDENTS)
    usual = list(dict.fromkeys(usual))
    return usual if width <= schema.WIDEST_OF_LETTERS else schema.without_letters(usual)

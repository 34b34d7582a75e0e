"""The three lists of an uncoupled collection, read through `halfseen.io`: which columns hold what, ids and values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from halfseen.errors import DataError
from halfseen.io import schema
from halfseen.io.numbers import POINT, NotANumber, hint_about, is_missing, is_number, numbers
from halfseen.io.schema import BESIDES, ReadOptions, id_headers, names_listed, plain_spelling, words
from halfseen.io.sources import open_file, open_table
from halfseen.io.tables import Table, encode_column, encode_text, to_floats
from halfseen.io.text import Record
from halfseen.labels import Index, exact_integers, is_plain_integer

#: The roles of each list, in the order in which its columns stand where nothing else is known.
ROLES = {
    "asked": ("question", "respondent"),
    "answers": ("question", "value"),
    "comparisons": ("question", "higher", "lower"),
}
ORDERED = ("row", "column", "col")  # don't distinguish questions from respondents: these go by their order
QUESTIONS = words("question q topic query statement task prompt") + tuple(w for w in schema.COLUMNS if w not in ORDERED)
RESPONDENTS = words("respondent worker annotator employee panelist j") + tuple(
    w for w in schema.ROWS if w not in ORDERED
)
HIGHER = words("higher larger greater winner more plus better bigger high above older richer")
LOWER = words("lower smaller lesser loser less minus worse fewer low below younger poorer")
NOBODY = -1  # the code of a line without an id


class Ids(NamedTuple):
    """`labels[codes[line]]` is the id of a line; a line without an id has the code -1."""

    codes: np.ndarray
    labels: np.ndarray

    def among(self, known: np.ndarray, nowhere: int) -> np.ndarray:
        """Position of the id of each line among the known labels; -1 without an id, `nowhere` for an unknown one.

        A text that marks something missing is no id, unless somebody is called so.
        """
        positions = Index(known).find(self.labels)
        positions[positions < 0] = nowhere
        if self.labels.dtype.kind == "O":
            marks = [code for code in np.flatnonzero(positions == nowhere) if is_missing(self.labels[code])]
            positions[marks] = NOBODY
        return np.append(positions, NOBODY)[self.codes]

    def missing(self) -> np.ndarray:
        """Which lines have no id: nothing, an empty text, or a missing-value marker where all others are integers."""
        if self.labels.dtype.kind != "O":
            return self.codes == NOBODY
        marks = [code for code, label in enumerate(self.labels) if is_missing(label)]
        others = np.delete(self.labels, marks)
        if not all(text.removeprefix("-").isdecimal() for text in others):
            marks = [code for code in marks if not self.labels[code].strip()]
        return np.isin(self.codes, [NOBODY, *marks])


class Listing(NamedTuple):
    """A list as it was read: ids by role, values (of answers only), the place of a line in words, the column of each
    role in words, and the decimal mark."""

    ids: dict[str, Ids]
    values: np.ndarray
    place: Callable[[int], str]
    columns: dict[str, str]
    decimal: str = POINT

    @property
    def n_lines(self) -> int:
        return self.ids["question"].codes.size


class OpenList(NamedTuple):
    """A list as a table; `has_names` is False for arrays and tuples, `is_sure` if its header is known to be one."""

    what: str
    table: Table
    has_names: bool = True
    is_sure: bool = True


def read_lists(asked: Any, answers: Any, comparisons: Any, given: Mapping[str, Any]) -> dict[str, Listing]:
    """The lists by name; the one header that `asked` and `answers` share is the question by default."""
    lists = dict(zip(ROLES, (asked, answers, [] if comparisons is None else comparisons), strict=True))
    given = {role: name for role, name in given.items() if name is not None}
    sources = {what: _opened(what, one, list(given.values())) for what, one in lists.items()}
    for role, name in given.items():
        if isinstance(name, str) and not any(sources[what].has_names for what in ROLES if role in ROLES[what]):
            raise DataError(
                f"Names of columns must be those of a frame or a file. Found {role}={name!r} with lists or arrays, "
                "which have none. Leave it out, and put the columns in their order."
            )
    names = [name for name in sources["asked"].table.names if isinstance(name, str)]
    shared = [name for name in names if name in sources["answers"].table.names and plain_spelling(name) not in BESIDES]
    return {what: _read(one, given, shared[0] if len(shared) == 1 else None) for what, one in sources.items()}


def _opened(what: str, X: Any, given: Sequence[Any]) -> OpenList:
    """A list, ready to be read; a line with one of the given names is a header."""
    if isinstance(X, (str, os.PathLike)):
        table = open_file(X, ReadOptions(header=True))
        if not table.is_text:
            return OpenList(what, table)
        sample = table.files[0].sample
        by_position = any(isinstance(name, int) for name in given)
        is_sure = any(_candidates(what, sample[0], {}).values()) or any(name in sample[0] for name in given)
        has_header = is_sure or (not by_position and _seems_headed(sample))
        options = ReadOptions(header=has_header, columns=(0, 1) if by_position else None)
        return OpenList(what, open_file(X, options), is_sure=is_sure)
    if isinstance(X, np.ndarray):
        if X.ndim != 2 and X.size:
            raise DataError(
                f"{what} must be an array of {len(ROLES[what])} columns: {', '.join(ROLES[what])}. Found shape "
                f"{X.shape}. Put the columns side by side: np.column_stack."
            )
        arrays = list(X.T) if X.ndim == 2 else [X.reshape(-1)] * len(ROLES[what])
        is_text = X.dtype.kind in "OUS"
        fields = [one.astype(object) if is_text else pa.array(np.ascontiguousarray(one)) for one in arrays]
    elif isinstance(X, Sequence) and not isinstance(X, bytes):
        fields = _columns_of_tuples(what, X)
    else:
        table_or_none = open_table(X, ReadOptions())
        if table_or_none is None:
            raise DataError(
                f"{what} must be a pandas, polars or Arrow frame, the path of a text or Parquet file, a list of tuples "
                f"or an array. Found {'None' if X is None else f'a {type(X).__name__}'}. Convert it to one of these."
            )
        return OpenList(what, table_or_none)
    table = Table(list(range(len(fields))), lambda at: [fields[one] for one in at], has_header=False, name=what)
    return OpenList(what, table, has_names=False)


def _columns_of_tuples(what: str, lines: Sequence[Any]) -> list[np.ndarray]:
    is_line = [isinstance(line, (tuple, list, np.ndarray)) for line in lines]
    width = len(lines[0]) if is_line[:1] == [True] else len(ROLES[what])
    wrong = next((at for at, line in enumerate(lines) if not is_line[at] or len(line) != width), None)
    if wrong is not None:
        raise DataError(
            f"Every line of {what} must have {width} fields: {', '.join(ROLES[what])}. Found "
            f"{repr(lines[wrong])[:80]} at position {wrong}. Fix or remove this line."
        )
    columns = [np.empty(len(lines), dtype=object) for _ in range(width)]
    for place, column in enumerate(columns):
        column[:] = [line[place] for line in lines]
    return columns


def _seems_headed(sample: Sequence[Record]) -> bool:
    """Whether the first line holds names, though not the usual ones: texts above numbers, or nothing like below."""
    first, *below = sample
    columns = list(zip(*(record for record in below if len(record) == len(first)), strict=True))
    if not columns or any(map(is_missing, first)):
        return False
    of_numbers = [all(map(is_number, column)) for column in columns]
    if any(of_numbers):
        return not any(is_number(name) for name, are in zip(first, of_numbers, strict=True) if are)
    return not any(name in column for name, column in zip(first, columns, strict=True))


def _read(source: OpenList, given: Mapping[str, Any], shared: Any) -> Listing:
    what, table = source.what, source.table
    if not source.has_names:
        given = {role: name for role, name in given.items() if not isinstance(name, str)}
    elif "question" not in given and shared in table.names:
        given = {**given, "question": shared}
    places = places_of(what, table.names, given)
    names = {role: table.names[place] for role, place in places.items()}
    table.read_columns(list(dict.fromkeys(names.values())))
    nouns = {role: "question" if role == "question" else "respondent" for role in names if role != "value"}
    ids = {role: _ids(table, names[role], noun) for role, noun in nouns.items()}
    if table.is_text and table.has_header and not source.is_sure:
        texts = {role: one.labels for role, one in ids.items() if one.labels.dtype.kind == "O"}
        if any(names[role] in labels for role, labels in texts.items()):
            # the supposed header is an id further down: it is a line of the list
            again = open_file(table.files[0].path, ReadOptions(header=False))
            return _read(source._replace(table=again, is_sure=True), places, None)
    # a name that is no usual spelling may be an id of a file without a header
    columns = {
        role: f"column {name!r}" if source.is_sure and isinstance(name, str) else f"column {places[role] + 1}"
        for role, name in names.items()
    }

    def place_of(line: int) -> str:
        return table.place(line) if table.is_text else f"at position {line} of {what}"

    listing = Listing(ids, _values(table, names.get("value"), place_of), place_of, columns, table.parser.mark)
    for role in ("question", "respondent"):
        if role in ids and (missing := ids[role].missing()).any():
            raise DataError(
                f"Every line of {what} must name a {role}. Found none {place_of(int(np.argmax(missing)))}. Fill it in, "
                "or drop the line."
            )
    return listing


def _ids(table: Table, name: Any, noun: str) -> Ids:
    """The ids of a column; a line without one has the code -1."""
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
        kept_codes, codes = codes, np.full(present.size, NOBODY, dtype=np.int64)
        codes[present] = kept_codes
    return Ids(codes, labels)


def _values(table: Table, name: Any, place: Callable[[int], str]) -> np.ndarray:
    """The answers as numbers, NaN where missing."""
    if name is None:
        return np.empty(0)
    column = table.column(name)
    try:
        if table.is_text:
            parsed = table.parser.parse(column, name)
            table.parser.settle()
            if parsed.text is not None:
                raise NotANumber(*parsed.text)
            return parsed.values
        return numbers(column.tolist()) if isinstance(column, np.ndarray) else to_floats(column)
    except NotANumber as error:
        raise DataError(
            f"Answers must be numbers. Found {error.field!r} {place(error.position)}. {hint_about(error.field)}Write a "
            "number, or nothing if there is no answer."
        ) from None


def places_of(what: str, names: Sequence[Any], given: Mapping[str, Any]) -> dict[str, int]:
    """The position of the column of each role in the list `what`, among columns of these names.

    A name given for a role is taken; then the usual spellings; the roles and columns that remain go by their order.
    """
    roles, found = ROLES[what], {}
    for role in roles:
        name = given.get(role)
        if name is not None and name not in names:
            raise DataError(
                f"The column named as {role}={name!r} must be in the list {what}. Found only: {names_listed(names)}. "
                "Name one of these, or rename the column."
            )
        if name is not None:
            found[role] = list(names).index(name)
    candidates = _candidates(what, names, found)

    # two columns of values, or two spelled as one role while another has none: one may well be the other
    torn = next((role for role, places in candidates.items() if len(places) > 1), None)
    empty = next((role for role, places in candidates.items() if not places), None)
    if torn is not None and (empty is not None or torn == "value"):
        first, second = (names[place] for place in sorted(candidates[torn][:2]))
        lacks = "" if empty is None else f", and nothing that is headed as the {empty}"
        raise DataError(
            f"The list {what} must say which column holds what. Found {first!r} and {second!r}, which may both be the "
            f"{torn}{lacks}. Say which it is: {torn}={first!r} or {torn}={second!r}."
        )

    found |= {role: places[0] for role, places in candidates.items() if places}
    lacking = [role for role in roles if role not in found]
    free = [place for place in range(len(names)) if place not in found.values()]
    if lacking and len(free) > len(lacking):
        free = [place for place in free if plain_spelling(names[place]) not in BESIDES]
    if lacking and len(free) != len(lacking):
        raise DataError(
            f"The list {what} must have {len(roles)} columns: {', '.join(roles)}. Found {len(names)}: "
            f"{names_listed(names)}. "
            f"Name the columns: {', '.join(f'{role}=...' for role in roles)}; or check that the right list was passed."
        )
    return found | dict(zip(lacking, free, strict=False))


def _candidates(what: str, names: Sequence[Any], found: Mapping[str, int]) -> dict[str, list[int]]:
    """The columns that are spelled as each role that was not found yet, the usual spelling first."""
    free, candidates = {}, {}
    for place, name in enumerate(names):
        if place not in found.values():
            text = str(name).strip()
            free[place] = plain_spelling(text) + {"+": "plus", "-": "minus"}.get(text[-1:], "")  # the paper's j+, j-
    for role in ROLES[what]:
        if role not in found:
            rank = {word: position for position, word in enumerate(_spellings(role, len(names)))}
            candidates[role] = sorted((place for place in free if free[place] in rank), key=lambda it: rank[free[it]])
    return candidates


def _spellings(role: str, width: int) -> list[str]:
    """The usual headers of a role in a table of so many columns; sides also as higher_user, user_higher."""
    if role == "value":
        usual = [*schema.VALUES, "x"]
    elif role in ("higher", "lower"):
        sides = HIGHER if role == "higher" else LOWER
        usual = id_headers(
            [*sides, *(one for word in sides for who in RESPONDENTS for one in (word + who, who + word))]
        )
    else:
        usual = id_headers(QUESTIONS if role == "question" else RESPONDENTS)
    usual = list(dict.fromkeys(usual))
    return usual if width <= schema.WIDEST_OF_LETTERS else schema.without_letters(usual)

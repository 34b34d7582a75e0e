"""Numbers as text files write them: with decimal points or with decimal commas, one of the two throughout a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen.data.numerals import is_missing, is_number, numbers
from halfseen.data.textfiles import TextFile
from halfseen.errors import DataError

POINT, COMMA = ".", ","
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")
#: 1,234 is a thousand and more in some countries, one and a bit in others.
DOUBTFUL = re.compile(r"\s*[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*")
#: 1.234,5 and 1,234.5 and 1,234,567 and 1.234.567
THOUSANDS = re.compile(
    r"\s*[+-]?[0-9]{1,3}((,[0-9]{3})+\.[0-9]*|(\.[0-9]{3})+,[0-9]*|(,[0-9]{3}){2,}|(\.[0-9]{3}){2,})\s*"
)
#: Where fields are parted by semicolons, it is because commas are needed for numbers.
OF_COMMAS = ";"


class Numeral(NamedTuple):
    """A number as it is written, the record of the file that it stands in, and the column."""

    field: str
    record: int
    column: Any


class Decimals:
    """The numbers of one text file, column by column; it remembers how they are written."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.first: dict[str, Numeral] = {}  # the first number with each decimal mark
        self.in_doubt = False

    @property
    def mark(self) -> str:
        """The decimal mark; a point where no number has any."""
        return COMMA if COMMA in self.first else POINT

    def numbers(self, fields: Sequence[str], record: int, column: Any) -> np.ndarray:
        """Fields as floats, NaN where missing; the first of them is of the file's `record`.

        NotANumber names the first that is neither. Two kinds of decimal marks are refused."""
        text = "".join(fields)
        has_commas = COMMA in text
        if POINT in text and POINT not in self.first:
            self._remember(POINT, fields, record, column)
        if has_commas and (COMMA not in self.first or self.in_doubt):
            self._remember(COMMA, fields, record, column)
        if len(self.first) > 1:
            raise self._two_marks()
        return numbers([*map(pointed, fields)] if has_commas else fields)

    def _remember(self, mark: str, fields: Sequence[str], record: int, column: Any) -> None:
        """Keep the first number with the mark; commas are in doubt as long as all of them may part thousands."""
        for position, field in enumerate(fields):
            if mark in field and is_numeral(field):
                self.first.setdefault(mark, Numeral(field.strip(), record + position, column))
                self.in_doubt = mark == COMMA and self.file.delimiter != OF_COMMAS and bool(DOUBTFUL.fullmatch(field))
                if not self.in_doubt:
                    return

    def settle(self) -> None:
        """After the last number: refuse commas of which nobody can know what they mean."""
        if self.in_doubt:
            field = self.first[COMMA].field
            raise DataError(
                f"A comma in a number must be known to be its decimal mark. Found {self._place(COMMA)}, which may also "
                f"be a mark between thousands, and no number that tells. Write {field.replace(COMMA, POINT)} or "
                f"{field.replace(COMMA, '')}, or part the fields by semicolons: commas are decimal marks there."
            )

    def _two_marks(self) -> DataError:
        return DataError(
            f"Numbers must have one decimal mark throughout a file. Found {self._place(COMMA)}, and "
            f"{self._place(POINT)}. Write all with points or all with commas; marks between thousands are not read."
        )

    def _place(self, mark: str) -> str:
        field, record, column = self.first[mark]
        where = f"on line {self.file.line_of(record)} of {self.file.path.name}"
        return f"{field!r} {where}, column {column!r}"


def pointed(field: str) -> str:
    """A number with a decimal comma as it is with a point; anything else as it is."""
    return field.replace(COMMA, POINT) if COMMA in field and DECIMAL_COMMA.fullmatch(field) else field


def is_numeral(field: str) -> bool:
    """Whether a text is a number with either mark, and not missing."""
    return is_number(pointed(field))


def all_numerals(fields: Iterable[str]) -> bool:
    """Whether every text is meant as a number, be it with marks between thousands, or missing, and one is a number."""
    found = False
    for field in fields:
        if is_numeral(field) or THOUSANDS.fullmatch(field):
            found = True
        elif not is_missing(field):
            return False
    return found


def mark_of(columns: Iterable[Sequence[Any]]) -> str:
    """The decimal mark of columns as they were read: a comma if there are numbers with it, else a point."""
    for column in columns:
        texts = [field for field in column if isinstance(field, str)]
        if any(COMMA in field and is_numeral(field) for field in texts) and all_numerals(texts):
            return COMMA
    return POINT


def seems_numeric(file: TextFile, position: int) -> bool:
    """Whether a column has numbers in the first lines below the header."""
    return any(is_numeral(record[position]) for record in file.sample[1:] if len(record) > position)


def hint_about(field: Any) -> str:
    """What to do about a text that would be a number, were it not for its marks; empty for others."""
    if isinstance(field, str) and THOUSANDS.fullmatch(field):
        return "It seems to have marks between thousands: leave these out. "
    if isinstance(field, str) and DECIMAL_COMMA.fullmatch(field):
        return f"It seems to have a decimal comma: make it {pointed(field).strip()}. "
    return ""

"""Text as numbers: missing-value markers, decimal marks, thousands separators, percent signs, ordered levels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.errors import DataError, ParameterError
from halfseen.labels import NULL_TYPES, quoted, text_array

#: Missing-value markers, compared without case and surrounding blanks; `na_values` adds to them.
MISSING = frozenset({"", "na", "n/a", "n.a.", "nan", "null", "none", "?", "-", "--", ".", "#n/a", "<na>"})
POINT, COMMA = ".", ","
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
#: 1,234 and 1.234 are a thousand and more in some countries, one and a bit in others.
DOUBTFUL = {COMMA: re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}"), POINT: re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")}
#: 1.234,5 and 1,234.5 and 1,234,567 and 1.234.567
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}((,[0-9]{3})+\.[0-9]*|(\.[0-9]{3})+,[0-9]*|(,[0-9]{3}){2,}|(\.[0-9]{3}){2,})")
#: Asks for the order of a frame's ordered categories, where it has any.
ORDERED = "ordered"
#: What the option `levels` takes: texts from the lowest to the highest, "ordered", or None.
Levels = Sequence[str] | str | None


class NotANumber(ValueError):
    """A field that is neither a number nor missing, and its position."""

    def __init__(self, position: int, field: Any) -> None:
        super().__init__(position, field)
        self.position, self.field = position, field


def is_missing(field: object, markers: frozenset[str] = MISSING) -> bool:
    """Whether a field is a missing-value marker, None or NaN."""
    if isinstance(field, str):
        return field.strip().lower() in markers
    return type(field).__name__ in NULL_TYPES or (isinstance(field, (float, np.floating)) and field != field)


def is_number(text: str) -> bool:
    """Whether a text is a number, with a decimal point or a decimal comma; "nan" marks a missing one."""
    text = text.strip()
    try:
        value = _float(text.replace(COMMA, POINT) if DECIMAL_COMMA.fullmatch(text) else text)
    except ValueError:
        return False
    return value == value


def is_amount(text: str) -> bool:
    """Whether a text is meant as a number: also with thousands separators or a percent sign."""
    text = text.strip().removesuffix("%").rstrip()
    return is_number(text) or THOUSANDS.fullmatch(text) is not None


def _float(text: str) -> float:
    """ASCII digits only, and no underscores: Python would read 1_2 as 12, which is more often an id."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    value = float(text)
    if value == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise ValueError(text)  # 1e-400 is not 0
    return value


def holds_codes(column: pa.ChunkedArray, markers: frozenset[str] = MISSING) -> bool:
    """Whether a string column has nothing but digits, some padded with zeros: 01013 is a code, not an amount."""
    if not pc.any(pc.match_substring_regex(column, r"^\s*0[0-9]+\s*$")).as_py():
        return False
    texts = (text.strip() for text in pc.unique(column).to_pylist())
    return all(text.isdecimal() or text.lower() in markers for text in texts)


def numbers(fields: Sequence[Any], levels: Sequence[str] = ()) -> np.ndarray:
    """Python objects as floats, NaN where missing; NotANumber names the first that is neither.

    The names of `levels` stand for 1, 2, ...; where there are any, text must be one of them.
    """
    number_of = {name: float(place) for place, name in enumerate(levels, start=1)}
    values = np.empty(len(fields))
    for position, one in enumerate(fields):
        text = one.strip() if isinstance(one, str) else None
        try:
            if text in number_of:  # first of all: a level may be called "none"
                values[position] = number_of[text]
            elif is_missing(one):
                values[position] = np.nan
            elif levels and not isinstance(one, Real):
                raise ValueError(one)
            else:
                values[position] = float(one) if text is None else _float(text)
        except (ValueError, TypeError, OverflowError):  # the last for integers beyond all floats
            raise NotANumber(position, one) from None
    return values


@dataclass(frozen=True)
class Scale:
    """Names of ordered levels from the lowest to the highest, which stand for 1, 2, ...; without names, plain numbers.

    Numbers beside or instead of the names stand for themselves.
    """

    names: tuple[str, ...] = ()
    #: Whether texts would be accepted, if only their order were known.
    ordered: bool = False

    @classmethod
    def of(cls, levels: Levels) -> Scale:
        """From the `levels` of `observe`: None, "ordered", or a list of texts."""
        if levels is None or (isinstance(levels, str) and levels == ORDERED):
            return cls(ordered=levels is not None)
        names = [] if isinstance(levels, str) else list(levels)
        different = len(set(map(str, names))) == len(names)
        if not names or not different or not all(isinstance(name, str) and name.strip() for name in names):
            must = f'must be None, "{ORDERED}", or different texts from the lowest to the highest.'
            remedy = 'Give such a list: `levels=["bad", "fair", "good"]`.'
            raise ParameterError(must, parameter="levels", found=repr(levels), remedy=remedy)
        return cls(tuple(str(name).strip() for name in names))

    def numbers(self, fields: Sequence[Any]) -> np.ndarray:
        """Python objects as floats, see `numbers`."""
        return numbers(fields, self.names)

    @property
    def labels(self) -> np.ndarray | None:
        """The names as an array; None without names."""
        return text_array(self.names) if self.names else None

    @property
    def must(self) -> str:
        """What must hold of a value, as a sentence."""
        if self.names:
            return f"Values must be among the levels {', '.join(map(quoted, self.names))}."
        return f"Values must be numbers{', or texts whose order is given' if self.ordered else ''}."

    @property
    def hint(self) -> str:
        """Remedy for a value of another kind, with a blank at its end; may be empty."""
        if self.names:
            return "Correct it, or add it to `levels`. "
        return "List the texts from the lowest to the highest in `levels`. " if self.ordered else ""

    def advice(self, field: object) -> str:
        """The hint; for a number with unexpected marks, one about these."""
        return ("" if self.names else hint_about(field)) or self.hint

    def error(self, field: object, where: str, remedy: str, advice: str | None = None) -> DataError:
        """The error for a field that is neither a number nor a level."""
        advice = self.advice(field) if advice is None else advice
        return DataError(self.must, found=repr(field), where=where, remedy=advice + remedy)


NUMBERS = Scale()


def hint_about(field: object) -> str:
    """Remedy for a text that would be a number but for its marks, with a blank at its end; empty for others."""
    text = field.strip() if isinstance(field, str) else ""
    if THOUSANDS.fullmatch(text):
        mark = next(char for char in text if char in ".,")
        return f'It seems to have thousands separators: pass `thousands="{mark}"`. '
    if DECIMAL_COMMA.fullmatch(text):
        return 'It seems to have a decimal comma: pass `decimal=","`. '
    return ""


@dataclass
class Parsed:
    """A column of text as numbers: NaN where missing, and where it holds other text."""

    values: np.ndarray
    n_numbers: int
    #: Rows that hold text which is no number, and the first of them.
    n_texts: int = 0
    text: tuple[int, str] | None = None
    percent: bool = False


@dataclass
class NumberParser:
    """Parses the columns of one text table, which have one decimal mark in common.

    `place(row, column)` names a field in messages. Marks that are not given by `decimal` and `thousands` are inferred;
    what could be read in two ways is refused.
    """

    place: Callable[[int, Any], str]
    separator: str = COMMA
    decimal: str | None = None
    thousands: str | None = None
    markers: frozenset[str] = MISSING
    #: The first number with each decimal mark: text, row, column.
    first: dict[str, tuple[str, int, Any]] = field(default_factory=dict)
    #: The mark of which all numbers so far may also have been thousands separators.
    doubt: str | None = None
    with_points: list[tuple[pa.ChunkedArray, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, mark in (("decimal", self.decimal), ("thousands", self.thousands)):
            if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or mark.isalnum()):
                raise ParameterError("must be a single mark, such as ',' or '.'.", parameter=name, found=repr(mark))
        if self.thousands is not None:
            self.decimal = self.decimal or (COMMA if self.thousands == POINT else POINT)
        if self.decimal is not None and self.decimal == self.thousands:
            must = "`decimal` and `thousands` must be different marks."
            raise ParameterError(must, parameter="thousands", found=f"{self.decimal!r} for both")

    @property
    def mark(self) -> str:
        """The decimal mark; a point where no number has any."""
        return self.decimal or (COMMA if COMMA in self.first else POINT)

    def parse(self, column: pa.ChunkedArray, name: Any, scale: Scale = NUMBERS) -> Parsed:
        """Parse a string column."""
        plain = self.decimal in (None, POINT) and self.thousands is None and COMMA not in self.first
        if plain and not scale.names and (self.decimal or self.separator != ";"):
            parsed = self._cast(column)
            if parsed is not None:
                self.with_points.append((column, name))
                return parsed
        if not len(column):
            return Parsed(np.empty(0), 0)
        encoded = column.dictionary_encode().combine_chunks()
        texts, codes = encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        number_of = {level: float(place) for place, level in enumerate(scale.names, start=1)}
        value_of = np.full(len(texts) + 1, np.nan)  # the last for nulls
        is_text = np.zeros(len(texts) + 1, dtype=bool)
        percent: list[int] = []
        plain_numbers: list[int] = []
        for code, text in enumerate(map(str.strip, texts)):
            if text in number_of:
                value_of[code] = number_of[text]
            elif text.lower() not in self.markers:
                body = text.removesuffix("%").rstrip()
                try:
                    value_of[code] = self._number(body, codes, code, name)
                    (plain_numbers if body == text else percent).append(code)
                except ValueError:
                    is_text[code] = True
        if len(self.first) > 1 and self.decimal is None:
            raise self._two_marks()
        if percent and plain_numbers:
            with_sign, without = (int(np.argmax(codes == group[0])) for group in (percent, plain_numbers))
            must = "A column must have percent signs throughout, or none."
            found = f"{texts[percent[0]]!r} {self.place(with_sign, name)}, and {texts[plain_numbers[0]]!r}"
            raise DataError(must, found=found, where=self.place(without, name), remedy="Write all of them alike.")
        values, text_rows = value_of[codes], np.flatnonzero(is_text[codes])
        n_numbers = int(np.count_nonzero(~np.isnan(values)))
        first_text = (int(text_rows[0]), texts[codes[text_rows[0]]]) if text_rows.size else None
        return Parsed(values, n_numbers, text_rows.size, first_text, bool(percent))

    def _cast(self, column: Any) -> Parsed | None:
        """Parse with Arrow, fast, numbers with points and the usual markers; None if the column has others."""
        if any(map(is_number, self.markers)):  # -99 may be a marker, and must not be read as a number
            return None
        for marked in (False, True):
            try:
                # Arrow reads "nan" and "inf" too: the one is a marker, the other refused with the values.
                if marked:
                    column = pc.if_else(pc.is_in(column, pa.array(_spellings(self.markers), column.type)), None, column)
                values = pc.cast(column, pa.float64())
            except pa.ArrowInvalid:
                continue
            numpy = values.to_numpy()
            zeros = numpy == 0
            texts = pc.unique(column.filter(pa.array(zeros))).to_pylist() if zeros.any() else []
            if any(re.search("[1-9]", text.lower().partition("e")[0]) for text in texts):
                return None  # 1e-400 is not 0
            return Parsed(numpy, int(np.count_nonzero(~np.isnan(numpy))))
        return None

    def _number(self, text: str, codes: np.ndarray, code: int, name: Any) -> float:
        if self.thousands is not None:
            mark, point = re.escape(self.thousands), re.escape(self.decimal or POINT)
            if self.thousands in text and not re.fullmatch(
                rf"[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({point}[0-9]*)?", text
            ):
                raise ValueError(text)
            text = text.replace(self.thousands, "")
        if self.decimal is not None:
            if self.decimal != POINT and POINT in text:
                raise ValueError(text)
            return _float(text.replace(self.decimal, POINT))
        has_comma = DECIMAL_COMMA.fullmatch(text) is not None
        value = _float(text.replace(COMMA, POINT) if has_comma else text)
        if has_comma or POINT in text:
            mark = COMMA if has_comma else POINT
            in_doubt = (mark == POINT) == (self.separator == ";") and DOUBTFUL[mark].fullmatch(text) is not None
            if mark not in self.first:
                self.first[mark] = (text, int(np.argmax(codes == code)), name)
                self.doubt = mark if in_doubt else None
            elif not in_doubt:
                self.doubt = None
        return value

    def settle(self) -> None:
        """After the last column, refuse marks that may be decimal marks or thousands separators."""
        if COMMA in self.first and POINT not in self.first and self.decimal is None:
            for column, name in self.with_points:  # columns that went the fast way, before the first comma was met
                rows = np.flatnonzero(pc.match_substring(column, POINT).to_numpy())
                row = next((row for row in rows.tolist() if not is_missing(column[row].as_py(), self.markers)), None)
                if row is not None:
                    self.first[POINT] = (column[row].as_py(), row, name)
                    raise self._two_marks()
        if self.doubt is not None:
            text, *where = self.first[self.doubt]
            kind = "point" if self.doubt == POINT else "comma"
            must = f"A {kind} in a number must be known to be its decimal mark."
            found = (
                f"{text!r} {self.place(*where)}, which may also be a thousands separator, and no number that decides it"
            )
            remedy = f"Pass `decimal={self.doubt!r}` or `thousands={self.doubt!r}`."
            raise DataError(must, found=found, remedy=remedy, parameter="decimal")

    def _two_marks(self) -> DataError:
        (comma, *at_comma), (point, *at_point) = self.first[COMMA], self.first[POINT]
        must = "Numbers must have one decimal mark throughout a file."
        found, where = f"{comma!r} {self.place(*at_comma)}, and {point!r}", self.place(*at_point)
        remedy = "Pass `decimal` and `thousands` to say which is which, or write all alike."
        return DataError(must, found=found, where=where, remedy=remedy, parameter="decimal")


@cache
def _spellings(markers: frozenset[str]) -> list[str]:
    """Markers as they are mostly written, for exact comparison; other spellings are met in the careful way."""
    return sorted({spelling for one in markers for spelling in (one, one.upper(), one.capitalize(), "NaN")})

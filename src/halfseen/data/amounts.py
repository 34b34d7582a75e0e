"""The values and weights of one text file; what is neither number nor level is refused with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen.data.decimals import Decimals
from halfseen.data.headers import GENERIC_LINE
from halfseen.data.numerals import NotANumber
from halfseen.data.scales import Scale
from halfseen.data.textfiles import TextFile
from halfseen.errors import DataError


class Amounts:
    """Reads fields as numbers, or as the texts of a scale; `advised` says how the columns might be named."""

    def __init__(self, file: TextFile, advised: str = GENERIC_LINE) -> None:
        self.file, self.advised = file, advised
        self.decimals = Decimals(file)

    def read(self, fields: Sequence[str], record: int, column: Any, scale: Scale) -> np.ndarray:
        """Fields of a column as floats, NaN where missing; the first of them is of the file's `record`."""
        try:
            return scale.numbers(fields) if scale.names else self.decimals.numbers(fields, record, column)
        except NotANumber as error:
            raise self._no_amount(error.field, record + error.position, column, scale) from None

    def _no_amount(self, field: str, record: int, column: Any, scale: Scale) -> DataError:
        place = f"on line {self.file.line_of(record)} of {self.file.path.name}, column {column!r}"
        write = "Leave" if scale.names else "Write a number, leave"
        return DataError(
            f"{scale.must} Found {field!r} {place}. {scale.advice(field)}{write} the field empty if it is unknown, "
            f"drop the column, or say which columns to read: {self.advised}."
        )

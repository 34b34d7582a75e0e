"""A list of an uncoupled collection in a text file, read once, in chunks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from halfseen.data.decimals import Decimals, is_numeral
from halfseen.data.longtext import IdColumn, NumberColumn
from halfseen.data.numerals import NotANumber, is_missing
from halfseen.data.textfiles import Record, TextFile, read_text
from halfseen.data.uncoupled.ids import Ids
from halfseen.data.uncoupled.listings import Listing, not_a_number
from halfseen.data.uncoupled.roles import noun_of, speaks


class FileList:
    """A list that is a text file; without a header line its columns are named 0, 1, ..."""

    def __init__(self, what: str, path: Path, given: Collection[Any]) -> None:
        self.what, self.path = what, path
        sample = read_text(path, lambda file: file.sample)
        by_position = any(isinstance(name, int) for name in given)
        self.is_headed = speaks(what, sample[0]) or any(name in sample[0] for name in given)
        self.has_header = self.is_headed or (not by_position and seems_headed(sample))
        self.names: Sequence[Any] = sample[0] if self.has_header and not by_position else range(len(sample[0]))

    def read(self, places: Mapping[str, int]) -> Listing:
        listing = read_text(self.path, lambda file: self._read(file, places))
        if self.has_header and not self.is_headed and self._comes_again(listing, places):
            self.has_header = False
            return read_text(self.path, lambda file: self._read(file, places))
        return listing

    def _comes_again(self, listing: Listing, places: Mapping[str, int]) -> bool:
        """Whether a name that was taken for a header is an id below, which makes the first line one of the list."""
        texts = {role: ids.labels for role, ids in listing.ids.items() if ids.labels.dtype.kind == "O"}
        return any(self.names[places[role]] in labels for role, labels in texts.items())

    def _read(self, file: TextFile, places: Mapping[str, int]) -> Listing:
        columns: dict[str, Any] = {role: IdColumn(noun_of(role)) for role in places}
        decimals = Decimals(file)
        values = NumberColumn(
            partial(decimals.numbers, column=self.names[places["value"]] if "value" in places else "")
        )
        if "value" in places:
            columns["value"] = values
        done = 0
        for chunk in file.chunks(self.has_header):
            fields = list(zip(*chunk, strict=True))
            for role, place in places.items():
                try:
                    columns[role].add([field.strip() for field in fields[place]], done + self.has_header)
                except NotANumber as error:
                    raise not_a_number(error.field, self._place(done + error.position)) from None
            done += len(chunk)
        decimals.settle()
        ids = {role: Ids(column.codes(), column.labels()) for role, column in columns.items() if role != "value"}
        return Listing(ids, values.values(), self._place, decimals.mark)

    def _place(self, line: int) -> str:
        number = read_text(self.path, lambda file: file.line_of(line + self.has_header))
        return f"on line {number} of {self.path.name}"


def seems_headed(sample: Sequence[Record]) -> bool:
    """Whether the first line holds names, though not the usual ones: texts above numbers, or nothing like below."""
    first, *below = sample
    columns = list(zip(*(record for record in below if len(record) == len(first)), strict=True))
    if not columns or any(map(is_missing, first)):
        return False
    of_numbers = [all(map(is_numeral, column)) for column in columns]
    if any(of_numbers):
        return not any(is_numeral(name) for name, numbers in zip(first, of_numbers, strict=True) if numbers)
    return not any(name in column for name, column in zip(first, columns, strict=True))

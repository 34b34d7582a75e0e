"""Wide text files: one row of the matrix a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen.data.arrays import dense_cells
from halfseen.data.frames import weights_by_name
from halfseen.data.headers import heads_row_ids
from halfseen.data.labels import labels_of_text, text_array
from halfseen.data.longtext import not_a_number
from halfseen.data.numerals import NotANumber, are_whole_ids, is_missing, is_number
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading
from halfseen.data.scales import Scale
from halfseen.data.textfiles import TextFile


def read_wide(file: TextFile, names: Sequence[Any], has_header: bool, how: Reading) -> Observed:
    """The cells of a wide file.

    A first column names the rows if it has no header, a text of its own on every line, or a whole number of its own
    under a header of row ids.
    """
    how.refuse_weight_name()
    leading, array = _read_columns(file, names, has_header, how.scale)
    row_labels = None
    is_fitted = has_header and how.fits_column(names[0])
    if names[0] == "" or _names_rows(leading) or (not is_fitted and holds_row_ids(names, leading)):
        row_labels, names = labels_of_text(leading, "row"), names[1:]
    else:
        array = np.column_stack([_as_floats(file, [leading], int(has_header), names[:1], how.scale), array])
    column_labels = text_array(names) if has_header else None
    weights = how.cell_weight if column_labels is None else weights_by_name(how, names, row_labels)
    cells = dense_cells(array, weights)
    return how.observed(cells, array.shape, row_labels, column_labels, zeros="drop")


def _read_columns(file: TextFile, names: Sequence[Any], has_header: bool, scale: Scale) -> tuple[list[str], np.ndarray]:
    """The first column as text, because it may name the rows, and all others as numbers."""
    leading: list[str] = []
    blocks = [np.empty((0, file.width - 1))]
    for chunk in file.chunks(has_header):
        first, *others = zip(*chunk, strict=True)
        block = _as_floats(file, others, has_header + len(leading), names[1:], scale)
        blocks.append(block.reshape(len(chunk), file.width - 1))
        leading.extend(first)
    return leading, np.concatenate(blocks)


def _as_floats(
    file: TextFile, columns: Sequence[Sequence[str]], first_record: int, names: Sequence[Any], scale: Scale
) -> np.ndarray:
    """Columns of text side by side as numbers; the first of their fields are of the file's record `first_record`."""
    floats = []
    for fields, name in zip(columns, names, strict=True):
        try:
            floats.append(scale.numbers(fields))
        except NotANumber as error:
            raise not_a_number(file, first_record + error.position, error.field, name, scale) from None
    return np.column_stack(floats) if floats else np.empty(0)


def holds_row_ids(names: Sequence[Any], leading: Sequence[Any]) -> bool:
    """Whether the first of several columns is headed as ids of rows are, and holds different whole numbers."""
    return len(names) > 1 and heads_row_ids(names[0]) and are_whole_ids(leading)


def _names_rows(leading: list[str]) -> bool:
    """Whether there is text among the fields, and no two are the same."""
    is_text = any(not is_missing(field) and not is_number(field) for field in leading)
    return is_text and len(set(leading)) == len(leading)

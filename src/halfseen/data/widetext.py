"""Wide text files: one row of the matrix a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.data.accounts import Account, named_rows
from halfseen.data.amounts import Amounts
from halfseen.data.arrays import dense_cells
from halfseen.data.decimals import is_numeral, seems_numeric
from halfseen.data.frames import how_if_long, weights_by_name
from halfseen.data.headers import heads_row_ids, likely_long, line_of_columns
from halfseen.data.labels import labels_of_text, text_array
from halfseen.data.numerals import are_whole_ids, is_missing
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
    likely = likely_long(names, lambda name: seems_numeric(file, names.index(name)))
    amounts = Amounts(file, line_of_columns(likely))
    leading, array = _read_columns(file, names, has_header, amounts, how.scale)
    is_fitted = has_header and how.fits_column(names[0])
    has_row_names = names[0] == "" or _names_rows(leading) or (not is_fitted and holds_row_ids(names, leading))
    if not has_row_names:
        array = np.column_stack([amounts.read(leading, int(has_header), names[0], how.scale), array])
    amounts.decimals.settle()
    row_labels = labels_of_text(leading, "row") if has_row_names else None
    column_labels = text_array(names[has_row_names:]) if has_header else None
    weights = how.cell_weight if column_labels is None else weights_by_name(how, names[has_row_names:], row_labels)
    observed = how.observed(dense_cells(array, weights), array.shape, row_labels, column_labels, zeros="drop")
    account = Account(
        "wide",
        named_rows(names[0], has_header) if has_row_names else {},
        has_header=has_header,
        width=array.shape[1],
        holds=how.scale.kind,
        decimal=amounts.decimals.mark,
        if_long=how_if_long(array, names, likely, how),
    )
    return replace(observed, account=account)


def _read_columns(
    file: TextFile, names: Sequence[Any], has_header: bool, amounts: Amounts, scale: Scale
) -> tuple[list[str], np.ndarray]:
    """The first column as text, because it may name the rows, and all others as numbers."""
    leading: list[str] = []
    blocks = [np.empty((0, file.width - 1))]
    for chunk in file.chunks(has_header):
        first, *others = zip(*chunk, strict=True)
        block = np.empty((len(chunk), file.width - 1))
        for place, (fields, name) in enumerate(zip(others, names[1:], strict=True)):
            block[:, place] = amounts.read(fields, has_header + len(leading), name, scale)
        blocks.append(block)
        leading.extend(first)
    return leading, np.concatenate(blocks)


def holds_row_ids(names: Sequence[Any], leading: Sequence[Any]) -> bool:
    """Whether the first of several columns is headed as ids of rows are, and holds different whole numbers."""
    return len(names) > 1 and heads_row_ids(names[0]) and are_whole_ids(leading)


def _names_rows(leading: list[str]) -> bool:
    """Whether there is text among the fields, and no two are the same."""
    is_text = any(not is_missing(field) and not is_numeral(field) for field in leading)
    return is_text and len(set(leading)) == len(leading)

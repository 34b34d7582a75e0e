"""Lists of triples (row, column, value): long tables without a frame."""

from __future__ import annotations

from typing import Any

from halfseen.data.cells import Cells
from halfseen.data.labels import numbered
from halfseen.data.numerals import NotANumber
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading, weights_of
from halfseen.errors import DataError


def are_triples(X: Any, how: Reading) -> bool:
    """Whether X is a list of tuples of three whose first is the name of a row, or that are said to be long.

    Three numbers may as well be a row of a dense table with three columns, and so may three levels.
    """
    if not (isinstance(X, list) and X and all(isinstance(one, tuple) and len(one) == 3 for one in X)):
        return False
    name = X[0][0]
    return how.layout == "long" or (how.layout == "auto" and isinstance(name, str) and name not in how.scale.names)


def read_triples(triples: list[tuple[Any, Any, Any]], how: Reading) -> Observed:
    """The cells that triples name."""
    rows, columns, values = map(list, zip(*triples, strict=True))
    try:
        amounts = how.scale.numbers(values)
    except NotANumber as error:
        raise DataError(
            f"{how.scale.must} Found {error.field!r} in triple {error.position}, for row {rows[error.position]!r}, "
            f"column {columns[error.position]!r}. {how.scale.advice(error.field)}Use None if it is unknown."
        ) from None
    row_codes, row_labels = numbered(rows, "row")
    column_codes, column_labels = numbered(columns, "column")
    shape = (row_labels.size, column_labels.size)
    cells = Cells(row_codes, column_codes, amounts)
    cells.weights = weights_of(cells, shape, how.cell_weight)
    return how.observed(cells, shape, row_labels, column_labels)

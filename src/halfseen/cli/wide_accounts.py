"""What is told of a wide table whose holes were filled."""

from typing import Any

from halfseen.cli import accounts
from halfseen.data.headers import LongHeader, long_header
from halfseen.data.reading import Reading
from halfseen.data.tables import WideTable
from halfseen.errors import DataError


def facts(wide: WideTable) -> dict[str, Any]:
    """How many holes were filled, in which columns, and which columns went through untouched."""
    n, m = wide.observed.shape
    kept = [name for name in wide.names if name not in wide.numeric]
    return {"holes": n * m - wide.observed.nnz, "filled": wide.numeric, "kept": kept}


def of_columns(wide: WideTable) -> str:
    """The same in words."""
    found = facts(wide)
    text = [name or "the first column" for name in found["kept"]]
    kept = f"; kept as they are: {', '.join(text)}" if text else ""
    holes, columns = accounts.count(found["holes"], "hole"), accounts.count(len(wide.numeric), "column")
    return f"Filled {holes} in {columns} of numbers{kept}."


def doubt(wide: WideTable) -> str:
    """That a table looks like lines of row, column, value, whose holes are the cells that no line is of."""
    header = _long_header(wide) if wide.has_header else None
    if header is None or header.value is None:
        return ""
    return (
        f"note: This looks like lines of row, column, value ({', '.join(map(repr, header))}), whose holes are cells "
        "without a line. Use halfseen fit and halfseen predict for these."
    )


def _long_header(wide: WideTable) -> LongHeader | None:
    try:
        return long_header(wide.names, Reading(), lambda name: name in wide.numeric)
    except DataError:  # which might be one: then it is what it was said to be, a table
        return None

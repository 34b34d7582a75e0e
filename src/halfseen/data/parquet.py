"""Parquet files, through whichever optional library is there."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals as nw

from halfseen.errors import DataError

SUFFIXES = (".parquet", ".pq")
LIBRARIES = ("pyarrow", "polars")


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def library() -> Any:
    """The name of a library that knows Parquet."""
    found = next((name for name in LIBRARIES if find_spec(name)), None)
    if found is None:
        raise DataError("Parquet files need pyarrow or polars. Found neither. Install one: pip install pyarrow.")
    return found


def read_parquet(path: Path) -> nw.DataFrame[Any]:
    """A Parquet file as a frame."""
    backend = library()
    path.open("rb").close()  # an absent file or a directory is refused as any other file is
    try:
        return nw.read_parquet(str(path), backend=backend)
    except Exception as error:  # each library has its own kinds of errors for a damaged file
        raise DataError(
            f"{path.name} must be a whole Parquet file. Found otherwise: {error}. Copy or download it again."
        ) from error


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """Columns, each of one type, as a Parquet file."""
    nw.from_dict(columns, backend=library()).write_parquet(str(path))

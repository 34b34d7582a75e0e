"""Reading and writing: text, Parquet, frames, Arrow streams and arrays to `Observed`; tables and splits to files."""

from halfseen.io.reader import observe, read_table
from halfseen.io.splits import k_folds, split_cells, split_rows
from halfseen.io.tables import Table
from halfseen.io.wide import WideTable, read_wide_table
from halfseen.io.write import write_table

__all__ = [
    "Table",
    "WideTable",
    "k_folds",
    "observe",
    "read_table",
    "read_wide_table",
    "split_cells",
    "split_rows",
    "write_table",
]

"""What was seen: the half-seen matrix, and everything that reads or makes one."""

from halfseen.data.datasets import load_movietweetings
from halfseen.data.observed import Observed
from halfseen.data.readers import observe
from halfseen.data.splits import k_folds, split_cells
from halfseen.data.synthetic import planted
from halfseen.data.tables import read_table, read_wide_table
from halfseen.data.uncoupled import Uncoupled
from halfseen.data.writing import write_table

__all__ = [
    "Observed",
    "Uncoupled",
    "k_folds",
    "load_movietweetings",
    "observe",
    "planted",
    "read_table",
    "read_wide_table",
    "split_cells",
    "write_table",
]

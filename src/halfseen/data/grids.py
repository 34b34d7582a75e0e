"""Dense tables as they lie: values with NaN where nothing was seen, and the names of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Grid:
    """A dense table. Its values may share memory with what the user passed: they are read only."""

    values: np.ndarray
    row_labels: np.ndarray | None = None
    column_labels: np.ndarray | None = None

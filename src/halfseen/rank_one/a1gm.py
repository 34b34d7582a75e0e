"""A1GM (Algorithm 1): rows and columns that have holes are set against each other, and Theorem 1 gives the rest.

Let rows with a hole meet columns with a hole in a block that is treated as missing altogether: the holes are increased
until they are grid-like (Definition 1). Sorted to the end, they leave X (free rows, free columns), Y below it and Z
beside it, whose best joint rank-one factorization is known in closed form. Nothing need be sorted: only sums are used.
"""

from typing import NamedTuple

import numpy as np

from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.rank_one.exact import Step, objective, unbounded
from halfseen.rank_one.tables import Table


class GridLike(NamedTuple):
    """The factors, and by how much the number of holes was increased: 1 if they were grid-like as they were."""

    step: Step
    increase_rate: float


def a1gm(table: Table, threads: Threads) -> GridLike:
    """The best factors if the holes are grid-like; else good ones that leave out some of what was seen."""
    marginals, rows = table.marginals, table.holed_rows
    (r, c), (n, m) = marginals.sums, (marginals.length(0), marginals.length(1))
    has_hole = np.arange(r.size) < rows.size if marginals.merged is not None else np.isin(np.arange(n), rows)
    free = (marginals.counts[1] == n) | (marginals.unseen == "zero")
    columns = m - int(free.sum())
    if rows.size == n or columns == m:
        which = ("row", "column")[marginals.axes[0 if rows.size == n else 1]]
        raise DataError(
            f"A1GM must find a row and a column without a hole. Found a hole in every {which}. "
            'Use method="exact", which takes any holes.'
        )
    beside, above = table.sums_around(rows, free)
    total = float(above[free].sum())
    if total == 0.0 and marginals.total > 0:
        raise DataError(
            "A1GM must find a value above 0 where rows and columns without holes meet. Found none there. "
            'Use method="exact", which takes any zeros.'
        )
    # Theorem 1, with w over and h times the root of S(X), which small numbers might not survive; r and c of free rows
    # and columns are already the sums over X and Z, and over X and Y.
    scale = total or 1.0
    w = r / (total + float(above[~free].sum()) or 1.0)
    w[has_hole] = beside / scale
    h = np.where(free, c * (total / (total + float(beside.sum()) or 1.0)), above)
    if ((w == 0) & (r > 0)).any() or ((h == 0) & (c > 0)).any():
        raise DataError(
            "A1GM must find a value above 0 in every row and column that has one, where it looks: not where rows and "
            'columns with holes meet. Found one that has none elsewhere. Use method="exact", which sees everything.'
        )
    mass = float((w * marginals.exposure.of_rows(h, threads)).sum())
    with unbounded():
        step = Step((w, h), objective((w, h), marginals, mass), distance=0.0)
    holes = n * m - int(marginals.counts[0].sum())
    return GridLike(step, rows.size * columns / holes if columns else 1.0)

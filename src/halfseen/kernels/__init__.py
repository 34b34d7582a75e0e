"""Compiled loops. They know no rule, no option and no Python object, and they check nothing.

Importing this room imports numba, so only `engines/`, `rank_one/` and `uncoupled/` do, and only when a fit begins.
"""

from halfseen.kernels.cells import dots, gather, spread, spread_both
from halfseen.kernels.rank_one import alike, column_changes, column_exposures, row_exposures, sums_beside, survey
from halfseen.kernels.special import digamma_and_log_gamma
from halfseen.kernels.steps import descend, dots_at, newton

__all__ = [
    "alike",
    "column_changes",
    "column_exposures",
    "descend",
    "digamma_and_log_gamma",
    "dots",
    "dots_at",
    "gather",
    "newton",
    "row_exposures",
    "spread",
    "spread_both",
    "sums_beside",
    "survey",
]

"""Compiled loops. They know no rule, no option and no Python object, and they check nothing.

Importing this room imports numba, so only `engines/` does, and only when a fit begins.
"""

from halfseen.kernels.cells import dots, spread
from halfseen.kernels.special import digamma_and_log_gamma

__all__ = ["digamma_and_log_gamma", "dots", "spread"]

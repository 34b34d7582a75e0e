"""Compiled loops (numba). They contain no Python objects, and validate nothing.

Importing this package imports numba: only the packages that compute do so, and only when a fit begins.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

# Without "reassoc" the sum over components can't use vector instructions; "contract" lets it fuse multiply and add.
# Neither touches NaN or infinities. The order chosen is fixed at compile time, so results don't depend on threads.
_REORDERED_SUMS = {"reassoc", "contract"}


def kernel(function: Callable[..., Any], **further: Any) -> Callable[..., Any]:
    """Compile `function` on its first call, to run without the interpreter lock, and keep it in the disk cache."""
    options: dict[str, Any] = {"nogil": True, "fastmath": _REORDERED_SUMS, "error_model": "numpy", **further}
    try:
        compiled: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:  # no writable folder: every process compiles for itself
        compiled = njit(**options)(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `kernel`, for a formula of numbers that is copied into the loops that use it, so that these vectorise."""
    return kernel(function, inline="always")

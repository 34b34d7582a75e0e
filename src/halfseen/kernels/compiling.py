"""How every kernel is compiled: kept on disk, free of the interpreter lock, with sums that may be reordered."""

from collections.abc import Callable
from typing import Any

from numba import njit

# Without "reassoc" the sum over components can't use vector instructions; "contract" lets it fuse multiply and add.
# Neither touches NaN or infinities. The order chosen is fixed at compile time, so results don't depend on threads.
_REORDERED_SUMS = {"reassoc", "contract"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` on its first call, and serve it from the disk cache in every later process."""
    how: dict[str, Any] = {"nogil": True, "fastmath": _REORDERED_SUMS, "error_model": "numpy"}
    try:
        compiled: Callable[..., Any] = njit(cache=True, **how)(function)
    except RuntimeError:  # no folder can be written to: every process compiles for itself
        compiled = njit(**how)(function)
    return compiled

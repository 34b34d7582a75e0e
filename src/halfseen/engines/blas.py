"""BLAS held to one thread while any engine is open: its sums depend on how many threads it uses."""

from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits

_lock = Lock()
_holders = 0
_limits: Any = None


def hold() -> None:
    """Hold BLAS to one thread until as many calls of `release` follow.

    The setting is one for the whole process. Were every engine to restore what it found, two fits that overlap in
    different threads would leave BLAS at one thread for good.
    """
    global _holders, _limits
    with _lock:
        if _holders == 0:
            _limits = threadpool_limits(limits=1, user_api="blas")
        _holders += 1


def release() -> None:
    """Give BLAS back its threads, if nobody else holds it."""
    global _holders
    with _lock:
        _holders -= 1
        if _holders == 0:
            _limits.restore_original_limits()

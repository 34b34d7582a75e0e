"""The engine that `engine` and `n_jobs` name. Compiled code is imported here, when a fit begins, and not before."""

from difflib import get_close_matches
from numbers import Integral

from halfseen.engines.base import Engine
from halfseen.errors import ParameterError

ENGINES = ("cpu",)


def open_engine(name: str = "cpu", n_jobs: int | None = None) -> Engine:
    """An engine to be entered with `with`; `n_jobs` threads, all processors for None and -1, all but one for -2 ..."""
    if name not in ENGINES:
        near = get_close_matches(str(name), ENGINES, n=1)
        raise ParameterError(
            f"engine must be one of {', '.join(map(repr, ENGINES))}. Found {name!r}. "
            f"{f'Did you mean {near[0]!r}?' if near else 'Leave it out for the processor.'}"
        )
    from halfseen.engines.cpu import CpuEngine

    return CpuEngine(_threads(n_jobs))


def _threads(n_jobs: int | None) -> int:
    import joblib

    if n_jobs is None:
        return int(joblib.cpu_count())
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ParameterError(
            f"n_jobs must be None or a whole number other than 0. Found {n_jobs!r}. "
            "Use None for all processors, 1 for one thread."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, int(joblib.cpu_count()) + 1 + int(n_jobs))

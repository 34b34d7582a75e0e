"""The engine that `engine` and `n_jobs` name. Compiled code is imported here, when a fit begins, and not before."""

from halfseen import checks
from halfseen.engines.base import Engine

ENGINES = ("cpu",)

#: The rules of the two parameters, for whoever takes them.
RULES: dict[str, checks.Rule] = {"engine": checks.one_of(*ENGINES), "n_jobs": checks.threads()}


def open_engine(name: str = "cpu", n_jobs: int | None = None) -> Engine:
    """An engine to be entered with `with`; `n_jobs` threads, all processors for None and -1, all but one for -2 ..."""
    checks.check_parameters({"engine": name, "n_jobs": n_jobs}, RULES)
    from halfseen.engines.cpu import CpuEngine

    return CpuEngine(_threads(n_jobs))


def _threads(n_jobs: int | None) -> int:
    import joblib

    if n_jobs is None:
        return int(joblib.cpu_count())
    return int(n_jobs) if n_jobs > 0 else max(1, int(joblib.cpu_count()) + 1 + int(n_jobs))

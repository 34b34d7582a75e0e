"""The engine that `engine` and `n_jobs` name. Compiled code is imported here, when a fit begins, and not before."""

from halfseen import checks
from halfseen.engines.base import Engine

ENGINES = ("cpu",)

#: The rules of the two parameters, for whoever takes them.
RULES: dict[str, checks.Rule] = {"engine": checks.one_of(*ENGINES), "n_jobs": checks.threads()}


def open_engine(name: str = "cpu", n_jobs: int | None = None) -> Engine:
    """The engine called `name`, to be entered with `with`; `n_jobs` threads, all processors for None and -1, all but
    one for -2 ..."""
    checks.check_parameters({"engine": name, "n_jobs": n_jobs}, RULES)
    from halfseen.engines.cpu import CpuEngine

    return CpuEngine(n_jobs)

"""Where computations run. Nothing outside this package refers to a device, a thread or a compiled loop."""

from typing import Any

from halfseen import validation
from halfseen.engines.base import AdagradState, DeviceCells, Engine, RidgePenalty, Rule, Side, Sums

ENGINES = ("cpu",)

#: Validation rules of the parameters `engine` and `n_jobs`.
RULES: dict[str, validation.Rule] = {"engine": validation.one_of(*ENGINES), "n_jobs": validation.threads()}


def open_engine(name: str = "cpu", n_jobs: int | None = None) -> Engine[Any]:
    """Create an engine, to be entered with `with`. Compiled code is imported here and not before.

    Parameters
    ----------
    name : {"cpu"}, default="cpu"
        Where to compute.
    n_jobs : int, default=None
        Number of threads. None and -1 use all processors, -2 all but one, and so on.

    Returns
    -------
    Engine
        The engine.
    """
    validation.check_parameters({"engine": name, "n_jobs": n_jobs}, RULES)
    from halfseen.engines.cpu import CpuEngine

    return CpuEngine(n_jobs)


__all__ = ["ENGINES", "RULES", "AdagradState", "DeviceCells", "Engine", "RidgePenalty", "Rule", "Side", "Sums", "open_engine"]

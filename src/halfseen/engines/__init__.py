"""Where computations run. Nothing outside this package refers to a device, a thread or a compiled loop."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from halfseen import validation
from halfseen.engines.base import AdagradState, Along, DeviceCells, Engine, Gradients, RidgePenalty, Rule, Side, Sums
from halfseen.errors import EngineError
from halfseen.likelihoods.base import Likelihood


def _open_cpu(n_jobs: int | None) -> Engine[Any]:
    from halfseen.engines.cpu import CpuEngine

    return CpuEngine(n_jobs)


def _open_cuda(n_jobs: int | None) -> Engine[Any]:
    on_cpu = 'Or use `engine="cpu"`; a fitted model takes it by `set_params`.'
    on_cpu_cli = 'Or use `engine="cpu"`.'
    try:
        import torch
    except (ImportError, OSError):
        install = "Install it: pip install 'halfseen[cuda]'."
        raise EngineError(
            '`engine="cuda"` needs PyTorch.',
            found="none",
            remedy=f"{install} {on_cpu}",
            remedy_cli=f"{install} {on_cpu_cli}",
            parameter="engine",
        ) from None
    if not torch.cuda.is_available():
        install = "Install a driver and a build of PyTorch that suit the GPU."
        raise EngineError(
            '`engine="cuda"` needs an NVIDIA GPU that PyTorch can use.',
            found=f"none with PyTorch {torch.__version__}",
            remedy=f"{install} {on_cpu}",
            remedy_cli=f"{install} {on_cpu_cli}",
            parameter="engine",
        )
    if find_spec("triton") is None:
        install = "Install it: pip install triton (it comes with PyTorch on Linux)."
        raise EngineError(
            '`engine="cuda"` needs Triton, in which its kernels are written.',
            found="none",
            remedy=f"{install} {on_cpu}",
            remedy_cli=f"{install} {on_cpu_cli}",
            parameter="engine",
        )
    from halfseen.engines.cuda import CudaEngine

    engine: Engine[Any] = CudaEngine()
    return engine


def _open_dask(n_jobs: int | None) -> Engine[Any]:
    if find_spec("distributed") is None:
        raise EngineError(
            '`engine="dask"` needs Dask.',
            found="none",
            remedy="Install it: pip install 'halfseen[cluster]'.",
            parameter="engine",
        )
    from halfseen.engines.dask import DaskEngine

    return DaskEngine(n_jobs)


#: What makes an engine, by its name; called with the number of threads. Libraries are imported here and not before.
ENGINES: dict[str, Callable[[int | None], Engine[Any]]] = {"cpu": _open_cpu, "cuda": _open_cuda, "dask": _open_dask}

#: Validation rules of the parameters `engine` and `n_jobs`.
RULES: dict[str, validation.Rule] = {
    "engine": lambda name: validation.one_of(*ENGINES)(name),
    "n_jobs": validation.threads(),
}


def open_engine(name: str = "cpu", n_jobs: int | None = None, *users: Any, folder: Path | None = None) -> Engine[Any]:
    """Create an engine, to be entered with `with`.

    Parameters
    ----------
    name : {"cpu", "cuda", "dask"}, default="cpu"
        Where to compute.
    n_jobs : int, default=None
        Number of threads. None and -1 use all processors, -2 all but one, and so on.
    *users : Likelihood or Solver
        What will run on it: the engine must offer what they need.
    folder : Path, default=None
        Where the workers of a cluster find files of the fit; None: Dask's temporary directory, or that of the system.

    Returns
    -------
    Engine
        The engine.

    Raises
    ------
    EngineError
        If the engine cannot run here, or lacks what one of the users needs.
    """
    validation.check_parameters({"engine": name, "n_jobs": n_jobs}, RULES)
    engine = ENGINES[name](n_jobs)
    if folder is not None:
        engine.folder = folder
    for user in users:
        if user.needs - engine.offers:
            kind = "likelihood" if isinstance(user, Likelihood) else "solver"
            raise EngineError(
                f"The {user.name} {kind} runs on the cpu only.",
                found=repr(name),
                remedy='Use `engine="cpu"`.',
                parameter="engine",
            )
    return engine


def check_is_cpu(name: str, whose: str) -> None:
    """Refuse another engine for an estimator that has loops of its own."""
    if name != "cpu":
        raise EngineError(
            f"{whose} runs on the cpu only.", found=repr(name), remedy='Use `engine="cpu"`.', parameter="engine"
        )


__all__ = [
    "ENGINES", "RULES", "AdagradState", "Along", "DeviceCells", "Engine", "Gradients", "RidgePenalty", "Rule", "Side",
    "Sums", "check_is_cpu", "open_engine",
]  # fmt: skip

"""halfseen doctor and halfseen completion: a check of this installation, and tab completion for the shell."""

import os
import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
from click.shell_completion import get_completion_class

from halfseen import __version__
from halfseen.cli.app import Command, main
from halfseen.cli.messages import render
from halfseen.cli.streams import JSON, print_json, print_lines, table_lines
from halfseen.errors import EngineError

NEEDED = ("numpy", "scipy", "numba", "scikit-learn", "narwhals", "pyarrow", "click", "rich")
#: Optional packages, and the extra of halfseen that brings each.
OPTIONAL = {
    "pandas": "frames", "polars": "frames", "pooch": "datasets", "openpyxl": "excel", "matplotlib": "report",
    "jinja2": "report", "starlette": "serve", "uvicorn": "serve", "torch": "cuda",
}  # fmt: skip


@click.command(cls=Command)
@JSON
def doctor(as_json: bool) -> None:
    """Check this installation: versions, threads, the kernels' cache, the GPU, and a small fit against plain NumPy.

    \b
    halfseen doctor
    halfseen doctor --json
    """
    program = f"halfseen {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}"
    packages: dict[str, str | None] = {name: version(name) for name in NEEDED} | dict.fromkeys(OPTIONAL)
    for name in OPTIONAL:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    checks: list[dict[str, Any]] = []
    for what, check in CHECKS.items():
        try:
            checks.append({"what": what, "ok": True, "told": check()})
        except EngineError as error:  # an engine need not be there
            checks.append({"what": what, "ok": None, "told": render(error)})
        except Exception as error:  # whatever is wrong with an installation
            checks.append({"what": what, "ok": False, "told": f"{type(error).__name__}: {error}"})
    healthy = all(one["ok"] is not False for one in checks)
    if as_json:
        print_json({"healthy": healthy, "program": program, "packages": packages, "checks": checks})
    else:
        absent = {name: f"not installed; it comes with halfseen[{extra}]" for name, extra in OPTIONAL.items()}
        rows = [("ok" if found else "-", name, found or absent[name]) for name, found in packages.items()]
        marks = {True: "ok", None: "-", False: "FAIL"}
        rows += [(marks[one["ok"]], one["what"], one["told"]) for one in checks]
        print_lines(program, *table_lines(rows, left=3))
        click.echo("All is well." if healthy else "Something is wrong: see the lines marked FAIL.")
    sys.exit(0 if healthy else 1)


def _threads() -> str:
    from halfseen.engines import open_engine

    return f"{open_engine('cpu').n_threads} on {os.cpu_count()} processors"  # type: ignore[attr-defined]


def _cache() -> str:
    """Whether compiled kernels can be kept on disk; else every process compiles them again."""
    from halfseen.engines.cpu import kernel_folder

    path = kernel_folder()
    if path is None:
        raise PermissionError("no folder to keep compiled kernels in; set NUMBA_CACHE_DIR to a folder that is writable")
    os.makedirs(path, exist_ok=True)
    kernels = sum(name.endswith(".nbc") for name in os.listdir(path))
    return f"{path} ({kernels} compiled kernels)"


def _numbers(engine: str = "cpu") -> str:
    """One iteration of Kullback-Leibler NMF with holes, here and in plain NumPy."""
    import numpy as np

    from halfseen import WeightedNMF, observe

    random = np.random.default_rng(0)
    X, W, H = random.poisson(3.0, (40, 30)).astype(float), random.random((40, 4)), random.random((30, 4))
    seen = random.random(X.shape) < 0.7
    model = WeightedNMF(4, init=(W, H), max_iter=1, tol=0.0, engine=engine).fit(observe(np.where(seen, X, np.nan)))
    W = W * ((seen * X / (W @ H.T)) @ H) / (seen @ H)
    H = H * ((seen * X / (W @ H.T)).T @ W) / (seen.T @ W)
    error = np.max([np.abs(model.W_ - W).max(), np.abs(model.H_ - H).max()])  # NaN if one of them is
    if not error <= 1e-12:
        raise ArithmeticError(f"a fit differs from plain NumPy by {error:.3g}")
    return f"a fit equals plain NumPy to {error:.1g}"


def _gpu() -> str:
    from halfseen.engines import open_engine

    engine: Any = open_engine("cuda")
    return f"{engine.describe()}; {_numbers('cuda')}"


#: Checks of the doctor; what they raise is a failure, but for an `EngineError`.
CHECKS = {"Threads": _threads, "Kernel cache": _cache, "Numbers": _numbers, "GPU": _gpu}


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the script for tab completion of commands, options, datasets and studies in SHELL.

    \b
    echo 'eval "$(halfseen completion bash)"' >> ~/.bashrc
    echo 'eval "$(halfseen completion zsh)"' >> ~/.zshrc
    halfseen completion fish > ~/.config/fish/completions/halfseen.fish
    """
    completer = get_completion_class(shell)
    if completer is None:  # another version of click
        raise click.UsageError(f"This version of click has no completion for {shell}.")
    click.echo(completer(main, {}, "halfseen", "_HALFSEEN_COMPLETE").source())

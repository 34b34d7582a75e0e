"""halfseen doctor: what is installed here, and whether it computes right."""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

import click

from halfseen.cli.app import Command

NEEDED = ("numpy", "scipy", "numba", "scikit-learn", "narwhals", "click", "rich")
OPTIONAL = {
    "pandas": "frames",
    "polars": "frames",
    "pyarrow": "frames (and Parquet files)",
    "matplotlib": "report",
    "jinja2": "report",
}


@click.command(cls=Command)
def command() -> None:
    """Look at this installation: versions, threads, the kernels' cache, and a small fit against plain NumPy."""
    click.echo(f"halfseen {version('halfseen')}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    for line in _packages():
        click.echo(line)
    healthy = True
    for name, check in (("Threads", _threads), ("Kernel cache", _cache), ("Numbers", _numbers)):
        try:
            click.echo(f"ok    {name}: {check()}")
        except Exception as error:
            healthy = False
            click.echo(f"FAIL  {name}: {type(error).__name__}: {error}")
    click.echo("All is well." if healthy else "Something is wrong: see the lines marked FAIL.")
    sys.exit(0 if healthy else 1)


def _packages() -> Iterator[str]:
    for name in NEEDED:
        yield f"ok    {name} {version(name)}"
    for name, extra in OPTIONAL.items():
        try:
            yield f"ok    {name} {version(name)}"
        except PackageNotFoundError:
            yield f"-     {name} is not installed; it comes with halfseen[{extra.split()[0]}]"


def _threads() -> str:
    from halfseen.engines import open_engine

    threads: int = open_engine("cpu").n_threads  # type: ignore[attr-defined]
    return f"{threads} on {os.cpu_count()} processors"


def _cache() -> str:
    """Kernels are compiled once and kept on disk; without a place for that every process compiles anew."""
    from halfseen.engines.cpu import kernel_folder

    path = kernel_folder()
    if path is None:
        raise PermissionError("no folder to keep compiled kernels in; set NUMBA_CACHE_DIR to a folder that is writable")
    os.makedirs(path, exist_ok=True)
    kernels = sum(name.endswith(".nbc") for name in os.listdir(path))
    return f"{path} ({kernels} compiled kernels)"


def _numbers() -> str:
    """One iteration of Kullback-Leibler NMF with holes, here and in plain NumPy."""
    import numpy as np

    from halfseen import WeightedNMF, observe

    random = np.random.default_rng(0)
    X, W, H = random.poisson(3.0, (40, 30)).astype(float), random.random((40, 4)), random.random((30, 4))
    seen = random.random(X.shape) < 0.7
    model = WeightedNMF(4, init=(W, H), max_iter=1, tol=0.0).fit(observe(np.where(seen, X, np.nan)))
    W = W * ((seen * X / (W @ H.T)) @ H) / (seen @ H)
    H = H * ((seen * X / (W @ H.T)).T @ W) / (seen.T @ W)
    error = np.max([np.abs(model.W_ - W).max(), np.abs(model.H_ - H).max()])  # NaN if one of them is
    _refuse(not error <= 1e-12, lambda: f"a fit differs from plain NumPy by {error:.3g}")
    return f"a fit equals plain NumPy to {error:.1g}"


def _refuse(wrong: bool, sentence: Callable[[], str]) -> None:
    if wrong:
        raise ArithmeticError(sentence())

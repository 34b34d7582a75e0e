"""What the commands tell after their work."""

import os
from pathlib import Path
from typing import Any

import click

from halfseen.data import Observed


def of_data(path: str, observed: Observed) -> str:
    n, m = observed.shape
    share = observed.nnz / (n * m)
    low, high = observed.values.min(), observed.values.max()
    return f"Read {path}: {n:,} x {m:,}, {observed.nnz:,} cells seen ({share:.3g} of all), values {low:g} to {high:g}."


def of_model(model: Any) -> str:
    loss = f", loss {model.loss}" if hasattr(model, "loss") else ""
    return f"{type(model).__name__}: {model.n_components} components{loss}, unseen cells are {model.unseen}."


def of_end(model: Any) -> str:
    seconds = f"{model.trace_['seconds'][-1]:.2f} s" if model.n_iter_ else "no time"
    return f"{model.status_.name} after {model.n_iter_} iterations in {seconds}. {model.status_.value}"


def of_objective(model: Any) -> str:
    what = "Evidence bound" if model.score_is_log_likelihood else "Loss"
    objective = model.trace_["objective"]
    return f"{what} {objective[-1]:,.6g} (after the first iteration {objective[0]:,.6g})." if model.n_iter_ else ""


def of_file(path: str) -> str:
    return f"Saved {path} ({_size(os.path.getsize(path))})."


def tell(*lines: str, quiet: bool = False) -> None:
    if not quiet:
        click.echo("\n".join(line for line in lines if line))


def check_folder(path: str) -> None:
    """Refuse an output that can't be written before any work is done."""
    from halfseen.errors import DataError

    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        state = "is not writable" if folder.is_dir() else "does not exist"
        raise DataError(
            f"The folder of an output file must exist and be writable. {str(folder)!r} {state}. Choose another."
        )


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"

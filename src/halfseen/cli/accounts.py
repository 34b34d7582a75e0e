"""What the commands tell after their work."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from halfseen.cli.app import in_options
from halfseen.cli.streams import DASH, OUTPUT, is_taken, said
from halfseen.data import Observed


def of_data(path: str, observed: Observed) -> str:
    """How much was read, and which columns were taken for what."""
    n, m = observed.shape
    share = observed.nnz / max(n * m, 1)
    cells = f"{count(observed.nnz, 'cell')} seen ({share:.3g} of all)"
    values = f", {_ends(observed)}" if observed.nnz else ""
    columns = "" if observed.account is None else f" {in_options(str(observed.account))}"
    return f"Read {said(path)}: {n:,} x {m:,}, {cells}{values}.{columns}"


def _ends(observed: Observed) -> str:
    """The lowest and the highest value; levels that are words, by their names."""
    low, high = observed.values.min(), observed.values.max()
    if observed.level_names is None or not low:
        return f"values {low:g} to {high:g}"
    lowest, highest = (repr(observed.level_names[int(value) - 1]) for value in (low, high))
    return f"levels {lowest} to {highest}"


def of_model(model: Any) -> str:
    chosen = "".join(f", {name} {getattr(model, name)}" for name in ("loss", "link") if hasattr(model, name))
    return f"{type(model).__name__}: {count(model.n_components, 'component')}{chosen}, unseen cells are {model.unseen}."


def of_end(model: Any) -> str:
    seconds = f"{model.trace_['seconds'][-1]:.2f} s" if model.n_iter_ else "no time"
    told = in_options(model.status_.value)
    return f"{model.status_.name} after {count(model.n_iter_, 'iteration')} in {seconds}. {told}"


def of_objective(model: Any) -> str:
    what = model.objective_name
    objective = model.trace_["objective"]
    return f"{what} {objective[-1]:,.6g} (after the first iteration {objective[0]:,.6g})." if model.n_iter_ else ""


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def of_file(path: str) -> str:
    if said(path) == OUTPUT:
        return ""  # who reads it sees it
    return f"Saved {path} ({_size(os.path.getsize(path))})."


def tell(*lines: str, quiet: bool = False, err: bool = False) -> None:
    told = [line for line in lines if line]
    if told and not quiet:
        click.echo("\n".join(told), err=err or is_taken())


def check_ranks(model: Any, path: str) -> None:
    """Refuse a model that tells values, but not what somebody should be shown next."""
    from halfseen.errors import ParameterError

    if not hasattr(model, "recommend"):
        raise ParameterError(
            f"MODEL must be one that recommends. Found a {type(model).__name__} in {path!r}. "
            "Use halfseen predict for its values."
        )


def check_output(path: str) -> None:
    """Refuse an output that can't be written, or that would replace a folder or a device, before any work is done."""
    from halfseen.errors import DataError

    if path == DASH:
        raise DataError("This output must be a file. Found '-', which is for tables and pages alone. Name a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        what = "a folder" if os.path.isdir(path) else "a device or a pipe"
        raise DataError(f"An output must be a file. Found {what} at {path!r}. Name a file.")
    check_folder(path)


def check_apart(outputs: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Refuse, before any work is done, outputs that would replace each other, or what they are made from."""
    from halfseen.errors import DataError

    written = [path for path in outputs if path is not None]
    places = [os.path.realpath(path) for path in (*written, *inputs) if path is not None]
    for number, path in enumerate(written):
        if places[number] in places[number + 1 :]:
            raise DataError(
                f"What is read and what is written must be different files. Found {path!r} twice. Name another."
            )


def check_table(path: str) -> None:
    """Refuse a table that can't be written there, or in that format."""
    from halfseen.data.writing import check_ending

    check_output(path)
    check_ending(path)


def check_folder(path: str) -> None:
    """Refuse a place whose folder isn't there or isn't writable."""
    from halfseen.errors import DataError

    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        state = "is not writable" if folder.is_dir() else "does not exist"
        raise DataError(
            f"The folder of an output file must exist and be writable. {str(folder)!r} {state}. Choose another."
        )


def _size(size: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"

"""Files and streams of the commands: `-` for a standard stream, checks of paths, and JSON.

Standard input is copied to a file first: tables are read twice (encoding, header), and Parquet needs a file. Standard
output gets the finished file at the end, so that a command that fails leaves nothing half written.
"""

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from halfseen.errors import DataError

DASH = "-"
INPUT, OUTPUT = "standard input", "standard output"
_PARQUET = b"PAR1"
_SLOW = 20_000_000  # bytes of text, which take about a second

JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON, for programs.")


class In(click.Path):
    """A table to read: a path, or - for standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != DASH or ctx is None or ctx.resilient_parsing:  # the last: a shell completes the line
            return super().convert(value, param, ctx)
        if INPUT in ctx.meta:
            self.fail("Standard input can be read once: give the other table as a file.", param, ctx)
        if sys.stdin is None:
            raise DataError("Standard input must be open to be read. Found it closed. Name a file.")
        ctx.meta[INPUT] = True
        source = sys.stdin.buffer
        try:
            head = source.read(len(_PARQUET))
        except OSError as error:
            raise DataError(f"Standard input must be readable. It is not: {error.strerror}. Name a file.") from None
        path = _temporary_folder(ctx) / f"{INPUT}{'.parquet' if head == _PARQUET else ''}"
        with _check_room(), path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(source, file)
        return str(path)


class Out(click.Path):
    """A table or page to write: a path, or - for standard output, when other lines go to standard error."""

    def __init__(self, ending: str = "csv"):
        super().__init__()
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != DASH or ctx is None or ctx.resilient_parsing:
            return super().convert(value, param, ctx)
        if sys.stdout is None:
            raise DataError("Standard output must be open to take the result. Found it closed. Name a file.")
        path = _temporary_folder(ctx) / f"{OUTPUT}.{self.ending}"

        def copy_to_stdout() -> None:
            if path.exists():
                with path.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.buffer.flush()

        ctx.meta[OUTPUT] = True
        ctx.call_on_close(copy_to_stdout)
        return str(path)


def _temporary_folder(ctx: click.Context) -> Path:
    """A folder that is removed with the root context: the command's own is never closed if its line is refused."""
    with _check_room():
        folder = Path(mkdtemp(prefix="halfseen-"))
    ctx.find_root().call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


@contextmanager
def _check_room() -> Iterator[None]:
    """Turn a failure to write to the temporary folder into a DataError."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"What - stands for must find room in the temporary folder on its way. Found none: {error.strerror}. Set "
            "TMPDIR to another folder, or name a file instead."
        ) from None


def stdout_is_taken() -> bool:
    """Whether the result goes to standard output (-o -)."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and OUTPUT in ctx.meta


def display_name(path: str) -> str:
    """A path as users know it: "standard input" and "standard output" for temporary files."""
    name = Path(path).stem
    return name if name in (INPUT, OUTPUT) else path


@contextmanager
def reading_bar(path: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar of bytes read, on a terminal, for large files; else None."""
    large = os.path.isfile(path) and os.path.getsize(path) > _SLOW
    if quiet or not large or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("Reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


# Checks of outputs, before any work is done.


def check_output(path: str) -> None:
    """Refuse an output that can't be written, or that would replace a folder or a device."""
    if path == DASH:
        raise DataError("This output must be a file. Found '-', which is for tables and pages alone. Name a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        what = "a folder" if os.path.isdir(path) else "a device or a pipe"
        raise DataError(f"An output must be a file. Found {what} at {path!r}. Name a file.")
    check_folder(path)


def check_table(path: str) -> None:
    """Refuse a table that can't be written there, or in that format."""
    from halfseen.io.write import check_ending

    check_output(path)
    check_ending(path)


def check_folder(path: str) -> None:
    """Refuse an output whose folder does not exist or is not writable."""
    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        state = "is not writable" if folder.is_dir() else "does not exist"
        raise DataError(
            f"The folder of an output file must exist and be writable. {str(folder)!r} {state}. Choose another."
        )


def check_apart(outputs: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Refuse outputs that would replace each other or an input."""
    written = [path for path in outputs if path is not None]
    read = [one for path in inputs if path is not None for one in (glob(path) or [path])]
    places = [os.path.realpath(path) for path in (*written, *read)]
    for number, path in enumerate(written):
        if places[number] in places[number + 1 :]:
            raise DataError(
                f"What is read and what is written must be different files. Found {path!r} twice. Name another."
            )


def check_one_way(as_json: bool, output: str | None) -> None:
    """Refuse --json together with -o."""
    if as_json and output is not None:
        raise click.UsageError("Say either --json, for standard output, or -o for a table.")


def check_alone(as_json: bool) -> None:
    """Refuse --json together with -o -."""
    if as_json and stdout_is_taken():
        raise click.UsageError("Say either --json or -o -: standard output is for one of the two.")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A draft to write to, which becomes the file when it is complete."""
    from halfseen.io.write import atomic_write

    try:
        with atomic_write(path) as draft:
            yield draft
    except OSError as error:
        raise DataError(
            f"The output folder must be writable, with room enough. Could not write {str(path)!r}: "
            f"{error.strerror or error}. Choose another place."
        ) from None


def print_lines(*lines: str, quiet: bool = False, err: bool = False) -> None:
    """Print the lines that are not empty, to standard error if standard output is taken."""
    shown = [line for line in lines if line]
    if shown and not quiet:
        click.echo("\n".join(shown), err=err or stdout_is_taken())


def print_json(value: Any) -> None:
    click.echo(as_json(value))


def as_json(value: Any) -> str:
    """A value as JSON; NaN and infinities are null."""
    return json.dumps(_plain(value), ensure_ascii=False, indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    """Dictionaries, lists, texts and numbers of Python alone."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

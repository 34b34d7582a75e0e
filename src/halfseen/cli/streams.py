"""Input and output of the commands: `-` for a standard stream, checks of paths, progress, tables and JSON.

Standard input is copied to a file first: tables are read twice (encoding, header), and Parquet needs a file. Standard
output gets the finished file at the end, so that a command that fails leaves no partial output.
"""

import io
import json
import logging
import math
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from halfseen.errors import DataError

INPUT, OUTPUT = "standard input", "standard output"
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for programs.")


class In(click.Path):
    """A table to read: a path, or - for standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != "-" or ctx is None or ctx.resilient_parsing:  # the last: a shell completes the line
            return super().convert(value, param, ctx)
        if INPUT in ctx.meta:
            self.fail("Standard input can be read once: give the other table as a file.", param, ctx)
        if sys.stdin is None:
            raise DataError("Standard input must be open to be read.", found="it closed", remedy="Name a file.")
        ctx.meta[INPUT] = True
        try:
            head = sys.stdin.buffer.read(4)
        except OSError as error:
            must = f"Standard input must be readable. It is not: {error.strerror}."
            raise DataError(must, remedy="Name a file.") from None
        path = _temporary_folder(ctx) / f"{INPUT}{'.parquet' if head == b'PAR1' else ''}"
        with _check_room(), path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(sys.stdin.buffer, file)
        return str(path)


class Out(click.Path):
    """A table or page to write: a path, or - for standard output, when other lines go to standard error."""

    def __init__(self, ending: str = "csv"):
        super().__init__()
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != "-" or ctx is None or ctx.resilient_parsing:
            return super().convert(value, param, ctx)
        if sys.stdout is None:
            must = "Standard output must be open to take the result."
            raise DataError(must, found="it closed", remedy="Name a file.")
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
        must, found = "Data that come or go by - must fit into the temporary folder.", f"no room: {error.strerror}"
        remedy = "Set TMPDIR to another folder, or name a file instead."
        raise DataError(must, found=found, remedy=remedy) from None


def stdout_is_taken() -> bool:
    """Whether the result goes to standard output (-o -)."""
    return OUTPUT in getattr(click.get_current_context(silent=True), "meta", ())


def display_name(path: str) -> str:
    """A path as users know it: "standard input" and "standard output" for temporary files."""
    name = Path(path).stem
    return name if name in (INPUT, OUTPUT) else path


@contextmanager
def byte_bar(text: str, is_shown: bool, transient: bool = False) -> Iterator[Callable[[int, int | None], None] | None]:
    """A progress bar of bytes, on a terminal and if `is_shown`; else None."""
    if not is_shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=transient) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def row_bar(text: str, total: int, is_shown: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar of rows, on a terminal and if `is_shown`; it is advanced by a number of rows."""
    if not is_shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda done: progress.advance(task, done)


# checks of outputs, before any work is done


class _Echo(logging.Handler):
    """Prints what is logged as lines on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(record.getMessage(), err=True)


@contextmanager
def logged(name: str) -> Iterator[None]:
    """Print what a module logs."""
    log, handler = logging.getLogger(name), _Echo()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


@contextmanager
def signals_interrupt() -> Iterator[Callable[[], int]]:
    """SIGTERM and SIGHUP do as Ctrl-C does; gives a function that returns the exit code after that."""
    came: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        came.append(number)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in numbers if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield lambda: 128 + came[0] if came else 130
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def check_output(path: str) -> None:
    """Refuse an output that can't be written, or that would replace a folder or a device."""
    found = "'-', which is for tables and pages alone" if path == "-" else ""
    if os.path.exists(path) and not os.path.isfile(path):
        found = f"{'a folder' if os.path.isdir(path) else 'a device or a pipe'} at {path!r}"
    if found:
        raise DataError("An output must be a file.", found=found, remedy="Name a file.")
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
        must = f"The folder of an output file must exist and be writable. {str(folder)!r} {state}."
        raise DataError(must, remedy="Choose another.")


def check_output_folder(path: str) -> None:
    """Refuse an output folder that is a file, or that can't be made or written to."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise DataError("The output must be a folder.", found=f"a file at {path!r}", remedy="Name another.")
    check_folder(os.path.join(path, "file") if os.path.isdir(path) else path)


def check_apart(outputs: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Refuse outputs that would replace each other or an input."""
    written = [path for path in outputs if path is not None]
    read = [one for path in inputs if path is not None for one in (glob(path) or [path])]
    places = [os.path.realpath(path) for path in (*written, *read)]
    for number, path in enumerate(written):
        if places[number] in places[number + 1 :]:
            must = "Inputs and outputs must be different files."
            raise DataError(must, found=f"{path!r} twice", remedy="Name another.")


def check_new(paths: Sequence[str | None], force: bool) -> None:
    """Refuse outputs that exist, unless they may be replaced."""
    for path in paths:
        if path is not None and not force and os.path.exists(path) and display_name(path) != OUTPUT:
            must = "An output file must not exist yet."
            raise DataError(must, found=repr(path), remedy="Name another, or replace it: --force.")


def check_json(as_json: bool, output: str | None = None) -> None:
    """Refuse --json where standard output, or a table (`output`), takes the result."""
    if as_json and output is not None:
        raise click.UsageError("Use either --json, for standard output, or -o for a table.")
    if as_json and stdout_is_taken():
        raise click.UsageError("Use either --json or -o -: standard output is for one of the two.")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A temporary file to write to, which becomes the output when it is complete."""
    from halfseen.io.write import atomic_write

    try:
        with atomic_write(path) as draft:
            yield draft
    except OSError as error:
        must = f"The output folder must be writable, with room enough. Could not write {str(path)!r}"
        raise DataError(f"{must}: {error.strerror or error}.", remedy="Choose another place.") from None


def write_text(path: Path, text: str) -> str:
    """Write a text file, and return its path."""
    with written(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return str(path)


def table_lines(rows: Sequence[Sequence[str]], heads: Sequence[str] = (), left: int = 0, width: int | None = None,
                cut: Sequence[str] = ()) -> list[str]:  # fmt: skip
    """A table as plain lines, the first `left` columns to the left; those in `cut` are cut to the `width`."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=bool(heads))
    for number, head in enumerate(heads or [""] * len(rows[0])):
        table.add_column(head, justify="left" if number < left else "right", no_wrap=head not in cut)
    for row in rows:
        table.add_row(*(Text(text, no_wrap=True, overflow="ellipsis") for text in row))
    console = Console(file=io.StringIO(), width=width or 10_000, color_system=None)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def print_lines(*lines: str, quiet: bool = False, err: bool = False) -> None:
    """Print the lines that are not empty, to standard error if standard output is taken."""
    shown = [line for line in lines if line]
    if shown and not quiet:
        click.echo("\n".join(shown), err=err or stdout_is_taken())


def printable(label: Any) -> str:
    """A label or a title as text that a terminal shows and does not obey: control characters are escaped."""
    text = str(label)
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(as_json(value))


def as_json(value: Any) -> str:
    """A value as JSON; NaN and infinities are null."""
    return json.dumps(_plain(value), ensure_ascii=False, indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value as dictionaries, lists, texts and numbers of Python."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

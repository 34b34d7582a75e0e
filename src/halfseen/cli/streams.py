"""`-` in the place of a file: standard input is read to a file first, and standard output gets a whole file at last.

A file, because tables are looked at twice (is it UTF-8, is there a header) and Parquet can't be read otherwise; and
because a table that turns out wrong, or is never finished, leaves nothing half on standard output.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from halfseen.errors import DataError

DASH = "-"
INPUT, OUTPUT = "standard input", "standard output"
_PARQUET = b"PAR1"


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
        return _spooled(ctx)


class Out(click.Path):
    """A table or page to write: a path, or - for standard output; what is told besides goes to standard error then."""

    def __init__(self, ending: str = "csv"):
        super().__init__()
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != DASH or ctx is None or ctx.resilient_parsing:
            return super().convert(value, param, ctx)
        if sys.stdout is None:
            raise DataError("Standard output must be open to take the result. Found it closed. Name a file.")
        path = _folder(ctx) / f"{OUTPUT}.{self.ending}"
        ctx.meta[OUTPUT] = True
        ctx.call_on_close(lambda: _pour(path))
        return str(path)


def is_taken() -> bool:
    """Whether standard output is for a table or a page."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and OUTPUT in ctx.meta


def said(path: str) -> str:
    """A path as people know it."""
    name = Path(path).stem
    return name if name in (INPUT, OUTPUT) else path


def _spooled(ctx: click.Context) -> str:
    """Standard input as a file, by whose name people are told of it; Parquet alone is known by an ending."""
    source = sys.stdin.buffer
    try:
        head = source.read(len(_PARQUET))
    except OSError as error:
        raise DataError(f"Standard input must be readable. It is not: {error.strerror}. Name a file.") from None
    path = _folder(ctx) / f"{INPUT}{'.parquet' if head == _PARQUET else ''}"
    with _room(), path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(source, file)
    return str(path)


def _pour(path: Path) -> None:
    if path.exists():
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _folder(ctx: click.Context) -> Path:
    """A folder that goes when the program ends: the command's own context is never left if the line is refused."""
    with _room():
        folder = Path(mkdtemp(prefix="halfseen-"))
    ctx.find_root().call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


@contextmanager
def _room() -> Iterator[None]:
    """That there is no place to keep what goes through a pipe is a sentence."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"What - stands for must find room in the temporary folder on its way. Found none: {error.strerror}. Set "
            "TMPDIR to another folder, or name a file instead."
        ) from None

"""`-` in the place of a file: standard input is read to a file first, and standard output gets a whole file at last.

A file, because tables are looked at twice (is it UTF-8, is there a header) and Parquet can't be read otherwise; and
because a table that turns out wrong, or is never finished, leaves nothing half on standard output.
"""

import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

DASH = "-"
INPUT, OUTPUT = "standard input", "standard output"
_PARQUET = b"PAR1"


class In(click.Path):
    """A table to read: a path, or - for standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != DASH or ctx is None:
            return super().convert(value, param, ctx)
        if INPUT in ctx.meta:
            self.fail("Standard input can be read once: give the other table as a file.", param, ctx)
        ctx.meta[INPUT] = True
        return _spooled(ctx)


class Out(click.Path):
    """A table or page to write: a path, or - for standard output; what is told besides goes to standard error then."""

    def __init__(self, ending: str = "csv"):
        super().__init__()
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != DASH or ctx is None:
            return super().convert(value, param, ctx)
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
    """Standard input as a file, of a name by which tables are known."""
    source = sys.stdin.buffer
    head = source.read(len(_PARQUET))
    path = _folder(ctx) / f"{INPUT}.{'parquet' if head == _PARQUET else 'csv'}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(source, file)
    return str(path)


def _pour(path: Path) -> None:
    if path.exists():
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _folder(ctx: click.Context) -> Path:
    """A folder that goes when the command ends; entered first, so that what is poured out is still there."""
    folder = Path(mkdtemp(prefix="halfseen-"))
    ctx.call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder

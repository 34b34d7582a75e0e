"""halfseen datasets: list the datasets, show one, find its files, fetch it, or write it as a table."""

from __future__ import annotations

import io
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING

import click

from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, Out, check_alone, check_apart, check_table, print_json, print_lines
from halfseen.cli.summaries import describe_data, describe_file
from halfseen.errors import DataError, ParameterError

if TYPE_CHECKING:
    from halfseen.datasets.registry import Entry, Progress

#: The width of a terminal from which a column of the list is shown.
MIN_WIDTH = {"name": 0, "kind": 110, "title": 0, "size": 110, "terms": 150, "state": 0}


def _names(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    """Names of datasets, for shell completion."""
    from halfseen.datasets import listing

    return [entry.name for entry in listing() if entry.name.startswith(start)]


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=_names)
@click.option("--path", "where", is_flag=True, help="Print the paths of the files of NAME, one per line.")
@click.option("--fetch", "fetched", is_flag=True, help="Download NAME to the data folder.")
@click.option(
    "-o",
    "--output",
    type=Out(),
    default=None,
    help="Write the ratings of NAME (user, item, rating) to a CSV or Parquet file; - is standard output.",
)
@JSON
@click.option("-q", "--quiet", is_flag=True, help="No terms, no progress bar and no summary.")
def command(name: str | None, where: bool, fetched: bool, output: str | None, as_json: bool, quiet: bool) -> None:
    """List the datasets that are known by name; show, find, fetch or write one of them.

    Nothing is downloaded unless you ask for it here. Public data are kept in the data folder: the one that the
    environment variable HALFSEEN_DATA names, else `halfseen` in your cache folder.

    \b
    halfseen datasets
    halfseen datasets movietweetings -o ratings.csv
    halfseen datasets movielens-100k --fetch
    halfseen fit "$(halfseen datasets movielens-100k --path)" --method ordnmf -o model.hs
    """
    from halfseen.datasets import data_folder, listing

    asked = [option for option, given in (("--path", where), ("--fetch", fetched), ("-o", output)) if given]
    if len(asked) > 1:
        raise click.UsageError(f"{asked[0]} and {asked[1]} cannot be used together.")
    if asked and name is None:
        raise click.UsageError(f"{asked[0]} needs the name of a dataset, such as movielens-100k.")
    check_alone(as_json)
    entries = listing()
    if name is None and as_json:
        print_json([entry._asdict() for entry in entries])
    elif name is None:
        click.echo("\n".join(_table(entries)))
        hint = "Details: halfseen datasets NAME. Download: halfseen datasets NAME --fetch."
        click.echo("\n" + _wrapped(f"Public data are kept in {data_folder()}. {hint}"))
    elif output is not None:
        _write(_find(name, entries), output, as_json, quiet)
    elif fetched:
        _fetch(_find(name, entries), as_json, quiet)
    elif where:
        _show_paths(_paths(_find(name, entries)), as_json)
    else:
        _show_details(_find(name, entries), as_json)


def _find(name: str, entries: Sequence[Entry]) -> Entry:
    from halfseen.validation import did_you_mean

    names = [entry.name for entry in entries]
    if name in names:
        return entries[names.index(name)]
    near = did_you_mean(name, names)
    hint = f"Did you mean {near!r}?" if near else "See the list: halfseen datasets."
    raise ParameterError(f"A dataset must be one of {', '.join(names)}. Found {name!r}. {hint}")


def _width() -> int | None:
    """Characters per line of the terminal; None if the output goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(text: str, head: str = "") -> str:
    """Text wrapped to the terminal, its first line after `head`; addresses and paths stay whole."""
    width = _width()
    if width is None:
        return head + text
    return fill(text, width, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _table(entries: Sequence[Entry]) -> list[str]:
    """One line per dataset, as wide as the terminal; long titles and terms are cut there."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = _width()
    shown = [column for column, least in MIN_WIDTH.items() if width is None or width >= least]
    table = Table(box=None, pad_edge=False, header_style="")
    for column in shown:
        table.add_column(column, no_wrap=column not in ("title", "terms"))
    for entry in entries:
        table.add_row(*(Text(getattr(entry, column), no_wrap=True, overflow="ellipsis") for column in shown))
    console = Console(file=io.StringIO(), width=width or 1000, color_system=None)
    with console.capture() as printed:
        console.print(table)
    return [line.rstrip() for line in printed.get().splitlines()]


def _show_details(entry: Entry, as_json: bool) -> None:
    from halfseen.datasets import source

    details = {"name": entry.name, "what": entry.title, "size": entry.size, "terms": entry.terms, "state": entry.state}
    if entry.kind == "public":
        found = source(entry.name)
        files = ", ".join(file.path for file in found.files)
        details |= {"from": found.address, "citation": found.citation, "files": files}
    details["in Python"] = f"halfseen.{entry.call}"
    if as_json:
        print_json(details)
    else:
        click.echo("\n".join(_wrapped(text, f"{name + ':':<10} ") for name, text in details.items()))


def _paths(entry: Entry) -> list[str]:
    from halfseen.datasets import source
    from halfseen.datasets.loaders import SAMPLES
    from halfseen.datasets.registry import local_paths

    if entry.kind == "generated":
        raise DataError(
            f"A dataset must have files. {entry.name!r} is generated. Call halfseen.{entry.call} in Python."
        )
    if entry.kind == "built in":
        return [str(SAMPLES / f"{entry.name}.csv.gz")]
    return [str(path) for path in local_paths(source(entry.name))]


def _show_paths(paths: Sequence[str], as_json: bool) -> None:
    print_json(paths) if as_json else click.echo("\n".join(paths))


def _write(entry: Entry, output: str, as_json: bool, quiet: bool) -> None:
    """Write ratings as a long table."""
    from halfseen.datasets import load_movietweetings, load_ratings, ratings_names
    from halfseen.datasets.loaders import ids_of_cells
    from halfseen.io import write_table

    names = ("movietweetings", *ratings_names())
    if entry.name not in names:
        raise DataError(
            f"Only ratings and play counts are written as a table: {', '.join(names)}. Found {entry.name!r}. "
            f"Call halfseen.{entry.call} in Python."
        )
    check_table(output)
    with warnings.catch_warnings(action="ignore"):  # the loader warns
        check_apart([output], _paths(entry))
    ratings = load_movietweetings() if entry.name == names[0] else load_ratings(entry.name)
    users, items = ids_of_cells(ratings)
    values = ratings.values.astype(int) if (ratings.values % 1 == 0).all() else ratings.values
    write_table(output, ["user", "item", "rating"], [users, items, values])
    if as_json:
        print_json({"file": output, "users": ratings.shape[0], "items": ratings.shape[1], "cells": ratings.nnz})
    else:
        print_lines(describe_data(entry.name, ratings), describe_file(output), quiet=quiet)


def _fetch(entry: Entry, as_json: bool, quiet: bool) -> None:
    from halfseen.datasets import fetch, source
    from halfseen.datasets.registry import PRESENT, UNVERIFIED

    if entry.kind != "public":
        raise DataError(f"{entry.name!r} needs no download: it is {entry.kind}. Call halfseen.{entry.call} in Python.")
    with _progress_bar(entry.name, quiet) as progress:
        paths = [str(path) for path in fetch(entry.name, progress=progress)]
    is_new = entry.state not in (PRESENT, UNVERIFIED)
    if is_new:
        found = source(entry.name)
        print_lines(f"Terms of {found.title}: {found.terms}.", f"Please cite: {found.citation}.", quiet=quiet, err=True)
    if as_json:
        _show_paths(paths, as_json)
    else:
        print_lines(*(f"{'Saved' if is_new else 'Already there:'} {path}" for path in paths), quiet=quiet)


@contextmanager
def _progress_bar(name: str, quiet: bool) -> Iterator[Progress | None]:
    """Shows downloaded bytes on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

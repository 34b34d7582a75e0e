"""halfseen datasets: list the datasets, show one, find its files, fetch it, or write it as a table."""

from __future__ import annotations

import shutil
import sys
import warnings
from textwrap import fill
from typing import TYPE_CHECKING

import click

from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, Out
from halfseen.cli.summaries import describe_data, describe_file
from halfseen.errors import DataError, ParameterError
from halfseen.validation import did_you_mean

if TYPE_CHECKING:
    from halfseen.datasets import Entry

#: Advice on datasets that only Python has.
PYTHON = "Call halfseen.{} in Python."
#: The width of a terminal from which a column of the list is shown.
MIN_WIDTH = {"name": 0, "kind": 110, "title": 0, "size": 110, "terms": 150, "state": 0}


def _names(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    """Names of datasets, for shell completion."""
    from halfseen.datasets import listing

    return [entry.name for entry in listing() if entry.name.startswith(start)]


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=_names)
@click.option("--path", "show_paths", is_flag=True, help="Print the paths of the files of NAME, one per line.")
@click.option("--fetch", "is_fetch", is_flag=True, help="Download NAME to the data folder.")
@click.option("-o", "--output", type=Out(), help="CSV or Parquet file for the ratings of NAME (user, item, rating).")
@JSON
@options.quiet("Print no terms, no progress bar and no summary.")
def datasets(name: str | None, show_paths: bool, is_fetch: bool, output: str | None, as_json: bool,
             quiet: bool) -> None:  # fmt: skip
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

    actions = [option for option, given in (("--path", show_paths), ("--fetch", is_fetch), ("-o", output)) if given]
    if len(actions) > 1:
        raise click.UsageError(f"{actions[0]} and {actions[1]} cannot be used together.")
    if actions and name is None:
        raise click.UsageError(f"{actions[0]} needs the name of a dataset, such as movielens-100k.")
    streams.check_json(as_json)
    entries = {entry.name: entry for entry in listing()}
    if name is None and as_json:
        streams.print_json([entry._asdict() for entry in entries.values()])
    elif name is None:
        width = _terminal_width()
        heads = [head for head, least in MIN_WIDTH.items() if width is None or width >= least]
        rows = [[getattr(entry, head) for head in heads] for entry in entries.values()]
        click.echo("\n".join(streams.table_lines(rows, heads, len(heads), width, cut=("title", "terms"))))
        hint = "Details: halfseen datasets NAME. Download: halfseen datasets NAME --fetch."
        click.echo("\n" + _wrapped(f"Public data are kept in {data_folder()}. {hint}"))
    elif name not in entries:
        near = did_you_mean(name, entries)
        remedy = f"Did you mean {near!r}?" if near else "See the list: halfseen datasets."
        raise ParameterError(f"A dataset must be one of {', '.join(entries)}.", found=repr(name), remedy=remedy)
    elif output is not None:
        _write(entries[name], output, as_json, quiet)
    elif is_fetch:
        _fetch(entries[name], as_json, quiet)
    elif show_paths:
        paths = _paths(entries[name])
        streams.print_json(paths) if as_json else click.echo("\n".join(paths))
    else:
        _show_details(entries[name], as_json)


def _terminal_width() -> int | None:
    """Characters per line of the terminal; None if the output goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(text: str, head: str = "") -> str:
    """Text wrapped to the terminal, its first line after `head`; addresses and paths stay whole."""
    width = _terminal_width()
    if width is None:
        return head + text
    return fill(text, width, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _show_details(entry: Entry, as_json: bool) -> None:
    from halfseen.datasets import source

    details = {"name": entry.name, "what": entry.title, "size": entry.size, "terms": entry.terms, "state": entry.state}
    if entry.kind == "public":
        origin = source(entry.name)
        files = ", ".join(file.path for file in origin.files)
        details |= {"from": origin.address, "citation": origin.citation, "files": files}
    details["in Python"] = f"halfseen.{entry.call}"
    text = "" if as_json else "\n".join(_wrapped(text, f"{name + ':':<10} ") for name, text in details.items())
    streams.print_json(details) if as_json else click.echo(text)


def _paths(entry: Entry) -> list[str]:
    from halfseen.datasets import source
    from halfseen.datasets.loaders import SAMPLES
    from halfseen.datasets.registry import local_paths

    if entry.kind == "generated":
        raise DataError(f"A dataset must have files. {entry.name!r} is generated.", remedy=PYTHON.format(entry.call))
    if entry.kind == "built in":
        return [str(SAMPLES / f"{entry.name}.csv.gz")]
    return [str(path) for path in local_paths(source(entry.name))]


def _write(entry: Entry, output: str, as_json: bool, quiet: bool) -> None:
    """Write ratings as a long table."""
    from halfseen.datasets import load_movietweetings, load_ratings, ratings_names
    from halfseen.datasets.loaders import ids_of_cells
    from halfseen.io import write_table

    names = ("movietweetings", *ratings_names())
    if entry.name not in names:
        must = f"Only ratings and play counts are written as a table: {', '.join(names)}."
        raise DataError(must, found=repr(entry.name), remedy=PYTHON.format(entry.call))
    streams.check_table(output)
    with warnings.catch_warnings(action="ignore"):  # the loader warns
        streams.check_apart([output], _paths(entry))
    ratings = load_movietweetings() if entry.name == names[0] else load_ratings(entry.name)
    users, items = ids_of_cells(ratings)
    values = ratings.values.astype(int) if (ratings.values % 1 == 0).all() else ratings.values
    write_table(output, ["user", "item", "rating"], [users, items, values])
    if as_json:
        streams.print_json({"file": output, "users": ratings.shape[0], "items": ratings.shape[1], "cells": ratings.nnz})
    else:
        streams.print_lines(describe_data(entry.name, ratings), describe_file(output), quiet=quiet)


def _fetch(entry: Entry, as_json: bool, quiet: bool) -> None:
    from halfseen.datasets import fetch, source
    from halfseen.datasets.registry import PRESENT, UNVERIFIED

    if entry.kind != "public":
        raise DataError(f"{entry.name!r} needs no download: it is {entry.kind}.", remedy=PYTHON.format(entry.call))
    with streams.byte_bar(entry.name, not quiet) as progress:
        paths = [str(path) for path in fetch(entry.name, progress=progress)]
    is_new, origin = entry.state not in (PRESENT, UNVERIFIED), source(entry.name)
    if is_new:
        terms = f"Terms of {origin.title}: {origin.terms}."
        streams.print_lines(terms, f"Please cite: {origin.citation}.", quiet=quiet, err=True)
    if as_json:
        streams.print_json(paths)
    else:
        streams.print_lines(*(f"{'Saved' if is_new else 'Already there:'} {path}" for path in paths), quiet=quiet)

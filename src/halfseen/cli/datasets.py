"""halfseen datasets: what can be had by name, where it lies, and fetching it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from halfseen.cli import accounts
from halfseen.cli.app import Command
from halfseen.cli.data_list import closing, listed, told, width_of_terminal
from halfseen.cli.jsonout import JSON, tell_json
from halfseen.errors import DataError

if TYPE_CHECKING:
    from halfseen.data.datasets import Entry
    from halfseen.data.parcels import Tell


def _names(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    """What the name of a set may be, for the shell."""
    from halfseen.data.datasets import listing

    return [entry.name for entry in listing() if entry.name.startswith(start)]


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=_names)
@click.option("--path", "where", is_flag=True, help="Print where the files of NAME lie, one a line, and nothing else.")
@click.option("--fetch", "fetched", is_flag=True, help="Bring the files of NAME to the data folder.")
@JSON
@click.option("-q", "--quiet", is_flag=True, help="No terms, no bar and no account when fetching.")
def command(name: str | None, where: bool, fetched: bool, as_json: bool, quiet: bool) -> None:
    """List the data that are known by name, tell of one of them, say where it lies, or fetch it.

    Nothing is ever fetched unless you ask for it here. Public data are kept in the data folder: that which the
    environment variable HALFSEEN_DATA names, else `halfseen` in your cache directory.

    \b
    halfseen datasets
    halfseen datasets movielens-100k
    halfseen datasets movielens-100k --fetch
    halfseen fit "$(halfseen datasets movielens-100k --path)" --method ordnmf -o model.hs
    """
    from halfseen.data.datasets import listing

    if where and fetched:
        raise click.UsageError("Say either --path or --fetch.")
    if name is None:
        if where or fetched:
            raise click.UsageError(f"Say of which data --{'path' if where else 'fetch'} is, such as movielens-100k.")
        entries = listing()
        tell_json([entry._asdict() for entry in entries]) if as_json else _show_all(entries)
        return
    entry = _entry(name, listing())
    if fetched:
        _fetch(entry, as_json, quiet)
    elif where:
        _tell_paths(_paths(entry), as_json)
    elif as_json:
        tell_json(_told(entry))
    else:
        click.echo("\n".join(told(_told(entry), width_of_terminal())))


def _entry(name: str, entries: list[Entry]) -> Entry:
    from halfseen.checks import did_you_mean
    from halfseen.errors import ParameterError

    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        names = [entry.name for entry in entries]
        near = did_you_mean(name, names)
        hint = f"Did you mean {near!r}?" if near else "See the list: halfseen datasets."
        raise ParameterError(f"A dataset must be one of {', '.join(names)}. Found {name!r}. {hint}")
    return found


def _show_all(entries: list[Entry]) -> None:
    """A table: what is long is left to the account of one set."""
    from halfseen.data.datasets import data_folder

    width = width_of_terminal()
    click.echo("\n".join(listed(entries, width)))
    click.echo()
    kept = f"Public data are kept in {data_folder()}."
    click.echo(closing(f"{kept} All of one: halfseen datasets NAME. Fetch one: halfseen datasets NAME --fetch.", width))


def _told(entry: Entry) -> dict[str, str]:
    """All that is known of a set."""
    from halfseen.data.datasets import source

    told = {"name": entry.name, "what": entry.title, "size": entry.size, "terms": entry.terms, "state": entry.state}
    if entry.kind == "public":
        of = source(entry.name)
        told |= {"from": of.address, "citation": of.citation, "files": ", ".join(file.path for file in of.files)}
    return told | {"in Python": f"halfseen.{entry.call}"}


def _paths(entry: Entry) -> list[str]:
    from halfseen.data.datasets import SAMPLES, source
    from halfseen.data.shelf import paths_of

    if entry.kind == "generated":
        raise DataError(f"{entry.name!r} must be made: it has no file. Call halfseen.{entry.call} in Python.")
    if entry.kind == "built in":
        return [str(SAMPLES / f"{entry.name}.csv.gz")]
    return [str(path) for path in paths_of(source(entry.name))]


def _fetch(entry: Entry, as_json: bool, quiet: bool) -> None:
    from halfseen.data.datasets import fetch, source
    from halfseen.data.listing import THERE, UNCHECKED

    if entry.kind != "public":
        raise DataError(
            f"{entry.name!r} must not be fetched: it is {entry.kind}. Call halfseen.{entry.call} in Python."
        )
    with _bar(entry.name, quiet) as tell:
        paths = [str(path) for path in fetch(entry.name, tell=tell)]
    is_new = entry.state not in (THERE, UNCHECKED)
    if is_new:
        of = source(entry.name)
        accounts.tell(f"Terms of {of.title}: {of.terms}.", f"Please cite: {of.citation}.", quiet=quiet, err=True)
    if as_json:
        _tell_paths(paths, as_json)
    else:
        accounts.tell(*(f"{path} {'is there' if is_new else 'was there already'}." for path in paths), quiet=quiet)


def _tell_paths(paths: list[str], as_json: bool) -> None:
    if as_json:
        tell_json(paths)
    else:
        click.echo("\n".join(paths))


@contextmanager
def _bar(name: str, quiet: bool) -> Iterator[Tell]:
    """Bytes that have come, on a terminal; nothing elsewhere."""
    from halfseen.data.fetching import tell_nobody

    if quiet or not sys.stderr.isatty():
        yield tell_nobody
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None)
        yield lambda so_far, total: progress.update(task, completed=so_far, total=total)

"""halfseen reproduce: the tables and figures of the papers, ours beside theirs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from halfseen.cli import accounts
from halfseen.cli.app import Command
from halfseen.errors import DataError

if TYPE_CHECKING:
    from halfseen.studies import Result, Study
    from halfseen.studies.base import Tell

SEED = click.IntRange(0, 2**32 - 1)


@click.command(cls=Command)
@click.argument("studies", nargs=-1, metavar="[STUDY]...")
@click.option("--list", "listed", is_flag=True, help="Say what can be reproduced, and whether the data are there.")
@click.option("-o", "--output", type=click.Path(), default=None, help="A folder for tables (.csv, .md) and figures.")
@click.option("--quick", is_flag=True, help="A small part of the work, to see that it runs.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all that is random.")
def command(studies: tuple[str, ...], listed: bool, output: str | None, quick: bool, seed: int) -> None:
    """Reproduce a STUDY: a table or figure of a paper (a1gm/table1), all of a paper (a1gm), or all there are.

    \b
    halfseen reproduce --list
    halfseen reproduce a1gm/table1 -o results
    halfseen reproduce all --quick
    """
    from halfseen.studies import NAMES, chosen, study

    if listed:
        click.echo("\n\n".join(_entry(study(name)) for name in NAMES))
        return
    if not studies:
        raise click.UsageError("Say which study, such as a1gm/table1, or --list them all.")
    names = list(dict.fromkeys(name for word in studies for name in chosen(word)))
    folder = None if output is None else _folder(output)
    _reproduce([study(name) for name in names], studies, folder, quick, seed)


def _reproduce(studies: Sequence[Study], asked: Sequence[str], folder: Path | None, quick: bool, seed: int) -> None:
    """Run one study after the other. One without data is an error if it was asked for by name, else left out."""
    from halfseen.cli import results

    done: list[str] = []
    for study in studies:
        try:
            result = _result(study, quick, seed, may_be_left_out=study.name not in asked)
            if result is None:
                continue
            results.show(study, result)
            if folder is not None:
                accounts.tell(*map(accounts.of_file, results.write(folder, study, result)))
        except KeyboardInterrupt:
            _end_interrupted(study.name, done, folder)
        done.append(study.name)
    if not done:
        raise DataError(
            f"A study must find its data. None of {len(studies)} did. Get the data named in the notes above."
        )


def _result(study: Study, quick: bool, seed: int, may_be_left_out: bool) -> Result | None:
    try:
        with _progress(study.name) as tell:
            return study.run(quick=quick, seed=seed, tell=tell)
    except DataError as error:
        if not may_be_left_out:
            raise
        click.echo(f"note: {study.name} was left out. {error}", err=True)
        return None


def _end_interrupted(name: str, done: Sequence[str], folder: Path | None) -> NoReturn:
    kept = f"; what came of {', '.join(done)} is in {folder}" if done and folder is not None else ""
    click.echo(f"Interrupted in {name}, of which nothing was saved{kept}.", err=True)
    sys.exit(130)


def _entry(study: Study) -> str:
    """What the list says of a study."""
    absent = study.absent()
    if absent:
        data = f"{len(study.needs) - len(absent)} of {len(study.needs)} there; absent: {', '.join(absent)}"
    else:
        data = f"all {len(study.needs)} there" if study.needs else "none needed"
    return f"{study.name}\n  {study.title}\n  Paper: {study.paper}\n  Data: {data}"


def _folder(output: str) -> Path:
    """The folder of the output, which need not be there yet; refused, before any work is done, if it can't be."""
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"The output must be a folder. Found a file at {output!r}. Name another.")
    accounts.check_folder(str(folder / "anything" if folder.is_dir() else folder))
    return folder


@contextmanager
def _progress(name: str) -> Iterator[Tell]:
    """Shows on a terminal what a study is doing; tells nothing to a file or a pipe."""
    from halfseen.studies.base import tell_nobody

    if not sys.stderr.isatty():
        yield tell_nobody
        return
    from rich.console import Console

    with Console(stderr=True).status(name) as status:
        yield lambda what: status.update(f"{name}: {what}")

"""halfseen reproduce: the tables and figures of the papers, ours beside theirs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from halfseen.cli import options, results
from halfseen.cli.app import Command
from halfseen.cli.messages import render
from halfseen.cli.results import Outcome, Terms
from halfseen.cli.streams import JSON, check_folder, print_json, print_lines
from halfseen.cli.summaries import describe_file
from halfseen.errors import DataError

if TYPE_CHECKING:
    from halfseen.studies import Study
    from halfseen.studies.framework import Progress

FOLDER = "halfseen-studies"


def _words(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    """Names of studies and papers, for shell completion."""
    from halfseen.studies import NAMES

    papers = dict.fromkeys(name.partition("/")[0] for name in NAMES)
    return [word for word in ("all", *papers, *NAMES) if word.startswith(start)]


@click.command(cls=Command)
@click.argument("studies", nargs=-1, metavar="[STUDY]...", shell_complete=_words)
@click.option("--list", "listed", is_flag=True, help="Say what is known, or of STUDY, and whether the data are there.")
@click.option("-o", "--output", type=click.Path(), default=None,
              help=f"A folder for tables (.csv, .md) and figures; with all also one page of everything. By default "
              f"{FOLDER} for all, else none.")  # fmt: skip
@click.option("--quick", is_flag=True, help="A small part of the work, to see that it runs.")
@click.option("--keep", "keeps", is_flag=True,
              help="Do not run again what the folder has from a run on the same terms.")  # fmt: skip
@options.seed("Seed of all that is random.")
@JSON
@options.quiet("Show no tables and no progress; only write them.")
def command(studies: tuple[str, ...], listed: bool, output: str | None, quick: bool, keeps: bool, seed: int,
            as_json: bool, quiet: bool) -> None:  # fmt: skip
    """Reproduce a STUDY: a table or figure of a paper (a1gm/table1), all of a paper (a1gm), or all there are.

    All of them make one page, studies.html, with every table and figure, the papers' numbers beside ours. That takes
    hours; after Ctrl-C, --keep goes on where it ended.

    \b
    halfseen reproduce --list
    halfseen reproduce --list grr
    halfseen reproduce a1gm/table1 -o results
    halfseen reproduce a1gm/table1 --json
    halfseen reproduce all --quick
    halfseen reproduce all --keep
    """
    from halfseen.studies import NAMES, select, study

    asked = [word.lower() for word in studies]
    names = list(dict.fromkeys(name for word in asked for name in select(word)))
    if listed:
        _show_list([study(name) for name in names or NAMES], as_json)
        return
    if not asked:
        raise click.UsageError("Say which study, such as a1gm/table1, or --list them all.")
    is_all = "all" in asked
    output = FOLDER if output is None and is_all else output
    if keeps and output is None:
        raise click.UsageError("--keep needs the folder of the earlier run: -o FOLDER.")
    folder = None if output is None else Path(output)
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise DataError(f"The output must be a folder. Found a file at {output!r}. Name another.")
        check_folder(str(folder / "anything" if folder.is_dir() else folder))
    run = Run(asked, folder, is_all, keeps, Terms(quick, seed), quiet, as_json)
    run.reproduce([study(name) for name in names])
    if as_json:
        print_json([results.facts(one, run.terms) for one in run.outcomes])


def _show_list(studies: Sequence[Study], as_json: bool) -> None:
    facts, entries = [], []
    for one in studies:
        absent, needed = one.absent(), len(one.needs)
        facts.append({"name": one.name, "title": one.title, "paper": one.paper, "needs": one.needs, "absent": absent})
        data = f"all {needed} there" if needed else "none needed"
        if absent:
            data = f"{needed - len(absent)} of {needed} there; absent: {', '.join(absent)}"
        entries.append(f"{one.name}\n  {one.title}\n  Paper: {one.paper}\n  Data: {data}")
    print_json(facts) if as_json else click.echo("\n\n".join(entries))


@dataclass
class Run:
    """How studies are run, and their outcomes so far."""

    asked: Sequence[str]
    folder: Path | None
    has_page: bool
    keeps: bool
    terms: Terms
    quiet: bool
    as_json: bool
    outcomes: list[Outcome] = field(default_factory=list)

    def reproduce(self, studies: Sequence[Study]) -> None:
        """Run the studies. One without data is an error if it was asked for by name, else left out."""
        for study in studies:
            try:
                self.outcomes.append(self._outcome(study))
            except KeyboardInterrupt:  # keep the outcomes so far, on a page that says what is left
                done = [one.study.name for one in self.outcomes if one.result is not None]
                if done:
                    left = studies[len(self.outcomes) :]
                    self.outcomes += [Outcome(one, reason="The run was interrupted.") for one in left]
                    self._write_page()
                kept = f"; what came of {', '.join(done)} is in {self.folder}" if done and self.folder else ""
                click.echo(f"Interrupted in {study.name}, of which nothing was saved{kept}.", err=True)
                sys.exit(130)
        if not any(one.result for one in self.outcomes):
            raise DataError(
                f"A study must find its data. None of {len(studies)} did. Get the data named in the notes above."
            )
        self._write_page()

    def _outcome(self, study: Study) -> Outcome:
        earlier = results.kept(self.folder, study, self.terms) if self.keeps and self.folder is not None else None
        if earlier is not None:
            self._print(f"{study.name}: kept from an earlier run of {earlier.time}.")
            return earlier
        started = perf_counter()
        try:
            with _progress(study.name, self.quiet) as progress:
                result = results.advising(study.run(**self.terms._asdict(), progress=progress))
        except DataError as error:
            if study.name in self.asked:
                raise
            sentence = render(error)
            click.echo(f"note: {study.name} was left out. {sentence}", err=True)
            return Outcome(study, reason=sentence)
        seconds = perf_counter() - started
        if not self.quiet and not self.as_json:
            results.show(study, result)
        if self.folder is None:
            return Outcome(study, result, seconds)
        outcome, paths = results.write(self.folder, study, result, seconds, self.terms)
        self._print(*(describe_file(str(path)) for path in paths))
        return outcome

    def _write_page(self) -> None:
        if self.has_page and self.folder is not None:
            self._print(*map(describe_file, results.write_page(self.folder, self.outcomes, self.terms)))

    def _print(self, *lines: str) -> None:
        print_lines(*lines, quiet=self.quiet, err=self.as_json)


@contextmanager
def _progress(name: str, quiet: bool) -> Iterator[Progress]:
    """Shows on a terminal what a study is doing."""
    from halfseen.studies.framework import no_progress

    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console

    with Console(stderr=True).status(name) as status:
        yield lambda message: status.update(f"{name}: {message}")

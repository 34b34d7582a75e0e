"""halfseen reproduce: the tables and figures of the papers, ours beside theirs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

import click

from halfseen.cli import accounts, results
from halfseen.cli.app import Command, in_options
from halfseen.cli.jsonout import JSON, tell_json
from halfseen.cli.outcomes import Outcome, Terms, facts, keep, kept
from halfseen.cli.studies_page import write as write_page
from halfseen.errors import DataError

if TYPE_CHECKING:
    from halfseen.studies import Study
    from halfseen.studies.base import Tell

SEED = click.IntRange(0, 2**32 - 1)
FOLDER = "halfseen-studies"


def _words(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    """What may be asked for, for the shell."""
    from halfseen.studies import NAMES

    papers = dict.fromkeys(name.partition("/")[0] for name in NAMES)
    return [word for word in ("all", *papers, *NAMES) if word.startswith(start)]


@click.command(cls=Command)
@click.argument("studies", nargs=-1, metavar="[STUDY]...", shell_complete=_words)
@click.option("--list", "listed", is_flag=True, help="Say what is known, or of STUDY, and whether the data are there.")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default=None,
    help=f"A folder for tables (.csv, .md) and figures; with all also one page of everything. By default {FOLDER} for "
    "all, else none.",
)
@click.option("--quick", is_flag=True, help="A small part of the work, to see that it runs.")
@click.option(
    "--keep", "keeps", is_flag=True, help="Do not run again what the folder has from a run on the same terms."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all that is random.")
@JSON
@click.option("-q", "--quiet", is_flag=True, help="Show no tables and no progress; only write them.")
def command(
    studies: tuple[str, ...],
    listed: bool,
    output: str | None,
    quick: bool,
    keeps: bool,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
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
    from halfseen.studies import NAMES, chosen, study

    asked = [word.lower() for word in studies]
    names = list(dict.fromkeys(name for word in asked for name in chosen(word)))
    if listed:
        known = [study(name) for name in names or NAMES]
        tell_json([_as_dict(one) for one in known]) if as_json else click.echo("\n\n".join(map(_entry, known)))
        return
    if not asked:
        raise click.UsageError("Say which study, such as a1gm/table1, or --list them all.")
    is_all = "all" in asked
    place = FOLDER if output is None and is_all else output
    if keeps and place is None:
        raise click.UsageError("--keep needs the folder of the earlier run: -o FOLDER.")
    run = Run(asked, None if place is None else _folder(place), is_all, keeps, Terms(quick, seed), quiet, as_json)
    run.reproduce([study(name) for name in names])
    if as_json:
        tell_json([facts(one, run.terms) for one in run.outcomes])


@dataclass
class Run:
    """How studies are run, and what has come of them so far."""

    asked: Sequence[str]
    folder: Path | None
    has_page: bool
    keeps: bool
    terms: Terms
    quiet: bool
    as_json: bool
    outcomes: list[Outcome] = field(default_factory=list)

    def reproduce(self, studies: Sequence[Study]) -> None:
        """Run one study after the other. One without data is an error if it was asked for by name, else left out."""
        for study in studies:
            try:
                self.outcomes.append(self._outcome(study))
            except KeyboardInterrupt:
                self._end_interrupted(studies)
        if not any(one.result for one in self.outcomes):
            raise DataError(
                f"A study must find its data. None of {len(studies)} did. Get the data named in the notes above."
            )
        self._write_page()

    def _outcome(self, study: Study) -> Outcome:
        earlier = kept(self.folder, study, self.terms) if self.keeps and self.folder is not None else None
        if earlier is not None:
            self._tell(f"{study.name}: kept from an earlier run of {earlier.time}.")
            return earlier
        started = perf_counter()
        try:
            with _progress(study.name, self.quiet) as tell:
                result = results.advising(study.run(**self.terms._asdict(), tell=tell))
        except DataError as error:
            if study.name in self.asked:
                raise
            sentence = in_options(str(error))
            click.echo(f"note: {study.name} was left out. {sentence}", err=True)
            return Outcome(study, reason=sentence)
        seconds = perf_counter() - started
        if not self.quiet and not self.as_json:
            results.show(study, result)
        return self._written(Outcome(study, result, seconds))

    def _written(self, outcome: Outcome) -> Outcome:
        """The outcome, in files if there is a folder for them."""
        if self.folder is None or outcome.result is None:
            return outcome
        paths, drawn = results.write(self.folder, outcome.study, outcome.result)
        outcome = replace(outcome, pictures=drawn)
        paths += [*(path for _, path in drawn), keep(self.folder, outcome, self.terms)]
        self._tell(*(accounts.of_file(str(path)) for path in paths))
        return outcome

    def _tell(self, *lines: str) -> None:
        accounts.tell(*lines, quiet=self.quiet, err=self.as_json)

    def _write_page(self) -> None:
        if self.has_page and self.folder is not None:
            paths = write_page(self.folder, self.outcomes, self.terms)
            self._tell(*map(accounts.of_file, paths))

    def _end_interrupted(self, studies: Sequence[Study]) -> NoReturn:
        """Keep what was done before, on a page that says what was not."""
        done = [one.study.name for one in self.outcomes if one.result is not None]
        at, *after = studies[len(self.outcomes) :]
        if done:
            self.outcomes += [Outcome(study, reason="The run was interrupted.") for study in (at, *after)]
            self._write_page()
        kept = f"; what came of {', '.join(done)} is in {self.folder}" if done and self.folder is not None else ""
        click.echo(f"Interrupted in {at.name}, of which nothing was saved{kept}.", err=True)
        sys.exit(130)


def _as_dict(study: Study) -> dict[str, Any]:
    return {
        "name": study.name,
        "title": study.title,
        "paper": study.paper,
        "needs": study.needs,
        "absent": study.absent(),
    }


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
def _progress(name: str, quiet: bool) -> Iterator[Tell]:
    """Shows on a terminal what a study is doing; tells nothing to a file or a pipe."""
    from halfseen.studies.base import tell_nobody

    if quiet or not sys.stderr.isatty():
        yield tell_nobody
        return
    from rich.console import Console

    with Console(stderr=True).status(name) as status:
        yield lambda what: status.update(f"{name}: {what}")

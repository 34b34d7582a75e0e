"""halfseen reproduce: the tables and figures of the papers, ours beside theirs."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import click

from halfseen.cli import options, results
from halfseen.cli.app import Command
from halfseen.cli.messages import render
from halfseen.cli.results import Outcome
from halfseen.cli.streams import JSON, check_output_folder, print_json, print_lines, signals_interrupt
from halfseen.cli.summaries import describe_file
from halfseen.engines.threads import thread_count
from halfseen.errors import DataError
from halfseen.studies import Study
from halfseen.studies.framework import RunSettings

FOLDER = "halfseen-studies"


def _words(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    """Names of studies and papers, for shell completion."""
    from halfseen.studies import NAMES

    papers = dict.fromkeys(name.partition("/")[0] for name in NAMES)
    return [word for word in ("all", *papers, *NAMES) if word.startswith(start)]


@click.command(cls=Command)
@click.argument("studies", nargs=-1, metavar="[STUDY]...", shell_complete=_words)
@click.option("--list", "listed", is_flag=True, help="List all studies, or STUDY, and whether their data are present.")
@click.option("-o", "--output", type=click.Path(),
              help=f"Folder for tables (.csv, .md), figures and the page; by default {FOLDER} for all.")  # fmt: skip
@click.option("--quick", is_flag=True, help="A small part of the work, to see that it runs.")
@click.option( "--keep", "keeps", is_flag=True,
              help="Skip studies that the folder has from a run with the same settings." )  # fmt: skip
@options.SEED
@click.option("--n-jobs", type=int, help="Number of processes; as many as processors by default.")
@options.ENGINE
@JSON
@options.quiet("Print no tables and show no progress.")
def reproduce(studies: tuple[str, ...], listed: bool, output: str | None, quick: bool, keeps: bool, seed: int,
              n_jobs: int | None, engine: str | None, as_json: bool, quiet: bool) -> None:  # fmt: skip
    """Reproduce a STUDY: a table or figure of a paper (a1gm/table1), all of a paper (a1gm), or all there are.

    All of them make one page, studies.html, with every table and figure, the papers' numbers beside ours. That takes
    hours; after Ctrl-C or SIGTERM, --keep continues where it ended.

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
        raise click.UsageError("Name a study, such as a1gm/table1, or --list them all.")
    output = FOLDER if output is None and "all" in asked else output
    if keeps and output is None:
        raise click.UsageError("--keep needs the folder of the earlier run: -o FOLDER.")
    if output is not None:
        check_output_folder(output)
    folder = None if output is None else Path(output)
    settings = RunSettings(quick, seed, thread_count(n_jobs), engine or "cpu")

    def say(*lines: str) -> None:
        print_lines(*lines, quiet=quiet, err=as_json)

    def run(study: Study) -> Outcome:
        """Run a study, print and write its result. Without its data, leave it out, unless it was asked for by name."""
        earlier = results.kept(folder, study, settings) if keeps and folder is not None else None
        if earlier is not None:
            say(f"{study.name}: kept from an earlier run of {earlier.time}.")
            return earlier
        started = perf_counter()
        try:
            with _progress(study.name, quiet) as progress:
                result = results.with_cli_advice(study.run(**settings._asdict(), progress=progress))
        except DataError as error:
            if study.name in asked:
                raise
            click.echo(f"note: {study.name} was left out. {render(error)}", err=True)
            return Outcome(study, reason=render(error))
        seconds = perf_counter() - started
        outcome = Outcome(study, result, seconds, record=results.record(study, settings))
        if not quiet and not as_json:
            results.show(outcome, result)
        if folder is not None:
            outcome, paths = results.write(folder, outcome, result, settings)
            say(*(describe_file(str(path)) for path in paths))
        return outcome

    outcomes, left, interrupted, code = [], [study(name) for name in names], "", 0
    with signals_interrupt() as exit_code:
        try:
            while left:
                outcomes.append(run(left[0]))
                del left[0]
        except KeyboardInterrupt:  # keep the outcomes so far, on a page that names the others
            code = exit_code()
    if code and left:
        done = [one.study.name for one in outcomes if one.result is not None]
        kept = f"; the results of {', '.join(done)} are in {folder}" if done and folder else ""
        interrupted = f"Interrupted in {left[0].name}, of which nothing was saved{kept}."
        outcomes += [Outcome(one, reason="The run was interrupted.") for one in left]
    if any(one.result for one in outcomes) and "all" in asked and folder is not None:
        say(*map(describe_file, results.write_page(folder, outcomes, settings)))
    if interrupted:
        click.echo(interrupted, err=True)
        sys.exit(code)
    if not any(one.result for one in outcomes):
        must = f"At least one study must have its data. None of {len(outcomes)} has."
        raise DataError(must, remedy="Get the data named in the notes above.")
    if as_json:
        print_json([results.facts(one, settings) for one in outcomes])


def _show_list(studies: Sequence[Study], as_json: bool) -> None:
    facts, entries = [], []
    for one in studies:
        absent, n = one.absent(), len(one.needs)
        facts.append({"name": one.name, "title": one.title, "paper": one.paper, "needs": one.needs, "absent": absent})
        data = f"all {n} present" if n else "none needed"
        data = f"{n - len(absent)} of {n} present; absent: {', '.join(absent)}" if absent else data
        entries.append(f"{one.name}\n  {one.title}\n  Paper: {one.paper}\n  Data: {data}")
    print_json(facts) if as_json else click.echo("\n\n".join(entries))


@contextmanager
def _progress(name: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Shows on a terminal what a study is doing."""
    from halfseen.studies.framework import no_progress

    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console

    with Console(stderr=True).status(name) as status:
        yield lambda message: status.update(f"{name}: {message}")

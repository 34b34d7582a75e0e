"""Results of studies: printed as tables, written to a folder, kept as JSON, and all together on one page."""

from __future__ import annotations

import base64
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import click

from halfseen import __version__
from halfseen.cli.messages import render
from halfseen.cli.streams import as_json, write_text, written
from halfseen.errors import DataError
from halfseen.io import write_table
from halfseen.studies import Column, Goal, Result, Study, Table
from halfseen.studies.framework import SHORT, RunSettings

TITLE = "The papers, reproduced"
SUBTITLE = "Every table and figure of the papers, reproduced: theirs beside ours. What is grey is printed in the paper."


def rich_tables(table: Table, width: int) -> Iterator[Any]:
    """The table in parts of at most `width` characters where possible, each with the first column and whole groups."""
    from rich.table import Table as RichTable
    from rich.text import Text

    columns, texts = table.columns, list(zip(*table.texts(), strict=True))
    groups = [list(at) for _, at in groupby(range(len(columns)), key=lambda at: columns[at].group or columns[at].name)]
    above = {at: columns[at].group for at, *_ in groups}
    heads = [f"{above.get(at, '')}\n{column.name}" for at, column in enumerate(columns)]

    def size(part: list[int]) -> int:
        return sum(max(map(len, (*heads[at].split("\n"), *texts[at]))) + 2 for at in part) - 2

    parts = [groups[0]]
    for group in groups[1:]:
        if parts[-1] is not groups[0] and size([*parts[-1], *group]) > width:
            parts.append(groups[0])
        parts[-1] = [*parts[-1], *group]
    for part in parts:
        printed = RichTable(box=None, pad_edge=False, header_style="cyan")
        for at in part:
            head = heads[at] if any(columns[one].group for one in part) else columns[at].name
            printed.add_column(Text(head), justify="left" if is_words(texts[at]) else "right", no_wrap=True)
        for row in zip(*(texts[at] for at in part), strict=True):
            printed.add_row(*map(Text, row))
        yield printed


def judgement(outcome: Outcome) -> Iterator[str]:
    """The verdict, and the state of every goal; nothing for a quick run, which is not judged."""
    if outcome.result is not None and outcome.result.goals:
        yield from (f"Verdict: {outcome.verdict}.", "")
        yield from (f"- {goal.state}: {goal.words}" for goal in outcome.result.goals)
        yield ""


def show(outcome: Outcome, result: Result) -> None:
    """Print the tables: in colour and as wide as the terminal on one, as plain aligned lines elsewhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
    study = outcome.study
    with console.capture() as printed:
        console.print(Text(f"{study.name}: {study.title}", style="bold"), Text(study.paper, style="dim"), sep="\n")
        for table in result.tables:
            console.print(Text(f"\n{table.title}", style="bold"))
            for part in rich_tables(table, console.width):
                console.print("", part, sep="\n")
            for place, footnote in enumerate(table.footnotes):
                console.print(Text(footnote if place else f"\n{footnote}", style="dim"))
        console.print(Text(f"\n{result.summary}\n"))
        for line in judgement(outcome):
            console.print(Text(line))
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def is_words(cells: Iterable[str]) -> bool:
    """Whether a column holds words, not numbers."""
    return any(cell[:1].isalpha() for cell in cells)


def markdown(table: Table) -> Iterator[str]:
    """The table between its title and its footnotes."""
    marks = ["---" if is_words(cells) else "---:" for cells in zip(*table.texts(), strict=True)]
    yield from (f"**{table.title}**", "")
    yield from (f"| {' | '.join(row)} |" for row in ([one.full_name for one in table.columns], marks, *table.texts()))
    yield from ("", *(f"- {footnote}" for footnote in table.footnotes))


def with_cli_advice(result: Result) -> Result:
    """The result, with the advice of loaders on absent data in terms of the command line."""

    def advised(table: Table) -> Table:
        notes = [render(note) if "`halfseen.datasets.fetch(" in note else note for note in table.footnotes]
        return replace(table, footnotes=notes)

    return replace(result, tables=list(map(advised, result.tables)))


# outcomes and their files


class Record(NamedTuple):
    """When, on what, and by which command a study was run."""

    date: str = ""
    machine: str = ""
    command: str = ""


NOT_RUN = Record()


@dataclass(frozen=True)
class Outcome:
    """A result, its run time and its pictures (title, file); or the reason why there is none."""

    study: Study
    result: Result | None = None
    seconds: float = 0.0
    pictures: Sequence[tuple[str, Path]] = ()
    reason: str = ""
    record: Record = NOT_RUN

    @property
    def verdict(self) -> str:
        """The result's verdict, or "not run"; a dash without goals."""
        return "not run" if self.result is None else self.result.verdict or "-"

    @property
    def time(self) -> str:
        """Run time as text."""
        return "-" if self.result is None else f"{self.seconds:.1f} s"

    @property
    def anchor(self) -> str:
        """Id of the study on the page."""
        return self.study.name.replace("/", "-").replace(".", "-")


def terms(study: Study, settings: RunSettings) -> dict[str, Any]:
    """What the numbers of a run depend on: how much is run, the seed, the engine, the version, and the absent data."""
    known = {"quick": settings.quick, "seed": settings.seed, "engine": settings.engine}
    return known | {"halfseen": __version__, "absent": study.absent()}


def record(study: Study, settings: RunSettings) -> Record:
    """When, on what, and by which command the study was run."""
    machine = f"{os.cpu_count()} processors"
    if hasattr(os, "sysconf"):  # not on Windows
        machine += f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    machine += f", {settings.n_jobs} {'process' if settings.n_jobs == 1 else 'processes'}"
    if settings.engine == "cuda":
        import torch

        machine += f", {torch.cuda.get_device_name()}"
    chosen = {
        "--quick": settings.quick,
        f"--seed {settings.seed}": settings.seed,
        "--engine cuda": settings.engine == "cuda",
    }
    words = [f"halfseen reproduce {study.name}", *(word for word, is_set in chosen.items() if is_set)]
    return Record(date.today().isoformat(), machine, " ".join(words))


def facts(outcome: Outcome, settings: RunSettings) -> dict[str, Any]:
    """An outcome for --json, and to be kept."""
    study, result = outcome.study, outcome.result
    known = {"study": study.name, "title": study.title, "paper": study.paper, "terms": terms(study, settings)}
    if result is None:
        return known | {"verdict": "not run", "reason": outcome.reason}
    return known | {
        "seconds": outcome.seconds, "record": outcome.record._asdict(),
        "substitute": result.substitute, "left_out": list(result.absent),
        "verdict": result.verdict, "summary": result.summary,
        "goals": [goal._asdict() for goal in result.goals],
        "tables": [asdict(table) for table in result.tables],
        "pictures": [{"title": title, "file": path.name} for title, path in outcome.pictures],
    }  # fmt: skip


def write(folder: Path, outcome: Outcome, result: Result, settings: RunSettings) -> tuple[Outcome, list[Path]]:
    """Write the tables as CSV, all of it as Markdown, the pictures if there is matplotlib, and last the JSON.

    Returns the outcome with its pictures, and the paths written.
    """
    study = outcome.study
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        must = f"It must be possible to create the output folder. {str(folder)!r} can't be: {error.strerror}."
        raise DataError(must, remedy="Name another.") from None
    paths = []
    for table in result.tables:
        paths.append(_path(folder, study, "csv", table.name))
        write_table(paths[-1], [one.full_name for one in table.columns], list(zip(*table.rows, strict=True)))
    outcome = replace(outcome, pictures=_draw(folder, study, result))
    lines = [f"# {study.name}\n\n{study.title}. {study.paper}.\n\n{result.summary}\n", *_verdict_and_tables(outcome)]
    paths += [_path(folder, study, "md"), *(path for _, path in outcome.pictures), _path(folder, study, "json")]
    write_text(_path(folder, study, "md"), "\n".join([*lines, ""]))
    write_text(paths[-1], f"{as_json(facts(outcome, settings))}\n")
    return outcome, paths


def _draw(folder: Path, study: Study, result: Result) -> list[tuple[str, Path]]:
    """Draw the pictures as PNG."""
    if not result.pictures:
        return []
    try:
        from matplotlib.figure import Figure
    except ImportError:
        click.echo("note: Figures need matplotlib. It is not installed. Install it: pip install matplotlib.", err=True)
        return []
    saved = []
    for picture in result.pictures:
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        picture.draw(figure)
        path = _path(folder, study, "png", picture.name)
        with written(path) as draft:
            figure.savefig(draft, format="png", dpi=150)
        saved.append((picture.title, path))
    return saved


def _verdict_and_tables(outcome: Outcome) -> Iterator[str]:
    """The verdict, the record, tables in Markdown, and links to the pictures."""
    run = outcome.record
    yield from (*judgement(outcome), f"`{run.command}`: {outcome.time}, {run.machine}, {run.date}.")
    for table in outcome.result.tables if outcome.result else ():
        yield from ("", *markdown(table))
    for title, path in outcome.pictures:
        yield f"\n![{title}]({path.name})"


def kept(folder: Path, study: Study, settings: RunSettings) -> Outcome | None:
    """The outcome that an earlier run with the same settings has written, if it is complete."""
    try:
        known = json.loads(_path(folder, study, "json").read_text(encoding="utf-8"))
        if known["terms"] != terms(study, settings):
            return None
        tables = [
            Table(**one | {"columns": [Column(**column) for column in one["columns"]]}) for one in known["tables"]
        ]
        pictures = [(picture["title"], folder / picture["file"]) for picture in known["pictures"]]
        goals = [Goal(**goal) for goal in known["goals"]]
        substitute, absent = known["substitute"], known["left_out"]
        result = Result(known["summary"], tables, goals=goals, substitute=substitute, absent=absent)
        seconds, run = float(known["seconds"]), Record(**known["record"])
    except (OSError, ValueError, KeyError, TypeError):  # absent, truncated, or something else
        return None
    if not all(path.is_file() for _, path in pictures):
        return None
    return Outcome(study, result, seconds, pictures, record=run)


def _path(folder: Path, study: Study, ending: str, name: str = "") -> Path:
    """The file of a study, or of one of its tables and pictures by name."""
    return folder / f"{'-'.join([*study.name.split('/'), *([name] if name else [])])}.{ending}"


# the page of all studies: HTML in one file, and the same as Markdown


def write_page(folder: Path, outcomes: Sequence[Outcome], settings: RunSettings) -> Iterator[str]:
    """Write studies.md, and studies.html if there is jinja2; the paths written."""
    done = [one for one in outcomes if one.result is not None]
    judged = [one.result for one in done if one.result and one.result.goals]
    reaching = [result for result in judged if all(goal.state != SHORT for goal in result.goals)]
    n_substitutes = sum(bool(result.substitute) for result in reaching)
    machines = dict.fromkeys(one.record.machine for one in done)
    overview = {
        "Studies": f"{len(outcomes)}, of which {len(done)} ran",
        "Goals": f"all reached by {len(reaching)} of the {len(judged)} studies judged here, {n_substitutes} of them on "
        "other data than the paper's",
        "Run": f"{'a small part of each (--quick)' if settings.quick else 'whole'}, seed {settings.seed}",
        "Time": f"{sum(one.seconds for one in done):,.0f} s",
        "Machine": f"{'; '.join(machines)}; Python {platform.python_version()}",
        "Version": f"halfseen {__version__}",
    }
    papers = [(paper, list(group)) for paper, group in groupby(outcomes, key=lambda one: one.study.paper)]
    yield write_text(folder / "studies.md", "\n".join([*_page_lines(overview, papers), ""]))
    if find_spec("jinja2") is None:
        click.echo("note: The page needs jinja2. It is not installed. Install it: pip install jinja2.", err=True)
        return
    from halfseen.report.page import render_page

    names = [group[0].study.name.partition("/")[0] for _, group in papers]
    filters: dict[str, Callable[[Any], Any]] = {
        "heads": heads,
        "is_words": lambda table: [is_words(cells) for cells in zip(*table.texts(), strict=True)],
        "image": lambda path: base64.b64encode(path.read_bytes()).decode("ascii"),
    }
    anchors = [(f"paper-{place}", name) for place, name in enumerate(names, 1)]
    page = render_page(
        "halfseen.cli", "studies.html", filters, title=TITLE, subtitle=SUBTITLE, kind="studies", anchors=anchors,
        facts=list(overview.items()), papers=papers, outcomes=outcomes,
    )  # fmt: skip
    yield write_text(folder / "studies.html", page)


def heads(table: Table) -> tuple[list[tuple[str, int, int]], list[int]]:
    """A header of two rows: names of groups, with how many columns and rows they span, and the columns below them."""
    above, below = [], []
    for _, columns in groupby(enumerate(table.columns), key=lambda column: column[1].group or column[0]):
        places = [place for place, _ in columns]
        first = table.columns[places[0]]
        above.append((first.group, len(places), 1) if first.group else (first.name, 1, 2))
        below += places if first.group else []
    return above, below


def _page_lines(overview: dict[str, str], papers: Sequence[tuple[str, list[Outcome]]]) -> Iterator[str]:
    """The page in Markdown."""
    yield f"# {TITLE}\n"
    yield from (f"- {name}: {text}" for name, text in overview.items())
    rows = [
        [one.study.name, one.study.title, one.verdict, one.time, one.record.machine, one.record.date]
        for _, group in papers
        for one in group
    ]
    columns = [Column(name) for name in ("study", "what it shows", "verdict", "time", "machine", "date")]
    yield from ("", *markdown(Table("All studies", columns, rows)))
    for paper, group in papers:
        yield f"\n## {paper}"
        for one in group:
            yield f'\n<a id="{one.anchor}"></a>\n\n### {one.study.name}: {one.study.title}'
            if one.result is None:
                yield f"\nNot run. {one.reason}"
                continue
            yield from (f"\n{one.result.summary}\n", *_verdict_and_tables(one))

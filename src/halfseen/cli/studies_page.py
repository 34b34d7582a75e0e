"""All studies on one page: HTML in one file, and the same as Markdown."""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import click

from halfseen import __version__
from halfseen.cli import tables
from halfseen.cli.outcomes import Outcome, Terms
from halfseen.cli.results import written
from halfseen.studies import Column, Table

NAME = "studies"
TITLE = "The papers, reproduced"
SUBTITLE = "Every table and figure of the papers, made anew: theirs beside ours. What is grey is printed in the paper."


def write(folder: Path, outcomes: Sequence[Outcome], terms: Terms) -> Iterator[str]:
    """Write studies.md, and studies.html if there is jinja2; the paths written."""
    told = list(_facts(outcomes, terms))
    path = folder / f"{NAME}.md"
    with written(path) as draft:
        draft.write_text("\n".join([*_markdown(outcomes, told), ""]), encoding="utf-8")
    yield str(path)
    page = _html(outcomes, told)
    if page is not None:
        path = folder / f"{NAME}.html"
        with written(path) as draft:
            draft.write_text(page, encoding="utf-8", newline="\n")
        yield str(path)


def _facts(outcomes: Sequence[Outcome], terms: Terms) -> Iterator[tuple[str, str]]:
    done = [one for one in outcomes if one.result is not None]
    judged = [one for one in done if one.verdict != "-"]
    yield "Studies", f"{len(outcomes)}, of which {len(done)} ran"
    yield (
        "Goals reached",
        f"{sum(one.verdict == 'pass' for one in judged)} of {len(judged)} studies that have goals here",
    )
    yield "Run", f"{'a small part of each (--quick)' if terms.quick else 'whole'}, seed {terms.seed}"
    yield "Time", f"{sum(one.seconds for one in done):,.0f} s"
    yield "Machine", f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
    yield "Version", f"halfseen {__version__}"


def _papers(outcomes: Sequence[Outcome]) -> list[tuple[str, list[Outcome]]]:
    return [(paper, list(group)) for paper, group in groupby(outcomes, key=lambda one: one.study.paper)]


# HTML.


def _html(outcomes: Sequence[Outcome], told: Sequence[tuple[str, str]]) -> str | None:
    if find_spec("jinja2") is None:
        click.echo("note: The page needs jinja2. It is not installed. Install it: pip install jinja2.", err=True)
        return None
    from halfseen.report.rendering import page_of

    papers = _papers(outcomes)
    short = [group[0].study.name.partition("/")[0] for _, group in papers]
    return page_of(
        "halfseen.cli", "studies.html", {"heads": heads, "is_words": _is_words, "image": _image},
        title=TITLE, subtitle=SUBTITLE, kind="studies",
        anchors=[(f"paper-{place}", name) for place, name in enumerate(short, 1)],
        facts=told, papers=papers, outcomes=outcomes,
    )  # fmt: skip


def heads(table: Table) -> tuple[list[tuple[str, int, int]], list[int]]:
    """A header of two rows: names of groups, with how many columns and rows they span, and the columns below them."""
    above, below = [], []
    for _, columns in groupby(enumerate(table.columns), key=lambda column: column[1].group or column[0]):
        places = [place for place, _ in columns]
        first = table.columns[places[0]]
        above.append((first.group, len(places), 1) if first.group else (first.name, 1, 2))
        below += places if first.group else []
    return above, below


def _is_words(table: Table) -> list[bool]:
    """Whether a column holds words, which stand at the left."""
    return [tables.is_words(cells) for cells in zip(*table.texts(), strict=True)]


def _image(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")


# Markdown.


def _markdown(outcomes: Sequence[Outcome], told: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield f"# {TITLE}\n"
    yield from (f"- {what}: {said}" for what, said in told)
    rows = [[one.study.name, one.study.title, one.verdict, one.time] for one in outcomes]
    columns = [Column("study"), Column("what it shows"), Column("verdict"), Column("time")]
    yield ""
    yield from tables.markdown(Table("All studies", columns, rows))
    for paper, group in _papers(outcomes):
        yield f"\n## {paper}"
        for one in group:
            yield from _section(one)


def _section(one: Outcome) -> Iterator[str]:
    yield f"\n### {one.study.name}: {one.study.title}"
    if one.result is None:
        yield f"\nNot run. {one.reason}"
        return
    verdict = "" if one.verdict == "-" else f" Verdict: {one.verdict}."
    yield f"\n{one.result.summary}{verdict} It took {one.time}."
    for goal in one.result.goals:
        yield f"\n- {'reached' if goal.reached else 'short'}: {goal.words}"
    for table in one.result.tables:
        yield ""
        yield from tables.markdown(table)
    for title, path in one.pictures:
        yield f"\n![{title}]({path.name})"

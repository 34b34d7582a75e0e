"""What came of a study: shown, and written to a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from halfseen.cli import tables
from halfseen.cli.app import in_options
from halfseen.data import write_table
from halfseen.data.drafts import moved_when_whole
from halfseen.errors import DataError
from halfseen.studies import Result, Study

#: What a loader advises where data are absent.
_TO_FETCH = "halfseen.datasets.fetch("


def advising(result: Result) -> Result:
    """The result, with what loaders advise in footnotes in terms of this program; other texts stay as they are."""
    told = [[in_options(note) if _TO_FETCH in note else note for note in table.footnotes] for table in result.tables]
    advised = [replace(table, footnotes=notes) for table, notes in zip(result.tables, told, strict=True)]
    return replace(result, tables=advised)


def show(study: Study, result: Result) -> None:
    """Print the tables: in colour and as wide as the terminal on one, as plain aligned lines elsewhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False)
    width = console.width if sys.stdout.isatty() else None
    console.print(Text(f"{study.name}: {study.title}", style="bold"))
    console.print(Text(study.paper, style="dim"))
    for table in result.tables:
        console.print(Text(f"\n{table.title}", style="bold"))
        for header, rows in tables.blocks(table, width):
            console.print(Text("\n".join(["", *header]), style="cyan"))
            console.print(Text("\n".join(rows)))
        for place, footnote in enumerate(table.footnotes):
            console.print(Text(footnote if place else f"\n{footnote}", style="dim"))
    console.print(Text(f"\n{result.summary}\n"))


class Drawn(NamedTuple):
    """A picture in a file."""

    title: str
    path: Path


def write(folder: Path, study: Study, result: Result) -> tuple[list[Path], list[Drawn]]:
    """Write the tables as CSV, all of it as Markdown, and the pictures if there is matplotlib.

    What comes back: the files of tables and text, and the pictures."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(
            f"The output folder must be made. {str(folder)!r} can't: {error.strerror}. Name another."
        ) from None
    paths = [path_of(folder, study, table.name, "csv") for table in result.tables]
    for path, table in zip(paths, result.tables, strict=True):
        columns = list(zip(*table.rows, strict=True))
        write_table(path, [column.full_name for column in table.columns], columns)
    drawn = _draw(folder, study, result)
    page = path_of(folder, study, "", "md")
    with written(page) as draft:
        draft.write_text("\n".join([*_page(study, result, drawn), ""]), encoding="utf-8")
    return [*paths, page], drawn


def _page(study: Study, result: Result, drawn: Sequence[Drawn]) -> Iterator[str]:
    """A page of Markdown with the tables and, where they were drawn, the pictures."""
    yield f"# {study.name}"
    yield f"\n{study.title}. {study.paper}."
    yield f"\n{result.summary}"
    for table in result.tables:
        yield ""
        yield from tables.markdown(table)
    for title, path in drawn:
        yield f"\n![{title}]({path.name})"


def _draw(folder: Path, study: Study, result: Result) -> list[Drawn]:
    """Draw the pictures as PNG."""
    if not result.pictures:
        return []
    try:
        from matplotlib.figure import Figure
    except ImportError:
        click.echo(
            "note: Figures need matplotlib. It is not installed. Get it: pip install matplotlib; all numbers are here.",
            err=True,
        )
        return []
    drawn = []
    for picture in result.pictures:
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        picture.draw(figure)
        path = path_of(folder, study, picture.name, "png")
        with written(path) as draft:
            figure.savefig(draft, format="png", dpi=150)
        drawn.append(Drawn(picture.title, path))
    return drawn


def path_of(folder: Path, study: Study, name: str, ending: str) -> Path:
    """The file of a study, or of one of its tables and pictures by name."""
    stem = "-".join([*study.name.split("/"), *([name] if name else [])])
    return folder / f"{stem}.{ending}"


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A draft to write to, which becomes the file when it is whole."""
    try:
        with moved_when_whole(path) as draft:
            yield draft
    except OSError as error:
        raise DataError(
            f"The output folder must be writable, with room enough. Could not write {str(path)!r}: "
            f"{error.strerror or error}. Choose another place."
        ) from None

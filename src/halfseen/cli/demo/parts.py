"""What the demo shows of one kind of data, and the page of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from halfseen.cli import accounts
from halfseen.cli.results import written
from halfseen.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "halfseen: the demo"
SUBTITLE = "Matrices one only half sees: values missing, values known only as ordered levels, values of unknown places."


class Listing(NamedTuple):
    """A small table: its caption, its heads, its rows of texts."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """A drawing on Axes, and what it shows in words."""

    draw: Callable[[Axes], Any]
    words: str


class Whole(NamedTuple):
    """What a whole report is made of: a model, and the cells of training and test."""

    model: Any
    train: Any
    test: Any


@dataclass(frozen=True)
class Part:
    """One kind of data: what was done in a sentence, facts, listings, pictures, and what to make a report of."""

    name: str
    title: str
    told: str
    facts: Sequence[tuple[str, str]]
    listings: Sequence[Listing]
    pictures: Sequence[Picture]
    whole: Whole


def check_folder(folder: Path) -> None:
    """Make the folder of the demo; refuse, before any work is done, what can't be one."""
    accounts.check_folder(str(folder / "anything" if folder.is_dir() else folder))
    if folder.exists() and not folder.is_dir():
        raise DataError(f"The place of the demo must be a folder. Found a file at {str(folder)!r}. Name another.")
    folder.mkdir(exist_ok=True)


def write_page(folder: Path, parts: Sequence[Part]) -> Path | None:
    """Write report.html, and a whole report of each model beside it; None if what draws and renders is not here."""
    from halfseen import make_report
    from halfseen.errors import HalfseenError
    from halfseen.report import check_tools
    from halfseen.report.drawing import drawn
    from halfseen.report.rendering import page_of

    try:
        check_tools()
    except HalfseenError as error:
        click.echo(f"note: {error} What the page would show is in report.md.", err=True)
        return None
    for part in parts:
        make_report(*part.whole, title=part.title).save(folder / f"{part.name}.html")
    page = page_of(
        "halfseen.cli.demo", "demo.html", {"drawn": drawn}, title=TITLE, subtitle=SUBTITLE, kind="report",
        anchors=[(part.name, part.title) for part in parts], parts=parts,
    )  # fmt: skip
    with written(folder / "report.html") as draft:
        draft.write_text(page, encoding="utf-8", newline="\n")
    return folder / "report.html"

"""halfseen demo: the built-in ratings, a table and a survey, fitted and shown on a page."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.demo.parts import Part, films, survey, table
from halfseen.cli.streams import JSON, check_folder, print_json, written
from halfseen.errors import DataError, HalfseenError

TITLE = "halfseen: the demo"
SUBTITLE = "Matrices one only half sees: values missing, values known only as ordered levels, values of unknown places."


@click.command(cls=Command)
@click.option("-o", "--output", type=click.Path(), default="halfseen-demo", show_default=True, help="A folder.")
@options.seed("Seed of all that is random.")
@options.quiet("No progress bars, and nothing shown; only written.")
@JSON
def command(output: str, seed: int, quiet: bool, as_json: bool) -> None:
    """Fit the built-in film ratings, a table with holes and a survey without names; show what comes out.

    Everything is kept in a folder: report.html to look at, a whole report of each model, the models, the tables.

    \b
    halfseen demo
    halfseen demo -o shown --seed 1
    """
    folder = Path(output)
    check_folder(str(folder / "anything" if folder.is_dir() else folder))
    if folder.exists() and not folder.is_dir():
        raise DataError(f"The place of the demo must be a folder. Found a file at {str(folder)!r}. Name another.")
    folder.mkdir(exist_ok=True)
    try:
        parts = [make(folder, seed, quiet) for make in (films, table, survey)]
    except KeyboardInterrupt:
        click.echo(f"Interrupted; the models that were finished are in {folder}, without a report.", err=True)
        sys.exit(130)
    lines = list(_lines(parts))
    with written(folder / "report.md") as draft:
        draft.write_text("\n".join([f"# {TITLE}", "", *lines, ""]), encoding="utf-8")
    page = _write_page(folder, parts)
    if as_json:
        facts = [{"part": part.name, "title": part.title, "facts": dict(part.facts)} for part in parts]
        print_json({"parts": facts, "file": str(page)})
    elif not quiet:
        click.echo("\n".join([*lines, f"Look at {page}; models and tables are beside it."]))


def _lines(parts: Sequence[Part]) -> Iterator[str]:
    """The page as Markdown."""
    for part in parts:
        yield from (f"## {part.title}", "", part.description, "")
        yield from (f"- {name}: {text}" for name, text in part.facts)
        yield ""
        for caption, heads, rows in part.listings:
            yield from (f"{caption}:", "")
            for first, *texts in rows:
                named = (f"{head}: {text}" for head, text in zip(heads[1:], texts, strict=True))
                yield f"- {'. '.join([first, *named])}."
            yield ""


def _write_page(folder: Path, parts: Sequence[Part]) -> Path:
    """Write report.html, and a report of each model beside it; without matplotlib and jinja2, report.md is the page."""
    from halfseen import make_report
    from halfseen.report import check_tools
    from halfseen.report.figures import draw_svg
    from halfseen.report.page import render_page

    try:
        check_tools()
    except HalfseenError as error:
        click.echo(f"note: {error} What the page would show is in report.md.", err=True)
        return folder / "report.md"
    for part in parts:
        make_report(*part.reported, title=part.title).save(folder / f"{part.name}.html")
    page = render_page(
        "halfseen.cli.demo", "demo.html", {"drawn": draw_svg}, title=TITLE, subtitle=SUBTITLE, kind="report",
        anchors=[(part.name, part.title) for part in parts], parts=parts,
    )  # fmt: skip
    with written(folder / "report.html") as draft:
        draft.write_text(page, encoding="utf-8", newline="\n")
    return folder / "report.html"

"""halfseen demo: the built-in ratings, a table and a survey, fitted, and told of on a page."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from halfseen.cli.app import Command
from halfseen.cli.demo.parts import TITLE, Part, check_folder, write_page
from halfseen.cli.jsonout import JSON, tell_json
from halfseen.cli.results import written


@click.command(cls=Command)
@click.option("-o", "--output", type=click.Path(), default="halfseen-demo", show_default=True, help="A folder.")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all that is random."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress bars, and nothing shown; only written.")
@JSON
def command(output: str, seed: int, quiet: bool, as_json: bool) -> None:
    """Fit the built-in film ratings, a table with holes and a survey without names; show what comes out.

    Everything is kept in a folder: report.html to look at, a whole report of each model, the models, the tables.

    \b
    halfseen demo
    halfseen demo -o shown --seed 1
    """
    from halfseen.cli.demo import films, survey, table

    folder = Path(output)
    check_folder(folder)
    try:
        parts = [make(folder, seed, quiet) for make in (films.part, table.part, survey.part)]
    except KeyboardInterrupt:
        click.echo(f"Interrupted; the models that were finished are in {folder}, without a report.", err=True)
        sys.exit(130)
    lines = list(_text(parts))
    with written(folder / "report.md") as draft:
        draft.write_text("\n".join([f"# {TITLE}", "", *lines, ""]), encoding="utf-8")
    page = write_page(folder, parts)
    look = folder / "report.md" if page is None else page
    if as_json:
        facts = [{"part": part.name, "title": part.title, "facts": dict(part.facts)} for part in parts]
        tell_json({"parts": facts, "file": str(look)})
    elif not quiet:
        click.echo("\n".join([*lines, f"Look at {look}; models and tables are beside it."]))


def _text(parts: Sequence[Part]) -> Iterator[str]:
    """The same as the page, as lines."""
    for part in parts:
        yield from (f"## {part.title}", "", part.told, "")
        yield from (f"- {what}: {said}" for what, said in part.facts)
        yield ""
        for listing in part.listings:
            yield from (f"{listing.caption}:", "")
            yield from (f"- {_line(listing.heads, row)}" for row in listing.rows)
            yield ""


def _line(heads: Sequence[str], row: Sequence[str]) -> str:
    """A row in words, without the head of its name: "7. Rated highest: ... Recommended: ..."."""
    return ". ".join([row[0], *(f"{head}: {text}" for head, text in zip(heads[1:], row[1:], strict=True))]) + "."

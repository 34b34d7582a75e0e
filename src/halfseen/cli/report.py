"""halfseen report: one page of what was seen, how the fit went, what was found, and how good it is."""

import os
from typing import Any

import click

from halfseen.cli import accounts, options
from halfseen.cli.app import Command
from halfseen.cli.streams import In, Out, said
from halfseen.errors import DataError


@click.command(cls=Command)
@options.MODEL
@click.option("--train", type=In(), default=None, help="The file that the model was fitted on; - reads it.")
@click.option("--test", type=In(), default=None, help="A file of cells that were held out; - reads it.")
@click.option(
    "-o",
    "--output",
    type=Out("html"),
    default="report.html",
    show_default=True,
    help="The HTML file to write; - shows it.",
)
@click.option("--title", default=None, help="The heading of the page; by default the model and its size.")
@click.option("--top", type=int, default=10, show_default=True, help="How many columns and rows of each component.")
@click.option("-k", "length", type=int, default=10, show_default=True, help="The length of rankings.")
@click.option(
    "--relevant", type=float, default=1.0, show_default=True, help="Held-out cells from this value on are relevant."
)
@options.READING
@click.option("-q", "--quiet", is_flag=True, help="No account.")
def command(
    model: str, train: str | None, test: str | None, output: str, title: str | None, top: int, length: int,
    relevant: float, layout: str, columns: Any, header: bool | None, duplicates: str, quiet: bool,
) -> None:  # fmt: skip
    """Write a report of MODEL: a page in one file, to be looked at in any browser.

    What it tells depends on what it is given: with --train also the values that were seen, and whether the model draws
    such data; with --test also how good the model is on cells held out, beside simple rules.

    \b
    halfseen report model.hs --train ratings.csv --test held_out.csv -o report.html
    halfseen report model.hs --title "Film ratings" --top 20
    """
    import halfseen
    from halfseen.report import check_tools

    check_tools()
    _check_place(output, [model, train, test])
    fitted = halfseen.load(model)
    _refuse_train(fitted, train)
    reading: dict[str, Any] = {"layout": layout, "columns": columns, "header": header, "duplicates": duplicates}
    if hasattr(fitted, "unseen"):
        reading |= {"unseen": fitted.unseen, "levels": fitted._fitted_names()}
    known, held = (None if path is None else halfseen.observe(path, **reading) for path in (train, test))
    made = halfseen.make_report(fitted, known, held, title=title, top=top, k=length, relevant=relevant)
    made.save(output)
    read = zip((train, test), (known, held), strict=True)
    told = [accounts.of_data(path, cells) for path, cells in read if path is not None and cells is not None]
    accounts.tell(*told, accounts.of_file(output), quiet=quiet)


def _check_place(output: str, inputs: list[str | None]) -> None:
    """Refuse, before any work is done, a report that can't be written, or that would replace what it is made from."""
    accounts.check_output(output)
    if os.path.realpath(output) in [os.path.realpath(path) for path in inputs if path is not None]:
        raise DataError(
            f"The report must be a file of its own. Found {output!r} among what it is made from. Name another."
        )


def _refuse_train(fitted: Any, train: str | None) -> None:
    if train is not None and not hasattr(fitted, "unseen"):
        raise DataError(
            f"--train must be left out for {type(fitted).__name__}, whose model file tells who was asked what. "
            f"Found {said(train)!r}. Leave it out."
        )

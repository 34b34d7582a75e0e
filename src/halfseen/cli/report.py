"""halfseen report: one page of what was seen, how the fit went, what was found, and how good it is."""

from typing import Any

import click

from halfseen.cli import accounts, facts, options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, check_alone, tell_json
from halfseen.cli.relevance import thresholds
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
    "--relevant",
    default=None,
    metavar="VALUE",
    help="Held-out cells from this value or level on are relevant; by default 1, or the lowest level.",
)
@options.READING
@JSON
@click.option("-q", "--quiet", is_flag=True, help="No account.")
def command(
    model: str, train: str | None, test: str | None, output: str, title: str | None, top: int, length: int,
    relevant: str | None, layout: str, columns: Any, header: bool | None, duplicates: str, as_json: bool, quiet: bool,
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
    accounts.check_output(output)
    accounts.check_apart([output], [model, train, test])
    check_alone(as_json)
    fitted = halfseen.load(model)
    _refuse_train(fitted, train)
    reading: dict[str, Any] = {"layout": layout, "columns": columns, "header": header, "duplicates": duplicates}
    if hasattr(fitted, "unseen"):
        reading |= {"unseen": fitted.unseen, "levels": fitted._fitted_names()}
    known, held = (None if path is None else halfseen.observe(path, **reading) for path in (train, test))
    (threshold,) = thresholds(fitted, [] if relevant is None else [relevant])
    made = halfseen.make_report(fitted, known, held, title=title, top=top, k=length, relevant=threshold.value)
    made.save(output)
    read = [(path, cells) for path, cells in ((train, known), (test, held)) if path is not None and cells is not None]
    if as_json:
        data = [facts.of_data(path, cells) for path, cells in read]
        tell_json({"data": data, "title": made.title, "scores": made.scores, "file": facts.of_file(output)})
        return
    accounts.tell(*(accounts.of_data(*one) for one in read), accounts.of_file(output), quiet=quiet)


def _refuse_train(fitted: Any, train: str | None) -> None:
    if train is not None and not hasattr(fitted, "unseen"):
        raise DataError(
            f"--train must be left out for {type(fitted).__name__}, whose model file tells who was asked what. "
            f"Found {said(train)!r}. Leave it out."
        )

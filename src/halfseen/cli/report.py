"""halfseen report: a page about a model, its data, its fit and its scores."""

from typing import Any

import click

from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.models import thresholds
from halfseen.cli.streams import JSON, In, Out
from halfseen.cli.summaries import data_facts, describe_data, describe_file
from halfseen.errors import DataError
from halfseen.io.splits import check_pair


@click.command(cls=Command)
@options.MODEL
@click.option("--train", type=In(), default=None, help="The file that the model was fitted on; - reads it.")
@click.option("--test", type=In(), default=None, help="A file of cells that were held out; - reads it.")
@click.option("-o", "--output", type=Out("html"), default="report.html", show_default=True,
              help="The HTML file to write; - shows it.")  # fmt: skip
@click.option("--title", default=None, help="The heading of the page; by default the model and its size.")
@click.option("--top", type=int, default=10, show_default=True, help="How many columns and rows of each component.")
@click.option("-k", "length", type=int, default=10, show_default=True, help="The length of rankings.")
@click.option("--relevant", default=None, metavar="VALUE",
              help="Held-out cells from this value or level on are relevant; by default 1, or the lowest "
              "level.")  # fmt: skip
@options.READING
@JSON
@options.quiet("No account.")
def command(model: str, train: str | None, test: str | None, output: str, title: str | None, top: int, length: int,
            relevant: str | None, as_json: bool, quiet: bool, **reading: Any) -> None:  # fmt: skip
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
    streams.check_output(output)
    streams.check_apart([output], [model, train, test])
    streams.check_alone(as_json)
    fitted = halfseen.load(model)
    if train is not None and not hasattr(fitted, "unseen"):
        raise DataError(
            f"--train must be left out for {type(fitted).__name__}, whose model file tells who was asked what. "
            f"Found {streams.display_name(train)!r}. Leave it out."
        )
    if train is not None and test is not None:
        check_pair(train, test)
    arguments = options.reader(reading)
    if hasattr(fitted, "unseen"):
        arguments |= {"unseen": fitted.model_.unseen, "levels": fitted.model_.encoder.levels_to_read}
    known, held = (None if path is None else halfseen.observe(path, **arguments) for path in (train, test))
    ((_, threshold),) = thresholds(fitted, [] if relevant is None else [relevant])
    page = halfseen.make_report(fitted, known, held, title=title, top=top, k=length, relevant=threshold)
    page.save(output)
    read = [(path, cells) for path, cells in ((train, known), (test, held)) if path is not None and cells is not None]
    if as_json:
        data = [data_facts(path, cells) for path, cells in read]
        streams.print_json(
            {"data": data, "title": page.title, "scores": page.scores, "file": streams.display_name(output)}
        )
        return
    streams.print_lines(*(describe_data(path, cells) for path, cells in read), describe_file(output), quiet=quiet)

"""halfseen evaluate and halfseen report: the quality of a model on held-out cells, as numbers and as a page."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.messages import render
from halfseen.cli.predict import load_recommender
from halfseen.cli.streams import JSON, In, Out, print_json, print_lines
from halfseen.cli.summaries import data_facts, describe_data, describe_file
from halfseen.errors import DataError, ParameterError
from halfseen.io import write_table
from halfseen.io.splits import check_pair
from halfseen.validation import did_you_mean


@click.command(cls=Command)
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL...")
@click.option("--test", required=True, type=In(), help="A file of held-out cells; - reads it.")
@click.option("--train", type=In(), help="A file of cells that are known, and not ranked; by default those of the fit.")
@click.option("--history", type=In(),
              help="A file of cells of rows that are not in the models, and are folded in.")  # fmt: skip
@click.option("-k", "length", default="100", metavar="NUMBER[,...]", help="Length of the rankings, or several.")
@click.option("--relevant", multiple=True, metavar="VALUE",
              help="Cells from this value or level on are relevant, by default 1; of levels that are words the lowest, "
              "or the next where unseen cells are missing; may be given several times.")  # fmt: skip
@click.option("--baselines/--no-baselines", default=True, help="Whether popularity and means stand beside the models.")
@options.READING
@options.N_JOBS
@options.ENGINE
@click.option("-o", "--output", type=Out(), help="CSV or Parquet file for all numbers; - shows it.")
@JSON
def evaluate(models: Sequence[str], test: str, train: str | None, history: str | None, length: str,
             relevant: tuple[str, ...], baselines: bool, n_jobs: int | None, engine: str | None, output: str | None,
             as_json: bool, **reading: Any) -> None:  # fmt: skip
    """Rank, for each row of MODEL, the columns that it does not know, and score the ranks of the relevant ones.

    Means over all rows that have a relevant column among the held-out cells, with their standard errors. Models
    that say what values are also show the errors of predicted values, given that a cell is seen; models with
    probabilities, the ranked probability score of levels and the log loss. Several models are compared row by row.
    Beside them stand simple baselines: popularity, means, frequencies of levels.

    \b
    halfseen evaluate model.hs --test held_out.csv
    halfseen evaluate a.hs b.hs --train train.csv --test held_out.csv -k 10,100 --relevant 4 --relevant 5
    halfseen evaluate model.hs --test held_out.csv --relevant good
    halfseen evaluate model.hs --train train.csv --history history.csv --test test.csv -o scores.csv
    halfseen evaluate model.hs --test held_out.csv --json
    """
    import halfseen

    try:
        lengths = [int(one) for one in length.split(",")]
    except ValueError:
        must, remedy = "must be a whole number, or several with commas.", "Use 10,100."
        raise ParameterError(must, parameter="k", found=repr(length), remedy=remedy) from None
    streams.check_json(as_json, output)
    if output is not None:
        streams.check_table(output)
        streams.check_apart([output], [*models, test, train, history])
    names = [Path(path).name for path in models]
    names = names if len(set(names)) == len(names) else list(models)
    if len(set(names)) < len(names):
        raise click.UsageError(f"Every MODEL may be given once, not {max(names, key=names.count)!r} twice.")
    fitted = {name: load_recommender(path, engine) for name, path in zip(names, models, strict=True)}
    first = fitted[names[0]]
    if train is not None:
        check_pair(train, test)
    arguments = options.reader(reading) | {"unseen": first.model_.unseen, "levels": first.model_.levels_to_read}
    relevances = _relevances(first, relevant)
    with warnings.catch_warnings(record=True) as caught:  # printed below: after an error there are no notes
        held, known, past = (
            None if path is None else halfseen.observe(path, **arguments) for path in (test, train, history)
        )
        report = halfseen.evaluate(
            fitted, known, held, k=lengths, relevant=[value for _, value in relevances], history=past,
            baselines=baselines, n_jobs=n_jobs,
        )  # fmt: skip
    for one in caught:
        warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    for note in report.notes:
        click.echo(f"note: {render(note)}", err=True)
    if as_json:
        print_json(_facts(report, names[0], lengths, relevances, first.model_.unseen))
        return
    read = [(path, cells) for path, cells in ((test, held), (train, known), (history, past)) if cells is not None]
    print_lines(*(describe_data(str(path), cells) for path, cells in read))
    report.notes.clear()  # printed above
    if output is not None:
        write_table(output, list(columns := report.to_columns()), list(columns.values()))
    if not streams.stdout_is_taken():
        print_lines(str(report), "" if output is None else describe_file(output))


def _facts(report: Any, name: str, lengths: list[int], relevances: list[Any], unseen: str) -> dict[str, Any]:
    """Scores of all models for --json, and those of the first under the names that they had when there was one."""
    of_first = {(one.metric, one.k, one.relevant): one for one in report.scores if one.model == name}
    named = {"ndcg": "ndcg", "precision": "precision", "recall": "recall", "average_precision": "map"}
    ranking = []
    for text, threshold in relevances:
        for k in lengths:
            line = {"relevant from": text, "k": k, "rows": of_first["ndcg", k, threshold].rows}
            ranking.append(line | {key: of_first[metric, k, threshold].value for key, metric in named.items()})
    facts: dict[str, Any] = {"k": lengths if len(lengths) > 1 else lengths[0], "ranking": ranking}
    values = {metric: one for (metric, k, _), one in of_first.items() if one.cells is not None}
    if "rmse" in values and unseen == "missing":
        keys = {"root_mean_squared_error": "rmse", "mean_absolute_error": "mae", "within_half": "within_half",
                "ranked_probability_score": "rps"}  # fmt: skip
        facts["values"] = {"cells": values["rmse"].cells}
        facts["values"] |= {key: values[metric].value for key, metric in keys.items() if metric in values}
    if "log_loss" in values:
        mean, cells = -values["log_loss"].value, values["log_loss"].cells
        facts["likelihood"] = {"cells": cells, "sum": mean * cells, "mean": mean}
    return facts | report.to_dict()


@click.command(cls=Command)
@options.MODEL
@click.option("--train", type=In(), help="The file that the model was fitted on; - reads it.")
@click.option("--test", type=In(), help="A file of held-out cells; - reads it.")
@click.option("-o", "--output", type=Out("html"), default="report.html", help="The HTML file to write; - shows it.")
@click.option("--title", help="Heading of the page; by default the model and its size.")
@click.option("--top", type=int, default=10, help="Columns and rows listed of each component.")
@click.option("-k", "length", type=int, default=10, help="Length of the rankings.")
@click.option("--relevant", metavar="VALUE",
              help="Cells from this value or level on are relevant; by default 1, or the lowest level.")  # fmt: skip
@options.NAMES
@options.READING
@options.ENGINE
@JSON
@options.quiet("Print nothing.")
def report(model: str, train: str | None, test: str | None, output: str, title: str | None, top: int, length: int,
           relevant: str | None, names: str | None, engine: str | None, as_json: bool, quiet: bool,
           **reading: Any) -> None:  # fmt: skip
    """Write a report of MODEL: a page in one file, to view in any browser.

    Its content depends on the data: with --train also the observed values and a posterior predictive check; with
    --test also the quality on held-out cells, beside simple baselines.

    \b
    halfseen report model.hs --train ratings.csv --test held_out.csv -o report.html
    halfseen report model.hs --title "Film ratings" --top 20 --names titles.csv
    """
    import halfseen
    from halfseen.report import check_tools

    check_tools()
    streams.check_output(output)
    streams.check_apart([output], [model, train, test, names])
    streams.check_json(as_json)
    fitted = halfseen.load(model).set_params(**options.given(engine=engine))
    is_uncoupled = hasattr(fitted, "questions_are_")
    if train is not None and is_uncoupled:
        must = f"must be left out for {type(fitted).__name__}, whose model file holds who was asked what."
        found = repr(streams.display_name(train))
        raise DataError(must, parameter="train", found=found, remedy="Leave it out.")
    if train is not None and test is not None:
        check_pair(train, test)
    arguments = options.reader(reading)
    if not is_uncoupled:
        arguments |= {"unseen": fitted.model_.unseen, "levels": fitted.model_.levels_to_read}
    known, held = (None if path is None else halfseen.observe(path, **arguments) for path in (train, test))
    ((_, threshold),) = _relevances(fitted, [] if relevant is None else [relevant])
    titles: dict[Any, Any] = {}
    if names is not None:
        from halfseen.cli.recommend import titles_of

        of_columns = titles_of(names, fitted.model_, "column")
        labels = fitted.model_.labels_at(np.arange(of_columns.size), "column").tolist()
        titles = dict(zip(labels, of_columns.tolist(), strict=True))
    page = halfseen.make_report(fitted, known, held, title=title, top=top, k=length, relevant=threshold, names=titles)
    page.save(output)
    read = [(path, cells) for path, cells in ((train, known), (test, held)) if path is not None and cells is not None]
    if as_json:
        facts = {"data": [data_facts(*one) for one in read], "title": page.title, "scores": page.scores}
        print_json({**facts, "file": streams.display_name(output)})
        return
    print_lines(*(describe_data(*one) for one in read), describe_file(output), quiet=quiet)


def _relevances(model: Any, texts: Sequence[str]) -> list[tuple[str | float, float]]:
    """The values of --relevant as written, and as cells hold them: text levels are 1, 2, ... there.

    By default 1; of text levels the lowest, or the next where unseen cells are missing: there all reach the lowest.
    """
    levels = model.model_.levels_to_read
    if levels is None:
        try:
            return [(float(text), float(text)) for text in texts or ["1"]]
        except ValueError as error:
            must, found = "must be a number, as the values of the model are.", str(error).partition(": ")[2]
            remedy = "Use the lowest value that makes a column relevant, such as 1 or 4."
            raise ParameterError(must, parameter="relevant", found=found, remedy=remedy) from None
    texts = texts or [levels[0] if model.model_.unseen == "zero" else levels[1]]
    for text in texts:
        if text not in levels:
            near, must = (
                did_you_mean(text, levels),
                f"must be one of the model's levels {', '.join(map(repr, levels))}.",
            )
            remedy = f"Did you mean {near!r}?" if near else "Name the lowest that makes a column relevant."
            raise ParameterError(must, parameter="relevant", found=repr(text), remedy=remedy)
    return [(text, 1.0 + levels.index(text)) for text in texts]

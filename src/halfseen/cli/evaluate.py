"""halfseen evaluate and halfseen report: the quality of a model on held-out cells, as numbers and as a page."""

import warnings
from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.messages import render
from halfseen.cli.predict import load_recommender
from halfseen.cli.streams import JSON, In, Out, print_json, print_lines
from halfseen.cli.summaries import count, data_facts, describe_counting, describe_data, describe_file
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.io.splits import check_pair
from halfseen.observed import Observed, match_cells
from halfseen.validation import did_you_mean


@click.command(cls=Command)
@options.MODEL
@click.option("--test", required=True, type=In(), help="A file of held-out cells; - reads it.")
@click.option("--train", type=In(), help="A file of cells that are known, and not ranked; by default those of the fit.")
@click.option("-k", "length", type=int, default=100, help="Length of the rankings.")
@click.option("--relevant", multiple=True, metavar="VALUE",
              help="Cells from this value or level on are relevant, by default 1; of levels that are words the lowest, "
              "or the next where unseen cells are missing; may be given several times.")  # fmt: skip
@options.READING
@options.N_JOBS
@options.ENGINE
@JSON
def evaluate(model: str, test: str, train: str | None, length: int, relevant: tuple[str, ...], n_jobs: int | None,
             engine: str | None, as_json: bool, **reading: Any) -> None:  # fmt: skip
    """Rank, for each row of MODEL, the columns that it does not know, and score the ranks of the relevant ones.

    Means over all rows that have a relevant column among the held-out cells. Models for which unseen cells are missing
    also print the errors of their predicted values, and the ranked probability score of their levels; models with
    probabilities, the likelihood of these cells.

    \b
    halfseen evaluate model.hs --test held_out.csv
    halfseen evaluate model.hs --test held_out.csv -k 10 --relevant 4 --relevant 5
    halfseen evaluate model.hs --test held_out.csv --relevant good
    halfseen evaluate model.hs --test held_out.csv --json
    """
    import halfseen
    from halfseen.metrics.scorers import held_out

    fitted = load_recommender(model, engine)
    record = fitted.model_
    if train is not None:
        check_pair(train, test)
    arguments = options.reader(reading) | {"unseen": record.unseen, "levels": record.encoder.levels_to_read}
    relevances = _relevances(fitted, relevant)
    with warnings.catch_warnings(record=True) as caught:  # printed below: after an error there are no notes
        held = halfseen.observe(test, **arguments)
        known = None if train is None else halfseen.observe(train, **arguments)
        metrics = halfseen.metrics.ranking_scores(
            fitted, known, held, k=length, relevant=[value for _, value in relevances], n_jobs=n_jobs
        )
    for one in caught:
        warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    ranking = []
    for at, (text, _) in enumerate(relevances):  # means over the rows that have a relevant column
        line: dict[str, Any] = {"relevant from": text, "rows": np.count_nonzero(~np.isnan(metrics.ndcg[at]))}
        ranking.append(line | {name: float(np.nanmean(metric[at])) for name, metric in metrics._asdict().items()})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the ranking has warned of these cells
            cells = held_out(match_cells(held, record.shape, record.labels, "test", duplicates="keep"), record.seen)
            # where unseen cells are zeros, means are no predictions of the values of seen cells
            values = None if record.unseen == "zero" else _value_scores(fitted, cells)
            likelihood = None
            if hasattr(fitted, "log_likelihood"):
                logs = fitted.log_likelihood(cells, each=True)
                likelihood = {"cells": logs.size, "sum": float(logs.sum()), "mean": float(logs.mean())}
    except DataError as error:  # a level that training did not have; the ranking is valid all the same
        values = likelihood = None
        click.echo(f"note: {render(error)}", err=True)
    if as_json:
        facts = {"k": length, "ranking": ranking, "values": values, "likelihood": likelihood}
        print_json({name: value for name, value in facts.items() if value is not None})
        return
    print_lines(describe_data(test, held), "" if known is None else describe_data(str(train), known))
    heads = ("relevant from", "rows", *(f"{name}@{length}" for name in ("NDCG", "precision", "recall", "MAP")))
    lines = []
    for start, n_rows, *means in (line.values() for line in ranking):
        lines.append([start if isinstance(start, str) else f"{start:g}", f"{n_rows:,}", *map("{:.4f}".format, means)])
    print_lines(*streams.table_lines(lines, heads))
    if values is not None:
        counting = describe_counting(fitted)
        n_cells, root, within, *ranked = values.values()
        scores = f"root mean squared error {root:.4f}, {within:.4f} of them within 0.5"
        scores += "".join(f", ranked probability score {score:.4f}" for score in ranked)
        print_lines(f"Values of {count(n_cells, 'cell')}{counting and f', {counting}'}: {scores}.")
    if likelihood is not None:
        given = ", given that they are above 0" if record.unseen == "zero" else ""
        n_cells, total, mean = likelihood.values()
        print_lines(f"Log-likelihood of {count(n_cells, 'cell')}{given}: {total:,.6g} ({mean:.4f} per cell).")


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
@options.READING
@options.ENGINE
@JSON
@options.quiet("Print nothing.")
def report(model: str, train: str | None, test: str | None, output: str, title: str | None, top: int, length: int,
           relevant: str | None, engine: str | None, as_json: bool, quiet: bool, **reading: Any) -> None:  # fmt: skip
    """Write a report of MODEL: a page in one file, to view in any browser.

    Its content depends on the data: with --train also the observed values and a posterior predictive check; with
    --test also the quality on held-out cells, beside simple baselines.

    \b
    halfseen report model.hs --train ratings.csv --test held_out.csv -o report.html
    halfseen report model.hs --title "Film ratings" --top 20
    """
    import halfseen
    from halfseen.report import check_tools

    check_tools()
    streams.check_output(output)
    streams.check_apart([output], [model, train, test])
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
        arguments |= {"unseen": fitted.model_.unseen, "levels": fitted.model_.encoder.levels_to_read}
    known, held = (None if path is None else halfseen.observe(path, **arguments) for path in (train, test))
    ((_, threshold),) = _relevances(fitted, [] if relevant is None else [relevant])
    page = halfseen.make_report(fitted, known, held, title=title, top=top, k=length, relevant=threshold)
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
    levels = model.model_.encoder.levels_to_read
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


def _value_scores(model: Any, cells: Observed) -> dict[str, Any] | None:
    """Errors of predicted values; `within_half` is the share with |prediction - value| <= 1/2. None without cells."""
    from halfseen.metrics import ranked_probability_score

    record = model.model_
    codes = record.encoder.codes(cells)
    if codes.nnz == 0:
        return None
    u, i = record.labels_at(codes.row_of_cell(), "row"), record.labels_at(codes.indices, "column")
    # text levels count 0, 1, ... in `predict`
    values = codes.values if record.encoder.is_text else record.encoder.labels_of(codes.values)
    errors = np.abs(model.predict(u, i) - values)
    root = float(np.sqrt(np.mean(errors**2)))
    scores = {"cells": codes.nnz, "root_mean_squared_error": root, "within_half": float(np.mean(errors <= 0.5))}
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(u, i)
        scores["ranked_probability_score"] = ranked_probability_score(codes.values.astype(np.int64), proba)
    return scores

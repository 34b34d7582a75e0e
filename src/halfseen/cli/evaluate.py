"""halfseen evaluate: how well a model ranks and predicts held-out cells."""

import warnings
from typing import Any

import click
import numpy as np

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.messages import render
from halfseen.cli.models import counted_levels, load_recommender, thresholds
from halfseen.cli.streams import JSON, In, print_json, print_lines
from halfseen.cli.summaries import count, describe_data
from halfseen.errors import DataError, DataWarning
from halfseen.io.splits import check_pair
from halfseen.observed import Observed, match_cells


@click.command(cls=Command)
@options.MODEL
@click.option("--test", required=True, type=In(), help="A file of cells that were held out; - reads it.")
@click.option("--train", type=In(), default=None,
              help="A file of cells that are known, and not ranked; by default those of the fit.")  # fmt: skip
@click.option("-k", "length", type=int, default=100, show_default=True, help="The length of the lists.")
@click.option("--relevant", multiple=True, metavar="VALUE",
              help="Cells from this value or level on are relevant; may be given several times. By default 1; of "
              "levels that are words the lowest, or the next where unseen cells are missing.")  # fmt: skip
@options.READING
@options.N_JOBS
@JSON
def command(model: str, test: str, train: str | None, length: int, relevant: tuple[str, ...], n_jobs: int | None,
            as_json: bool, **reading: Any) -> None:  # fmt: skip
    """Rank, for each row of MODEL, the columns that it does not know, and see where the relevant ones stand.

    Means over all rows that have a relevant column among the cells held out. Models for which unseen cells are missing
    also tell how far off their values are there, and the ranked probability score of their levels; models with
    probabilities, how likely these cells are.

    \b
    halfseen evaluate model.hs --test held_out.csv
    halfseen evaluate model.hs --test held_out.csv -k 10 --relevant 4 --relevant 5
    halfseen evaluate model.hs --test held_out.csv --relevant good
    halfseen evaluate model.hs --test held_out.csv --json
    """
    import halfseen
    from halfseen.metrics.scorers import held_out

    fitted = load_recommender(model)
    if train is not None:
        check_pair(train, test)
    arguments = options.reader(reading) | {
        "unseen": fitted.model_.unseen,
        "levels": fitted.model_.encoder.levels_to_read,
    }
    relevances = thresholds(fitted, relevant)
    with warnings.catch_warnings(record=True) as caught:  # printed below: after an error there are no notes
        held = halfseen.observe(test, **arguments)
        known = None if train is None else halfseen.observe(train, **arguments)
        metrics = halfseen.metrics.ranking_scores(
            fitted, known, held, k=length, relevant=[value for _, value in relevances], n_jobs=n_jobs
        )
    for one in caught:
        warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    ranking = []
    for place, (text, _) in enumerate(relevances):  # means over the rows that have a relevant column
        rows = int(np.count_nonzero(~np.isnan(metrics.ndcg[place])))
        means = {name: float(np.nanmean(metric[place])) for name, metric in metrics._asdict().items()}
        ranking.append({"relevant from": text, "rows": rows, **means})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the ranking has warned of these cells
            record = fitted.model_
            cells = held_out(match_cells(held, record.shape, record.labels, "test", duplicates="keep"), record.seen)
            # where unseen cells are zeros, means are no predictions of the values of seen cells
            values = None if fitted.model_.unseen == "zero" else _value_scores(fitted, cells)
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
    heads = (f"{f'{name}@{length}':>13}" for name in ("NDCG", "precision", "recall", "MAP"))
    print_lines(f"{'relevant from':>13}  {'rows':>7}  {'  '.join(heads)}")
    for threshold, n_rows, *scores in (line.values() for line in ranking):
        shown = threshold if isinstance(threshold, str) else f"{threshold:g}"
        print_lines(f"{shown:>13}  {n_rows:>7,}  {'  '.join(f'{score:>13.4f}' for score in scores)}")
    if values is not None:
        counting, ranked = counted_levels(fitted), values.get("ranked_probability_score")
        print_lines(
            f"Values of {count(values['cells'], 'cell')}{counting and f', {counting}'}: root mean squared error "
            f"{values['root_mean_squared_error']:.4f}, {values['within_half']:.4f} of them within 0.5"
            f"{'' if ranked is None else f', ranked probability score {ranked:.4f}'}."
        )
    if likelihood is not None:
        given = ", given that they are above 0" if fitted.model_.unseen == "zero" else ""
        n_cells, total, mean = likelihood.values()
        print_lines(f"Log-likelihood of {count(n_cells, 'cell')}{given}: {total:,.6g} ({mean:.4f} per cell).")


def _value_scores(model: Any, cells: Observed) -> dict[str, Any] | None:
    """Errors of the values predicted at cells in the model's rows and columns; None without cells.

    `within_half` is the share of cells with |prediction - value| <= 1/2; the ranked probability score is for models of
    the levels' probabilities."""
    from halfseen.metrics import ranked_probability_score

    levels = getattr(model, "levels_", None)
    cells = model.model_.encoder.codes(cells)
    if cells.nnz == 0:
        return None
    rows, columns, values = cells.row_of_cell(), cells.indices, cells.values
    u = rows if model.row_labels_ is None else model.row_labels_[rows]
    i = columns if model.column_labels_ is None else model.column_labels_[columns]
    if levels is not None and levels.dtype.kind != "O":  # words count 0, 1, ... in `predict`
        values = levels[values.astype(np.int64)]
    errors = np.abs(model.predict(u, i) - values)
    root = float(np.sqrt(np.mean(errors**2)))
    scores = {"cells": cells.nnz, "root_mean_squared_error": root, "within_half": float(np.mean(errors <= 0.5))}
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(u, i)
        scores["ranked_probability_score"] = ranked_probability_score(cells.values.astype(np.int64), proba)
    return scores

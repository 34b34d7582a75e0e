"""halfseen evaluate: how well a model ranks and predicts cells that it has not seen."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from halfseen.cli import accounts, options
from halfseen.cli.advice import in_options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, tell_json
from halfseen.cli.relevance import thresholds
from halfseen.cli.streams import In
from halfseen.cli.value_scores import counted_levels, value_scores
from halfseen.data.labels import Places
from halfseen.data.matching import matched
from halfseen.errors import DataError, DataWarning


@click.command(cls=Command)
@options.MODEL
@click.option("--test", required=True, type=In(), help="A file of cells that were held out; - reads it.")
@click.option(
    "--train",
    type=In(),
    default=None,
    help="A file of cells that are known, and not ranked; by default those of the fit.",
)
@click.option("-k", "length", type=int, default=100, show_default=True, help="The length of the lists.")
@click.option(
    "--relevant",
    multiple=True,
    metavar="VALUE",
    help="Cells from this value or level on are relevant; may be given several times. By default 1; of levels that are "
    "words the lowest, or the next where unseen cells are missing.",
)
@options.READING
@click.option("--n-jobs", type=int, default=None, help="Number of threads; all processors by default.")
@JSON
def command(
    model: str, test: str, train: str | None, length: int, relevant: tuple[str, ...], layout: str, columns: Any,
    header: bool | None, duplicates: str, n_jobs: int | None, as_json: bool,
) -> None:  # fmt: skip
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

    fitted = halfseen.load(model)
    accounts.check_ranks(fitted, model)
    reading: dict[str, Any] = {"layout": layout, "columns": columns, "header": header, "duplicates": duplicates}
    reading |= {"unseen": fitted.unseen, "levels": fitted._fitted_names()}
    wanted = thresholds(fitted, relevant)
    with _notes_if_all_goes_well():
        held = halfseen.observe(test, **reading)
        known = None if train is None else halfseen.observe(train, **reading)
        scores = halfseen.metrics.ranking_scores(
            fitted, known, held, k=length, relevant=[one.value for one in wanted], n_jobs=n_jobs
        )
    ranking = [_of_ranking(scores, place, threshold.called) for place, threshold in enumerate(wanted)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # what was said of unknown cells is not said again
            judges = _not_fitted(fitted, held)
            values, likelihood = _of_values(fitted, judges), _of_likelihood(fitted, judges)
    except DataError as error:  # a level that training did not have: the ranking is good all the same
        values = likelihood = None
        click.echo(f"note: {in_options(str(error))}", err=True)
    if as_json:
        found = {"k": length, "ranking": ranking, "values": values, "likelihood": likelihood}
        tell_json({name: value for name, value in found.items() if value is not None})
        return
    read = [accounts.of_data(test, held), *([] if known is None else [accounts.of_data(str(train), known)])]
    accounts.tell(*read, f"{'relevant from':>13}  {'rows':>7}  {_heads(length)}")
    for line in (*map(_ranking_told, ranking), *_values_told(fitted, values), *_likelihood_told(fitted, likelihood)):
        accounts.tell(line)


@contextmanager
def _notes_if_all_goes_well() -> Iterator[None]:
    """Keep notes back until it is clear that there is no refusal, which alone is said then."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for one in caught:
        warnings.showwarning(one.message, one.category, one.filename, one.lineno)


def _not_fitted(fitted: Any, held: Any) -> Any:
    """The cells that the model was not fitted on, in its rows and columns; of the others the ranking has told."""
    from halfseen.metrics.held_out import held_out

    shape, labels = (len(fitted.W_), len(fitted.H_)), Places(fitted.row_labels_, fitted.column_labels_)
    return held_out(matched(held, shape, labels, "test", duplicates="keep"), fitted.seen_)


def _of_ranking(scores: Any, place: int, threshold: str | float) -> dict[str, Any]:
    """Means over the rows that have something relevant, by the metrics' own names."""
    rows = int(np.count_nonzero(~np.isnan(scores.ndcg[place])))
    means = {name: float(np.nanmean(metric[place])) for name, metric in scores._asdict().items()}
    return {"relevant from": threshold, "rows": rows, **means}


def _of_values(fitted: Any, held: Any) -> dict[str, Any] | None:
    """How far off the values are. Where unseen cells are zeros, means are not guesses of cells that are there."""
    scores = None if fitted.unseen == "zero" else value_scores(fitted, held)
    return None if scores is None else {name: one for name, one in scores._asdict().items() if one is not None}


def _of_likelihood(fitted: Any, held: Any) -> dict[str, Any] | None:
    """How likely the cells are that the ranking was judged by."""
    if not hasattr(fitted, "log_likelihood"):
        return None
    logs = fitted.log_likelihood(held, each=True)
    return {"cells": logs.size, "sum": float(logs.sum()), "mean": float(logs.mean())}


def _ranking_told(found: dict[str, Any]) -> str:
    threshold, rows, *means = found.values()
    called = threshold if isinstance(threshold, str) else f"{threshold:g}"
    return f"{called:>13}  {rows:>7,}  {'  '.join(f'{mean:>13.4f}' for mean in means)}"


def _values_told(fitted: Any, found: dict[str, Any] | None) -> Iterator[str]:
    if found is not None:
        counting = counted_levels(fitted)
        cells = accounts.count(found["cells"], "cell") + (counting and f", {counting}")
        ranked = found.get("ranked_probability_score")
        yield (
            f"Values of {cells}: root mean squared error "
            f"{found['root_mean_squared_error']:.4f}, {found['within_half']:.4f} of them within 0.5"
            f"{'' if ranked is None else f', ranked probability score {ranked:.4f}'}."
        )


def _likelihood_told(fitted: Any, found: dict[str, Any] | None) -> Iterator[str]:
    if found is not None:
        given = ", given that they are above 0" if fitted.unseen == "zero" else ""
        cells = accounts.count(found["cells"], "cell")
        yield f"Log-likelihood of {cells}{given}: {found['sum']:,.6g} ({found['mean']:.4f} a cell)."


def _heads(length: int) -> str:
    return "  ".join(f"{f'{name}@{length}':>13}" for name in ("NDCG", "precision", "recall", "MAP"))

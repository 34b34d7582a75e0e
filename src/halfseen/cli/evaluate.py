"""halfseen evaluate: how well a model ranks and predicts cells that it has not seen."""

import warnings
from collections.abc import Iterator
from typing import Any

import click

from halfseen.cli import accounts, options
from halfseen.cli.app import Command
from halfseen.errors import DataError, DataWarning


@click.command(cls=Command)
@options.MODEL
@click.option("--test", required=True, type=click.Path(), help="A file of cells that were held out.")
@click.option(
    "--train",
    type=click.Path(),
    default=None,
    help="A file of cells that are known, and not ranked; by default those of the fit.",
)
@click.option("-k", "length", type=int, default=100, show_default=True, help="The length of the lists.")
@click.option(
    "--relevant",
    type=float,
    multiple=True,
    help="Cells from this value on are relevant; may be given several times. By default 1.",
)
@options.READING
@click.option("--n-jobs", type=int, default=None, help="Number of threads; all processors by default.")
def command(
    model: str, test: str, train: str | None, length: int, relevant: tuple[float, ...], layout: str, columns: Any,
    header: bool | None, duplicates: str, n_jobs: int | None,
) -> None:  # fmt: skip
    """Rank, for each row of MODEL, the columns that it does not know, and see where the relevant ones stand.

    Means over all rows that have a relevant column among the cells held out. Models for which unseen cells are missing
    also tell how far off their values are there, and the ranked probability score of their levels; models with
    probabilities, how likely these cells are.

    \b
    halfseen evaluate model.hs --test held_out.csv
    halfseen evaluate model.hs --test held_out.csv -k 10 --relevant 4 --relevant 5
    """
    import numpy as np

    import halfseen

    fitted = halfseen.load(model)
    reading: dict[str, Any] = {"layout": layout, "columns": columns, "header": header, "duplicates": duplicates}
    reading |= {"unseen": fitted.unseen, "levels": fitted._fitted_names()}
    held = halfseen.observe(test, **reading)
    known = None if train is None else halfseen.observe(train, **reading)
    wanted = list(relevant) or [1.0]
    scores = halfseen.metrics.ranking_scores(fitted, known, held, k=length, relevant=wanted, n_jobs=n_jobs)
    accounts.tell(accounts.of_data(test, held), f"{'relevant from':>13}  {'rows':>7}  {_heads(length)}")
    for place, threshold in enumerate(wanted):
        rows = np.count_nonzero(~np.isnan(scores.ndcg[place]))
        means = "  ".join(f"{np.nanmean(metric[place]):>13.4f}" for metric in scores)
        accounts.tell(f"{threshold:>13g}  {rows:>7,}  {means}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # what was said of unknown cells is not said again
            for line in (*_of_values(fitted, held), *_of_likelihood(fitted, held)):
                accounts.tell(line)
    except DataError as error:  # a level that training did not have: the ranking is good all the same
        click.echo(f"note: {error}", err=True)


def _of_values(fitted: Any, held: Any) -> Iterator[str]:
    """How far off the values are. Where unseen cells are zeros, means are not guesses of cells that are there."""
    from halfseen.cli.value_scores import value_scores

    scores = None if fitted.unseen == "zero" else value_scores(fitted, held)
    if scores is not None:
        ranked = scores.ranked_probability_score
        yield (
            f"Values of {accounts.count(scores.cells, 'cell')}: root mean squared error "
            f"{scores.root_mean_squared_error:.4f}, {scores.within_half:.4f} of them within 0.5"
            f"{'' if ranked is None else f', ranked probability score {ranked:.4f}'}."
        )


def _of_likelihood(fitted: Any, held: Any) -> Iterator[str]:
    """How likely the cells are that the ranking was judged by."""
    if hasattr(fitted, "log_likelihood"):
        logs = fitted.log_likelihood(held, each=True)
        given = ", given that they are above 0" if fitted.unseen == "zero" else ""
        cells = accounts.count(logs.size, "cell")
        yield f"Log-likelihood of {cells}{given}: {logs.sum():,.6g} ({logs.mean():.4f} a cell)."


def _heads(length: int) -> str:
    return "  ".join(f"{f'{name}@{length}':>13}" for name in ("NDCG", "precision", "recall", "MAP"))

"""halfseen impute: a table with its holes filled."""

from dataclasses import replace
from typing import Any

import click
import numpy as np

from halfseen.arrays import Array
from halfseen.cli import accounts, choosing, facts, options, wide_accounts
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, check_alone, tell_json
from halfseen.cli.streams import In, Out
from halfseen.data import Observed

#: How a table can be filled; with one component, nmf becomes exact.
METHODS = {"nmf": "WeightedNMF", "round": "RoundMF", "ordinal": "OrdinalMF"}


@click.command(cls=Command)
@click.argument("table", type=In())
@click.option(
    "-k",
    "--n-components",
    type=choosing.Components(),
    default=5,
    show_default=True,
    metavar="NUMBER|auto|auto:1,2,5",
    help="The number of components. auto chooses it by cells held out; after a colon, from which numbers.",
)
@click.option("-o", "--output", required=True, type=Out(), help="Where the filled table goes; - shows it.")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="nmf",
    show_default=True,
    help="nmf: amounts and counts; for answers on one scale, such as 1 to 5 in every column: ordinal, or round.",
)
@options.LOSS
@click.option(
    "--scale/--no-scale",
    default=True,
    show_default=True,
    help="For nmf: bring every column to mean 1 for the fit, so that large units do not drown small ones.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="NAME",
    help="A column of numbers to leave alone, such as an id; may be given several times.",
)
@click.option(
    "--clip/--no-clip",
    default=True,
    show_default=True,
    help="Keep what is filled in within what was seen in its column.",
)
@options.HEADER
@options.FITTING
@JSON
def command(
    table: str,
    n_components: int | list[int],
    output: str,
    method: str,
    loss: str | float | None,
    scale: bool,
    skip: tuple[str, ...],
    clip: bool,
    header: bool | None,
    max_iter: int | None,
    tol: float | None,
    seed: int,
    n_jobs: int | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fill the holes of a TABLE of non-negative numbers, or of levels on one scale.

    Columns of text, a first column of ids and those skipped go through untouched; what was seen stays as written, and a
    CSV file keeps its separator and its decimal marks, points or commas. Fills suit columns that rise and fall together
    from 0, such as amounts and counts; for years or codes use other means. With -k 1 and the Kullback-Leibler loss the
    fit is the best there is, without a random start. Answers on one scale (--method ordinal or round) are filled with
    levels of the scale.

    \b
    halfseen impute table.csv -k 5 -o filled.csv
    halfseen impute table.csv -k auto -o filled.csv
    halfseen impute survey.csv --method ordinal -k 2 -o filled.csv
    zcat table.csv.gz | halfseen impute - -q -o - | head
    """
    import halfseen
    from halfseen.data import read_wide_table, write_table

    accounts.check_table(output)
    check_alone(as_json)
    if loss is not None and method == "ordinal":
        raise click.UsageError("--loss belongs to --method nmf and round; ordinal has no such option.")
    wide = read_wide_table(table, skip, header)
    wishes = options.given(max_iter=max_iter, tol=tol, n_jobs=n_jobs) | {"verbose": 0 if quiet else 1}
    model = getattr(halfseen, METHODS[method])().set_params(**wishes, **options.given(loss=loss), random_state=seed)
    units = _checked_units(model, wide.observed, scale) if method == "nmf" else np.ones(wide.observed.shape[1])
    seen = replace(wide.observed, values=wide.observed.values / units[wide.observed.indices])
    choice = None
    if isinstance(n_components, int):
        model.set_params(n_components=n_components)
    else:
        choice = choosing.choose(model, seen, n_components, n_jobs, quiet)
    if method == "nmf" and model.n_components == 1 and loss in (None, "kullback-leibler", 1.0):
        model = halfseen.RankOneNMF().set_params(**wishes)
    model.fit(seen)
    values = model.inverse_transform(model.W_) * units if method == "nmf" else _levels(model, seen)
    if clip:
        values = np.clip(values, *_range(wide.observed)).astype(values.dtype)
    names = wide.names if wide.has_header else None
    write_table(output, names, wide.filled(values), delimiter=wide.delimiter, decimal=wide.decimal)
    accounts.tell(wide_accounts.doubt(wide), quiet=quiet, err=True)
    if as_json:
        chosen = {} if choice is None else {"choice": choice.facts()}
        told = {**wide_accounts.facts(wide), "method": method, **facts.of_fit(model), **chosen}
        tell_json({"data": facts.of_data(table, wide.observed), **told, "file": facts.of_file(output)})
        return
    accounts.tell(
        accounts.of_data(table, wide.observed),
        *(() if choice is None else choice.told()),
        wide_accounts.of_columns(wide),
        accounts.of_model(model),
        accounts.of_end(model),
        accounts.of_file(output),
        quiet=quiet,
    )


def _checked_units(model: Any, observed: Observed, scale: bool) -> Array:
    """What columns are divided by for the fit; numbers that the model can't have are refused as they are written."""
    model._make_likelihood().check(observed, "impute")
    return _units(observed) if scale else np.ones(observed.shape[1])


def _levels(model: Any, observed: Observed) -> Array:
    """The level in every hole, 0 elsewhere; whole numbers if all levels are."""
    are_whole = np.all(model.levels_ == np.floor(model.levels_))
    levels = np.zeros(observed.shape, np.int64 if are_whole else np.float64)
    rows, columns = np.nonzero(np.isnan(observed.to_dense()))
    levels[rows, columns] = model.predict_level(rows, observed.column_labels[columns])  # type: ignore[index]
    return levels


def _range(observed: Observed) -> tuple[Array, Array]:
    """The smallest and the largest value seen in each column; no bounds where nothing was seen."""
    low, high = np.full(observed.shape[1], np.inf), np.full(observed.shape[1], -np.inf)
    np.minimum.at(low, observed.indices, observed.values)
    np.maximum.at(high, observed.indices, observed.values)
    seen = high >= low
    return np.where(seen, low, -np.inf), np.where(seen, high, np.inf)


def _units(observed: Observed) -> Array:
    """The mean of what was seen in each column; 1 where that is nothing or 0."""
    sums = np.bincount(observed.indices, weights=observed.values, minlength=observed.shape[1])
    means = sums / np.maximum(observed.seen_per_column(), 1)
    return np.where(means > 0, means, 1.0)

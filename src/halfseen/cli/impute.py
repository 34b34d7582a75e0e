"""halfseen impute: a table with its holes filled."""

from dataclasses import replace
from typing import Any

import click
import numpy as np

from halfseen.arrays import Array
from halfseen.cli import options, streams, summaries
from halfseen.cli.app import Command
from halfseen.cli.fit import choose
from halfseen.cli.messages import render
from halfseen.cli.streams import JSON, In, Out
from halfseen.errors import DataError
from halfseen.likelihoods import likelihood_for
from halfseen.observed import Observed

#: How a table can be filled; with one component, nmf is exact.
METHODS = {"nmf": "WeightedNMF", "round": "RoundMF", "ordinal": "OrdinalMF"}


@click.command(cls=Command)
@click.argument("table", type=In())
@click.option("-k", "--n-components", type=options.Components(), default=5,
              metavar="NUMBER|auto|auto:1,2,5",
              help="Number of components; auto chooses it by held-out cells, after a colon from these.")  # fmt: skip
@click.option("-o", "--output", required=True, type=Out(), help="File for the filled table; - shows it.")
@click.option("--method", type=click.Choice(list(METHODS)), default="nmf",
              help="nmf: amounts and counts; ordinal or round: answers on one scale, such as 1 to 5.")  # fmt: skip
@options.LOSS
@click.option("--scale/--no-scale", default=True,
              help="For nmf: scale columns to mean 1 for the fit, so that large units do not dominate.")  # fmt: skip
@click.option("--skip", multiple=True, metavar="NAME",
              help="A column of numbers to leave as it is, such as an id; may be given several times.")  # fmt: skip
@click.option("--clip/--no-clip", default=True, help="Keep filled values within the range observed in their column.")
@options.TEXT
@options.FITTING
@options.ENGINE
@JSON
def impute(table: str, n_components: int | list[int], output: str, method: str, loss: str | float | None, scale: bool,
           skip: tuple[str, ...], clip: bool, max_iter: int | None, tol: float | None, seed: int, n_jobs: int | None,
           quiet: bool, engine: str | None, as_json: bool, **reading: Any) -> None:  # fmt: skip
    """Fill the holes of a TABLE of non-negative numbers, or of levels on one scale.

    Columns of text, a first column of ids, codes padded with zeros and skipped columns are left unchanged; observed
    values stay as written, and a CSV file keeps its separator and its decimal marks, points or commas. This suits
    columns that rise and fall together from 0, such as amounts and counts, but not years or codes. With -k 1 and the
    Kullback-Leibler loss the fit is a global optimum, without a random start. Answers on one scale (--method ordinal
    or round) are filled with levels of the scale.

    \b
    halfseen impute table.csv -k 5 -o filled.csv
    halfseen impute table.csv -k auto -o filled.csv
    halfseen impute excel.csv --decimal , --thousands . --na "-,k.A." -o filled.csv
    halfseen impute survey.csv --method ordinal -k 2 -o filled.csv
    zcat table.csv.gz | halfseen impute - -q -o - | head
    """
    import halfseen
    from halfseen.io import read_wide_table, write_table

    streams.check_table(output)
    streams.check_apart([output], [table])
    streams.check_json(as_json)
    options.check_owners(options.given(loss=loss), method, {"loss": ("nmf", "round")})
    options.check_engine(engine)
    wide = read_wide_table(table, skip, **options.reader(reading))
    observed = wide.observed
    params = options.given(max_iter=max_iter, tol=tol, engine=engine, n_jobs=n_jobs) | {"verbose": 0 if quiet else 1}
    model = getattr(halfseen, METHODS[method])().set_params(**params, **options.given(loss=loss), random_state=seed)
    units = np.ones(observed.shape[1])
    if method == "nmf":
        try:  # before scaling: errors name values as they are written
            likelihood_for(model.loss).check(observed, "impute")
        except DataError as error:
            error.remedy_cli = f"{error.remedy} --skip leaves a column as it is."
            raise
        if scale:  # the mean of each column; 1 where there are no values, or it is 0
            sums = np.bincount(observed.indices, weights=observed.values, minlength=observed.shape[1])
            means = sums / np.maximum(observed.seen_per_column(), 1)
            units = np.where(means > 0, means, 1.0)
    scaled = replace(observed, values=observed.values / units[observed.indices])
    if isinstance(n_components, int):
        model.set_params(n_components=n_components)
    scores, chosen = choose(model, scaled, n_components, n_jobs, quiet)
    if method == "nmf" and model.n_components == 1 and loss in (None, "kullback-leibler", 1.0):
        model = halfseen.RankOneNMF().set_params(**params)
    model.fit(scaled)
    values = model.inverse_transform(model.W_) * units if method == "nmf" else _levels(model, scaled)
    if clip:  # to the range of each column; without limits where there are no values
        low, high = np.full(observed.shape[1], np.inf), np.full(observed.shape[1], -np.inf)
        np.minimum.at(low, observed.indices, observed.values)
        np.maximum.at(high, observed.indices, observed.values)
        seen = high >= low
        values = np.clip(values, np.where(seen, low, -np.inf), np.where(seen, high, np.inf)).astype(values.dtype)
    names, columns = wide.names if wide.has_header else None, wide.filled(values)
    write_table(output, names, columns, delimiter=wide.delimiter, decimal=wide.decimal, thousands=wide.thousands)
    streams.print_lines(*(f"note: {render(note)}" for note in wide.notes), quiet=quiet, err=True)
    kept = [name for name in wide.names if name not in wide.numeric]
    if as_json:
        notes = list(map(str, wide.notes))
        facts = {"holes": wide.n_holes, "filled": wide.numeric, "kept": kept, "notes": notes, "method": method}
        facts |= {**summaries.fit_facts(model), **chosen, "file": streams.display_name(output)}
        streams.print_json({"data": summaries.data_facts(table, observed), **facts})
        return
    others = f"; kept as they are: {', '.join(name or 'the first column' for name in kept)}" if kept else ""
    filled = f"{summaries.count(wide.n_holes, 'hole')} in {summaries.count(len(wide.numeric), 'column')} of numbers"
    lines = [summaries.describe_data(table, observed), *scores, f"Filled {filled}{others}."]
    lines += [summaries.describe_model(model), summaries.describe_end(model), summaries.describe_file(output)]
    streams.print_lines(*lines, quiet=quiet)


def _levels(model: Any, observed: Observed) -> Array:
    """The predicted level in every hole, 0 elsewhere; integers if all levels are."""
    are_whole = np.all(model.levels_ == np.floor(model.levels_))
    levels = np.zeros(observed.shape, np.int64 if are_whole else np.float64)
    rows, columns = np.nonzero(np.isnan(observed.to_dense()))
    levels[rows, columns] = model.predict_level(rows, observed.column_labels[columns])  # type: ignore[index]
    return levels

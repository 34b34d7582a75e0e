"""halfseen predict: the model's mean, or its level, at chosen cells."""

from typing import Any

import click

from halfseen.cli import accounts, options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, check_one_way, tell_json
from halfseen.cli.naming import as_labels
from halfseen.cli.pairs import Asked, asked_in
from halfseen.cli.streams import In
from halfseen.cli.value_scores import counted_levels
from halfseen.data import write_table
from halfseen.data.decimals import mark_of
from halfseen.data.tables import Table
from halfseen.errors import ParameterError


@click.command(cls=Command)
@options.MODEL
@click.option("--row", "rows", multiple=True, help="A row's id; may be given several times, once for each --col.")
@click.option("--col", "cols", multiple=True, help="A column's id.")
@click.option("--cells", type=In(), default=None, help="A file of pairs row, column instead; - reads them.")
@click.option("--level", is_flag=True, help="For models of levels: the level, in its own words, instead of the mean.")
@options.COLUMNS
@options.HEADER
@options.OUTPUT
@JSON
@options.QUIET
def command(
    model: str,
    rows: tuple[str, ...],
    cols: tuple[str, ...],
    cells: str | None,
    level: bool,
    columns: Any,
    header: bool | None,
    output: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Predict cells of MODEL. A file of pairs comes back with its lines as they were and a column more.

    \b
    halfseen predict model.hs --row bob --col y
    halfseen predict model.hs --row bob --col y --level
    halfseen predict model.hs --cells pairs.csv -o predicted.csv
    grep bob pairs.csv | halfseen predict model.hs --cells - -o -
    """
    import halfseen

    if bool(rows or cols) == bool(cells) or len(rows) != len(cols):
        raise click.UsageError("Say which cells: a --col for each --row, or --cells FILE.")
    check_one_way(as_json, output)
    if output is not None:
        accounts.check_table(output)
    fitted = halfseen.load(model)
    asked = _listed(rows, cols) if cells is None else asked_in(cells, fitted, columns, header)
    table = asked.table
    u = as_labels(table.column(asked.row), fitted.row_labels_)
    i = as_labels(table.column(asked.column), fitted.column_labels_)
    said = _levels(fitted, u, i) if level else fitted.predict(u, i)
    if as_json:
        lines = zip(u, i, said, strict=True)
        tell_json([{"row": row, "column": column, "prediction": value} for row, column, value in lines])
    elif output is None:
        for row, column, value in zip(u, i, said, strict=True):
            click.echo(f"{row}\t{column}\t{value if isinstance(value, str) else f'{value:.6g}'}")
    else:
        names = [*table.names, _new_name(table.names)] if table.has_header else None
        write_table(output, names, [*table.cells, said], delimiter=table.delimiter, decimal=mark_of(table.cells))
        accounts.tell(accounts.of_file(output), quiet=quiet)
    counting = "" if level else counted_levels(fitted)
    told = counting and f"Predictions are means, {counting}; --level tells the level itself."
    accounts.tell(asked.doubt, told, quiet=quiet, err=True)


def _levels(fitted: Any, u: list[Any], i: list[Any]) -> Any:
    """Levels as the model calls them; nothing where words are the levels and none is there."""
    if not hasattr(fitted, "predict_level"):
        raise ParameterError(
            f"--level must be of a model of ordered levels. Found a {type(fitted).__name__}. Leave --level out."
        )
    return ["" if level is None else level for level in fitted.predict_level(u, i).tolist()]


def _new_name(names: list[str], name: str = "prediction") -> str:
    return name if name not in names else _new_name(names, f"{name}_")


def _listed(rows: tuple[str, ...], cols: tuple[str, ...]) -> Asked:
    return Asked(Table(["row", "column"], [list(rows), list(cols)], True), "row", "column")

"""halfseen predict: the model's mean, or its level, at chosen cells."""

from typing import Any

import click

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.models import as_labels, counted_levels, read_pairs
from halfseen.cli.streams import JSON, In, check_one_way, check_table, print_json, print_lines
from halfseen.cli.summaries import describe_file
from halfseen.errors import ParameterError
from halfseen.io import write_table


@click.command(cls=Command)
@options.MODEL
@click.option("--row", "rows", multiple=True, help="A row's id; may be given several times, once for each --col.")
@click.option("--col", "cols", multiple=True, help="A column's id.")
@click.option("--cells", type=In(), default=None, help="A file of pairs row, column instead; - reads them.")
@click.option("--level", is_flag=True, help="For models of levels: the level, in its own words, instead of the mean.")
@options.COLUMNS
@options.TEXT
@options.OUTPUT
@JSON
@options.QUIET
def command(model: str, rows: tuple[str, ...], cols: tuple[str, ...], cells: str | None, level: bool, columns: Any,
            output: str | None, as_json: bool, quiet: bool, **reading: Any) -> None:  # fmt: skip
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
        check_table(output)
    fitted = halfseen.load(model)
    pairs = None if cells is None else read_pairs(cells, fitted, columns, options.reader(reading))
    ids = (rows, cols) if pairs is None else (pairs.table.texts(pairs.row), pairs.table.texts(pairs.column))
    u, i = (
        as_labels((one.strip() if isinstance(one, str) else one for one in side), labels)
        for side, labels in zip(ids, (fitted.row_labels_, fitted.column_labels_), strict=True)
    )
    if not level:
        predicted = fitted.predict(u, i)
    elif hasattr(fitted, "predict_level"):  # None: the cell is predicted to be unseen
        predicted = ["" if one is None else one for one in fitted.predict_level(u, i).tolist()]
    else:
        raise ParameterError(
            f"--level must be of a model of ordered levels. Found a {type(fitted).__name__}. Leave --level out."
        )
    lines = zip(u, i, predicted, strict=True)
    if as_json:
        print_json([{"row": row, "column": column, "prediction": value} for row, column, value in lines])
    elif output is None:
        for row, column, value in lines:
            click.echo(f"{row}\t{column}\t{value if isinstance(value, str) else f'{value:.6g}'}")
    else:
        if pairs is None:
            write_table(output, ["row", "column", "prediction"], [rows, cols, predicted])
        else:
            table, new = pairs.table, "prediction"
            while new in table.names:
                new += "_"
            names = [*map(str, table.names), new] if table.has_header else None
            columns, decimal = [*table.cells, predicted], table.find_decimal()
            write_table(output, names, columns, delimiter=table.delimiter, decimal=decimal)
        print_lines(describe_file(output), quiet=quiet)
    counting = "" if level else counted_levels(fitted)
    note = counting and f"Predictions are means, {counting}; --level tells the level itself."
    print_lines("" if pairs is None else pairs.note, note, quiet=quiet, err=True)

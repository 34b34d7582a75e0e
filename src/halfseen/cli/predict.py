"""halfseen predict: the model's mean, or its level, at chosen cells."""

from typing import Any

import click

from halfseen.cli import accounts, options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, check_one_way, tell_json
from halfseen.cli.naming import as_labels
from halfseen.cli.streams import In
from halfseen.data import read_table, write_table
from halfseen.data.headers import LongHeader, long_header
from halfseen.data.reading import Reading
from halfseen.data.tables import Table
from halfseen.data.uncoupled.roles import places_of
from halfseen.errors import ParameterError


@click.command(cls=Command)
@options.MODEL
@click.option("--row", "rows", multiple=True, help="A row's id; may be given several times, once for each --col.")
@click.option("--col", "cols", multiple=True, help="A column's id.")
@click.option("--cells", type=In(), default=None, help="A file of pairs row, column instead; - reads them.")
@click.option("--level", is_flag=True, help="For models of levels: the level, in its own words, instead of the mean.")
@options.COLUMNS
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
    table, header = _asked(fitted, rows, cols, cells, columns)
    u = as_labels(table.column(header.row), fitted.row_labels_)
    i = as_labels(table.column(header.column), fitted.column_labels_)
    said = _levels(fitted, u, i) if level else fitted.predict(u, i)
    if as_json:
        lines = zip(u, i, said, strict=True)
        tell_json([{"row": row, "column": column, "prediction": value} for row, column, value in lines])
    elif output is None:
        for row, column, value in zip(u, i, said, strict=True):
            click.echo(f"{row}\t{column}\t{value if isinstance(value, str) else f'{value:.6g}'}")
    else:
        names = [*table.names, _new_name(table.names)] if table.has_header else None
        write_table(output, names, [*table.cells, said])
        accounts.tell(accounts.of_file(output), quiet=quiet)


def _levels(fitted: Any, u: list[Any], i: list[Any]) -> Any:
    """Levels as the model calls them; nothing where words are the levels and none is there."""
    if not hasattr(fitted, "predict_level"):
        raise ParameterError(
            f"--level must be of a model of ordered levels. Found a {type(fitted).__name__}. Leave --level out."
        )
    return ["" if level is None else level for level in fitted.predict_level(u, i).tolist()]


def _new_name(names: list[str], name: str = "prediction") -> str:
    return name if name not in names else _new_name(names, f"{name}_")


def _asked(
    fitted: Any, rows: tuple[str, ...], cols: tuple[str, ...], cells: str | None, columns: Any
) -> tuple[Table, LongHeader]:
    """The pairs asked for as a table, and which of its columns hold them."""
    if cells is None:
        return Table(["row", "column"], [list(rows), list(cols)], True), LongHeader("row", "column")
    table = read_table(cells, layout="long")
    if columns is None and table.has_header and _is_pair(fitted, table.names[:2]):
        lines = [[name, *column] for name, column in zip(table.names, table.cells, strict=True)]
        table = Table([str(number) for number in range(len(lines))], lines, False)
    if not table.has_header and columns is None:
        return table, LongHeader("0", "1")
    if columns is None and type(fitted).__name__ == "UncoupledNMF":
        return table, _roles(table.names, turned=fitted._turned)
    # Values beside the pairs are welcome and not looked at.
    header = long_header(table.names, Reading(layout="long", columns=columns), lambda _: False)
    return table, header or LongHeader(*table.names[:2])


def _roles(names: list[str], turned: bool) -> LongHeader:
    """Questions and respondents, as the lists that such a model is made of name them; `turned`: they are columns."""
    places = places_of("asked", names, {})
    pair = [names[places[role]] for role in ("question", "respondent")]
    return LongHeader(*(pair[::-1] if turned else pair))


def _is_pair(fitted: Any, names: list[str]) -> bool:
    """Whether what looks like a header names a row and a column of the model: the file has no header, then."""
    sides = (fitted.row_labels_, fitted.column_labels_)
    return len(names) == 2 and all(
        labels is not None and as_labels([name], labels)[0] in labels.tolist()
        for name, labels in zip(names, sides, strict=True)
    )

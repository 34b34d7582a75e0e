"""halfseen predict and halfseen recommend: what a model says about chosen cells, or the best columns for rows."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from halfseen.arrays import Array
from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, In
from halfseen.cli.summaries import describe_counting, describe_data, describe_file
from halfseen.errors import DataError, ParameterError
from halfseen.io import Table, read_table, write_table
from halfseen.io.schema import check_present, names_listed, spelled_long
from halfseen.labels import is_plain_integer


@click.command(cls=Command)
@options.MODEL
@click.option("--row", "rows", multiple=True, help="A row's id; may be given several times, once for each --col.")
@click.option("--col", "cols", multiple=True, help="A column's id.")
@click.option("--cells", type=In(), default=None, help="A file of pairs row, column instead; - reads them.")
@click.option("--level", is_flag=True, help="For models of levels: the level itself instead of the mean.")
@options.COLUMNS
@options.TEXT
@options.OUTPUT
@JSON
@options.QUIET
def predict(model: str, rows: tuple[str, ...], cols: tuple[str, ...], cells: str | None, level: bool, columns: Any,
            output: str | None, as_json: bool, quiet: bool, **reading: Any) -> None:  # fmt: skip
    """Predict cells of MODEL. A file of pairs comes back with its lines as they were and one more column.

    \b
    halfseen predict model.hs --row bob --col y
    halfseen predict model.hs --row bob --col y --level
    halfseen predict model.hs --cells pairs.csv -o predicted.csv
    grep bob pairs.csv | halfseen predict model.hs --cells - -o -
    """
    import halfseen

    if bool(rows or cols) == bool(cells) or len(rows) != len(cols):
        raise click.UsageError("Name the cells: a --col for each --row, or --cells FILE.")
    streams.check_json(as_json, output)
    if output is not None:
        streams.check_table(output)
    fitted = halfseen.load(model)
    pairs = None if cells is None else _read_pairs(cells, fitted, columns, options.reader(reading))
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
        must, found = "must be of a model of ordered levels.", f"a {type(fitted).__name__}"
        raise ParameterError(must, parameter="level", found=found, remedy="Leave `level` out.")
    lines = zip(u, i, predicted, strict=True)
    if as_json:
        streams.print_json([{"row": row, "column": column, "prediction": value} for row, column, value in lines])
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
        streams.print_lines(describe_file(output), quiet=quiet)
    counting = "" if level else describe_counting(fitted)
    note = counting and f"Predictions are means, {counting}; --level gives the level itself."
    streams.print_lines("" if pairs is None else pairs.note, note, quiet=quiet, err=True)


@click.command(cls=Command)
@options.MODEL
@click.option("-u", "--user", "users", multiple=True, help="A row of the fit, by its id; may be given several times.")
@click.option("--history", type=In(), default=None, help="A file with histories of new rows instead; - reads it.")
@click.option("-n", type=int, default=10, show_default=True, help="Number of items per row.")
@click.option("--include-seen", is_flag=True, help="Include items that the row has seen already.")
@click.option("--exclude", multiple=True, help="An item never to recommend; may be given several times.")
@options.OUTPUT
@JSON
@options.QUIET
def recommend(model: str, users: tuple[str, ...], history: str | None, n: int, include_seen: bool,
              exclude: tuple[str, ...], output: str | None, as_json: bool, quiet: bool) -> None:  # fmt: skip
    """Recommend the best items of MODEL to users.

    \b
    halfseen recommend model.hs --user bob -n 10
    halfseen recommend model.hs --history new.csv -o recommended.csv
    halfseen recommend model.hs --user bob --json
    """
    if bool(users) == bool(history):
        raise click.UsageError("Name the users: either --user (once or more), or --history FILE.")
    streams.check_json(as_json, output)
    if output is not None:
        streams.check_table(output)
        streams.check_apart([output], [model, history])
    fitted = load_recommender(model)
    rows: Any
    if history is None:
        rows = names = as_labels(users, fitted.row_labels_)
    else:
        from halfseen.estimators.inputs import observe_rows

        rows = observe_rows(fitted, history)
        names = list(range(rows.shape[0]) if rows.row_labels is None else rows.row_labels.tolist())
        streams.print_lines(describe_data(history, rows), quiet=quiet, err=output is None)
    excluded = as_labels(exclude, fitted.column_labels_)
    ids, scores = fitted.recommend(rows, n=n, exclude_seen=not include_seen, exclude=excluded)
    lines = [
        (user, rank + 1, ids[place][rank], scores[place][rank])
        for place, user in enumerate(names)
        for rank in range(ids.shape[1])
        if scores[place][rank] == scores[place][rank]  # NaN where nothing is left
    ]
    heads = ["row", "rank", "column", "score"]
    if as_json:
        streams.print_json([dict(zip(heads, line, strict=True)) for line in lines])
    elif output is not None:
        write_table(output, heads, list(zip(*lines, strict=True)) or [[]] * 4)
        streams.print_lines(describe_file(output), quiet=quiet)
    else:
        for row, rank, column, score in lines:
            if rank == 1:
                click.echo(f"{row}:")
            click.echo(f"  {rank:>3}  {score:<10.4g}  {column}")
        if not lines:
            click.echo("Nothing is left to recommend: everything was seen or excluded.")


def load_recommender(path: str) -> Any:
    """Load a model; refuse one that predicts values but can't recommend."""
    import halfseen

    model = halfseen.load(path)
    if not hasattr(model, "recommend"):
        found, remedy = f"a {type(model).__name__}", "Use halfseen predict for its values."
        raise ParameterError("MODEL must be one that recommends.", found=found, where=f"in {path!r}", remedy=remedy)
    return model


def as_labels(texts: Iterable[Any], labels: Array | None) -> list[Any]:
    """Texts as labels of the model's type: integers where the model has those, or no labels at all.

    A text that is no such label stays as it is, and is refused as unknown when it is looked up.
    """
    kind = "i" if labels is None else labels.dtype.kind

    def as_label(text: Any) -> Any:
        if kind == "O" or not isinstance(text, str):
            return str(text) if kind == "O" else text
        if kind in "iu":
            return int(text) if is_plain_integer(text.strip()) else text
        if kind == "f" and "_" in text:
            return text  # Python would read 1_0 as 10, which is another id
        try:
            return np.array([text]).astype(labels.dtype if labels is not None else float)[0]
        except ValueError:
            return text

    return [as_label(text) for text in texts]


class _Pairs(NamedTuple):
    """A table, the names of its columns of rows and of columns, and a note if the first line may be no header."""

    table: Table
    row: Any
    column: Any
    note: str = ""


def _read_pairs(path: str, model: Any, columns: Sequence[str | int] | None, reading: dict[str, Any]) -> _Pairs:
    """Read pairs row, column from a file.

    Unless --header decides, columns given by number have no header, as when fitting, and a first line that names a row
    or a column of the model is a pair.
    """
    header = reading.pop("header", None)
    by_number = columns is not None and all(isinstance(name, int) for name in columns)
    if header is None and columns is not None:
        header = not by_number
    table = read_table(path, "long", header, **reading)
    is_detected = header is None and table.is_text  # other files always have names
    if is_detected and table.has_header and _is_pair(model, table.names):
        table = read_table(path, "long", False, **reading)
    usual = spelled_long(table.names, lambda _: False)
    if columns is not None:
        names = range(len(table.names)) if by_number else table.names
        for name in columns:
            check_present(name, names)
        row, column = (table.names[name] if isinstance(name, int) else name for name in columns[:2])
    elif not table.has_header and len(table.names) > 1:
        row, column = table.names[:2]
    elif hasattr(model, "questions_are_"):
        from halfseen.uncoupled.lists import column_positions

        positions = column_positions("asked", table.names, {})
        row, column = (table.names[positions[role]] for role in ("question", "respondent"))
        row, column = (row, column) if model.questions_are_ == "rows" else (column, row)
    else:  # a column of values is allowed, and not used
        row, column = usual[:2] if usual is not None else (*table.names, None)[:2]
        if column is None or (usual is None and len(table.names) > 3):
            raise DataError(
                "A file of pairs must have a row and a column.",
                found=f"these: {names_listed(table.names)}",
                remedy='Name them: `columns=("user", "item")`.',
                parameter="columns",
            )
    note = ""
    if is_detected and table.has_header and usual is None:
        note = (
            f"note: Took the first line of {streams.display_name(path)} for names, {row!r} of rows and {column!r} of "
            "columns. If it is a pair, pass --no-header."
        )
    return _Pairs(table, row, column, note)


def _is_pair(model: Any, names: list[Any]) -> bool:
    """Whether a first line names a row and a column of the model, or one of them and is no usual header."""
    known = [
        labels is not None and as_labels([name], labels)[0] in labels.tolist()
        for name, labels in zip(names, (model.row_labels_, model.column_labels_), strict=False)
    ]
    return len(known) == 2 and (all(known) or (any(known) and spelled_long(names, lambda _: False) is None))

"""halfseen predict: what a model says about chosen cells."""

from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, In
from halfseen.cli.summaries import describe_counting, describe_file
from halfseen.errors import DataError, ParameterError
from halfseen.io import Table, read_table, write_table
from halfseen.io.schema import check_present, names_listed, spelled_long
from halfseen.labels import parse_labels, quoted


@click.command(cls=Command)
@options.MODEL
@click.option("--row", "rows", multiple=True, help="A row's id; may be given several times, once for each --col.")
@click.option("--col", "cols", multiple=True, help="A column's id.")
@click.option("--cells", type=In(), help="A file of pairs row, column instead; - reads them.")
@click.option("--level", is_flag=True, help="For models of levels: the level itself instead of the mean.")
@click.option("--given-seen", is_flag=True, help="Where unseen cells count as 0: the mean of a cell that is seen.")
@options.NAMES
@click.option("--strict", is_flag=True, help="Refuse unknown ids in a file of pairs, whose predictions are else empty.")
@options.COLUMNS
@options.TEXT
@options.OUTPUT
@JSON
@options.QUIET
def predict(model: str, rows: tuple[str, ...], cols: tuple[str, ...], cells: str | None, level: bool, given_seen: bool,
            names: str | None, strict: bool, columns: Any, output: str | None, as_json: bool, quiet: bool,
            **reading: Any) -> None:  # fmt: skip
    """Predict cells of MODEL. A file of pairs comes back with its lines as they were and one more column.

    \b
    halfseen predict model.hs --row bob --col y
    halfseen predict model.hs --row bob --col y --level
    halfseen predict model.hs --cells pairs.csv -o predicted.csv
    grep bob pairs.csv | halfseen predict model.hs --cells - -o -
    """
    import halfseen
    from halfseen.encoders import ConfidenceEncoder

    if bool(rows or cols) == bool(cells) or len(rows) != len(cols):
        raise click.UsageError("Name the cells: a --col for each --row, or --cells FILE.")
    streams.check_json(as_json, output)
    if output is not None:
        streams.check_table(output)
    fitted = halfseen.load(model)
    table, note = None, ""
    ids: Any = (rows, cols)
    if cells is not None:
        table, row, column, note = _read_pairs(cells, fitted, columns, options.reader(reading))
        ids = table.texts(row), table.texts(column)
    u, i = (
        parse_labels((one.strip() if isinstance(one, str) else one for one in side), labels)
        for side, labels in zip(ids, (fitted.row_labels_, fitted.column_labels_), strict=True)
    )
    if level and given_seen:
        raise click.UsageError("Use either --level or --given-seen.")

    # pairs of a file that the model does not know have no prediction
    record, is_known, unknown = fitted.model_, np.ones(len(u), bool), ""
    if cells is not None and not strict:
        is_known = (record.positions(u, "row", strict=False) >= 0) & (record.positions(i, "column", strict=False) >= 0)
    if is_known.any() and not is_known.all():
        first = int(np.argmin(is_known))
        unknown = (
            "note: Pairs of --cells should be of rows and columns that were fitted. Found "
            f"{np.sum(~is_known)} of {len(u)} that are not, the first {quoted(u[first])}, {quoted(i[first])}. "
            "Their predictions are empty. --strict refuses them."
        )
    kept = np.flatnonzero(is_known) if is_known.any() else np.arange(len(u))
    asked = [u[one] for one in kept], [i[one] for one in kept]
    predicted: Any
    can_split = "likelihood" in fitted.offers  # into whether a cell is seen, and its value
    if given_seen and record.unseen == "zero" and not can_split:
        must, found = "must be of a model with a likelihood of values.", f"a {type(fitted).__name__}"
        raise ParameterError(must, parameter="given_seen", found=found, remedy="Leave `given_seen` out.")
    if not level:
        found = fitted.predict(*asked, given_seen=True) if given_seen else fitted.predict(*asked)
        predicted = np.full(len(u), np.nan)
        predicted[kept] = found
    elif hasattr(fitted, "predict_level"):  # None: the cell is predicted to be unseen
        levels = dict(zip(kept.tolist(), fitted.predict_level(*asked).tolist(), strict=True))
        predicted = ["" if levels.get(place) is None else levels[place] for place in range(len(u))]
    else:
        must, found = "must be of a model of ordered levels.", f"a {type(fitted).__name__}"
        raise ParameterError(must, parameter="level", found=found, remedy="Leave `level` out.")
    titles: list[list[Any]] = []
    if names is not None:
        from halfseen.cli.recommend import titles_of

        places = record.positions(i, "column", strict=False)
        of_columns = titles_of(names, record, "column")
        titles = [[None if place < 0 else of_columns[place] for place in places.tolist()]]
    lines, heads = zip(u, i, predicted, *titles, strict=True), ["row", "column", "prediction", "title"]
    if as_json:
        streams.print_json([dict(zip(heads, line, strict=False)) for line in lines])
    elif output is None:
        for row, column, value, *title in lines:
            shown = value if isinstance(value, str) else "" if value != value else f"{value:.6g}"
            click.echo("\t".join(map(streams.printable, (row, column, shown, *(one or "" for one in title)))))
    else:
        if table is None:
            write_table(output, heads[: 3 + len(titles)], [rows, cols, predicted, *titles])
        else:
            header = [*map(str, table.names)]
            for new in heads[2 : 3 + len(titles)]:
                while new in header:
                    new += "_"
                header.append(new)
            decimal = table.find_decimal()
            contents = [*table.cells, predicted, *titles]
            write_table(
                output, header if table.has_header else None, contents, delimiter=table.delimiter, decimal=decimal
            )
        streams.print_lines(describe_file(output), quiet=quiet)
    is_score = not hasattr(fitted, "W_") or isinstance(getattr(record, "encoder", None), ConfidenceEncoder)
    if is_score and not as_json:
        streams.print_lines("note: Predictions are scores by which columns are ranked.", quiet=quiet, err=True)
    elif record.unseen == "zero" and not (level or given_seen or as_json):
        offer = "; --given-seen has the mean of a cell that is seen" if can_split else ""
        streams.print_lines(
            f"note: Predictions are means in which unseen cells count as 0{offer}.", quiet=quiet, err=True
        )
    counting = "" if level else describe_counting(fitted)
    means = counting and f"Predictions are means, {counting}; --level gives the level itself."
    streams.print_lines(note, unknown, means, quiet=quiet, err=True)


def load_recommender(path: str, engine: str | None) -> Any:
    """Load a model, to compute on another engine if one is given; refuse one that predicts but can't recommend."""
    import halfseen

    model = halfseen.load(path)
    if not hasattr(model, "recommend"):
        found, remedy = f"a {type(model).__name__}", "Use halfseen predict for its values."
        raise ParameterError("MODEL must be one that recommends.", found=found, where=f"in {path!r}", remedy=remedy)
    engine = "cpu" if engine is None and model.engine == "dask" else engine  # a cluster is for fits
    return model.set_params(**options.given(engine=engine))


def _read_pairs(
    path: str, model: Any, columns: Sequence[str | int] | None, reading: dict[str, Any]
) -> tuple[Table, Any, Any, str]:
    """Read a table with pairs row, column, the names of these two, and a note if the first line may be no header.

    Unless --header decides, columns given by number have no header, as when fitting, and a first line that names a row
    or a column of the model is a pair.
    """
    by_number = columns is not None and all(isinstance(name, int) for name in columns)
    header = reading.pop("header", None if columns is None else not by_number)
    table = read_table(path, "long", header, **reading)
    is_detected = header is None and table.is_text  # other files always have names
    usual = spelled_long(table.names, lambda _: False)
    if (
        is_detected and table.has_header
    ):  # is the first line a pair? Both are labels, or one is and it is no usual header
        labels = zip(table.names, (model.row_labels_, model.column_labels_), strict=False)
        known = [of is not None and parse_labels([name], of)[0] in of.tolist() for name, of in labels]
        if len(known) == 2 and (all(known) or (any(known) and usual is None)):
            table = read_table(path, "long", False, **reading)
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
            must, found = "A file of pairs must have a row and a column.", f"these: {names_listed(table.names)}"
            raise DataError(must, found=found, remedy='Name them: `columns=("user", "item")`.', parameter="columns")
    note = f"Took the first line of {streams.display_name(path)} for names, {row!r} of rows and {column!r} of columns."
    is_unsure = is_detected and table.has_header and usual is None
    return table, row, column, f"note: {note} If it is a pair, pass --no-header." if is_unsure else ""

"""A file of pairs row, column: whether its first line is one of them, and which of its columns hold them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from halfseen.cli.naming import as_labels
from halfseen.cli.streams import said
from halfseen.data import read_table
from halfseen.data.headers import LongHeader, check_present, long_header
from halfseen.data.reading import Reading
from halfseen.data.tables import Table
from halfseen.data.uncoupled.roles import places_of


class Asked(NamedTuple):
    """A table, the names of its columns of rows and of columns, and what is to be told if the names may be none."""

    table: Table
    row: str
    column: str
    doubt: str = ""


def asked_in(path: str, model: Any, columns: Sequence[str | int] | None, header: bool | None) -> Asked:
    """The pairs in a file. Unless `header` says it, columns given by number have none, as when fitting, and a first
    line that names a row or a column of the model is a pair, so that it is not lost."""
    if header is None and columns is not None:
        header = not _are_numbers(columns)
    table = read_table(path, "long", header)
    is_guess = header is None and table.delimiter is not None  # Parquet files always have names
    if is_guess and table.has_header and _is_pair(model, table.names):
        table = _without_header(table)
    names = _names(table, model, columns)
    is_unsure = is_guess and table.has_header and not _spells(table.names)
    return Asked(table, *names, _doubt(path, names) if is_unsure else "")


def _names(table: Table, model: Any, columns: Sequence[str | int] | None) -> tuple[str, str]:
    """The columns of rows and of columns; values beside them are welcome and not looked at."""
    if columns is not None and _are_numbers(columns):
        columns = [_at(table, number) for number in columns]
    elif columns is None and not table.has_header:
        columns = ["0", "1"]
    elif columns is None and type(model).__name__ == "UncoupledNMF":
        return _roles(table.names, turned=model._turned)
    how = Reading(layout="long", columns=None if columns is None else tuple(columns))
    row, column, _ = long_header(table.names, how, lambda _: False) or LongHeader(*table.names[:2])
    return row, column


def _at(table: Table, number: Any) -> str:
    check_present(number, range(len(table.names)))
    return table.names[number]


def _roles(names: list[str], turned: bool) -> tuple[str, str]:
    """Questions and respondents, as the lists that such a model is made of name them; `turned`: they are columns."""
    places = places_of("asked", names, {})
    question, respondent = (names[places[role]] for role in ("question", "respondent"))
    return (respondent, question) if turned else (question, respondent)


def _are_numbers(columns: Sequence[str | int]) -> bool:
    return all(isinstance(name, int) for name in columns)


def _is_pair(model: Any, names: list[str]) -> bool:
    """Whether what looks like a header names a row and a column of the model, or one of them and no usual header."""
    known = [
        labels is not None and as_labels([name], labels)[0] in labels.tolist()
        for name, labels in zip(names, (model.row_labels_, model.column_labels_), strict=False)
    ]
    return len(known) == 2 and (all(known) or (any(known) and not _spells(names)))


def _spells(names: list[str]) -> bool:
    """Whether names are usual ones of rows and columns."""
    return long_header(names, Reading(), lambda _: False) is not None


def _without_header(table: Table) -> Table:
    lines = [[name, *column] for name, column in zip(table.names, table.cells, strict=True)]
    return Table([str(number) for number in range(len(lines))], lines, False, delimiter=table.delimiter)


def _doubt(path: str, names: tuple[str, str]) -> str:
    row, column = names
    return (
        f"note: Took the first line of {said(path)} for names, {row!r} of rows and {column!r} of columns. If it is a "
        "pair, say --no-header."
    )

"""Models in the words of users: labels of rows and columns, pairs of them in a file, names of levels."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.cli.streams import display_name
from halfseen.errors import DataError, ParameterError
from halfseen.io import Table, read_table
from halfseen.io.schema import check_present, names_listed, spelled_long
from halfseen.labels import is_plain_integer
from halfseen.uncoupled.lists import column_positions
from halfseen.validation import did_you_mean


def load_recommender(path: str) -> Any:
    """Load a model; refuse one that predicts values but can't recommend."""
    import halfseen

    model = halfseen.load(path)
    if not hasattr(model, "recommend"):
        raise ParameterError(
            f"MODEL must be one that recommends. Found a {type(model).__name__} in {path!r}. "
            "Use halfseen predict for its values."
        )
    return model


def counted_levels(model: Any) -> str:
    """How levels that are words count where a model predicts numbers; "" for other models."""
    levels = getattr(model, "levels_", None)
    if levels is None or levels.dtype.kind != "O":
        return ""
    first = model.model_.encoder.levels_to_read[0]
    return f"levels counted {'1, 2' if model.model_.unseen == 'zero' else '0, 1'}, ... from {first!r}"


def thresholds(model: Any, texts: Sequence[str]) -> list[tuple[str | float, float]]:
    """The values of --relevant as users write them, and as cells hold them: levels that are words are 1, 2, ... there.

    By default 1; of levels that are words the lowest, or the next where unseen cells are missing and thus every cell
    reaches the lowest."""
    names = model.model_.encoder.levels_to_read
    found: list[tuple[str | float, float]] = []
    if names is None:
        for text in texts or ["1"]:
            try:
                found.append((float(text), float(text)))
            except ValueError:
                raise ParameterError(
                    f"relevant must be a number, as the values of the model are. Found {text!r}. Use the lowest value "
                    "that makes a column relevant, such as 1 or 4."
                ) from None
        return found
    for text in texts or [names[0] if model.model_.unseen == "zero" else names[1]]:
        if text not in names:
            near = did_you_mean(text, names)
            remedy = f"Did you mean {near!r}?" if near else "Name the lowest that makes a column relevant."
            raise ParameterError(
                f"relevant must be one of the model's levels {', '.join(map(repr, names))}. Found {text!r}. {remedy}"
            )
        found.append((text, 1.0 + names.index(text)))
    return found


def as_labels(texts: Iterable[Any], labels: Array | None) -> list[Any]:
    """Texts as labels of the model's type: integers where the model has those, or no labels at all.

    A text that is no such label stays as it is, and is refused as unknown when it is looked up."""
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


class Pairs(NamedTuple):
    """A table, the names of its columns of rows and of columns, and a note if the first line may be no header."""

    table: Table
    row: Any
    column: Any
    note: str = ""


def read_pairs(path: str, model: Any, columns: Sequence[str | int] | None, reading: dict[str, Any]) -> Pairs:
    """Read pairs row, column from a file.

    Unless --header decides, columns given by number have no header, as when fitting, and a first line that names a row
    or a column of the model is a pair."""
    header = reading.pop("header", None)
    by_number = columns is not None and all(isinstance(name, int) for name in columns)
    if header is None and columns is not None:
        header = not by_number
    table = read_table(path, "long", header, **reading)
    is_guess = header is None and table.is_text  # other files always have names
    if is_guess and table.has_header and _is_pair(model, table.names):
        table = read_table(path, "long", False, **reading)
    if columns is not None:
        names = range(len(table.names)) if by_number else table.names
        for name in columns:
            check_present(name, names)
        row, column = (table.names[name] if isinstance(name, int) else name for name in columns[:2])
    elif not table.has_header and len(table.names) > 1:
        row, column = table.names[:2]
    elif type(model).__name__ == "UncoupledNMF":
        places = column_positions("asked", table.names, {})
        row, column = (table.names[places[role]] for role in ("question", "respondent"))
        row, column = (column, row) if model.questions_are_ == "columns" else (row, column)
    else:
        header = _usual_header(table.names)  # a column of values is allowed, and not used
        row, column = header[:2] if header is not None else (*table.names, None)[:2]
        if column is None or (header is None and len(table.names) > 3):
            raise DataError(
                f"A file of pairs must have a row and a column. Found these: {names_listed(table.names)}. Name them: "
                'columns=("user", "item").'
            )
    note = ""
    if is_guess and table.has_header and _usual_header(table.names) is None:
        note = (
            f"note: Took the first line of {display_name(path)} for names, {row!r} of rows and {column!r} of columns. "
            "If it is a pair, say --no-header."
        )
    return Pairs(table, row, column, note)


def _is_pair(model: Any, names: list[Any]) -> bool:
    """Whether a first line names a row and a column of the model, or one of them and is no usual header."""
    known = [
        labels is not None and as_labels([name], labels)[0] in labels.tolist()
        for name, labels in zip(names, (model.row_labels_, model.column_labels_), strict=False)
    ]
    return len(known) == 2 and (all(known) or (any(known) and _usual_header(names) is None))


def _usual_header(names: list[Any]) -> Any:
    """The columns of rows, columns and values by their usual names; None if there are none."""
    return spelled_long(names, lambda _: False)

"""Options that several commands share, under the same names."""

from collections.abc import Callable
from typing import Any

import click

from halfseen.cli.streams import In, Out

Decorator = Callable[[Any], Any]

DATA = click.argument("data", type=In())
MODEL = click.argument("model", type=click.Path())


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which the help shows them."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _named_columns(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str | int, ...] | None:
    """Names of columns; numbers for a file without a header, where columns count from 0."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    return tuple(int(part) if part.isdecimal() else part for part in parts)


def _named_column(_: click.Context, __: click.Parameter, value: str | None) -> str | int | None:
    """The name of a column; a number for files without a header, where columns count from 0."""
    return int(value) if value is not None and value.isdecimal() else value


def number_or_name(_: click.Context, __: click.Parameter, value: str | None) -> str | float | None:
    """A number, or a name."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value  # a name, which the estimator checks


LOSS = click.option(
    "--loss",
    callback=number_or_name,
    default=None,
    help="For nmf: kullback-leibler (default), frobenius, itakura-saito, or a number beta; for round: multi-sigmoid "
    "(default), round, linear.",
)

COLUMNS = click.option("--columns", callback=_named_columns, default=None, metavar="ROW,COLUMN[,VALUE]",
                       help="The headers of a long file if they are not recognised; 0,1,2 if it has none.")  # fmt: skip

HEADER = click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a text file holds names. By default its looks decide.",
)

LAYOUT = click.option("--layout", type=click.Choice(["auto", "long", "wide"]), default="auto", show_default=True,
                      help="Lines of row, column, value; or a table. By default the header decides.")  # fmt: skip

#: How a file is read.
READING = together(
    LAYOUT,
    COLUMNS,
    HEADER,
    click.option("--duplicates", type=click.Choice(["error", "sum", "mean", "min", "max", "first", "last", "keep"]),
                 default="error", show_default=True, help="What to do with a cell given more than once."),
)  # fmt: skip


def _role(name: str, what: str) -> Decorator:
    help_text = f"The header of the column of {what}, if it is not recognised; its number from 0 if there is none."
    return click.option(f"--{name}", callback=_named_column, default=None, metavar="COLUMN", help=help_text)


#: Which columns of three lists that were collected apart hold what.
LISTS = together(
    _role("question", "questions, in all lists"),
    _role("respondent", "respondents, in --asked"),
    _role("value", "values, in --answers"),
    _role("higher", "those who are above, in --comparisons"),
    _role("lower", "those who are below, in --comparisons"),
)

#: How a model is fitted.
FITTING = together(
    click.option("--max-iter", type=int, default=None, help="The largest number of iterations."),
    click.option("--tol", type=float, default=None, help="Stop when an iteration gains less than this part."),
    click.option(
        "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the random start."
    ),
    click.option("--n-jobs", type=int, default=None, help="Number of threads; all processors by default."),
    click.option("-q", "--quiet", is_flag=True, help="No progress bar and no account."),
)


#: For commands whose account is a line or two.
QUIET = click.option("-q", "--quiet", is_flag=True, help="No account of what was saved.")

#: Where a table goes that is shown else.
OUTPUT = click.option(
    "-o",
    "--output",
    type=Out(),
    default=None,
    help="A CSV or Parquet file for the result; - writes CSV to standard output.",
)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given at all; the others are left to the estimator's defaults."""
    return {name: value for name, value in options.items() if value is not None}

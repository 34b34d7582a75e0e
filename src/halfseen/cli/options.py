"""Options that several commands share, under the same names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from halfseen.cli.streams import In, Out

Decorator = Callable[[Any], Any]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which the help shows them."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def column(_: click.Context, __: click.Parameter, value: str | None) -> str | int | None:
    """The name of a column; its number from 0 for files without a header."""
    return int(value) if value is not None and value.isdecimal() else value


def _columns(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str | int | None, ...] | None:
    return None if value is None else tuple(column(ctx, param, part.strip()) for part in value.split(","))


def number_or_name(_: click.Context, __: click.Parameter, value: str | None) -> str | float | None:
    """A number, or a name, which the estimator checks."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


def seed(help_text: str) -> Decorator:
    return click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help=help_text)


def quiet(help_text: str) -> Decorator:
    return click.option("-q", "--quiet", is_flag=True, help=help_text)


DATA = click.argument("data", type=In())
MODEL = click.argument("model", type=click.Path())
QUIET = quiet("No account of what was saved.")
N_JOBS = click.option("--n-jobs", type=int, default=None, help="Number of threads; all processors by default.")
OUTPUT = click.option("-o", "--output", type=Out(), default=None,
                      help="A CSV or Parquet file for the result; - writes CSV to standard output.")  # fmt: skip
LOSS = click.option("--loss", callback=number_or_name, default=None,
                    help="For nmf: kullback-leibler (default), frobenius, itakura-saito, or a number beta; for round: "
                    "multi-sigmoid (default), round, linear.")  # fmt: skip
COLUMNS = click.option("--columns", callback=_columns, default=None, metavar="ROW,COLUMN[,VALUE]",
                       help="The headers of a long file if they are not recognised; 0,1,2 if it has none.")  # fmt: skip
LAYOUT = click.option("--layout", type=click.Choice(["auto", "long", "wide"]), default="auto", show_default=True,
                      help="Lines of row, column, value; or a table. By default the header decides.")  # fmt: skip

#: How text is read; `reader` turns these into options of `observe`.
TEXT = together(
    click.option("--header/--no-header", default=None,
                 help="Whether the first line of a text file holds names. By default its looks decide."),
    click.option("--separator", "--sep", default=None, metavar="TEXT",
                 help="What stands between fields; found in the first lines by default."),
    click.option("--decimal", default=None, metavar="MARK", help="The decimal mark of numbers, such as , or ."),
    click.option("--thousands", default=None, metavar="MARK", help="The thousands separator of numbers."),
    click.option("--na", default=None, metavar="TEXT,...",
                 help="More texts that mark missing values, beside NA, N/A, NaN, null, None, ?, -, --, . and empty."),
    click.option("--comment", default=None, metavar="TEXT", help="What lines begin with that are no data."),
    click.option("--encoding", default=None, metavar="NAME", help="The encoding of text; UTF-8 or as it looks."),
)  # fmt: skip

#: How a file is read.
READING = together(
    LAYOUT,
    COLUMNS,
    TEXT,
    click.option("--duplicates", type=click.Choice(["error", "sum", "mean", "min", "max", "first", "last", "keep"]),
                 default="error", show_default=True, help="What to do with a cell given more than once."),
)  # fmt: skip

#: How a model is fitted.
FITTING = together(
    click.option("--max-iter", type=int, default=None, help="The largest number of iterations."),
    click.option("--tol", type=float, default=None, help="Stop when an iteration gains less than this part."),
    seed("Seed of the random start."),
    N_JOBS,
    quiet("No progress bar and no account."),
)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given; the others are left to the estimator's defaults."""
    return {name: value for name, value in options.items() if value is not None}


def reader(options: dict[str, Any]) -> dict[str, Any]:
    """The given options of TEXT, LAYOUT and COLUMNS as arguments of `observe`."""
    arguments = given(**options)
    if "na" in arguments:
        arguments["na_values"] = [mark.strip() for mark in arguments.pop("na").split(",")]
    if "separator" in arguments:
        arguments["separator"] = arguments["separator"].replace("\\t", "\t")
    return arguments


def check_owners(parameters: dict[str, Any], method: str, owners: Mapping[str, Sequence[str]]) -> None:
    """Refuse a parameter that the method does not have; `owners` names the methods that have it."""
    for name in parameters:
        if method not in owners[name]:
            *others, last = owners[name]
            whose = f"{', '.join(others)} and {last}" if others else last
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} belongs to --method {whose}; {method} has no such option.")

"""Options that several commands share, under the same names."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from halfseen.cli.streams import In, Out
from halfseen.errors import EngineError, ParameterError

Decorator = Callable[[Any], Any]

#: How long a scheduler may take to answer.
SECONDS_TO_ANSWER = 10


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


def _levels(_: click.Context, __: click.Parameter, value: str | None) -> list[Any] | None:
    """Levels as numbers if all of them are, else as words."""
    if value is None:
        return None
    words = [word.strip() for word in value.split(",")]
    try:
        return [float(word) for word in words]
    except ValueError:
        return words


class Components(click.ParamType):
    """A whole number; "auto", as an empty list; or "auto:5,10,20", as a list of the numbers to choose from."""

    name = "number or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        word, colon, listed = str(value).partition(":")
        try:
            if word != "auto":
                return int(value)
            ranks = [int(one) for one in listed.split(",")] if colon else []
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor auto, nor a list such as auto:5,10,20.", param, ctx)
        if min(ranks, default=1) < 1 or len(set(ranks)) < len(ranks):
            self.fail(f"The numbers in {value!r} must be different, and 1 or larger.", param, ctx)
        return ranks


def quiet(help_text: str) -> Decorator:
    return click.option("-q", "--quiet", is_flag=True, help=help_text)


DATA = click.argument("data", type=In())
MODEL = click.argument("model", type=click.Path())
SEED = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="Random seed.")
QUIET = quiet("Do not print what was saved.")
N_JOBS = click.option("--n-jobs", type=int, help="Number of threads; all processors by default.")
ENGINE = click.option("--engine", type=click.Choice(["cpu", "cuda"]),
                      help="Where to compute: on the processors, or on an NVIDIA GPU. By default cpu; for a model from "
                      "a file, where it was fitted.")  # fmt: skip
#: Where a command computes that may run on a cluster; `on_cluster` opens it.
CLUSTER = together(
    click.option("--engine", type=click.Choice(["cpu", "cuda", "dask"]),
                 help="Where to compute: on the processors, on an NVIDIA GPU, or on a cluster, also one of processes "
                 "of this machine, for data larger than memory. By default cpu; for a model from a file, where it was "
                 "fitted."),
    click.option("--scheduler", metavar="ADDRESS",
                 help="For --engine dask: the scheduler of a cluster, such as tcp://10.0.0.1:8786. By default, a "
                 "cluster of processes of this machine is started, and ended."),
    click.option("--workers", type=click.IntRange(1), metavar="NUMBER",
                 help="For --engine dask: the number of these processes; by default that of the processors."),
    click.option("--memory", metavar="SIZE",
                 help="For --engine dask: the memory that each of these processes may take, such as 2GB; by default "
                 "its share of the machine's."),
)  # fmt: skip
CHECKPOINT = click.option("--checkpoint", type=click.Path(), metavar="FOLDER",
                          help="Folder of its own to which the fit saves what it has reached, every minute and when "
                          "the process is told to end; the same command goes on from there.")  # fmt: skip
OUTPUT = click.option("-o", "--output", type=Out(), help="CSV or Parquet file for the result; - shows it.")
LOSS = click.option("--loss", callback=number_or_name,
                    help="For nmf: kullback-leibler (default), frobenius, itakura-saito, or a number beta; for round: "
                    "multi-sigmoid (default), round, linear.")  # fmt: skip
NAMES = click.option("--names", type=In(), metavar="FILE",
                     help="Shows titles: a file with an id and a title in each line, such as movies.csv.")  # fmt: skip
UNSEEN = click.option("--unseen", type=click.Choice(["missing", "zero"]),
                      help="Meaning of an unseen cell; by default missing for nmf, rank-one, round, "
                      "ordinal.")  # fmt: skip
LEVELS = click.option("--levels", callback=_levels, metavar="LOWEST,...,HIGHEST",
                      help="For methods of levels: the levels in their order, needed if they are words.")  # fmt: skip
COLUMNS = click.option("--columns", callback=_columns, metavar="ROW,COLUMN[,VALUE]",
                       help="Headers of a long file, if they are not recognised; 0,1,2 if it has none.")  # fmt: skip
LAYOUT = click.option("--layout", type=click.Choice(["auto", "long", "wide"]), default="auto",
                      help="Lines of row, column, value; or a table. By default, the header decides.")  # fmt: skip

#: How text is read; `reader` turns these into options of `observe`.
TEXT = together(
    click.option("--header/--no-header", default=None, help="Whether text has a header line. Detected by default."),
    click.option("--separator", "--sep", metavar="TEXT", help="Separator of fields; detected by default."),
    click.option("--decimal", metavar="MARK", help="The decimal mark of numbers, such as , or ."),
    click.option("--thousands", metavar="MARK", help="The thousands separator of numbers."),
    click.option("--na", metavar="TEXT,...",
                 help="Further texts for missing values, beside NA, N/A, NaN, null, None, ?, -, --, . and empty."),
    click.option("--comment", metavar="TEXT", help="Beginning of lines to be ignored."),
    click.option("--encoding", metavar="NAME", help="Encoding of the text; detected by default."),
)  # fmt: skip

#: How a file is read.
READING = together(
    LAYOUT, COLUMNS, TEXT,
    click.option("--duplicates", type=click.Choice(["error", "sum", "mean", "min", "max", "first", "last", "keep"]),
                 default="error", help="What to do with a cell given more than once."),
)  # fmt: skip

#: How a model is fitted.
FITTING = together(
    click.option("--max-iter", type=int, help="The largest number of iterations."),
    click.option("--tol", type=float, help="Stop when the relative gain of an iteration is below this."),
    SEED,
    N_JOBS,
    quiet("Print no progress bar and no summary."),
)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given; the others are left to the estimator's defaults."""
    return {name: value for name, value in options.items() if value is not None}


def check_engine(engine: str | None) -> None:
    """Refuse an engine that can't run here, before data are read."""
    from halfseen.engines import open_engine

    if engine is not None:
        open_engine(engine)


@contextmanager
def on_cluster(
    engine: str | None, scheduler: str | None, workers: int | None, memory: str | None, quiet: bool
) -> Iterator[Any]:
    """The client of the cluster that the options of `CLUSTER` ask for, Dask's current one inside; None for others."""
    for option, value in given(scheduler=scheduler, workers=workers, memory=memory).items():
        if engine != "dask":
            raise click.UsageError(f"--{option} {value} is for --engine dask: add it, or leave --{option} out.")
        if scheduler is not None and option != "scheduler":
            raise click.UsageError(f"--{option} is for a cluster of this machine: leave it out with --scheduler.")
    if engine != "dask":
        yield None
        return
    check_engine(engine)
    import distributed
    from dask.utils import parse_bytes

    from halfseen.engines.cluster import LEAST_MEMORY, local_cluster
    from halfseen.engines.threads import thread_count

    with ExitStack() as stack:
        if scheduler is None:
            try:
                limit = None if memory is None else parse_bytes(memory)
            except ValueError:
                limit = 0
            if limit is not None and limit < LEAST_MEMORY:
                least = f"{-(-LEAST_MEMORY // 10**8)}00MB"
                must = f"must be a size of at least {least}."
                remedy = "Write it as 2GB or 800MB, for each worker."
                raise ParameterError(must, parameter="memory", found=repr(memory), remedy=remedy)
            stack.enter_context(quiet_logs())  # also of workers that take long to end
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Port .* is already in use")  # another one is taken
                cluster = local_cluster(thread_count(None) if workers is None else workers, limit or "auto")
            stack.enter_context(cluster)
            client = stack.enter_context(distributed.Client(cluster))
        else:
            try:
                with quiet_logs():
                    client = distributed.Client(scheduler, timeout=SECONDS_TO_ANSWER)
            except (OSError, ValueError) as error:  # nobody answers, or it is no address
                unit = "second" if SECONDS_TO_ANSWER == 1 else "seconds"
                must = f"The scheduler must answer within {SECONDS_TO_ANSWER} {unit}."
                remedy = "Check the address that it prints when it starts, such as tcp://10.0.0.1:8786."
                raise EngineError(must, found=f"no answer from {scheduler!r}", remedy=remedy) from error
            stack.enter_context(client)
            if not quiet and "dashboard" in client.scheduler_info().get("services", {}):
                click.echo(f"Dashboard: {client.dashboard_link}", err=True)
        yield client


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Leave out what Dask logs: what users need to know is said in other ways."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def reader(options: dict[str, Any]) -> dict[str, Any]:
    """The given options of TEXT, LAYOUT and COLUMNS as arguments of `observe`."""
    arguments = given(**options)
    if "na" in arguments:
        arguments["na_values"] = [mark.strip() for mark in arguments.pop("na").split(",")]
    if "separator" in arguments:
        arguments["separator"] = arguments["separator"].replace("\\t", "\t")
    return arguments


def check_owners(
    parameters: dict[str, Any], method: str, owners: Mapping[str, Sequence[str]], choice: str = "method"
) -> None:
    """Refuse a parameter that the method does not have; `owners` names the methods that have it, `choice` the option
    that chooses one."""
    for name in parameters:
        if method not in owners[name]:
            methods = " and ".join(filter(None, (", ".join(owners[name][:-1]), owners[name][-1])))
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} belongs to --{choice} {methods}; {method} has no such option.")

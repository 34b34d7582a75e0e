"""The program `halfseen`: its commands, and how it says that something is wrong."""

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import click

from halfseen import __version__
from halfseen.checks import did_you_mean
from halfseen.cli.advice import in_options
from halfseen.errors import HalfseenError

#: What the help says of each command, in its order.
SUMMARIES = {
    "fit": "Fit a model to ratings, counts, levels or a table with holes.",
    "predict": "Predict values of cells by a model.",
    "recommend": "Show what a model recommends to somebody, known or new.",
    "evaluate": "See how well a model ranks and predicts cells held out.",
    "impute": "Fill the holes of a table.",
    "uncouple": "Find out who answered what, from lists without names.",
    "split": "Part a file in two, to learn from and to test by.",
    "report": "Make a page about a model, to look at in a browser.",
    "reproduce": "Make the tables and figures of the papers anew.",
    "datasets": "List the data that are known by name, and fetch them.",
    "doctor": "See whether this installation is whole and computes right.",
    "demo": "Try it all on data that are built in, and make a report.",
    "completion": "Print what a shell needs to complete words by the tab key.",
}
#: Each is imported only when it is run.
COMMANDS = tuple(SUMMARIES)


class Command(click.Command):
    """A command that knows what other libraries call its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = self._meant(error.option_name)
            if meant is None:
                raise
            raise click.UsageError(
                f"No such option {error.option_name!r}. Did you mean {meant!r}?", error.ctx
            ) from None

    def _meant(self, option: str) -> str | None:
        options = {name.lstrip("-").replace("-", "_"): name for param in self.params for name in param.opts}
        options["random_state"] = "--seed"
        meant = did_you_mean(option.lstrip("-").replace("-", "_"), options)
        return options[meant] if meant else None


class Misuse(click.UsageError):
    """A command line that can't be understood, told in one line."""

    def show(self, file: Any = None) -> None:
        command = "halfseen" if self.ctx is None else self.ctx.command_path
        sentence = " ".join(self.message.split())
        end = "" if sentence.endswith((".", "?")) else "."
        click.echo(f"halfseen: {sentence}{end} Try '{command} --help'.", err=True)


#: How systems say that something has become too large for a disk.
_FULL = (errno.ENOSPC, errno.EFBIG)
_LESS = "Ask for fewer components, -k, or give fewer rows and columns."


@contextmanager
def _in_one_line() -> Iterator[None]:
    """End with one line and exit code 2 for what is wrong; the help for who types nothing stays as it is."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise Misuse(error.format_message(), error.ctx) from None
    except HalfseenError as error:
        _end(f"halfseen: {in_options(' '.join(str(error).split()))}", 2)
    except MemoryError as error:
        asked = str(error).partition(" for an array")[0]
        _end(f"halfseen: The work must find room in memory. Found too little{asked and f': {asked}'}. {_LESS}", 2)
    except KeyboardInterrupt:
        _end("Interrupted; nothing was saved.", 130)
    except OSError as error:
        if error.errno not in _FULL:  # files are looked after where they are written: this is the output
            raise
        _end(f"halfseen: The output must find room. Found none: {error.strerror}. Send it elsewhere.", 2)


class Program(click.Group):
    """The group of all commands; a `HalfseenError` or a misuse becomes one line and exit code 2."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _in_one_line():
            return super().make_context(*args, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"halfseen.cli.{name}").command
        command.short_help = SUMMARIES[name]
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = did_you_mean(args[0], COMMANDS)
            hint = f"Did you mean {near!r}?" if near else f"Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings(), _in_one_line():
            warnings.showwarning = _note
            return super().invoke(ctx)


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(sentence, err=True)
    sys.exit(code)


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as one line, without the place in the code where it arose.

    What is not for users, such as NumPy's of a number too large, is left out: the account says what came of it.
    """
    if isinstance(message, UserWarning):
        click.echo(f"note: {in_options(str(message))}", err=True)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="halfseen")
def main() -> None:
    """Factorize matrices one only half sees: fill tables, recommend from ratings.

    \b
    halfseen fit ratings.csv --method poisson -o model.hs
    halfseen recommend model.hs --user bob -n 10
    halfseen impute table.csv -k 5 -o filled.csv
    halfseen uncouple --asked a.csv --answers b.csv -o c.csv
    """

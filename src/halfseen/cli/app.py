"""The program `halfseen`: its commands, and its messages when something is wrong."""

import errno
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from halfseen import __version__
from halfseen.cli.messages import render
from halfseen.errors import HalfseenError
from halfseen.validation import did_you_mean

#: The commands in the order of the help, with their summaries there.
SUMMARIES = {
    "fit": "Fit a model to ratings, counts, levels or a table with holes.",
    "predict": "Predict values of cells by a model.",
    "recommend": "Show what a model recommends to somebody, known or new.",
    "evaluate": "See how well a model ranks and predicts cells held out.",
    "impute": "Fill the holes of a table.",
    "uncouple": "Find out who answered what, from lists without names.",
    "split": "Split a file into training and test cells.",
    "report": "Make a page about a model, to look at in a browser.",
    "reproduce": "Reproduce the tables and figures of the papers.",
    "datasets": "List datasets by name, fetch them, or write one to a file.",
    "doctor": "See whether this installation is whole and computes right.",
    "demo": "Try it all on data that are built in, and make a report.",
    "completion": "Print what a shell needs to complete words by the tab key.",
}
#: Each is imported only when it is run.
COMMANDS = tuple(SUMMARIES)


class Command(click.Command):
    """A command that suggests an option for a misspelled one, also by the names of other libraries."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            options = {name.lstrip("-").replace("-", "_"): name for param in self.params for name in param.opts}
            options["random_state"] = "--seed"
            near = did_you_mean(error.option_name.lstrip("-").replace("-", "_"), options)
            if not near:
                raise
            hint = f"Did you mean {options[near]!r}?"
            raise click.UsageError(f"No such option {error.option_name!r}. {hint}", error.ctx) from None


class Misuse(click.UsageError):
    """A usage error, printed in one line."""

    def show(self, file: Any = None) -> None:
        command = "halfseen" if self.ctx is None else self.ctx.command_path
        sentence = " ".join(self.message.split())
        end = "" if sentence.endswith((".", "?")) else "."
        click.echo(f"halfseen: {sentence}{end} Try '{command} --help'.", err=True)


#: Errors of a full disk.
_FULL = (errno.ENOSPC, errno.EFBIG)
_LESS = "Ask for fewer components, -k, or give fewer rows and columns."


@contextmanager
def _in_one_line() -> Iterator[None]:
    """End with one line and exit code 2 if something is wrong; the help of a command without arguments stays."""
    code = 2
    try:
        yield
        return
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise Misuse(error.format_message(), error.ctx) from None
    except HalfseenError as error:
        sentence = f"halfseen: {render(error)}"
    except MemoryError as error:
        asked = str(error).partition(" for an array")[0]
        sentence = f"halfseen: The work must find room in memory. Found too little{asked and f': {asked}'}. {_LESS}"
    except KeyboardInterrupt:
        sentence, code = "Interrupted; nothing was saved.", 130
    except OSError as error:
        if error.errno not in _FULL:  # errors of files are handled where these are written: this is standard output
            raise
        sentence = f"halfseen: The output must find room. Found none: {error.strerror}. Send it elsewhere."
    click.echo(sentence, err=True)
    sys.exit(code)


class Program(click.Group):
    """The group of all commands; a `HalfseenError` or a usage error becomes one line and exit code 2."""

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


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning for users in one line; others, such as NumPy's of an overflow, are left out."""
    if isinstance(message, UserWarning):
        click.echo(f"note: {render(message)}", err=True)


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

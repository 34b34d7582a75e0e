"""The program `halfseen`: its commands, and its errors and warnings in one line each."""

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

#: The commands in the order of the help, with their summaries there. Each is imported only when it is run.
SUMMARIES = {
    "fit": "Fit a model to ratings, counts, levels or a table with holes.",
    "tune": "Choose the parameters of a model by held-out cells, and fit it.",
    "predict": "Predict values of cells by a model.",
    "recommend": "Show what a model recommends to somebody, known or new.",
    "similar": "Show which items, or users, are alike.",
    "serve": "Serve a model on this machine: JSON over HTTP.",
    "evaluate": "Score how well a model ranks and predicts held-out cells.",
    "impute": "Fill the holes of a table.",
    "uncouple": "Find out who answered what, from lists without names.",
    "split": "Split a file into training and test cells.",
    "report": "Make a page about a model, to view in a browser.",
    "reproduce": "Reproduce the tables and figures of the papers.",
    "datasets": "List datasets by name, fetch them, or write one to a file.",
    "doctor": "Check this installation: versions, threads, a small fit.",
    "demo": "Try it all on data that are built in, and make a report.",
    "completion": "Print the script for tab completion in a shell.",
}
COMMANDS = tuple(SUMMARIES)
#: Commands in the module of another one.
_MODULES = {"similar": "recommend", "report": "evaluate", "doctor": "installation", "completion": "installation"}


class Command(click.Command):
    """A command that suggests an option for an unknown one, also for the names that other libraries use."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            options = {name.lstrip("-").replace("-", "_"): name for param in self.params for name in param.opts}
            options["random_state"] = "--seed"
            near = did_you_mean(error.option_name.lstrip("-").replace("-", "_"), options)
            if not near:
                raise
            must = f"No such option {error.option_name!r}. Did you mean {options[near]!r}?"
            raise click.UsageError(must, error.ctx) from None


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """End with one line and exit code 2 if something is wrong; the help of a command without arguments stays."""
    try:
        yield
        return
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        text, command = " ".join(error.format_message().split()), error.ctx.command_path if error.ctx else "halfseen"
        message = f"{text}{'' if text.endswith(('.', '?')) else '.'} Try '{command} --help'."
    except HalfseenError as error:
        message = render(error)
    except MemoryError as error:
        size = str(error).partition(" for an array")[0]
        must, found = "The computation must fit into memory.", f"too little{size and f': {size}'}"
        remedy = "Choose fewer components, `n_components`, or give fewer rows and columns."
        message = render(HalfseenError(must, found=found, remedy=remedy))
    except KeyboardInterrupt:
        click.echo("Interrupted; nothing was saved.", err=True)
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG):  # files have their own errors: this is standard output
            raise
        message = f"The output must have room. Found none: {error.strerror}. Send it elsewhere."
    click.echo(f"halfseen: {message}", err=True)
    sys.exit(2)


class Program(click.Group):
    """The group of all commands; a `HalfseenError` or a usage error becomes one line and exit code 2."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _errors_in_one_line():
            return super().make_context(*args, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"halfseen.cli.{_MODULES.get(name, name)}"), name)
        command.short_help = SUMMARIES[name]
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = did_you_mean(args[0], COMMANDS)
            hint = f"Did you mean {near!r}?" if near else f"Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings(), _errors_in_one_line():
            warnings.showwarning = _note
            return super().invoke(ctx)


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning for users in one line; others, such as NumPy's of an overflow, are left out."""
    if isinstance(message, UserWarning):
        click.echo(f"note: {render(message)}", err=True)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, "-V", "--version", prog_name="halfseen")
def main() -> None:
    """Factorize partially observed matrices: fill tables, recommend from ratings.

    \b
    halfseen fit ratings.csv --method poisson -o model.hs
    halfseen recommend model.hs --user bob -n 10
    halfseen impute table.csv -k 5 -o filled.csv
    halfseen uncouple --asked a.csv --answers b.csv -o c.csv
    """

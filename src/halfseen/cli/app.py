"""The program `halfseen`: its commands, and how it says that something is wrong."""

import errno
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import click

from halfseen import __version__
from halfseen.checks import did_you_mean
from halfseen.errors import HalfseenError

#: Commands in the order of the help, each imported only when it is run.
COMMANDS = (
    "fit",
    "predict",
    "recommend",
    "evaluate",
    "impute",
    "uncouple",
    "report",
    "reproduce",
    "datasets",
    "doctor",
    "demo",
    "completion",
)


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


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Turn click's complaints, of several lines, into ours; the help for who types nothing stays as it is."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise Misuse(error.format_message(), error.ctx) from None


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
            try:
                return super().invoke(ctx)
            except HalfseenError as error:
                _end(f"halfseen: {in_options(' '.join(str(error).split()))}", 2)
            except KeyboardInterrupt:
                _end("Interrupted; nothing was saved.", 130)
            except OSError as error:
                if error.errno != errno.ENOSPC:  # files are looked after where they are written: this is the output
                    raise
                _end(f"halfseen: The output must find room. Found none: {error.strerror}. Send it elsewhere.", 2)


#: What the library advises in Python, and how this program says it.
_ADVICE = {
    r'observe\(X, duplicates="(\w+)"\), or (.*)\.$': r"--duplicates \1, or \2.",
    r"""columns=\(['"]([^'"]*)['"], ['"]([^'"]*)['"], ['"]([^'"]*)['"]\)""": r"--columns \1,\2,\3",
    r"""columns=\(['"]([^'"]*)['"], ['"]([^'"]*)['"]\)""": r"--columns \1,\2",
    r'layout="(\w+)"': r"--layout \1",
    r'unseen="(\w+)"': r"--unseen \1",
    r"Set early_stopping=False, or raise validation_fraction": "Leave out --early-stopping",
    r", or pass an array, a sparse matrix or a frame": "",
    r"set them to NaN if they are unknown": "leave them empty if they are unknown, or --skip the column when imputing",
    r"""(question|respondent|value|higher|lower)=(?:'([^']*)'|"([^"]*)"|(\.\.\.))""": r"--\1 \2\3\4",
    r'faults="(\w+)"': r"--faults \1",
    r"""balance=["'](\w+)["']""": r"--balance \1",
    r"\bn_(burn|sweeps)=": r"--\1 ",
    r"\bn_(burn|sweeps)\b": r"--\1",
    r", see diagnostics_\)": ")",
    r'halfseen\.datasets\.fetch\("([\w-]+)"\)': r"halfseen datasets \1 --fetch",
    r"pass its history \(a dict from columns to values\)": "pass its history, --history FILE",
}


def in_options(sentence: str) -> str:
    """The library's sentence, its advice in terms of this program."""
    for python, option in _ADVICE.items():
        sentence = re.sub(python, option, sentence, flags=re.IGNORECASE)
    return sentence


def _end(sentence: str, code: int) -> NoReturn:
    click.echo(sentence, err=True)
    sys.exit(code)


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as one line, without the place in the code where it arose."""
    click.echo(f"note: {in_options(str(message))}", err=True)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="halfseen")
def main() -> None:
    """Factorize matrices one only half sees: fill tables, recommend from ratings.

    \b
    halfseen fit ratings.csv --method poisson -k 50 -o model.hs
    halfseen recommend model.hs --user bob -n 10
    halfseen impute table.csv -k 5 -o filled.csv
    halfseen uncouple --asked a.csv --answers b.csv --comparisons c.csv -o filled.csv
    """

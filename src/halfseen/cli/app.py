"""The program `halfseen`: its commands, and how it says that something is wrong."""

import sys
import warnings
from importlib import import_module
from typing import Any

import click

from halfseen import __version__
from halfseen.checks import did_you_mean
from halfseen.errors import HalfseenError

#: Commands in the order of the help, each imported only when it is run.
COMMANDS = ("fit", "predict", "recommend", "impute", "doctor", "demo")


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


class Program(click.Group):
    """The group of all commands; a `HalfseenError` becomes one line and exit code 2."""

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
        warnings.showwarning = _note
        try:
            return super().invoke(ctx)
        except HalfseenError as error:
            click.echo(f"halfseen: {' '.join(str(error).split())}", err=True)
            sys.exit(2)


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning as one line, without the place in the code where it arose."""
    click.echo(f"note: {message}", err=True)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="halfseen")
def main() -> None:
    """Factorize matrices one only half sees: fill tables, recommend from ratings.

    \b
    halfseen fit ratings.csv --method poisson -k 50 -o model.hs
    halfseen recommend model.hs --user bob -n 10
    halfseen impute table.csv -k 5 -o filled.csv
    """

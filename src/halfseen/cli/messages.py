"""Messages of the library on the command line: Python settings as options of the running command."""

import ast
import copy
import re
import shlex

import click

from halfseen.errors import CODE, Described

#: Options whose names differ from those of the parameters.
RENAMED = {
    "n_components": "-k", "random_state": "--seed", "n_sweeps": "--sweeps", "n_burn": "--burn", "n_folds": "--folds",
    "na_values": "--na", "test_size": "--share", "test_rows": "--held-out-users", "categories": "--category",
    "numbers": "--number", "parameters": "--param", "n_candidates": "--candidates",
    "filter_items": "--items",
}  # fmt: skip
#: Commands in the place of functions.
COMMANDS = {"halfseen.datasets.fetch": "halfseen datasets {} --fetch", "halfseen.data.split_cells": "halfseen split"}
#: None in Python is an option that is left out.
_NONE = re.compile(r"\bNone(?:,| or) | or None\b")


def render(message: Described | Warning | str) -> str:
    """Render an error, a warning or a text of the library in one line, with options for Python settings."""
    if isinstance(message, Described):
        own = copy.copy(message)
        own.must = _NONE.sub("", message.must)  # not in what was found, which is the user's
        text = own.render(as_option, cli=True)
    else:
        text = CODE.sub(lambda match: as_option(match[1]), str(message))
    return " ".join(text.split())


def as_option(code: str) -> str:
    """Python code as the command line has it: tol as --tol, noise="gamma" as --noise gamma, OrdNMF as a method."""
    from halfseen.cli.fit import METHODS

    ctx = click.get_current_context(silent=True)
    command = None if ctx is None else ctx.command
    if ctx is not None and isinstance(command, click.Group):  # a command that has just failed
        command = command.get_command(ctx, ctx.invoked_subcommand or "")
    name, equals, value = code.partition("=")
    options = [] if command is None else [text for param in command.params for text in param.opts]
    option = RENAMED.get(name, f"{'-' if len(name) == 1 else '--'}{name.replace('_', '-')}")
    if equals and name.isidentifier():  # lists by commas, True as nothing
        try:
            literal = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            return f"{option} {value}"
        values = literal if isinstance(literal, tuple | list) else [literal]
        return option if literal is True else f"{option} {shlex.quote(','.join(map(str, values)))}"
    if name in METHODS.values():
        method = next(method for method, estimator in METHODS.items() if estimator == name)
        return f"{'' if '--method' in options else 'halfseen fit '}--method {method}"
    function, _, arguments = code.partition("(")
    if function in COMMANDS:
        return COMMANDS[function].format(arguments.strip("()\"'"))
    return option if option in options else code

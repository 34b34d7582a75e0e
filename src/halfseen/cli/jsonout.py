"""--json: what a command tells, for programs."""

import json
import math
from typing import Any

import click

from halfseen.cli.streams import is_taken

JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON, for programs.")


def check_one_way(as_json: bool, output: str | None) -> None:
    """Refuse two places for one result."""
    if as_json and output is not None:
        raise click.UsageError("Say either --json, for standard output, or -o for a table.")


def check_alone(as_json: bool) -> None:
    """Refuse two results on standard output."""
    if as_json and is_taken():
        raise click.UsageError("Say either --json or -o -: standard output is for one of the two.")


def tell_json(what: Any) -> None:
    """One JSON value on standard output."""
    click.echo(as_json(what))


def as_json(what: Any) -> str:
    """Any value as JSON. What is not a number there (NaN) is null, as JSON has no word for it."""
    return json.dumps(_plain(what), ensure_ascii=False, indent=1, allow_nan=False)


def _plain(what: Any) -> Any:
    """Dictionaries, lists, texts and numbers of Python alone."""
    if hasattr(what, "tolist"):
        what = what.tolist()
    if isinstance(what, dict):
        return {str(name): _plain(value) for name, value in what.items()}
    if isinstance(what, (list, tuple)):
        return [_plain(value) for value in what]
    if isinstance(what, float):
        return what if math.isfinite(what) else None
    return what

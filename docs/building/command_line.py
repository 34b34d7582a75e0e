"""Puts the program's own help into docs/command_line.md when the site is built, so that the page can't drift from it.

A line `{{ help fit }}` becomes what `halfseen fit --help` prints; `{{ help }}` what `halfseen --help` does.
"""

import re
from typing import Any

import click

from halfseen.cli import main
from halfseen.cli.app import COMMANDS

PAGE = "command_line.md"
WIDTH = 100


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return with_help(markdown) if page.file.src_uri == PAGE else markdown


def with_help(markdown: str) -> str:
    """The page with the help of each command in its place; every command must have one."""
    asked_for = re.findall(r"^\{\{ help (\w+) \}\}$", markdown, re.MULTILINE)
    if asked_for != list(COMMANDS):
        raise ValueError(f"{PAGE} must show the help of {', '.join(COMMANDS)}, in this order. Found {asked_for}.")
    return re.sub(r"^\{\{ help ?(\w*) \}\}$", lambda place: _fenced(help_of(place[1])), markdown, flags=re.MULTILINE)


def help_of(name: str) -> str:
    """What `halfseen NAME --help` prints; without a name, what `halfseen --help` does."""
    options: dict[str, Any] = {**main.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    program = click.Context(main, info_name="halfseen", **options)
    if not name:
        return main.get_help(program)
    command = main.get_command(program, name)
    if command is None:
        raise ValueError(f"There is no command {name!r}.")
    return command.get_help(click.Context(command, info_name=name, parent=program, **options))


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"

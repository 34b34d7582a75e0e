"""The list of all data as wide as the terminal: what finds no room is left to the account of one set."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfseen.data.datasets import Entry

GAP = "  "
TITLE = "what it is"
#: What is left out where room is short, first of all the first.
SPARED = ("terms", "kind", "size")
#: As long as there is something to leave out, titles have at least so many characters.
ROOM = 30


def width_of_terminal() -> int | None:
    """Characters in a line of the terminal; None where the output goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def listed(entries: list[Entry], width: int | None) -> Iterator[str]:
    """A line for each set below the names of the columns."""
    columns = {
        "name": [entry.name for entry in entries],
        "kind": [entry.kind for entry in entries],
        TITLE: [entry.title for entry in entries],
        "size": [entry.size for entry in entries],
        "terms": [_short(entry.terms, 28) for entry in entries],
        "state": [entry.state for entry in entries],
    }
    spared = list(SPARED)
    while width is not None and spared and _left(columns, width) < min(ROOM, _width(columns, TITLE)):
        del columns[spared.pop(0)]
    if width is not None:
        columns[TITLE] = [_short(title, max(_left(columns, width), len(TITLE))) for title in columns[TITLE]]
    widths = [_width(columns, name) for name in columns]
    for line in (list(columns), *zip(*columns.values(), strict=True)):
        yield GAP.join(cell.ljust(size) for cell, size in zip(line, widths, strict=True)).rstrip()


def told(said: Mapping[str, str], width: int | None) -> Iterator[str]:
    """What is known of one set, a name and a text each; long ones go on below themselves."""
    for name, text in said.items():
        head = f"{name + ':':<10} "
        yield head + text if width is None else _wrapped(text, width, head, " " * len(head))


def closing(text: str, width: int | None) -> str:
    """A sentence or two, broken between words where a line ends."""
    return text if width is None else _wrapped(text, width)


def _wrapped(text: str, width: int, first: str = "", further: str = "") -> str:
    """Lines that are broken between words alone: addresses and paths stay whole."""
    return fill(
        text, width, initial_indent=first, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


def _left(columns: Mapping[str, list[str]], width: int) -> int:
    """What the other columns leave for titles."""
    return width - sum(_width(columns, name) + len(GAP) for name in columns if name != TITLE)


def _width(columns: Mapping[str, list[str]], name: str) -> int:
    return max(map(len, (name, *columns[name])))


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4].rsplit(' ', 1)[0].rstrip(';,:')} ..."

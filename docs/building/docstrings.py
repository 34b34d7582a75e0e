"""Lets the API reference read docstrings in the house's style: as Markdown, with lists where they list.

    Parameters                              **Parameters**
    ----------
    l1, l2 : penalties on both       ->     - `l1`, `l2`: penalties on both factors.
        factors.

An angle bracket, as in <w, h>, stays one.
"""

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ITEM = re.compile(r"^(\S.*?) : (.*)$")


class HouseDocstrings(griffe.Extension):
    """Called by griffe for whatever has a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """The docstring as Markdown."""
    first, *sections = _SECTION.split(docstring)
    titles, bodies = sections[::2], sections[1::2]
    parts = [_prose(first)]
    parts += [f"**{title}**\n\n{_listed(body)}" for title, body in zip(titles, bodies, strict=True)]
    return "\n\n".join(part.strip("\n") for part in parts)


def _prose(text: str) -> str:
    """Angle brackets kept from being taken for tags, but in formulas, which are indented."""
    return "\n".join(line if line.startswith("    ") else _escaped(line) for line in text.splitlines())


def _listed(body: str) -> str:
    """An item a line that is not indented."""
    items: list[str] = []
    for line in body.strip("\n").splitlines():
        if not line.startswith(" ") and line.strip():
            items.append(_item(line))
        elif items and line.strip():
            items[-1] += " " + _escaped(line.strip())
    return "\n".join(f"- {item}" for item in items)


def _item(line: str) -> str:
    found = _ITEM.match(line)
    if found is None:
        return _escaped(line)
    names, text = found.groups()
    if not re.fullmatch(r"[\w\[\]]+(, [\w\[\]]+)*", names):
        return _escaped(line)
    return ", ".join(f"`{name}`" for name in names.split(", ")) + ": " + _escaped(text)


def _escaped(line: str) -> str:
    """Outside of backticks."""
    pieces = line.split("`")
    pieces[::2] = [piece.replace("<", "&lt;").replace("_", r"\_") for piece in pieces[::2]]
    return "`".join(pieces)

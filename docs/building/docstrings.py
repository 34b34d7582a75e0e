"""Lets the API reference read docstrings in the house's style: as Markdown, with lists where they list.

    Parameters                              **Parameters**
    ----------
    l1, l2 : penalties on both       ->     - `l1`, `l2`: penalties on both factors.
        factors.

    Attributes                              **Attributes**
    ----------
    W_ : (n, k), H_ : (m, k).        ->     - `W_`: (n, k)
                                            - `H_`: (m, k).

Examples become code. An angle bracket, as in <w, h>, stays one.
"""

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_NAMES = r"[\w\[\]]+(?:, [\w\[\]]+)*"
_ITEM = re.compile(rf"^({_NAMES}) : (.*)$")
#: Where, after the text of a fitted attribute, another begins; the underscores at their ends show them.
_NEXT = re.compile(r"(?<= : )(.*?)(?:, and|,|;| and) (?=\w+_(?:, \w+_)* : )")


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
    parts += [f"**{title}**\n\n{_section(title, body)}" for title, body in zip(titles, bodies, strict=True)]
    return "\n\n".join(part.strip("\n") for part in parts)


def _section(title: str, body: str) -> str:
    return f"```pycon\n{body.strip()}\n```" if title == "Examples" else _listed(body)


def _prose(text: str) -> str:
    """Angle brackets kept from being taken for tags, but in formulas, which are indented."""
    return "\n".join(line if line.startswith("    ") else _escaped(line) for line in text.splitlines())


def _listed(body: str) -> str:
    """An item for every line that is not indented, and for every further attribute in its text."""
    items: list[str] = []
    for line in body.strip("\n").splitlines():
        if not line.startswith(" ") and line.strip():
            items.append(line)
        elif items and line.strip():
            items[-1] += " " + line.strip()
    return "\n".join(f"- {_item(one)}" for item in items for one in _NEXT.sub(r"\1\n", item).split("\n"))


def _item(item: str) -> str:
    found = _ITEM.match(item)
    if found is None:
        return _escaped(item)
    names, text = found.groups()
    return ", ".join(f"`{name}`" for name in names.split(", ")) + ": " + _escaped(text)


def _escaped(text: str) -> str:
    """Outside of backticks."""
    pieces = text.split("`")
    pieces[::2] = [piece.replace("<", "&lt;").replace("_", r"\_") for piece in pieces[::2]]
    return "`".join(pieces)

"""Tables of studies as lines of text: aligned, in blocks as wide as there is room for, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from halfseen.studies import Column, Table

GAP = "  "

#: Columns laid out side by side: lines of equal length, one for the group, one for the names, one for each row.
Strip = list[str]


class Block(NamedTuple):
    """Some columns of a table, aligned."""

    header: list[str]
    rows: list[str]


def blocks(table: Table, width: int | None = None) -> Iterator[Block]:
    """The table in blocks of at most `width` characters where that can be, each beginning with the first column.

    The columns of a group stay together.
    """
    first, *strips = _strips(table)
    chosen = [first]
    for strip in strips:
        if width is not None and len(chosen) > 1 and _width([*chosen, strip]) > width:
            yield _block(chosen)
            chosen = [first]
        chosen.append(strip)
    yield _block(chosen)


def markdown(table: Table) -> Iterator[str]:
    """The table between its title and its footnotes."""
    yield f"**{table.title}**"
    yield ""
    yield _barred(column.full_name for column in table.columns)
    yield _barred("---" if is_words(cells) else "---:" for cells in zip(*table.texts(), strict=True))
    yield from map(_barred, table.texts())
    yield ""
    for footnote in table.footnotes:
        yield f"- {footnote}"


def _strips(table: Table) -> list[Strip]:
    """A strip for each group, and for each column without a group."""
    columns = zip(table.columns, zip(*table.texts(), strict=True), strict=True)
    groups = groupby(columns, key=lambda column: column[0].group or column[0].name)
    return [_strip(list(group)) for _, group in groups]


def _strip(columns: Sequence[tuple[Column, Sequence[str]]]) -> Strip:
    group = columns[0][0].group
    lines = [
        GAP.join(cells) for cells in zip(*(_aligned([c.name, *cells], cells) for c, cells in columns), strict=True)
    ]
    width = max(len(lines[0]), len(group))
    heading = f"{group} ".ljust(width, "-")[:width] if group else " " * width
    return [heading, *(line.rjust(width) for line in lines)]


def _aligned(texts: Sequence[str], cells: Sequence[str]) -> list[str]:
    """Texts of equal length: words to the left, numbers to the right."""
    width = max(map(len, texts))
    return [text.ljust(width) if is_words(cells) else text.rjust(width) for text in texts]


def is_words(cells: Iterable[str]) -> bool:
    """Whether a column holds words, not numbers."""
    return any(cell[:1].isalpha() for cell in cells)


def _width(strips: Sequence[Strip]) -> int:
    return sum(len(strip[0]) for strip in strips) + len(GAP) * (len(strips) - 1)


def _block(strips: Sequence[Strip]) -> Block:
    lines = [GAP.join(parts).rstrip() for parts in zip(*strips, strict=True)]
    return Block([line for line in lines[:2] if line], lines[2:])


def _barred(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""A self-contained HTML page: the blocks that its sections are made of, and their rendering."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from halfseen import __version__
from halfseen.plots.axes import display_label

#: The most characters of a label in a table.
MAX_LABEL_LENGTH = 80
_PACKAGE = "halfseen.report"
_FRAME = "frame.html"


@dataclass(frozen=True)
class Ordered:
    """A text in a table whose order is not alphabetical, such as that of levels."""

    text: str
    position: int


class Measured(float):
    """A number with a standard error."""

    error: float

    def __new__(cls, value: float, error: Any) -> Measured:
        self = super().__new__(cls, value)
        self.error = error
        return self


@dataclass(frozen=True)
class Facts:
    """Values by their names."""

    values: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers; `bar` is the column also drawn as bars, `highlighted` are the model's own rows.

    With a `summary`, the table is folded at first.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bar: int | None = None
    highlighted: Sequence[int] = ()
    is_wide: bool = True
    summary: str = ""

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers only."""

        def is_number(value: Any) -> bool:
            return value is None or (isinstance(value, int | float) and not isinstance(value, bool))

        return [all(is_number(row[column]) for row in self.rows) for column in range(len(self.heads))]

    @property
    def largest(self) -> float:
        """Length of the longest bar."""
        lengths = [] if self.bar is None else [abs(float(row[self.bar])) for row in self.rows]
        return max(lengths, default=0.0) or 1.0


@dataclass(frozen=True)
class Picture:
    """A figure, its description in words, and its numbers for those who can't see it."""

    svg: str
    alt: str
    caption: str
    numbers: Table | None = None


@dataclass(frozen=True)
class Group:
    """A heading with a note, and tables, such as the strongest columns and rows of a component."""

    name: str
    note: str
    tables: Sequence[Table]


@dataclass(frozen=True)
class Groups:
    """Groups of tables, one of which the reader can select."""

    groups: Sequence[Group]


#: A paragraph is a text.
Block = str | Facts | Table | Picture | Groups


@dataclass(frozen=True)
class Section:
    """A heading and its blocks; the headline is a sentence for the top of the page."""

    name: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    headline: str = ""


def label_text(label: Any) -> str:
    """A label as tables show it."""
    return display_label(label, MAX_LABEL_LENGTH)


def in_order(texts: Sequence[str]) -> list[Ordered]:
    """Texts that tables sort in the given order."""
    return [Ordered(text, position) for position, text in enumerate(texts)]


def count(number: int, noun: str) -> str:
    """A number and its noun: "1 cell", "4,950 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share in per cent, with 3 digits."""
    return f"{100 * share:.3g}%"


def format_value(value: Any) -> str:
    """A number with separators or 4 digits, "none" for None, text as it is."""
    if value is None:
        return "none"
    if isinstance(value, Ordered):
        return value.text
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        is_count = value.is_integer() or abs(value) >= 1e3
        text = f"{value:,.0f}" if is_count and abs(value) < 1e12 else f"{value:.4g}"
        return f"{text} ± {value.error:.2g}" if isinstance(value, Measured) and value.error == value.error else text
    return str(value)


def render_report(title: str, subtitle: str, sections: list[Section]) -> str:
    """The HTML page of a report."""
    filters: dict[str, Callable[..., Any]] = {"kind": lambda block: type(block).__name__, "number": format_value}
    filters["position"] = lambda value: getattr(value, "position", None)
    anchors, script = [(section.name, section.title) for section in sections], _read(_PACKAGE, "script.js")
    return render_page(
        _PACKAGE, "page.html", filters, title=title, subtitle=subtitle, kind="report", anchors=anchors, script=script,
        sections=sections,
    )  # fmt: skip


def render_page(
    package: str, template: str, filters: dict[str, Callable[..., Any]], *,
    title: str, subtitle: str, kind: str, anchors: Sequence[tuple[str, str]], script: str = "", **values: Any,
) -> str:  # fmt: skip
    """Render a package's template in the frame that all pages share, escaping all data; anchors are (id, name)."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    templates = {_FRAME: _read(_PACKAGE, _FRAME), template: _read(package, template)}
    environment = Environment(
        loader=DictLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters | {"csp_source": _csp_source}
    return environment.get_template(template).render(
        title=title, subtitle=subtitle, kind=kind, anchors=anchors, script=script, version=__version__,
        style=_read(_PACKAGE, "style.css"), **values,
    )  # fmt: skip


def _read(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def _csp_source(script: str) -> str:
    """The source that a content security policy allows: this script and no other."""
    if not script:
        return "'none'"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest())
    return f"'sha256-{digest.decode('ascii')}'"

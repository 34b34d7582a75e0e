"""Rendering of self-contained HTML pages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from halfseen.report.blocks import Placed, Section

_HERE = "halfseen.report"
_FRAME = "frame.html"


def render(title: str, subtitle: str, sections: list[Section]) -> str:
    """The HTML page of a report."""
    return page_of(
        _HERE, "page.html", {"number": number, "place": lambda value: getattr(value, "place", None)},
        title=title, subtitle=subtitle, kind="report",
        anchors=[(section.name, section.title) for section in sections], script=_text(_HERE, "script.js"),
        sections=sections,
    )  # fmt: skip


def page_of(
    package: str, template: str, filters: dict[str, Callable[..., Any]], *,
    title: str, subtitle: str, kind: str, anchors: Sequence[tuple[str, str]], script: str = "", **values: Any,
) -> str:  # fmt: skip
    """Render a package's template in the frame that all pages share, escaping all data; anchors are (id, name)."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    from halfseen import __version__

    templates = {_FRAME: _text(_HERE, _FRAME), template: _text(package, template)}
    environment = Environment(
        loader=DictLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters | {"fingerprint": _fingerprint}
    return environment.get_template(template).render(
        title=title, subtitle=subtitle, kind=kind, anchors=anchors, script=script, version=__version__,
        style=_text(_HERE, "style.css"), **values,
    )  # fmt: skip


def number(value: Any) -> str:
    """A number with separators or 4 digits, "none" for None, text as it is."""
    if value is None:
        return "none"
    if isinstance(value, Placed):
        return value.text
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        is_count = value.is_integer() or abs(value) >= 1e3
        return f"{value:,.0f}" if is_count and abs(value) < 1e12 else f"{value:.4g}"
    return str(value)


def _text(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")


def _fingerprint(script: str) -> str:
    """The source that a content security policy allows: this script and no other."""
    if not script:
        return "'none'"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest())
    return f"'sha256-{digest.decode('ascii')}'"

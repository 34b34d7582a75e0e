"""From sections to one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from halfseen.report.blocks import Section

_FILES = files("halfseen.report")


def rendered(title: str, subtitle: str, sections: list[Section], version: str) -> str:
    """The page. Whatever is text in it stays text: all that comes from data is escaped."""
    script = _text("script.js")
    return str(
        _template().render(
            title=title, subtitle=subtitle, sections=sections, version=version,
            style=_text("style.css"), script=script, script_hash=_hash(script),
        )
    )  # fmt: skip


def _template() -> Any:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"page.html": _text("page.html")}), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["number"] = number
    return environment.get_template("page.html")


def number(value: Any) -> str:
    """A number as people read it; a word for None, text as it is."""
    if value is None:
        return "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 and abs(value) < 1e12 else f"{value:.4g}"
    return str(value)


def _text(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What allows this script, and no other, to run."""
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")

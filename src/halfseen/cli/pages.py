"""Pages of this program, in the style of the reports."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def rendered(package: str, template: str, filters: dict[str, Any], **values: Any) -> str:
    """A page of a package's template, with the style of the reports inside; all text is escaped."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    from halfseen import __version__

    page, style = files(package) / template, files("halfseen.report") / "style.css"
    environment = Environment(
        loader=DictLoader({template: page.read_text(encoding="utf-8")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template).render(
        style=style.read_text(encoding="utf-8"), version=__version__, **values
    )

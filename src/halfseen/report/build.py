"""Reports of fitted models."""

from __future__ import annotations

import html
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any

from halfseen import validation
from halfseen.errors import DataError, HalfseenError
from halfseen.io.write import atomic_write
from halfseen.plots.axes import display_label
from halfseen.plots.model_plots import n_components
from halfseen.report import sections
from halfseen.report.blocks import Table, counted
from halfseen.report.context import ReportContext
from halfseen.report.quality import quality
from halfseen.report.rendering import render


def _finite_number(value: Any) -> tuple[str, str] | None:
    if isinstance(value, Real) and not isinstance(value, bool) and isfinite(value):
        return None
    return "one finite number", "Use the lowest value that makes a cell relevant, such as 1 or 4."


@dataclass(frozen=True, repr=False)
class Report:
    """One page of HTML that needs nothing else: no network, no other file. A notebook shows it."""

    title: str
    """The heading of the page."""
    html: str
    """The whole page."""
    scores: tuple[dict[str, Any], ...] = ()
    """The tables of scores on held-out cells: of each its "caption", and its "lines" as dicts by their heads."""

    def save(self, path: Any) -> None:
        """Write the page to a file at `path`, whole or not at all."""
        path = Path(path)
        try:
            with atomic_write(path) as draft:
                draft.write_text(self.html, encoding="utf-8", newline="\n")
        except OSError as error:
            raise DataError(
                "The folder of a report must exist and be writable, with room enough. Could not write "
                f"{str(path)!r}: {error.strerror or error}. Choose another place; nothing was left there."
            ) from None

    def _repr_html_(self) -> str:
        """A frame of its own, so that the styles of a notebook and of the page leave each other alone."""
        title, page = html.escape(self.title), html.escape(self.html)
        return f'<iframe title="{title}" srcdoc="{page}" width="100%" height="720"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html.encode('utf-8')):,} bytes)"


def check_tools() -> None:
    """Refuse to begin without what pictures are drawn with and pages are made with."""
    for name in ("matplotlib", "jinja2"):
        try:
            import_module(name)
        except ImportError:
            raise HalfseenError(
                f"A report needs {name}. It is not installed. Install it: pip install {name}."
            ) from None


def make_report(
    model: Any, train: Any = None, test: Any = None, *, title: str | None = None, top: int = 10, k: int = 10,
    relevant: float = 1,
) -> Report:  # fmt: skip
    """A report of a fitted model: `make_report(model, train, test).save("report.html")`.

    What was seen, how the fit went, the parts that were found, the thresholds of levels, a posterior predictive check,
    quality on held-out cells beside simple rules, examples of recommendations or completions; of uncoupled data, who
    may have given which answer. What the model does not have, or what would need data that are not given, is left out.

    Parameters
    ----------
    model : any fitted model, or what `halfseen.load` gives; of a fitted search, its best model.
    train : what the model was fitted on, data as for `fit`; a `halfseen.Uncoupled` for UncoupledNMF.
    test : cells that were held out, data as for `fit`. Those that training has seen are left out, with a note.
    title : the heading; None, or an empty one, names the model and its size.
    top : how many of the strongest columns and rows of each component are listed.
    k : the length of rankings, where held-out cells are ranked.
    relevant : from which value on a held-out cell is relevant to a ranking.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[2, 4, np.nan], [1, np.nan, 3], [4, 8, 12.0]])
    >>> report = hs.make_report(hs.RankOneNMF().fit(X), X, title="A table with two holes")
    >>> report.save("report.html")
    >>> report.title
    'A table with two holes'
    """
    check_tools()
    rules = {"top": validation.whole(1), "k": validation.whole(1), "relevant": _finite_number}
    validation.check_parameters({"top": top, "k": k, "relevant": relevant}, rules)
    context = ReportContext.from_data(model, train, test)
    made = [
        sections.observed_data(context),
        sections.fit(context),
        sections.components(context, top),
        sections.thresholds(context),
        sections.posterior_predictive(context),
        sections.coupling(context),
        quality(context, k, relevant),
        sections.recommendations(context),
        sections.completions(context),
    ]
    shown_sections = [section for section in made if section is not None]

    title = display_label(title, 120).strip() if title else ""
    if not title:
        n, m = context.shape
        title = f"{type(context.model).__name__} of {counted(n, 'row')} and {counted(m, 'column')}"
    subtitle = [f"{counted(n_components(context.model), 'component')}.", context.model.status_.value]
    subtitle += [section.headline for section in shown_sections if section.headline]
    tables = [
        block
        for section in shown_sections
        if section.name == "quality"
        for block in section.blocks
        if isinstance(block, Table)
    ]
    scores = tuple(
        {"caption": table.caption, "lines": [dict(zip(table.heads, row, strict=True)) for row in table.rows]}
        for table in tables
    )
    return Report(title, render(title, " ".join(subtitle), shown_sections), scores)

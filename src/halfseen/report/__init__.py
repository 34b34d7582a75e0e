"""Reports: one self-contained HTML page on the data, the fit, its components and its quality."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from halfseen import validation
from halfseen.errors import DataError, HalfseenError, ParameterError
from halfseen.io.write import atomic_write
from halfseen.plots.axes import display_label
from halfseen.plots.model_plots import n_components
from halfseen.report import sections
from halfseen.report.context import ReportContext
from halfseen.report.page import Measured, Table, count, render_report
from halfseen.report.quality import quality

__all__ = ["Report", "check_tools", "make_report"]


@dataclass(frozen=True, repr=False)
class Report:
    """One page of HTML that needs nothing else: no network, no other file. A notebook shows it."""

    title: str
    """Heading of the page."""
    html: str
    """The whole page."""
    scores: tuple[dict[str, Any], ...] = ()
    """Tables of scores on held-out cells: the "caption" of each, and its "lines" as dicts by their heads, with
    "standard_errors" by row beside them."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        """
        path = Path(path)
        try:
            with atomic_write(path) as draft:
                draft.write_text(self.html, encoding="utf-8", newline="\n")
        except OSError as error:
            raise DataError(
                "The folder of a report must exist and be writable, with room enough. Could not write "
                f"{str(path)!r}: {error.strerror or error}.",
                remedy="Choose another place; nothing was left there.",
                parameter="path",
            ) from None

    def _repr_html_(self) -> str:
        """A frame, so that the styles of a notebook and of the page leave each other alone."""
        title, page = html.escape(self.title), html.escape(self.html)
        return f'<iframe title="{title}" srcdoc="{page}" width="100%" height="720"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {len(self.html.encode('utf-8')):,} bytes)"


def check_tools() -> None:
    """Refuse to begin without matplotlib, for figures, or jinja2, for pages."""
    for name in ("matplotlib", "jinja2"):
        try:
            import_module(name)
        except ImportError:
            must, remedy = f"A report needs {name}. It is not installed.", f"Install it: pip install {name}."
            raise HalfseenError(must, remedy=remedy) from None


def make_report(
    model: BaseEstimator,
    train: Any = None,
    test: Any = None,
    *,
    title: str | None = None,
    top: int = 10,
    k: int = 10,
    relevant: float = 1,
    names: Mapping[Any, str] | None = None,
) -> Report:
    """Make a report of a fitted model: `make_report(model, train, test).save("report.html")`.

    The observed data, the fit, the components, the thresholds of levels, a posterior predictive check, quality on
    held-out cells beside simple baselines, examples of recommendations or completions; of uncoupled data, who may have
    given which answer. What the model does not have, or what would need data that are not given, is left out.

    Parameters
    ----------
    model : estimator
        Any fitted model, or what `halfseen.load` gives; of a fitted search, its best model.
    train : {array-like, sparse matrix, frame, path, Observed, Uncoupled}, default=None
        What the model was fitted on, data as for `fit`; a `halfseen.Uncoupled` for UncoupledNMF.
    test : {array-like, sparse matrix, frame, path, Observed}, default=None
        Cells that were held out, data as for `fit`. Those that training has seen are left out, with a note.
    title : str, default=None
        Heading; by default, or if empty, the model and its size.
    top : int, default=10
        Number of the strongest columns and rows listed of each component.
    k : int, default=10
        Length of rankings, where held-out cells are ranked.
    relevant : float, default=1
        Value from which on a held-out cell is relevant to a ranking.
    names : dict, default=None
        Titles of columns by label (or position, if the columns have no labels), which stand in the place of labels.

    Returns
    -------
    Report

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
    validation.check_parameters({"top": top, "k": k}, {"top": validation.whole(1), "k": validation.whole(1)})
    if not isinstance(relevant, Real) or isinstance(relevant, bool) or not isfinite(relevant):
        remedy = "Use the lowest value that makes a cell relevant, such as 1 or 4."
        raise ParameterError("must be one finite number.", parameter="relevant", found=repr(relevant), remedy=remedy)
    context = ReportContext.from_data(model, train, test, names or {})
    every = [
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
    shown = [section for section in every if section is not None]
    title = display_label(title, 120).strip() if title else ""
    if not title:
        n, m = context.record.shape
        title = f"{type(context.model).__name__} of {count(n, 'row')} and {count(m, 'column')}"
    subtitle = [f"{count(n_components(context.model), 'component')}.", context.model.status_.message]
    subtitle += [section.headline for section in shown if section.headline]

    def errors(block: Table) -> list[dict[str, float]]:
        lines = (zip(block.heads, row, strict=True) for row in block.rows)
        return [{head: value.error for head, value in line if isinstance(value, Measured)} for line in lines]

    scores = tuple(
        {
            "caption": block.caption,
            "lines": [dict(zip(block.heads, row, strict=True)) for row in block.rows],
            "standard_errors": errors(block),
        }
        for section in shown
        for block in section.blocks
        if section.name == "quality" and isinstance(block, Table)
    )
    return Report(title, render_report(title, " ".join(subtitle), shown), scores)

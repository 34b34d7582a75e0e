"""How well each number of components does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen.errors import ParameterError
from halfseen.plots.axes import BLUE, GREY, ORANGE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Metrics of which less is better.
_LOSSES = ("divergence", "rmse", "mae")


def rank_curve(search: Any, *, ax: Axes | None = None) -> Axes:
    """The mean score on held-out cells by the number of components, with its standard error; the one chosen is marked.

    The scores of the folds are thin lines behind. The more, the better.

    Parameters
    ----------
    search : a fitted `halfseen.RankSearch`.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    if not hasattr(search, "ranks") and not hasattr(search, "results_"):
        raise ParameterError(
            f"search must be a fitted RankSearch. Found a {type(search).__name__}. Fit RankSearch(model, ranks=[...])."
        )
    check_is_fitted(search, "results_")
    found = search.results_
    ranks, mean = np.asarray(found["n_components"]), np.asarray(found["mean"])
    ax = new_axes("the attribute results_") if ax is None else ax
    folds = np.asarray(found["scores"])
    for scores in folds.T:
        ax.plot(ranks, scores, color=GREY, linewidth=0.8, zorder=1)
    ax.errorbar(ranks, mean, found["standard_error"], color=BLUE, marker="o", capsize=3, label="mean, standard error")
    chosen = int(np.flatnonzero(ranks == search.best_n_components_)[0])
    rule = {"best": "the best"}.get(search.rule, "by one standard error")
    ax.plot(ranks[chosen], mean[chosen], "s", color=ORANGE, markersize=10, fillstyle="none", markeredgewidth=2,
            zorder=4, label=f"chosen: {ranks[chosen]}, {rule}")  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(ranks, [str(rank) for rank in ranks])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="number of components", ylabel=f"{_named(search)} of held-out cells")
    ax.legend()
    return ax


def _named(search: Any) -> str:
    """The metric; losses are drawn as the search compares them, with a minus."""
    metric = getattr(search, "metric_", search.metric)
    return f"minus {metric}" if metric in _LOSSES else str(getattr(metric, "__name__", metric))

"""Plots of fits: the objective by iteration, the strongest columns of components, scores by number of components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.plots.axes import BLUE, GREY, ORANGE, label_ticks, new_axes, wrong_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Traces beside the objective, and their labels on the second axis.
_SECOND_AXIS = {"held_out": "loss on held-out cells", "violated": "violated comparisons"}
#: Up to this many iterations, each has a marker.
_MAX_MARKERS = 30
#: Inches per bar and its label.
_BAR_HEIGHT = 0.22
#: Metrics of which less is better.
_LOSSES = ("divergence", "rmse", "mae")


def best_model(model: Any) -> Any:
    """The best model of a search; any other model itself."""
    return getattr(model, "best_estimator_", model)


def has_factors(model: Any) -> bool:
    """Whether this is a fitted model of the library."""
    return hasattr(model, "trace_") and hasattr(model, "H_")


def describe_unfit(model: Any) -> dict[str, str]:
    """Fields `found` and `remedy` of the error about something that is no fitted model with factors."""
    try:
        check_is_fitted(model)
        is_fitted = True
    except (NotFittedError, TypeError):  # only estimators can be fitted
        is_fitted = not hasattr(model, "fit")
    if not is_fitted:
        return {"found": f"a {type(model).__name__} that is not fitted", "remedy": "Fit a model, or load one."}
    remedy = "Fit it with `refit=True`." if hasattr(model, "refit") else "Fit a model, or load one."
    return {"found": f"a {type(model).__name__} without any", "remedy": remedy}


def _check_model(model: Any) -> Any:
    """Return a fitted model with factors, or the best one of a search."""
    model = best_model(model)
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if not has_factors(model):
        raise ParameterError("must be a fitted model with factors.", **describe_unfit(model), parameter="model")
    return model


def trace(model: BaseEstimator, *, by: str = "iteration", ax: Axes | None = None) -> Axes:
    """Objective after every iteration.

    The loss on held-out cells, if any, has its own axis on the right. For sampled couplings, the log-likelihood and
    the number of violated comparisons of every sweep are drawn, and discarded sweeps are shaded.

    Parameters
    ----------
    model : estimator
        Fitted model, or a fitted search, whose best model is drawn.
    by : {"iteration", "seconds"}, default="iteration"
        Quantity on the x axis. Seconds count from the start.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    model = _check_model(model)
    validation.check_parameters({"by": by}, {"by": validation.one_of("iteration", "seconds")})
    ax = new_axes("the attribute trace_") if ax is None else ax
    objective = model.trace_["objective"]
    places = model.trace_["seconds"] if by == "seconds" else np.arange(1, objective.size + 1)

    def line(ax: Any, values: Array, color: str, label: str, **style: Any) -> None:
        marker = "o" if values.size <= _MAX_MARKERS else ""
        ax.plot(places, values, color=color, marker=marker, markersize=3, label=label, **style)
        ax.set_ylabel(label[0].lower() + label[1:])

    line(ax, objective, BLUE, model.objective_name)
    for name, label in _SECOND_AXIS.items():
        if len(model.trace_.get(name, ())):
            second = ax.twinx()
            line(second, model.trace_[name], ORANGE, label, linestyle="--", linewidth=0.8)
            ax.set_zorder(second.get_zorder() + 1)  # the objective is drawn over it
            ax.patch.set_visible(False)
            second.yaxis.label.set_color(ORANGE)
            second.locator_params(axis="y", integer=name == "violated")
            if not np.any(model.trace_[name]):
                second.set_ylim(0, 1)  # else the axis would have negative numbers
    n_discarded = discarded_sweeps(model)
    if n_discarded:
        ax.axvspan(0, places[n_discarded - 1], color=GREY, alpha=0.5, label="discarded")
        ax.text(0.0, 1.01, "discarded", transform=ax.get_xaxis_transform())
    step = "sweep" if getattr(model, "method", None) == "gibbs" else "iteration"
    ax.set_xlabel(step if by == "iteration" else "seconds")
    ax.locator_params(axis="x", integer=by == "iteration")
    if objective.size == 0:
        ax.text(0.5, 0.5, "There was nothing to iterate.", ha="center", transform=ax.transAxes)
    return ax


def discarded_sweeps(model: Any) -> int:
    """Number of burn-in sweeps of a sampler; 0 for other models."""
    is_sampled = getattr(model, "method", None) == "gibbs"
    return model.n_burn if is_sampled and model.trace_["objective"].size > model.n_burn else 0


def factors(
    model: BaseEstimator, *, top: int = 10, component: int | None = None, side: str = "columns", ax: Axes | None = None
) -> Axes:
    """Bars of the columns, or rows, in which components are strongest, the strongest on top.

    The strength of a component in a column is what it adds there to the product of an average row. Where factors may
    be negative, it is what it adds for a typical row (root mean square), and bars are ordered by absolute strength.
    Several components are drawn relative to the strongest bar of each.

    Parameters
    ----------
    model : estimator
        Fitted model, or a fitted search, whose best model is drawn.
    top : int, default=10
        Number of bars per component.
    component : int, default=None
        Component to draw, counted from 0. None draws all, one below the other.
    side : {"columns", "rows"}, default="columns"
        Side of the matrix.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    model = _check_model(model)
    validation.check_parameters(
        {"top": top, "side": side}, {"top": validation.whole(1), "side": validation.one_of("columns", "rows")}
    )
    strengths = component_strengths(model, side)
    count = strengths.shape[1]
    if component is not None:
        validation.check_parameters({"component": component}, {"component": validation.whole(0)})
        if component >= count:
            must = f"must be one of the model's, 0 to {count - 1}."
            raise ParameterError(must, found=f"{component}", remedy="Count them from 0.", parameter="component")
    wanted = range(count) if component is None else [component]
    best = {one: strongest(strengths[:, one], top) for one in wanted}
    is_relative = len(best) > 1
    if ax is None:
        height = 1 + _BAR_HEIGHT * sum(len(members) + 1 for members in best.values())
        ax = new_axes("the attributes W_ and H_", figsize=(6.4, height))
    places: list[float] = []
    labels: list[Any] = []
    for one, members in best.items():
        start = places[-1] + 2 if places else 0
        here = start + np.arange(members.size)
        values = strengths[members, one]
        values = values / np.abs(values).max(initial=0.0) if is_relative else values
        ax.barh(here, values, color=[ORANGE if value < 0 else BLUE for value in values], label=f"component {one}")
        if is_relative:
            aside: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "ha": "left", "va": "center"}
            ax.annotate(f"component {one}", (1, start), xycoords=("axes fraction", "data"), **aside)
        places.extend(here.tolist())
        labels.extend(model.model_.labels_at(members, side.removesuffix("s")))
    label_ticks(ax.yaxis, places, labels)
    ax.margins(y=0.01)
    ax.invert_yaxis()
    other = "row" if side == "columns" else "column"
    strength = f"what the component adds for {'a typical' if is_signed(model) else 'an average'} {other}"
    xlabel = "strength, relative to the component's strongest" if is_relative else strength
    ax.set(xlabel=xlabel, ylabel=side.removesuffix("s"))
    return ax


def component_strengths(model: Any, side: str) -> Array:
    """h_ik mean_u(w_uk)  for column i and component k, or  w_uk mean_i(h_ik)  for row u, as (columns or rows, k).

    Where factors may be negative, the root mean square replaces the mean. Where factors and thresholds share a free
    scale, the lowest threshold is the unit.
    """
    near, far = (model.H_, model.W_) if side == "columns" else (model.W_, model.H_)
    k = n_components(model)
    near, far = near[:, :k].astype(np.float64), far[:, :k].astype(np.float64)
    unit = model.thresholds_[0] if has_free_scale(model) else 1.0
    return near * (np.sqrt((far**2).mean(axis=0)) if is_signed(model) else far.mean(axis=0)) / unit


def n_components(model: Any) -> int:
    """Number of components, without biases."""
    has_biases = getattr(model, "row_biases_", None) is not None
    return int(model.H_.shape[1]) - (2 if has_biases else 0)


def is_signed(model: Any) -> bool:
    """Whether factors may be negative."""
    return hasattr(model, "row_biases_") or bool((model.W_ < 0).any() or (model.H_ < 0).any())


def has_free_scale(model: Any) -> bool:
    """Whether the factors and the thresholds between levels share a free scale."""
    record = model.model_
    return bool(record.encoder.has_levels and record.likelihood.x_is_positive)


def strongest(strengths: Array, top: int) -> Array:
    """Positions of the `top` largest absolute strengths, largest first, without zeros."""
    best = np.argsort(-np.abs(strengths), kind="stable")[:top]
    return best[strengths[best] != 0]


def rank_curve(search: BaseEstimator, *, ax: Axes | None = None) -> Axes:
    """Mean score on held-out cells by number of components, with its standard error; the chosen one is marked.

    The scores of the folds are thin lines behind. Higher is better.

    Parameters
    ----------
    search : RankSearch
        Fitted search.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    if not hasattr(search, "ranks") and "n_components" not in getattr(search, "results_", ()):
        must, remedy = "must be a fitted RankSearch.", "Fit `RankSearch(model, ranks=[...])`."
        raise wrong_type("search", search, must, remedy)
    check_is_fitted(search, "results_")
    results = search.results_
    ranks, mean = np.asarray(results["n_components"]), np.asarray(results["mean"])
    ax = new_axes("the attribute results_") if ax is None else ax
    for scores in np.asarray(results["scores"]).T:
        ax.plot(ranks, scores, color=GREY, linewidth=0.8, zorder=1)
    ax.errorbar(ranks, mean, results["standard_error"], color=BLUE, marker="o", capsize=3, label="mean, standard error")
    chosen = int(np.flatnonzero(ranks == search.best_n_components_)[0])
    rule = {"best": "the best"}.get(search.rule, "by one standard error")
    ax.plot(ranks[chosen], mean[chosen], "s", color=ORANGE, markersize=10, fillstyle="none", markeredgewidth=2,
            zorder=4, label=f"chosen: {ranks[chosen]}, {rule}")  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(ranks, [str(rank) for rank in ranks])
    ax.set_xticks([], minor=True)
    # losses are drawn as the search compares them, with a minus
    metric = getattr(search, "metric_", search.metric)
    name = f"minus {metric}" if metric in _LOSSES else getattr(metric, "__name__", metric)
    ax.set(xlabel="number of components", ylabel=f"{name} of held-out cells")
    ax.legend()
    return ax

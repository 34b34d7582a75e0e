"""The parts that a model found: in which columns, or rows, each component is strongest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.plots.axes import BLUE, ORANGE, name_ticks, new_axes
from halfseen.plots.models import model_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RULES = {"top": checks.whole(1), "side": checks.one_of("columns", "rows")}
#: Inches that a bar and its name take.
_HEIGHT = 0.22


def factors(
    model: Any, *, top: int = 10, component: int | None = None, side: str = "columns", ax: Axes | None = None
) -> Axes:
    """The columns, or rows, in which components are strongest: a bar each, the strongest on top.

    How strong a component is in a column is what it adds there to the product of an average row. Where factors may have
    any sign, it is what it adds for a typical one (root mean square), bars go to both sides, and length decides.
    Several components are drawn relative to the strongest bar of each.

    Parameters
    ----------
    model : any fitted model, or a fitted search, whose best model is drawn.
    top : how many for each component.
    component : which one, counted from 0; None draws all, one below the other.
    side : "columns" or "rows".
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    model = model_of(model)
    checks.check_parameters({"top": top, "side": side}, _RULES)
    strength = strengths(model, side)
    wanted = list(range(strength.shape[1])) if component is None else [_checked(component, strength.shape[1])]
    best = {one: strongest(strength[:, one], top) for one in wanted}
    if ax is None:
        ax = new_axes("the attributes W_ and H_", figsize=(6.4, 1 + _HEIGHT * sum(len(b) + 1 for b in best.values())))
    _bars(ax, model, strength, best, side)
    ax.set(xlabel=_measure(model, side, len(best) > 1), ylabel=side.removesuffix("s"))
    return ax


def strengths(model: Any, side: str) -> Array:
    """How strong each component (a column) is in each column or row of the data (a row): its entry times the mean of
    the other side's; times their root mean square, where these may have any sign. Where factors and thresholds share a
    free scale, the lowest threshold is the unit."""
    near, far = (model.H_, model.W_) if side == "columns" else (model.W_, model.H_)
    k = n_components(model)
    near, far = near[:, :k].astype(np.float64), far[:, :k].astype(np.float64)
    unit = model.thresholds_[0] if isinstance(model, OrdinalMixin) else 1.0
    return near * (np.sqrt((far**2).mean(axis=0)) if is_signed(model) else far.mean(axis=0)) / unit


def n_components(model: Any) -> int:
    """How many components there are, biases not counted."""
    has_biases = getattr(model, "row_biases_", None) is not None
    return int(model.H_.shape[1]) - (2 if has_biases else 0)


def is_signed(model: Any) -> bool:
    """Whether factors have any sign."""
    return hasattr(model, "row_biases_") or bool((model.W_ < 0).any() or (model.H_ < 0).any())


def strongest(strength: Array, top: int) -> Array:
    """The places of the strongest, best first; those without any are left out."""
    best = np.argsort(-np.abs(strength), kind="stable")[:top]
    return best[strength[best] != 0]


def _checked(component: int, count: int) -> int:
    checks.check_parameters({"component": component}, {"component": checks.whole(0)})
    if component >= count:
        raise ParameterError(
            f"component must be one of the model's, 0 to {count - 1}. Found {component}. Count them from 0."
        )
    return component


def _bars(ax: Any, model: Any, strength: Array, best: dict[int, Array], side: str) -> None:
    places: list[float] = []
    names: list[Any] = []
    for component, members in best.items():
        start = places[-1] + 2 if places else 0
        here = start + np.arange(members.size)
        values = strength[members, component]
        values = values / np.abs(values).max(initial=0.0) if len(best) > 1 else values
        colours = [ORANGE if value < 0 else BLUE for value in values]
        ax.barh(here, values, color=colours, label=f"component {component}")
        if len(best) > 1:
            aside = {"xytext": (3, 0), "textcoords": "offset points", "ha": "left", "va": "center"}
            ax.annotate(f"component {component}", (1, start), xycoords=("axes fraction", "data"), **aside)
        places.extend(here.tolist())
        names.extend(labels_at(model, members, side.removesuffix("s")))
    name_ticks(ax.yaxis, places, names)
    ax.margins(y=0.01)
    ax.invert_yaxis()


def _measure(model: Any, side: str, is_relative: bool) -> str:
    if is_relative:
        return "strength, relative to the component's strongest"
    other = "row" if side == "columns" else "column"
    return f"what the component adds for {'a typical' if is_signed(model) else 'an average'} {other}"

"""How a fit went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.plots.axes import BLUE, GREY, ORANGE, new_axes
from halfseen.plots.models import model_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What a trace may have beside the objective, and how the axis on the right calls it.
_BESIDE = {"held_out": "loss on held-out cells", "violated": "violated comparisons"}
#: Up to so many iterations, each has a point of its own.
_POINTS = 30


def trace(model: Any, *, by: str = "iteration", ax: Axes | None = None) -> Axes:
    """The objective after every iteration.

    Beside it, on an axis of its own, the loss on held-out cells if there were any. Of a sampled coupling, every sweep's
    log-likelihood and number of violated comparisons; the sweeps that were discarded are shaded.

    Parameters
    ----------
    model : any fitted model, or a fitted search, whose best model is drawn.
    by : "iteration", or "seconds" from the start.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    model = model_of(model)
    checks.check_parameters({"by": by}, {"by": checks.one_of("iteration", "seconds")})
    ax = new_axes("the attribute trace_") if ax is None else ax
    objective = model.trace_["objective"]
    places = model.trace_["seconds"] if by == "seconds" else np.arange(1, objective.size + 1)
    _line(ax, places, objective, BLUE, model.objective_name)
    for name, words in _BESIDE.items():
        if len(model.trace_.get(name, ())):
            beside = ax.twinx()
            _line(beside, places, model.trace_[name], ORANGE, words, linestyle="--", linewidth=0.8)
            ax.set_zorder(beside.get_zorder() + 1)  # the objective is drawn over it
            ax.patch.set_visible(False)
            beside.yaxis.label.set_color(ORANGE)
            beside.locator_params(axis="y", integer=name == "violated")
            if not np.any(model.trace_[name]):
                beside.set_ylim(0, 1)  # around 0 there would be numbers below it
    burned = discarded(model)
    if burned:
        ax.axvspan(0, places[burned - 1], color=GREY, alpha=0.5, label="discarded")
        ax.text(0.0, 1.01, "discarded", transform=ax.get_xaxis_transform())
    step = "sweep" if getattr(model, "method", None) == "gibbs" else "iteration"
    ax.set_xlabel(step if by == "iteration" else "seconds")
    ax.locator_params(axis="x", integer=by == "iteration")
    if objective.size == 0:
        ax.text(0.5, 0.5, "There was nothing to iterate.", ha="center", transform=ax.transAxes)
    return ax


def discarded(model: Any) -> int:
    """How many of the first sweeps a sampler discarded; of others, none."""
    is_sampled = getattr(model, "method", None) == "gibbs"
    return model.n_burn if is_sampled and model.trace_["objective"].size > model.n_burn else 0


def _line(ax: Any, places: Array, values: Array, colour: str, words: str, **style: Any) -> None:
    marker = "o" if values.size <= _POINTS else ""
    ax.plot(places, values, color=colour, marker=marker, markersize=3, label=words, **style)
    ax.set_ylabel(words[0].lower() + words[1:])

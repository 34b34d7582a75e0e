"""Plots of data and fitted models: functions that draw on a matplotlib Axes and return it."""

from halfseen.plots.data_plots import completion, holes, values
from halfseen.plots.model_plots import factors, rank_curve, trace
from halfseen.plots.ordinal_plots import level_histograms, posterior_predictive, thresholds
from halfseen.plots.uncoupled_plots import coupling, disclosure

__all__ = [
    "completion",
    "coupling",
    "disclosure",
    "factors",
    "holes",
    "level_histograms",
    "posterior_predictive",
    "rank_curve",
    "thresholds",
    "trace",
    "values",
]

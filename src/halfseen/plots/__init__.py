"""Pictures of data and of fitted models: functions that draw on an Axes and return it."""

from halfseen.plots.cuts import thresholds
from halfseen.plots.filling import completion
from halfseen.plots.fits import trace
from halfseen.plots.levels import level_histograms, posterior_predictive
from halfseen.plots.parts import factors
from halfseen.plots.ranks import rank_curve
from halfseen.plots.seeing import holes, values
from halfseen.plots.uncoupled import coupling, disclosure

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

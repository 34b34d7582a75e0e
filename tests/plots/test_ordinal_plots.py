"""Plots of levels: bars and points are the counts of the check, intervals lie between thresholds."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import CompoundPoisson, OrdinalMF, OrdNMF, RoundMF, WeightedNMF, plots
from halfseen.errors import ParameterError
from halfseen.metrics import predictive_check
from tests.estimators.models import counts, levels_matrix, long_frame, seen_matrix
from tests.laws.cases import levels

ASK = {"random_state": 0, "max_iter": 30, "tol": 0}


def heights(ax):
    return [bar.get_height() for bar in ax.patches]


def points(ax):
    """The middles of the error bars of each model, and their ends."""
    models = []
    for container in ax.containers[1:]:
        line, _, (arms,) = container
        models.append((line.get_ydata(), np.array([arm[:, 1] for arm in arms.get_segments()])))
    return models


def test_bars_are_the_data_and_points_the_draws(ax):
    Y = levels_matrix()
    model = OrdNMF(3, **ASK).fit(Y)
    assert plots.posterior_predictive(model, Y, n=5, level=0.8, ax=ax) is ax
    check = predictive_check(model, Y, n=5, level=0.8)
    assert_array_equal(heights(ax), np.bincount(Y.reshape(-1)))
    ((middles, ends),) = points(ax)
    assert_allclose(middles, check.mean)
    assert_allclose(ends, np.stack([np.minimum(check.low, check.mean), np.maximum(check.high, check.mean)], axis=1))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2", "3", "4", "5"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("level", "cells")
    share = np.count_nonzero(Y) / Y.size
    assert ax.get_legend().get_texts()[0].get_text() == f"data, {share:.2%} above 0"


def test_small_counts_beside_large_ones_are_on_a_logarithmic_scale():
    Y = levels_matrix(60, 50, share=0.02, highest=3)
    model = OrdNMF(1, **ASK).fit(Y)
    assert np.bincount(Y.reshape(-1)).max() > 50 * np.bincount(Y.reshape(-1)).min()
    for log, scale in ((None, "log"), (True, "log"), (False, "linear")):
        assert plots.posterior_predictive(model, Y, n=1, log=log, ax=Figure().add_subplot()).get_yscale() == scale
    even = levels_matrix(share=0.9)
    model = OrdNMF(1, **ASK).fit(even)
    assert plots.posterior_predictive(model, even, n=1, ax=Figure().add_subplot()).get_yscale() == "linear"


def test_models_of_levels_and_of_counts_side_by_side(ax):
    Y = counts()
    edges = [1, 2, 5, 10]
    model = CompoundPoisson(3, **ASK).fit(Y)
    levels = np.digitize(Y, edges)
    checks = {
        "OrdNMF": predictive_check(OrdNMF(3, **ASK).fit(levels), levels, n=3),
        "dcPF": predictive_check(model, Y, n=3, edges=edges),
    }
    plots.level_histograms(checks, ax=ax)
    assert_array_equal(heights(ax), np.bincount(levels.reshape(-1)))
    for (middles, _), check in zip(points(ax), checks.values(), strict=True):
        assert_allclose(middles, check.mean)
    names = [text.get_text().partition(",")[0] for text in ax.get_legend().get_texts()]
    assert names == ["data", "OrdNMF", "dcPF"]
    both = plots.posterior_predictive({"a": model, "b": model}, Y, n=1, edges=edges, ax=Figure().add_subplot())
    assert len(points(both)) == 2


def intervals(ax):
    """Where the bar of each level begins and ends."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    return dict(zip(names, ends, strict=True))


@pytest.mark.parametrize("model", [RoundMF(2, random_state=0), OrdinalMF(2, random_state=0)], ids=["round", "ordinal"])
def test_levels_lie_between_their_thresholds(ax, model):
    model.fit(levels(blanks=False))
    assert plots.thresholds(model, ax=ax) is ax
    drawn = intervals(ax)
    assert list(drawn) == ["0", "1", "2", "3", "4"]
    for level, low, high in zip(("1", "2", "3"), model.thresholds_[:-1], model.thresholds_[1:], strict=True):
        assert_allclose(drawn[level], (low, high))
    assert_allclose((drawn["0"][1], drawn["4"][0]), (model.thresholds_[0], model.thresholds_[-1]))
    assert_allclose(ax.get_xlim(), (drawn["0"][0], drawn["4"][1]))  # unbounded: to the edges of the plot
    middle = np.mean(drawn["2"])
    assert model.levels_[model.likelihood_.levels(np.array([middle]))[0]] == 2


def test_thresholds_of_a_free_scale_are_relative_and_levels_are_named(ax):
    model = OrdNMF(2, random_state=0).fit(levels(blanks=False))
    plots.thresholds(model, ax=ax)
    assert_allclose(intervals(ax)["2"], model.thresholds_[1:3] / model.thresholds_[0])
    assert ax.get_xscale() == "log"
    frame = long_frame().replace({"rating": {1.0: "lo", 2.0: "lo", 3.0: "hi", 4.0: "hi", 5.0: "hi"}})
    named = OrdNMF(1, levels=["lo", "hi"], random_state=0).fit(frame)
    assert list(intervals(plots.thresholds(named, ax=Figure().add_subplot()))) == ["unseen", "lo", "hi"]


def test_whiskers_hold_nine_tenths_of_own_thresholds(ax):
    model = OrdinalMF(1, own_thresholds="rows", random_state=0).fit(levels(40, 20, blanks=False))
    plots.thresholds(model, ax=ax)
    _, _, (arms,) = ax.containers[1]
    ends = np.array([arm[:, 0] for arm in arms.get_segments()])
    inside = (model.own_thresholds_ >= ends[:, 0]) & (model.own_thresholds_ <= ends[:, 1])
    assert_array_equal(inside.sum(axis=0), [36] * 4)
    assert ax.get_legend().get_texts()[0].get_text() == "nine tenths of all rows"


def test_what_cannot_be_drawn():
    Y = levels_matrix()
    few, many = OrdNMF(1, **ASK).fit(np.minimum(Y, 1)), OrdNMF(1, **ASK).fit(Y)
    different = {"few": predictive_check(few, np.minimum(Y, 1), 1), "many": predictive_check(many, Y, 1)}
    calls = [
        ("checks", lambda: plots.level_histograms(different)),
        ("checks", lambda: plots.level_histograms({})),
        ("model", lambda: plots.posterior_predictive({}, Y)),
        ("model", lambda: plots.thresholds(WeightedNMF(1, max_iter=2, tol=0).fit(seen_matrix()))),
    ]
    for parameter, draw in calls:
        with pytest.raises(ParameterError) as caught:
            draw()
        assert caught.value.parameter == parameter

"""Pictures: what is drawn is what was counted."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import CompoundPoisson, OrdNMF, plots
from halfseen.errors import HalfseenError, ParameterError
from halfseen.metrics import PredictiveCheck, predictive_check
from halfseen.plots.axes import shown, told_apart
from tests.estimators.test_ordnmf import levels_matrix
from tests.estimators.test_relatives import counts

mpl.use("Agg")

ASK = {"random_state": 0, "max_iter": 30, "tol": 0}


@pytest.fixture
def ax():
    return Figure().add_subplot()


def heights(ax):
    return [bar.get_height() for bar in ax.patches]


def points(ax):
    """The middles of the error bars of each model, and their ends."""
    found = []
    for container in ax.containers[1:]:
        line, _, (arms,) = container
        found.append((line.get_ydata(), np.array([arm[:, 1] for arm in arms.get_segments()])))
    return found


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


def test_small_numbers_beside_large_ones_are_drawn_as_logarithms():
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


def test_a_figure_is_made_where_none_is_given(tmp_path):
    import matplotlib.pyplot as plt

    Y = levels_matrix()
    drawn = plots.posterior_predictive(OrdNMF(1, levels=None, **ASK).fit(Y), Y, n=1)
    drawn.figure.savefig(tmp_path / "check.png")
    plt.close(drawn.figure)
    assert (tmp_path / "check.png").read_bytes()[:4] == b"\x89PNG"


def test_without_matplotlib_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    Y = levels_matrix()
    with pytest.raises(HalfseenError) as caught:
        plots.posterior_predictive(OrdNMF(1, **ASK).fit(Y), Y, n=1)
    assert str(caught.value) == (
        "Pictures need matplotlib. It is not installed. Install it: pip install matplotlib; the numbers alone "
        "are halfseen.metrics.predictive_check's."
    )


def test_matplotlib_is_not_loaded_before_something_is_drawn():
    code = "import halfseen, sys; halfseen.plots.posterior_predictive; assert 'matplotlib' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_models_of_different_levels_and_none_at_all_are_refused():
    Y = levels_matrix()
    few, many = OrdNMF(1, **ASK).fit(np.minimum(Y, 1)), OrdNMF(1, **ASK).fit(Y)
    checks = {"few": predictive_check(few, np.minimum(Y, 1), 1), "many": predictive_check(many, Y, 1)}
    with pytest.raises(ParameterError, match="All checks must be of the same levels or classes: 2 of them"):
        plots.level_histograms(checks)
    with pytest.raises(ParameterError, match="model must be a fitted model, or several by name"):
        plots.posterior_predictive({}, Y)
    with pytest.raises(ParameterError, match=r"checks must be one check, or several, by name\. Found none"):
        plots.level_histograms({})


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (1234567.0, "1234567"), (np.float64(123456789012), "123456789012"), (-3.0, "-3"), (-0.0, "0"),
        (0.1, "0.1"), (0.1 + 0.2, "0.3"), (1234567.25, "1234567.25"), (1e300, "1e+300"), (float("nan"), "nan"),
        (np.float32(0.1), "0.1"), (np.float32(16777216), "16777216"), (7, "7"), ("1.50", "1.50"),
    ],
)  # fmt: skip
def test_labels_that_are_numbers_keep_their_digits(label, text):
    assert shown(label) == text


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([1.0, 2.5], ["1", "2.5"]),
        ([1234567.0, 1234568.0], ["1234567", "1234568"]),
        ([100.0001, 100.0002], ["100.0001", "100.0002"]),
        ([float(np.float32(0.1)), 0.5], ["0.1", "0.5"]),
        ([0.1 + 0.2, 0.3], ["0.3", "0.3"]),
        ([2.5, 2.5], ["2.5", "2.5"]),
    ],
)
def test_numbers_that_differ_look_different(numbers, texts):
    assert told_apart(numbers) == texts


def test_large_values_that_differ_have_bars_of_different_names(ax):
    plots.values(np.array([[1234567.0, 1234568.0, 1234568.0]]), ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1234567", "1234568"]


def test_levels_that_differ_have_different_names(ax):
    levels = np.array([1000000.5, 1000001.5, 1000002.5])
    zeros = np.zeros(3)
    plots.level_histograms({"a": PredictiveCheck(levels, np.arange(3), zeros, zeros, zeros)}, ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1000000.5", "1000001.5", "1000002.5"]

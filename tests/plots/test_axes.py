"""New figures, labels and ticks."""

import subprocess
import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from halfseen import OrdNMF, RankSearch, Uncoupled, UncoupledNMF, plots
from halfseen.errors import HalfseenError
from halfseen.plots.axes import display_label, format_distinct, label_ticks
from halfseen.plots.ordinal_plots import level_names
from tests.estimators.models import levels_matrix

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def draw_all():
    """Every public plot of small data, to be called without an Axes."""
    Y = levels_matrix()
    model = OrdNMF(1, max_iter=5, tol=0, random_state=0).fit(Y)
    search = RankSearch(model, ranks=[1, 2], n_folds=2, random_state=0, n_jobs=1).fit(Y)
    survey = Uncoupled.from_coupled(np.random.default_rng(0).random((4, 6)), 5, random_state=0)
    sampled = UncoupledNMF(1, n_sweeps=20, n_burn=10, random_state=0).fit(survey)
    yield from ((name, getattr(plots, name), (Y,)) for name in ("holes", "values"))
    yield from ((name, getattr(plots, name), (model,)) for name in ("trace", "factors", "thresholds"))
    yield from ((name, getattr(plots, name), (model, Y)) for name in ("completion", "posterior_predictive"))
    yield "rank_curve", plots.rank_curve, (search,)
    yield "disclosure", plots.disclosure, (sampled,)
    yield "coupling", plots.coupling, (sampled, 0)


def test_without_axes_a_figure_is_made_and_without_matplotlib_an_error_names_the_numbers(monkeypatch):
    calls = list(draw_all())
    assert {name for name, _, _ in calls} == set(plots.__all__) - {"level_histograms"}
    for name, draw, arguments in calls:
        drawn = draw(*arguments)
        drawn.figure.canvas.draw()
        assert drawn.get_xlabel(), name
        plt.close(drawn.figure)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for _, draw, arguments in calls:
        with pytest.raises(HalfseenError, match=r"Pictures need matplotlib\. .* the numbers alone are .*'s\.$"):
            draw(*arguments)


def test_matplotlib_is_not_loaded_before_something_is_drawn():
    code = "import halfseen, sys; halfseen.plots.posterior_predictive; assert 'matplotlib' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([1.0, 2.5], ["1", "2.5"]), ([1234567.0, 1234568.0], ["1234567", "1234568"]),
        ([100.0001, 100.0002], ["100.0001", "100.0002"]), ([float(np.float32(0.1)), 0.5], ["0.1", "0.5"]),
        ([0.1 + 0.2, 0.3], ["0.3", "0.3"]), ([2.5, 2.5], ["2.5", "2.5"]),
    ],
)  # fmt: skip
def test_numbers_keep_their_digits_and_different_ones_have_different_texts(numbers, texts):
    assert format_distinct(numbers) == texts
    for label, text in (
        (1234567.0, "1234567"), (np.float64(123456789012), "123456789012"), (-3.0, "-3"), (-0.0, "0"),
        (0.1, "0.1"), (0.1 + 0.2, "0.3"), (1234567.25, "1234567.25"), (1e300, "1e+300"), (float("nan"), "nan"),
        (np.float32(0.1), "0.1"), (np.float32(16777216), "16777216"), (7, "7"), ("1.50", "1.50"),
    ):  # fmt: skip
        assert display_label(label) == text


def test_large_numbers_have_different_names(ax):
    plots.values(np.array([[1234567.0, 1234568.0, 1234568.0]]), ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1234567", "1234568"]
    assert level_names(np.array([1e6 + 0.5, 1e6 + 1.5, 1e6 + 2.5])) == ["1000000.5", "1000001.5", "1000002.5"]
    survey = Uncoupled.from_coupled(np.array([[1234567.0, 1234569.5, 1234570.0]]), 3, random_state=0)
    model = UncoupledNMF(1, n_sweeps=20, n_burn=10, random_state=0).fit(survey)
    drawn = plots.coupling(model, 0, ax=Figure().add_subplot())
    assert [label.get_text() for label in drawn.get_xticklabels()] == ["1234567", "1234569.5", "1234570"]


@pytest.mark.parametrize("count", [3, 20, 40, 400])
def test_labels_of_a_y_axis_do_not_touch(count):
    """They become smaller first, then fewer."""
    figure = Figure(figsize=(4.3, 3.0))
    ax = figure.add_subplot(ylim=(-0.5, count - 0.5))
    label_ticks(ax.yaxis, np.arange(count), [f"name {number}" for number in range(count)])
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(boxes))
    assert (len(boxes) == count) == (count < 40)
    texts = {round(place): label.get_text() for place, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    assert all(text == f"name {place}" for place, text in texts.items())

"""Figures 4 and 5 of the A1GM paper."""

import numpy as np
import pytest

import halfseen
from halfseen.studies import a1gm_figures, study
from halfseen.studies.a1gm_figures import (
    EXAMPLE,
    METHODS,
    PATTERNS,
    QUICK_SIZES,
    SHARE,
    SIZES,
    TRIALS,
    Trials,
    lines_to_end,
    with_holes,
)
from halfseen.studies.framework import PASS, SHORT
from tests.rank_one import oracle

STUDY = study("a1gm/figure5")


MESSAGES = []


@pytest.fixture(scope="module")
def result():
    return STUDY.run(quick=True, progress=MESSAGES.append)


def block_of(X):
    """The rows and columns of the holes, which must fill the grid where they meet."""
    holes = np.isnan(X)
    rows, columns = np.flatnonzero(holes.any(axis=1)), np.flatnonzero(holes.any(axis=0))
    assert holes[np.ix_(rows, columns)].all()
    return rows, columns


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("size", [100, 333, 1000])
def test_holes_are_a_twentieth_of_the_cells_on_a_grid(name, size):
    X = with_holes(PATTERNS[name][1], size, np.random.default_rng(0))
    rows, columns = block_of(X)
    assert X.shape == (size, size)
    assert rows.size == columns.size
    assert np.isnan(X).mean() == pytest.approx(SHARE, abs=0.003)
    assert SHARE == 0.05  # what the paper says


@pytest.mark.parametrize("size", SIZES[:6])
def test_a_block_of_holes_has_the_nearest_whole_number_of_rows(size):
    rows, columns = block_of(with_holes(PATTERNS["a"][1], size, np.random.default_rng(0)))
    assert rows.size == columns.size
    assert abs(rows.size - size * SHARE**0.5) < 0.5


def test_places_of_the_holes_and_values_of_the_seen_cells():
    for places in block_of(with_holes(PATTERNS["a"][1], 100, np.random.default_rng(0))):
        np.testing.assert_array_equal(places, np.arange(78, 100))
    drawn = [block_of(with_holes(PATTERNS["b"][1], 100, np.random.default_rng(seed))) for seed in range(20)]
    assert len({tuple(rows) for rows, _ in drawn}) == 20
    assert all(tuple(rows) != tuple(columns) for rows, columns in drawn)
    for side in zip(*drawn, strict=True):
        assert np.concatenate(side).mean() == pytest.approx(49.5, abs=5)
    X = with_holes(PATTERNS["b"][1], 400, np.random.default_rng(3))
    seen = X[~np.isnan(X)]
    assert seen.min() > 0
    assert seen.max() <= 1
    np.testing.assert_allclose(np.quantile(seen, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.01)


def test_the_tables(result):
    assert [f"{words}, N = {size}" for words, _ in PATTERNS.values() for size in QUICK_SIZES] == MESSAGES
    assert [table.name for table in result.tables] == ["a", "b"]
    for table, words in zip(result.tables, ("lower right corner", "grid-like"), strict=True):
        assert words in table.title
        assert "about 5 % of the cells" in table.title
        assert table.column("N") == list(QUICK_SIZES)
        assert table.column("holes") == pytest.approx([0.04, 0.0484, 0.050625])  # 2, 22 and 45 lines
    for table in result.tables:
        means = {method: table.column(f"{method} ms mean") for method in METHODS}
        assert all(0 < mean < 10_000 for method in METHODS for mean in means[method])
        assert all(spread >= 0 for method in METHODS for spread in table.column(f"{method} ms S.D."))
        for method in ("A1GM", "exact"):  # medians of ratios: how they are made is tested by invented times
            assert all(ratio > 0 for ratio in table.column(f"times as fast as KL-WNMF {method}"))
        iterations = {int(number) for span in table.column("KL-WNMF iterations") for number in span.split(" to ")}
        assert iterations <= {2, 3, 4}  # as in the paper


@pytest.fixture(scope="module", params=["a", "b"])
def drawn(request, result):
    """The axes of a picture, and the table of the same numbers."""
    figure = pytest.importorskip("matplotlib.figure").Figure()
    (picture,) = (picture for picture in result.pictures if picture.name == request.param)
    picture.draw(figure)
    (axes,) = figure.axes
    (table,) = (table for table in result.tables if table.name == request.param)
    return axes, table


def test_each_method_has_its_means_and_deviations_on_logarithmic_axes(drawn):
    axes, table = drawn
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_title()) == ("log", "log", table.title)
    assert [label.get_text() for label in axes.get_xticklabels()] == [f"{size:,}" for size in QUICK_SIZES]
    assert [bars.get_label() for bars in axes.containers] == list(METHODS)
    for bars in axes.containers:
        line, _, (spread,) = bars
        means = np.array(table.column(f"{bars.get_label()} ms mean")) / 1000
        deviations = np.array(table.column(f"{bars.get_label()} ms S.D.")) / 1000
        np.testing.assert_array_equal(line.get_xdata(), QUICK_SIZES)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), means, rtol=1e-12)
        ends = np.array([segment[:, 1] for segment in spread.get_segments()])
        np.testing.assert_allclose(ends, np.stack([means - deviations, means + deviations], axis=1), rtol=1e-9)


@pytest.mark.parametrize(
    ("pattern", "speedups", "short"), [("a", {10: 9.9, 20: 10.1}, [10]), ("b", {10: 0.9, 20: 1.1}, [10])]
)
def test_the_claims_of_the_text_are_judged_at_every_size(monkeypatch, pattern, speedups, short):
    """(a) an order of magnitude, (b) always faster, and 2 to 4 iterations."""
    monkeypatch.setattr(a1gm_figures, "SIZES", tuple(speedups))

    def trials(drawn, size, n_trials, seed):
        a1gm = 1.0 / speedups[size] if drawn is PATTERNS[pattern][1] else 1.0 / 99
        return Trials({"A1GM": [a1gm] * 2, "exact": [9.0] * 2, "KL-WNMF": [1.0] * 2}, [2, 5 if pattern == "b" else 4])

    monkeypatch.setattr(a1gm_figures, "run_trials", trials)
    goals = [goal for goal in STUDY.run().goals if goal.words.startswith(f"({pattern})")]
    assert [size for size, goal in zip(speedups, goals, strict=False) if goal.state == SHORT] == short
    assert [f"N = {size}" in goal.words for size, goal in zip(speedups, goals, strict=False)] == [True, True]
    assert (len(goals), goals[-1].state) == (3, PASS if pattern == "a" else SHORT)
    assert SIZES[0] == 10  # the authors' smallest


def test_a_ratio_is_the_median_over_trials_and_its_range_is_told(monkeypatch):
    """The ratio of the means would be 3 (A1GM), the median of the ratios is 20."""
    seconds = {"A1GM": [1.0, 1.0, 10.0], "exact": [2.0, 2.0, 2.0], "KL-WNMF": [22.0, 20.0, 1.0]}
    trials = Trials(seconds, [2, 3, 3])
    assert trials.speedups("A1GM") == [22.0, 20.0, 0.1]
    assert trials.speedup("A1GM") == 20.0
    assert trials.speedup("exact", "A1GM") == 0.5
    monkeypatch.setattr(a1gm_figures, "SIZES", (10,))
    monkeypatch.setattr(a1gm_figures, "TRIALS", 3)
    monkeypatch.setattr(a1gm_figures, "run_trials", lambda *_: trials)
    result = STUDY.run()
    assert [goal.words.partition(": ")[2] for goal in result.goals[::2]] == [
        "20.0 times as fast (0.1 to 22.0 in 3 trials)"
    ] * 2
    assert result.tables[0].column("times as fast as KL-WNMF A1GM") == [20.0]
    assert TRIALS >= 10


def test_the_summary_says_at_how_many_sizes_each_method_is_faster(monkeypatch):
    """Exact is slower than KL-WNMF at N = 10, faster than A1GM at N = 50; in (b) A1GM is slower at N = 10, too."""
    invented = {10: (0.5, 2.0), 20: (0.1, 0.2), 50: (0.3, 0.2)}

    def trials(pattern, size, n_trials, seed):
        a1gm, exact = invented[size]
        a1gm = 1.5 if pattern is PATTERNS["b"][1] and size == 10 else a1gm
        return Trials({"A1GM": [a1gm] * 2, "exact": [exact] * 2, "KL-WNMF": [1.0] * 2}, [2, 3])

    monkeypatch.setattr(a1gm_figures, "SIZES", tuple(invented))
    monkeypatch.setattr(a1gm_figures, "run_trials", trials)
    result = STUDY.run()
    assert (
        "A1GM is faster than KL-WNMF at 3 and 2 of 3 sizes, exact at 2 and 2; exact is faster than A1GM at 1 and 1."
    ) in result.summary
    assert not any("exact" in goal.words for goal in result.goals)  # the paper has no exact solution


def test_the_example_of_figure_4():
    """Its printed factors, and each step as the figure shows it."""
    result = study("a1gm/figure4").run()
    assert result.verdict == "pass"
    assert len(result.goals) == 4  # the printed factors, and nothing of ours
    factors, steps = result.tables
    assert factors.column("line") == [1, 5, 3, 1, 5, 3, 4, 2, 4, 2]
    assert [float(f"{ours:.2g}") for ours in factors.column("ours")] == list(map(float, factors.column("paper")))
    assert [row[0] for row in steps.rows[::5]] == ["Input", "Step 1", "Step 2", "Step 3"]
    assert [row[1:] for row in steps.rows[10:15]] == [
        ["2", "4", "3", "1", "3"], ["1", "3", "2", "2", "4"], ["3", "3", "1", "1", "9"],
        ["5", "1", "3", None, None], ["3", "1", "1", None, None],
    ]  # fmt: skip
    fitted = np.outer(*oracle.a1gm(np.array(EXAMPLE)))
    assert [row[1:] for row in steps.rows[15:]] == [[f"{value:.2g}" for value in row] for row in fitted]
    direct = halfseen.rank_one(np.array(EXAMPLE), method="a1gm")
    np.testing.assert_allclose(np.outer(direct.w, direct.h), fitted, rtol=1e-12)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result.pictures[0].draw(figure)
    assert [axes.get_title() for axes in figure.axes] == ["Input", "Step 1", "Step 2", "Step 3"]
    assert [len(axes.patches) for axes in figure.axes] == [2, 4, 4, 0]


@pytest.mark.parametrize(
    ("places", "order"), [([], [0, 1, 2, 3, 4]), ([1, 3], [0, 4, 2, 3, 1]), ([0, 1], [3, 4, 2, 0, 1])]
)
def test_lines_swap_places_as_in_algorithm_1(places, order):
    assert lines_to_end(np.isin(np.arange(5), places)).tolist() == order

"""Figures 1 and 2 of the paper on uncoupled data."""

import numpy as np
import pytest

from halfseen.datasets import unmf_synthetic
from halfseen.studies import study
from halfseen.studies.unmf_figures import BEST_START, CURVES, LINES, FoldEstimates
from halfseen.studies.unmf_methods import GIBBS, HALF, METHODS, NAMES, ORACLE, QUICK, RANDOM, ROW_MEAN, ZERO
from tests.studies.data import needs_data_of

LAST = QUICK.grid[-1]


def panels_of(picture):
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    picture.draw(figure)
    return figure, figure.axes


@pytest.fixture(scope="module")
def without_data(tmp_path_factory):
    """A quick run with nothing in the data folder, and its messages."""
    messages = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALFSEEN_DATA", str(tmp_path_factory.mktemp("empty")))
        return study("unmf/figure1").run(quick=True, progress=messages.append), messages


def table_of(result, name):
    (table,) = (table for table in result.tables if table.name == name)
    return table


def test_the_tables_of_figure_1(without_data):
    table = table_of(without_data[0], "a")
    assert table.column("method") == list(NAMES)
    assert len(NAMES) == len(set(NAMES)) == 14
    names = [column.full_name for column in table.columns[1:]]
    assert names == [f"{n_per} per row {part}" for n_per in QUICK.grid for part in ("mean", "S.D.", "median")]
    assert all(std > 0 for std in table.column(f"{LAST} per row S.D."))
    for row in table.rows[len(METHODS) :]:
        assert row[1:4] == row[4:7]
    assert all(row[1] != row[4] for row in table.rows[: len(METHODS)])
    # The row mean and the random guesses by hand.
    X = unmf_synthetic(0)
    order = np.random.default_rng(0).permutation(100)
    errors, guessed = [], []
    for fold in range(QUICK.folds):
        places = np.unravel_index(np.sort(order[20 * fold : 20 * fold + 20]), X.shape)
        train = X.copy()
        train[places] = np.nan
        errors.append(np.mean(np.abs(X[places] - np.nanmean(train, axis=1)[places[0]])))
        guessed.append(np.mean(np.abs(X[places] - np.random.default_rng(fold).uniform(0.5, 6.5, 20))))
    rows = {row[0]: row[1:4] for row in table_of(without_data[0], "a").rows}
    for name, runs in ((ROW_MEAN, errors), (RANDOM, guessed)):
        np.testing.assert_allclose(rows[name], [np.mean(runs), np.std(runs, ddof=1), np.median(runs)], rtol=1e-12)
    ratios, errors = table_of(without_data[0], "ratios"), table_of(without_data[0], "a")
    rows = {row[0]: row[1:] for row in errors.rows}
    assert ratios.column("method") == [ZERO.name, HALF.name]
    for row in ratios.rows:
        assert row[3:7] == [rows[row[1]][place] for place in (0, 3, 2, 5)]
        np.testing.assert_allclose(row[7:9], np.array(row[3:5]) / rows[ORACLE][0])
    shares = table_of(without_data[0], "shares")
    assert shares.column("method") == [ZERO.name, HALF.name]
    assert shares.column(ORACLE) == [rows[ORACLE][0]] * 2
    table = table_of(without_data[0], "calibration")
    assert table.column("comparisons per row") == list(QUICK.grid)
    for kind in ("coverage", "risk", "hits"):
        assert all(0 < share <= 1 for share in table.column(f"{kind} mean"))
    assert table.column("hits mean")[1] > table.column("hits mean")[0]  # more comparisons give more away
    result, messages = without_data
    assert [table.name for table in result.tables] == ["a", "ratios", "shares", "calibration"]
    assert not result.goals
    assert result.absent == ["MovieLens genres", "SUSHI groups"]
    notes = " ".join(table_of(result, "ratios").footnotes)
    assert "MovieLens 100K" in notes
    assert "https://www.kamishima.net/sushi/" in notes
    assert messages == ["SYNTH, draw 0, fold 1", "SYNTH, draw 0, fold 2"]


@needs_data_of("unmf/figure1")
def test_with_all_data_there_are_three_panels():
    result = study("unmf/figure1").run(quick=True)
    assert [table.name for table in result.tables] == ["a", "b", "c", "ratios", "shares", "calibration"]
    _, panels = panels_of(result.pictures[0])
    assert [axes.get_title() for axes in panels] == [
        "(a) SYNTH", "(b) MovieLens genres (a part)", "(c) SUSHI groups (a part)",
    ]  # fmt: skip
    assert "MovieLens genres (a part), 28 comparisons per row" in result.summary
    assert table_of(result, "b").title.startswith("(b) MovieLens genres (a part), 60 x 18")
    errors = {row[0]: row[-3] for row in table_of(result, "c").rows}
    assert errors[GIBBS.name] < errors[HALF.name] < errors[ZERO.name]


@pytest.fixture(scope="module", params=[0, 1], ids=["whole", "near"])
def panel(request, without_data):
    figure, (axes,) = panels_of(without_data[0].pictures[request.param])
    return figure, axes, request.param == 1


def test_the_pictures_of_figure_1(panel, without_data):
    """Means with bars of one standard deviation; near the row mean, medians."""
    figure, axes, near = panel
    rows = {row[0]: np.reshape(row[1:], (-1, 3)).T for row in table_of(without_data[0], "a").rows}
    assert [bars.get_label() for bars in axes.containers] == list(CURVES) == [method.name for method in METHODS]
    for bars in axes.containers:
        line, _, spreads = bars
        means, deviations, medians = rows[bars.get_label()]
        np.testing.assert_array_equal(line.get_xdata(), QUICK.grid)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), medians if near else means, rtol=1e-12)
        assert len(spreads) == (0 if near else 1)
        for spread in spreads:
            ends = np.array([segment[:, 1] for segment in spread.get_segments()])
            np.testing.assert_allclose(ends, np.stack([means - deviations, means + deviations], axis=1), rtol=1e-9)
    lines = {line.get_label(): line.get_ydata() for line in axes.lines if line.get_label() in LINES}
    assert set(lines) == set(NAMES[len(METHODS) :])
    for name, heights in lines.items():
        np.testing.assert_allclose(heights, rows[name][2 if near else 0, 0])
    assert axes.get_yscale() == ("linear" if near else "log")
    assert len({style["marker"] for style in CURVES.values()}) == len(CURVES)
    assert {text.get_text() for text in figure.legends[0].get_texts()} == set(NAMES)
    low, high = axes.get_ylim()
    assert low < min(values[2 if near else 0].min() for values in rows.values())
    assert high > rows[ROW_MEAN][0, 0]
    if near:
        assert high < rows[RANDOM][0, 0]


@pytest.fixture(scope="module")
def figure2():
    return study("unmf/figure2").run(quick=True)


def test_figure_2(figure2):
    """The picture shows one of the folds; with two of them, the one that is farther from the true matrix."""
    figure, axes = panels_of(figure2.pictures[0])
    maps = [one for one in axes if one.images]
    assert [one.get_title() for one in maps] == [
        "(a) true matrix", f"(b) {HALF.name}", f"(c) {GIBBS.name}",
    ]  # fmt: skip
    drawn = [np.asarray(one.images[0].get_array()) for one in maps]
    np.testing.assert_array_equal(drawn[0], unmf_synthetic(0))
    assert len({one.images[0].get_clim() for one in maps}) == 1  # one scale for all
    (table,) = figure2.tables
    assert table.column("estimate") == [ZERO.name, HALF.name, GIBBS.name, BEST_START, ORACLE, ROW_MEAN]
    for _, train, test, everywhere, *_ in table.rows:  # the median of two is their mean
        assert everywhere == pytest.approx(0.8 * train + 0.2 * test)
    median = table.column("median MAE all cells")[1]
    assert np.abs(drawn[1] - drawn[0]).mean() >= median
    assert not figure2.goals
    assert len(figure.legends) == 1
    order = np.random.default_rng(0).permutation(100)
    folds = [np.sort(order[start : start + 20]).tolist() for start in (0, 20)]
    for one in maps[1:]:
        (dots,) = one.lines
        assert sorted(10 * np.array(dots.get_ydata()) + np.array(dots.get_xdata())) in folds
    assert not maps[0].lines


def test_recovery_by_hand():
    """Blocks are rows and columns 1 to 4 and 6 to 10: rows 2 and 7 lose theirs; row 5 has none."""
    truth = np.full((10, 10), 2.0)
    truth[:4, :4], truth[5:, 5:] = 4.0, 5.0
    estimate = truth.copy()
    estimate[1] = 2.0
    estimate[6, :5] = 9.0
    test_cells = (np.array([0, 1, 6]), np.array([0, 0, 9]))
    ours = FoldEstimates(truth, test_cells, {"x": estimate}).recovery("x")
    assert ours.rows == 7
    assert ours.largest == 9.0
    assert ours.everywhere == pytest.approx((4 * 2 + 5 * 7) / 100)
    assert ours.test == pytest.approx(2 / 3)
    assert ours.train == pytest.approx((3 * 2 + 5 * 7) / 97)

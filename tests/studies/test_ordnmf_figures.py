"""Figures 3 and 4 of the OrdNMF paper."""

import numpy as np
import pytest
from scipy import stats

from halfseen.io import split_cells
from halfseen.studies import ordnmf_figures, study
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies.framework import PASS, SHORT, RunSettings, no_progress
from halfseen.studies.ordnmf_figures import TRUTH, LevelHistogram, claims, distance
from tests.studies.ordinal_data import write_movielens_20m, write_taste_profile

STUDY = study("ordnmf/figure4")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    write_movielens_20m(path)
    write_taste_profile(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALFSEEN_DATA", str(path))
        yield STUDY.run(quick=True, seed=2)


def test_histograms_of_data_and_of_draws(result):
    plays, films = result.tables
    assert [column.full_name for column in plays.columns][2:] == ["cells truth", "cells OrdNMF", "cells dcPF"]
    assert [column.full_name for column in films.columns][2:] == ["cells truth", "cells OrdNMF"]
    assert [picture.name for picture in result.pictures] == ["plays", "films"]
    for table, dataset, edges in (
        (plays, ordnmf.PAPER_PLAYS[1], ordnmf.EDGES),
        (films, ordnmf.PAPER_FILMS[1], range(1, 11)),
    ):
        train, _ = split_cells(dataset.sample().load(2), 0.2, random_state=2)
        counts, _ = np.histogram(train.values, [*edges, np.inf])
        assert table.column("cells truth") == [*counts, train.nnz]
    # That is what the paper shows: its thresholds adapt to any histogram.
    for table in result.tables:
        truth, drawn = (np.array(table.column(f"cells {name}")[:-1], float) for name in ("truth", "OrdNMF"))
        assert drawn.sum() == pytest.approx(truth.sum(), rel=0.1)
        assert distance(drawn, truth) < 0.1


def test_histograms_and_their_distances():
    one = LevelHistogram.from_levels([np.array([1.0, 1, 10]), np.array([2.0])], n_cells=8)
    np.testing.assert_array_equal(one.cells, [1, 0.5, 0, 0, 0, 0, 0, 0, 0, 0.5])
    assert one.above_zero == 0.25
    assert distance(np.array([1, 1]), np.array([3, 3])) == 0
    assert distance(np.array([1, 0]), np.array([0, 5])) == 1
    assert distance(np.array([1, 1]), np.array([1, 3])) == 0.25


def test_bars_are_the_numbers_of_the_table(result):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result.pictures[0].draw(figure)
    (axes,) = figure.axes
    table = result.tables[0]
    for bars, name in zip(axes.containers, ("truth", "OrdNMF", "dcPF"), strict=True):
        assert [bar.get_height() for bar in bars] == table.column(f"cells {name}")[:-1]
        assert bars.get_label().startswith(f"{name} (")
    spots = np.array([[bar.get_x() for bar in bars] for bars in axes.containers])
    assert np.all(np.diff(spots, axis=0) > 0)  # side by side, the truth first


def test_absent_data_are_named_and_the_rest_is_done(tmp_path, monkeypatch):
    write_movielens_20m(tmp_path)
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    result = STUDY.run(quick=True)
    assert [table.name for table in result.tables] == ["films"]
    assert result.summary.endswith(" Left out, as their data are not there: plays.")
    assert "need the file lastfm-hetrec2011/user_artists.dat" in result.tables[0].footnotes[-1]


def test_words_of_section_5_3():
    truth = np.array([400.0, 300, 200, 100, 90, 80, 70, 60, 50, 40])
    heavy = truth * [1, 1, 1, 1, 1, 1, 0.95, 1.0, 0.8, 1.0]

    def states(**cells):
        return [goal.state for goal in claims("", {name: LevelHistogram(one, 0.1) for name, one in cells.items()})]

    assert states(truth=truth, OrdNMF=truth, dcPF=heavy) == [PASS, PASS]
    assert states(truth=truth, OrdNMF=truth, dcPF=truth) == [PASS, SHORT]  # dcPF does not fail
    assert states(truth=truth, OrdNMF=heavy, dcPF=heavy) == [PASS, SHORT]  # OrdNMF fails as well
    assert states(truth=truth, OrdNMF=truth[::-1]) == [SHORT]
    assert TRUTH == "truth"


def test_figure_3_is_of_the_distribution_functions_of_scipy():
    result = study("ordnmf/figure3").compute(RunSettings(quick=True, seed=1), no_progress)
    assert {goal.state for goal in result.goals} == {PASS}
    (table,) = result.tables
    assert table.footnotes[-1].startswith("No model is fitted")
    at = 1 / np.array(table.column("lambda"))
    for shape in (0.5, 1, 2, 5):
        np.testing.assert_allclose(table.column(f"gamma {shape:g}"), stats.gamma(shape).cdf(at), rtol=1e-10)
        np.testing.assert_allclose(table.column(f"inverse-gamma {shape:g}"), stats.invgamma(shape).cdf(at), rtol=1e-10)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result.pictures[1].draw(figure)
    line = figure.axes[0].lines[1]  # shape 1: exp(-lambda)
    np.testing.assert_allclose(line.get_ydata(), np.exp(-line.get_xdata()), rtol=1e-10)


def test_figure_3_falls_short_with_a_wrong_distribution_function(monkeypatch):
    monkeypatch.setattr(ordnmf_figures, "noise_cdf", lambda x, noise, shape: stats.gamma(shape + 0.2).cdf(x))
    result = study("ordnmf/figure3").compute(RunSettings(quick=True), no_progress)
    assert [goal.state for goal in result.goals][:3] == [SHORT] * 3

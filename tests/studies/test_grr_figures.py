"""Figures 2.2 and 4.1 to 4.6 of the thesis on generalized round-rank."""

import numpy as np
import pytest

from halfseen.studies import grr_figures, study
from halfseen.studies.framework import RunSettings, no_progress
from halfseen.studies.grr_figures import FAMILIES, QUICK_SIZE, relative_errors
from halfseen.studies.grr_methods import IDENTITY, LINEAR, ROUND, ROUND_FIXED, SIGMOID
from tests.studies.data import needs_data_of


def axes_of(picture):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    picture.draw(figure)
    (axes,) = figure.axes
    return axes


def test_figure_2_2():
    """Section 2.2.2: the squared error of the best approximation of rank k is n - k."""
    np.testing.assert_allclose(relative_errors(IDENTITY, 10, 0), 1 - np.arange(11) / 10, atol=1e-12)
    result = study("grr/figure2.2").compute(RunSettings(quick=True), no_progress)
    assert {goal.state for goal in result.goals} == {"pass"}
    axes, (table,) = axes_of(result.pictures[0]), result.tables
    assert len(axes.lines) == len(FAMILIES)
    for line, family in zip(axes.lines, FAMILIES, strict=True):
        assert line.get_label() == family.title
        drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
        np.testing.assert_allclose([drawn[k] for k in table.column("k")], table.column(f"{family.title} mean"))
    assert table.column("k")[-1] == QUICK_SIZE


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title)
def test_errors_are_those_of_a_truncated_svd(family):
    Y = family.levels(12, 4).astype(float)
    U, values, V = np.linalg.svd(Y)
    errors = relative_errors(family, 12, 4)
    for k in range(13):
        best = (U[:, :k] * values[:k]) @ V[:k]
        assert errors[k] == pytest.approx(((Y - best) ** 2).sum() / (Y**2).sum(), abs=1e-12)


@pytest.fixture(scope="module", params=["figure4.1", "figure4.2", "figure4.3"])
def recovered(request):
    result = study(f"grr/{request.param}").run(quick=True)
    if request.param != "figure4.2":  # band and triangle, where exact factors are known to exist (section 2.2.1)
        by_thesis, by_newton = result.tables
        assert by_newton.column(f"{ROUND} mean")[-1] == by_thesis.column(f"{ROUND_FIXED} mean")[-1] == "2 of 2"
    return result


def test_figures_4_1_to_4_3(recovered):
    """Section 4.1: "Round works far better than others by converging to zero"."""
    assert [table.name for table in recovered.tables] == ["thesis", "newton"]
    ends = {name: recovered.tables[1].column(f"{name} mean")[-2] for name in (LINEAR, SIGMOID, ROUND)}
    assert ends[ROUND] < ends[LINEAR]
    assert ends[SIGMOID] < ends[LINEAR]
    assert ends[LINEAR] > 0.1
    counted = recovered.tables[1].column(f"{ROUND} mean")[-1]
    assert counted in {"0 of 2", "1 of 2", "2 of 2"}
    assert (ends[ROUND] == 0) == (counted == "2 of 2")
    for picture, table in zip(recovered.pictures, recovered.tables, strict=True):
        axes = axes_of(picture)
        assert axes.get_xscale() == "log"
        assert len(axes.lines) == 5
        for line in axes.lines:
            np.testing.assert_array_equal(line.get_xdata(), table.column("iterations")[:-1])
            np.testing.assert_allclose(line.get_ydata(), table.column(f"{line.get_label()} mean")[:-1])
        for line, band in zip(axes.lines, axes.collections, strict=True):
            mean, width = (np.array(table.column(f"{line.get_label()} {part}")[:-1]) for part in ("mean", "S.D."))
            drawn = band.get_paths()[0].vertices
            for x, top in zip(line.get_xdata(), mean + width, strict=True):
                assert drawn[drawn[:, 0] == x, 1].max() == pytest.approx(top, abs=1e-12)


def test_of_several_steps_the_best_counts_and_one_that_is_too_long_does_not():
    random = grr_figures.Recovery(grr_figures.grr.RANDOM, 1, grr_figures.QUICK._replace(steps=(10.0, 0.03, 0.01)))
    alone = random._replace(config=random.config._replace(steps=(0.01,)))
    both, one = (grr_figures.recover(item)[grr_figures.THESIS, LINEAR] for item in (random, alone))
    assert np.isfinite(both).all()
    assert both == one  # 0.03 is too long for this matrix


SMALLNETFLIX_TRAIN, SMALLNETFLIX_VALIDATE = "smallnetflix_mm.train", "smallnetflix_mm.validate"


def write_smallnetflix(folder):
    """A set of the published form: 150 users by 110 films."""
    rng = np.random.default_rng(0)
    stars = np.clip(np.round(3 + rng.normal(size=(150, 1)) + rng.normal(size=110) + rng.normal(size=(150, 110))), 1, 5)
    seen = rng.random(stars.shape)
    (folder / "smallnetflix").mkdir()
    for name, mask in ((SMALLNETFLIX_TRAIN, seen < 0.4), (SMALLNETFLIX_VALIDATE, seen > 0.9)):
        lines = [f"{u + 1} {i + 1} {stars[u, i]:g}" for u, i in np.argwhere(mask)]
        head = ["%%MatrixMarket matrix coordinate real general", f"150 110 {len(lines)}"]
        (folder / "smallnetflix" / name).write_text("\n".join([*head, *lines, ""]))


@pytest.mark.parametrize(("name", "words"), [("figure4.4", "within 0.5"), ("figure4.5", "RMSE")])
def test_smallnetflix_is_taken_where_it_is(tmp_path, monkeypatch, name, words):
    write_smallnetflix(tmp_path)
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    result = study(f"grr/{name}").run(quick=True)
    (table,) = result.tables
    assert "smallnetflix" in table.title
    assert words in table.title
    assert len(table.footnotes) == 1
    axes = axes_of(result.pictures[0])
    for container, method in zip(axes.containers, (LINEAR, SIGMOID, ROUND), strict=True):
        assert container.get_label() == method
        np.testing.assert_allclose(container.lines[0].get_ydata(), table.column(f"{method} mean"))
        ends = np.array([segment[:, 1] for segment in container.lines[2][0].get_segments()])
        np.testing.assert_allclose(np.ptp(ends, axis=1) / 2, table.column(f"{method} S.D."), atol=1e-12)


@needs_data_of("grr/figure4.4", "movielens-1m")
def test_without_it_movielens_1m_stands_in_and_the_table_says_so():
    one = study("grr/figure4.5")
    if "smallnetflix" not in one.absent():
        pytest.skip("smallnetflix is in the data folder")
    result = one.compute(RunSettings(quick=True), no_progress)
    assert result.substitute == "MovieLens 1M"
    assert [goal.words.split(" (")[0] for goal in result.goals] == list(grr_figures.RMSE.claims)
    (table,) = result.tables
    assert "MovieLens 1M" in table.title
    assert "The thesis has smallnetflix here, which is not in the data folder" in table.footnotes[-1]
    assert all(0.5 < value < 1.6 for value in table.column(f"{SIGMOID} mean"))


@needs_data_of("grr/figure4.4", "movielens-1m")
def test_each_figure_chooses_by_its_own_measure_at_held_out_cells_which_are_fitted_once(monkeypatch):
    first = study("grr/figure4.4").run(quick=True)
    fitted = []
    score_fits = grr_figures.grr.score_fits
    monkeypatch.setattr(
        grr_figures.grr, "score_fits", lambda fits, *rest: fitted.extend(fits) or score_fits(fits, *rest)
    )
    (accuracy,), (errors,) = first.tables, study("grr/figure4.5").run(quick=True).tables
    assert accuracy.column("k") == errors.column("k")
    assert not any(fit.to_select for fit in fitted)
    ((_, held_out),) = [pair for pair in grr_figures._HELD_OUT.items() if pair[0][0].dataset == "movielens-1m"]
    best: dict = {}
    for fit, scores in held_out:
        key = (fit.method.name, fit.method.make.args)
        best[key] = min(best.get(key, (np.inf, None)), (scores.rmse, fit.setting["l2"]))
    for fit in fitted:
        assert fit.setting["l2"] == best[fit.method.name, fit.method.make.args][1]


@needs_data_of("grr/figure4.6")
def test_accuracy_is_a_share():
    (table,) = study("grr/figure4.6").run(quick=True).tables
    assert table.title.startswith("MovieLens 100K (a part): ")
    assert "its own split u1; of the training cells a part, 120 users and 100 films" in table.footnotes[0]
    assert all(0.2 < value < 0.7 for method in (LINEAR, SIGMOID, ROUND) for value in table.column(f"{method} mean"))

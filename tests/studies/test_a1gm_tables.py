"""Table 1 of the A1GM paper."""

import re
from dataclasses import replace

import numpy as np
import pytest

from halfseen.datasets import load_tabular
from halfseen.errors import DataError
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.studies import a1gm_tables as tables
from halfseen.studies import study
from halfseen.studies.a1gm_tables import REASONS, TABLE1, Comparison, compare, differences
from halfseen.studies.kl_wnmf import divergence, kl_wnmf, with_weights
from tests.studies.data import needs_data_of

STUDY = study("a1gm/table1")

#: Tables whose files, or whose KL-WNMF, are known not to be the paper's.
DIFFERENT = {"big mart", "credit approval", "human resources", "life expectancy"}


def optimum(X, sweeps=500):
    """The exact solution in plain NumPy: w_i = r_i / sum of the seen h_j, and likewise h."""
    seen = (~np.isnan(X)).astype(float)
    rows, columns, h = np.nansum(X, axis=1), np.nansum(X, axis=0), np.ones(X.shape[1])
    for _ in range(sweeps):
        w = rows / (seen @ h)
        h = columns / (w @ seen)
    return w, h


def with_some_holes(shape=(12, 7), seed=0):
    random = np.random.default_rng(seed)
    X = random.gamma(2.0, 3.0, shape)
    X[[1, 4, 4], [2, 2, 5]] = np.nan
    return X


@pytest.mark.parametrize(("name", "row"), TABLE1.items())
def test_a_printed_row_agrees_with_itself(name, row):
    """The increase rate times the holes is the size of a grid: a whole number of rows times one of columns."""
    n, m = row.size
    area = round(float(row.rate) * row.holes)
    assert abs(float(row.rate) * row.holes - area) <= 0.5e-5 * row.holes
    assert any(area % columns == 0 and area // columns <= n for columns in range(1, m + 1))
    assert float(row.error) >= 1
    assert 0 < float(row.time) < 1


def test_errors_and_times_are_relative_to_kl_wnmf(monkeypatch):
    X = with_some_holes()
    ours = compare(X, seed=5, at_least=1, until=0.0)
    w, h, n_iter = kl_wnmf(with_weights(X), 5)
    assert (ours.size, ours.holes, ours.rate, ours.n_iter) == ((12, 7), 3, pytest.approx(4 / 3), n_iter)
    assert ours.exact_error == pytest.approx(divergence(X, *optimum(X)) / divergence(X, w, h), rel=1e-9)
    grid = X.copy()
    grid[1, 5] = np.nan  # what A1GM adds: on a grid the optimum has a closed form
    assert ours.a1gm_error == pytest.approx(divergence(X, *optimum(grid)) / divergence(X, w, h), rel=1e-9)
    assert ours.a1gm_error > ours.exact_error
    monkeypatch.setattr(tables, "median_seconds", lambda works, **_: [8.0, 2.0, 1.0][: len(works)])
    ours = compare(with_some_holes(), seed=0)
    assert (ours.a1gm_time, ours.exact_time) == (0.25, 0.125)


SAME = Comparison((2938, 19), 2563, 7.0409676, 5.79834, 1.0, 0.1, 0.1, 2)


@pytest.mark.parametrize(
    ("change", "different"),
    [
        ({}, []),
        ({"a1gm_error": 5.79836}, ["error"]),
        ({"a1gm_error": 5.79824}, ["error"]),
        ({"rate": 7.04098}, ["rate"]),
        ({"size": (2939, 19), "holes": 2562}, ["size", "holes"]),
        ({"exact_error": 0.9, "a1gm_time": 9.0, "n_iter": 9}, []),
    ],
)
def test_digits_are_compared_as_they_are_printed(change, different):
    assert differences(TABLE1["life_expectancy"], replace(SAME, **change)) == different
    no_trailing_zeros = Comparison((506, 14), 120, 5.6, 1.00302, 1.0, 0.1, 0.1, 2)
    assert differences(TABLE1["boston_housing"], no_trailing_zeros) == []


@pytest.fixture
def loaded(monkeypatch):
    """Small tables in place of the real ones; a test may take some away."""
    loaded = {name: observe(with_some_holes(seed=seed)) for seed, name in enumerate(STUDY.needs)}

    def load(name, *, prepared):
        assert prepared
        if not isinstance(loaded[name], Observed):
            raise loaded[name]
        return loaded[name]

    monkeypatch.setattr(tables, "load_tabular", load)
    return loaded


def test_the_paper_s_numbers_stand_beside_ours(loaded):
    (table,) = STUDY.run(quick=True).tables
    for name, row in zip(tables.QUICK_TABLES, table.rows, strict=True):
        printed = TABLE1[name]
        assert row[0] == name.replace("_", " ")
        assert row[1] == "{} x {}".format(*printed.size)
        assert (row[3], row[5], row[7], row[10]) == (printed.holes, printed.rate, printed.error, printed.time)
    assert table.column("size ours") == ["12 x 7"] * 3
    assert table.column("holes ours") == [3] * 3
    assert table.column("increase rate ours") == pytest.approx([4 / 3] * 3)
    assert all(verdict.startswith("not size, holes, rate") for verdict in table.column("as printed"))
    messages = []
    runs = [STUDY.run(quick=True, seed=seed, progress=messages.append) for seed in (0, 0, 1)]
    assert messages == ["auto mpg", "lung cancer", "sleep mammals"] * 3
    errors = [run.tables[0].column("relative error exact") for run in runs]
    assert errors[0] == errors[1]
    assert errors[0] != errors[2]


def test_an_absent_table_is_marked_and_the_others_are_done(loaded):
    loaded["lung_cancer"] = DataError("The file must exist. Found none. Get it.")
    (table,) = STUDY.run(quick=True).tables
    row = table.rows[tables.QUICK_TABLES.index("lung_cancer")]
    assert row[0] == "lung cancer"
    assert row[3] == TABLE1["lung_cancer"].holes
    assert [row[place] for place in (2, 4, 6, 8, 9, 11, 12)] == [None] * 7
    assert row[-1] == "no data (1)"
    assert table.footnotes[0] == "(1) The file must exist. Found none. Get it."
    assert [value is None for value in table.column("relative error exact")].count(True) == 1


@pytest.fixture(scope="module")
def whole():
    """The whole study, its times not taken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "median_seconds", lambda works, **_: [1.0] * len(works))
        return STUDY.run()


@needs_data_of("a1gm/table1")
def test_the_numbers_of_the_paper_come_out_and_the_exact_solution_is_never_worse(whole):
    (table,) = whole.tables
    verdicts = dict(zip(table.column("table"), table.column("as printed"), strict=True))
    assert {name for name, verdict in verdicts.items() if verdict == "yes"} == (
        {name.replace("_", " ") for name in STUDY.needs} - DIFFERENT
    )
    assert {name for name, verdict in verdicts.items() if verdict.startswith("no data")} == {
        "mts library",
        "board game geek",
    }
    assert verdicts["big mart"].startswith("not size (")
    assert verdicts["life expectancy"].startswith("not error (")
    rows = {row[0]: row for row in table.rows}
    assert (rows["big mart"][2], rows["credit approval"][2]) == ("8523 x 5", "690 x 7")  # as their footnotes say
    assert (rows["big mart"][4], rows["human resources"][4]) == (rows["big mart"][3], 54)
    for name, verdict in zip(table.column("table"), table.column("as printed"), strict=True):
        if verdict != "yes":
            mark = re.search(r"\(\d\)$", verdict)[0]
            (footnote,) = (footnote for footnote in table.footnotes if footnote.startswith(mark))
            assert footnote == f"{mark} {REASONS[name.replace(' ', '_')]}"
    ours = [error for error in table.column("relative error exact") if error is not None]
    assert len(ours) == 15
    assert max(ours) <= 1 + 1e-12
    assert "at most 1.0000 in each of 15 tables" in whole.summary
    assert "11 of 15 tables have all the digits" in whole.summary
    worse = tables.summarize({"auto_mpg": replace(SAME, exact_error=1.0002), "wiki4he": SAME})
    assert "above 1.0000 in 1 of 2 tables (largest 1.0002)" in worse
    assert any("KL-WNMF took 2 to 3 iterations (paper: 2 to 4)" in footnote for footnote in table.footnotes)


@needs_data_of("a1gm/table1", "life_expectancy")
def test_the_footnote_on_life_expectancy_holds():
    """Turned over, KL-WNMF moves h first."""
    X = load_tabular("life_expectancy", prepared=True).to_dense()
    best = divergence(X, *optimum(X))
    w_first = compare(X, 0, at_least=1, until=0.0).a1gm_error
    h, w, _ = kl_wnmf(with_weights(X.T), 0)
    wnmf_w, wnmf_h, _ = kl_wnmf(with_weights(X), 0)
    a1gm = w_first * divergence(X, wnmf_w, wnmf_h)
    ratios = [f"{w_first:.3f}", f"{a1gm / divergence(X, w, h):.3f}", f"{a1gm / best:.4f}"]
    assert ratios == re.findall(r"\d\.\d+", REASONS["life_expectancy"])

"""halfseen impute -k auto: the number of components by held-out cells."""

import csv
import re

import numpy as np
import pytest

from halfseen import OrdinalMF, RankSearch, WeightedNMF, observe
from tests.cli.program import done, misused, names_in, program, refused
from tests.rank_one import oracle
from tests.selection.data import stars

#: Fits that settle, so that there is nothing to remark.
SETTLED = ("--tol", "1e-5", "--max-iter", 5000)
UNITS = np.logspace(-2, 3, 8)


def planted(rank, seed=1):
    """A table of known rank and some noise, a fifth of it hidden, in which every column has its own units."""
    random = np.random.default_rng(seed)
    means = random.gamma(2.0, 1.0, (80, rank)) @ (0.02 + random.random((rank, 8)) ** 3)
    values = means * random.gamma(100.0, 0.01, means.shape) * UNITS
    return np.where(random.random(means.shape) < 0.2, np.nan, values)


def write(path, values):
    lines = [",".join("" if np.isnan(one) else repr(float(one)) for one in row) for row in values]
    path.write_text("\n".join(["who,year," + ",".join("abcdefgh"), *lines_named(lines), ""]))
    return path


def lines_named(lines):
    return [f"p{place},{1990 + place},{line}" for place, line in enumerate(lines)]


def filled(path):
    with path.open(newline="") as file:
        return np.array([line[2:] for line in csv.reader(file)][1:], dtype=float)


def test_the_table_is_filled_as_by_a_search_and_a_fit_in_the_units_of_the_fit(tmp_path):
    values = planted(2)
    path = write(tmp_path / "t.csv", values)
    words = ("-k", "auto:1,2,3,4", "--skip", "year", "--seed", 5, *SETTLED, "--no-clip", "-o", tmp_path / "out.csv")
    account = done("impute", path, *words)
    scaled = values / np.nanmean(values, axis=0)
    model = WeightedNMF(random_state=5, tol=1e-5, max_iter=5000)
    search = RankSearch(model, [1, 2, 3, 4], random_state=5).fit(scaled)
    assert search.best_n_components_ == 2  # as planted
    expected = search.best_estimator_.W_ @ search.best_estimator_.H_.T * np.nanmean(values, axis=0)
    np.testing.assert_allclose(filled(tmp_path / "out.csv"), np.where(np.isnan(values), expected, values), rtol=1e-9)
    start = account.index("Tried 4 numbers of components on 5 folds by divergence:")
    means = [line.split()[1] for line in account[start + 2 : start + 6]]
    assert means == [f"{mean:.5g}" for mean in search.results_["mean"]]
    assert account[start + 6].startswith("Chose 2 components, the fewest within one standard error of the best")
    assert account[start + 7].startswith("Filled ")
    assert account[start + 8].startswith("WeightedNMF: 2 components")


def test_one_component_is_then_the_best_there_is(tmp_path):
    values = planted(1)
    path = write(tmp_path / "t.csv", values)
    words = ("-k", "auto:1,2,3", "--skip", "year", *SETTLED, "--no-clip", "-o", tmp_path / "out.csv")
    account = done("impute", path, *words)
    assert any(line.startswith("Chose 1 component,") for line in account)
    assert any(line.startswith("RankOneNMF: 1 component") for line in account)
    means = np.nanmean(values, axis=0)
    holes = np.isnan(values)
    expected = np.outer(*oracle.best(values / means)) * means
    np.testing.assert_allclose(filled(tmp_path / "out.csv")[holes], expected[holes], rtol=1e-4)


def test_another_loss_without_scaling(tmp_path):
    values = planted(2) / UNITS
    path = write(tmp_path / "t.csv", values)
    words = ("--loss", "frobenius", "--no-scale", "--skip", "year", "--tol", "1e-6", "--max-iter", 20000)
    account = done("impute", path, "-k", "auto:1,2,3", *words, "-o", tmp_path / "out.csv")
    model = WeightedNMF(loss="frobenius", random_state=0, tol=1e-6, max_iter=20000)
    search = RankSearch(model, [1, 2, 3], random_state=0).fit(values)
    assert any(line.startswith(f"Chose {search.best_n_components_} component") for line in account)


def test_levels_of_one_scale(tmp_path):
    """The usual numbers are tried if none are listed, as far as there are columns."""
    seen = stars(1, 0, n=60, m=6)
    text = [["" if np.isnan(one) else f"{one:g}" for one in row] for row in seen.to_dense()]
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, [list("abcdef"), *text])) + "\n")
    words = ("--method", "ordinal", "-k", "auto", "--max-iter", 2000, "-o", tmp_path / "out.csv")
    account = done("impute", tmp_path / "t.csv", *words)
    search = RankSearch(OrdinalMF(random_state=0, max_iter=2000), random_state=0).fit(observe(tmp_path / "t.csv"))
    start = account.index("Tried 4 numbers of components on 5 folds by log-likelihood:")
    assert [line.split()[0] for line in account[start + 2 : start + 6]] == ["1", "2", "3", "5"]
    assert f"OrdinalMF: {search.best_n_components_} component" in account[-3]
    with (tmp_path / "out.csv").open(newline="") as file:
        found = {field for line in list(csv.reader(file))[1:] for field in line}
    assert found == {field for line in text for field in line if field}


def test_quiet_is_quiet(tmp_path):
    path = write(tmp_path / "t.csv", planted(1))
    result = program("impute", path, "-k", "auto:1,2", "--skip", "year", *SETTLED, "-q", "-o", tmp_path / "out.csv")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("word", ["auto:", "auto:2,x", "many", "auto:1.5"])
def test_a_number_that_is_none_is_refused(word, tmp_path):
    sentence = misused("impute", tmp_path / "t.csv", "-k", word, "-o", tmp_path / "out.csv")
    assert f"{word!r} is neither a whole number nor auto, nor a list such as auto:5,10,20." in sentence


@pytest.mark.usefixtures("no_fit")
def test_numbers_that_can_not_be_tried_or_fitted_are_refused_before_the_work(tmp_path):
    path = write(tmp_path / "t.csv", planted(1))
    words = ("--skip", "year", "-o", tmp_path / "out.csv")
    assert re.search("whole numbers of at least 1.* Found 0", refused("impute", path, "-k", "auto:0,2", *words))
    write(path, -planted(1))
    assert "Found -" in refused("impute", path, "-k", "auto", *words)
    assert names_in(tmp_path) == ["t.csv"]

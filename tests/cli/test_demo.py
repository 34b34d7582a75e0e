"""halfseen demo: the built-in data, factorized, recommended from, filled, and told of."""

import csv
import re

import numpy as np
import pytest

import halfseen
from halfseen.data import load_movietweetings
from tests.cli.program import done, names_in, refused

FILES = ["films.hs", "recommended.csv", "report.md", "table-filled.csv", "table-with-holes.csv"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of a demo, and what was printed."""
    folder = tmp_path_factory.mktemp("demo") / "shown"
    return folder, done("demo", "-o", folder)


@pytest.fixture(scope="module")
def report(demo):
    return (demo[0] / "report.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def films():
    return load_movietweetings()


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    return header, lines


def numbers(path):
    return np.array([[float(field or "nan") for field in line] for line in table(path)[1]])


def test_everything_is_kept_in_the_folder(demo):
    assert names_in(demo[0]) == FILES


def test_what_is_printed_is_the_report(demo, report):
    folder, lines = demo
    assert report.splitlines()[:2] == ["# halfseen: the demo", ""]
    assert lines[:-2] == report.splitlines()[2:]
    assert lines[-1] == f"This report, the model and the tables are in {folder}."


def test_the_account_is_that_of_the_model(demo, report, films):
    model = halfseen.load(demo[0] / "films.hs")
    n, m = films.shape
    assert (len(model.W_), len(model.H_)) == (n, m)
    assert f": {n:,} x {m:,}, {films.nnz:,} cells seen" in report
    assert f"- {model.status_.name} after {model.n_iter_} iterations in " in report
    assert f"- Evidence bound {model.trace_['objective'][-1]:,.6g} (after the first" in report


def test_every_component_is_told_by_films(report, films):
    told = re.findall(r"^ *(\d+)\. (.+)$", report, re.MULTILINE)
    assert [int(number) for number, _ in told] == list(range(1, 13))
    titles = set(films.column_labels)
    for _, line in told:
        named = [title for title in titles if title in line.split("; ")]
        assert len(named) == 4


def test_the_recommended_films_are_those_of_the_model_and_new_to_the_user(demo, report, films):
    model = halfseen.load(demo[0] / "films.hs")
    header, lines = table(demo[0] / "recommended.csv")
    assert header == ["user", "film", "score"]
    users = list(dict.fromkeys(int(user) for user, _, _ in lines))
    assert len(users) == 3
    for user in users:
        row = films.row_labels.tolist().index(user)
        scores = model.H_ @ model.W_[row]
        seen = films.indices[films.indptr[row] : films.indptr[row + 1]]
        scores[seen] = -np.inf
        best = np.argsort(-scores, kind="stable")[:5]
        found = [(film, float(score)) for one, film, score in lines if int(one) == user]
        assert [film for film, _ in found] == films.column_labels[best].tolist()
        np.testing.assert_allclose([score for _, score in found], scores[best], rtol=1e-12)
        assert f"Recommended: {'; '.join(film for film, _ in found)}." in report


def test_the_favourites_are_the_highest_ratings(report, films):
    told = re.findall(r"^User (\d+) rated highest: (.+)\.$", report, re.MULTILINE)
    assert len(told) == 3
    titles = films.column_labels.tolist()
    for user, line in told:
        row = films.row_labels.tolist().index(int(user))
        cells = slice(films.indptr[row], films.indptr[row + 1])
        rating = dict(zip(films.indices[cells].tolist(), films.values[cells], strict=True))
        named = [rating[titles.index(title)] for title in line.split("; ")]
        assert named == sorted(rating.values(), reverse=True)[: len(named)]


def test_the_filled_table_keeps_what_was_seen(demo):
    holes, filled = (numbers(demo[0] / name) for name in ("table-with-holes.csv", "table-filled.csv"))
    hidden = np.isnan(holes)
    assert holes.shape == filled.shape == (300, 12)
    np.testing.assert_array_equal(filled[~hidden], holes[~hidden])
    assert (filled[hidden] >= 0).all()
    assert not np.isnan(filled).any()
    assert table(demo[0] / "table-filled.csv")[0] == [f"column {j}" for j in range(1, 13)]


def test_the_error_told_is_far_below_that_of_column_means(demo, report):
    match = re.search(r"Error in the hidden cells: ([\d.]+); with column means: ([\d.]+)\.", report)
    ours, means = float(match[1]), float(match[2])
    assert 0 < ours < 0.5 * means
    hidden = int(re.search(r"300 x 12, (\d+) cells hidden", report)[1])
    assert hidden == np.isnan(numbers(demo[0] / "table-with-holes.csv")).sum()


def test_the_same_seed_gives_the_same_files_and_another_does_not(demo, tmp_path):
    folder, _ = demo
    done("demo", "-o", tmp_path / "again")
    done("demo", "-o", tmp_path / "other", "--seed", 1)
    for name in FILES:
        if name.endswith(".csv"):
            assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
            assert (tmp_path / "other" / name).read_bytes() != (folder / name).read_bytes()


def test_a_folder_whose_parent_is_not_there_is_refused(tmp_path):
    assert "does not exist." in refused("demo", "-o", tmp_path / "nowhere" / "shown")
    assert names_in(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "shown").write_text("mine")
    assert str(tmp_path / "shown") in refused("demo", "-o", tmp_path / "shown")
    assert (tmp_path / "shown").read_text() == "mine"

"""halfseen demo: the built-in ratings, a table and a survey, fitted and shown on a page."""

import csv
import json
import re
import sys

import numpy as np
import pytest

import halfseen
from halfseen.data import load_movietweetings
from halfseen.datasets import make_survey
from halfseen.io import split_cells
from tests.cli.program import done, names_in
from tests.cli.program import halfseen as run

PAGES = ["films.html", "report.html", "survey.html", "table.html"]
FILES = sorted([
    *PAGES, "films.hs", "recommended.csv", "report.md", "survey-coupling.csv", "survey.hs", "table-filled.csv",
    "table-with-holes.csv", "table.hs",
])  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of a demo, and what was printed."""
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("demo") / "shown"
    return folder, done("demo", "-o", folder)


@pytest.fixture(scope="module")
def report(demo):
    return (demo[0] / "report.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(demo):
    return (demo[0] / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def films():
    """What the model was fitted on."""
    return split_cells(halfseen.observe(load_movietweetings(), unseen="zero"), 0.1, random_state=0)[0]


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    return header, lines


def numbers(path):
    return np.array([[float(field or "nan") for field in line] for line in table(path)[1]])


def test_everything_is_in_the_folder_and_the_report_is_printed(demo, report):
    folder, lines = demo
    assert names_in(folder) == FILES
    assert report.splitlines()[:2] == ["# halfseen: the demo", ""]
    assert lines[:-1] == report.splitlines()[2:]
    assert f"{folder}/report.html" in lines[-1]


def test_the_page_says_what_the_text_says(page, report):
    shown = re.sub(r"<[^>]+>", " ", page)
    for name, text in re.findall(r"^- ([A-Z][^:]+): (.+)$", report, re.MULTILINE):
        assert name in shown
        assert text.replace("'", "&#39;") in shown


def test_the_page_leads_to_the_whole_reports_and_nowhere_else(demo, page):
    places = {place for place in re.findall(r'(?:src|href)="([^"]*)"', page) if not place.startswith("data:")}
    assert {place for place in places if not place.startswith("#")} == {"films.html", "table.html", "survey.html"}
    for anchor in (place for place in places if place.startswith("#")):
        assert f'id="{anchor[1:]}"' in page
    assert page.count("<svg") == 6
    for name in PAGES:
        assert (demo[0] / name).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_facts_are_those_of_the_model_and_every_component_has_its_films(demo, report, films):
    model = halfseen.load(demo[0] / "films.hs")
    n, m = films.shape
    assert (len(model.W_), len(model.H_)) == (n, m)
    assert f"- Users and films: {n:,} x {m:,}" in report
    assert f"{films.nnz:,} to learn from" in report
    assert f"- Fit: {model.status_.name} after {model.n_iter_} iterations in " in report
    components = re.findall(r"^- (\d+)\. Films: (.+)\.$", report, re.MULTILINE)
    assert [int(number) for number, _ in components] == list(range(1, 13))
    titles = set(films.column_labels)
    assert all(len([title for title in line.split("; ") if title in titles]) == 4 for _, line in components)
    ours, popular = map(float, re.search(r"NDCG@10 .*: ([\d.]+) \(the most popular films: ([\d.]+)\)", report).groups())
    assert 0 < popular < ours < 1


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
        found = [film for one, film, _ in lines if int(one) == user]
        assert found == films.column_labels[best].tolist()
        assert f"Recommended: {'; '.join(found)}." in report


def test_the_favourites_are_the_highest_ratings(report, films):
    favourites = re.findall(r"^- (\d+)\. Rated highest: (.+)\. Recommended: ", report, re.MULTILINE)
    assert len(favourites) == 3
    titles = films.column_labels.tolist()
    for user, line in favourites:
        row = films.row_labels.tolist().index(int(user))
        cells = slice(films.indptr[row], films.indptr[row + 1])
        rating = dict(zip(films.indices[cells].tolist(), films.values[cells], strict=True))
        named = [rating[titles.index(title)] for title in line.split("; ")]
        assert named == sorted(rating.values(), reverse=True)[: len(named)]


def test_the_filled_table_keeps_what_was_seen_and_beats_column_means(demo, report):
    holes, filled = (numbers(demo[0] / name) for name in ("table-with-holes.csv", "table-filled.csv"))
    hidden = np.isnan(holes)
    assert holes.shape == filled.shape == (300, 12)
    np.testing.assert_array_equal(filled[~hidden], holes[~hidden])
    assert (filled[hidden] >= 0).all()
    assert not np.isnan(filled).any()
    assert table(demo[0] / "table-filled.csv")[0] == [f"column {j}" for j in range(1, 13)]
    match = re.search(r"Error in the hidden cells: ([\d.]+) \(column means: ([\d.]+)\)", report)
    ours, means = float(match[1]), float(match[2])
    assert 0 < ours < 0.5 * means
    hidden = int(re.search(r"Cells hidden: ([\d,]+) of 3,600", report)[1].replace(",", ""))
    assert hidden == np.isnan(numbers(demo[0] / "table-with-holes.csv")).sum()


def test_the_survey_is_told_against_its_truth(demo, report):
    survey = make_survey(40, 25, 40, random_state=0)
    model = halfseen.load(demo[0] / "survey.hs")
    error = np.abs(np.asarray(model.complete(survey.collected)) - survey.truth).mean()
    means = np.abs(survey.truth - survey.truth.mean(axis=1, keepdims=True)).mean()
    assert f"- Mean error of an answer: {error:.2f} (the question's mean: {means:.2f})" in report
    assert error < 0.5 * means
    certain = re.findall(
        r"respondent (\d+), question (\d+)\. Likeliest: ([\d.]+)\. .* Truth: ([\d.]+)\.$", report, re.M
    )
    assert len(certain) == 6
    for respondent, question, _, truth in certain:
        assert float(truth) == survey.truth[int(question) - 1, int(respondent) - 1]


def test_the_same_seed_gives_the_same_files_and_json_has_the_facts(demo, report, tmp_path):
    folder, _ = demo
    found = json.loads("\n".join(done("demo", "-q", "--json", "-o", tmp_path / "again")))
    for name in FILES:
        if name.endswith(".csv"):
            assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    assert [one["part"] for one in found["parts"]] == ["films", "table", "survey"]
    for part in found["parts"]:
        assert f"## {part['title']}" in report
        assert all(f"- {name}: {text}" in report for name, text in part["facts"].items() if name != "Fit")
    assert found["file"] == str(tmp_path / "again" / "report.html")


def test_without_jinja_there_is_the_text_and_another_seed_gives_other_numbers(demo, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("demo", "-o", tmp_path / "shown", "--seed", 1)
    assert result.exit_code == 0
    assert "pip install jinja2" in result.stderr
    assert names_in(tmp_path / "shown") == [name for name in FILES if name not in PAGES]
    assert "report.md" in result.stdout.splitlines()[-1]
    for name in FILES:
        if name.endswith(".csv"):
            assert (tmp_path / "shown" / name).read_bytes() != (demo[0] / name).read_bytes()

"""--json: standard output holds one JSON value and nothing else, and it says what the account says."""

import csv
import json

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import planted_counts, write_long
from tests.cli.program import halfseen as run
from tests.cli.program import misused, names_in
from tests.cli.small_studies import Judged, Small
from tests.cli.test_uncouple import write_lists

TABLE = "name,a,b,c\nx,1,2,\ny,2,,6\nz,3,6,9\n"


def told(*words):
    """The value on standard output; no account goes anywhere else."""
    result = run(*words, "--json", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_fit(ratings, tmp_path):
    found = told("fit", ratings.path, "-k", 2, "--max-iter", 500, "-o", tmp_path / "model.hs")
    model = halfseen.load(tmp_path / "model.hs")
    values = ratings.values[~np.isnan(ratings.values)]
    assert found["data"] == {
        "file": str(ratings.path),
        "rows": ratings.values.shape[0],
        "columns": ratings.values.shape[1],
        "cells": values.size,
        "lowest": values.min(),
        "highest": values.max(),
    }
    assert (found["method"], found["model"], found["n_components"]) == ("poisson", "PoissonFactorization", 2)
    assert (found["status"], found["iterations"], found["file"]) == (
        "CONVERGED",
        model.n_iter_,
        str(tmp_path / "model.hs"),
    )
    assert found["objective"] == model.trace_["objective"][-1]
    assert found["seconds"] == model.trace_["seconds"][-1]
    assert "choice" not in found


def test_fit_tells_words_as_words(tmp_path):
    (tmp_path / "answers.csv").write_text("user,item,rating\na,x,fair\na,y,good\nb,x,fair\nb,y,good\nc,y,fair\n")
    words = ("--method", "ordinal", "-k", 1, "--levels", "fair,good", "-o", tmp_path / "model.hs")
    data = told("fit", tmp_path / "answers.csv", *words)["data"]
    assert (data["lowest"], data["highest"]) == ("fair", "good")


def test_fit_auto_tells_what_was_tried(ratings, tmp_path):
    found = told("fit", ratings.path, "-k", "auto:1,2,3", "--seed", 1, "-o", tmp_path / "model.hs")
    model = halfseen.PoissonFactorization(random_state=1)
    search = halfseen.RankSearch(model, [1, 2, 3], random_state=1).fit(halfseen.observe(ratings.path, unseen="zero"))
    choice = found["choice"]
    assert found["n_components"] == choice["chosen"] == search.best_n_components_
    assert (choice["metric"], choice["folds"]) == ("ndcg@100", 5)
    assert [one["n_components"] for one in choice["tried"]] == [1, 2, 3]
    assert [one["mean_score"] for one in choice["tried"]] == search.results_["mean"].tolist()
    errors = [one["standard_error_of_distance"] for one in choice["tried"]]
    assert errors == search.results_["standard_error"].tolist()


def test_impute(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE.replace("name,a", "name,a_code"))
    noted = told("impute", tmp_path / "table.csv", "-k", 1, "-o", tmp_path / "filled.csv")["notes"]
    assert (len(noted), "'a_code'" in noted[0]) == (1, True)
    (tmp_path / "table.csv").write_text(TABLE)
    found = told("impute", tmp_path / "table.csv", "-k", 1, "-o", tmp_path / "filled.csv")
    assert (found["holes"], found["filled"], found["kept"]) == (2, ["a", "b", "c"], ["name"])
    assert (found["model"], found["n_components"], found["status"]) == ("RankOneNMF", 1, "CONVERGED")
    assert found["data"]["cells"] == 7
    assert found["file"] == str(tmp_path / "filled.csv")
    assert "," not in {line[-1] for line in (tmp_path / "filled.csv").read_text().splitlines()}


def test_uncouple(tmp_path):
    lists = write_lists(tmp_path)
    words = (*lists, "-k", 2, "--sweeps", 60, "--burn", 20, "-o", tmp_path / "out.csv", "--model", tmp_path / "m.hs")
    result = run("uncouple", *words, "--json", "-q")
    found = json.loads(result.stdout)
    with (tmp_path / "asked.csv").open(newline="") as file:
        _, *asked = csv.reader(file)
    assert found["data"]["asked"] == len(asked)
    assert found["data"]["questions"] == len({question for question, _ in asked})
    model = halfseen.load(tmp_path / "m.hs")
    assert (found["method"], found["status"], found["iterations"]) == ("gibbs", model.status_.name, 60)
    assert {name: one["r_hat"] for name, one in found["diagnostics"].items()} == {
        name: one.r_hat for name, one in model.diagnostics_.items()
    }
    risk = model.disclosure_risk()
    assert found["disclosure"] == {
        "answers": len(asked),
        "mean_probability": risk.mean(),
        "certain_from": 0.9,
        "certain": np.count_nonzero(risk >= 0.9),
    }
    assert (found["file"], found["model_file"]) == (str(tmp_path / "out.csv"), str(tmp_path / "m.hs"))


def test_report(ratings, model, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    held = write_long(tmp_path / "held.csv", np.where(np.isnan(planted_counts()), 2.0, np.nan))
    words = ("--train", ratings.path, "--test", held, "-k", 3, "-o", tmp_path / "page.html")
    found = told("report", model, *words)
    assert found["file"] == str(tmp_path / "page.html")
    assert [one["file"] for one in found["data"]] == [str(ratings.path), str(held)]
    ranking = found["scores"][0]["lines"]
    test = halfseen.observe(held, unseen="zero")
    expected = halfseen.metrics.ndcg_at_k(halfseen.load(model), None, test, k=3)
    assert ranking[0]["Ranked by"] == "PoissonFactorization"
    assert ranking[0]["NDCG@3"] == pytest.approx(expected, rel=1e-12)
    assert found["title"] in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_report_without_held_out_cells_has_no_scores(model, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    found = told("report", model, "-o", tmp_path / "page.html")
    assert (found["data"], found["scores"]) == ([], [])


def test_reports_take_a_level_by_its_name(tmp_path):
    """Of the two cells held out, one reaches it."""
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    (tmp_path / "train.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,good\nbob,z,bad\n")
    (tmp_path / "test.csv").write_text("user,item,rating\nann,z,good\nbob,y,bad\n")
    fit = ("--method", "ordnmf", "-k", 1, "--levels", "bad,good", "-q", "-o", tmp_path / "model.hs")
    run("fit", tmp_path / "train.csv", *fit)
    ask = ("report", tmp_path / "model.hs", "--test", tmp_path / "test.csv", "-o", tmp_path / "page.html")
    captions = [told(*ask, *words)["scores"][0]["caption"] for words in ((), ("--relevant", "good"))]
    assert [caption.rpartition(" over ")[2] for caption in captions] == ["2 rows", "1 row"]


def test_demo(tmp_path):
    found = told("demo", "-o", tmp_path / "shown")
    assert [one["part"] for one in found["parts"]] == ["films", "table", "survey"]
    text = (tmp_path / "shown" / "report.md").read_text(encoding="utf-8")
    for part in found["parts"]:
        assert f"## {part['title']}" in text
        assert part["facts"]
        for what, fact in part["facts"].items():
            assert f"- {what}: {fact}" in text
    assert found["file"] in (str(tmp_path / "shown" / "report.html"), str(tmp_path / "shown" / "report.md"))


def test_reproduce_tells_what_it_writes(small, tmp_path):
    small["a1gm/table1"] = Judged("a1gm/table1", True, False)
    found = told("reproduce", "a1gm", "--seed", 3, "-o", tmp_path)
    assert [one["study"] for one in found] == ["a1gm/table1", "a1gm/figure5"]
    for one, name in zip(found, ("a1gm-table1.json", "a1gm-figure5.json"), strict=True):
        assert one == json.loads((tmp_path / name).read_text(encoding="utf-8"))


def test_reproduce_tells_its_numbers_without_a_folder(small, elsewhere):
    result = run("reproduce", "a1gm/table1", "--json")
    (found,) = json.loads(result.stdout)
    assert found["tables"][0]["rows"] == [["x", "0.12", 0.123456789], ["y", "3", None]]
    assert names_in(elsewhere) == []


def test_reproduce_says_why_a_study_has_not_run(small):
    small["a1gm/table1"] = Small("a1gm/table1", halfseen.errors.DataError("There must be data. Found none. Get some."))
    result = run("reproduce", "a1gm", "--json", "-q")
    absent, _ = json.loads(result.stdout)
    assert (absent["verdict"], absent["reason"]) == ("not run", "There must be data. Found none. Get some.")


def test_files_written_are_told_of_on_standard_error(small, tmp_path):
    result = run("reproduce", "a1gm/table1", "--json", "-o", tmp_path)
    assert len(json.loads(result.stdout)) == 1
    assert f"Saved {tmp_path / 'a1gm-table1.json'} (" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("impute", "table.csv"),
        ("uncouple", "--asked", "asked.csv", "--answers", "answers.csv"),
        ("report", "model.hs"),
    ],
)
def test_two_results_on_standard_output_are_refused(words):
    assert misused(*words, "--json", "-o", "-") == ("Say either --json or -o -: standard output is for one of the two.")

"""--json: standard output holds one JSON value and nothing else, with the numbers of the library."""

import csv
import json

import numpy as np
import pytest

import halfseen
from halfseen.cli.streams import as_json
from halfseen.studies import select
from tests.cli.conftest import planted_counts, write_long
from tests.cli.program import halfseen as run
from tests.cli.program import misused, names_in
from tests.cli.small_studies import Judged, Small
from tests.cli.test_uncouple import write_lists

TABLE = "name,a,b,c\nx,1,2,\ny,2,,6\nz,3,6,9\n"


def value_of(*words):
    """The value on standard output; nothing goes anywhere else."""
    result = run(*words, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_fit(ratings, tmp_path):
    place = tmp_path / "model.hs"
    found = value_of("fit", ratings.path, "-k", "auto:1,2,3", "--seed", 1, "-o", place)
    values = ratings.values[~np.isnan(ratings.values)]
    n, m = ratings.values.shape
    size = {"file": str(ratings.path), "rows": n, "columns": m, "cells": values.size}
    assert found["data"] == size | {"lowest": values.min(), "highest": values.max()}
    model = halfseen.load(place)
    assert (found["method"], found["model"], found["file"]) == ("poisson", "PoissonFactorization", str(place))
    assert (found["status"], found["iterations"]) == ("CONVERGED", model.n_iter_)
    assert found["objective"] == model.trace_["objective"][-1]
    assert found["seconds"] == model.trace_["seconds"][-1]
    search = halfseen.RankSearch(halfseen.PoissonFactorization(random_state=1), [1, 2, 3], random_state=1)
    search.fit(halfseen.observe(ratings.path, unseen="zero"))
    choice, results = found["choice"], search.results_
    assert found["n_components"] == choice["chosen"] == search.best_n_components_
    assert (choice["metric"], choice["folds"]) == ("ndcg@100", 5)
    for name, column in (("n_components", "n_components"), ("mean_score", "mean")):
        assert [one[name] for one in choice["tried"]] == results[column].tolist()
    assert [one["standard_error_of_distance"] for one in choice["tried"]] == results["standard_error"].tolist()


def test_fit_of_words(tmp_path):
    (tmp_path / "answers.csv").write_text("user,item,rating\na,x,fair\na,y,good\nb,x,fair\nb,y,good\nc,y,fair\n")
    words = ("--method", "ordinal", "-k", 1, "--levels", "fair,good", "-o", tmp_path / "model.hs")
    found = value_of("fit", tmp_path / "answers.csv", *words)
    assert (found["data"]["lowest"], found["data"]["highest"]) == ("fair", "good")
    assert "choice" not in found


def test_predict_and_recommend(model):
    fitted = halfseen.load(model)
    assert value_of("predict", model, "--row", "ann", "--col", "ale") == [
        {"row": "ann", "column": "ale", "prediction": fitted.predict(["ann"], ["ale"])[0]}
    ]
    ids, scores = fitted.recommend(["bob", "eve"], n=2)
    assert value_of("recommend", model, "-u", "bob", "-u", "eve", "-n", 2) == [
        {"row": user, "rank": rank + 1, "column": ids[place][rank], "score": scores[place][rank]}
        for place, user in enumerate(("bob", "eve"))
        for rank in range(2)
    ]


def test_evaluate(ratings, tmp_path):
    (tmp_path / "held.csv").write_text("user,item,rating\nann,ale,3\nbob,wine,2\n")
    model = halfseen.OrdinalMF(1, random_state=0).fit(ratings.path)
    model.save(tmp_path / "model.hs")
    words = ("--test", tmp_path / "held.csv", "-k", 3, "--relevant", 2, "--relevant", 3)
    found = value_of("evaluate", tmp_path / "model.hs", *words)
    assert (found["k"], [one["relevant from"] for one in found["ranking"]]) == (3, [2, 3])
    assert [one["rows"] for one in found["ranking"]] == [2, 1]
    scores = halfseen.metrics.ranking_scores(model, None, halfseen.observe(tmp_path / "held.csv"), k=3, relevant=[2, 3])
    for place, one in enumerate(found["ranking"]):
        for name, metric in scores._asdict().items():
            assert one[name] == pytest.approx(np.nanmean(metric[place]))
    errors = model.predict(["ann", "bob"], ["ale", "wine"]) - [3, 2]
    assert found["values"]["root_mean_squared_error"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert found["likelihood"]["cells"] == 2


def test_impute(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    found = value_of("impute", tmp_path / "table.csv", "-k", 1, "-o", tmp_path / "filled.csv")
    assert (found["holes"], found["filled"], found["kept"]) == (2, ["a", "b", "c"], ["name"])
    assert (found["model"], found["n_components"], found["status"]) == ("RankOneNMF", 1, "CONVERGED")
    assert (found["data"]["cells"], found["notes"], found["file"]) == (7, [], str(tmp_path / "filled.csv"))
    (tmp_path / "table.csv").write_text(TABLE.replace("name,a", "name,a_code"))
    result = run("impute", tmp_path / "table.csv", "-k", 1, "--force", "-o", tmp_path / "filled.csv", "--json")
    (note,) = json.loads(result.stdout)["notes"]
    assert "'a_code'" in note
    result = run("impute", tmp_path / "table.csv", "--force", "-o", tmp_path / "filled.csv", "--json")
    found = json.loads(result.stdout)
    assert (found["method"], found["kept"]) == ("blend", ["name", "a_code"])  # codes are not amounts
    assert [one["column"] for one in found["columns"]] == found["filled"] == ["b", "c"]
    assert set(found["columns"][0]) == {
        "column", "kind", "holes", "error", "mean_error", "ratio", "standard_error", "accuracy",
        "mode_accuracy", "held_out", "used",
    }  # fmt: skip
    assert (found["data"]["rows"], found["data"]["columns"], found["data"]["numeric"]) == (3, 4, 3)


def test_uncouple(tmp_path):
    words = ("-k", 2, "--sweeps", 60, "--burn", 20, "-o", tmp_path / "out.csv", "--model", tmp_path / "m.hs")
    result = run("uncouple", *write_lists(tmp_path), *words, "--json", "-q")
    found = json.loads(result.stdout)
    with (tmp_path / "asked.csv").open(newline="") as file:
        _, *asked = csv.reader(file)
    assert found["data"]["asked"] == len(asked)
    assert found["data"]["questions"] == len({question for question, _ in asked})
    model = halfseen.load(tmp_path / "m.hs")
    assert (found["method"], found["status"], found["iterations"]) == (
        "gibbs",
        model.status_.name,
        len(model.trace_["objective"]),
    )
    r_hats = {name: one.r_hat for name, one in model.diagnostics_.items()}
    assert {name: one["r_hat"] for name, one in found["diagnostics"].items()} == r_hats
    risk = model.disclosure_risk()
    assert found["disclosure"] == {
        "answers": len(asked),
        "mean_probability": risk.mean(),
        "certain_from": 0.9,
        "certain": np.count_nonzero(risk >= 0.9),
    }
    assert (found["file"], found["model_file"]) == (str(tmp_path / "out.csv"), str(tmp_path / "m.hs"))
    words = ("--method", "unmf", "-o", tmp_path / "out.csv", "--model", tmp_path / "m.hs")
    found = json.loads(run("uncouple", *write_lists(tmp_path), *words, "--json", "-q").stdout)
    model = halfseen.load(tmp_path / "m.hs")
    bounds = dict(zip(map(str, model.row_labels_), model.error_bounds_, strict=True))
    question = max(bounds, key=bounds.get)
    expected = {"median": np.median(model.error_bounds_), "largest": bounds[question], "question": question}
    assert found["error_bounds"] == expected


def test_split(ratings, tmp_path):
    outputs = {"train": str(tmp_path / "t.csv"), "held_out": str(tmp_path / "h.csv")}
    found = value_of("split", ratings.path, "--seed", 3, "-o", outputs["train"], "--held-out", outputs["held_out"])
    assert (found["seed"], found["held_out"], found["layout"]) == (3, 6, "long")
    assert outputs.items() <= found["files"].items()


def test_report(ratings, model, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    held = write_long(tmp_path / "held.csv", np.where(np.isnan(planted_counts()), 2.0, np.nan))
    words = ("--train", ratings.path, "--test", held, "-k", 3, "-o", tmp_path / "page.html")
    found = value_of("report", model, *words)
    assert found["file"] == str(tmp_path / "page.html")
    assert [one["file"] for one in found["data"]] == [str(ratings.path), str(held)]
    own = found["scores"][0]["lines"][0]
    expected = halfseen.metrics.ndcg_at_k(halfseen.load(model), None, halfseen.observe(held, unseen="zero"), k=3)
    assert own["Ranked by"] == "PoissonFactorization"
    assert own["NDCG@3"] == pytest.approx(expected, rel=1e-12)
    assert found["title"] in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_doctor():
    found = value_of("doctor")
    assert found["healthy"] is True
    assert found["packages"]["numpy"] == np.__version__
    assert [one["what"] for one in found["checks"]] == ["Threads", "Kernel cache", "Numbers", "GPU"]


def test_reproduce(small, tmp_path):
    """What is written, which is told on standard error; and why a study has not run."""
    small["a1gm/table1"] = Judged("a1gm/table1", True, False)
    result = run("reproduce", "a1gm", "--seed", 3, "--json", "-o", tmp_path)
    found = json.loads(result.stdout)
    assert [one["study"] for one in found] == list(select("a1gm"))
    for one in found:
        name = f"{one['study'].replace('/', '-')}.json"
        assert one == json.loads((tmp_path / name).read_text(encoding="utf-8"))
        assert f"Saved {tmp_path / name} (" in result.stderr
    small["a1gm/table1"] = Small("a1gm/table1", halfseen.errors.DataError("There must be data. Found none. Get some."))
    absent, *_ = json.loads(run("reproduce", "a1gm", "--json", "-q").stdout)
    assert (absent["verdict"], absent["reason"]) == ("not run", "There must be data. Found none. Get some.")


def test_reproduce_without_a_folder(small, elsewhere):
    (found,) = json.loads(run("reproduce", "a1gm/table1", "--json").stdout)
    assert found["tables"][0]["rows"] == [["x", "0.12", 0.123456789], ["y", "3", None]]
    assert names_in(elsewhere) == []


@pytest.mark.parametrize("words", ["impute t.csv", "uncouple --asked a.csv --answers b.csv", "report model.hs"])
def test_two_results_on_standard_output_are_refused(words):
    assert "--json" in misused(*words.split(), "--json", "-o", "-")


def test_what_is_not_a_number_is_null():
    value = {"a": np.array([1.0, np.nan]), "b": np.int64(3), "c": float("inf"), "d": ("x", None)}
    assert json.loads(as_json(value)) == {"a": [1.0, None], "b": 3, "c": None, "d": ["x", None]}

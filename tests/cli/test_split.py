"""halfseen split: a file split into training and test cells."""

import csv
import json

import pytest

from tests.cli.program import done, misused, names_in, refused


def lines_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_a_model_learns_from_one_part_and_is_judged_by_the_other(ratings, tmp_path):
    train, held, model = tmp_path / "train.csv", tmp_path / "held.csv", tmp_path / "model.hs"
    told = done("split", ratings.path, "-o", train, "--held-out", held)
    assert "6 cells held out by seed 0" in told[0]  # a fifth of 32
    head, *lines = lines_of(ratings.path)
    assert lines_of(train)[0] == lines_of(held)[0] == head
    assert sorted(lines_of(train)[1:] + lines_of(held)[1:]) == sorted(lines)
    done("fit", train, "-k", 2, "-q", "-o", model)
    assert any("6 cells" in line for line in done("evaluate", model, "--train", train, "--test", held))


def test_for_programs(ratings, tmp_path):
    outputs = {"train": str(tmp_path / "t.csv"), "held_out": str(tmp_path / "h.csv")}
    told = done("split", ratings.path, "--seed", 3, "--json", "-o", outputs["train"], "--held-out", outputs["held_out"])
    found = json.loads("\n".join(told))
    assert (found["seed"], found["held_out"], found["layout"]) == (3, 6, "long")
    assert outputs.items() <= found["files"].items()


def test_another_seed_holds_others_out(ratings, tmp_path):
    parts = {}
    for seed in (0, 0, 1):
        done("split", ratings.path, "--seed", seed, "-q", "-o", tmp_path / "t.csv", "--held-out", tmp_path / "h.csv")
        parts.setdefault(seed, []).append((tmp_path / "h.csv").read_bytes())
    (first, again), (other,) = parts[0], parts[1]
    assert first == again
    assert first != other


def test_semicolons_commas_and_parquet(tmp_path):
    (tmp_path / "r.csv").write_text("user;item;rating\na;x;1,5\na;y;2\nb;x;3,5\nb;y;4\n")
    done("split", tmp_path / "r.csv", "--share", 0.25, "-o", tmp_path / "t.csv", "--held-out", tmp_path / "h.csv")
    both = (tmp_path / "t.csv").read_text().splitlines() + (tmp_path / "h.csv").read_text().splitlines()
    assert sorted(set(both)) == ["a;x;1,5", "a;y;2", "b;x;3,5", "b;y;4", "user;item;rating"]
    polars = pytest.importorskip("polars")
    done("split", tmp_path / "r.csv", "-o", tmp_path / "t.parquet", "--held-out", tmp_path / "h.parquet")
    tables = [polars.read_parquet(tmp_path / f"{name}.parquet") for name in "th"]
    assert sum(len(table) for table in tables) == 4


def test_what_is_refused(ratings, tmp_path):
    outputs = ("-o", tmp_path / "t.csv", "--held-out", tmp_path / "h.csv")
    assert "--share must be above 0 and below 1, not 1.5" in misused("split", ratings.path, "--share", 1.5, *outputs)
    assert "nowhere.csv" in refused("split", tmp_path / "nowhere.csv", *outputs)
    assert "Missing option '--held-out'" in misused("split", ratings.path, "-o", tmp_path / "t.csv")
    assert names_in(tmp_path) == []
    before = ratings.path.read_bytes()
    for words in (
        ("-o", ratings.path, "--held-out", tmp_path / "h.csv"),
        ("-o", tmp_path / "h.csv", "--held-out", tmp_path / "h.csv"),
    ):
        assert "must be different files" in refused("split", ratings.path, *words)
    assert ratings.path.read_bytes() == before
    assert names_in(tmp_path) == []

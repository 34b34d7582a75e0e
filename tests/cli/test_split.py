"""halfseen split: a file split into training and test cells. How cells are split is tested in tests/io."""

import csv

from tests.cli.program import done, misused, names_in, refused


def lines_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_a_model_learns_from_one_part_and_is_scored_on_the_other(ratings, tmp_path):
    train, held, model = tmp_path / "train.csv", tmp_path / "held.csv", tmp_path / "model.hs"
    lines = done("split", ratings.path, "-o", train, "--held-out", held)
    assert "6 cells held out by seed 0" in lines[0]  # a fifth of 32
    head, *cells = lines_of(ratings.path)
    assert lines_of(train)[0] == lines_of(held)[0] == head
    assert sorted(lines_of(train)[1:] + lines_of(held)[1:]) == sorted(cells)
    done("fit", train, "-k", 2, "-q", "-o", model)
    assert any("6 cells" in line for line in done("evaluate", model, "--train", train, "--test", held))
    first = held.read_bytes()
    for seed, is_same in ((0, True), (1, False)):
        done("split", ratings.path, "--seed", seed, "-q", "-o", train, "--held-out", held)
        assert (held.read_bytes() == first) == is_same


def test_refusals_leave_nothing(ratings, tmp_path):
    outputs = ("-o", tmp_path / "t.csv", "--held-out", tmp_path / "h.csv")
    assert "--share" in misused("split", ratings.path, "--share", 1.5, *outputs)
    assert "--time" in refused("split", ratings.path, "--by", "time", *outputs)
    assert "--held-out" in misused("split", ratings.path, "-o", tmp_path / "t.csv")
    assert names_in(tmp_path) == []

"""halfseen predict: the model's mean at chosen cells."""

import csv

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import ITEMS, USERS
from tests.cli.program import done, misused, names_in, refused, refused_for_room
from tests.cli.program import halfseen as run


def mean(fitted, row, column):
    """The model's mean of a cell, computed here."""
    i = fitted.row_labels_.tolist().index(row)
    j = fitted.column_labels_.tolist().index(column)
    return float((fitted.W_[i] * fitted.H_[j]).sum())


def assert_shown(lines, model, pairs):
    fitted = halfseen.load(model)
    assert [tuple(line.split("\t")[:2]) for line in lines] == [(str(row), str(column)) for row, column in pairs]
    found = [float(line.split("\t")[2]) for line in lines]
    np.testing.assert_allclose(found, [mean(fitted, *pair) for pair in pairs], rtol=1e-5)


def test_pairs_in_the_order_asked_for(model, numbered_model):
    lines = done("predict", model, "--row", "hal", "--col", "gin", "--row", "bob", "--col", "ale")
    assert_shown(lines, model, [("hal", "gin"), ("bob", "ale")])
    assert_shown(done("predict", numbered_model, "--row", "22", "--col", "103"), numbered_model, [(22, 103)])


def test_a_file_comes_back_as_it_was_with_a_column_more(model, tmp_path):
    pairs, place = tmp_path / "pairs.csv", tmp_path / "out.csv"
    pairs.write_text('when,item,user,note\nmon,gin,bob,"a, b"\ntue,ale,ann,c\nmon,gin,bob,\n')
    assert_shown(done("predict", model, "--cells", pairs), model, [("bob", "gin"), ("ann", "ale"), ("bob", "gin")])
    assert done("predict", model, "--cells", pairs, "-o", place) == [f"Saved {place} ({place.stat().st_size} bytes)."]
    with pairs.open(newline="") as before, place.open(newline="") as after:
        old, new = list(csv.reader(before)), list(csv.reader(after))
    assert [record[:-1] for record in new] == old
    assert new[0][-1] == "prediction"
    fitted = halfseen.load(model)
    expected = [mean(fitted, user, item) for _, item, user, _ in old[1:]]
    np.testing.assert_allclose([float(record[-1]) for record in new[1:]], expected, rtol=1e-12)


def test_a_file_without_a_header_comes_back_without(numbered_model, tmp_path):
    (tmp_path / "bare.csv").write_text("22,103\n11,100\n")
    done("predict", numbered_model, "--cells", tmp_path / "bare.csv", "-o", tmp_path / "out.tsv")
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    assert_shown(lines, numbered_model, [(22, 103), (11, 100)])


def test_predictions_have_commas_where_the_cells_have(model, tmp_path):
    text = "user;item;amount\nbob;gin;1.5\nann;ale;2\n"
    for name in ("points", "commas"):
        (tmp_path / f"{name}.csv").write_text(text if name == "points" else text.replace(".", ","))
        done("predict", model, "--cells", tmp_path / f"{name}.csv", "-q", "-o", tmp_path / f"{name}.out.csv")
    points, commas = ((tmp_path / f"{name}.out.csv").read_text() for name in ("points", "commas"))
    assert points.startswith("user;item;amount;prediction\n")
    assert commas == points.replace(".", ",")


# Which columns hold the pairs, and whether the first line is one.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user,item,rating\nbob,gin,5\nhal,ale,?\n", []),  # values beside the pairs are not looked at
        ("x,what,who\n1,gin,bob\n2,ale,hal\n", ["--columns", "who,what"]),
        ("bob,gin\nhal,ale\n", []),  # the first line names a row and a column of the model
        ("when,what,who\nmon,gin,bob\ntue,ale,hal\n", ["--columns", "2,1", "--header"]),
        ("mon,gin,bob\ntue,ale,hal\n", ["--columns", "2,1"]),
    ],
)
def test_the_pairs_of_a_file(model, tmp_path, text, words):
    (tmp_path / "pairs.csv").write_text(text)
    lines = done("predict", model, "--cells", tmp_path / "pairs.csv", *words)
    assert_shown(lines, model, [("bob", "gin"), ("hal", "ale")])


def test_a_usual_header_is_one_though_a_column_has_its_name(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,item,1\nann,x,2\nbob,x,3\nbob,item,1\n")
    done("fit", tmp_path / "ratings.csv", "-k", 1, "-q", "-o", tmp_path / "model.hs")
    (tmp_path / "pairs.csv").write_text("user,item\nann,item\n")
    lines = done("predict", tmp_path / "model.hs", "--cells", tmp_path / "pairs.csv")
    assert_shown(lines, tmp_path / "model.hs", [("ann", "item")])


def test_a_first_line_that_may_be_a_pair_is_told_of(model, tmp_path):
    (tmp_path / "doubt.csv").write_text("who,what\nhal,ale\n")
    result = run("predict", model, "--cells", tmp_path / "doubt.csv")
    assert_shown(result.stdout.splitlines(), model, [("hal", "ale")])
    assert result.stderr == (
        f"note: Took the first line of {tmp_path / 'doubt.csv'} for names, 'who' of rows and 'what' of columns. If it "
        "is a pair, say --no-header.\n"
    )
    assert len(done("predict", model, "--header", "--cells", tmp_path / "doubt.csv")) == 1


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("who,what\nhal,ale\n", ["--no-header"], "Found 'who'"),
        ("zz,gin\nhal,ale\n", [], "Found 'zz'"),
        ("bob,zz\nhal,ale\n", [], "Found 'zz'"),
        ("user,item\nbob,gin\nzoe,gin\n", [], "Found 'zoe'"),
        ("when,what,who\nmon,gin,bob\n", ["--columns", "2,1"], "Found 'who'"),  # numbers are for files without a header
        ("mon,gin,bob\n", ["--columns", "2,7"], "Found no 7"),
        ("user\nbob\n", [], "Found these: user."),
    ],
)
def test_a_file_that_cannot_be_answered_writes_nothing(model, tmp_path, text, words, found):
    (tmp_path / "pairs.csv").write_text(text)
    assert found in refused("predict", model, "--cells", tmp_path / "pairs.csv", *words, "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == ["pairs.csv"]


@pytest.mark.parametrize("words", ["", "--row bob", "--row bob --col gin --col ale", "--row bob --col gin --cells x"])
def test_either_pairs_or_a_file(model, words):
    assert misused("predict", model, *words.split()).startswith("Say which cells: ")


def test_a_full_disk_leaves_nothing(model, tmp_path, full_disk):
    refused_for_room(full_disk, "predict", model, "--row", "bob", "--col", "gin", "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == []


# Models of levels.


@pytest.mark.parametrize(("method", "first"), [("ordinal", 0), ("ordnmf", 1)])
def test_levels_that_are_words(tmp_path, method, first):
    """Where unseen cells are zeros, words count from 1. A column of numbers would tell means; --level, the words."""
    words = ("bad", "fair", "good")
    lines = [f"{u},{i},{words[(2 * a + b) % 3]}" for a, u in enumerate(USERS) for b, i in enumerate(ITEMS)]
    (tmp_path / "answers.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    fit = ("--method", method, "-k", 1, "--levels", ",".join(words), "--max-iter", 5000, "-q")
    done("fit", tmp_path / "answers.csv", *fit, "-o", tmp_path / "model.hs")
    fitted, ask = halfseen.load(tmp_path / "model.hs"), ("predict", tmp_path / "model.hs", "--row", "bob", "--col")
    result = run(*ask, "gin")
    expected = fitted.predict_proba("bob", "gin") @ np.arange(3 + first)
    assert float(result.stdout.split("\t")[2]) == pytest.approx(expected, rel=1e-5)
    assert result.stderr.startswith(
        f"Predictions are means, levels counted {first}, {first + 1}, ... from 'bad'; --level"
    )
    assert len(done(*ask, "gin", "-q")) == 1
    for item in ITEMS:
        assert done(*ask, item, "--level") == [f"bob\t{item}\t{fitted.predict_level('bob', item)}"]


def test_levels_that_are_numbers_and_models_without_levels(ratings, model, tmp_path):
    fit = ("--method", "round", "-k", 1, "--loss", "linear", "--max-iter", 2000, "-o", tmp_path / "model.hs")
    done("fit", ratings.path, *fit)
    (line,) = done("predict", tmp_path / "model.hs", "--row", "bob", "--col", "wine", "--level")
    assert line == f"bob\twine\t{halfseen.load(tmp_path / 'model.hs').predict_level('bob', 'wine'):g}"
    sentence = refused("predict", model, "--row", "bob", "--col", "wine", "--level")
    assert "Found a PoissonFactorization. Leave --level out." in sentence

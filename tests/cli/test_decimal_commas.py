"""Files with decimal commas: read by every command, told of, and written as they came."""

import csv
import io

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import ITEMS, USERS
from tests.cli.program import done, names_in, refused
from tests.cli.program import halfseen as run

POINTS = "name;a;b;c\nann;1.5;2;3\nbob;;4;5\ncy;2.5;;1\ndee;3.5;5;2.25\n"
COMMAS = POINTS.replace(".", ",")


@pytest.fixture
def halves(ratings, tmp_path):
    """A folder of the ratings as halves, between semicolons, with points and with commas; and of other cells."""
    seen = ~np.isnan(ratings.values)
    write_both(tmp_path, "", np.argwhere(seen), ratings.values[seen] / 2)
    write_both(tmp_path, "other-", np.argwhere(~seen), np.full(np.sum(~seen), 1.5))
    return tmp_path


def write_both(folder, kind, cells, values):
    lines = [f"{USERS[i]};{ITEMS[j]};{value:.1f}" for (i, j), value in zip(cells, values, strict=True)]
    text = "\n".join(["user;item;rating", *lines, ""])
    (folder / f"{kind}points.csv").write_text(text)
    (folder / f"{kind}commas.csv").write_text(text.replace(".", ","))


def test_the_model_is_the_same_and_the_commas_are_told(halves):
    for name in ("points", "commas"):
        lines = done("fit", halves / f"{name}.csv", "--method", "ordinal", "-k", 1, "-o", halves / f"{name}.hs")
        assert lines[0].endswith(" Numbers have decimal commas.") == (name == "commas")
    one, other = (halfseen.load(halves / f"{name}.hs") for name in ("points", "commas"))
    np.testing.assert_array_equal(one.W_, other.W_)


def test_cells_held_out_and_histories(halves, model):
    for words in (("evaluate", model, "--test"), ("recommend", model, "-n", 1, "--history")):
        one, other = (run(*words, halves / f"other-{name}.csv") for name in ("points", "commas"))
        assert (one.exit_code, other.exit_code) == (0, 0)
        told = (other.stdout + other.stderr).replace("commas.csv", "points.csv")
        assert told.replace(" Numbers have decimal commas.", "") == one.stdout + one.stderr
        assert told.count(" Numbers have decimal commas.") == 1


def test_predictions_have_commas_where_the_cells_have(halves, model):
    for name in ("points", "commas"):
        done("predict", model, "--cells", halves / f"{name}.csv", "-q", "-o", halves / f"{name}.out.csv")
    points, commas = ((halves / f"{name}.out.csv").read_text() for name in ("points", "commas"))
    assert points.startswith("user;item;rating;prediction\n")
    assert commas == points.replace(".", ",")


def test_a_table_comes_back_as_it_came(tmp_path):
    (tmp_path / "points.csv").write_text(POINTS)
    (tmp_path / "commas.csv").write_text(COMMAS)
    told = [
        done("impute", tmp_path / f"{name}.csv", "-k", 1, "-o", tmp_path / f"{name}.out.csv")
        for name in ("points", "commas")
    ]
    points, commas = ((tmp_path / f"{name}.out.csv").read_text() for name in ("points", "commas"))
    assert commas == points.replace(".", ",")
    new, old = (list(csv.reader(io.StringIO(text), delimiter=";")) for text in (commas, COMMAS))
    assert [[a for a, b in zip(*pair, strict=True) if b] for pair in zip(new, old, strict=True)] == [
        [field for field in line if field] for line in old
    ]
    assert all(all(line) for line in new)
    assert told[1][0].endswith(" A wide table: 3 columns of numbers. Numbers have decimal commas.")
    assert told[1][1] == told[0][1] == "Filled 2 holes in 3 columns of numbers; kept as they are: name."


def test_parquet_gets_numbers(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "t.csv").write_text(COMMAS)
    done("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    done("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    text = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()), delimiter=";"))
    for name in ("a", "b", "c"):
        assert found[name] == [float(line[name].replace(",", ".")) for line in text]


def test_a_table_that_cannot_be_known_is_refused_and_told_how_to_go_on(tmp_path):
    (tmp_path / "t.csv").write_text("name;size;a\nx;1.234,5;2\ny;7;3\n")
    sentence = refused("impute", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert sentence.endswith("If these are no numbers, leave the column as it is: --skip NAME.")
    (tmp_path / "t.csv").write_text("name;size;a\nx;1,5;2.5\ny;7;3\n")
    sentence = refused("impute", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert "Found '1,5' on line 2 of t.csv, column 'size', and '2.5' on line 2 of t.csv, column 'a'." in sentence
    assert sentence.endswith("When imputing, --skip NAME leaves a column as it is.")
    assert names_in(tmp_path) == ["t.csv"]


def test_texts_without_an_order_are_told_of_the_option(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,good\nbob,x,bad\n")
    sentence = refused("fit", tmp_path / "t.csv", "--method", "ordinal", "-o", tmp_path / "model.hs")
    assert "List the texts from the lowest to the highest: --levels LOWEST,...,HIGHEST. " in sentence
    words = ("--method", "ordinal", "--levels", "bad,fine", "-o", tmp_path / "model.hs")
    assert "Correct it, or add it to --levels when fitting. " in refused("fit", tmp_path / "t.csv", *words)

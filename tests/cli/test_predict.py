"""halfseen predict: the model's mean at chosen cells."""

import csv
import re

import numpy as np
import pytest

import halfseen
from tests.cli.program import done, misused, names_in, refused, refused_for_room
from tests.cli.program import halfseen as run


def mean(fitted, row, column):
    """The model's mean of a cell, computed here."""
    i = fitted.row_labels_.tolist().index(row)
    j = fitted.column_labels_.tolist().index(column)
    return float((fitted.W_[i] * fitted.H_[j]).sum())


def assert_shown(lines, fitted, pairs):
    assert [tuple(line.split("\t")[:2]) for line in lines] == [(str(row), str(column)) for row, column in pairs]
    found = [float(line.split("\t")[2]) for line in lines]
    np.testing.assert_allclose(found, [mean(fitted, *pair) for pair in pairs], rtol=1e-5)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('when,item,user,note\nmon,gin,bob,"a, b"\ntue,ale,ann,c\nmon,gin,bob,\n')
    return path


def test_a_pair(model):
    assert_shown(done("predict", model, "--row", "bob", "--col", "wine"), halfseen.load(model), [("bob", "wine")])


def test_pairs_in_the_order_asked_for(model):
    lines = done("predict", model, "--row", "hal", "--col", "gin", "--row", "bob", "--col", "ale")
    assert_shown(lines, halfseen.load(model), [("hal", "gin"), ("bob", "ale")])


def test_pairs_of_integers(numbered_model):
    lines = done("predict", numbered_model, "--row", "22", "--col", "103")
    assert_shown(lines, halfseen.load(numbered_model), [(22, 103)])


def test_a_file_of_pairs_in_its_order(model, pairs):
    lines = done("predict", model, "--cells", pairs)
    assert_shown(lines, halfseen.load(model), [("bob", "gin"), ("ann", "ale"), ("bob", "gin")])


def test_a_file_comes_back_as_it_was_with_a_column_more(model, pairs, tmp_path):
    place = tmp_path / "out.csv"
    assert done("predict", model, "--cells", pairs, "-o", place) == [f"Saved {place} ({place.stat().st_size} bytes)."]
    with pairs.open(newline="") as before, place.open(newline="") as after:
        old, new = list(csv.reader(before)), list(csv.reader(after))
    assert [record[:-1] for record in new] == old
    assert new[0][-1] == "prediction"
    fitted = halfseen.load(model)
    expected = [mean(fitted, user, item) for _, item, user, _ in old[1:]]
    np.testing.assert_allclose([float(record[-1]) for record in new[1:]], expected, rtol=1e-12)


def test_values_beside_the_pairs_are_not_looked_at(model, ratings):
    lines = done("predict", model, "--cells", ratings.path)
    pairs = [tuple(line.split(",")[:2]) for line in ratings.path.read_text().splitlines()[1:]]
    assert_shown(lines, halfseen.load(model), pairs)


def test_named_columns(model, tmp_path):
    (tmp_path / "odd.csv").write_text("x,what,who\n1,gin,bob\n2,ale,hal\n")
    lines = done("predict", model, "--cells", tmp_path / "odd.csv", "--columns", "who,what")
    assert_shown(lines, halfseen.load(model), [("bob", "gin"), ("hal", "ale")])


def test_pairs_of_integers_without_a_header(numbered_model, tmp_path):
    (tmp_path / "bare.csv").write_text("22,103\n11,100\n")
    lines = done("predict", numbered_model, "--cells", tmp_path / "bare.csv")
    assert_shown(lines, halfseen.load(numbered_model), [(22, 103), (11, 100)])


def test_pairs_of_names_without_a_header(model, tmp_path):
    """The first line names a row and a column of the model: it is a pair, and must not be lost."""
    (tmp_path / "bare.csv").write_text("bob,gin\nhal,ale\n")
    lines = done("predict", model, "--cells", tmp_path / "bare.csv")
    assert_shown(lines, halfseen.load(model), [("bob", "gin"), ("hal", "ale")])


@pytest.mark.parametrize(("line", "found"), [("zz,gin", "Found 'zz'"), ("bob,zz", "Found 'zz'")])
def test_an_unknown_name_on_the_first_line_is_not_taken_for_a_header(model, tmp_path, line, found):
    (tmp_path / "bare.csv").write_text(f"{line}\nhal,ale\n")
    assert found in refused("predict", model, "--cells", tmp_path / "bare.csv", "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == ["bare.csv"]


def test_a_usual_header_is_one_though_a_column_has_its_name(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,item,1\nann,x,2\nbob,x,3\nbob,item,1\n")
    done("fit", tmp_path / "ratings.csv", "-k", 1, "-q", "-o", tmp_path / "model.hs")
    (tmp_path / "pairs.csv").write_text("user,item\nann,item\n")
    lines = done("predict", tmp_path / "model.hs", "--cells", tmp_path / "pairs.csv")
    assert_shown(lines, halfseen.load(tmp_path / "model.hs"), [("ann", "item")])


def test_a_first_line_that_may_be_a_pair_is_told_of(model, tmp_path):
    (tmp_path / "doubt.csv").write_text("who,what\nhal,ale\n")
    result = run("predict", model, "--cells", tmp_path / "doubt.csv")
    assert_shown(result.stdout.splitlines(), halfseen.load(model), [("hal", "ale")])
    assert result.stderr == (
        f"note: Took the first line of {tmp_path / 'doubt.csv'} for names, 'who' of rows and 'what' of columns. If it "
        "is a pair, say --no-header.\n"
    )
    assert len(done("predict", model, "--header", "--cells", tmp_path / "doubt.csv")) == 1
    assert "Found 'who'" in refused("predict", model, "--no-header", "--cells", tmp_path / "doubt.csv")


def test_columns_by_number_with_a_header_and_without(model, tmp_path):
    (tmp_path / "odd.csv").write_text("when,what,who\nmon,gin,bob\ntue,ale,hal\n")
    ask = ("predict", model, "--cells", tmp_path / "odd.csv", "--columns", "2,1")
    assert_shown(done(*ask, "--header"), halfseen.load(model), [("bob", "gin"), ("hal", "ale")])
    assert "Found 'who'" in refused(*ask)  # as when fitting, numbers are for files without a header
    (tmp_path / "odd.csv").write_text("mon,gin,bob\ntue,ale,hal\n")
    assert_shown(done(*ask), halfseen.load(model), [("bob", "gin"), ("hal", "ale")])
    assert "Found no 7" in refused(*ask[:-1], "2,7")


def test_a_file_without_a_header_comes_back_without(numbered_model, tmp_path):
    (tmp_path / "bare.csv").write_text("22,103\n11,100\n")
    done("predict", numbered_model, "--cells", tmp_path / "bare.csv", "-o", tmp_path / "out.tsv")
    records = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert [record[:2] for record in records] == [["22", "103"], ["11", "100"]]
    fitted = halfseen.load(numbered_model)
    expected = [mean(fitted, 22, 103), mean(fitted, 11, 100)]
    np.testing.assert_allclose([float(record[2]) for record in records], expected, rtol=1e-12)


def test_parquet_out(model, pairs, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    done("predict", model, "--cells", pairs, "-o", tmp_path / "out.parquet")
    columns = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert list(columns) == ["when", "item", "user", "note", "prediction"]
    assert columns["when"] == ["mon", "tue", "mon"]
    fitted = halfseen.load(model)
    expected = [mean(fitted, user, item) for user, item in zip(columns["user"], columns["item"], strict=True)]
    np.testing.assert_allclose(columns["prediction"], expected, rtol=1e-12)


def test_parquet_in(model, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"user": ["bob", "hal"], "item": ["gin", "ale"]}), tmp_path / "pairs.parquet")
    lines = done("predict", model, "--cells", tmp_path / "pairs.parquet")
    assert_shown(lines, halfseen.load(model), [("bob", "gin"), ("hal", "ale")])


def test_integer_ids_stay_integers_in_parquet(numbered_model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "pairs.csv").write_text("user,item\n22,103\n11,100\n")
    done("predict", numbered_model, "--cells", tmp_path / "pairs.csv", "-o", tmp_path / "out.parquet")
    columns = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert [type(one) for one in columns["user"]] == [int, int]
    assert columns["user"] == [22, 11]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_column_that_is_called_prediction_already_is_kept(model, tmp_path, name):
    """The new column gets another name: no name may stand there twice, and nothing may be lost."""
    (tmp_path / "pairs.csv").write_text("user,item,prediction\nbob,gin,7.5\n")
    done("predict", model, "--cells", tmp_path / "pairs.csv", "-o", tmp_path / name)
    table = halfseen.data.read_table(tmp_path / name)
    assert len(table.names) == len(set(table.names)) == 4
    assert float(table.column("prediction")[0]) == 7.5
    expected = mean(halfseen.load(model), "bob", "gin")
    np.testing.assert_allclose(float(table.cells[-1][0]), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("pair", "found"), [(("bobb", "gin"), "Found 'bobb'"), (("bob", "gym"), "Found 'gym'"), (("", "gin"), "Found ''")]
)
def test_unknown_names(model, pair, found):
    assert found in refused("predict", model, "--row", pair[0], "--col", pair[1])


def test_an_unknown_name_is_answered_with_the_near_spelling(model):
    assert "Did you mean 'dora'?" in refused("predict", model, "--row", "doras", "--col", "gin")


def test_an_unknown_name_in_a_file_writes_nothing(model, tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item\nbob,gin\nzoe,gin\n")
    assert "Found 'zoe'" in refused("predict", model, "--cells", tmp_path / "pairs.csv", "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == ["pairs.csv"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--row", "bob"],
        ["--col", "gin"],
        ["--row", "bob", "--col", "gin", "--col", "ale"],
        ["--row", "bob", "--col", "gin", "--cells", "pairs.csv"],
    ],
)
def test_either_pairs_or_a_file(model, words):
    assert misused("predict", model, *words) == "Say which cells: a --col for each --row, or --cells FILE."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cells", "nothing.csv"], "The file nothing.csv must exist."),
        (["--cells", "pairs.csv", "--columns", "user,film"], "Found no 'film'. The table has: when, item, user, note."),
        (["--cells", "pairs.csv", "-o", "nowhere/out.csv"], "does not exist."),
        (["--cells", "pairs.csv", "-o", "out.xlsx"], "Found 'out.xlsx'."),
        (["--cells", "pairs.csv", "-o", "."], "folder|directory"),
    ],
)
@pytest.mark.usefixtures("pairs")
def test_what_cannot_be(model, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert re.search(sentence, refused("predict", model, *words))
    assert names_in(tmp_path) == ["pairs.csv"]


def test_a_file_with_one_column_only(model, tmp_path):
    (tmp_path / "users.csv").write_text("user\nbob\n")
    assert "Found these: user." in refused("predict", model, "--cells", tmp_path / "users.csv")


def test_a_full_disk_leaves_nothing(model, tmp_path, full_disk):
    refused_for_room(full_disk, "predict", model, "--row", "bob", "--col", "gin", "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == []


# Models of levels.


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Answers in words, and the files of two models of them."""
    folder = tmp_path_factory.mktemp("answers")
    words = ("bad", "fair", "good")
    lines = [
        f"{user},{item},{words[(2 * u + i) % 3]}" for u, user in enumerate("abcde") for i, item in enumerate("xyz")
    ]
    (folder / "answers.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    for method in ("round", "ordinal"):
        fit = ("--method", method, "-k", 1, "--levels", ",".join(words), "--max-iter", 5000)
        done("fit", folder / "answers.csv", *fit, "-o", folder / f"{method}.hs")
    return folder


def test_the_mean_of_levels_is_that_of_their_probabilities(answers):
    fitted = halfseen.load(answers / "ordinal.hs")
    result = run("predict", answers / "ordinal.hs", "--row", "b", "--col", "z")
    (line,) = result.stdout.splitlines()
    assert result.stderr == (
        "Predictions are means, levels counted 0, 1, ... from 'bad'; --level tells the level itself.\n"
    )
    assert float(line.split("\t")[2]) == pytest.approx(fitted.predict_proba("b", "z") @ [0, 1, 2], rel=1e-5)


def test_words_count_from_1_where_unseen_cells_are_0(answers, tmp_path):
    fit = ("--method", "ordnmf", "-k", 1, "--levels", "bad,fair,good", "-o", tmp_path / "model.hs")
    done("fit", answers / "answers.csv", *fit)
    result = run("predict", tmp_path / "model.hs", "--row", "b", "--col", "z")
    mean = halfseen.load(tmp_path / "model.hs").predict_proba("b", "z") @ [0, 1, 2, 3]
    assert float(result.stdout.split("\t")[2]) == pytest.approx(mean, rel=1e-5)
    assert "levels counted 1, 2, ... from 'bad'" in result.stderr


def test_quiet_does_not_tell_how_levels_count(answers):
    assert len(done("predict", answers / "ordinal.hs", "--row", "b", "--col", "z", "-q")) == 1


@pytest.mark.parametrize("method", ["round", "ordinal"])
def test_levels_in_their_own_words(answers, tmp_path, method):
    model = answers / f"{method}.hs"
    fitted = halfseen.load(model)
    x = fitted.W_ @ fitted.H_.T
    if method == "round":
        expected = fitted.levels_[(x[..., None] > fitted.thresholds_).sum(axis=-1)]
    else:
        below = 1 / (1 + np.exp(x[..., None] - fitted.thresholds_))
        expected = fitted.levels_[(below < 0.5).sum(axis=-1)]
    pairs = [(u, i) for u in "abcde" for i in "xyz"]
    asked = [word for u, i in pairs for word in ("--row", u, "--col", i)]
    lines = done("predict", model, *asked, "--level")
    assert lines == [f"{u}\t{i}\t{level}" for (u, i), level in zip(pairs, expected.ravel(), strict=True)]
    done("predict", model, "--row", "a", "--col", "y", "--level", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == f"row,column,prediction\na,y,{expected[0, 1]}\n"


def test_levels_that_are_numbers(ratings, tmp_path):
    fit = ("--method", "round", "-k", 1, "--loss", "linear", "--max-iter", 2000, "-o", tmp_path / "model.hs")
    done("fit", ratings.path, *fit)
    fitted = halfseen.load(tmp_path / "model.hs")
    (line,) = done("predict", tmp_path / "model.hs", "--row", "bob", "--col", "wine", "--level")
    assert line == f"bob\twine\t{fitted.predict_level('bob', 'wine'):g}"


def test_a_model_without_levels_has_none_to_tell(model):
    assert refused("predict", model, "--row", "bob", "--col", "wine", "--level") == (
        "halfseen: --level must be of a model of ordered levels. Found a PoissonFactorization. Leave --level out."
    )

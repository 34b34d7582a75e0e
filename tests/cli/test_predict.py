"""halfseen predict and halfseen recommend: a model's means at chosen cells, and the best columns for rows."""

import csv
import re

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import ITEMS, USERS
from tests.cli.program import done, misused, names_in, refused, refused_for_room
from tests.cli.program import halfseen as run

NOTE = (
    "note: Predictions are means in which unseen cells count as 0; --given-seen has the mean of a cell that is seen.\n"
)


def predicted(*words):
    """The lines of halfseen predict, for a model where unseen cells are zeros, which it remarks."""
    result = run("predict", *words)
    assert (result.exit_code, result.stderr) == (0, NOTE)
    return result.stdout.splitlines()


def assert_shown(lines, model, pairs):
    """Lines of row, column and the model's mean, which is computed here."""
    fitted = halfseen.load(model)
    assert [tuple(line.split("\t")[:2]) for line in lines] == [(str(row), str(column)) for row, column in pairs]
    rows, columns = fitted.row_labels_.tolist(), fitted.column_labels_.tolist()
    means = [float((fitted.W_[rows.index(i)] * fitted.H_[columns.index(j)]).sum()) for i, j in pairs]
    np.testing.assert_allclose([float(line.split("\t")[2]) for line in lines], means, rtol=1e-5)


def test_pairs_in_the_order_asked_for(model, numbered_model):
    lines = predicted(model, "--row", "hal", "--col", "gin", "--row", "bob", "--col", "ale")
    assert_shown(lines, model, [("hal", "gin"), ("bob", "ale")])
    assert_shown(predicted(numbered_model, "--row", "22", "--col", "103"), numbered_model, [(22, 103)])
    assert "1_1" in refused("predict", numbered_model, "--row", "1_1", "--col", "100")  # which is not row 11


@pytest.mark.parametrize("method", ["popularity", "item-graph", "implicit-mf"])
def test_scores_to_rank_by_are_no_values(ratings, method, tmp_path):
    path = tmp_path / "m.hs"
    run("fit", ratings.path, "--method", method, "-q", "-o", path)
    result = run("predict", path, "--row", "bob", "--col", "gin")
    assert (result.exit_code, result.stderr) == (0, "note: Predictions are scores by which columns are ranked.\n")
    expected = halfseen.load(path).predict("bob", "gin")
    assert float(result.stdout.split("\t")[2]) == pytest.approx(float(expected), rel=1e-5)
    assert "--given-seen" in refused("predict", path, "--row", "bob", "--col", "gin", "--given-seen")


def test_a_file_comes_back_with_one_more_column(model, tmp_path):
    pairs, place = tmp_path / "pairs.csv", tmp_path / "out.csv"
    pairs.write_text('when,item,user,note\nmon,gin,bob,"a, b"\ntue,ale,ann,c\nmon,gin,bob,\n')
    assert_shown(predicted(model, "--cells", pairs), model, [("bob", "gin"), ("ann", "ale"), ("bob", "gin")])
    assert predicted(model, "--cells", pairs, "-o", place) == [f"Saved {place} ({place.stat().st_size} bytes)."]
    with pairs.open(newline="") as before, place.open(newline="") as after:
        old, new = list(csv.reader(before)), list(csv.reader(after))
    assert [record[:-1] for record in new] == old
    assert new[0][-1] == "prediction"
    expected = halfseen.load(model).predict([record[2] for record in old[1:]], [record[1] for record in old[1:]])
    np.testing.assert_allclose([float(record[-1]) for record in new[1:]], expected, rtol=1e-12)


def test_predictions_have_decimal_commas_where_the_cells_have(model, tmp_path):
    text = "user;item;amount\nbob;gin;1.5\nann;ale;2\n"
    for name in ("points", "commas"):
        (tmp_path / f"{name}.csv").write_text(text if name == "points" else text.replace(".", ","))
        done("predict", model, "--cells", tmp_path / f"{name}.csv", "-q", "-o", tmp_path / f"{name}.out.csv")
    points, commas = ((tmp_path / f"{name}.out.csv").read_text() for name in ("points", "commas"))
    assert points.startswith("user;item;amount;prediction\n")
    assert commas == points.replace(".", ",")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user,item,rating\nbob,gin,5\nhal,ale,?\n", []),  # values beside the pairs are not used
        ("x,what,who\n1,gin,bob\n2,ale,hal\n", ["--columns", "who,what"]),
        ("bob,gin\nhal,ale\n", []),  # the first line names a row and a column of the model
        ("when,what,who\nmon,gin,bob\ntue,ale,hal\n", ["--columns", "2,1", "--header"]),
        ("mon,gin,bob\ntue,ale,hal\n", ["--columns", "2,1"]),
    ],
)
def test_the_pairs_of_a_file(model, tmp_path, text, words):
    (tmp_path / "pairs.csv").write_text(text)
    lines = predicted(model, "--cells", tmp_path / "pairs.csv", *words)
    assert_shown(lines, model, [("bob", "gin"), ("hal", "ale")])


def test_headers_that_may_be_pairs(model, tmp_path):
    """A usual header is one though a column of the model has its name; another is noted, unless --header is given."""
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,item,1\nann,x,2\nbob,x,3\nbob,item,1\n")
    done("fit", tmp_path / "ratings.csv", "-k", 1, "-q", "-o", tmp_path / "model.hs")
    (tmp_path / "pairs.csv").write_text("user,item\nann,item\n")
    lines = predicted(tmp_path / "model.hs", "--cells", tmp_path / "pairs.csv")
    assert_shown(lines, tmp_path / "model.hs", [("ann", "item")])
    (tmp_path / "unsure.csv").write_text("who,what\nhal,ale\n")
    result = run("predict", model, "--cells", tmp_path / "unsure.csv")
    assert_shown(result.stdout.splitlines(), model, [("hal", "ale")])
    assert re.match(r"note: .*'who' .*'what' .*--no-header", result.stderr.removeprefix(NOTE))
    assert len(predicted(model, "--header", "--cells", tmp_path / "unsure.csv")) == 1


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("who,what\nhal,ale\n", ["--no-header"], "Found 'who'"),
        ("zz,gin\nhal,ale\n", [], "Found 'zz'"),
        ("when,what,who\nmon,gin,bob\n", ["--columns", "2,1"], "Found 'who'"),  # numbers are for files without a header
        ("mon,gin,bob\n", ["--columns", "2,7"], "Found no 7"),
        ("user\nbob\n", [], "--columns user,item"),
    ],
)
def test_a_file_that_cannot_be_answered_writes_nothing(model, tmp_path, text, words, found):
    (tmp_path / "pairs.csv").write_text(text)
    words = [*words, "--strict", "-o", tmp_path / "out.csv"]
    assert found in refused("predict", model, "--cells", tmp_path / "pairs.csv", *words)
    assert names_in(tmp_path) == ["pairs.csv"]


def test_unknown_pairs_of_a_file_are_left_empty_and_counted(model, tmp_path):
    (tmp_path / "pairs.csv").write_text("user,item\nbob,gin\nzoe,ale\nhal,mead\nhal,ale\n")
    ask = ("predict", model, "--cells", tmp_path / "pairs.csv")
    result = run(*ask)
    assert "Found 2 of 4 that are not, the first 'zoe', 'ale'. Their predictions are empty. --strict" in result.stderr
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[2] == "" for line in lines] == [False, True, True, False]
    assert_shown([result.stdout.splitlines()[place] for place in (0, 3)], model, [("bob", "gin"), ("hal", "ale")])
    assert run(*ask, "-q", "-o", tmp_path / "out.csv").exit_code == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [line["prediction"] == "" for line in csv.DictReader(file)] == [False, True, True, False]
    assert "'zoe'" in refused(*ask, "--strict")
    (tmp_path / "pairs.csv").write_text("user,item\nzoe,mead\n")
    assert "'zoe'" in refused(*ask)  # nothing at all can be predicted


def test_either_pairs_or_a_file_and_either_users_or_histories(model):
    for words in ("", "--row bob", "--row bob --col gin --col ale", "--row bob --col gin --cells x"):
        assert "--cells" in misused("predict", model, *words.split())
    for words in ("", "-u bob --history new.csv"):
        assert "--history" in misused("recommend", model, *words.split())


@pytest.mark.parametrize("command", ["predict --row bob --col gin", "recommend -u bob"])
def test_a_full_disk_leaves_nothing(model, tmp_path, full_disk, command):
    name, *words = command.split()
    refused_for_room(full_disk, name, model, *words, "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("method", "first"), [("ordinal", 0), ("ordnmf", 1)])
def test_levels_that_are_words(tmp_path, method, first):
    """Where unseen cells are zeros, words count from 1. Predictions are means; --level gives the words."""
    words = ("bad", "fair", "good")
    lines = [f"{u},{i},{words[(2 * a + b) % 3]}" for a, u in enumerate(USERS) for b, i in enumerate(ITEMS)]
    (tmp_path / "answers.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    fit = ("--method", method, "-k", 1, "--levels", ",".join(words), "--max-iter", 5000, "-q")
    done("fit", tmp_path / "answers.csv", *fit, "-o", tmp_path / "model.hs")
    fitted, ask = halfseen.load(tmp_path / "model.hs"), ("predict", tmp_path / "model.hs", "--row", "bob", "--col")
    result = run(*ask, "gin")
    expected = fitted.predict_proba("bob", "gin") @ np.arange(3 + first)
    assert float(result.stdout.split("\t")[2]) == pytest.approx(expected, rel=1e-5)
    assert f"{first}, {first + 1}, ... from 'bad'; --level" in result.stderr
    assert len(done(*ask, "gin", "-q")) == 1
    for item in ITEMS:
        assert done(*ask, item, "--level") == [f"bob\t{item}\t{fitted.predict_level('bob', item)}"]


def test_values_of_cells_that_are_seen(model, tmp_path):
    """E[y | y > 0], with titles beside it."""
    fitted = halfseen.load(model)
    ask = ("predict", model, "--row", "hal", "--col", "gin", "--row", "bob", "--col", "ale")
    lines = [line.split("\t") for line in done(*ask, "--given-seen")]
    expected = fitted.predict(["hal", "bob"], ["gin", "ale"], given_seen=True)
    np.testing.assert_allclose([float(line[2]) for line in lines], expected, rtol=1e-5)
    assert np.all(expected > fitted.predict(["hal", "bob"], ["gin", "ale"]))
    assert "--given-seen" in misused(*ask, "--level", "--given-seen")
    (tmp_path / "titles.csv").write_text("id,title\ngin,London Dry\n")
    assert [line.split("\t")[3] for line in done(*ask, "-q", "--names", tmp_path / "titles.csv")] == ["London Dry", ""]
    (tmp_path / "pairs.csv").write_text("user,item,title\nbob,gin,x\n")
    words = ("--cells", tmp_path / "pairs.csv", "--names", tmp_path / "titles.csv", "-q", "-o", tmp_path / "out.csv")
    done("predict", model, *words)
    with (tmp_path / "out.csv").open(newline="") as file:
        header, line = csv.reader(file)
    assert header == ["user", "item", "title", "prediction", "title_"]
    assert line[-1] == "London Dry"


# recommend


def shown(*words):
    """What is printed, as a dict from rows to lists of (rank, column, score)."""
    answers, row = {}, None
    for line in done("recommend", *words):
        if match := re.fullmatch(r"  +(\d+)  (\S+) +(\S+)", line):
            answers[row].append((int(match[1]), match[3], float(match[2])))
        else:
            row = line.removesuffix(":")
            answers[row] = []
    return answers


def best(model, user, allowed):
    """The allowed columns with the model's means, computed here, the best first."""
    fitted = halfseen.load(model)
    scores = fitted.H_ @ fitted.W_[fitted.row_labels_.tolist().index(user)]
    found = zip(fitted.column_labels_.tolist(), scores.tolist(), strict=True)
    return sorted(((column, score) for column, score in found if column in allowed), key=lambda pair: -pair[1])


def unseen_by(ratings, user):
    row = ratings.values[USERS.index(user)]
    return [item for item, value in zip(ITEMS, row, strict=True) if np.isnan(value)]


def assert_answers(answers, expected):
    assert [(rank, item) for rank, item, _ in answers] == [(i, item) for i, (item, _) in enumerate(expected, 1)]
    np.testing.assert_allclose([score for *_, score in answers], [score for _, score in expected], rtol=1e-3)


def test_users_get_the_best_of_what_they_have_not_seen_in_the_order_asked_for(model, ratings):
    answers = shown(model, "--user", "hal", "-u", "ann", "-n", 1)
    assert list(answers) == ["hal", "ann"]
    for user, found in answers.items():
        assert_answers(found, best(model, user, unseen_by(ratings, user))[:1])
    answers = shown(model, "-u", "bob", "--include-seen", "--exclude", "gin", "--exclude", "rum")
    assert_answers(answers["bob"], best(model, "bob", set(ITEMS) - {"gin", "rum"}))
    words = [word for item in ITEMS for word in ("--exclude", item)]
    assert len(done("recommend", model, "-u", "bob", *words)) == 1  # nothing is left


def test_integer_ids_and_positions(numbered_model, tmp_path):
    answers = shown(numbered_model, "-u", "22", "--include-seen", "--exclude", "101")["22"]
    assert [int(item) for _, item, _ in answers] == [i for i, _ in best(numbered_model, 22, [100, 102, 103, 104, 105])]
    assert "Found 23 " in refused("recommend", numbered_model, "-u", "23", "--strict")
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,\n3,4,5\n2,,9\n")
    place = tmp_path / "model.hs"
    done("fit", tmp_path / "wide.csv", "--layout", "wide", "--method", "nmf", "-k", 1, "-o", place)
    assert [item for _, item, _ in shown(place, "-u", "2")["2"]] == ["b"]
    assert "'ann'" in refused("recommend", place, "-u", "ann")


@pytest.mark.parametrize("ending", [["-o", "best.csv"], []], ids=["to a file", "shown"])
def test_new_users_by_their_history(model, elsewhere, ending):
    """How the history was read is printed beside what is shown, not among it."""
    (elsewhere / "new.csv").write_text("user,item,rating\nzoe,gin,4\nyan,wine,2\nzoe,ale,1\n")
    ask = (model, "--history", "new.csv", "-n", 2)
    result = run("recommend", *ask, *ending)
    assert (result.stdout if ending else result.stderr).startswith("Read new.csv: 2 x 6, 3 cells seen (0.25 of all)")
    assert ("Read" in result.stdout) == bool(ending)
    answers = shown(*ask, "-q")
    ids, scores = halfseen.load(model).recommend([{"gin": 4, "ale": 1}, {"wine": 2}], n=2)
    assert list(answers) == ["zoe", "yan"]
    for found, *expected in zip(answers.values(), ids.tolist(), scores.tolist(), strict=True):
        assert_answers(found, list(zip(*expected, strict=True)))


def test_a_table_with_a_line_for_every_answer(model, ratings, tmp_path):
    """Nothing is left for cid when all that cid has not seen is excluded, while something is for the others."""
    place, excluded = tmp_path / "out.csv", unseen_by(ratings, "cid")
    words = [word for item in excluded for word in ("--exclude", item)]
    lines = done("recommend", model, "-u", "bob", "-u", "cid", "-u", "dora", *words, "-o", place)
    assert lines == [f"Saved {place} ({place.stat().st_size} bytes)."]
    with place.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["row", "rank", "column", "score"]
    assert {row for row, *_ in lines} == {"bob", "dora"}
    for user in ("bob", "dora"):
        answers = [(int(rank), item, float(score)) for row, rank, item, score in lines if row == user]
        assert_answers(answers, best(model, user, set(unseen_by(ratings, user)) - set(excluded)))

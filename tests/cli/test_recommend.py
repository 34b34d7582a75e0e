"""halfseen recommend: the best columns for rows."""

import csv
import re

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import ITEMS, USERS
from tests.cli.program import done, misused, names_in, program, refused, refused_for_room


def shown(lines):
    """What was printed, as a dict from rows to lists of (rank, column, score)."""
    answers, row = {}, None
    for line in lines:
        if match := re.fullmatch(r"  +(\d+)  (\S+) +(\S+)", line):
            answers[row].append((int(match[1]), match[3], float(match[2])))
        else:
            row = line.removesuffix(":")
            answers[row] = []
    return answers


def means(fitted, user):
    """The model's mean of every column, computed here."""
    row = fitted.row_labels_.tolist().index(user)
    scores = fitted.H_ @ fitted.W_[row]
    return dict(zip(fitted.column_labels_.tolist(), scores, strict=True))


def best(scores, allowed):
    return sorted(allowed, key=lambda item: -scores[item])


def unseen_by(ratings, user):
    row = ratings.values[USERS.index(user)]
    return [item for item, value in zip(ITEMS, row, strict=True) if np.isnan(value)]


def assert_answers(answers, scores, allowed):
    expected = best(scores, allowed)
    assert [rank for rank, _, _ in answers] == list(range(1, len(expected) + 1))
    assert [item for _, item, _ in answers] == expected
    np.testing.assert_allclose([score for _, _, score in answers], [scores[item] for item in expected], rtol=1e-3)


def test_a_user_gets_the_best_of_what_was_not_seen(model, ratings):
    answers = shown(done("recommend", model, "--user", "bob"))
    assert list(answers) == ["bob"]
    assert_answers(answers["bob"], means(halfseen.load(model), "bob"), unseen_by(ratings, "bob"))


def test_several_users_in_the_order_asked_for(model, ratings):
    answers = shown(done("recommend", model, "-u", "hal", "-u", "ann", "-n", 1))
    assert list(answers) == ["hal", "ann"]
    fitted = halfseen.load(model)
    for user, found in answers.items():
        scores = means(fitted, user)
        assert_answers(found, scores, best(scores, unseen_by(ratings, user))[:1])


def test_a_user_asked_for_twice_is_answered_twice(model):
    once = done("recommend", model, "-u", "bob")
    assert done("recommend", model, "-u", "bob", "-u", "bob") == once + once


def test_integer_ids(numbered_model):
    answers = shown(done("recommend", numbered_model, "-u", "22", "--include-seen"))
    scores = means(halfseen.load(numbered_model), 22)
    assert [int(item) for _, item, _ in answers["22"]] == best(scores, scores)


def test_rows_without_names_are_asked_for_by_position(tmp_path):
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,\n3,4,5\n2,,9\n")
    place = tmp_path / "model.hs"
    done("fit", tmp_path / "wide.csv", "--layout", "wide", "--method", "nmf", "-k", 1, "-o", place)
    answers = shown(done("recommend", place, "-u", "2"))
    assert [item for _, item, _ in answers["2"]] == ["b"]
    assert "by position, 0 to 2. Found ['ann']" in refused("recommend", place, "-u", "ann")
    assert "must be 0 to 2. Found 3" in refused("recommend", place, "-u", "3")


def test_what_was_seen_too(model):
    scores = means(halfseen.load(model), "bob")
    assert_answers(shown(done("recommend", model, "-u", "bob", "--include-seen"))["bob"], scores, ITEMS)


def test_what_is_never_wanted(model):
    scores = means(halfseen.load(model), "bob")
    words = ("--include-seen", "--exclude", "gin", "--exclude", "rum")
    answers = shown(done("recommend", model, "-u", "bob", *words))["bob"]
    assert_answers(answers, scores, [item for item in ITEMS if item not in ("gin", "rum")])


def test_integer_ids_that_are_never_wanted(numbered_model):
    answers = shown(done("recommend", numbered_model, "-u", "22", "--include-seen", "--exclude", "101"))["22"]
    assert sorted(int(item) for _, item, _ in answers) == [100, 102, 103, 104, 105]


def test_nothing_left_is_said(model):
    words = [word for item in ITEMS for word in ("--exclude", item)]
    assert done("recommend", model, "-u", "bob", *words) == [
        "Nothing is left to recommend: everything was seen or excluded."
    ]


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("user,item,rating\nzoe,gin,4\nyan,wine,2\nzoe,ale,1\n")
    return path


def test_new_users_by_their_history(model, history):
    answers = shown(done("recommend", model, "--history", history, "-n", 2, "-q"))
    expected = halfseen.load(model).recommend([{"gin": 4, "ale": 1}, {"wine": 2}], n=2)
    assert list(answers) == ["zoe", "yan"]
    for found, ids, scores in zip(answers.values(), *expected, strict=True):
        assert [item for _, item, _ in found] == ids.tolist()
        np.testing.assert_allclose([score for _, _, score in found], scores, rtol=1e-3)
    assert {"gin", "ale"}.isdisjoint(item for _, item, _ in answers["zoe"])


def test_new_users_with_what_they_have_seen(model, history):
    answers = shown(done("recommend", model, "--history", history, "--include-seen", "-q"))
    assert sorted(item for _, item, _ in answers["zoe"]) == sorted(ITEMS)


def test_a_table_with_a_row_for_every_user(model, ratings, tmp_path):
    done("recommend", model, "-u", "bob", "-u", "cid", "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        records = list(csv.DictReader(file))
    fitted = halfseen.load(model)
    expected = []
    for user in ("bob", "cid"):
        scores = means(fitted, user)
        ordered = best(scores, unseen_by(ratings, user))
        expected += [(user, rank, item, scores[item]) for rank, item in enumerate(ordered, 1)]
    found = [(one["row"], int(one["rank"]), one["column"], float(one["score"])) for one in records]
    assert [line[:3] for line in found] == [line[:3] for line in expected]
    np.testing.assert_allclose([line[3] for line in found], [line[3] for line in expected], rtol=1e-12)


def test_a_table_tells_only_where_it_is(model, tmp_path):
    place = tmp_path / "out.csv"
    assert done("recommend", model, "-u", "bob", "-o", place) == [f"Saved {place} ({place.stat().st_size} bytes)."]
    assert names_in(tmp_path) == ["out.csv"]


def test_rows_that_ran_out_have_fewer_lines(model, ratings, tmp_path):
    """Nothing is left for cid when all that cid has not seen is excluded, while something is for dora."""
    words = [word for item in unseen_by(ratings, "cid") for word in ("--exclude", item)]
    done("recommend", model, "-u", "cid", "-u", "dora", *words, "-o", tmp_path / "out.csv")
    users = [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    left = set(unseen_by(ratings, "dora")) - set(unseen_by(ratings, "cid"))
    assert users == ["dora"] * len(left)
    assert left


def test_parquet_keeps_ids_and_scores_as_they_are(numbered_model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    done("recommend", numbered_model, "-u", "22", "-n", 2, "--include-seen", "-o", tmp_path / "out.parquet")
    columns = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    scores = means(halfseen.load(numbered_model), 22)
    assert columns["row"] == [22, 22]
    assert columns["rank"] == [1, 2]
    assert columns["column"] == best(scores, scores)[:2]
    assert all(type(one) is int for name in ("row", "rank", "column") for one in columns[name])
    np.testing.assert_allclose(columns["score"], [scores[item] for item in columns["column"]], rtol=1e-12)


def test_an_unknown_user_is_answered_with_the_near_spelling(model):
    sentence = refused("recommend", model, "-u", "doras")
    assert f"one of the {len(USERS)} rows that were fitted. Found 'doras'" in sentence
    assert "Did you mean 'dora'?" in sentence


def test_the_way_for_a_new_user_is_an_option_of_this_program(model):
    assert "--history" in refused("recommend", model, "-u", "zoe")


def test_an_unknown_integer_id(numbered_model):
    assert "Found 23 (1 unknown in all)" in refused("recommend", numbered_model, "-u", "23")
    assert "Found 'bob'" in refused("recommend", numbered_model, "-u", "bob")


def test_an_unknown_item(model, tmp_path):
    assert "Found 'wime'" in refused("recommend", model, "-u", "bob", "--exclude", "wime")
    (tmp_path / "new.csv").write_text("user,item,rating\nzoe,tea,4\n")
    sentence = refused("recommend", model, "--history", tmp_path / "new.csv")
    assert f"Columns must be among the {len(ITEMS)} that were fitted. Found 'tea'" in sentence


@pytest.mark.parametrize("words", [[], ["-u", "bob", "--history", "new.csv"]])
def test_either_users_or_histories(model, words):
    assert misused("recommend", model, *words) == "Say for whom: either --user (once or more), or --history FILE."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-u", "bob", "-n", "0"], "n must be a whole number of at least 1. Found 0."),
        (["--history", "nothing.csv"], "The file nothing.csv must exist."),
        (["-u", "bob", "-o", "out.xlsx"], "Found 'out.xlsx'."),
        (["-u", "bob", "-o", "nowhere/out.csv"], "does not exist."),
        (["-u", "bob", "-o", "."], "folder|directory"),
    ],
)
def test_what_cannot_be(model, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert re.search(sentence, refused("recommend", model, *words))
    assert names_in(tmp_path) == []


def test_a_file_that_is_no_model(ratings, tmp_path):
    assert "Could not read 'nothing.hs'" in refused("recommend", "nothing.hs", "-u", "bob")
    assert f"{str(ratings.path)!r} was not." in refused("recommend", ratings.path, "-u", "bob")


def test_a_model_that_is_cut_off(model, tmp_path):
    half = tmp_path / "half.hs"
    half.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    assert "is cut off or damaged" in refused("recommend", half, "-u", "bob")


def test_a_full_disk_leaves_nothing(model, tmp_path, full_disk):
    refused_for_room(full_disk, "recommend", model, "-u", "bob", "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == []


def test_the_real_program_says_the_same(model):
    result = program("recommend", model, "-u", "bob")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == done("recommend", model, "-u", "bob")


@pytest.mark.parametrize("method", ["round", "ordinal"])
def test_models_of_thresholds_recommend_by_x(ratings, tmp_path, method):
    path = tmp_path / "model.hs"
    done("fit", ratings.path, "--method", method, "-k", 2, "--max-iter", 2000, "-o", path)
    scores = means(halfseen.load(path), "bob")
    assert_answers(shown(done("recommend", path, "--user", "bob"))["bob"], scores, unseen_by(ratings, "bob"))


def test_a_new_history_of_levels_is_folded_in(ratings, tmp_path):
    path = tmp_path / "model.hs"
    done("fit", ratings.path, "--method", "ordinal", "-k", 2, "--max-iter", 2000, "-o", path)
    (tmp_path / "new.csv").write_text("user,item,rating\nzoe,gin,1\nzoe,ale,4\n")
    fitted = halfseen.load(path)
    scores = dict(
        zip(fitted.column_labels_.tolist(), fitted.H_ @ fitted.transform([{"gin": 1, "ale": 4}])[0], strict=True)
    )
    answers = shown(done("recommend", path, "--history", tmp_path / "new.csv", "-q"))
    assert_answers(answers["zoe"], scores, [item for item in ITEMS if item not in ("gin", "ale")])

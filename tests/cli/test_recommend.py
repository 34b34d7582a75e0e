"""halfseen recommend: the best columns for rows."""

import csv
import re

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import ITEMS, USERS
from tests.cli.program import done, misused, names_in, refused, refused_for_room
from tests.cli.program import halfseen as run


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


def test_what_was_seen_too_and_what_is_never_wanted(model):
    assert_answers(shown(model, "-u", "bob", "--include-seen")["bob"], best(model, "bob", ITEMS))
    answers = shown(model, "-u", "bob", "--include-seen", "--exclude", "gin", "--exclude", "rum")
    assert_answers(answers["bob"], best(model, "bob", set(ITEMS) - {"gin", "rum"}))


def test_integer_ids(numbered_model):
    answers = shown(numbered_model, "-u", "22", "--include-seen", "--exclude", "101")["22"]
    expected = best(numbered_model, 22, [100, 102, 103, 104, 105])
    assert [int(item) for _, item, _ in answers] == [item for item, _ in expected]
    assert "Found 23 (1 unknown in all)" in refused("recommend", numbered_model, "-u", "23")


def test_rows_without_names_are_asked_for_by_position(tmp_path):
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,\n3,4,5\n2,,9\n")
    place = tmp_path / "model.hs"
    done("fit", tmp_path / "wide.csv", "--layout", "wide", "--method", "nmf", "-k", 1, "-o", place)
    assert [item for _, item, _ in shown(place, "-u", "2")["2"]] == ["b"]
    assert "by position, 0 to 2. Found ['ann']" in refused("recommend", place, "-u", "ann")
    assert "must be 0 to 2. Found 3" in refused("recommend", place, "-u", "3")


def test_nothing_left_is_said(model):
    words = [word for item in ITEMS for word in ("--exclude", item)]
    assert done("recommend", model, "-u", "bob", *words) == [
        "Nothing is left to recommend: everything was seen or excluded."
    ]


@pytest.mark.parametrize("ending", [["-o", "best.csv"], []], ids=["to a file", "shown"])
def test_new_users_by_their_history(model, elsewhere, ending):
    """How the history was read is told beside what is shown, not among it."""
    (elsewhere / "new.csv").write_text("user,item,rating\nzoe,gin,4\nyan,wine,2\nzoe,ale,1\n")
    ask = (model, "--history", "new.csv", "-n", 2)
    result = run("recommend", *ask, *ending)
    told = result.stdout if ending else result.stderr
    assert told.startswith("Read new.csv: 2 x 6, 3 cells seen (0.25 of all), values 1 to 4. Rows are from column")
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
    told = done("recommend", model, "-u", "bob", "-u", "cid", "-u", "dora", *words, "-o", place)
    assert told == [f"Saved {place} ({place.stat().st_size} bytes)."]
    with place.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["row", "rank", "column", "score"]
    assert {row for row, *_ in lines} == {"bob", "dora"}
    for user in ("bob", "dora"):
        answers = [(int(rank), item, float(score)) for row, rank, item, score in lines if row == user]
        assert_answers(answers, best(model, user, set(unseen_by(ratings, user)) - set(excluded)))


def test_unknown_names(model, tmp_path):
    sentence = refused("recommend", model, "-u", "doras")
    assert f"one of the {len(USERS)} rows that were fitted. Found 'doras'" in sentence
    assert "Did you mean 'dora'?" in sentence
    (tmp_path / "new.csv").write_text("user,item,rating\nzoe,tea,4\n")
    sentence = refused("recommend", model, "--history", tmp_path / "new.csv")
    assert f"Columns must be among the {len(ITEMS)} that were fitted. Found 'tea'" in sentence


@pytest.mark.parametrize("words", [[], ["-u", "bob", "--history", "new.csv"]])
def test_either_users_or_histories(model, words):
    assert misused("recommend", model, *words).startswith("Say for whom: ")


def test_a_full_disk_leaves_nothing(model, tmp_path, full_disk):
    refused_for_room(full_disk, "recommend", model, "-u", "bob", "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == []

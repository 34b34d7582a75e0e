"""halfseen recommend for many, and halfseen similar: files of ids and names, what is unknown, tables in blocks."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import halfseen
from halfseen.cli import recommend as module
from tests.cli.conftest import ITEMS, USERS
from tests.cli.program import done, misused, names_in, refused, refused_for_room
from tests.cli.program import halfseen as run

TITLES = 'itemId,title,genres\nale,"Ale, pale",x\ngin,London Dry,y\nsake,Junmai,z\nrum,Añejo,z\nbeer,Stout,z\n'


@pytest.fixture
def titles(tmp_path):
    path = tmp_path / "titles.csv"
    path.write_text(TITLES, encoding="utf-8")
    return path


def lines_of(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("ending", ["csv", "parquet", "tsv.gz"])
@pytest.mark.parametrize("at_a_time", [3, 1000])
def test_everybody_gets_what_the_library_says_block_by_block(model, titles, tmp_path, ending, at_a_time, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", at_a_time)
    place = tmp_path / f"all.{ending}"
    lines = done("recommend", model, "--all", "-n", 2, "--names", titles, "-o", place)
    assert lines == [f"Saved {place} ({place.stat().st_size} bytes)."] or "KB" in lines[0]
    if ending == "tsv.gz":
        import gzip

        text = gzip.decompress(place.read_bytes()).decode()
        found = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    else:
        found = lines_of(place)
    fitted = halfseen.load(model)
    expected = fitted.recommend(fitted.row_labels_, n=2)
    by_title = {"ale": "Ale, pale", "gin": "London Dry", "rum": "Añejo", "beer": "Stout"}
    nothing = None if ending == "parquet" else ""
    assert [(one["row"], int(one["rank"]), one["column"], float(one["score"]), one["title"]) for one in found] == [
        (row, rank + 1, expected.ids[place, rank], expected.scores[place, rank],
         by_title.get(expected.ids[place, rank], nothing))
        for place, row in enumerate(fitted.row_labels_) for rank in range(expected.ids.shape[1])
        if expected.scores[place, rank] == expected.scores[place, rank]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("u.txt", "bob\nnobody\nann\n"),
        ("u.csv", "user_id,note\nbob,x\nnobody,y\nann,z\n"),
        ("u.csv", "bob\nnobody\nann\n"),
    ],
)
def test_users_of_a_file_of_whom_one_is_unknown(model, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    result = run("recommend", model, "--users", tmp_path / name, "-n", 2, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert result.stderr == (
        "note: Rows should be among the 8 that were fitted. Found 1 of 3 that are not, the first 'nobody'. "
        "They get the most popular columns. --strict refuses them.\n"
    )
    found = lines_of(tmp_path / "out.csv")
    known = {one["row"]: one["known"] for one in found}
    assert list(known) == ["bob", "nobody", "ann"]
    assert known == {"bob": "True", "nobody": "False", "ann": "True"}
    fitted = halfseen.load(model)
    times = fitted.seen_.per_column()
    order = fitted.column_labels_[np.argsort(-times, kind="stable")[:2]].tolist()
    assert [one["column"] for one in found if one["row"] == "nobody"] == order
    assert "nobody" in refused("recommend", model, "--users", tmp_path / name, "--strict")


def test_candidates_and_exclusions_of_files(model, tmp_path):
    (tmp_path / "stock.csv").write_text("item\nale\ngin\nsake\nrum\n")
    (tmp_path / "never.txt").write_text("rum\nmead\n")
    words = (
        "-u",
        "bob",
        "--include-seen",
        "--items",
        tmp_path / "stock.csv",
        "--exclude-items",
        tmp_path / "never.txt",
    )
    result = run("recommend", model, *words, "--exclude", "wine", "--json")
    assert {one["column"] for one in json.loads(result.stdout)} == {"ale", "gin"}
    notes = result.stderr.splitlines()
    assert len(notes) == 2
    assert notes[0].startswith("note: Columns of --items should be among the 6")
    assert "Found 1 of 4 that are not, the first 'sake'. They were left out. --strict" in notes[0]
    assert notes[1].startswith("note: Columns of --exclude should be among the 6")
    assert "'mead'" in notes[1]
    assert "sake" in refused("recommend", model, *words, "--strict")


def test_histories_of_unknown_items(model, tmp_path):
    (tmp_path / "new.csv").write_text("user,item,rating\nzoe,gin,4\nyan,wine,2\nzoe,sake,1\nzoe,ale,1\n")
    result = run("recommend", model, "--history", tmp_path / "new.csv", "-n", 2, "--json", "-q")
    assert "Found 1 that are not, the first 'sake'. Their cells were left out, 1 in all. --strict" in result.stderr
    expected = halfseen.load(model).recommend([{"gin": 4, "ale": 1}, {"wine": 2}], n=2)
    assert [one["column"] for one in json.loads(result.stdout)] == expected.ids.reshape(-1).tolist()
    assert {one["row"] for one in json.loads(result.stdout)} == {"zoe", "yan"}
    assert "sake" in refused("recommend", model, "--history", tmp_path / "new.csv", "--strict")


def test_one_way_to_name_users(model, tmp_path):
    for words in ("", "--all -u bob", "--all --users x.csv", "-u bob --history x.csv"):
        assert "--all" in misused("recommend", model, *words.split())


def test_titles_are_shown(model, titles):
    lines = done("recommend", model, "-u", "bob", "--include-seen", "--names", titles)
    shown = [line.split(None, 3)[2:] for line in lines[1:]]
    of_items = {"gin": "London Dry", "ale": "Ale, pale", "rum": "Añejo", "beer": "Stout"}
    assert sorted(shown) == sorted([item, of_items[item]] if item in of_items else [item] for item in ITEMS)


@pytest.mark.parametrize("text", ["ale,Pale\ngin,Dry\n", "title,movieId\nPale,ale\nDry,gin\n", "ale\tPale\ngin\tDry\n"])
def test_names_with_and_without_a_header_and_in_any_order(model, tmp_path, text):
    path = tmp_path / ("t.tsv" if "\t" in text else "t.csv")
    path.write_text(text)
    (line,) = (one for one in done("similar", model, "--item", "ale", "--names", path) if " gin" in one)
    assert line.endswith("gin  Dry")


def test_names_of_something_else(model, tmp_path):
    (tmp_path / "t.csv").write_text("id,title\nx,1\ny,2\n")
    result = run("recommend", model, "-u", "bob", "--names", tmp_path / "t.csv")
    assert result.exit_code == 0
    assert "ids of the model. Found none of them" in result.stderr
    (tmp_path / "t.csv").write_text("id\nx\n")
    assert "titles" in refused("recommend", model, "-u", "bob", "--names", tmp_path / "t.csv")


def test_unknown_items_are_left_out_beside_known_ones(model):
    words = ("similar", model, "--item", "nothing", "--item", "gin", "-n", 2)
    result = run(*words)
    assert result.stdout.splitlines() == done("similar", model, "--item", "gin", "-n", 2)
    assert "1 of 2 that are not, the first 'nothing'" in result.stderr
    assert "nothing" in refused(*words, "--strict")


def test_similar_items_and_users(model, titles, tmp_path):
    fitted = halfseen.load(model)
    words = ("--item", "gin", "--item", "ale", "-n", 3, "--names", titles, "--json")
    found = json.loads(run("similar", model, *words).stdout)
    ids, scores = fitted.similar_items(["gin", "ale"], n=3)
    assert [(one["column"], one["rank"], one["similar"]) for one in found] == [
        (item, rank + 1, ids[place, rank]) for place, item in enumerate(("gin", "ale")) for rank in range(3)
    ]
    np.testing.assert_allclose([one["score"] for one in found], scores.reshape(-1))
    assert {one["similar"]: one["title"] for one in found}["ale"] == "Ale, pale"
    done("similar", model, "--user", "bob", "-n", 3, "-q", "-o", tmp_path / "s.csv")
    lines = lines_of(tmp_path / "s.csv")
    assert list(lines[0]) == ["row", "rank", "similar", "score"]
    assert [one["similar"] for one in lines] == fitted.similar_users("bob", n=3).ids[0].tolist()
    assert set(USERS) > {one["similar"] for one in lines}
    for words in ("", "--item gin --user bob"):
        assert "--item" in misused("similar", model, *words.split())


@pytest.mark.parametrize("at_a_time", [1, 2, 100])
def test_ids_stay_numbers_where_lists_end_early_and_users_are_unknown(tmp_path, at_a_time, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", at_a_time)
    cells = [(user, item, 1 + (user + item) % 5) for user in range(100, 106) for item in range(7) if (user + item) % 3]
    cells += [(100, item, 3) for item in range(7) if (100 + item) % 3 == 0]  # nothing is left for the first
    data = pd.DataFrame(cells, columns=["user", "item", "rating"])
    halfseen.SquaredOrdNMF(2, max_iter=3, tol=0, random_state=0).fit(data).save(tmp_path / "model.hs")
    users = [word for user in (100, 101, 102, 103, 7) for word in ("--user", user)]
    for words, rows in (("--all", np.arange(100, 106)), (users, np.array([101, 102, 103, 7]))):
        words = [words] if isinstance(words, str) else words
        assert run("recommend", tmp_path / "model.hs", *words, "-n", 9, "-o", tmp_path / "out.parquet").exit_code == 0
        table = pq.read_table(tmp_path / "out.parquet").to_pydict()
        assert {type(one) for one in (*table["row"], *table["column"])} == {int}
        assert set(table["row"]) == set(rows.tolist()) - {100}


def test_a_full_disk_leaves_nothing_of_a_table_in_blocks(model, tmp_path, full_disk):
    for place in ("out.csv", "out.parquet"):
        refused_for_room(full_disk, "recommend", model, "--all", "-o", tmp_path / place)
    assert names_in(tmp_path) == []


def test_nothing_to_write_is_a_table_without_lines(model, tmp_path):
    words = [word for item in ITEMS for word in ("--exclude", item)]
    for place in (tmp_path / "out.csv", tmp_path / "out.parquet"):
        done("recommend", model, "-u", "bob", *words, "-q", "-o", place)
        assert lines_of(place) == []


def test_a_model_that_does_not_recommend(tmp_path):
    collected = halfseen.Uncoupled.from_coupled(np.random.default_rng(0).random((4, 6)), random_state=0)
    halfseen.UncoupledNMF(1, method="unmf", max_iter=2, tol=0, random_state=0).fit(collected).save(tmp_path / "u.hs")
    assert "must be one that recommends. Found a UncoupledNMF" in refused("recommend", tmp_path / "u.hs", "-u", "1")


def test_a_history_of_somebody_known_is_remarked(model, tmp_path):
    (tmp_path / "new.csv").write_text("user,item,rating\nzoe,gin,4\nbob,wine,2\n")
    result = run("recommend", model, "--history", tmp_path / "new.csv", "-q")
    assert "Found 1 of 2 that the model knows. They are served by this history alone." in result.stderr


def test_labels_do_not_reach_a_terminal_as_commands(tmp_path):
    cells = [("u\x1b[2J", "a"), ("u\x1b[2J", "b\x1b]0;x\x07"), ("v", "a"), ("v", "c\x1b[31m"), ("w", "c\x1b[31m")]
    lines = [f"{user},{item},{value}" for value, (user, item) in enumerate(cells, 1)]
    (tmp_path / "r.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    halfseen.PoissonFactorization(1, max_iter=3, tol=0, random_state=0).fit(tmp_path / "r.csv").save(tmp_path / "m.hs")
    result = run("recommend", tmp_path / "m.hs", "--all", "--include-seen")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "u\\x1b[2J:" in result.stdout
    json_text = run("recommend", tmp_path / "m.hs", "--all", "--json").stdout
    assert {one["row"] for one in json.loads(json_text)} <= {"u\x1b[2J", "v", "w"}

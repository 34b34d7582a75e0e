"""Mean ratings by genre and by group of sushi: real files against a plain reading of them, and files made here."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from halfseen.data import datasets
from halfseen.data.datasets import data_folder, load_movielens_genres, load_sushi_groups, source
from halfseen.errors import DataError, DataWarning


def needs(name):
    missing = [file.path for file in source(name).files if not (data_folder() / file.path).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"not in the data folder: {', '.join(missing)}")


def cells_of(observed):
    rows, columns = observed.row_labels[observed.row_of_cell()], observed.column_labels[observed.indices]
    return {(row, column): value for row, column, value in zip(rows, columns, observed.values.tolist(), strict=True)}


def means(values):
    return {cell: float(Fraction(sum(some), len(some))) for cell, some in values.items()}


@needs("movielens-genres")
def test_movielens_genres_by_plain_reading():
    folder = data_folder() / "movielens-100k"
    names = [line.split("|")[0] for line in (folder / "u.genre").read_text().split()]
    genres = {}
    for line in (folder / "u.item").read_text(encoding="latin-1").splitlines():
        fields = line.split("|")
        genres[fields[0]] = [name for name, flag in zip(names, fields[5:], strict=True) if flag == "1"]
    values = defaultdict(list)
    for line in (folder / "u.data").read_text().splitlines():
        user, film, rating, _ = line.split("\t")
        for genre in genres[film]:
            values[int(user), genre].append(int(rating))
    observed = load_movielens_genres()
    assert (observed.shape, observed.unseen) == ((943, 18), "missing")
    assert cells_of(observed) == means({cell: some for cell, some in values.items() if cell[1] != "unknown"})
    assert observed.row_labels.tolist() == list(range(1, 944))
    assert observed.column_labels.tolist() == names[1:]


@needs("sushi-groups")
def test_sushi_groups_by_plain_reading():
    folder = data_folder() / "sushi"
    items = [line.split("\t") for line in (folder / "sushi3.idata").read_text(encoding="utf-8").splitlines()]
    group = {int(item[0]): int(item[4]) for item in items}
    values = defaultdict(list)
    for user, line in enumerate((folder / "sushi3b.5000.10.score").read_text().splitlines()):
        for item, score in enumerate(line.split()):
            if score != "-1":
                values[user, group[item]].append(int(score))
    observed = load_sushi_groups()
    assert (observed.shape, observed.unseen) == ((5000, 12), "missing")
    assert {(u, observed.column_labels.tolist().index(g)): v for (u, g), v in cells_of(observed).items()} == means(
        values
    )
    assert observed.row_labels.tolist() == list(range(5000))
    assert len(set(observed.column_labels)) == 12
    # eggs are the group of one sushi, tamago, which nearly everybody is known to like
    assert (observed.column_labels[9], [item[0] for item in items if item[4] == "9"]) == ("egg", ["7"])


@pytest.fixture
def put(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))

    def write(**texts):
        for place, text in texts.items():
            path = tmp_path / PLACES[place]
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    return write


PLACES = {
    "ratings": "movielens-100k/u.data",
    "films": "movielens-100k/u.item",
    "genres": "movielens-100k/u.genre",
    "scores": "sushi/sushi3b.5000.10.score",
    "items": "sushi/sushi3.idata",
}
FILMS = 'Toy "Story|01-Jan-1995||http://x|0|1|1\n', "Seven|||http://y|0|0|1\n", "Nothing|||z|1|0|0\n"
GENRES = "unknown|0\nAction|1\nDrama|2\n\n"


def film(number, *numbers):
    return "".join(f"{one}|{FILMS[one - 1]}" for one in (number, *numbers))


def test_films_count_in_each_of_their_genres(put):
    put(ratings="9\t2\t1\t8\n3\t1\t4\t8\n3\t2\t5\t8\n9\t3\t5\t8\n", films=film(2, 3, 1), genres=GENRES)
    with pytest.warns(DataWarning, match="should hold the data that are known here"):
        observed = load_movielens_genres()
    assert cells_of(observed) == {(3, "Action"): 4, (3, "Drama"): 4.5, (9, "Drama"): 1}
    assert observed.shape == (2, 2)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_broken_films(put):
    put(ratings="9\t2\t1\t8\n3\t1\t4\t8\n", films=film(2, 3), genres=GENRES)
    with pytest.raises(DataError, match=r"u.item must have every film that was rated. Found no film 1"):
        load_movielens_genres()
    put(films=film(2, 1), genres="unknown|0\nAction|1\n")
    with pytest.raises(DataError, match=r"u.item must have 7 columns. Found 8"):
        load_movielens_genres()


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_sushi_made_here(put):
    lines = (f"{one}\tx\t1\t0\t{group}\t1\t1\t1\t1\n" for one, group in ((2, 11), (0, 3), (1, 3)))
    put(scores="-1 4 0\n1 2 -1\n", items="".join(lines))
    observed = load_sushi_groups()
    assert cells_of(observed) == {(0, "tare"): 4, (0, "vegetables"): 0, (1, "tare"): 1.5}
    put(scores="-1 4\n1 2\n")
    with pytest.raises(DataError, match=r"must have 3 columns. Found 2"):
        load_sushi_groups()


@pytest.mark.parametrize(
    ("load", "name"), [(load_movielens_genres, "movielens-genres"), (load_sushi_groups, "sushi-groups")]
)
def test_what_to_do_when_the_files_are_not_there(load, name, tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    of = source(name)
    with pytest.raises(DataError, match=f"or from {of.address} and save it as {tmp_path / of.files[0].path}"):
        load()
    assert "redistribution" in of.terms
    assert "20" in of.citation
    assert np.isin(["load_movielens_genres", "load_sushi_groups"], datasets.__all__).all()

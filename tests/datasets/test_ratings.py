"""Ratings, play counts, splits and means: real files against what their publishers say, and small files made here."""

import numpy as np
import pytest

from halfseen import datasets
from halfseen.datasets import load_ratings, load_split, source
from halfseen.errors import DataError, DataWarning, ParameterError
from tests.datasets.server import cells_of, paths_or_skip
from tests.io.conftest import refused


def test_movietweetings_are_levels_of_well_known_films():
    ratings = datasets.load_movietweetings()
    assert (ratings.shape, ratings.nnz, ratings.unseen) == ((2728, 1478), 53368, "missing")
    assert (np.unique(ratings.values).tolist(), ratings.row_labels.dtype) == (list(range(11)), np.int64)
    assert min(ratings.seen_per_row().min(), ratings.seen_per_column().min()) == 8
    assert (ratings.place(0), ratings.values[0]) == ("row 10, column 'Network (1976)'", 9)
    assert ratings.column_labels[ratings.seen_per_column().argmax()] == "Iron Man 3 (2013)"
    assert "MIT License" in (datasets.loaders.SAMPLES / "MOVIETWEETINGS-LICENSE").read_text()


#: Size, cells and the number of cells of each value, as the publishers' README files (and the data folder's) have them.
PUBLISHED = {
    "movielens-100k": ((943, 1682), 100_000, {1: 6110, 2: 11370, 3: 27145, 4: 34174, 5: 21201}),
    "movielens-1m": ((6040, 3706), 1_000_209, {1: 56174, 2: 107557, 3: 261197, 4: 348971, 5: 226310}),
    "movielens-latest-small": ((610, 9724), 100_836, None),
    "movielens-20m": ((138493, 26744), 20_000_263, None),
    "movietweetings-100k": ((16554, 10506), 100_000, None),
    "lastfm-hetrec2011": ((1892, 17632), 92_834, None),
    "taste-profile": ((1_019_318, 384_546), 48_373_586, None),
    "smallnetflix": ((95_526, 3_561), 3_298_163 + 545_177, None),
}
#: Four cells as each dataset writes them.
CSV = "userId,movieId,rating,timestamp\n7,20,3.0,964982703\n7,3,5.0,9\n1,20,1.0,9\n2,9,2.0,9\n"
WRITTEN = {
    "movielens-100k": "7\t20\t3\t881250949\n7\t3\t5\t881250949\n1\t20\t1\t8\n2\t9\t2\t8\n",
    "movielens-1m": "7::20::3::978300760\n7::3::5::9\n1::20::1::9\n2::9::2::9\n",
    "movielens-latest-small": CSV.replace("\n", "\r\n"),
    "movielens-20m": CSV,
    "movietweetings-100k": "7::020::3::136\n7::003::5::1\n1::020::1::1\n2::9::2::1\n",
    "lastfm-hetrec2011": "userID\tartistID\tweight\n7\t20\t3\n7\t3\t5\n1\t20\t1\n2\t9\t2\n",
    "taste-profile": "b80\tSOAA\t3\nb80\tSOBB\t5\na1f\tSOAA\t1\nc2e\tSOCC\t2\n",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_dataset_is_as_published(name):
    shape, nnz, histogram = PUBLISHED[name]
    assert source(name).size.startswith(f"{shape[0]:,} x {shape[1]:,}, {nnz:,} ")
    paths_or_skip(name)
    parts = datasets.load_smallnetflix() if name == "smallnetflix" else (load_ratings(name),)
    assert {(part.shape, part.unseen) for part in parts} == {(shape, "missing")}
    assert sum(part.nnz for part in parts) == nnz
    if histogram is not None:
        assert dict(zip(*np.unique(parts[0].values, return_counts=True), strict=True)) == histogram


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("name", WRITTEN)
def test_every_format_is_read(put, name, gz):
    put(source(name).files[0].path + gz, WRITTEN[name])
    (a, b, c), (x, y, z) = [7, 1, 2], [20, 3, 9]
    if name == "taste-profile":
        (a, b, c), (x, y, z) = ["b80", "a1f", "c2e"], ["SOAA", "SOBB", "SOCC"]
    elif name == "movietweetings-100k":
        x, y, z = "020", "003", "9"  # ids of IMDb have leading zeros
    assert cells_of(load_ratings(name)) == {(a, x): 3, (a, y): 5, (b, x): 1, (c, z): 2}


def test_names_and_movielens_1m_without_its_timestamps(put):
    assert datasets.ratings_names() == (*WRITTEN, "ordnmf-movielens", "ordnmf-taste-profile")  # in test_pickled
    with refused(ParameterError, parameter="name", found="'movielens1m'"):
        load_ratings("movielens1m")
    put("movielens-1m/ratings_notime.dat", "7::20::3\n1::20::5\n")
    with pytest.warns(DataWarning, match="ratings_notime.dat") as warned:
        assert cells_of(load_ratings("movielens-1m")) == {(7, 20): 3, (1, 20): 5}
    assert warned[0].filename == __file__


def test_the_five_test_sets_of_movielens_100k_are_a_partition():
    paths_or_skip("movielens-100k")
    whole, tests = cells_of(load_ratings("movielens-100k")), set()
    for n in range(1, 6):
        train, test = map(cells_of, load_split(f"u{n}"))
        assert (len(train), len(test)) == (80_000, 20_000)
        assert train | test == whole
        tests |= set(test)
    assert len(tests) == 100_000


def test_both_parts_of_a_split_have_all_rows_and_columns(put):
    put("movielens-100k/u2.base", "7\t20\t3\t8\n1\t20\t1\t8\n")
    put("movielens-100k/u2.test", "7\t3\t5\t8\n2\t20\t4\t8\n")
    train, test = load_split("u2")
    for part in (train, test):
        assert (part.row_labels.tolist(), part.column_labels.tolist()) == ([1, 2, 7], [3, 20])
    assert (cells_of(train), cells_of(test)) == ({(7, 20): 3, (1, 20): 1}, {(7, 3): 5, (2, 20): 4})
    with refused(ParameterError, parameter="split", found="'u6'"):
        load_split("u6")


BANNER = "%%MatrixMarket matrix coordinate real general\n"
TRAIN, VALIDATION = "smallnetflix/smallnetflix_mm.train", "smallnetflix/smallnetflix_mm.validate"
BROKEN = (
    "", BANNER + "2 2\n1 1 1\n", BANNER + "2 2 2\n1 1 1\n", BANNER + "2 2 1\n1 3 1\n", BANNER + "2 2 2\n1 1 1\n1 2 x\n",
    BANNER + "2 2 0\n", BANNER.replace("coordinate", "array") + "1 1\n3.0\n", "1 1 1\n1 2\n", "1 1 1 9\n1 2 1 9\n",
    "1 0 1\n", "1.5 1 1\n",
)  # fmt: skip


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("heads", [("", ""), (BANNER + "5 2 3\n", BANNER + "% from GraphLab\n%\n5 2 2\n")])
def test_smallnetflix_with_and_without_its_header_lines(put, heads, gz):
    put(TRAIN + gz, heads[0] + "1 2 4.0\n3 1 5\n3 2 1\n")
    put(VALIDATION + gz, heads[1] + "1 1 3\n4 2 2\n")
    train, validation = datasets.load_smallnetflix()
    assert (cells_of(train), cells_of(validation)) == ({(1, 2): 4, (3, 1): 5, (3, 2): 1}, {(1, 1): 3, (4, 2): 2})
    for part in (train, validation):
        assert (part.row_labels.tolist(), part.column_labels.tolist()) == ([1, 3, 4], [1, 2])


@pytest.mark.parametrize("text", BROKEN)
def test_broken_matrix_market_files(put, text):
    path = put(TRAIN, text)
    put(VALIDATION, "1 1 1\n")
    with pytest.raises(DataError, match=rf"^{path}[^\n]*\Z"):
        datasets.load_smallnetflix()


def means_by_group(scores, group_of_item):
    """Means over the items of each group, of scores that are NaN where missing, by products of matrices."""
    with np.errstate(invalid="ignore"):
        return (np.nan_to_num(scores) @ group_of_item) / ((~np.isnan(scores)).astype(int) @ group_of_item)


def test_movielens_genres_against_products_of_matrices():
    ratings, films, genres, *_ = paths_or_skip("movielens-genres")
    flags = [line.split("|")[6:] for line in films.read_text(encoding="latin-1").splitlines()]  # without "unknown"
    users, items, stars, _ = np.loadtxt(ratings, dtype=int).T
    scores = np.full((943, 1682), np.nan)
    scores[users - 1, items - 1] = stars
    observed = datasets.load_movielens_genres()
    np.testing.assert_array_equal(observed.to_dense(), means_by_group(scores, np.array(flags, dtype=int)))
    assert observed.row_labels.tolist() == list(range(1, 944))
    assert observed.column_labels.tolist() == [line.split("|")[0] for line in genres.read_text().split()[1:]]


def test_sushi_groups_against_products_of_matrices():
    scores, items = paths_or_skip("sushi-groups")
    group = [int(line.split("\t")[4]) for line in items.read_text(encoding="utf-8").splitlines()]
    scores, observed = np.loadtxt(scores), datasets.load_sushi_groups()
    expected = means_by_group(np.where(scores == -1, np.nan, scores), np.eye(12, dtype=int)[group])
    np.testing.assert_array_equal(observed.to_dense(), expected)
    assert (observed.column_labels[group[7]], group.count(group[7])) == ("egg", 1)  # tamago
    assert observed.row_labels.tolist() == list(range(5000))


FILMS = ("2|Seven|||http://y|0|0|1\n", "3|Nothing|||z|1|0|0\n", '1|Toy "Story|01-Jan-1995||http://x|0|1|1\n')


def test_films_count_in_each_of_their_genres(put):
    put("movielens-100k/u.data", "9\t2\t1\t8\n3\t1\t4\t8\n3\t2\t5\t8\n9\t3\t5\t8\n")
    put("movielens-100k/u.item", "".join(FILMS))
    put("movielens-100k/u.genre", "unknown|0\nAction|1\nDrama|2\n\n")
    assert cells_of(datasets.load_movielens_genres()) == {(3, "Action"): 4, (3, "Drama"): 4.5, (9, "Drama"): 1}
    broken = ("u.item", "".join(FILMS[:2]), r" film 1\b"), ("u.genre", "unknown|0\nAction|1\n", " 7 columns")
    for name, text, message in broken:
        put(f"movielens-100k/{name}", text)
        with pytest.raises(DataError, match=rf"u\.item.*{message}"):
            datasets.load_movielens_genres()


def test_scores_of_sushi_count_in_the_group_of_the_item(put):
    lines = (f"{item}\tx\t1\t0\t{group}\t1\t1\t1\t1\n" for item, group in ((2, 11), (0, 3), (1, 3)))
    put("sushi/sushi3.idata", "".join(lines))
    put("sushi/sushi3b.5000.10.score", "-1 4 0\n1 2 -1\n")
    assert cells_of(datasets.load_sushi_groups()) == {(0, "tare"): 4, (0, "vegetables"): 0, (1, "tare"): 1.5}
    put("sushi/sushi3b.5000.10.score", "-1 4\n1 2\n")
    with pytest.raises(DataError, match=r"score.* 3 columns"):
        datasets.load_sushi_groups()

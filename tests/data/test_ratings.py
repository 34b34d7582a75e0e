"""Ratings and play counts by name: real files against what their publishers say of them, and files made here."""

import gzip

import numpy as np
import pytest

from halfseen.data import datasets
from halfseen.data.datasets import data_folder, load_ratings, load_split, ratings_names, source
from halfseen.errors import DataError, DataWarning, ParameterError

#: Size, cells and the number of cells at each value, as the publishers' README files (and the data folder's) have them.
PUBLISHED = {
    "movielens-100k": ((943, 1682), 100_000, {1: 6110, 2: 11370, 3: 27145, 4: 34174, 5: 21201}),
    "movielens-1m": ((6040, 3706), 1_000_209, {1: 56174, 2: 107557, 3: 261197, 4: 348971, 5: 226310}),
    "movielens-latest-small": ((610, 9724), 100_836, None),
    "movietweetings-100k": ((16554, 10506), 100_000, None),
    "lastfm-hetrec2011": ((1892, 17632), 92_834, None),
}

#: Four cells as each set writes them.
WRITTEN = {
    "movielens-100k": ("movielens-100k/u.data", "7\t20\t3\t881250949\n7\t3\t5\t881250949\n1\t20\t1\t8\n2\t9\t2\t8\n"),
    "movielens-1m": ("movielens-1m/ratings.dat", "7::20::3::978300760\n7::3::5::9\n1::20::1::9\n2::9::2::9\n"),
    "movielens-latest-small": (
        "movielens-latest-small/ratings.csv",
        "userId,movieId,rating,timestamp\r\n7,20,3.0,964982703\r\n7,3,5.0,9\r\n1,20,1.0,9\r\n2,9,2.0,9\r\n",
    ),
    "movielens-20m": (
        "movielens-20m/ratings.csv",
        "userId,movieId,rating,timestamp\n7,20,3.0,1112486027\n7,3,5.0,9\n1,20,1.0,9\n2,9,2.0,9\n",
    ),
    "movietweetings-100k": (
        "movietweetings-100k/ratings.dat",
        "7::020::3::136\n7::003::5::1\n1::020::1::1\n2::9::2::1\n",
    ),
    "lastfm-hetrec2011": (
        "lastfm-hetrec2011/user_artists.dat",
        "userID\tartistID\tweight\n7\t20\t3\n7\t3\t5\n1\t20\t1\n2\t9\t2\n",
    ),
    "taste-profile": ("taste-profile/train_triplets.txt", "b80\tSOAA\t3\nb80\tSOBB\t5\na1f\tSOAA\t1\nc2e\tSOCC\t2\n"),
}
#: These need no sha256 to be read in silence.
ANY_CONTENTS = ("movielens-20m", "taste-profile")


def needs_file(*paths):
    missing = [path for path in paths if not any((data_folder() / f"{path}{end}").exists() for end in ("", ".gz"))]
    return pytest.mark.skipif(bool(missing), reason=f"not in the data folder: {', '.join(missing)}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    return tmp_path


def put(folder, path, text, packed=False):
    path = folder / (f"{path}.gz" if packed else path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def cells_of(observed):
    """{(row label, column label): value}"""
    rows, columns = observed.row_labels[observed.row_of_cell()], observed.column_labels[observed.indices]
    return {(row, column): value for row, column, value in zip(rows, columns, observed.values.tolist(), strict=True)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_set_is_as_published(name):
    try:
        ratings = load_ratings(name)
    except DataError as absent:
        pytest.skip(str(absent))
    shape, nnz, histogram = PUBLISHED[name]
    assert (ratings.shape, ratings.nnz, ratings.unseen) == (shape, nnz, "missing")
    if histogram is not None:
        assert dict(zip(*np.unique(ratings.values, return_counts=True), strict=True)) == histogram


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.filterwarnings("ignore:.*of sha256:halfseen.errors.DataWarning")
def test_every_format_is_read(folder, name, packed):
    put(folder, *WRITTEN[name], packed)
    ratings = load_ratings(name)
    ids = (["b80", "a1f", "c2e"], ["SOAA", "SOBB", "SOCC"]) if name == "taste-profile" else ([7, 1, 2], [20, 3, 9])
    if name == "movietweetings-100k":
        ids = ([7, 1, 2], ["020", "003", "9"])  # ids of IMDb have zeros in front
    (a, b, c), (x, y, z) = ids
    assert cells_of(ratings) == {(a, x): 3, (a, y): 5, (b, x): 1, (c, z): 2}


@pytest.mark.parametrize("name", WRITTEN)
def test_other_contents_are_told_of_where_a_sha256_is_known(folder, name):
    put(folder, *WRITTEN[name])
    if name in ANY_CONTENTS:
        load_ratings(name)  # a warning would be an error
    else:
        with pytest.warns(DataWarning, match="of sha256"):
            load_ratings(name)


def test_ratings_of_movielens_1m_may_lack_their_times(folder):
    put(folder, "movielens-1m/ratings_notime.dat", "7::20::3\n1::20::5\n")
    with pytest.warns(DataWarning, match="ratings_notime.dat should hold"):
        assert cells_of(load_ratings("movielens-1m")) == {(7, 20): 3, (1, 20): 5}
    put(folder, "movielens-1m/ratings.dat", "7::20::4::9\n")
    with pytest.warns(DataWarning, match=r"ratings.dat should hold"):
        assert cells_of(load_ratings("movielens-1m")) == {(7, 20): 4}  # the published file comes first


@pytest.mark.parametrize("name", WRITTEN)
def test_an_absent_set_is_told_with_address_and_place(folder, name):
    with pytest.raises(DataError) as refusal:
        load_ratings(name)
    assert source(name).address in str(refusal.value)
    assert str(folder / WRITTEN[name][0]) in str(refusal.value)


def test_names():
    assert ratings_names() == tuple(WRITTEN)
    assert all(source(name).terms and source(name).citation for name in ratings_names())
    with pytest.raises(ParameterError, match=r"name must be one of .*movielens-1m.* Found 'movielens1m'"):
        load_ratings("movielens1m")
    with pytest.raises(ParameterError, match=r"wiki4he.*movielens-1m"):
        source("nothing")
    assert datasets.load_ratings is load_ratings


# The published splits of MovieLens 100K.


@needs_file("movielens-100k/u.data", *(f"movielens-100k/u{n}.base" for n in range(1, 6)))
def test_the_five_splits_part_the_cells_and_their_tests_have_none_in_common():
    whole = cells_of(load_ratings("movielens-100k"))
    tests = set()
    for n in range(1, 6):
        train, test = (cells_of(part) for part in load_split(f"u{n}"))
        assert (len(train), len(test)) == (80_000, 20_000)
        assert train | test == whole
        tests |= set(test)
    assert len(tests) == 100_000


@pytest.mark.filterwarnings("ignore:.*of sha256:halfseen.errors.DataWarning")
def test_both_parts_of_a_split_have_all_rows_and_columns(folder):
    put(folder, "movielens-100k/u2.base", "7\t20\t3\t8\n1\t20\t1\t8\n")
    put(folder, "movielens-100k/u2.test", "7\t3\t5\t8\n2\t20\t4\t8\n")
    train, test = load_split("u2")
    for part in (train, test):
        assert (part.row_labels.tolist(), part.column_labels.tolist()) == ([1, 2, 7], [3, 20])
    assert cells_of(train) == {(7, 20): 3, (1, 20): 1}
    assert cells_of(test) == {(7, 3): 5, (2, 20): 4}


def test_an_unknown_split_is_refused():
    with pytest.raises(
        ParameterError, match=r"split must be one of .u1., .u2., .u3., .u4., .u5., .ua., .ub.\. Found .u6."
    ):
        load_split("u6")

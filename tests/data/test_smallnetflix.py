"""smallnetflix: Matrix Market files made here, as published and without their opening lines."""

import gzip

import numpy as np
import pytest
from scipy import io, sparse

from halfseen.data.datasets import data_folder, load_smallnetflix, source
from halfseen.data.smallnetflix import read_triples
from halfseen.errors import DataError

BANNER = "%%MatrixMarket matrix coordinate real general\n"
TRAIN = "1 2 4.0\n3 1 5\n3 2 1\n"
VALIDATE = "1 1 3\n4 2 2\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    (tmp_path / "smallnetflix").mkdir()
    return tmp_path / "smallnetflix"


def put(folder, train, validate, packed=False):
    for name, text in (("train", train), ("validate", validate)):
        path = folder / f"smallnetflix_mm.{name}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def cells_of(observed):
    rows, columns = observed.row_labels[observed.row_of_cell()], observed.column_labels[observed.indices]
    return {(row, column): value for row, column, value in zip(rows, columns, observed.values.tolist(), strict=True)}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("opening", [("", ""), (BANNER + "5 2 3\n", BANNER + "% from GraphLab\n%\n5 2 2\n")])
def test_both_parts_are_read_with_all_users_and_films(folder, opening, packed):
    put(folder, opening[0] + TRAIN, opening[1] + VALIDATE, packed)
    train, test = load_smallnetflix()
    assert cells_of(train) == {(1, 2): 4, (3, 1): 5, (3, 2): 1}
    assert cells_of(test) == {(1, 1): 3, (4, 2): 2}
    for part in (train, test):
        assert (part.row_labels.tolist(), part.column_labels.tolist()) == ([1, 3, 4], [1, 2])
        assert part.unseen == "missing"


@pytest.mark.parametrize("field", ["real", "integer"])
def test_what_scipy_writes_is_read_back(tmp_path, field):
    matrix = sparse.random(30, 20, 0.2, format="coo", random_state=0)
    matrix.data = np.random.default_rng(0).integers(1, 6, matrix.nnz).astype(float if field == "real" else int)
    path = tmp_path / "matrix.mtx"
    io.mmwrite(path, matrix, comment="five stars")
    rows, columns, values = read_triples(path)
    read = sparse.coo_array((values, (rows - 1, columns - 1)), shape=matrix.shape)
    np.testing.assert_array_equal(read.toarray(), matrix.toarray())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have a line at least. Found none in"),
        (BANNER.replace("general", "symmetric") + "2 2 1\n1 1 1\n", "general. Found '%%MatrixMarket matrix coordinate"),
        (BANNER + "2 2\n1 1 1\n", "must say how many rows, columns and cells it has. Found '2 2'."),
        (BANNER + "2 2 2\n1 1 1\n", "2 rows, 2 columns, 2 cells. Found 1 rows, 1 columns, 1 cells."),
        (BANNER + "2 2 1\n1 3 1\n", "2 rows, 2 columns, 1 cells. Found 1 rows, 3 columns, 1 cells."),
        (BANNER + "2 2 2\n1 1 1\n1 2 x\n", "must have a row, a column and a value. Found '1 2 x' on line 4."),
        ("1 1 1\n1 2\n", "must have a row, a column and a value. Found '1 2' on line 2."),
        ("1 1 1 9\n1 2 1 9\n", "must have a row, a column and a value. Found '1 1 1 9' on line 1."),
        (BANNER + "2 2 1\n", "must have a row, a column and a value. Found no line."),
        ("1 0 1\n", "Column numbers must be whole, from 1 on. Found 0 in"),
        ("1.5 1 1\n", "Row numbers must be whole, from 1 on. Found 1.5 in"),
    ],
)
def test_broken_files_are_refused_with_their_line(tmp_path, text, sentence):
    path = tmp_path / "broken.mtx"
    path.write_text(text)
    with pytest.raises(DataError) as refusal:
        read_triples(path)
    assert sentence in str(refusal.value)
    assert str(refusal.value).endswith("Copy or download the file again.")


def test_absent_files_are_told_with_address_and_place(folder):
    with pytest.raises(DataError) as refusal:
        load_smallnetflix()
    assert source("smallnetflix").address in str(refusal.value)
    assert str(folder / "smallnetflix_mm.train") in str(refusal.value)


@pytest.mark.skipif(
    not any((data_folder() / f"smallnetflix/smallnetflix_mm.train{end}").exists() for end in ("", ".gz")),
    reason="not in the data folder: smallnetflix",
)
def test_the_set_is_as_published():
    """The numbers that the thesis prints."""
    train, test = load_smallnetflix()
    assert train.shape == test.shape == (95_526, 3_561)
    assert (train.nnz, test.nnz) == (3_298_163, 545_177)

"""Files parted in two: every cell in one of them, no field changed, the lots those of split_cells."""

import numpy as np
import pytest

from halfseen.data import observe, split_cells
from halfseen.data.parting import part_table
from halfseen.errors import DataError

LINES = [(f"u{row}", f"i{column}", str(row + 10 * column), "x,y") for row in range(8) for column in range(6)]


def written(path, lines, header=("user", "item", "rating", "note"), delimiter=";"):
    rows = [header, *lines] if header else lines
    path.write_text("\n".join(delimiter.join(row) for row in rows) + "\n")
    return path


def lines_of(table):
    return list(zip(*table.cells, strict=True))


def test_every_line_is_in_one_part_as_it_was_and_in_its_order(tmp_path):
    train, test, n_test = part_table(written(tmp_path / "r.csv", LINES), 0.25, 0)
    assert n_test == len(lines_of(test)) == 12
    assert sorted(lines_of(train) + lines_of(test)) == sorted(LINES)
    assert [line for line in LINES if line in set(lines_of(train))] == lines_of(train)
    assert train.names == test.names == ["user", "item", "rating", "note"]
    assert train.delimiter == ";"


def test_the_lots_are_those_of_split_cells(tmp_path):
    """Of cells in row order, the same seed holds the same out."""
    path = written(tmp_path / "r.csv", [line[:3] for line in LINES], ("user", "item", "rating"))
    _, test, _ = part_table(path, 0.25, 7)
    _, cells = split_cells(path, 0.25, 7)
    rows, columns = cells.row_labels[cells.row_of_cell()], cells.column_labels[cells.indices]
    assert sorted((row, column) for row, column, _ in lines_of(test)) == sorted(zip(rows, columns, strict=True))


def test_lines_of_a_pair_stay_together(tmp_path):
    twice = [(user, item, value) for user, item, value, _ in LINES for _ in range(2)]
    train, test, n_test = part_table(written(tmp_path / "r.csv", twice, ("user", "item", "rating")), 0.25, 0)
    assert n_test == 24
    assert not {line[:2] for line in lines_of(train)} & {line[:2] for line in lines_of(test)}


@pytest.mark.parametrize("how", [{}, {"columns": (0, 1, 2)}, {"layout": "long", "header": False}])
def test_without_a_header(tmp_path, how):
    path = written(tmp_path / "r.csv", [line[:3] for line in LINES], None, ",")
    train, test, _ = part_table(path, 0.25, 0, **how)
    assert sorted(lines_of(train) + lines_of(test)) == sorted(line[:3] for line in LINES)
    assert not train.has_header


def test_words_need_no_order(tmp_path):
    words = [(user, item, "good") for user, item, *_ in LINES]
    path = written(tmp_path / "r.csv", words, ("customer", "title", "how"))
    _, test, n_test = part_table(path, 0.25, 0, columns=("customer", "title", "how"))
    assert n_test == 12
    assert set(test.column("how")) == {"good"}


def test_a_cell_of_a_wide_table_is_empty_in_one_part(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("name,a,b,town\nann,1,2,York\nbob,3,,Hull\ncy,5,6,NA\n")
    train, test, n_test = part_table(path, 0.4, 0)
    assert n_test == 2  # of the 5 numbers
    for name in ("name", "town"):
        assert train.column(name) == test.column(name)
    for name, column in (("a", ["1", "3", "5"]), ("b", ["2", "", "6"])):
        both = zip(train.column(name), test.column(name), strict=True)
        assert [one or other or "" for one, other in both] == column
        assert all(not one or not other for one, other in zip(train.column(name), test.column(name), strict=True))


def test_both_parts_of_a_wide_table_are_read_with_all_rows_and_columns(tmp_path):
    from halfseen.data import write_table

    random = np.random.default_rng(0)
    values = random.integers(1, 9, (30, 5)).astype(float)
    (tmp_path / "t.csv").write_text("a,b,c,d,e\n" + "\n".join(",".join(f"{x:g}" for x in row) for row in values) + "\n")
    *parts, n_test = part_table(tmp_path / "t.csv", 0.2, 0)
    for name, part in zip(("train", "test"), parts, strict=True):
        write_table(tmp_path / f"{name}.csv", part.names, part.cells, delimiter=part.delimiter)
    train, test = (observe(tmp_path / f"{name}.csv", layout="wide") for name in ("train", "test"))
    assert (train.shape, test.shape, test.nnz, n_test) == ((30, 5), (30, 5), 30, 30)
    np.testing.assert_array_equal(np.nansum([train.to_dense(), test.to_dense()], axis=0), values)


def test_one_cell_can_not_be_parted(tmp_path):
    with pytest.raises(DataError, match="Training and test must have a cell each"):
        part_table(written(tmp_path / "r.csv", LINES[:1]), 0.5, 0)

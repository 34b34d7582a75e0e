"""Tables of values, and how they are shown."""

import pytest

from halfseen.studies import Column, Table


def test_a_value_is_shown_in_the_form_of_its_column():
    column = Column("time", "relative", ".3f")
    assert column.full_name == "relative time"
    assert [column.text(value) for value in (0.12345, 2, None, "0.1", "")] == ["0.123", "2.000", "-", "0.1", ""]


def test_a_table_keeps_values_and_shows_texts():
    table = Table("t", [Column("name"), Column("ours", "error", ".1f")], [["x", 0.25], ["y", None]])
    assert table.texts() == [["x", "0.2"], ["y", "-"]]
    assert table.column("error ours") == [0.25, None]


def test_a_row_of_another_length_is_no_row_of_the_table():
    with pytest.raises(ValueError):
        Table("t", [Column("a"), Column("b")], [[1]]).texts()

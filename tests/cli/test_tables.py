"""Tables as lines of text."""

import pytest

from halfseen.cli.results import blocks, markdown
from halfseen.studies import Column, Table

COLUMNS = [Column("name"), Column("paper", "size"), Column("ours", "size", ".2f"), Column("ours", "a long heading"),
           Column("why")]  # fmt: skip
TABLE = Table(
    "A title", COLUMNS, [["x", "1", 1.234, 7, "yes"], ["longer", "10", None, 12345, "not so"]], ["(1) A footnote."]
)


def test_words_to_the_left_and_numbers_to_the_right_under_their_groups():
    (block,) = blocks(TABLE)
    assert block.header == [
        "        size ------  a long heading",
        "name    paper  ours            ours  why",
    ]
    assert block.rows == [
        "x           1  1.23               7  yes",
        "longer     10     -           12345  not so",
    ]


def test_a_table_without_groups_has_one_line_of_names():
    (block,) = blocks(Table("t", [Column("N"), Column("ms", form=".1f")], [[100, 0.25], [2000, 12.5]]))
    assert block == (["   N    ms"], [" 100   0.2", "2000  12.5"])


def test_where_room_is_short_groups_go_below_each_other():
    parts = list(blocks(TABLE, width=29))
    assert [part.header[-1].split() for part in parts] == [["name", "paper", "ours"], ["name", "ours"], ["name", "why"]]
    assert [part.rows[1].split()[0] for part in parts] == ["longer"] * 3
    assert max(len(line) for part in parts for line in (*part.header, *part.rows)) <= 29
    assert len(list(blocks(TABLE, width=42))) == 2
    assert len(list(blocks(TABLE, width=43))) == 1


def test_a_group_that_is_too_wide_stays_whole():
    parts = list(blocks(TABLE, width=5))
    assert [part.header[-1].split()[1:] for part in parts] == [["paper", "ours"], ["ours"], ["why"]]


def test_markdown():
    assert list(markdown(TABLE)) == [
        "**A title**",
        "",
        "| name | size paper | size ours | a long heading ours | why |",
        "| --- | ---: | ---: | ---: | --- |",
        "| x | 1 | 1.23 | 7 | yes |",
        "| longer | 10 | - | 12345 | not so |",
        "",
        "- (1) A footnote.",
    ]


@pytest.mark.parametrize("width", [None, 10])
def test_a_table_of_one_column(width):
    assert list(blocks(Table("t", [Column("N")], [[1]]), width)) == [(["N"], ["1"])]

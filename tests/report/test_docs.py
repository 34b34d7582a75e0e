"""What the page on reports shows runs as it is shown."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

from halfseen.data import load_movietweetings
from halfseen.io import split_cells, write_table
from tests.cli.program import halfseen
from tests.report.models import quiet
from tests.report.reading import Page

mpl.use("Agg")
TEXT = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def test_the_examples_in_python(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    names = {}
    with quiet():
        for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
            exec(compile(block, "docs/report.md", "exec"), names)
    plt.close("all")
    sections = {}
    for name in ("report", "table", "survey"):
        page = Page((tmp_path / f"{name}.html").read_text(encoding="utf-8"))
        sections[name] = {title for tag, title in page.headings if tag == "h2"}
    told = [row.split(" | ")[0].removeprefix("| ") for row in re.findall(r"^\| [A-Z].*$", TEXT, re.MULTILINE)]
    found = {title.split(" of ")[0] for titles in sections.values() for title in titles}
    assert found == set(told)
    assert names["report"].title == "Film ratings"


def test_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, cells in zip(("ratings", "held_out"), split_cells(load_movietweetings(), random_state=0), strict=True):
        columns = (cells.row_labels[cells.row_of_cell()], cells.column_labels[cells.indices], cells.values)
        write_table(f"{name}.csv", ["user", "item", "rating"], columns)
    commands = re.findall(r"^\$ halfseen (.*)$", TEXT, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert halfseen(*command.split()).exit_code == 0
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    (rankings,) = (caption for caption in page.tables if caption.startswith("Rankings"))
    scores = page.numbers(rankings)
    assert scores["OrdNMF"][0] > scores["Popularity"][0]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", TEXT) or ["report.md"])
def test_links_lead_somewhere(link):
    assert (Path(__file__).parents[2] / "docs" / link).exists()

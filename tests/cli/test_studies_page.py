"""halfseen reproduce all: every study on one page."""

import re
import sys
from pathlib import Path

import pytest

from halfseen.cli.results import heads
from halfseen.errors import DataError
from halfseen.studies import NAMES, Column, Goal, Result, Table
from tests.cli.program import done, names_in
from tests.cli.program import halfseen as run
from tests.cli.small_studies import Judged, Small


@pytest.fixture
def pages(small, elsewhere):
    """The page of all studies, as HTML and as Markdown: one passes, one is short, one has no data."""
    pytest.importorskip("matplotlib")
    small["a1gm/table1"] = Judged("a1gm/table1", True, True)
    small["a1gm/figure5"] = Judged("a1gm/figure5", True, False, False)
    small["grr/table4.1"] = Small("grr/table4.1", DataError("The <data> must be there. They are not. Get them."))
    assert run("reproduce", "all", "--quick", "-q").exit_code == 0
    return [(elsewhere / "halfseen-studies" / f"studies.{ending}").read_text("utf-8") for ending in ("html", "md")]


def test_all_of_them_make_one_page_by_default(small, elsewhere):
    pytest.importorskip("matplotlib")
    result = run("reproduce", "all")
    assert "studies.html" in names_in(elsewhere / "halfseen-studies")
    assert "Saved halfseen-studies/studies.html (" in result.stdout
    assert {f"{name.replace('/', '-')}-p.png" for name in NAMES} < set(names_in(elsewhere / "halfseen-studies"))


def test_the_page_has_every_study_with_its_tables_and_pictures(pages):
    html, markdown = pages
    for name in NAMES:
        assert f"{name}: What it shows" in html
        assert f"### {name}: What it shows" in markdown
    assert html.count(">First<") == html.count(">Second<") == len(NAMES) - 1
    assert html.count("data:image/png;base64,") == len(NAMES) - 1
    assert html.count('<td class="number theirs">0.12</td><td class="number">0.12</td>') == len(NAMES) - 1
    assert markdown.count("| x | 0.12 | 0.12 |") == len(NAMES) - 1
    for place in re.findall(r"!\[A picture\]\((.+)\)", markdown):
        assert (Path("halfseen-studies") / place).is_file()


def test_the_page_says_what_passes_what_is_short_and_what_could_not_be_run(pages):
    html, markdown = pages
    verdicts = dict(re.findall(r'<a href="#\S+">(\S+)</a></th>.*?<td class="verdict [^"]*">([^<]*)</td>', html))
    expected = dict.fromkeys(NAMES, "-")
    expected |= {"a1gm/table1": "pass", "a1gm/figure5": "short of 2 of 3", "grr/table4.1": "not run"}
    assert verdicts == expected
    assert "Not run.</span> The &lt;data&gt; must be there. They are not. Get them." in html
    assert "Not run. The <data> must be there. They are not. Get them." in markdown
    assert f"{len(NAMES)}, of which {len(NAMES) - 1} ran" in html
    assert "1 of 2 studies that have goals here" in html
    assert "- short: goal 1" in markdown


def test_the_page_tells_seconds(small, elsewhere, monkeypatch):
    ticks = iter(range(0, 1000, 5))
    monkeypatch.setattr("halfseen.cli.reproduce.perf_counter", lambda: next(ticks))
    run("reproduce", "all", "-q")
    page = (elsewhere / "halfseen-studies" / "studies.md").read_text("utf-8")
    assert page.count("| 5.0 s |") == len(NAMES)
    assert f"- Time: {5 * len(NAMES)} s" in page


def test_the_page_asks_nothing_of_the_network(pages):
    html, _ = pages
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', html) == []
    assert "default-src 'none'" in html


def test_headers_span_their_groups():
    table = Table("t", [Column("a"), Column("b", "g"), Column("c", "g"), Column("d"), Column("e", "h")], [])
    assert heads(table) == ([("a", 1, 2), ("g", 2, 1), ("d", 1, 2), ("h", 1, 1)], [1, 2, 4])


def test_without_jinja_there_is_the_markdown_alone(small, elsewhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("reproduce", "all", "-q")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "note: The page needs jinja2. It is not installed. Install it: pip install jinja2." in result.stderr
    names = names_in(elsewhere / "halfseen-studies")
    assert "studies.md" in names
    assert "studies.html" not in names


def test_an_interrupted_run_of_all_leaves_a_page_of_what_was_done(small, elsewhere):
    small["ordnmf/table2"] = Small("ordnmf/table2", KeyboardInterrupt())
    result = run("reproduce", "all", "-q", "-o", elsewhere / "out")
    assert result.exit_code == 130
    page = (elsewhere / "out" / "studies.md").read_text("utf-8")
    assert page.count("Not run. The run was interrupted.") == len(NAMES) - 2
    assert page.count("All in all.") == 2


def test_a_paper_alone_makes_no_page(small, tmp_path):
    done("reproduce", "a1gm", "-o", tmp_path)
    assert not [name for name in names_in(tmp_path) if name.startswith("studies")]


def test_verdicts_are_of_goals():
    assert Result("", []).verdict == ""
    assert Result("", [], goals=[Goal("a", True)]).verdict == "pass"
    assert Result("", [], goals=[Goal("a", True), Goal("b", False)]).verdict == "short of 1 of 2"

"""halfseen reproduce: the papers' tables and figures, ours beside theirs; written, kept, and on one page."""

import csv
import errno
import io
import json
import os
import re
import signal
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import halfseen
from halfseen import studies
from halfseen.cli import results
from halfseen.errors import DataError
from halfseen.studies import NAMES, Column, Result, Table
from halfseen.studies.a1gm_tables import TABLE1
from tests.cli.program import done, misused, names_in, program, refused
from tests.cli.program import halfseen as run
from tests.cli.small_studies import Judged, Small
from tests.cli.test_terminal import OnTerminal, listening, plain, shown_at  # noqa: F401  (a fixture for Ctrl-C)
from tests.studies.data import needs_data_of

#: The studies of the first paper.
FIRST = studies.select("a1gm")
ABSENT = DataError("The <data> must be there. They are not. Get them.")

# The list.


def test_the_list_names_every_study_its_paper_and_its_data(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    entries = "\n".join(done("reproduce", "--list")).split("\n\n")
    assert [entry.splitlines()[0] for entry in entries] == list(NAMES)
    for name, entry in zip(NAMES, entries, strict=True):
        found = studies.study(name)
        assert found.title in entry
        assert f"Paper: {found.paper}" in entry
    assert "absent: auto_mpg, sunspots_daily, " in entries[NAMES.index("a1gm/table1")]
    assert "none needed" in entries[NAMES.index("a1gm/figure5")]
    some = json.loads("\n".join(done("reproduce", "--list", "UNMF", "a1gm/table1", "--json")))
    assert [one["name"] for one in some] == ["unmf/figure1", "unmf/figure2", "a1gm/table1"]
    assert some[-1]["absent"] == some[-1]["needs"] == list(studies.study("a1gm/table1").needs)


# Tables.


COLUMNS = [Column("name"), Column("paper", "size"), Column("ours", "size", ".2f"), Column("ours", "a long heading"),
           Column("why")]  # fmt: skip
TABLE = Table(
    "A title", COLUMNS, [["x", "1", 1.234, 7, "yes"], ["longer", "10", None, 12345, "not so"]], ["(1) A footnote."]
)


def parts(table, width=10_000):
    """The parts of a table, as lines of fields."""
    texts = []
    for part in results.rich_tables(table, width):
        console = Console(file=io.StringIO(), width=10_000, color_system=None)
        console.print(part)
        texts.append([line.split() for line in console.file.getvalue().splitlines()])
    return texts


def test_tables_are_split_by_groups_where_room_is_short():
    (lines,) = parts(TABLE)
    assert lines[:2] == [["size", "a", "long", "heading"], ["name", "paper", "ours", "ours", "why"]]
    assert lines[2:] == [["x", "1", "1.23", "7", "yes"], ["longer", "10", "-", "12345", "not", "so"]]
    narrow = parts(TABLE, width=29)
    assert [part[1] for part in narrow[:2]] == [["name", "paper", "ours"], ["name", "ours"]]
    assert [part[-1][0] for part in narrow] == ["longer"] * 3
    assert [len(parts(TABLE, width)) for width in (42, 43)] == [2, 1]
    assert parts(TABLE, width=5)[0][-2][1:] == ["1", "1.23"]  # a group stays whole
    assert parts(Table("t", [Column("N")], [[1]]), 10) == [[["N"], ["1"]]]


def test_markdown_and_headers_of_html():
    assert list(results.markdown(TABLE))[2:6] == [
        "| name | size paper | size ours | a long heading ours | why |",
        "| --- | ---: | ---: | ---: | --- |",
        "| x | 1 | 1.23 | 7 | yes |",
        "| longer | 10 | - | 12345 | not so |",
    ]
    table = Table("t", [Column("a"), Column("b", "g"), Column("c", "g"), Column("d"), Column("e", "h")], [])
    assert results.heads(table) == ([("a", 1, 2), ("g", 2, 1), ("d", 1, 2), ("h", 1, 1)], [1, 2, 4])


def test_the_result_is_printed_as_plain_lines(small):
    lines = [line for line in done("reproduce", "a1gm/table1") if line]
    assert [line.split() for line in lines[3:7]] == [
        ["error"],
        ["data", "paper", "ours"],
        ["x", "0.12", "0.12"],
        ["y", "3", "-"],
    ]
    others = ["a1gm/table1: What it shows", "A paper", "First", "(1) A footnote [sic].", "Second", "data", "z"]
    assert [*lines[:3], *lines[7:]] == [*others, "All in all."]


# Runs.


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["a1gm/figure5"], ["a1gm/figure5"]),
        (["A1GM"], [name for name in NAMES if name.startswith("a1gm/")]),
        (["all"], list(NAMES)),
        (["a1gm/figure5", "a1gm", "a1gm/figure5"], ["a1gm/figure5", "a1gm/table1", "a1gm/table2", "a1gm/figure4"]),
    ],
)
def test_one_study_a_paper_or_all_each_once(small, elsewhere, words, names):
    lines = done("reproduce", *words, "--quick", "--seed", 7)
    assert [line.partition(":")[0] for line in lines if line.endswith(": What it shows")] == names
    assert small[names[0]].runs == [(True, 7)]


@needs_data_of("a1gm/table1", "auto_mpg", "lung_cancer", "sleep_mammals")
def test_table_1_small():
    lines = done("reproduce", "a1gm/table1", "--quick")
    for name in ("auto_mpg", "lung_cancer", "sleep_mammals"):
        (line,) = (line for line in lines if line.startswith(name.replace("_", " ")))
        n, m = TABLE1[name].size
        assert line.count(f"{n} x {m}") == 2
        assert line.endswith("yes")
        assert TABLE1[name].time in line


def test_the_real_program():
    result = program("reproduce", "a1gm/figure5", "--quick")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert not re.search("[\u2500-\u257f]", result.stdout)
    sizes = [line.split()[0] for line in result.stdout.splitlines() if re.match(r" *\d+ ", line)]
    assert sizes == ["10", "100", "200"] * 2


def test_everything_is_written(small, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    folder = tmp_path / "out"
    lines = done("reproduce", "a1gm/table1", "-o", f"{folder}/")
    files = ["a1gm-table1-a.csv", "a1gm-table1-b.csv", "a1gm-table1-p.png", "a1gm-table1.json", "a1gm-table1.md"]
    assert names_in(folder) == files
    assert sorted(re.findall(r"^Saved (.+) \(", "\n".join(lines), re.MULTILINE)) == [str(folder / one) for one in files]
    with (folder / files[0]).open(newline="") as file:  # to the last digit
        assert list(csv.reader(file))[1:] == [["x", "0.12", "0.123456789"], ["y", "3", ""]]
    page = (folder / "a1gm-table1.md").read_text(encoding="utf-8")
    assert page.startswith(
        "# a1gm/table1\n\nWhat it shows. A paper.\n\nAll in all.\n\n`halfseen reproduce a1gm/table1`: "
    )
    assert "\n\n**First**\n\n| data | error pap" in page
    assert "| y | 3 | - |\n\n- (1) A footnote [sic].\n" in page
    assert page.endswith("\n![A picture](a1gm-table1-p.png)\n")
    pixels = image.imread(folder / "a1gm-table1-p.png")
    assert pixels.shape[:2] == (720, 960)
    assert np.ptp(pixels[..., :3]) == 1  # black on white


def test_without_matplotlib_the_numbers_are_written_all_the_same(small, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("reproduce", "a1gm/table1", "-o", tmp_path)
    assert result.exit_code == 0
    assert "pip install matplotlib" in result.stderr
    assert result.stderr.count("\n") == 1
    assert names_in(tmp_path) == ["a1gm-table1-a.csv", "a1gm-table1-b.csv", "a1gm-table1.json", "a1gm-table1.md"]
    assert "![" not in (tmp_path / "a1gm-table1.md").read_text()


# Data that are absent, and other refusals.


def test_studies_without_data_are_left_out_unless_asked_for_by_name(small, elsewhere):
    small["a1gm/table1"] = Small("a1gm/table1", ABSENT)
    result = run("reproduce", "a1gm")
    assert result.exit_code == 0
    assert result.stderr == f"note: a1gm/table1 was left out. {ABSENT}\n"
    assert "a1gm/figure5: What it shows" in result.stdout
    for words in (("all", "a1gm/table1"), ("A1GM/Table1",)):
        assert refused("reproduce", *words) == f"halfseen: {ABSENT}"
    for name in NAMES:
        small[name] = Small(name, ABSENT)
    result = run("reproduce", "all")
    assert (result.exit_code, result.stdout) == (2, "")
    assert [note.split()[1] for note in result.stderr.splitlines()[:-1]] == list(NAMES)


def test_advice_on_absent_data_is_for_the_command_line(tmp_path, monkeypatch):
    """On the page of a study that goes on without some of its data; other texts stay as they are."""
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "data"))
    lines = done("reproduce", "unmf/figure1", "--quick", "-o", tmp_path / "out")
    texts = [(tmp_path / "out" / f"unmf-figure1.{ending}").read_text(encoding="utf-8") for ending in ("md", "json")]
    for text in ("\n".join(lines), *texts):
        assert "halfseen datasets movielens-genres --fetch" in text
        assert "halfseen.datasets.fetch" not in text
    footnote = 'Set unseen="zero" and n_burn.'
    (table,) = results.with_cli_advice(Result("", [Table("", [], [], [footnote])])).tables
    assert table.footnotes == [footnote]


def test_refusals_before_any_work(small, tmp_path):
    (tmp_path / "file").write_text("a file")
    assert "--list" in misused("reproduce")
    assert "--keep" in misused("reproduce", "a1gm", "--keep")
    assert refused("reproduce", "a1gm/table1", "a1gm/figur5").endswith("'a1gm/figure5'?")
    for place in ("file", "no/out"):
        assert str(tmp_path / place.partition("/")[0]) in refused("reproduce", "a1gm", "-o", tmp_path / place)
    assert small["a1gm/table1"].runs == []


def test_a_full_disk(small, tmp_path, full_disk):
    with full_disk():
        result = run("reproduce", "a1gm/table1", "-o", tmp_path)
    assert result.exit_code == 2
    assert any(os.strerror(number) in result.stderr for number in (errno.ENOSPC, errno.EFBIG))
    assert result.stderr.count("\n") == 1
    assert "All in all." in result.stdout
    assert not [name for name in names_in(tmp_path) if name.endswith(".part")]


# Results that are kept.


@pytest.fixture
def folder(small, tmp_path):
    """What a run of one paper has left: one study with goals, one without."""
    pytest.importorskip("matplotlib")
    small["a1gm/table1"] = Judged("a1gm/table1", True, False)
    done("reproduce", "a1gm", "-q", "-o", tmp_path)
    for name in FIRST:
        small[name].runs.clear()
    return tmp_path


def runs_of(small, *names):
    return [len(small[name].runs) for name in names]


def test_all_that_is_known_is_in_the_json(folder):
    found = json.loads((folder / "a1gm-table1.json").read_text(encoding="utf-8"))
    assert found.pop("seconds") >= 0
    record = found.pop("record")
    machine = record.pop("machine").split(", ")
    assert (machine[0], machine[-1]) == (f"{os.cpu_count()} processors", f"{os.cpu_count()} processes")
    assert record == {"date": date.today().isoformat(), "command": "halfseen reproduce a1gm/table1"}
    columns = [
        {"name": "data", "group": "", "form": ""},
        {"name": "paper", "group": "error", "form": ""},
        {"name": "ours", "group": "error", "form": ".2f"},
    ]
    rows, footnotes = [["x", "0.12", 0.123456789], ["y", "3", None]], ["(1) A footnote [sic]."]
    assert found == {
        "study": "a1gm/table1",
        "title": "What it shows",
        "paper": "A paper",
        "terms": {"quick": False, "seed": 0, "engine": "cpu", "halfseen": halfseen.__version__, "absent": []},
        "substitute": "",
        "left_out": [],
        "verdict": "short of 1 of 2",
        "summary": "All in all.",
        "goals": [{"words": "goal 0", "state": "pass"}, {"words": "goal 1", "state": "short"}],
        "tables": [
            {"title": "First", "columns": columns, "rows": rows, "footnotes": footnotes, "name": "a"},
            {"title": "Second", "columns": columns[:1], "rows": [["z"]], "footnotes": [], "name": "b"},
        ],
        "pictures": [{"title": "A picture", "file": "a1gm-table1-p.png"}],
    }


def test_what_is_there_is_not_run_again_and_the_page_is_the_same(small, folder):
    lines = done("reproduce", "all", "--keep", "-o", folder)
    assert sum("kept from an earlier run" in line for line in lines) == len(FIRST)
    assert runs_of(small, *NAMES) == [0] * len(FIRST) + [1] * (len(NAMES) - len(FIRST))
    first = (folder / "studies.html").read_text("utf-8")
    done("reproduce", "all", "--keep", "-q", "-o", folder)
    assert runs_of(small, *NAMES) == [0] * len(FIRST) + [1] * (len(NAMES) - len(FIRST))
    assert (folder / "studies.html").read_text("utf-8") == first
    assert first.count("data:image/png;base64,") == len(NAMES)


@pytest.mark.parametrize("words", ["", "--keep --quick", "--keep --seed 1"])
def test_without_the_option_or_with_other_settings_all_is_run(small, folder, words):
    done("reproduce", "a1gm", "-q", "-o", folder, *words.split())
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [1, 1]


@pytest.mark.parametrize("harm", ["other data", "cut short", "not JSON of ours", "a picture is gone"])
def test_what_is_not_complete_or_of_other_data_is_run_again(small, folder, harm, monkeypatch):
    path = folder / "a1gm-table1.json"
    text = path.read_text()
    if harm == "other data":
        monkeypatch.setattr(small["a1gm/table1"], "absent", lambda: ["sunspots"])
    elif harm == "a picture is gone":
        (folder / "a1gm-table1-p.png").unlink()
    else:
        path.write_text(text[: len(text) // 2] if harm == "cut short" else "[1, 2]")
    done("reproduce", "a1gm", "--keep", "-q", "-o", folder)
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [1, 0]


# The page of all studies.


def test_the_page_of_all_studies(small, elsewhere):
    """One passes, one is short, one has no data; every table and picture is there, and nothing of the network."""
    pytest.importorskip("matplotlib")
    small["a1gm/table1"] = Judged("a1gm/table1", True, True)
    small["a1gm/figure5"] = Judged("a1gm/figure5", True, False, False)
    small["grr/table4.1"] = Small("grr/table4.1", ABSENT)
    assert run("reproduce", "all", "-q").exit_code == 0
    folder = elsewhere / "halfseen-studies"
    html, markdown = ((folder / f"studies.{ending}").read_text("utf-8") for ending in ("html", "md"))
    for name in NAMES:
        assert f"{name}: What it shows" in html
        assert f"### {name}: What it shows" in markdown
    n_done = len(NAMES) - 1
    assert html.count(">First<") == html.count("data:image/png;base64,") == n_done
    assert html.count('<td class="number theirs">0.12</td><td class="number">0.12</td>') == n_done
    assert markdown.count("| x | 0.12 | 0.12 |") == n_done
    assert all((folder / place).is_file() for place in re.findall(r"!\[A picture\]\((.+)\)", markdown))
    verdicts = dict(re.findall(r'<a href="#\S+">(\S+)</a></th>.*?<td class="verdict [^"]*">([^<]*)</td>', html))
    expected = {"a1gm/table1": "pass", "a1gm/figure5": "short of 2 of 3", "grr/table4.1": "not run"}
    assert verdicts == dict.fromkeys(NAMES, "-") | expected
    assert "The &lt;data&gt; must be there." in html
    assert f"{len(NAMES)}, of which {n_done} ran" in html
    assert "- short: goal 1" in markdown
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', html) == []
    assert "default-src 'none'" in html


def test_without_jinja_there_is_the_markdown_alone_and_a_paper_has_no_page(small, tmp_path, monkeypatch):
    done("reproduce", "a1gm", "-o", tmp_path)
    assert not list(tmp_path.glob("studies*"))
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("reproduce", "all", "-q", "-o", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "pip install jinja2" in result.stderr
    assert [path.name for path in tmp_path.glob("studies*")] == ["studies.md"]


# Ctrl-C, and terminals.


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_does_as_ctrl_c_and_the_exit_code_tells_which(name, small, tmp_path, monkeypatch):
    number = getattr(signal, name)
    signal.signal(number, signal.SIG_DFL)  # under nohup it would be ignored
    monkeypatch.setattr(small["ordnmf/table2"], "compute", lambda *_: os.kill(os.getpid(), number))
    result = run("reproduce", "all", "-q", "-o", tmp_path)
    assert result.exit_code == 128 + number
    assert f"the results of {', '.join(FIRST)} are in {tmp_path}" in result.stderr.splitlines()[-1]
    assert (tmp_path / "studies.md").read_text("utf-8").count("Not run. The run was interrupted.")
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_interrupted_run_keeps_what_was_done_and_goes_on(small, tmp_path):
    small["ordnmf/table2"] = Small("ordnmf/table2", KeyboardInterrupt())
    result = run("reproduce", "all", "-q", "-o", tmp_path)
    assert result.exit_code == 130
    last = result.stderr.splitlines()[-1]
    assert all(text in last for text in ("ordnmf/table2", ", ".join(FIRST), str(tmp_path)))
    page = (tmp_path / "studies.md").read_text("utf-8")
    assert page.count("Not run. The run was interrupted.") == len(NAMES) - len(FIRST)
    assert not list(Path(tmp_path).glob("ordnmf*"))
    small["ordnmf/table2"].failure = None
    done("reproduce", "all", "--keep", "-q", "-o", tmp_path)
    assert runs_of(small, *NAMES) == [1] * len(FIRST) + [2] + [1] * (len(NAMES) - len(FIRST) - 1)
    assert "Not run" not in (tmp_path / "studies.md").read_text("utf-8")


def test_ctrl_c_ends_the_real_program(tmp_path):
    with OnTerminal("reproduce", "a1gm/figure5", "-o", tmp_path / "out") as running:
        running.wait_for(re.compile(r"N = \d+"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        assert running.process.stdout.read() == ""
    assert "Interrupted in a1gm/figure5" in plain(running.shown).replace("\n", "")
    assert "Traceback" not in running.shown
    assert names_in(tmp_path) == []


def test_on_a_terminal_the_tables_are_as_wide_as_it_is():
    shown = shown_at(60, "reproduce", "a1gm/figure5", "--quick")
    lines = plain(shown).splitlines()
    assert "\x1b[" in shown
    assert max(map(len, lines)) <= 60
    assert len([line for line in lines if re.match(r" *100 ", line)]) > 2  # more than one part for each table

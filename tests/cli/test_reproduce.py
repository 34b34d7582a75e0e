"""halfseen reproduce: the papers' tables and figures, ours beside theirs."""

import csv
import errno
import json
import os
import re
import signal
import sys

import numpy as np
import pytest

from halfseen import studies
from halfseen.cli import results
from halfseen.errors import DataError
from halfseen.studies import NAMES, Result, Table
from halfseen.studies.a1gm_tables import TABLE1
from tests.cli.program import done, misused, names_in, program, refused
from tests.cli.program import halfseen as run
from tests.cli.small_studies import Small
from tests.cli.test_terminal import OnTerminal, listening, plain, shown_at  # noqa: F401  (a fixture for Ctrl-C)
from tests.studies.data import needs_data_of

# The list.


def test_the_list_names_every_study_its_paper_and_its_data():
    entries = "\n".join(done("reproduce", "--list")).split("\n\n")
    assert [entry.splitlines()[0] for entry in entries] == list(NAMES)
    for name, entry in zip(NAMES, entries, strict=True):
        found = studies.study(name)
        assert found.title in entry
        assert f"Paper: {found.paper}" in entry


def test_the_list_says_which_data_are_absent(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    entries = "\n".join(done("reproduce", "--list")).split("\n\n")
    assert "Data: 0 of 15 there; absent: auto_mpg, sunspots_daily, " in entries[NAMES.index("a1gm/table1")]
    assert "Data: none needed" in entries[NAMES.index("a1gm/figure5")]


def test_the_list_of_some_alone():
    """Words after --list are not passed over."""
    entries = "\n".join(done("reproduce", "--list", "UNMF", "a1gm/figure5")).split("\n\n")
    assert [entry.splitlines()[0] for entry in entries] == ["unmf/figure1", "unmf/figure2", "a1gm/figure5"]
    assert len(json.loads("\n".join(done("reproduce", "--list", "a1gm", "--json")))) == 2
    assert refused("reproduce", "--list", "all", "nonsense").endswith("Found 'nonsense'. Choose one of these.")


@needs_data_of("a1gm/table1")
def test_the_list_says_that_data_are_there():
    assert "  Data: all 15 there" in done("reproduce", "--list")


# What is shown.


def test_the_numbers_are_shown_as_plain_lines(small):
    assert done("reproduce", "a1gm/table1") == [
        "a1gm/table1: What it shows",
        "A paper",
        "",
        "First",
        "",
        "      error -----",
        "data  paper  ours",
        "x      0.12  0.12",
        "y         3     -",
        "",
        "(1) A footnote [sic].",
        "",
        "Second",
        "",
        "data",
        "z",
        "",
        "All in all.",
        "",
    ]


def test_options_reach_the_study(small):
    done("reproduce", "a1gm/table1")
    done("reproduce", "a1gm/table1", "--quick", "--seed", 7)
    assert small["a1gm/table1"].runs == [(False, 0), (True, 7)]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["a1gm/figure5"], ["a1gm/figure5"]),
        (["a1gm"], [name for name in NAMES if name.startswith("a1gm/")]),
        (["all"], list(NAMES)),
        (["a1gm/figure5", "a1gm", "a1gm/figure5"], ["a1gm/figure5", "a1gm/table1"]),
    ],
)
def test_one_study_a_paper_or_all_each_once(small, elsewhere, words, names):
    lines = done("reproduce", *words)
    assert [line.partition(":")[0] for line in lines if line.endswith(": What it shows")] == names


@needs_data_of("a1gm/table1", "auto_mpg", "lung_cancer", "sleep_mammals")
def test_table_1_small():
    lines = done("reproduce", "a1gm/table1", "--quick")
    for name in ("auto_mpg", "lung_cancer", "sleep_mammals"):
        (line,) = (line for line in lines if line.startswith(name.replace("_", " ")))
        n, m = TABLE1[name].size
        assert line.count(f"{n} x {m}") == 2
        assert line.endswith("yes")
        assert TABLE1[name].time in line


def test_figure_5_small():
    lines = done("reproduce", "a1gm/figure5", "--quick")
    sizes = [line.split()[0] for line in lines if re.match(r" *\d+ ", line)]
    assert sizes == ["100", "200", "300"] * 2


def test_the_real_program():
    result = program("reproduce", "a1gm/figure5", "--quick")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert result.stdout.startswith("a1gm/figure5: ")


# What is written.


def test_everything_is_written(small, tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "out"
    lines = done("reproduce", "a1gm/table1", "-o", f"{folder}/")
    files = ["a1gm-table1-a.csv", "a1gm-table1-b.csv", "a1gm-table1-p.png", "a1gm-table1.json", "a1gm-table1.md"]
    assert names_in(folder) == files
    assert sorted(re.findall(r"^Saved (.+) \(", "\n".join(lines), re.MULTILINE)) == [str(folder / one) for one in files]


def test_csv_has_the_values_to_the_last_digit(small, tmp_path):
    done("reproduce", "a1gm/table1", "-o", tmp_path)
    with (tmp_path / "a1gm-table1-a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["data", "error paper", "error ours"],
            ["x", "0.12", "0.123456789"],
            ["y", "3", ""],
        ]


def test_markdown_has_the_tables_the_footnotes_and_the_pictures(small, tmp_path):
    pytest.importorskip("matplotlib")
    done("reproduce", "a1gm/table1", "-o", tmp_path)
    page = (tmp_path / "a1gm-table1.md").read_text(encoding="utf-8")
    assert page.startswith(
        "# a1gm/table1\n\nWhat it shows. A paper.\n\nAll in all.\n\n**First**\n\n| data | error paper |"
    )
    assert "| y | 3 | - |\n\n- (1) A footnote [sic].\n" in page
    assert page.endswith("\n![A picture](a1gm-table1-p.png)\n")


def test_pictures_are_png(small, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    done("reproduce", "a1gm/table1", "-o", tmp_path)
    pixels = image.imread(tmp_path / "a1gm-table1-p.png")
    assert pixels.shape[:2] == (720, 960)
    assert np.ptp(pixels[..., :3]) == 1  # black on white


@needs_data_of("a1gm/table1", "auto_mpg", "lung_cancer", "sleep_mammals")
def test_the_files_of_both_studies(tmp_path):
    pytest.importorskip("matplotlib")
    done("reproduce", "a1gm", "--quick", "-o", tmp_path)
    assert names_in(tmp_path) == [
        "a1gm-figure5-a.csv",
        "a1gm-figure5-a.png",
        "a1gm-figure5-b.csv",
        "a1gm-figure5-b.png",
        "a1gm-figure5.json",
        "a1gm-figure5.md",
        "a1gm-table1.csv",
        "a1gm-table1.json",
        "a1gm-table1.md",
    ]


def test_files_are_replaced(small, tmp_path):
    (tmp_path / "a1gm-table1.md").write_text("old")
    done("reproduce", "a1gm/table1", "-o", tmp_path)
    assert (tmp_path / "a1gm-table1.md").read_text().startswith("# a1gm/table1")


def test_without_matplotlib_the_numbers_are_there_all_the_same(small, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("reproduce", "a1gm/table1", "-o", tmp_path)
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "note: Figures need matplotlib. It is not installed. Get it: pip install matplotlib"
    )
    assert result.stderr.count("\n") == 1
    assert "x      0.12  0.12" in result.stdout.splitlines()
    assert names_in(tmp_path) == ["a1gm-table1-a.csv", "a1gm-table1-b.csv", "a1gm-table1.json", "a1gm-table1.md"]
    assert "![" not in (tmp_path / "a1gm-table1.md").read_text()


def test_the_list_for_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    told = json.loads("\n".join(done("reproduce", "--list", "--json")))
    assert [one["name"] for one in told] == list(NAMES)
    assert told[0]["absent"] == told[0]["needs"] == list(studies.study("a1gm/table1").needs)


# What cannot be.


def test_no_study_at_all():
    assert misused("reproduce") == "Say which study, such as a1gm/table1, or --list them all."


def test_an_unknown_study_is_refused_before_any_work(small):
    sentence = refused("reproduce", "a1gm/table1", "a1gm/figur5")
    assert sentence.endswith("Found 'a1gm/figur5'. Did you mean 'a1gm/figure5'?")
    assert small["a1gm/table1"].runs == []


def test_a_file_is_no_folder(small, tmp_path):
    (tmp_path / "out").write_text("a file")
    sentence = refused("reproduce", "a1gm/table1", "-o", tmp_path / "out")
    assert (
        sentence == f"halfseen: The output must be a folder. Found a file at {str(tmp_path / 'out')!r}. Name another."
    )
    assert small["a1gm/table1"].runs == []


def test_a_folder_in_no_folder(small, tmp_path):
    assert "does not exist" in refused("reproduce", "a1gm/table1", "-o", tmp_path / "no" / "out")
    assert small["a1gm/table1"].runs == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_closed(small, tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert "is not writable" in refused("reproduce", "a1gm/table1", "-o", tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk(small, tmp_path, full_disk):
    with full_disk():
        result = run("reproduce", "a1gm/table1", "-o", tmp_path)
    assert result.exit_code == 2
    assert any(os.strerror(number) in result.stderr for number in (errno.ENOSPC, errno.EFBIG))
    assert result.stderr.count("\n") == 1
    assert "All in all." in result.stdout
    assert not [name for name in names_in(tmp_path) if name.endswith(".part")]


def test_data_that_are_absent_are_the_loader_s_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    sentence = refused("reproduce", "a1gm/table1")
    assert "auto-mpg.data" in sentence
    assert "HALFSEEN_DATA" in sentence


def test_of_several_studies_those_without_data_are_left_out(small):
    small["a1gm/table1"] = Small("a1gm/table1", DataError("The data must be there. They are not. Get them."))
    result = run("reproduce", "a1gm")
    assert result.exit_code == 0
    assert result.stderr == "note: a1gm/table1 was left out. The data must be there. They are not. Get them.\n"
    assert "a1gm/figure5: What it shows" in result.stdout
    assert "a1gm/table1" not in result.stdout


def test_a_study_asked_for_by_name_is_not_left_out(small, elsewhere):
    small["a1gm/table1"] = Small("a1gm/table1", DataError("The data must be there. They are not. Get them."))
    assert refused("reproduce", "all", "a1gm/table1") == "halfseen: The data must be there. They are not. Get them."


def test_however_it_is_spelled(small):
    small["a1gm/table1"] = Small("a1gm/table1", DataError("The data must be there. They are not. Get them."))
    assert refused("reproduce", "A1GM/Table1") == "halfseen: The data must be there. They are not. Get them."


def test_what_to_do_about_absent_data_is_told_in_words_of_the_program(tmp_path, monkeypatch):
    """On the page of a study that goes on without some of its data."""
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "data"))
    lines = done("reproduce", "unmf/figure1", "--quick", "-o", tmp_path / "out")
    page = (tmp_path / "out" / "unmf-figure1.md").read_text(encoding="utf-8")
    kept = (tmp_path / "out" / "unmf-figure1.json").read_text(encoding="utf-8")
    for text in ("\n".join(lines), page, kept):
        assert "halfseen datasets movielens-genres --fetch" in text
        assert "halfseen datasets sushi-groups --fetch" in text
        assert "halfseen.datasets.fetch" not in text
        assert "Left out, for want of data: MovieLens genres, SUSHI groups." in text


def test_other_texts_of_a_study_stay_as_they_are():
    footnotes = ['Set unseen="zero" and n_burn.', 'Get it by halfseen.datasets.fetch("x"), or by hand.']
    (table,) = results.advising(Result("", [Table("", [], [], footnotes)])).tables
    assert table.footnotes == [footnotes[0], "Get it by halfseen datasets x --fetch, or by hand."]


def test_none_of_the_studies_has_data(small, elsewhere):
    for name in NAMES:
        small[name] = Small(name, DataError("The data must be there."))
    result = run("reproduce", "all")
    assert (result.exit_code, result.stdout) == (2, "")
    *notes, last = result.stderr.splitlines()
    assert [note.split()[1] for note in notes] == list(NAMES)
    assert last.startswith("halfseen: A study must find its data. None of ")


# Ctrl-C, and terminals.


def test_an_interrupt_keeps_what_was_done_before(small, tmp_path):
    small["a1gm/figure5"] = Small("a1gm/figure5", KeyboardInterrupt())
    result = run("reproduce", "a1gm", "-o", tmp_path)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == (
        f"Interrupted in a1gm/figure5, of which nothing was saved; what came of a1gm/table1 is in {tmp_path}."
    )
    assert "a1gm-table1.md" in names_in(tmp_path)
    assert not [name for name in names_in(tmp_path) if "figure5" in name]


def test_ctrl_c_ends_the_real_program(tmp_path):
    with OnTerminal("reproduce", "a1gm/figure5", "-o", tmp_path / "out") as running:
        running.wait_for(re.compile(r"N = \d+"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        assert running.process.stdout.read() == ""
    assert "Interrupted in a1gm/figure5, of which nothing was saved." in plain(running.shown).replace("\n", "")
    assert "Traceback" not in running.shown
    assert names_in(tmp_path) == []


def test_on_a_terminal_the_tables_are_as_wide_as_it_is():
    shown = shown_at(60, "reproduce", "a1gm/figure5", "--quick")
    lines = plain(shown).splitlines()
    assert "\x1b[" in shown
    assert max(map(len, lines)) <= 60
    assert len([line for line in lines if re.match(r" *100 ", line)]) > 2  # more than one block for each table

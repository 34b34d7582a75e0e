"""What came of studies is kept beside their tables, and a run goes on where an earlier one ended."""

import json

import pytest

import halfseen
from halfseen.studies import NAMES
from tests.cli.program import done, misused
from tests.cli.program import halfseen as run
from tests.cli.small_studies import Judged, Small

FILE = "a1gm-table1.json"


@pytest.fixture
def folder(small, tmp_path):
    """What a run of one paper has left: one study with goals, one without."""
    pytest.importorskip("matplotlib")
    small["a1gm/table1"] = Judged("a1gm/table1", True, False)
    done("reproduce", "a1gm", "-q", "-o", tmp_path)
    for name in ("a1gm/table1", "a1gm/figure5"):
        small[name].runs.clear()
    return tmp_path


def runs_of(small, *names):
    return [len(small[name].runs) for name in names]


def test_all_that_is_known_is_there_for_programs(folder):
    told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    assert told.pop("seconds") >= 0
    columns = [
        {"name": "data", "group": "", "form": ""},
        {"name": "paper", "group": "error", "form": ""},
        {"name": "ours", "group": "error", "form": ".2f"},
    ]
    assert told == {
        "study": "a1gm/table1",
        "title": "What it shows",
        "paper": "A paper",
        "terms": {"quick": False, "seed": 0, "halfseen": halfseen.__version__, "absent": []},
        "verdict": "short of 1 of 2",
        "summary": "All in all.",
        "goals": [{"words": "goal 0", "reached": True}, {"words": "goal 1", "reached": False}],
        "tables": [
            {
                "title": "First",
                "columns": columns,
                "rows": [["x", "0.12", 0.123456789], ["y", "3", None]],
                "footnotes": ["(1) A footnote [sic]."],
                "name": "a",
            },
            {"title": "Second", "columns": columns[:1], "rows": [["z"]], "footnotes": [], "name": "b"},
        ],
        "pictures": [{"title": "A picture", "file": "a1gm-table1-p.png"}],
    }


def test_what_is_there_is_not_run_again_and_the_page_is_the_same(small, folder):
    lines = done("reproduce", "all", "--keep", "-o", folder)
    assert sum("kept from an earlier run of" in line for line in lines) == 2
    assert runs_of(small, *NAMES) == [0, 0] + [1] * (len(NAMES) - 2)
    first = (folder / "studies.html").read_text("utf-8")
    done("reproduce", "all", "--keep", "-q", "-o", folder)
    assert runs_of(small, *NAMES) == [0, 0] + [1] * (len(NAMES) - 2)
    assert (folder / "studies.html").read_text("utf-8") == first
    assert first.count("data:image/png;base64,") == len(NAMES)
    assert "short of 1 of 2" in first


def test_without_the_option_all_is_run(small, folder):
    done("reproduce", "a1gm", "-q", "-o", folder)
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [1, 1]


@pytest.mark.parametrize("words", [("--quick",), ("--seed", 1)])
def test_on_other_terms_all_is_run(small, folder, words):
    done("reproduce", "a1gm", "--keep", "-q", "-o", folder, *words)
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [1, 1]


def test_of_another_version_or_with_other_data_all_is_run(small, folder, monkeypatch):
    monkeypatch.setattr(small["a1gm/figure5"], "absent", lambda: ["sunspots"])
    done("reproduce", "a1gm", "--keep", "-q", "-o", folder)
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [0, 1]
    monkeypatch.setattr("halfseen.cli.results.__version__", "99")
    done("reproduce", "a1gm", "--keep", "-q", "-o", folder)
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [1, 2]


@pytest.mark.parametrize("harm", ["cut short", "not JSON of ours", "a picture is gone"])
def test_what_is_not_whole_is_run_again(small, folder, harm):
    if harm == "a picture is gone":
        (folder / "a1gm-table1-p.png").unlink()
    else:
        text = (folder / FILE).read_text()
        (folder / FILE).write_text(text[: len(text) // 2] if harm == "cut short" else "[1, 2]")
    done("reproduce", "a1gm", "--keep", "-q", "-o", folder)
    assert runs_of(small, "a1gm/table1", "a1gm/figure5") == [1, 0]


def test_an_interrupted_run_goes_on(small, tmp_path):
    small["ordnmf/table2"] = Small("ordnmf/table2", KeyboardInterrupt())
    assert run("reproduce", "all", "-q", "-o", tmp_path).exit_code == 130
    small["ordnmf/table2"].failure = None
    done("reproduce", "all", "--keep", "-q", "-o", tmp_path)
    assert runs_of(small, *NAMES) == [1, 1, 2, *[1] * (len(NAMES) - 3)]
    assert "Not run" not in (tmp_path / "studies.md").read_text("utf-8")


def test_without_a_folder_there_is_nothing_to_keep():
    assert misused("reproduce", "a1gm", "--keep").startswith("--keep needs the folder of the earlier run: -o FOLDER.")

"""Studies by name, tables of values, and medians of run times."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest
from threadpoolctl import threadpool_info

from halfseen.errors import DataError, ParameterError
from halfseen.studies import NAMES, Column, Goal, Result, Study, Table, framework, select, study
from halfseen.studies.framework import median_seconds, parallel_map
from tests.cli.small_studies import Judged


@pytest.mark.parametrize("name", NAMES)
def test_a_study_has_its_name_title_and_paper(name):
    one = study(name)
    assert isinstance(one, Study)
    assert one.name == name
    assert one.title
    assert one.paper
    assert set(one.absent()) <= set(one.needs)


def test_names_select_studies_and_tables_format_values():
    assert select("a1gm/figure5") == ("a1gm/figure5",)
    assert select("a1gm") == tuple(name for name in NAMES if name.startswith("a1gm/"))
    assert select("all") == NAMES
    column = Column("time", "relative", ".3f")
    assert column.full_name == "relative time"
    assert [column.text(value) for value in (0.12345, 2, None, "0.1", "")] == ["0.123", "2.000", "-", "0.1", ""]
    table = Table("t", [Column("name"), Column("ours", "error", ".1f")], [["x", 0.25], ["y", None]])
    assert table.texts() == [["x", "0.2"], ["y", "-"]]
    assert table.column("error ours") == [0.25, None]
    with pytest.raises(ValueError):
        Table("t", [Column("a"), Column("b")], [[1]]).texts()


@pytest.mark.parametrize(
    ("name", "near"), [("a1gm/tabel1", "'a1gm/table1'"), ("figure5", "'a1gm/figure5'"), ("a1gm/", "'a1gm'"), ("", None)]
)
def test_an_unknown_name_is_an_error_with_the_nearest(name, near):
    with pytest.raises(ParameterError) as caught:
        select(name)
    assert caught.value.found == repr(name)
    assert caught.value.remedy == (f"Did you mean {near}?" if near else "Choose one of these.")
    assert all(name in caught.value.must for name in NAMES)


def test_studies_are_imported_when_they_are_needed():
    code = (
        "import sys, halfseen.studies as s; s.select('all')\n"
        "print([name for name in sys.modules if name.startswith('halfseen.studies.a1gm') or 'matplotlib' in name])\n"
        "s.study('a1gm/figure5')\n"
        "names = ('halfseen.studies.a1gm_figures', 'halfseen.studies.a1gm_tables', 'numba', 'matplotlib')\n"
        "print([name for name in names if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.splitlines() == ["[]", "['halfseen.studies.a1gm_figures']"]


class Clock:
    """Time that passes only in functions, each taking its given times one after the other; the log has their names."""

    def __init__(self):
        self.now, self.log = 0.0, []

    def function(self, name, *times):
        left = list(times)

        def run():
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


def test_medians_leave_out_the_first_run_and_outliers(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(framework, "perf_counter", lambda: clock.now)
    slow, fast = clock.function("slow", 99, 3, 2, 50), clock.function("fast", 77, 0.5, 0.1, 0.2)
    assert median_seconds([slow, fast], at_least=3, until=0) == pytest.approx([3, 0.2])
    assert clock.log == ["slow", "fast"] * 4
    for seconds, at_least, rounds in ((0.25, 2, 4), (10, 5, 5)):  # until the time is up, and as often as asked
        clock.log.clear()
        median_seconds([clock.function("one", seconds)], at_least=at_least, until=1.0)
        assert len(clock.log) == 1 + rounds


def test_blas_has_one_thread_while_timing():
    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, meanwhile = threads(), []
    median_seconds([lambda: meanwhile.append(threads())], at_least=1, until=0)
    assert meanwhile == [[1] * len(before)] * 2
    assert threads() == before
    with pytest.raises(ZeroDivisionError):
        median_seconds([lambda: 1 / 0])
    assert threads() == before


def test_verdicts_are_of_goals():
    assert Result("", []).verdict == ""
    assert Result("", [], goals=[Goal.claim("a", True)]).verdict == "pass"
    short = Result("", [], goals=[Goal.claim("a", True), Goal.claim("b", False)])
    assert short.verdict == "short of 1 of 2"
    assert replace(short, substitute="X").verdict == "data not to be had; on X: short of 1 of 2"


@pytest.mark.parametrize(
    ("printed", "better", "draws", "state"),
    [
        ("0.25", "lower", [0.2549], framework.PASS),  # the mean in the printed digits
        ("0.25", "lower", [0.2551], framework.SHORT),
        ("0.25", "higher", [0.2551], framework.PASS),
        ("0.25", "", [0.10], framework.SHORT),
        ("0.25", "lower", [0.10], framework.PASS),
        ("0.25", "lower", [0.24, *[0.30] * 9], framework.WITHIN),
        ("0.25", "lower", [0.24, *[0.30] * 8], framework.SHORT),  # too few draws
        ("0.25", "lower", [0.2549, *[0.30] * 9], framework.WITHIN),  # in its digits
        ("0.25", "lower", [0.2551, *[0.30] * 9], framework.SHORT),
        ("0.25", "", [0.0, *[0.30] * 9], framework.WITHIN),
        ("7", "", [6.0, *[9.0] * 9], framework.WITHIN),
    ],
)
def test_a_printed_number_is_compared_with_draws(printed, better, draws, state):
    goal = Goal.printed("what", printed, draws, better)
    assert goal.state == state
    assert f"printed {printed}" in goal.words
    assert Result("", [], goals=[goal]).verdict == ("short of 1 of 1" if state == framework.SHORT else state)


def test_quick_runs_are_never_judged_and_processes_change_nothing():
    small = Judged("a1gm/table1", True, False)
    assert small.run().verdict == "short of 1 of 2"
    assert small.run(quick=True).verdict == ""
    said = []
    for n_jobs in (1, 2):
        assert parallel_map(math.sqrt, [4.0, 9.0, 16.0], n_jobs, said.append) == [2.0, 3.0, 4.0]
    assert said == ["4.0", "9.0", "16.0", "1 of 3 done", "2 of 3 done", "3 of 3 done"]


@pytest.mark.parametrize("name", ["a1gm/table1", "grr/figure4.4", "ordnmf/table2", "ordnmf/table3", "ordnmf/figure4"])
def test_without_any_data_the_loader_raises(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    assert study(name).absent() == list(study(name).needs)
    with pytest.raises(DataError):
        study(name).run(quick=True)

"""Every command that reads data tells which columns it took for what."""

import pytest

from tests.cli.conftest import write_long
from tests.cli.program import done
from tests.cli.program import halfseen as run

LONG = "Rows are from column 'user', columns from column 'item', values from column 'rating'."


@pytest.mark.parametrize("ending", [["-o", "best.csv"], []], ids=["to a file", "shown"])
def test_a_history(model, ratings, elsewhere, ending):
    path = write_long(elsewhere / "new.csv", ratings.values[:1], rows=["zoe"])
    result = run("recommend", model, "--history", path, "-n", 1, *ending)
    told = result.stdout if ending else result.stderr  # what is shown is the result alone
    assert told.splitlines()[0].startswith(f"Read {path}: 1 x 6, 4 cells seen (0.667 of all), values ")
    assert told.splitlines()[0].endswith(LONG)
    assert ("Read" in result.stdout) == bool(ending)
    assert run("recommend", model, "--history", path, "-n", 1, "-q", *ending).stderr == ""


def test_what_a_report_and_an_evaluation_are_made_from(model, ratings, elsewhere):
    pytest.importorskip("matplotlib")
    known = write_long(elsewhere / "known.csv", ratings.values)
    held = elsewhere / "held.csv"
    held.write_text("user,timestamp,item,rating\nann,1,ale,2\nbob,2,cider,3\n")
    told = done("report", model, "--train", known, "--test", held, "-o", "report.html")
    assert told[0].endswith(LONG)
    assert told[1].endswith(f"{LONG[:-1]}; column 'timestamp' is not used.")
    assert done("evaluate", model, "--test", held, "--train", known, "--columns", "user,item,rating")[:2] == [
        told[1],
        told[0],
    ]


def test_a_table_that_may_be_a_long_one(elsewhere):
    (elsewhere / "t.csv").write_text("kunde,artikel,note\n1,7,5\n1,8,4\n2,7,3\n3,8,1\n")
    told = done("fit", "t.csv", "--method", "nmf", "-k", 1, "--max-iter", 1000)
    hint = "A wide table: 3 columns of numbers. If its lines are row, column, value, say --columns kunde,artikel,note."
    assert told[0].endswith(hint)
    told = done("fit", "t.csv", "--method", "nmf", "-k", 1, "--max-iter", 1000, "--columns", "kunde,artikel,note")
    assert told[0].startswith("Read t.csv: 3 x 2, 4 cells seen")

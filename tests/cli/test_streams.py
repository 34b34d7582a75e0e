"""The real program between pipes: - for standard input and output, and streams that are closed or full."""

import csv
import gzip
import io
import os
import shutil
import subprocess

import numpy as np
import pytest

import halfseen
from tests.cli.conftest import USERS
from tests.cli.program import PROGRAM, check_refusal, done, names_in, program

TABLE = "name,a,b,c\nx,1,2,\ny,2,,6\nz,3,6,9\n"
HELD = "user,item,rating\nann,ale,3\nbob,wine,2\n"  # cells that the ratings lack


def piped(text, *words):
    """What the real program says when text comes through a pipe; bytes if bytes go in."""
    result = program(*words, input=text, text=isinstance(text, str))
    assert result.returncode == 0, result.stderr
    return result


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


# Standard input.


@pytest.mark.parametrize("how", ["text", "gzip", "parquet"])
def test_a_fit_of_standard_input_is_that_of_the_file(ratings, tmp_path, how):
    contents = ratings.path.read_bytes()
    if how == "gzip":
        contents = gzip.compress(contents)
    elif how == "parquet":
        pytest.importorskip("polars").read_csv(ratings.path).write_parquet(tmp_path / "ratings.parquet")
        contents = (tmp_path / "ratings.parquet").read_bytes()
    piped_in = piped(contents, "fit", "-", "-k", 2, "-o", tmp_path / "piped.hs")
    assert piped_in.stdout.startswith(b"Read standard input: 8 x 6, 32 cells seen")
    done("fit", ratings.path, "-k", 2, "-q", "-o", tmp_path / "filed.hs")
    one, other = (halfseen.load(tmp_path / f"{name}.hs") for name in ("piped", "filed"))
    np.testing.assert_array_equal(one.W_, other.W_)
    assert one.row_labels_.tolist() == list(USERS)


def test_cells_histories_and_held_out_cells(model):
    pairs = "user,item\nann,ale\nbob,wine\n"
    said = rows_of(piped(pairs, "predict", model, "--cells", "-", "-o", "-").stdout)
    assert said[0] == ["user", "item", "prediction"]
    fitted = halfseen.load(model)
    np.testing.assert_allclose([float(row[2]) for row in said[1:]], fitted.predict(["ann", "bob"], ["ale", "wine"]))
    told = piped("user,item,rating\nnew,gin,5\n", "recommend", model, "--history", "-", "-n", 1)
    assert told.stdout.startswith("new:\n")
    assert "Read standard input: " in piped(HELD, "evaluate", model, "--test", "-").stdout


# Standard output.


def test_a_table_is_filled_between_two_pipes():
    result = piped(TABLE, "impute", "-", "-k", 1, "-o", "-")
    rows = rows_of(result.stdout)
    assert [row[0] for row in rows] == ["name", "x", "y", "z"]
    assert [row[1] for row in rows] == ["a", "1", "2", "3"]
    assert all(float(field) > 0 for row in rows[1:] for field in row[1:])
    assert result.stderr.startswith("Read standard input: 3 x 3")  # the account does not mix with the table
    assert "Saved" not in result.stderr
    quietly = piped(TABLE, "impute", "-", "-k", 1, "-q", "-o", "-")
    assert (quietly.stdout, quietly.stderr) == (result.stdout, "")


def test_commands_in_a_row(ratings, model):
    """What one writes, the next reads; a column that is called prediction already is kept."""
    first = piped("", "predict", model, "--cells", ratings.path, "-o", "-").stdout
    header, *rows = rows_of(piped(first, "predict", model, "--cells", "-", "-o", "-").stdout)
    assert header == ["user", "item", "rating", "prediction", "prediction_"]
    assert [row[3] for row in rows] == [row[4] for row in rows]
    assert len(rows) == 32


def test_a_report_between_two_pipes(model, tmp_path):
    """The page alone comes out, and is that of the same cells in a file."""
    (tmp_path / "held.csv").write_text(HELD)
    options = ("--title", "Drinks", "--test")
    result = piped(HELD, "report", model, *options, "-", "-o", "-")
    done("report", model, *options, tmp_path / "held.csv", "-o", tmp_path / "report.html")
    assert result.stdout == (tmp_path / "report.html").read_text()
    assert result.stderr.splitlines()[0].startswith("Read standard input: 2 x 2, 2 cells seen")


def test_nothing_comes_out_of_what_fails_and_nothing_is_left_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    piped(TABLE, "impute", "-", "-k", 1, "-o", "-")
    result = program("impute", "-", "-k", 1, "-o", "-", input="name,a\nx,-1\n")
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert names_in(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this platform")
@pytest.mark.parametrize("words", ["impute - -k 1 -q -o -", "--version", "doctor"])
def test_what_finds_no_room_is_one_line(words):
    with open("/dev/full", "w") as full:
        result = program(*words.split(), input=TABLE, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    check_refusal(result.returncode, "", result.stderr)
    assert "No space left on device" in result.stderr


# Streams that are closed, and no place on the way.


def in_shell(setting, *words, **options):
    """The program as a shell starts it: after a command, and with redirections."""
    shell = shutil.which("sh") or pytest.skip("no shell on this platform")
    before, _, after = setting.partition("|")
    script = f'{before}; exec "$@" {after}'
    return subprocess.run(
        [shell, "-c", script, "sh", *PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120,
        check=False, **options,
    )  # fmt: skip


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path / "table.csv"


@pytest.mark.parametrize("closed", ["<&-", "0>/dev/null"])
def test_an_input_that_cannot_be_read_is_one_line(closed, tmp_path):
    result = in_shell(f":|{closed}", "fit", "-", "-o", tmp_path / "model.hs")
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert "Standard input" in result.stderr
    assert names_in(tmp_path) == []


def test_an_output_that_is_closed_is_one_line_before_any_work(table):
    result = in_shell(":|>&-", "impute", table, "-o", "-")
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert "Standard output" in result.stderr


def test_no_place_to_keep_what_comes_through_a_pipe_is_one_line(table):
    """Files of no size at all: then no folder is fit to be a temporary one."""
    result = in_shell("ulimit -f 0|", "impute", "-", "-o", "-", input=TABLE)
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert "TMPDIR" in result.stderr


def test_a_temporary_folder_that_is_full_is_not_told_as_the_output(tmp_path, monkeypatch):
    """Some room, less than the table needs; nothing is left of its beginning."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    lines = "".join(f"u{n},i{n},1\n" for n in range(20_000))
    result = in_shell("ulimit -f 8|", "fit", "-", "-o", "/dev/null", input=f"user,item,rating\n{lines}")
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert "TMPDIR" in result.stderr
    assert names_in(tmp_path) == []

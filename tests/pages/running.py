"""Runs a page: its Python and its shell lines, one after the other, in a folder of its own with files made for it."""

import ast
import os
import re
import subprocess
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from halfseen.io import write_table
from tests.cli.program import PROGRAM, halfseen
from tests.pages.claims import claim_in, has_nan, holds
from tests.pages.reading import blocks_of, commands_in, faults_of_command, lines_of_shell

#: How lines begin that are not run, and why. Whether the program would understand them is checked all the same.
NOT_RUN = {
    "make ": "the recipes of the Makefile build environments of their own",
    "pip ": "installs",
    "git ": "needs the network",
    "cd ": "of no effect on a line of its own",
    "source ": "of no effect on a line of its own",
    "halfseen reproduce a1gm": "reads public tables, which may be absent, and measures times",
    "halfseen reproduce ordnmf": "takes hours, and reads public ratings, which may be absent",
    "halfseen reproduce grr": "takes hours",
    "halfseen reproduce unmf": "takes minutes",
    "halfseen reproduce all": "takes minutes, or hours",
    "halfseen fit ratings.parquet --method ordnmf -k 128 --engine cuda": "needs a GPU",
    'halfseen fit "ratings/*.parquet" --engine dask': "starts processes, or needs a cluster",
    "dask ": "runs until it is stopped",
    "halfseen serve": "runs until it is stopped",
    "halfseen datasets movielens-100k": "needs the network, or a file that may be absent",
    "halfseen datasets wiki4he": "needs the network, or a file that may be absent",
}


class Ran(NamedTuple):
    """What a page leaves: the names of its Python, what that printed, and the folder; what each command printed."""

    names: dict[str, Any]
    printed: str
    folder: Path
    told: dict[str, str]


def run_page(page: str, folder: Path, kinds: tuple[str, ...] = ("python", "shell")) -> Ran:
    make_files(folder)
    names: dict[str, Any] = {}
    told: dict[str, str] = {}
    with chdir(folder), redirect_stdout(StringIO()) as printed:
        for block in blocks_of(page):
            if block.kind == "python" and "python" in kinds:
                run_python(block.text, names, page)
            for line in lines_of_shell(block) if "shell" in kinds else ():
                told[line] = run_line(line, page)
    assert not re.search(r"\bnan\b", printed.getvalue()), f"{page} prints nan"
    return Ran(names, printed.getvalue(), folder, told)


def run_python(block: str, names: dict[str, Any], page: str) -> None:
    """Statement by statement; what is shown, an expression in a line of its own, is held to its comment."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), page, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
        comment = lines[(statement.end_lineno or 1) - 1].encode()[statement.end_col_offset or 0 :].decode()
        where = f"{page}: {ast.unparse(statement)}"
        assert not has_nan(value) or "NaN" in comment, f"{where} is NaN, and does not say so"
        claim = claim_in(comment)
        assert claim is None or holds(value, claim), f"{where} is {value!r}, not {comment.strip()}"


def run_line(line: str, page: str) -> str:
    """What a line prints; what can't be run here is looked at only."""
    for words in commands_in(line):
        assert words[0] != "halfseen" or not faults_of_command(words), f"{page}: {line}"
    if line.startswith(tuple(NOT_RUN)):
        return ""
    if set("|<>") & set(line):
        return _run_by_shell(line, page)
    outputs = []
    for words in commands_in(line):
        assert words[0] == "halfseen", f"{page}: {line} must be in NOT_RUN, with a reason"
        result = halfseen(*words[1:])
        assert result.exit_code == 0, f"{page}: {line}\n{result.output}"
        outputs.append(result.output)
    return "".join(outputs)


def _run_by_shell(line: str, page: str) -> str:
    places = {**os.environ, "PATH": f"{Path(PROGRAM[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], env=places, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{page}: {line}\n{done.stderr}"
    return done.stdout


def make_files(folder: Path) -> None:
    """The files that pages speak of, small ones: ratings, tables with holes, answers, and the lists of a survey."""
    random = np.random.default_rng(0)
    people, films = (
        ["ann", "bob", "cy", *(f"user{n}" for n in range(3, 40))],
        ["x", "y", *(f"film{n}" for n in range(2, 20))],
    )
    taste = random.gamma(1.0, 1.0, (40, 2)) @ random.gamma(1.0, 1.0, (2, 20))
    stars = np.clip(np.round(1 + taste * random.lognormal(0.0, 0.3, taste.shape)), 1, 5)
    drawn = random.random(stars.shape)
    drawn[1, 1] = 1.0  # what is to be foretold
    for name, is_in in {"ratings": drawn < 0.5, "held_out": (drawn >= 0.5) & (drawn < 0.6)}.items():
        rows, columns = np.nonzero(is_in)
        cells = ([people[row] for row in rows], [films[column] for column in columns], stars[rows, columns])
        write_table(folder / f"{name}.csv", ["user", "item", "rating"], cells)
    new = (["zoe", "zoe", "yan"], ["x", "film3", "film4"], [5, 3, 4])
    write_table(folder / "new.csv", ["user", "item", "rating"], new)
    write_table(folder / "titles.csv", ["itemId", "title"], [films, [f"The {film} (1999)" for film in films]])
    write_table(folder / "members.csv", ["user"], [["bob", "ann"]])
    write_table(folder / "in_stock.csv", ["item"], [films[:12]])
    (folder / "sold_out.txt").write_text("film2\nfilm5\n")
    amounts = np.where(random.random((40, 8)) < 0.2, np.nan, np.round(10 * taste[:, :8] + 1, 1))
    write_table(folder / "table.csv", ["name", *"abcdefgh"], [people, *amounts.T])
    answers = np.where(random.random((40, 8)) < 0.2, np.nan, stars[:, :8])
    write_table(folder / "survey.csv", ["name", *"abcdefgh"], [people, *answers.T])
    make_lists(folder, random)


def make_lists(folder: Path, random: np.random.Generator) -> None:
    """Who was asked what, the answers without the names, and who is above whom; under two names each."""
    what, who = ["rent", "food", "travel", "books"], ["ann", "bob", "cy", "dora", "eve"]
    truth = np.round(
        random.gamma(4.0, 100.0, (4, 1)) * random.gamma(8.0, 0.1, (1, 5)) * random.gamma(50.0, 0.02, (4, 5))
    )
    pairs = [(row, *random.permutation(5)[:2]) for row in range(4) for _ in range(4)]
    above = [(what[row], *(who[one] for one in sorted(two, key=lambda one: -truth[row, one]))) for row, *two in pairs]
    lists = {
        ("asked", "a"): (["question", "respondent"], [(one, person) for one in what for person in who]),
        ("answers", "b"): (
            ["question", "value"],
            [(what[row], value) for row in range(4) for value in sorted(truth[row])],
        ),
        ("comparisons", "c"): (["question", "higher", "lower"], above),
    }
    for names, (header, lines) in lists.items():
        for name in names:
            write_table(folder / f"{name}.csv", header, list(zip(*lines, strict=True)))

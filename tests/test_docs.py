"""What the README, the pages of the site and the recipe show runs as it is shown, and says what is true."""

import ast
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from halfseen import Observed, Status
from halfseen.cli.app import COMMANDS
from halfseen.engines import Side, open_engine
from halfseen.fitting import run
from halfseen.solvers import Multiplicative, Task
from tests.cli.program import done, halfseen

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
#: These have tests of their own, in tests/selection and tests/report, and below.
TESTED_ELSEWHERE = ("docs/rank.md", "docs/report.md", "docs/uncoupled.md")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def python_blocks(page):
    return re.findall(r"^ *```python\n(.*?)^ *```", text_of(page), re.DOTALL | re.MULTILINE)


def run_page(page, claims=True):
    """The names that the blocks of a page leave, run one after the other, and what their comments claim held to it."""
    names = {}
    for block in python_blocks(page):
        exec(compile(block, page, "exec"), names)
        for expression, claim in claims_of(block) if claims else ():
            check_claim(eval(expression, names), claim, f"{page}: {expression}")
    return names


def claims_of(block):
    """Expressions in a line of their own whose comment begins with True, with a number or with a status."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        if isinstance(statement, ast.Expr) and statement.lineno == statement.end_lineno:
            comment = lines[statement.lineno - 1][statement.end_col_offset :]
            claim = re.fullmatch(r" +# (True|[A-Z]{5,}|-?\d+(?:\.\d+)?)(?:[:;].*)?", comment)
            if claim:
                yield ast.unparse(statement), claim[1]


def check_claim(value, claim, where):
    if claim[-1].isdigit():
        assert abs(value - float(claim)) <= 0.5 * 10.0 ** -len(claim.partition(".")[2]), where
    else:
        assert str(value) == claim, where


@pytest.mark.parametrize(
    "page", ["README.md", *(page for page in PAGES if python_blocks(page) and page not in TESTED_ELSEWHERE)]
)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_a_comment_that_claims_too_much_is_noticed():
    block = "x = 2\nx == 2   # True: so it is\nx / 3   # 0.67\nx + 1   # 4\nx       # two\n"
    (_, true), (_, share), (wrong, four) = claims_of(block)
    check_claim(True, true, "")
    check_claim(2 / 3, share, "")
    with pytest.raises(AssertionError, match=re.escape(wrong)):
        check_claim(3, four, wrong)


@pytest.mark.parametrize("page", ["README.md", "docs/using.md"])
def test_what_was_seen_stays_and_holes_are_filled(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page(page, claims=False)
    holed = names.get("wide", names.get("X"))
    seen = ~np.isnan(np.asarray(holed))
    completed = np.asarray(names["model"].complete(holed))
    np.testing.assert_array_equal(completed[seen], np.asarray(holed)[seen])
    assert np.all(completed[~seen] > 0)


def test_the_page_for_collectors_runs_and_comes_nearer_to_what_it_hides_than_means(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/uncoupled.md")
    truth = names["truth"].to_numpy()
    predicted = names["m"].complete(names["seen"])
    by_mean = np.abs(truth - truth.mean(axis=1, keepdims=True)).mean()
    assert np.abs(predicted - truth).mean() < by_mean
    assert capsys.readouterr().out.startswith("6 questions, 8 respondents, 48 asked cells, 48 answers, 60 comparisons")


def test_the_guide_shows_how_observed_prints(capsys):
    names = {}
    for block in python_blocks("docs/using.md")[:2]:
        exec(block, names)
    shown = re.search(r"print\(seen\) +# (.*)", "\n".join(python_blocks("docs/using.md"))).group(1)
    assert capsys.readouterr().out.strip() == shown


def test_the_commands_of_the_first_five_minutes_run_on_the_files_that_they_speak_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/start.md", claims=False)
    commands = re.findall(r"^\$ halfseen (.*)$", text_of("docs/start.md"), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["impute", "impute", "datasets", "recommend", "uncouple"]
    outputs = [done(*shlex.split(command)) for command in commands[2:4]]
    assert Path(outputs[0][0]).is_file()
    assert sum(film in "\n".join(outputs[1]) for film in names["films"][0]) == 10
    for command in (*commands[:2], commands[4]):
        assert halfseen(*shlex.split(command)).exit_code == 0
    for written in ("filled.csv", "filled2.csv", "who.csv"):
        assert ",," not in (tmp_path / written).read_text(encoding="utf-8")


def test_the_list_of_statuses_is_whole():
    told = set(re.findall(r"`([A-Z_]{5,})`", text_of("docs/conventions.md")))
    assert told == {status.name for status in Status}


def test_every_command_has_its_place_on_the_page_of_the_command_line():
    page = text_of("docs/command_line.md")
    assert re.findall(r"^\{\{ help (\w+) \}\}$", page, re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^\| \[(\w+)\]", page, re.MULTILINE) == list(COMMANDS)


def test_rankings_beside_others_are_those_of_the_studies():
    shown = re.findall(r"\b0\.\d{3}\b", text_of("docs/compare.md").partition("## implicit")[2])
    assert len(shown) >= 16
    assert set(shown) <= set(re.findall(r"\b0\.\d{3}\b", text_of("docs/studies.md")))


def test_the_recipe_for_a_likelihood_keeps_the_laws():
    names = {}
    recipe = "\n".join(line.removeprefix("   ") for line in python_blocks("CONTRIBUTING.md")[0].splitlines())
    exec(recipe, names)
    exponential = names["Exponential"]()
    y, x, step = np.array([0.5, 1.0, 7.0]), np.array([2.0, 0.3, 5.0]), 1e-6
    pull, push = exponential.pull_push(y, x)
    slope = (exponential.log_prob(y, x + step) - exponential.log_prob(y, x - step)) / (2 * step)
    np.testing.assert_allclose(pull - push, slope, rtol=1e-7)
    np.testing.assert_allclose(exponential.log_prob(y, x), -np.log(x) - y / x, rtol=1e-12)

    random = np.random.default_rng(0)
    rows, columns = np.divmod(random.permutation(120)[:80], 10)
    observed = Observed.from_cells(rows, columns, random.exponential(size=80) + 0.01, (12, 10))
    with open_engine("cpu", 1) as engine:
        task = Task(engine, engine.place(observed, Side.ROWS, Side.COLUMNS), exponential)
        W, H = random.random((12, 2)), random.random((10, 2))
        fit = run(task, Multiplicative(), lambda: (W, H), max_iter=50, tol=0.0)
    assert fit.n_iter == 50
    assert np.all(np.diff(fit.trace["objective"]) < 0)


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", *PAGES])
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page):
    text = text_of(page)
    for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / page).parent / link).exists(), link
    assert not re.search(r"\b(TODO|FIXME|BENCH_TABLE)\b", text)


def test_the_navigation_has_every_page_once():
    navigation = text_of("mkdocs.yml").partition("\nnav:\n")[2]
    assert sorted(f"docs/{name}" for name in re.findall(r"[\w/]+\.md$", navigation, re.MULTILINE)) == PAGES

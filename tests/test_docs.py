"""What the README, the pages of the site and the recipe show runs as it is shown, and says what is true."""

import re
import shlex

import numpy as np
import pytest

from halfseen import Observed, Status, studies
from halfseen.cli.app import COMMANDS
from halfseen.engines import Side, open_engine
from halfseen.fitting import run
from halfseen.solvers import Multiplicative, Problem
from tests.pages.claims import claim_in, has_nan, holds
from tests.pages.reading import (
    PAGES,
    ROOT,
    commands_in,
    faults_of_code,
    faults_of_command,
    inline_code,
    python_blocks,
    shell_lines,
    text_of,
)
from tests.pages.running import NOT_RUN, run_page, run_python
from tests.test_site import tool

#: The Python of these has tests of its own, in tests/selection.
PYTHON_ELSEWHERE = ("docs/rank.md",)
WITH_EXAMPLES = [
    page
    for page in ("README.md", *PAGES)
    if (python_blocks(page) and page not in PYTHON_ELSEWHERE) or shell_lines(page)
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A page as it was run, once for all who ask."""
    pages = {}

    def run_once(page):
        if page not in pages:
            kinds = ("shell",) if page in PYTHON_ELSEWHERE else ("python", "shell")
            pages[page] = run_page(page, tmp_path_factory.mktemp("page"), kinds)
        return pages[page]

    return run_once


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_the_examples_of_a_page_run_one_after_the_other(page, ran):
    ran(page)


def test_a_comment_that_claims_too_much_is_noticed():
    for right in (
        "x == 2   # True: so it is",
        "x / 3   # 0.67",
        "x, x + 1   # 2 and 3: both",
        "(x, 'a')   # (2, ...)",
        "x   # two",
    ):
        run_python(f"x = 2\n{right}\n", {}, "page")
    for wrong in ("x + 1   # 4", "x, x   # 2 and 3", "[x]   # [3]", "x / 3   # near 1", "{'a': x}   # {'b': 2}"):
        with pytest.raises(AssertionError, match=r"page: .* is .*, not #"):
            run_python(f"x = 2\n{wrong}\n", {}, "page")


def test_a_result_that_is_not_a_number_is_noticed():
    for shown in ("nan", "[1.0, nan]", "(nan, 1)", "np.array([[1.0, nan]])", "np.array([nan]).mean()"):
        assert has_nan(eval(shown, {"np": np, "nan": float("nan")}))
        with pytest.raises(AssertionError, match="is NaN"):
            run_python(f"import numpy as np\nnan = float('nan')\n{shown}   # the mean\n", {}, "page")
    assert not has_nan((1.0, "nan", np.arange(3), None))
    run_python("float('nan')   # NaN: there is none\n", {}, "page")


@pytest.mark.parametrize(
    ("comment", "value", "other"),
    [
        ("# CONVERGED", Status.CONVERGED, Status.MAX_ITER),
        ("# SquaredOrdNMF", "SquaredOrdNMF", "OrdNMF"),
        ("# (3, 2), (2, 2): so many", ((3, 2), (2, 2)), ((3, 2), (2, 3))),
        ("# 4.2 and 0.0", (4.24, 0.04), (4.26, 0.0)),
        ("# near 1: settled", 1.09, 1.11),
        ("# 0: but for rounding", 1e-9, 0.4),
        ("# [1, 2]", np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    ],
)
def test_a_claim_holds_for_what_it_says_and_for_nothing_else(comment, value, other):
    claim = claim_in(comment)
    assert holds(value, claim)
    assert not holds(other, claim)


@pytest.mark.parametrize("comment", ["# a few hundredths", "# why it ended, and when", "# None: the mean", ""])
def test_a_comment_that_explains_claims_nothing(comment):
    assert claim_in(comment) is None


def test_what_is_not_run_is_on_some_page():
    lines = [line for page in ("README.md", *PAGES) for line in shell_lines(page)]
    inline = [code for page in PAGES for code in inline_code(page)]
    ours = (start for start in NOT_RUN if start.startswith("halfseen"))
    assert not [start for start in ours if not any(line.startswith(start) for line in (*lines, *inline))]


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_code_in_the_text_speaks_of_what_there_is(page):
    for code in inline_code(page):
        assert not faults_of_code(code), code
        if code.startswith("halfseen ") and not re.search(r"\.\.\.|\b[A-Z]{4,}\b", code):
            for words in commands_in(code):
                assert not faults_of_command(words), code


@pytest.mark.parametrize(
    "line", ["halfseen fitt x.csv", "halfseen fit x.csv --methd ordnmf", "halfseen datasets nothing"]
)
def test_a_command_that_is_not_there_is_noticed(line):
    assert faults_of_command(shlex.split(line))


@pytest.mark.parametrize("code", ["hs.plots.nothing", "hs.WeightedNMF(rank=3)", "RankSearch(hs.OrdNMF(), rank=2)"])
def test_code_that_is_not_there_is_noticed(code):
    assert faults_of_code(code)


@pytest.mark.parametrize("page", ["README.md", "docs/using.md"])
def test_what_was_seen_stays_and_holes_are_filled(page, ran):
    names = ran(page).names
    holed = names.get("wide", names.get("X"))
    seen = ~np.isnan(np.asarray(holed))
    completed = np.asarray(names["model"].complete(holed))
    np.testing.assert_array_equal(completed[seen], np.asarray(holed)[seen])
    assert np.all(completed[~seen] > 0)


def test_the_page_for_collectors_comes_nearer_to_what_it_hides_than_means(ran):
    names = ran("docs/uncoupled.md").names
    truth = names["truth"].to_numpy()
    predicted = names["m"].complete(names["seen"])
    by_mean = np.abs(truth - truth.mean(axis=1, keepdims=True)).mean()
    assert np.abs(predicted - truth).mean() < by_mean
    told = ran("docs/uncoupled.md").printed
    assert told.startswith("6 questions, 8 respondents, 48 asked cells, 48 answers, 60 comparisons")


def test_the_guide_shows_how_observed_prints(ran):
    shown = re.search(r"print\(seen\) +# (.*)", "\n".join(python_blocks("docs/using.md"))).group(1)
    assert ran("docs/using.md").printed.splitlines()[0] == shown


def test_the_commands_of_the_first_five_minutes_leave_what_they_speak_of(ran):
    page = ran("docs/start.md")
    told = {line.split()[1]: text for line, text in page.told.items() if line.startswith("halfseen")}
    assert list(told) == ["doctor", "impute", "datasets", "recommend", "uncouple"]
    assert (page.folder / "ratings.csv").is_file()
    assert sum(film in told["recommend"] for film in page.names["films"][0]) == 10
    for written in ("filled.csv", "filled2.csv", "who.csv"):
        assert ",," not in (page.folder / written).read_text(encoding="utf-8")


def test_the_list_of_statuses_is_whole():
    told = set(re.findall(r"`([A-Z_]{5,})`", text_of("docs/conventions.md")))
    assert told == {status.name for status in Status}


def test_every_command_has_its_place_on_the_page_of_the_command_line():
    page = text_of("docs/command_line.md")
    assert re.findall(r"^\{\{ help (\w+) \}\}$", page, re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^\| \[(\w+)\]", page, re.MULTILINE) == list(COMMANDS)


def test_rankings_beside_others_are_those_of_the_studies():
    shown = re.findall(r"\b0\.\d{3}\b", text_of("docs/compare.md").partition("## implicit")[2])
    assert len(shown) >= 12
    assert set(shown) <= set(re.findall(r"\b0\.\d{3}\b", text_of("docs/reproduced/studies.md")))


def test_the_state_of_every_study_is_that_of_its_record():
    lines = tool("studies_table").table()
    assert len(lines) == 2 + len(studies.NAMES)
    assert "\n".join(lines) in text_of("docs/studies.md")


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
        problem = Problem(engine, engine.place(observed, Side.ROWS, Side.COLUMNS), exponential)
        W, H = random.random((12, 2)), random.random((10, 2))
        fit = run(problem, Multiplicative(), lambda: (W, H), max_iter=50, tol=0.0)
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

"""What the README, the guide and the recipe show runs as it is shown."""

import re
from pathlib import Path

import numpy as np
import pytest

from halfseen import Observed
from halfseen.engines import Side, open_engine
from halfseen.fitting import run
from halfseen.solvers import Multiplicative, Task

ROOT = Path(__file__).parent.parent


def python_blocks(page):
    return re.findall(r"^ *```python\n(.*?)^ *```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/using.md"])
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks(page):
        exec(compile(block, page, "exec"), names)
    holed = names.get("wide", names.get("X"))
    seen = ~np.isnan(np.asarray(holed))
    completed = np.asarray(names["model"].complete(holed))
    np.testing.assert_array_equal(completed[seen], np.asarray(holed)[seen])
    assert np.all(completed[~seen] > 0)


def test_the_guide_shows_how_observed_prints(capsys):
    names = {}
    for block in python_blocks("docs/using.md")[:2]:
        exec(block, names)
    shown = re.search(r"print\(seen\) +# (.*)", "\n".join(python_blocks("docs/using.md"))).group(1)
    assert capsys.readouterr().out.strip() == shown


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


@pytest.mark.parametrize(
    "page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/using.md", "docs/methods.md"]
)
def test_links_lead_somewhere_and_nothing_is_left_to_fill_in(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert ((ROOT / page).parent / link).exists(), link
    assert not re.search(r"\b(TODO|FIXME|BENCH_TABLE)\b", text)

"""What docs/compare.md shows of other libraries runs where they are installed, and its numbers are those measured."""

import re
from importlib.util import find_spec

import pytest

from tests.pages.reading import text_of
from tests.pages.running import run_python

PAGE = "docs/compare.md"
#: Ours are fenced by backticks and run with all pages; theirs by tildes, and have the name of the package for a title.
BLOCKS = re.findall(
    r'^(?:```|~~~)python(?: title="(\w+)")?\n(.*?)^(?:```|~~~)$', text_of(PAGE), re.DOTALL | re.MULTILINE
)
PACKAGES = ("surprise", "implicit", "hpfrec", "cmfrec", "lenskit")


def test_every_library_shows_the_same_job_as_ours():
    assert {title for title, _ in BLOCKS if title} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore")  # what others warn of is theirs
def test_the_side_of_another_library_runs_after_ours(package):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed; docs/compare.md says how to install it")
    names = {}
    for title, block in BLOCKS:
        if title in ("", package):
            run_python(block, names, PAGE)


def test_what_we_measured_is_in_the_results_of_the_benchmarks():
    shown = set(re.findall(r"\b0\.\d{4}\b", text_of(PAGE)))
    assert len(shown) > 40
    assert shown <= set(re.findall(r"\b0\.\d{4}\b", text_of("benchmarks/results.md")))

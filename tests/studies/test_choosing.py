"""Studies by their names."""

import subprocess
import sys

import pytest

from halfseen.errors import ParameterError
from halfseen.studies import NAMES, Study, chosen, study


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_found_under_its_name_and_introduces_itself(name):
    found = study(name)
    assert isinstance(found, Study)
    assert found.name == name
    assert found.title
    assert found.paper
    assert set(found.absent()) <= set(found.needs)


def test_a_word_stands_for_one_study_a_paper_or_all():
    assert chosen("a1gm/figure5") == ("a1gm/figure5",)
    assert chosen("a1gm") == tuple(name for name in NAMES if name.startswith("a1gm/"))
    assert chosen("all") == NAMES


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("a1gm/tabel1", "Did you mean 'a1gm/table1'?"),
        ("figure5", "Did you mean 'a1gm/figure5'?"),
        ("a1gm/", "Did you mean 'a1gm'?"),
        ("xyzzy", "Choose one of these."),
        ("", "Choose one of these."),
    ],
)
def test_an_unknown_word_is_refused_with_what_was_probably_meant(word, hint):
    with pytest.raises(ParameterError) as refusal:
        chosen(word)
    assert str(refusal.value).endswith(f"Found {word!r}. {hint}")
    assert all(name in str(refusal.value) for name in NAMES)


def test_studies_are_imported_only_when_they_are_asked_for():
    code = (
        "import sys, halfseen.studies as s; s.chosen('all')\n"
        "print([name for name in sys.modules if name.startswith('halfseen.studies.a1gm') or 'matplotlib' in name])\n"
        "s.study('a1gm/figure5')\n"
        "names = ('halfseen.studies.a1gm.figures', 'halfseen.studies.a1gm.tables', 'numba', 'matplotlib')\n"
        "print([name for name in names if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.splitlines() == ["[]", "['halfseen.studies.a1gm.figures']"]

"""What the site makes of the program's help and of docstrings, when it is built."""

import importlib.util
from pathlib import Path

import pytest

from halfseen.cli.app import COMMANDS
from tests.cli.program import halfseen

DOCS = Path(__file__).parent.parent / "docs"


def tool(name):
    """A file of docs/building as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "building" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_help_on_the_site_is_what_the_program_prints_but_for_the_breaks_of_lines(name):
    shown, printed = tool("command_line").help_of(name), halfseen(*name.split(), "--help").output
    if name:
        assert shown.split() == printed.split()
    else:  # the list of commands is cut off at the end of the line
        assert shown.split("Commands:")[0].split() == printed.split("Commands:")[0].split()
    assert max(map(len, shown.splitlines())) > 80 or name in ("doctor", "demo", "completion")


def test_a_page_that_forgets_a_command_is_refused():
    with pytest.raises(ValueError, match="must show the help of fit, predict"):
        tool("command_line").with_help("{{ help fit }}\n")


def test_the_page_holds_the_help_of_every_command():
    built = tool("command_line").with_help((DOCS / "command_line.md").read_text(encoding="utf-8"))
    assert "{{" not in built
    assert built.count("```text\nUsage: halfseen") == len(COMMANDS) + 1


def test_docstrings_become_lists_and_formulas_stay():
    pytest.importorskip("griffe")
    docstring = (
        "Counts y of <w, h>.\n\n    x = <w, h>\n\nParameters\n----------\nl1, l2 : penalties\n    on `F<T>`.\n\n"
        "Attributes\n----------\nW_ : (n, k) and H_.\n"
    )
    assert tool("docstrings").as_markdown(docstring) == (
        "Counts y of &lt;w, h>.\n\n    x = <w, h>\n\n**Parameters**\n\n- `l1`, `l2`: penalties on `F<T>`.\n\n"
        "**Attributes**\n\n- `W_`: (n, k) and H\\_."
    )


def test_the_picture_shows_what_its_script_finds():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("picture", DOCS / "pictures" / "missing_or_zero.py")
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    drawn = (DOCS / "pictures" / "missing_or_zero.svg").read_text(encoding="utf-8")
    for unseen in ("missing", "zero"):
        for value in picture.filled(unseen).ravel():
            assert f">{value:.1f}</text>" in drawn

"""What the site makes of the program's help and of docstrings, when it is built, and whether anything is left out."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
import zlib
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import get_args, get_type_hints

import pytest

from halfseen.cli.app import COMMANDS
from tests.cli.program import halfseen
from tests.laws.public import fields_of, is_on_the_site, listed_names, members_of, methods_of, reference

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LISTED = listed_names()


def tool(name):
    """A file of docs/building as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "building" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_help_on_the_site_is_what_the_program_prints_but_for_the_breaks_of_lines(name):
    shown, printed = tool("command_line").help_of(name), halfseen(*name.split(), "--help").output
    if name:  # lines may also break after a hyphen
        assert "".join(shown.split()) == "".join(printed.split())
    else:  # the list of commands is cut off at the end of the line
        assert shown.split("Commands:")[0].split() == printed.split("Commands:")[0].split()
    assert max(map(len, shown.splitlines())) > 80 or name in ("", "recommend", "doctor", "demo", "completion")


def test_a_page_that_forgets_a_command_is_refused():
    with pytest.raises(ValueError, match="must show the help of fit, tune"):
        tool("command_line").with_help("{{ help fit }}\n")


def test_the_page_holds_the_help_of_every_command():
    built = tool("command_line").with_help((DOCS / "command_line.md").read_text(encoding="utf-8"))
    assert "{{" not in built
    assert built.count("```text\nUsage: halfseen") == len(COMMANDS) + 1


def is_asked_for(name, thing):
    """Whether a page of reference asks for a name, or for the module that lists it and has no file of that name."""
    if any(resolve_name(one) is thing for one in reference()):
        return True
    module, _, last = name.rpartition(".")
    for one, options in reference().items():
        whole = resolve_name(one)
        if isinstance(whole, ModuleType) and whole.__name__ == module:
            chosen = re.search(r"members: \[(.*)\]", options)
            hidden = hasattr(whole, "__path__") and importlib.util.find_spec(name) is not None
            return not hidden and (chosen is None or last in chosen[1].split(", "))
    return False


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*one, id=one.name) for one in LISTED])
def test_the_reference_has_every_public_name_with_its_members(name, thing):
    assert is_asked_for(name, thing)
    if inspect.isclass(thing) and "show_if_no_docstring: true" not in reference().get(name, ""):
        silent = [one for one in (*members_of(thing), *fields_of(thing)) if not is_on_the_site(thing, one)]
        assert not silent


def classes_in(hint):
    """The classes of halfseen that an annotation speaks of."""
    if inspect.isclass(hint) and hint.__module__.startswith("halfseen."):
        yield hint
    for part in get_args(hint):
        yield from classes_in(part)


def test_the_reference_has_whatever_functions_and_methods_give():
    given = set()
    for name, thing in LISTED:
        if not name.startswith("halfseen.plots."):  # which give Axes, of a library that is loaded when it is needed
            for function in methods_of(thing).values() if inspect.isclass(thing) else (thing,):
                given |= set(classes_in(get_type_hints(function).get("return")))
    known = [thing for _, thing in LISTED] + [resolve_name(name) for name in reference()]
    assert "Report" in {kind.__name__ for kind in given}
    assert not {kind.__name__ for kind in given if kind not in known}


def test_the_reference_has_whatever_the_pages_import():
    imported = set()
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "halfseen":
                    imported |= {f"{node.module}.{one.name}" for one in node.names}
    assert "halfseen.engines.Side" in imported
    asked_for = {id(resolve_name(one)) for one in reference()}
    assert not {name for name in imported if id(resolve_name(name)) not in asked_for}


def test_the_site_is_built_with_all_of_that(tmp_path):
    for needed in ("mkdocs", "material", "mkdocstrings_handlers"):
        pytest.importorskip(needed, reason="the site is built with the extra `docs`")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (built.returncode, built.stdout) == (0, ""), built.stderr
    entries = zlib.decompress((tmp_path / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    found = {entry.split()[0] for entry in entries.splitlines()}
    for name, thing in LISTED:
        names = {name, f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"}
        assert names & found, name
        is_class = inspect.isclass(thing) and not issubclass(thing, Enum)  # members of which are listed as values alone
        for member in members_of(thing) if is_class else ():
            assert {f"{one}.{member}" for one in names} & found, f"{name}.{member}"


def test_the_picture_shows_what_its_script_finds():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("picture", DOCS / "pictures" / "missing_or_zero.py")
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    for unseen in ("missing", "zero"):
        drawn = (DOCS / "pictures" / f"stars_{unseen}.svg").read_text(encoding="utf-8")
        for value in picture.filled(unseen).ravel():
            assert f">{value:.1f}</text>" in drawn

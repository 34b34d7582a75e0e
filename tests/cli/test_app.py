"""The program as a whole: its help, its commands, and how it says that something is wrong."""

import os
import subprocess
import sys
import warnings

import click
import pytest

import halfseen
from halfseen.cli import app
from halfseen.errors import DataError
from tests.cli.program import done, misused, program, refused
from tests.cli.program import halfseen as run


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_names_every_command_in_order(option):
    lines = done(option)
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ")]
    assert tuple(listed) == app.COMMANDS


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_explains_itself(command):
    lines = done(command, "--help")
    assert lines[0].startswith(f"Usage: halfseen {command} ")
    module = app.main.get_command(click.Context(app.main), command)
    explained = "\n".join(lines)
    for parameter in module.params:
        if isinstance(parameter, click.Option):
            assert parameter.help
            assert max(parameter.opts, key=len) in explained


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version(option):
    assert done(option) == [f"halfseen, version {halfseen.__version__}"]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("fti", "Did you mean 'fit'?"),
        ("recomend", "Did you mean 'recommend'?"),
        ("xyzzy", f"Commands: {', '.join(app.COMMANDS)}."),
    ],
)
def test_a_command_that_is_not_there(word, hint):
    assert misused(word) == f"No such command {word!r}. {hint}"


def test_no_command_at_all_shows_the_help():
    result = run()
    assert result.exit_code == 2
    assert all(command in result.stderr for command in app.COMMANDS)


def test_a_sentence_of_several_lines_is_shown_on_one(monkeypatch):
    def observe(*_, **__):
        raise DataError("This must hold.\n  Found\tthat. Do so.")

    monkeypatch.setattr(halfseen, "observe", observe)
    assert refused("fit", "data.csv", "-o", "model.hs") == "halfseen: This must hold. Found that. Do so."


def test_a_bug_is_not_hidden(monkeypatch):
    def observe(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(halfseen, "observe", observe)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run("fit", "data.csv", "-o", "model.hs")


def test_the_way_of_showing_warnings_is_given_back(ratings, tmp_path):
    """Who calls the command line from Python keeps their own warnings."""
    before = warnings.showwarning
    app.main(["fit", str(ratings.path), "-k", "1", "-q", "-o", str(tmp_path / "model.hs")], standalone_mode=False)
    assert warnings.showwarning is before


def test_the_commands_are_imported_only_when_they_are_run():
    """The help comes fast: it needs none of the heavy libraries of the commands that it lists."""
    code = (
        "import sys\nfrom halfseen.cli import main\nmain(['--version'], standalone_mode=False)\n"
        "print([name for name in ('fit', 'impute', 'demo') if f'halfseen.cli.{name}' in sys.modules])"
    )
    result = program_of_python(code)
    assert result.splitlines()[-1] == "[]"


def program_of_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this platform")
def test_output_that_finds_no_room_is_one_line(model):
    with open("/dev/full", "w") as full:
        result = program("recommend", model, "-u", "bob", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 2
    assert result.stderr.startswith("halfseen: ")
    assert "No space left on device" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_bug(model):
    """As in `halfseen recommend ... | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = program("recommend", model, "-u", "bob", capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert "Traceback" not in result.stderr

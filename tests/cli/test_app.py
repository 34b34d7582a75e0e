"""The program as a whole: its help, its commands, and its errors and warnings in one line each."""

import os
import subprocess
import sys
import warnings

import click
import pytest

import halfseen
from halfseen.cli import app
from halfseen.errors import DataError
from tests.cli.program import done, misused, program, refused, warm_program
from tests.cli.program import halfseen as run


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_names_every_command_in_order(option):
    lines = done(option)
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ")]
    assert tuple(listed) == app.COMMANDS


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_explains_itself_and_shows_an_example(command):
    lines = done(command, "--help")
    assert lines[0].startswith(f"Usage: halfseen {command} ")
    text = "\n".join(lines)
    assert f"halfseen {command}" in text.partition("\n\n")[2].partition("Options:")[0]
    for parameter in app.main.get_command(click.Context(app.main), command).params:
        if isinstance(parameter, click.Option):
            assert parameter.help
            assert max(parameter.opts, key=len) in text


def test_the_version():
    assert done("-V") == done("--version") == [f"halfseen, version {halfseen.__version__}"]


@pytest.mark.parametrize(
    ("word", "hint"), [("fti", "'fit'?"), ("recomend", "'recommend'?"), ("xyzzy", f"{', '.join(app.COMMANDS)}.")]
)
def test_a_command_that_is_not_there(word, hint):
    assert misused(word).endswith(hint)


MEANT = {
    "--n-components": ["--factors", "--rank", "--n-factors", "--n_components"],
    "--max-iter": ["--n-epochs", "--iterations", "--max_iter"],
    "--seed": ["--random-state", "--random_seed"],
    "--loss": ["--beta-loss"],
    "--n-jobs": ["--num-threads"],
    "--method": ["--metod"],
}


@pytest.mark.parametrize(("option", "meant"), [(word, meant) for meant, words in MEANT.items() for word in words])
def test_options_of_other_libraries_are_answered_with_ours(option, meant):
    line = misused("fit", "ratings.csv", option, "5")
    assert repr(option) in line
    assert line.endswith(f"{meant!r}?")


def test_no_command_at_all_shows_the_help():
    result = run()
    assert result.exit_code == 2
    assert all(command in result.stderr for command in app.COMMANDS)


def test_a_message_of_several_lines_is_shown_on_one_and_a_bug_is_not_hidden(monkeypatch):
    errors = [DataError("This must hold.\n  Found\tthat. Do so."), ZeroDivisionError("a bug")]

    def observe(*_, **__):
        raise errors.pop(0)

    monkeypatch.setattr(halfseen, "observe", observe)
    assert refused("fit", "data.csv", "-o", "model.hs") == "halfseen: This must hold. Found that. Do so."
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run("fit", "data.csv", "-o", "model.hs")


def test_the_way_of_showing_warnings_is_restored(ratings, tmp_path):
    """Who calls the command line from Python keeps their own warnings."""
    before = warnings.showwarning
    app.main(["fit", str(ratings.path), "-k", "1", "-q", "-o", str(tmp_path / "model.hs")], standalone_mode=False)
    assert warnings.showwarning is before


@pytest.mark.parametrize("method", ["nmf", "ordinal"])
def test_warnings_of_numpy_are_not_shown(tmp_path, method):
    """A fit that fails is reported once, in our words; of one that succeeds there is nothing to report."""
    (tmp_path / "huge.csv").write_text("user,item,rating\na,x,1\na,y,2\nb,x,3\nb,y,1e308\nc,y,2\nc,x,1e308\n")
    words = ("fit", tmp_path / "huge.csv", "--method", method, "-k", 1, "-q", "-o", tmp_path / "model.hs")
    result = warm_program(tmp_path, *words)
    assert (result.returncode, result.stdout) == (0, "")
    notes = result.stderr.splitlines()
    assert not [note for note in notes if "encountered" in note or not note.startswith("note: ")]
    assert len(notes) == (1 if method == "nmf" else 0)


def test_commands_are_imported_only_when_they_are_run():
    code = (
        "import sys\nfrom halfseen.cli import main\nmain(['--version'], standalone_mode=False)\n"
        "print([name for name in ('fit', 'impute', 'demo') if f'halfseen.cli.{name}' in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_bug(model):
    """As in `halfseen recommend ... | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = program("recommend", model, "-u", "bob", capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert "Traceback" not in result.stderr

"""Running the program: in this process for speed, or as a program of its own."""

import errno
import multiprocessing
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from click.testing import CliRunner
from sklearn.exceptions import ConvergenceWarning

from halfseen.cli import main
from halfseen.errors import DataWarning

SCRIPT = Path(sys.executable).with_name("halfseen")
MODULES = (
    "fit", "tune", "predict", "recommend", "serve", "evaluate", "impute", "uncouple", "split", "reproduce", "datasets",
    "installation", "demo",
)  # fmt: skip
PROGRAM = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-c", "from halfseen.cli import main; main()"]


def halfseen(*words):
    """A command in this process; what is a bug goes up as it is, and halfseen's own warnings are shown, not raised."""
    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.simplefilter("always", category)
        return CliRunner().invoke(main, [str(word) for word in words], prog_name="halfseen", catch_exceptions=False)


def done(*words):
    """The lines that a command prints when all goes well and there is nothing to remark."""
    result = halfseen(*words)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def remarked(*words):
    """The only note of a command that goes well otherwise."""
    result = halfseen(*words)
    assert result.exit_code == 0
    assert result.stderr.startswith("note: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


def refused(*words):
    """The one sentence with which a command refuses."""
    result = halfseen(*words)
    check_refusal(result.exit_code, result.stdout, result.stderr)
    return result.stderr.strip()


def refused_for_room(full_disk, *words):
    """Refuse, with the system's reason, where the disk is full."""
    with full_disk():
        sentence = refused(*words)
    reasons = (os.strerror(errno.ENOSPC), os.strerror(errno.EFBIG))
    assert any(reason in sentence for reason in reasons), sentence


def check_refusal(exit_code, stdout, stderr):
    assert (exit_code, stdout) == (2, "")
    assert stderr.startswith("halfseen: ")
    assert stderr.endswith("\n")
    assert stderr.count("\n") == 1


def misused(*words):
    """What is said of a command line that can't be understood, before the hint at the help."""
    result = halfseen(*words)
    check_refusal(result.exit_code, result.stdout, result.stderr)
    sentence, _, hint = result.stderr.strip().rpartition(" Try 'halfseen")
    assert hint.endswith("--help'.")
    return sentence.removeprefix("halfseen: ")


def program(*words, **options):
    """The real program, its output caught as text."""
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run([*PROGRAM, *map(str, words)], check=False, **options)


def warm_program(folder, *words, stdin=os.devnull):
    """The program in a process of its own, forked from one that has it imported, so that it starts at once.

    What it prints goes through files in a folder; standard input is a file."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([*(f"halfseen.cli.{name}" for name in MODULES), "halfseen.estimators", "jinja2"])
    logs = [folder / "stdout", folder / "stderr"]
    process = server.Process(target=_run, args=([str(word) for word in words], stdin, logs, dict(os.environ)))
    process.start()
    process.join(120)
    return subprocess.CompletedProcess(words, process.exitcode, *(log.read_text() for log in logs))


def _run(words, stdin, logs, environment):
    """What the child does: it takes over descriptors, variables and words, and is the program from there on."""
    sys.stdin = os.fdopen(os.open(stdin, os.O_RDONLY))
    tempfile.tempdir = None  # to be looked for anew, where these variables say
    for descriptor, log in zip((1, 2), logs, strict=True):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ |= environment
    main(words, prog_name="halfseen")


def names_in(folder):
    """Everything in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())

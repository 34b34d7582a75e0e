"""The real program on a terminal: its progress bar, and Ctrl-C."""

import errno
import os
import re
import select
import signal
import subprocess
import time

import numpy as np
import pytest

import halfseen
from halfseen.cli import app
from halfseen.datasets import listing
from halfseen.datasets.catalogue import sources
from tests.cli.program import PROGRAM, names_in, program
from tests.cli.test_uncouple import TRUTH, write_lists

pty = pytest.importorskip("pty", reason="no pseudo-terminals on this platform")

PATIENCE = 120  # seconds until a test gives up; a healthy program takes a few
LONG = ("--method", "nmf", "-k", "8", "--max-iter", "100000", "--tol", "0")
SOME_ITERATION = re.compile(r"\b([1-9]\d*)/100000\b")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A file of 30,000 cells, on which a fit of 100,000 iterations takes minutes."""
    random = np.random.default_rng(5)
    values = random.poisson(3.0, (300, 200))
    seen = random.random(values.shape) < 0.5
    lines = [f"u{i},i{j},{values[i, j]}" for i, j in zip(*np.nonzero(seen), strict=True)]
    path = tmp_path_factory.mktemp("many") / "many.csv"
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def listening():
    """Let the programs hear SIGINT, even where the tests run in the background and ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class OnTerminal:
    """The program with its stderr on a terminal, and all that it has shown there so far."""

    def __init__(self, *words):
        self.shown = ""
        self._screen, terminal = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
        environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [*PROGRAM, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
            env=environment,
        )
        os.close(terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        os.close(self._screen)

    def wait_for(self, pattern):
        """Read the terminal until the pattern is there."""
        while not pattern.search(self.shown):
            assert self._read(), f"The program ended before showing {pattern.pattern!r}: {self.shown[-2000:]}"

    def ended(self):
        """Read the terminal to its end; the exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self):
        """Take what the terminal shows next; False when nothing will follow."""
        ready, _, _ = select.select([self._screen], [], [], PATIENCE)
        assert ready, f"The program shows nothing new for {PATIENCE} s: {self.shown[-2000:]}"
        try:
            new = os.read(self._screen, 65536)
        except OSError as error:  # how Linux says that the other side has closed
            if error.errno != errno.EIO:
                raise
            new = b""
        self.shown += new.decode(errors="replace")
        return bool(new)


def shown_at(width, *words):
    """What the program shows on a terminal of so many columns, all that it prints going there."""
    screen, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(width)}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, env=environment
    )
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(screen, 65536):
            shown += part
    except OSError:  # how Linux says that the other side has closed
        pass
    os.close(screen)
    assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")
    process.stderr.close()
    return shown.decode()


def plain(text):
    """Text without the terminal's control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


# The bar.


def test_a_bar_is_shown_on_a_terminal(many, tmp_path):
    words = ("--method", "nmf", "-k", 2, "--max-iter", 30, "--tol", 0, "-o", tmp_path / "model.hs")
    with OnTerminal("fit", many, *words) as running:
        assert running.ended() == 0
        account = running.process.stdout.read()
    model = halfseen.load(tmp_path / "model.hs")
    last = plain(running.shown).rstrip().splitlines()[-1]
    assert last.startswith("WeightedNMF ")
    assert "30/30" in last
    assert f"objective {model.trace_['objective'][-1]:.6g}" in last
    assert len(account.splitlines()) == 5


def test_no_bar_is_shown_quietly_nor_in_a_pipe(many, tmp_path):
    words = ("--method", "nmf", "-k", 2, "--max-iter", 5, "--tol", 0, "-o", tmp_path / "model.hs")
    with OnTerminal("fit", many, "-q", *words) as running:
        assert running.ended() == 0
        assert running.process.stdout.read() == ""
    assert running.shown == ""
    result = program("fit", many, *words)
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout


def test_a_note_does_not_break_the_bar(many, tmp_path):
    words = ("--method", "nmf", "-k", 2, "--max-iter", 5, "-o", tmp_path / "model.hs")
    with OnTerminal("fit", many, *words) as running:
        assert running.ended() == 0
    lines = plain(running.shown).rstrip().splitlines()
    assert lines[-1].startswith("note: WeightedNMF: Stopped at --max-iter")
    assert "5/5" in lines[-2]


# Terminals of all widths.


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_help_says_all_of_every_command_in_the_width_of_the_terminal(width):
    lines = plain(shown_at(width, "--help")).splitlines()
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines[lines.index("Commands:") + 1 :]).split())
    assert "..." not in text
    assert all(f"{name} {summary}" in text for name, summary in app.SUMMARIES.items())
    if width >= 80:
        assert len(lines) - lines.index("Commands:") - 1 == len(app.COMMANDS)  # each in one line


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_list_of_datasets_is_as_wide_as_the_terminal(width, tmp_path, monkeypatch):
    """One line per dataset with its name, title and state; wider terminals show more columns."""
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    head, *lines = plain(shown_at(width, "datasets")).splitlines()
    lines, closing = lines[: lines.index("")], " ".join(lines[lines.index("") + 1 :])
    assert max(map(len, (head, *lines))) <= width
    heads = {60: "name title state", 80: "name title state", 120: "name kind title size state"}
    assert " ".join(head.split()) == heads.get(width, "name kind title size terms state")
    start = head.index("title")
    for line, entry in zip(lines, listing(), strict=True):
        assert line.startswith(f"{entry.name} ")
        assert line.endswith(f"  {entry.state}")
        title, cut, _ = f"{line[start:]}  ".partition("  ")[0].partition("\N{HORIZONTAL ELLIPSIS}")
        assert title
        assert entry.title.startswith(title) if cut else entry.title == title
    assert str(tmp_path) in closing


def test_the_details_of_a_dataset_are_wrapped_to_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    lines = plain(shown_at(60, "datasets", "movielens-1m")).splitlines()
    assert max(map(len, lines)) <= 11 + len(sources()["movielens-1m"].address)  # an address stays whole
    assert " ".join(" ".join(lines).split()).count(sources()["movielens-1m"].citation) == 1


# Ctrl-C.


def test_an_interrupt_keeps_the_fit_so_far_which_is_that_of_as_many_iterations(many, tmp_path):
    place = tmp_path / "model.hs"
    with OnTerminal("fit", many, *LONG, "-o", place) as running:
        running.wait_for(SOME_ITERATION)
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        assert running.process.stdout.read() == ""
    shown = plain(running.shown)
    line = re.search(r"Interrupted after ([\d,]+) iterations?; the fit so far is in (.+)\.$", shown.replace("\n", ""))
    model = halfseen.load(place)
    assert (int(line[1].replace(",", "")), line[2]) == (model.n_iter_, str(place))
    whole = halfseen.WeightedNMF(8, max_iter=model.n_iter_, tol=0.0, random_state=0).fit(many)
    np.testing.assert_array_equal(model.W_, whole.W_)
    np.testing.assert_array_equal(model.H_, whole.H_)
    assert model.n_iter_ >= int(SOME_ITERATION.search(shown)[1])
    assert model.status_.name == "INTERRUPTED"
    assert "Traceback" not in shown
    assert names_in(tmp_path) == ["model.hs"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_an_interrupt_before_the_first_iteration_saves_nothing(tmp_path):
    """The data come through a pipe that says nothing, so that the program waits for them."""
    data = tmp_path / "data.csv"
    os.mkfifo(data)
    with OnTerminal("fit", data, *LONG, "-o", tmp_path / "model.hs") as running:
        writing = opened_by_reader(data, running.process)
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        os.close(writing)
    assert plain(running.shown).strip().startswith("Interrupted before the first iteration")
    assert names_in(tmp_path) == ["data.csv"]


def opened_by_reader(path, process):
    """The writing end of a named pipe, as soon as the program has opened the other."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, "The program ended before it read its data."
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads yet
                raise
        time.sleep(0.01)
    pytest.fail("The program never read its data.")


def test_an_interrupted_imputation_writes_nothing(tmp_path):
    random = np.random.default_rng(6)
    values = random.gamma(2.0, 1.0, (1000, 20))
    values[random.random(values.shape) < 0.3] = np.nan
    table = tmp_path / "table.csv"
    lines = (",".join("" if value != value else f"{value:.3f}" for value in row) for row in values)
    table.write_text(",".join(f"c{j}" for j in range(20)) + "\n" + "\n".join(lines) + "\n")
    with OnTerminal("impute", table, "-k", 5, "--max-iter", 20000, "--tol", 0, "-o", tmp_path / "out.csv") as running:
        running.wait_for(re.compile(r"\b([1-9]\d*)/20000\b"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
    assert "Traceback" not in running.shown
    assert "Interrupted" in plain(running.shown)
    assert names_in(tmp_path) == ["table.csv"]


def test_an_interrupted_sampling_keeps_the_sweeps_so_far(tmp_path_factory, tmp_path):
    place, lists = tmp_path / "filled.csv", write_lists(tmp_path_factory.mktemp("lists"))
    with OnTerminal("uncouple", *lists, "--burn", 1, "--sweeps", 1_000_000, "-o", place) as running:
        running.wait_for(re.compile(r"\b[1-9]\d+/1000000\b"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        assert running.process.stdout.read() == ""
    shown = plain(running.shown)
    assert re.search(r"Interrupted after [\d,]+ sweeps; .*filled\.csv\.$", shown.replace("\n", ""))
    assert "Traceback" not in shown
    assert names_in(tmp_path) == ["filled.csv"]
    assert len(place.read_text().splitlines()) == 1 + TRUTH.size


def test_an_interrupted_demo_says_what_it_leaves(tmp_path):
    with OnTerminal("demo", "-o", tmp_path / "shown") as running:
        running.wait_for(re.compile(r"OrdNMF"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
        assert running.process.stdout.read() == ""
    shown = plain(running.shown).replace("\n", "")
    assert re.search(f"Interrupted; .* {tmp_path}/shown", shown)
    assert "Traceback" not in shown
    assert not [name for name in names_in(tmp_path / "shown") if name.endswith((".part", ".html"))]

"""halfseen doctor and halfseen completion: a check of the installation, and tab completion for shells."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace

import pytest

import halfseen
from halfseen.cli import app, installation
from halfseen.engines import ENGINES
from halfseen.engines.cpu import CpuEngine
from tests.cli.program import PROGRAM, done, misused, names_in, program
from tests.cli.program import halfseen as run

is_script = pytest.mark.skipif(len(PROGRAM) > 1, reason="the program is not installed as a script")


def test_all_is_well_here():
    result = program("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    first, *lines, last = result.stdout.splitlines()
    assert first.startswith(f"halfseen {halfseen.__version__}, Python {platform.python_version()}, ")
    assert last == "All is well."
    assert {line.split()[0] for line in lines} <= {"ok", "-"}
    for package in ("numpy", "scipy", "numba", "scikit-learn", "narwhals", "click", "rich"):
        assert ["ok", package, version(package)] in [line.split() for line in lines]
    threads, cache, numbers, gpu = (line.split() for line in lines[-4:])
    assert threads[-3:] == ["on", str(os.cpu_count()), "processors"]
    compiled = [name for name in os.listdir(cache[3]) if name.endswith(".nbc")]
    assert 1 <= int(cache[4].removeprefix("(")) <= len(compiled)  # other tests may have compiled some more since
    assert float(numbers[-1]) <= 1e-12
    assert gpu[1] == "GPU"


def gpu_line():
    (line,) = (line for line in done("doctor") if line.split()[1] == "GPU")
    return line


def test_a_missing_gpu_is_no_failure_and_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    line = gpu_line()
    assert line.startswith("- ")
    assert "pip install 'halfseen[cuda]'" in line
    (check,) = (check for check in json.loads("\n".join(done("doctor", "--json")))["checks"] if check["what"] == "GPU")
    assert check["ok"] is None
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(__version__="9.9", cuda=SimpleNamespace(is_available=bool))
    )
    line = gpu_line()
    assert line.startswith("- ")
    assert "none with PyTorch 9.9" in line


def test_a_gpu_is_named_and_tried(monkeypatch):
    class Gpu(CpuEngine):
        def describe(self):
            return "Some GPU, 70.0 of 80.0 GB free"

    monkeypatch.setitem(ENGINES, "cuda", Gpu)
    assert re.fullmatch(r"ok +GPU +Some GPU, 70.0 of 80.0 GB free; a fit equals plain NumPy to .*", gpu_line())
    monkeypatch.setattr(Gpu, "place", lambda *_: 1 / 0)
    names, text = failures()
    assert names == ["GPU"]
    assert "ZeroDivisionError" in text


def test_an_optional_package_that_is_not_there_is_named_with_its_extra(monkeypatch):
    def without_polars(name):
        if name == "polars":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(installation, "version", without_polars)
    (line,) = (line for line in done("doctor") if line.split()[1] == "polars")
    assert line.startswith("- ")
    assert line.endswith("halfseen[frames]")


def failures():
    """Checks that fail, and the text of the first."""
    result = run("doctor")
    lines = [line for line in result.stdout.splitlines() if line.startswith("FAIL")]
    assert result.exit_code == (1 if lines else 0)
    return [line.split()[1] for line in lines], "".join(lines[:1])


@pytest.mark.parametrize("factor", [1 + 1e-6, float("nan")])
def test_wrong_numbers_are_a_failure(monkeypatch, factor):
    genuine = halfseen.WeightedNMF.fit

    def wrong(model, X):
        genuine(model, X)
        model.model_.rows.mean[:] *= factor
        return model

    monkeypatch.setattr(halfseen.WeightedNMF, "fit", wrong)
    assert failures()[0] == ["Numbers"]


def test_a_missing_place_for_compiled_kernels_is_a_failure(monkeypatch):
    monkeypatch.setattr("halfseen.engines.cpu.kernel_folder", lambda: None)
    names, text = failures()
    assert names == ["Kernel"]
    assert "NUMBA_CACHE_DIR" in text


@pytest.mark.parametrize("name", list(installation.CHECKS))
def test_the_other_checks_go_on_after_one_that_breaks(monkeypatch, name):
    def broken():
        raise RuntimeError("out of order")

    monkeypatch.setitem(installation.CHECKS, name, broken)
    names, text = failures()
    assert names == name.split()[:1]
    assert text.endswith("RuntimeError: out of order")


# completion


def completed(*words, shell="bash", stdin=None):
    """What a shell offers for the last of the words."""
    line = {"COMP_WORDS": " ".join(["halfseen", *words]), "COMP_CWORD": str(len(words))}
    result = subprocess.run(
        PROGRAM, env={**os.environ, **line, "_HALFSEEN_COMPLETE": f"{shell}_complete"}, capture_output=True, text=True,
        timeout=120, check=True, stdin=stdin,
    )  # fmt: skip
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


@is_script
def test_words_are_completed():
    assert completed("") == list(app.COMMANDS)
    assert completed("re") == [name for name in app.COMMANDS if name.startswith("re")]
    assert "--method" in completed("fit", "--me")
    assert completed("fit", "--method", "squ") == ["squared-ordnmf", "squared-poisson"]
    assert "movielens-100k" in completed("datasets", "movie")
    assert completed("reproduce", "a1gm/") == ["a1gm/table1", "a1gm/table2", "a1gm/figure4", "a1gm/figure5"]


@is_script
def test_completing_a_line_reads_and_keeps_nothing(tmp_path, monkeypatch):
    """Whoever presses the tab key after - has not given any input yet."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    reading, writing = os.pipe()
    try:
        assert completed("fit", "-", "--meth", stdin=reading) == ["--method"]
        assert completed("impute", "-", "-o", "-", "--see", stdin=reading) == ["--seed"]
    finally:
        os.close(reading)
        os.close(writing)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell):
    script = "\n".join(done("completion", shell))
    assert f"_HALFSEEN_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=60)
    assert "'tcsh'" in misused("completion", "tcsh")

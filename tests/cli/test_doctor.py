"""halfseen doctor: what is installed, and whether it computes right."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import pytest

import halfseen
from halfseen.cli import doctor
from tests.cli.program import done, program
from tests.cli.program import halfseen as run


def test_all_is_well_here():
    lines = done("doctor")
    assert lines[0].startswith(f"halfseen {halfseen.__version__}, Python {platform.python_version()}, ")
    assert lines[-1] == "All is well."
    assert all(line.startswith(("ok    ", "-     ")) for line in lines[1:-1])


def test_versions_are_named():
    lines = done("doctor")
    for package in ("numpy", "scipy", "numba", "scikit-learn", "narwhals", "click", "rich"):
        assert f"ok    {package} {version(package)}" in lines


def test_threads_cache_and_numbers_are_looked_at():
    *_, threads, cache, numbers, _ = done("doctor")
    assert threads.startswith("ok    Threads: ")
    assert threads.endswith(f" on {os.cpu_count()} processors")
    folder, _, count = cache.removeprefix("ok    Kernel cache: ").rpartition(" (")
    compiled = [name for name in os.listdir(folder) if name.endswith(".nbc")]
    assert count == f"{len(compiled)} compiled kernels)"
    assert numbers.startswith("ok    Numbers: a fit equals plain NumPy to ")
    assert float(numbers.rpartition(" ")[2]) <= 1e-12


def test_an_optional_package_that_is_not_there_is_named_with_its_extra(monkeypatch):
    def without_polars(name):
        if name == "polars":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor, "version", without_polars)
    lines = done("doctor")
    assert "-     polars is not installed; it comes with halfseen[frames]" in lines
    assert lines[-1] == "All is well."


def assert_one_failure(result, start):
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert [line for line in lines if line.startswith("FAIL")] == [line for line in lines if line.startswith(start)]
    assert any(line.startswith(start) for line in lines)
    assert lines[-1] == "Something is wrong: see the lines marked FAIL."


def test_wrong_numbers_are_a_failure(monkeypatch):
    genuine = halfseen.WeightedNMF.fit

    def slightly_wrong(model, X):
        genuine(model, X)
        model.W_ = model.W_ * (1 + 1e-6)
        return model

    monkeypatch.setattr(halfseen.WeightedNMF, "fit", slightly_wrong)
    assert_one_failure(run("doctor"), "FAIL  Numbers: ArithmeticError: a fit differs from plain NumPy by ")


@pytest.mark.parametrize("factor", ["W_", "H_"])
def test_numbers_that_are_none_are_a_failure(monkeypatch, factor):
    genuine = halfseen.WeightedNMF.fit

    def not_a_number(model, X):
        genuine(model, X)
        setattr(model, factor, getattr(model, factor) * float("nan"))
        return model

    monkeypatch.setattr(halfseen.WeightedNMF, "fit", not_a_number)
    assert_one_failure(run("doctor"), "FAIL  Numbers: ArithmeticError: a fit differs from plain NumPy")


def test_a_missing_place_for_compiled_kernels_is_a_failure(monkeypatch):
    monkeypatch.setattr("halfseen.engines.cpu.kernel_folder", lambda: None)
    result = run("doctor")
    assert_one_failure(result, "FAIL  Kernel cache: ")
    assert "NUMBA_CACHE_DIR" in result.stdout


@pytest.mark.parametrize(
    ("name", "checked"), [("_threads", "Threads"), ("_cache", "Kernel cache"), ("_numbers", "Numbers")]
)
def test_the_other_checks_go_on_after_one_that_breaks(monkeypatch, name, checked):
    def broken():
        raise RuntimeError("out of order")

    monkeypatch.setattr(doctor, name, broken)
    result = run("doctor")
    *_, threads, cache, numbers, _ = lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert [line for line in lines if line.startswith("FAIL")] == [f"FAIL  {checked}: RuntimeError: out of order"]
    well = [line.split(":")[0] for line in (threads, cache, numbers) if line.startswith("ok    ")]
    assert well == [f"ok    {one}" for one in ("Threads", "Kernel cache", "Numbers") if one != checked]


def test_the_real_program_is_well():
    result = program("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "All is well."

"""Small data in files, and what several commands are tested with."""

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from halfseen import studies
from halfseen.estimators.base import Factorization
from halfseen.studies import NAMES
from tests.cli.program import done
from tests.cli.small_studies import Small

USERS = ("ann", "bob", "cid", "dora", "eve", "fay", "gus", "hal")
ITEMS = ("ale", "beer", "cider", "gin", "rum", "wine")


@dataclass(frozen=True)
class Ratings:
    """A long file, and the same values as an array with NaN where nothing was seen."""

    path: Path
    values: np.ndarray


def planted_counts(seed=3):
    """Counts from two factors, 1 or larger, a third of them hidden, every row and column seen."""
    random = np.random.default_rng(seed)
    mean = random.gamma(1.0, 1.0, (len(USERS), 2)) @ random.gamma(1.0, 2.0, (2, len(ITEMS)))
    values = 1.0 + random.poisson(mean)
    row, column = np.indices(values.shape)
    values[(row + column) % 3 == 0] = np.nan
    return values


def long_lines(values, delimiter=",", rows=USERS, columns=ITEMS):
    seen = zip(*np.nonzero(~np.isnan(values)), strict=True)
    return [delimiter.join((str(rows[i]), str(columns[j]), f"{values[i, j]:g}")) for i, j in seen]


def write_long(path, values, header=("user", "item", "rating"), delimiter=",", **names):
    lines = [delimiter.join(header), *long_lines(values, delimiter, **names)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def ratings(tmp_path_factory):
    values = planted_counts()
    return Ratings(write_long(tmp_path_factory.mktemp("ratings") / "ratings.csv", values), values)


@pytest.fixture(scope="session")
def model(ratings, tmp_path_factory):
    """The file of a model of the ratings, whose rows and columns are names."""
    path = tmp_path_factory.mktemp("model") / "model.hs"
    done("fit", ratings.path, "-k", 3, "-o", path)
    return path


@pytest.fixture(scope="session")
def numbered_model(ratings, tmp_path_factory):
    """The file of a model whose rows are the integers 11, 22, ... and whose columns are 100, 101, ..."""
    folder = tmp_path_factory.mktemp("numbered")
    names = {"rows": [11 * (i + 1) for i in range(len(USERS))], "columns": [100 + j for j in range(len(ITEMS))]}
    path = write_long(folder / "ratings.csv", ratings.values, **names)
    done("fit", path, "-k", 3, "-o", folder / "model.hs")
    return folder / "model.hs"


@pytest.fixture
def no_fit(monkeypatch):
    """Fail the test if anything is fitted."""

    def fit(*_, **__):
        pytest.fail("The refusal came only after the work.")

    monkeypatch.setattr(Factorization, "fit", fit)


@pytest.fixture(params=["in the middle of the file", "at the move"])
def full_disk(request):
    """A context in which files find no room."""
    return _small_files if request.param == "in the middle of the file" else _no_moves


@contextmanager
def _small_files():
    """Files of 16 bytes at most; the system says "too large" where a full disk says "no space"."""
    resource = pytest.importorskip("resource", reason="no limits of files on this platform")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _no_moves():
    def no_room(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", no_room)
        yield


@pytest.fixture
def small(monkeypatch):
    """Small studies in place of the real ones, by name; a test may put others there."""
    found = {name: Small(name) for name in NAMES}
    monkeypatch.setattr(studies, "study", found.__getitem__)
    return found


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A working folder in which what is written by default may be written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

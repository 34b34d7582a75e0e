"""Memory that reading takes, in arrays of one float64 per cell; the result itself takes one and a half."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from halfseen.io import observe, split_cells

N, M, CELLS = 4000, 1000, 200_000


def coordinates():
    rng = np.random.default_rng(0)
    return *np.divmod(rng.choice(N * M, CELLS, replace=False), M), rng.random(CELLS)


def stored():
    rows, columns, values = coordinates()
    return sparse.coo_array((values, (rows, columns)), shape=(N, M))


def frame(library, name_of):
    rows, columns, values = coordinates()
    ids = {"user": list(map(name_of, rows.tolist())), "item": list(map(name_of, columns.tolist()))}
    return library.DataFrame({**ids, "rating": values})


def arrays_held(work, X):
    work(X)  # what is imported and made once doesn't count
    tracemalloc.start()
    try:
        work(X)
        return tracemalloc.get_traced_memory()[1] / (8 * CELLS)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices(kind):
    assert arrays_held(observe, stored().asformat(kind)) < (1.6 if kind == "csr" else 3.1)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(("name_of", "most"), [(int, 3.1), ("id{:06d}".format, 4)])
def test_frames(library, name_of, most):
    assert arrays_held(observe, frame(library, name_of)) < most


def test_splits():
    assert arrays_held(split_cells, observe(stored())) < 4

"""How much room reading takes, in arrays of one float64 a cell; the result itself takes one and a half."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from halfseen.data import observe

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
    return pytest.importorskip(library).DataFrame({**ids, "rating": values})


def arrays_held(X):
    observe(X)  # what is imported and made once doesn't count
    tracemalloc.start()
    try:
        observe(X)
        return tracemalloc.get_traced_memory()[1] / (8 * CELLS)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices(kind):
    assert arrays_held(stored().asformat(kind)) < (1.6 if kind == "csr" else 3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_integers(library):
    assert arrays_held(frame(library, int)) < 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_text(library):
    assert arrays_held(frame(library, "id{:06d}".format)) < 4

"""Peak memory of a fit, over the input: at most 4 arrays of length nnz and 8 the size of both factors

Counted by tracemalloc, which sees all of NumPy's arrays. The bound in the last column is
4 * nnz + 8 * (n + m) * k numbers of the input's precision.
"""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import peak_of, table
from halfseen import PoissonFactorization, WeightedNMF
from halfseen.datasets.synthetic import skewed_cells

MODELS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("PoissonFactorization", PoissonFactorization, {"accelerate": False}),
    ('PoissonFactorization, unseen="missing"', PoissonFactorization, {"unseen": "missing", "accelerate": False}),
    ("WeightedNMF, Kullback-Leibler", WeightedNMF, {}),
    ("WeightedNMF, Frobenius", WeightedNMF, {"loss": "frobenius"}),
    ("WeightedNMF, beta = 0.5", WeightedNMF, {"loss": 0.5}),
)


def run(n: int = 20_000, m: int = 12_000, nnz: int = 4_500_000) -> list[str]:
    rows, columns = (index.astype(np.int32) for index in skewed_cells(n, m, nnz, 0))
    lines = []
    _peak(PoissonFactorization(2, max_iter=1), sparse.csr_array(np.eye(3)))  # imports and compiled code don't count
    for k in (16, 64):
        for dtype in (np.float64, np.float32):
            values = np.random.default_rng(0).integers(1, 6, nnz).astype(dtype)
            coo = sparse.coo_array((values, (rows, columns)), shape=(n, m))
            bound = (4 * nnz + 8 * (n + m) * k) * values.itemsize
            for name, kind, parameters in MODELS:
                peak = _peak(kind(k, max_iter=3, tol=0.0, random_state=0, n_jobs=2, **parameters), coo.tocsr())
                lines.append((name, k, dtype.__name__, "CSR", *_figures(peak, bound)))
    bound = (4 * nnz + 8 * (n + m) * 16) * 8
    frame = pd.DataFrame({"user": rows, "item": columns, "rating": values.astype(np.float64)})
    for layout, X in (("COO", coo.astype(np.float64)), ("long frame", frame)):
        for name, kind, parameters in MODELS:
            peak = _peak(kind(16, max_iter=3, tol=0.0, random_state=0, n_jobs=2, **parameters), X)
            lines.append((name, 16, "float64", layout, *_figures(peak, bound)))
    return table(("fit", "k", "dtype", "input", "peak over input, MB", "bound, MB", "share of the bound"), lines)


def _figures(peak: int, bound: int) -> tuple[str, str, str]:
    return f"{peak / 1e6:.0f}", f"{bound / 1e6:.0f}", f"**{peak / bound:.2f}**"


def _peak(model: Any, X: sparse.csr_array) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return peak_of(lambda: model.fit(X))

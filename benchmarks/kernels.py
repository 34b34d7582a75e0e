"""Kernels: 20,000 x 12,000, 4.5 million skewed cells, k = 128, float32, 2 threads

`spmm` beside scipy.sparse's csr @ dense, `sddmm` beside NumPy's gather, multiply, sum; GFlop/s beside sgemm's.
"""

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.measuring import best_of, table
from halfseen.datasets.synthetic import skewed_cells
from halfseen.engines import Side, open_engine
from halfseen.observed import Observed


def run(n: int = 20_000, m: int = 12_000, nnz: int = 4_500_000, k: int = 128) -> list[str]:
    random = np.random.default_rng(0)
    rows, columns = skewed_cells(n, m, nnz, 0)
    values = random.random(nnz, dtype=np.float32)
    observed = Observed.from_cells(rows, columns, values, (n, m))
    W, H = random.random((n, k), dtype=np.float32), random.random((m, k), dtype=np.float32)
    csr = sparse.csr_array((values, observed.indices, observed.indptr), shape=(n, m))
    u, i = observed.row_of_cell(), observed.indices
    with open_engine("cpu", 2) as engine:
        cells = engine.place(observed, Side.ROWS, Side.COLUMNS)
        spmm = best_of(lambda: engine.spmm(cells, values, H, Side.ROWS))
        down = best_of(lambda: engine.spmm(cells, values, W, Side.COLUMNS))
        sddmm = best_of(lambda: engine.sddmm(cells, W, H))
    scipy = best_of(lambda: csr @ H, 3)
    scipy_down = best_of(lambda: csr.T @ W, 3)
    gathered = best_of(lambda: _gathered(W, H, u, i), 2)
    whole = best_of(lambda: (W[u] * H[i]).sum(axis=1), 1)
    A = random.random((4096, 4096), dtype=np.float32)
    with threadpool_limits(2, user_api="blas"):
        sgemm = best_of(lambda: A @ A, 3)
    work = 2e-9 * nnz * k
    return table(
        ("what", "ms", "GFlop/s", "ratio", "to"),
        [
            _row("spmm along rows", spmm, work, scipy, "csr @ dense"),
            _row("spmm along columns", down, work, scipy_down, "csr.T @ dense"),
            _row("sddmm", sddmm, work, gathered, "NumPy, gather-multiply-sum in chunks that fit the cache"),
            _row("sddmm", sddmm, work, whole, "NumPy, gather-multiply-sum at once"),
            ("sgemm 4096", f"{1e3 * sgemm:.0f}", f"{2e-9 * 4096**3 / sgemm:.0f}", "", ""),
        ],
    )


def _gathered(W: np.ndarray, H: np.ndarray, u: np.ndarray, i: np.ndarray, step: int = 1 << 12) -> None:
    for start in range(0, len(u), step):
        part = slice(start, start + step)
        (W[u[part]] * H[i[part]]).sum(axis=1)


def _row(what: str, ours: float, work: float, theirs: float, whose: str) -> tuple[str, ...]:
    return what, f"{1e3 * ours:.1f}", f"{work / ours:.1f}", f"**{theirs / ours:.1f}**", whose

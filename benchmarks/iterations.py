"""One iteration at k = 100 on 6,000 x 3,700 with a million skewed cells, 2 threads

A whole iteration of each, as the time between two lengths of run: `PoissonFactorization` with its bound beside hpfrec,
`WeightedNMF` beside scikit-learn's sparse Kullback-Leibler `NMF(solver="mu")`; all in float64, as these are.
"""

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import table
from halfseen import Observed, PoissonFactorization, WeightedNMF
from halfseen.datasets.synthetic import skewed_cells


def run(n: int = 6_000, m: int = 3_700, nnz: int = 1_000_000, k: int = 100) -> list[str]:
    rows, columns = skewed_cells(n, m, nnz, 0)
    stars = np.random.default_rng(0).integers(1, 6, nnz).astype(np.float64)
    observed = Observed.from_cells(rows, columns, stars, (n, m), unseen="zero")
    missing = Observed.from_cells(rows, columns, stars, (n, m))
    single = Observed.from_cells(rows, columns, stars.astype(np.float32), (n, m), unseen="zero")
    csr = sparse.csr_array((stars, observed.indices, observed.indptr), shape=(n, m))
    ours = {"tol": 0.0, "n_jobs": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        poisson = _ours(PoissonFactorization(k, accelerate=False, max_iter=25, **ours), observed)
        poisson_single = _ours(PoissonFactorization(k, accelerate=False, max_iter=25, **ours), single)
        weighted = _ours(WeightedNMF(k, unseen="zero", max_iter=25, **ours), observed)
        holes = _ours(WeightedNMF(k, max_iter=25, **ours), missing)
        hpfrec = _between(lambda length: _hpfrec(rows, columns, stars, k, length), 2, 8)
        sklearn = _between(lambda length: _sklearn(csr, k, length), 2, 6)
    return table(
        ("what", "ms an iteration", "times hpfrec", "times scikit-learn"),
        [
            _row("PoissonFactorization", poisson, hpfrec, sklearn),
            _row("PoissonFactorization, float32", poisson_single, hpfrec, sklearn),
            _row('WeightedNMF, unseen="zero"', weighted, hpfrec, sklearn),
            _row('WeightedNMF, unseen="missing"', holes, hpfrec, sklearn),
            _row("hpfrec, 2 cores", hpfrec, hpfrec, sklearn),
            _row("scikit-learn NMF, Kullback-Leibler, sparse", sklearn, hpfrec, sklearn),
        ],
    )


def _ours(model: Any, observed: Observed) -> float:
    return float(np.median(np.diff(model.fit(observed).trace_["seconds"])))


def _between(work: Callable[[int], Any], short: int, long: int) -> float:
    """Seconds an iteration: a long run less a short one."""
    times = []
    for length in (short, long):
        started = perf_counter()
        work(length)
        times.append(perf_counter() - started)
    return (times[1] - times[0]) / (long - short)


def _hpfrec(rows: np.ndarray, columns: np.ndarray, stars: np.ndarray, k: int, length: int) -> None:
    import pandas as pd
    from hpfrec import HPF

    ratings = pd.DataFrame({"UserId": rows, "ItemId": columns, "Count": stars})
    model = HPF(k=k, maxiter=length, stop_crit="maxiter", check_every=length, ncores=2, reindex=False, use_float=False,
                random_seed=1, verbose=False)  # fmt: skip
    model.fit(ratings)


def _sklearn(csr: sparse.csr_array, k: int, length: int) -> None:
    NMF(k, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=length, tol=0, random_state=0).fit(csr)


def _row(what: str, seconds: float, hpfrec: float, sklearn: float) -> tuple[str, ...]:
    return what, f"{1e3 * seconds:.1f}", f"**{hpfrec / seconds:.1f}**", f"**{sklearn / seconds:.1f}**"

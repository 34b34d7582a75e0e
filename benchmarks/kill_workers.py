"""Workers killed at random moments: the same bits, and how much longer it takes

A hundred fits with the Dask engine on a cluster of processes of this machine; in each a worker is killed by SIGKILL at
a random moment. `python -m benchmarks.kill_workers 100 2` sets the number of fits and of workers.
"""

import logging
import os
import signal
import sys
import time
import warnings
from threading import Timer

import numpy as np

import halfseen
from benchmarks.measuring import table
from halfseen.datasets.synthetic import skewed_cells

FITS, WORKERS = 100, 2
N, M, NNZ, K, ITERATIONS = 60_000, 4_000, 4_000_000, 32, 40


def run(n_fits: int = FITS, n_workers: int = WORKERS) -> list[str]:
    from distributed import Client

    from halfseen.engines.cluster import local_cluster

    warnings.simplefilter("ignore")
    logging.getLogger("halfseen").setLevel(logging.ERROR)
    random = np.random.default_rng(0)
    levels = random.integers(1, 6, NNZ).astype(np.float32)
    observed = halfseen.Observed.from_cells(*skewed_cells(N, M, NNZ, 0), levels, (N, M), unseen="zero")

    def fit(engine: str) -> tuple[halfseen.OrdNMF, float]:
        model = halfseen.OrdNMF(K, max_iter=ITERATIONS, tol=0.0, random_state=0, engine=engine, n_jobs=n_workers)
        started = time.perf_counter()
        return model.fit(observed), time.perf_counter() - started

    with local_cluster(n_workers) as cluster, Client(cluster) as client:
        truth, _ = fit("cpu")
        plain = [fit("dask")[1] for _ in range(5)]
        median = float(np.median(plain[1:]))
        seconds, moments, n_same, n_killed = [], [], 0, 0
        for number in range(n_fits):
            client.wait_for_workers(n_workers, timeout=60)
            pids = list(client.run(os.getpid, on_error="ignore").values())
            moments.append(random.uniform(0, median))
            killer = Timer(moments[-1], os.kill, (int(random.choice(pids)), signal.SIGKILL))
            killer.start()
            model, took = fit("dask")
            n_killed += not killer.is_alive()
            killer.cancel()
            seconds.append(took)
            same = np.array_equal(model.W_, truth.W_) and np.array_equal(model.H_, truth.H_)
            n_same += same and np.array_equal(model.trace_["objective"], truth.trace_["objective"])
            print(
                f"{number}: {took:.1f} s, killed after {moments[-1]:.1f} s",
                "" if same else "OTHER BITS",
                file=sys.stderr,
            )
    worst = max(seconds) / median
    cells = (
        str(n_fits), str(n_killed), str(n_same), f"{median:.1f}", f"{np.median(seconds):.1f}", f"{max(seconds):.1f}",
        f"{np.median(seconds) / median:.2f}", f"**{worst:.2f}**",
    )  # fmt: skip
    heads = (
        "fits", "killed during the fit", "same bits", "s without a loss", "s, median", "s, longest", "ratio, median",
        "ratio, longest",
    )  # fmt: skip
    return table(heads, [cells])


if __name__ == "__main__":
    print("\n".join(run(*map(int, sys.argv[1:]))))

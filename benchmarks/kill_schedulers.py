"""Schedulers killed at random moments: a fit goes on from its checkpoint, with the same bits

Each fit runs on a scheduler and two workers of its own, and the scheduler is killed by SIGKILL at a random moment:
the fit must end with an `EngineError`, and the same call on a new scheduler with the bits of a fit that nothing has
stopped.
`python -m benchmarks.kill_schedulers 20` sets the number of kills.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

import halfseen
from benchmarks.measuring import table
from halfseen.datasets.synthetic import skewed_cells
from halfseen.errors import EngineError

KILLS = 20
N, M, NNZ, K, ITERATIONS = 30_000, 4_000, 2_500_000, 16, 60


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[Any, subprocess.Popen[bytes]]]:
    """A client, and the process of its scheduler, which has two workers."""
    from distributed import Client

    file = folder / f"scheduler-{time.monotonic_ns()}.json"
    dask = [sys.executable, "-m", "dask"]
    here = ["--scheduler-file", str(file), "--local-directory", str(folder)]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    told = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    main = subprocess.Popen([*dask, "scheduler", *told], **quiet)
    while not file.exists():
        time.sleep(0.05)
    workers = subprocess.Popen(
        [*dask, "worker", *here, "--nworkers", "2", "--nthreads", "1", "--no-dashboard", "--death-timeout", "5"],
        **quiet,
    )
    try:
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=60)
            yield client, main
    finally:
        for process in (workers, main):
            process.terminate()
        for process in (workers, main):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run(n_kills: int = KILLS) -> list[str]:
    warnings.simplefilter("ignore")
    random = np.random.default_rng(0)
    levels = random.integers(1, 6, NNZ).astype(np.float32)
    observed = halfseen.Observed.from_cells(*skewed_cells(N, M, NNZ, 0), levels, (N, M), unseen="zero")

    def fit(engine: str, folder: Path | None = None) -> halfseen.OrdNMF:
        checkpoint = None if folder is None else halfseen.Checkpoint(folder, seconds=0.0)
        how: Any = {"max_iter": ITERATIONS, "tol": 0.0, "random_state": 0, "checkpoint": checkpoint}
        return halfseen.OrdNMF(K, engine=engine, **how).fit(observed)

    truth, n_same, n_lost, took = fit("cpu"), 0, 0, 10.0
    for number in range(n_kills):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            with scheduler(folder) as (_, process):
                killer = Timer(random.uniform(0.1, 0.9) * took, os.kill, (process.pid, signal.SIGKILL))
                killer.start()
                started = time.perf_counter()
                try:
                    fit("dask", folder / "run")
                    took = time.perf_counter() - started
                except EngineError:
                    n_lost += 1
                killer.cancel()
            with scheduler(folder):
                model = fit("dask", folder / "run")
        same = np.array_equal(model.W_, truth.W_) and np.array_equal(model.H_, truth.H_)
        n_same += same and np.array_equal(model.trace_["objective"], truth.trace_["objective"])
        print(f"{number}: {n_lost} lost, {n_same} the same", file=sys.stderr)
    return table(("fits", "schedulers lost during the fit", "same bits"), [(n_kills, n_lost, n_same)])


if __name__ == "__main__":
    print("\n".join(run(*map(int, sys.argv[1:]))))

"""The Dask engine beside the CPU engine: OrdNMF at k = 64, two processes beside two threads

138,000 x 27,000 with ten levels, 20 million cells, the size of MovieLens 20M; a process of its own for each. Memory is
that of all processes together, at its peak, pages that they share counted once. `python -m benchmarks.cluster 4000000`
sets the number of cells.
"""

import subprocess
import sys

from benchmarks.measuring import table

PROGRAM = """
import sys, time, warnings
from pathlib import Path
from threading import Thread
import numpy as np
import psutil

def of_all(measure):
    me = psutil.Process()
    total = 0
    for process in (me, *me.children(recursive=True)):
        try:
            total += measure(process)
        except (psutil.Error, OSError):
            pass
    return total

def pss(process):
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024

def seconds(process):
    return sum(process.cpu_times()[:2])

def main():
    import halfseen
    from halfseen.datasets.synthetic import skewed_cells
    warnings.simplefilter("ignore")
    engine, nnz, k, iterations = sys.argv[1], *map(int, sys.argv[2:])
    n, m = int(138_000 * nnz / 20e6), 27_000
    levels = np.random.default_rng(0).integers(1, 11, nnz).astype(np.float32)
    observed = halfseen.Observed.from_cells(*skewed_cells(n, m, nnz, 0), levels, (n, m), unseen="zero")
    del levels
    if engine == "dask":
        from distributed import Client
        from halfseen.engines.cluster import local_cluster
        client = Client(local_cluster(2))
    peak, watching, cpu = [0], [0.0], []
    def watch():
        while True:
            peak[0], watching[0] = max(peak[0], of_all(pss)), time.thread_time()
            time.sleep(0.5)
    Thread(target=watch, daemon=True).start()
    def callback(iteration, state):
        cpu.append(of_all(seconds) - watching[0])
    import halfseen.estimators.base as base
    run = base.run
    base.run = lambda *args, **how: run(*args, **{**how, "callback": callback})
    model = halfseen.OrdNMF(k, max_iter=iterations, tol=0.0, random_state=0, n_jobs=2, engine=engine).fit(observed)
    clock = np.diff(model.trace_["seconds"])
    print(np.median(clock), np.median(np.diff(cpu)), peak[0] / 1e9, repr(model.trace_["objective"][-1]))

if __name__ == "__main__":
    main()
"""


def run(n_cells: int = 20_000_000, n_components: int = 64, n_iterations: int = 12) -> list[str]:
    rows, found = [], {}
    for engine in ("cpu", "dask"):
        size = list(map(str, (n_cells, n_components, n_iterations)))
        told = subprocess.run([sys.executable, "-c", PROGRAM, engine, *size], capture_output=True, text=True)
        if told.returncode:
            raise RuntimeError(told.stderr)
        found[engine] = told.stdout.split()
        clock, cpu, peak = map(float, found[engine][:3])
        ratios = (f"**{clock / float(found['cpu'][0]):.2f}**", f"{cpu / float(found['cpu'][1]):.2f}")
        same = str(found[engine][3] == found["cpu"][3])
        rows.append((engine, f"{clock:.2f}", f"{cpu:.2f}", f"{peak:.1f}", *ratios, same))
    heads = ("engine", "s an iteration", "s of processors", "peak of all, GB", "ratio", "of processors", "same bits")
    return table(heads, rows)


if __name__ == "__main__":
    print("\n".join(run(*map(int, sys.argv[1:]))))

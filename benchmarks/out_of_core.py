"""Out of core: OrdNMF at k = 16 on two workers of 1.6 GB, from Parquet files with up to 100 million cells

Files of 2.5 million ratings each, which all rows share; popular columns as in a power law; a row for each hundred
cells. The peak is that of the client, the scheduler and both workers together: memory of their own (USS) and with their
parts of what they share, mapped files included (PSS). Numbers of rows and cells are in proportion, k and the columns
are not, so time and memory should be linear.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import table

SIZES = (10_000_000, 30_000_000, 100_000_000)
CELLS_PER_FILE, CELLS_PER_ROW, N_COLUMNS = 2_500_000, 100, 40_000
#: Of each worker.
MEMORY = "1600MB"

#: Writes the files: each has columns of its own, and so has each pass over the rows, so that no pair is given twice.
WRITE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
folder, n_files, per_file, n_rows, n_columns = sys.argv[1], *map(int, sys.argv[2:])
n_passes = -(-per_file // n_rows)
shares = np.cumsum((np.arange(n_columns // n_files // n_passes) + 10.0) ** -0.8)
for number in range(n_files):
    random = np.random.default_rng(number)
    users = np.concatenate([random.permutation(n_rows) for _ in range(n_passes)])[:per_file]
    items = np.searchsorted(shares, random.random(per_file) * shares[-1]) * n_passes + np.arange(per_file) // n_rows
    order = random.permutation(per_file)
    columns = {"user": 7 * users[order] + 3, "item": items[order] * n_files + number}
    columns["rating"] = random.integers(1, 6, per_file).astype(np.float32)
    pq.write_table(pa.table(columns), f"{folder}/part-{number:03}.parquet")
"""

#: Fits, and samples the memory of all processes meanwhile.
FIT = """
import os, sys, threading, time, warnings
import dask
import psutil
import halfseen
from distributed import Client
from halfseen.engines.cluster import local_cluster

def sample(peaks, stop):
    own = psutil.Process()
    while not stop.wait(0.2):
        sums = {"uss": 0, "pss": 0}
        for process in [own, *own.children(recursive=True)]:
            try:
                info = process.memory_full_info()
            except psutil.Error:
                continue
            kind = "client" if process.pid == own.pid else "others"
            for name in sums:
                sums[name] += getattr(info, name)
            peaks[kind] = max(peaks.get(kind, 0), info.pss)
        for name, total in sums.items():
            peaks[name] = max(peaks.get(name, 0), total)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    read = []
    from halfseen.estimators import base
    observe = base.observe_for_fit
    def timed(*args):
        began = time.perf_counter()
        found = observe(*args)
        read.append(time.perf_counter() - began)
        return found
    base.observe_for_fit = timed
    dask.config.set({"distributed.worker.memory.pause": False})  # a worker that waits for memory would wait for ever
    with local_cluster(2, sys.argv[2]) as cluster, Client(cluster):
        peaks, stop = {}, threading.Event()
        thread = threading.Thread(target=sample, args=(peaks, stop))
        thread.start()
        began = time.perf_counter()
        model = halfseen.OrdNMF(16, max_iter=3, tol=0.0, random_state=0, engine="dask").fit(sys.argv[1])
        whole = time.perf_counter() - began
        stop.set()
        thread.join()
    seconds = model.trace_["seconds"]
    gigabytes = [peaks[name] / 1e9 for name in ("uss", "pss", "client", "others")]
    print(read[0], (seconds[-1] - seconds[0]) / 2, whole, *gigabytes)
"""


def measure(n_cells: int) -> list[str]:
    """Seconds of reading, of an iteration and of the whole fit; peaks in GB."""
    n_files, n_rows = n_cells // CELLS_PER_FILE, n_cells // CELLS_PER_ROW
    with tempfile.TemporaryDirectory() as folder:
        sizes = map(str, (n_files, CELLS_PER_FILE, n_rows, N_COLUMNS))
        subprocess.run([sys.executable, "-c", WRITE, folder, *sizes], check=True)
        program = Path(folder) / "fit.py"
        program.write_text(FIT)
        command = [sys.executable, str(program), f"{folder}/*.parquet", MEMORY]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def run() -> list[str]:
    rows = []
    for n_cells in SIZES:
        read, iteration, whole, uss, pss, client, worker = map(float, measure(n_cells))
        times = f"{read:.1f}", f"{iteration:.2f}", f"{whole:.0f}", f"{1e6 * whole / n_cells * 1e3:.0f}"
        rows.append((f"{n_cells:,}", *times, f"{uss:.2f}", f"**{pss:.2f}**", f"{client:.2f}", f"{worker:.2f}"))
    heads = ("cells", "s, reading", "s an iteration", "s, fit of three", "ns a cell", "USS, GB", "PSS, GB")
    return table((*heads, "PSS of the client", "of a worker, at most"), rows)

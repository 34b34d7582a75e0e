"""Twenty million cells: OrdNMF and SquaredOrdNMF at k = 64, ten iterations, within 8 GB

138,000 x 27,000 with ten levels, the size of MovieLens 20M; a process of its own for each. The peak is that of the
whole process, data and interpreter included.
"""

import subprocess
import sys

from benchmarks.measuring import table

PROGRAM = """
import resource, sys, time, warnings
import numpy as np
import halfseen
from halfseen.datasets.synthetic import skewed_cells
warnings.simplefilter("ignore")
n, m, nnz = 138_000, 27_000, 20_000_000
levels = np.random.default_rng(0).integers(1, 11, nnz).astype(sys.argv[2])
observed = halfseen.Observed.from_cells(*skewed_cells(n, m, nnz, 0), levels, (n, m), unseen="zero")
del levels
model = getattr(halfseen, sys.argv[1])(64, max_iter=10, tol=0.0, random_state=0, n_jobs=2).fit(observed)
gain = np.diff(model.trace_["objective"]) * (-1 if sys.argv[1].startswith("Squared") else 1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(np.median(np.diff(model.trace_["seconds"])), model.trace_["seconds"][-1], peak, bool((gain > 0).all()))
"""


def run() -> list[str]:
    rows = []
    for name in ("OrdNMF", "SquaredOrdNMF"):
        for dtype in ("float64", "float32"):
            found = subprocess.run(
                [sys.executable, "-c", PROGRAM, name, dtype], capture_output=True, text=True, check=True
            )
            one, ten, peak, gains = found.stdout.split()
            rows.append((name, dtype, f"{float(one):.2f}", f"{float(ten):.1f}", f"**{float(peak):.1f}**", gains))
    return table(("fit", "dtype", "s an iteration", "s, ten", "peak of the process, GB", "every iteration gains"), rows)

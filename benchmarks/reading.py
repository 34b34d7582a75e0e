"""Reading long tables to a ready `Observed`, beside what pandas and polars take to read the same file

Each in a process of its own, the best of three by the clock; numba's start, 0.4 s once per process, which a fit pays
in any case, is not counted. `x pandas` and `x polars` are ratios to `read_csv` (`read_parquet`) of the same file by
these libraries alone, in the same run: they give a frame, `observe` gives the sorted, checked matrix with its labels.
The last column is the peak of resident memory over that of the imports, less what the columns of the file take as
Arrow holds them, which is the column before.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.measuring import table
from halfseen.datasets.synthetic import skewed_cells

USERS, ITEMS = 138_000, 27_000
REPEATS = 3

START = """
import halfseen.io, halfseen.observed, numpy, pandas, polars
halfseen.observed.stable_order(numpy.arange(70_000), 70_000)
"""
READ = {
    "halfseen": "read = lambda: halfseen.io.observe({path!r})",
    "pandas": "read = lambda: pandas.read_{kind}({path!r})",
    "polars": "read = lambda: polars.read_{kind}({path!r})",
    "a pandas frame": "frame = pandas.read_{kind}({path!r})\nread = lambda: halfseen.io.observe(frame)",
    "a polars frame": "frame = polars.read_{kind}({path!r})\nread = lambda: halfseen.io.observe(frame)",
}
MEASURE = """
import json, resource, sys, time
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
before = resident()
started = time.perf_counter()
result = read()
seconds = time.perf_counter() - started
print(json.dumps([seconds, peak() - before]))
"""


def run(millions: tuple[int, ...] = (10, 20)) -> list[str]:
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for count in millions:
            for what, path, columns in _files(Path(folder), count * 1_000_000):
                kind = "parquet" if path.suffix == ".parquet" else "csv"
                seconds, memory = _best("halfseen", path, kind)
                others = {name: _best(name, path, kind)[0] for name in ("pandas", "polars")}
                cells = count * 1_000_000
                lines.append(_line(f"{count} million lines, {what}", seconds, others, columns / cells, memory / cells))
                if kind == "parquet":
                    for name in ("a pandas frame", "a polars frame"):
                        seconds, memory = _best(name, path, kind)
                        lines.append(_line(f"{count} million cells, {name}, {what}", seconds, {}, 0, memory / cells))
                path.unlink()
    header = ("what", "s", "x pandas", "x polars", "bytes per line of the columns", "bytes per cell above them")
    return table(header, lines)


def _line(what: str, seconds: float, others: dict[str, float], columns: float, peak: float) -> tuple[str, ...]:
    ratios = [f"{seconds / others[name]:.1f}" if name in others else "" for name in ("pandas", "polars")]
    return what, f"**{seconds:.2f}**", *ratios, f"{columns:.0f}" if columns else "in memory", f"{peak - columns:.0f}"


def _files(folder: Path, cells: int) -> list[tuple[str, Path, int]]:
    """Long files, lines in random order, and the bytes of their columns as Arrow holds them."""
    rng = np.random.default_rng(0)
    rows, columns = (index.astype(np.int64) for index in skewed_cells(USERS, ITEMS, cells, 0))
    order = rng.permutation(cells)
    user, item, rating = rows[order] + 1, columns[order] + 1, rng.integers(1, 11, cells) / 2
    numbers = pa.table({"userId": user, "movieId": item, "rating": rating})
    text = pa.table(
        {
            "user": pc.binary_join_element_wise("customer-", pc.cast(numbers["userId"], pa.string()), ""),
            "item": pc.binary_join_element_wise("film no. ", pc.cast(numbers["movieId"], pa.string()), ""),
            "rating": numbers["rating"],
        }
    )
    found = []
    for name, one in (("integer ids", numbers), ("text ids", text)):
        path = folder / f"{name.replace(' ', '-')}-{cells}.csv"
        pa.csv.write_csv(one, path, pa.csv.WriteOptions(quoting_style="none"))
        found.append((f"CSV, {name}", path, path.stat().st_size + 9 * cells))  # a string costs an offset of 4 bytes
    path = folder / f"integers-{cells}.parquet"
    pq.write_table(numbers, path)
    found.append(("Parquet, integer ids", path, numbers.nbytes))
    return found


def _best(name: str, path: Path, kind: str) -> tuple[float, int]:
    code = START + READ[name].format(path=str(path), kind=kind) + MEASURE
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    return min(seconds for seconds, _ in runs), min(peak for _, peak in runs)

"""Beside Spark MLlib's ALS: implicit feedback on one machine, seconds per iteration and memory

Five million cells of 69,000 x 27,000, rank 64, all processors. ALS solves each row exactly by Cholesky; `ImplicitMF`
takes three steps of conjugate gradients, in this process and on Dask. Seconds per iteration are the difference between
fits of 4 and of 1 iterations, over 3, after one that is not counted; memory is the most that all processes of a fit had
resident at a time (pages that several share are divided among them). Needs a Java runtime and `pip install pyspark`,
in an environment of its own if need be: HALFSEEN_SPARK_PYTHON names its Python.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from benchmarks.measuring import table

N, M, CELLS, RANK = 69_000, 27_000, 5_000_000, 64

SPARK = """
import sys, time
from pyspark.sql import SparkSession
from pyspark.ml.recommendation import ALS
path, iterations = sys.argv[1], int(sys.argv[2])
spark = (
    SparkSession.builder.master("local[*]").config("spark.driver.memory", "12g")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8").getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
ratings = spark.read.parquet(path).cache()
ratings.count()
als = ALS(rank=RANK, maxIter=iterations, regParam=0.01, implicitPrefs=True, alpha=1.0, seed=0, userCol="user",
          itemCol="item", ratingCol="rating", intermediateStorageLevel="MEMORY_ONLY", finalStorageLevel="MEMORY_ONLY")
started = time.time()
model = als.fit(ratings)
model.itemFactors.count(), model.userFactors.count()
print("seconds", time.time() - started)
spark.stop()
""".replace("RANK", str(RANK))

OURS = """
import sys, time, warnings
import halfseen
warnings.simplefilter("ignore")
path, iterations, engine, method = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]

def main():
    observed = halfseen.observe(path, unseen="zero")
    started = time.time()
    model = getattr(halfseen, method)(RANK, max_iter=iterations, tol=0.0, random_state=0, engine=engine)
    model.set_params(**({"dtype": "float32"} if "dtype" in model.get_params() else {}))
    model.fit(observed)
    print("seconds", time.time() - started)

if __name__ == "__main__":
    main()
""".replace("RANK", str(RANK))


def memory_of(process: psutil.Process) -> int:
    """Bytes that a process and its children have resident; pages that several share are divided among them."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:  # it has ended meanwhile
            continue
    return total


def run_program(python: str, program: str, *arguments: str) -> tuple[float, int]:
    """The seconds that a program prints, and the most memory of its processes."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(program, encoding="utf-8")
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
        with subprocess.Popen(
            [python, str(script), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            peak = 0
            while process.poll() is None:
                peak = max(peak, memory_of(psutil.Process(process.pid)) if psutil.pid_exists(process.pid) else 0)
                time.sleep(0.5)
            output, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(errors[-2000:])
    seconds = next(line.split()[1] for line in output.splitlines() if line.startswith("seconds"))
    return float(seconds), peak


def run() -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from halfseen.datasets.synthetic import skewed_cells

    spark = os.environ.get("HALFSEEN_SPARK_PYTHON", sys.executable)
    rows, baseline = [], None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ratings.parquet")
        users, items = skewed_cells(N, M, CELLS, 0)
        ratings = np.random.default_rng(0).integers(1, 6, CELLS).astype(np.float32)
        columns = {"user": users.astype(np.int32), "item": items.astype(np.int32), "rating": ratings}
        pq.write_table(pa.table(columns), path, row_group_size=1 << 20)
        for label, python, program, more in (
            ("Spark MLlib ALS, local[*]", spark, SPARK, ()),
            ("`ImplicitMF`, one process", sys.executable, OURS, ("cpu", "ImplicitMF")),
            ('`ImplicitMF(engine="dask")`, a process per processor', sys.executable, OURS, ("dask", "ImplicitMF")),
            ('`OrdNMF(engine="dask")`', sys.executable, OURS, ("dask", "OrdNMF")),
        ):
            try:
                _, short, long = (run_program(python, program, path, str(count), *more) for count in (1, 1, 4))
            except (RuntimeError, StopIteration) as error:
                lines = str(error).strip().splitlines()
                rows.append((label, f"not run: {lines[-1] if lines else 'no answer'}", "", "", ""))
                continue
            iteration, peak = (long[0] - short[0]) / 3, max(short[1], long[1])
            baseline = baseline or iteration
            rows.append(
                (label, f"{short[0]:.1f}", f"{iteration:.2f}", f"{baseline / iteration:.1f}", f"{peak / 1e9:.1f}")
            )
    return table(("fit", "s, first iteration", "s per iteration", "times ALS's speed", "memory, GB"), rows)

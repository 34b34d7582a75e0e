"""Fits with a checkpoint, killed at random moments and started again until they end.

    python -m benchmarks.kill_fits --kills 300

Every fit runs in a process of its own, which saves after every iteration or every few, so that many kills fall into a
save. After each kill the folder must be readable (no torn file), and after the end the factors, the likelihood and the
trace must have the same bits as those of a fit that nothing has stopped, and the folder nothing but the files of its
last state.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

#: Class, parameters, and whether unseen cells are zeros.
FITS = {
    "WeightedNMF": {"max_iter": 60, "tol": 0},
    "WeightedNMF, momentum": {"max_iter": 60, "tol": 0, "accelerate": True},
    "PoissonFactorization": {"max_iter": 60, "tol": 0},
    "OrdNMF": {"max_iter": 60, "tol": 0},
    "SquaredOrdNMF": {"max_iter": 60, "tol": 0},
    "ImplicitMF": {"max_iter": 60, "tol": 0},
    "OrdinalMF": {"max_iter": 40, "tol": 0},
    "OrdinalMF, sgd, 2 starts": {"max_iter": 20, "tol": 0, "solver": "sgd", "n_init": 2},
    "OrdinalMF, early stopping": {"max_iter": 60, "early_stopping": True, "n_iter_no_change": 40},
    "RoundMF": {"max_iter": 40, "tol": 0},
}

#: What a process does: it fits, and writes what must be the same. It says when it has begun.
PROGRAM = """
import sys, json, warnings
import numpy as np, halfseen as hs
warnings.simplefilter("ignore")
name, params, data, folder, out, every = json.loads(sys.argv[1])
model = getattr(hs, name.split(",")[0])(16, random_state=0, n_jobs=1, **params)
if folder:
    model.set_params(checkpoint=hs.Checkpoint(folder, iterations=every))
cells = hs.observe(data, unseen=model.unseen)
print("begins", flush=True)
model.fit(cells)
record, arrays = model.model_, {}
for side in ("rows", "columns"):
    arrays |= {f"{side}.{key}": one for key, one in getattr(record, side)._asdict().items()}
from halfseen.archive import pack
arrays["likelihood"] = np.array(repr(pack(record.likelihood, "likelihood", arrays)))
arrays |= {key: one for key, one in model.trace_.items() if key != "seconds"}
arrays["end"] = np.array(f"{model.n_iter_} {model.status_.name}")
np.savez(out, **{key.replace("/", "."): one for key, one in arrays.items()})
"""


def start(*job: object) -> "subprocess.Popen[str]":
    """A process that fits; it has begun when this returns."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(job)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def run(*job: object) -> float:
    """Seconds of a fit that nothing stops."""
    process, started = start(*job), perf_counter()
    error = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"A fit failed:\n{error}")
    return perf_counter() - started


def differences(path: Path, other: Path) -> list[str]:
    """The names of what differs in two files of arrays."""
    with np.load(path) as a, np.load(other) as b:
        names = sorted({*a.files, *b.files})
        return [
            name for name in names
            if name not in a or name not in b
            or (a[name].dtype, a[name].tobytes()) != (b[name].dtype, b[name].tobytes())
        ]  # fmt: skip


def left_over(folder: Path) -> set[str]:
    """Files in a folder that its manifest does not name."""
    manifest = json.loads((folder / "checkpoint.json").read_bytes().splitlines()[0])
    used = {piece["path"] for entry in manifest["arrays"].values() for piece in entry["pieces"]}
    return set(os.listdir(folder)) - used - {"checkpoint.json", "checkpoint.lock"}


def main(kills: int, seed: int, cells: int) -> None:
    moments, done = random.Random(seed), 0
    print("| fit | kills | of these during a save | whole fits | different | left over |", "|" + " --- |" * 6, sep="\n")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        numbers = np.random.default_rng(0)
        pairs = np.unique(numbers.integers(0, [1000, 400], (cells, 2)), axis=0)
        table = np.column_stack([pairs, numbers.integers(1, 6, len(pairs))])
        data = str(place / "ratings.csv")
        np.savetxt(data, table, "%d", ",", header="user,item,rating", comments="")
        wrong = 0
        for number, (name, params) in enumerate(FITS.items()):
            whole, out, folder = place / f"{number}-whole.npz", place / f"{number}.npz", place / f"{number}"
            run(name, params, data, None, str(place / "warm.npz"), 1)  # kernels are compiled
            seconds = run(name, params, data, None, str(whole), 1)
            share, killed, in_save, restarts = round(kills * (number + 1) / len(FITS)) - done, 0, 0, 0
            while killed < share:
                every = moments.choice([1, 1, 2, 5])
                process = start(name, params, data, str(folder), str(out), every)
                sleep(moments.uniform(0.0, 1.5 * seconds))
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                error = process.communicate()[1]
                if process.returncode == -signal.SIGKILL:
                    killed += 1
                    in_save += bool(left_over(folder)) if (folder / "checkpoint.json").exists() else 0
                    continue
                restarts += 1
                if process.returncode:
                    raise SystemExit(f"{name} can't go on:\n{error}")
                wrong += bool(differences(whole, out)) + bool(left_over(folder))
                for file in folder.iterdir():  # the next fit
                    file.unlink()
            run(name, params, data, str(folder), str(out), 1)
            different, left = differences(whole, out), left_over(folder)
            wrong += bool(different) + bool(left)
            done += killed
            facts = (
                name,
                killed,
                in_save,
                restarts + 1,
                ", ".join(different) or "nothing",
                ", ".join(left) or "nothing",
            )
            print("|", " | ".join(map(str, facts)), "|", flush=True)
    print(f"{done} kills, {wrong} fits that ended otherwise than without.")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cells", type=int, default=60_000)
    arguments = parser.parse_args()
    main(arguments.kills, arguments.seed, arguments.cells)

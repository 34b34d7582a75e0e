"""Serving over HTTP

`halfseen serve` on the loopback, asked by another process over connections that stay open: each sends the next request
for one user's ten best items when the last is answered. At the end of the first model, its file is replaced under load.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measuring import table

#: Name, users, items, components.
MODELS = [("the size of MovieLens 1M", 6040, 3706, 100), ("100,000 items", 5000, 100_000, 128)]
CONCURRENCY = (1, 8, 32)
SECONDS = 4.0
CELLS = 1_000_000


def run() -> list[str]:
    lines, told = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, users, items, k in MODELS:
            path = Path(folder) / "model.hs"
            _save(path, users, items, k, seed=0)
            command = [sys.executable, "-c", "from halfseen.cli import main; main()", "serve", str(path), "--port", "0"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
                try:
                    found = re.search(r":(\d+)\. Ctrl-C", server.stdout.readline())  # type: ignore[union-attr]
                    port = int(found[1]) if found else 0
                    time.sleep(1.0)
                    for clients in CONCURRENCY:
                        measured = _load(port, users, clients, SECONDS)
                        shown = (f"{measured['rate']:,.0f}", f"{measured['p50']:.2f}", f"{measured['p99']:.2f}")
                        lines.append((name, str(k), str(clients), *shown, str(measured["failed"])))
                    if name == MODELS[0][0]:
                        replace = partial(_save, path, users, items, k, seed=1)
                        measured = _load(port, users, 8, SECONDS, replace)
                        answered = f"{measured['answered']:,} requests answered by {measured['models']} models"
                        told = [
                            "",
                            f"Its file replaced under load, 8 clients: {answered}, {measured['failed']} failed.",
                        ]
                finally:
                    server.send_signal(signal.SIGTERM)
                    server.wait(30)
    heads = ("model", "k", "clients", "requests per second", "p50, ms", "p99, ms", "failed")
    return [*table(heads, lines), *told]


def _save(path: Path, n: int, m: int, k: int, seed: int) -> None:
    """A model of random cells after one iteration: as large as a good one, and as quick to answer."""
    from scipy import sparse

    import halfseen

    random = np.random.default_rng(seed)
    X = sparse.random_array((n, m), density=CELLS / n / m, rng=random, format="csr")
    X.data[:] = random.integers(1, 6, X.nnz)
    model = halfseen.SquaredOrdNMF(n_components=k, max_iter=1, tol=0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    model.save(path)


def _load(port: int, users: int, clients: int, seconds: float, meanwhile=None) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """What a process that asks for some seconds measures; `meanwhile` is done here as it runs."""
    words = [sys.executable, "-m", "benchmarks.serving", str(port), str(users), str(clients), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as client:
        if meanwhile is not None:
            meanwhile()
        measured: dict[str, float] = json.loads(client.communicate(timeout=seconds + 60)[0])
    return measured


async def _ask(port: int, users: int, clients: int, seconds: float) -> None:
    """Print rate, quantiles and failures of requests over open connections."""
    times: list[float] = []
    failed, models = 0, set()

    async def one(number: int) -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        users_of = np.random.default_rng(number).integers(users, size=100_000).tolist()
        for user in users_of:
            began = time.perf_counter()
            if began > end:
                break
            writer.write(f"GET /recommend?user={user}&n=10 HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            times.append(time.perf_counter() - began)
            failed += not head.startswith(b"http/1.1 200")
            models.add(body[-18:])
        writer.close()

    end = time.perf_counter() + seconds
    await asyncio.gather(*map(one, range(clients)))
    p50, p99 = (float(one) for one in np.quantile(times, (0.5, 0.99)) * 1e3)
    measured = {"answered": len(times), "rate": len(times) / seconds, "p50": p50, "p99": p99, "failed": failed}
    print(json.dumps(measured | {"models": len(models)}))


if __name__ == "__main__":
    port, users, clients = map(int, sys.argv[1:4])
    asyncio.run(_ask(port, users, clients, float(sys.argv[4])))

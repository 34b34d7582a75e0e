"""The Dask engine on a cluster of processes: the bits of the CPU engine, whatever happens to the workers."""

import asyncio
import errno
import gc
import json
import os
import signal
import subprocess
import sys
import warnings
import weakref
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import halfseen as hs
from halfseen.datasets.synthetic import skewed_cells
from halfseen.engines import Side, open_engine, threads
from halfseen.errors import EngineError, ParameterError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

from halfseen.engines import cluster as cluster_module  # noqa: E402
from halfseen.engines import dask as dask_engine  # noqa: E402
from halfseen.engines.cluster import local_cluster  # noqa: E402

ROWS, COLUMNS, CELLS = 300, 40, 3000
CELLS_PER_SHARD = threads.CELLS_PER_SHARD


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def many_shards(monkeypatch):
    monkeypatch.setattr(threads, "CELLS_PER_SHARD", 450)


@pytest.fixture(params=[False, True], ids=["cut seldom", "cut always"])
def cuts(request, monkeypatch):
    """Arrays stay with the workers, or are written to files, each by itself, after every phase."""
    if request.param:
        monkeypatch.setattr(dask_engine, "SECONDS_PER_CUT", 0.0)
        monkeypatch.setattr(dask_engine, "SHARE_OF_CUTS", np.inf)
        monkeypatch.setattr(dask_engine, "LARGE", 100)


def cells(unseen="zero", weighted=False, dtype=float, seed=0, n=ROWS, duplicates=False):
    random = np.random.default_rng(seed)
    rows, columns = skewed_cells(n, COLUMNS, CELLS, seed)
    if duplicates:
        rows, columns = np.append(rows, rows[::7]), np.append(columns, columns[::7])
    values = random.integers(1, 6, rows.size).astype(dtype)
    weights = random.choice([0.5, 1.0, 2.0], rows.size) if weighted else None
    how = {"duplicates": "keep"} if duplicates else {}
    return hs.Observed.from_cells(rows, columns, values, (n, COLUMNS), weights=weights, unseen=unseen, **how)


ZERO, MISSING = cells(), cells("missing")
#: Estimators, and what they are fitted on.
FITS = [
    (hs.OrdNMF(3), ZERO),
    (hs.OrdNMF(3, accelerate=False, unseen="missing"), cells("missing", weighted=True)),
    (hs.PoissonFactorization(3), cells(dtype=np.float32)),
    (hs.PoissonFactorization(3), cells(duplicates=True)),
    (hs.BernoulliPoisson(3), ZERO),
    (hs.CompoundPoisson(3), ZERO),
    (hs.WeightedNMF(3), cells("missing", weighted=True)),
    (hs.WeightedNMF(3, loss="frobenius", unseen="zero"), ZERO),
    (hs.WeightedNMF(3, loss="itakura-saito"), MISSING),
    (hs.WeightedNMF(3, loss=2.5, accelerate=False), MISSING),
    (hs.SquaredOrdNMF(3, l2=1.0, frequency_scaling=0.25), ZERO),
    (hs.SquaredPoisson(3, l2=1.0, dtype="float32"), cells(weighted=True)),
    (hs.ImplicitMF(3, l2=0.1), ZERO),
    (hs.OrdinalMF(2), MISSING),
    (hs.OrdinalMF(2, biases=False, link="probit", early_stopping=True), cells("missing", weighted=True)),
    (hs.RoundMF(2), MISSING),
]


def bits(model):
    names = ("W_", "H_", "W_shape_", "W_rate_", "thresholds_", "p_", "l2_")
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return {**found, "objective": model.trace_["objective"]}


def fitted(estimator, X, engine, **params):
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        seed = {"random_state": 0} if "random_state" in estimator.get_params() else {}
        return clone(estimator).set_params(engine=engine, **seed, **params).fit(X)


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert_array_equal(array, other[name], err_msg=name)


# ---------------------------------------------------------------------------------------------------------------------
# bits


@pytest.mark.parametrize(("estimator", "X"), FITS, ids=[repr(estimator) for estimator, _ in FITS])
def test_fits_have_the_bits_of_the_cpu(cluster, estimator, X):
    assert len(threads.shard_blocks(X.indptr)) >= 7
    here, there = (fitted(estimator, X, engine, max_iter=4) for engine in ("cpu", "dask"))
    assert_same(bits(here), bits(there))


@pytest.mark.usefixtures("cuts")
@pytest.mark.parametrize("estimator", [hs.OrdNMF(3), hs.SquaredPoisson(3, l2=1.0)], ids=repr)
def test_files_change_no_bits(cluster, estimator):
    here, there = (fitted(estimator, ZERO, engine, max_iter=12, tol=0.0) for engine in ("cpu", "dask"))
    assert_same(bits(here), bits(there))


def test_the_best_l2_of_held_out_cells(cluster):
    X = hs.Observed.from_cells(*skewed_cells(900, 60, 9000, 0), np.ones(9000), (900, 60), unseen="zero")
    here, there = (fitted(hs.SquaredPoisson(3), X, engine, max_iter=2) for engine in ("cpu", "dask"))
    assert_same(bits(here), bits(there))


def test_any_number_of_workers_and_a_matrix_of_one_shard(cluster):
    here = bits(fitted(hs.OrdNMF(3), ZERO, "cpu", max_iter=3))
    for n_workers in (1, 4, 8):
        with local_cluster(n_workers) as cluster, distributed.Client(cluster):
            assert_same(bits(fitted(hs.OrdNMF(3), ZERO, "dask", max_iter=3)), here)


@pytest.mark.parametrize(
    ("estimator", "X"),
    [(hs.OrdNMF(3), ZERO), (hs.WeightedNMF(3, accelerate=True), MISSING), (hs.ImplicitMF(3, l2=0.1), ZERO),
     (hs.OrdinalMF(2), MISSING)],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
@pytest.mark.parametrize("engines", [("dask", "cpu"), ("cpu", "dask")], ids="-".join)
def test_a_checkpoint_goes_from_one_engine_to_another(cluster, tmp_path, estimator, X, engines):
    """Four iterations on the first engine, and six more on the second, from the folder."""
    whole = bits(fitted(estimator, X, "cpu", max_iter=10, tol=0.0))
    for engine, max_iter in zip(engines, (4, 10), strict=True):
        model = fitted(estimator, X, engine, max_iter=max_iter, tol=0.0, checkpoint=tmp_path / "run")
    assert_same(bits(model), whole)
    assert not [one for one in (tmp_path / "run").iterdir() if one.is_dir()]


def test_a_matrix_of_one_shard_and_one_without_a_cell_in_some_rows(cluster, monkeypatch):
    rows = np.repeat([0, 7, 290], 30)
    few = hs.Observed.from_cells(rows, np.tile(np.arange(30), 3), np.arange(90.0) % 5 + 1, (300, 40), unseen="zero")
    for size in (1 << 20, 30, 7):
        monkeypatch.setattr(threads, "CELLS_PER_SHARD", size)
        here, there = (fitted(hs.OrdNMF(2), few, engine, max_iter=3) for engine in ("cpu", "dask"))
        assert_same(bits(here), bits(there))


@pytest.mark.parametrize(
    ("estimator", "X"), [FITS[0], FITS[6], FITS[10], FITS[12], FITS[13]], ids=lambda param: type(param).__name__
)
def test_new_rows_have_the_bits_of_the_cpu(cluster, estimator, X):
    model = fitted(estimator, X, "cpu", max_iter=4)
    new, answers = cells(X.unseen, seed=1, n=200), []
    for engine in ("cpu", "dask"):
        model.set_params(engine=engine)
        answers.append({"W": model.transform(new), "score": model.score(new), "values": model.predict(new)})
    assert_same(*answers)


# ---------------------------------------------------------------------------------------------------------------------
# arrays in files


def test_arrays_are_stored_and_restored_by_any_engine(cluster, tmp_path, monkeypatch):
    random, X = np.random.default_rng(0), MISSING
    along = {"W": Side.ROWS, "H": Side.COLUMNS, "x": "cells", "mask": Side.ROWS, "v": None}
    arrays = {"W": random.normal(size=(ROWS, 3)), "H": random.normal(size=(COLUMNS, 3)).astype(np.float32)}
    arrays |= {"x": random.normal(size=X.nnz), "mask": random.uniform(size=(ROWS, 1)) < 0.5, "v": np.arange(3.0)}

    def stored_again(engine, pieces, number):
        (folder := tmp_path / str(number)).mkdir()
        return engine.store({name: engine.restore(pieces[name], along[name]) for name in along}, folder)

    with open_engine("cpu") as here, open_engine("dask") as there:
        here.place(X, *Side)
        there.place(X, *Side)
        pieces = [here.store(arrays, tmp_path)]
        pieces.append(stored_again(there, pieces[0], 1))
        pieces.append(stored_again(here, pieces[1], 2))
    monkeypatch.setattr(dask_engine, "IMBALANCE", 2.0)
    with open_engine("dask") as coarser:
        coarser.place(X, *Side)
        pieces.append(stored_again(coarser, pieces[1], 3))
    assert len(pieces[2]["W"]) == 1 < len(pieces[3]["W"]) < len(pieces[1]["W"]) == len(pieces[1]["x"])
    for found in pieces:
        for name, array in arrays.items():
            for piece in found[name]:
                piece.check()
            whole = np.concatenate([piece.read() for piece in found[name]])
            assert whole.dtype == array.dtype
            assert_array_equal(whole, array)


def test_files_go_when_nobody_needs_them(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "SECONDS_PER_CUT", 0.0)
    monkeypatch.setattr(dask_engine, "SHARE_OF_CUTS", np.inf)
    counts = []

    class Counting(dask_engine.DaskEngine):
        def cut(self):
            super().cut()
            counts.append(len(list(self._scratch.iterdir())))

    monkeypatch.setattr(dask_engine, "DaskEngine", Counting)
    with open_engine("dask", folder=tmp_path):
        assert [folder.name[:9] for folder in tmp_path.iterdir()] == ["halfseen-"]
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        fitted(hs.OrdNMF(3), ZERO, "dask", max_iter=15, tol=0.0)
    assert len(counts) > 15
    assert max(counts[20:]) <= max(counts[:20])
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------------------------------
# what is refused


@pytest.mark.parametrize(
    "estimator",
    [
        hs.OrdinalMF(2, solver="sgd"),
        hs.OrdinalMF(2, inference="gibbs"),
        hs.RoundMF(2, solver="gd"),
        hs.RankOneNMF(),
        hs.ItemGraph(),
    ],
    ids=repr,
)
def test_what_runs_on_one_machine_only_says_so(cluster, estimator):
    with pytest.raises((EngineError, ParameterError), match="cpu"):
        fitted(estimator, MISSING if estimator.unseen == "missing" else ZERO, "dask")


def test_a_folder_that_workers_do_not_see_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(os.path, "exists", str.isdigit)  # which no path is
    with pytest.raises(EngineError, match="All workers must see the folder"):
        fitted(hs.OrdNMF(2), ZERO, "dask")


# ---------------------------------------------------------------------------------------------------------------------
# losses


def test_killed_workers_change_no_bits(cluster, monkeypatch):
    monkeypatch.setattr(dask_engine, "SECONDS_BETWEEN_LOOKS", 0.0)  # so that every loss is counted
    here, engines = bits(fitted(hs.OrdNMF(3), ZERO, "cpu", max_iter=20, tol=0.0)), []

    class Killing(dask_engine.DaskEngine):
        def _gather(self, *args, **kwargs):
            engines.append(self)
            if len(engines) == at:
                for pid in list(cluster.run(os.getpid).values())[: 2 if at == 10 else 1]:  # once both of them
                    os.kill(pid, signal.SIGKILL)
            return super()._gather(*args, **kwargs)

    monkeypatch.setattr(dask_engine, "DaskEngine", Killing)
    for at in (1, 10, 20):
        cluster.wait_for_workers(2)
        engines.clear()
        assert_same(bits(fitted(hs.OrdNMF(3), ZERO, "dask", max_iter=20, tol=0.0)), here)
        assert len(engines) > at
        assert engines[0]._workers.n_lost >= 1


SIGNALLED = """
import os, signal, sys
import distributed, numpy as np, halfseen as hs
from halfseen.engines import cluster, dask

n_gathers = 0

class Signalled(dask.DaskEngine):
    def _gather(self, *args, **kwargs):
        global n_gathers
        n_gathers += 1
        if n_gathers == 30:
            os.killpg(0, signal.SIGTERM)
        return super()._gather(*args, **kwargs)

if __name__ == "__main__":
    dask.DaskEngine = Signalled
    X, checkpoint = np.random.default_rng(0).poisson(1.0, (60, 40)), hs.Checkpoint(sys.argv[1], seconds=1e6)
    with cluster.local_cluster(1) as workers, distributed.Client(workers) as client:
        print(*client.run(os.getpid).values(), flush=True)
        hs.WeightedNMF(3, unseen="zero", engine="dask", max_iter=10**6, tol=0, checkpoint=checkpoint).fit(X)
"""


@pytest.mark.skipif(os.name != "posix", reason="groups of processes are POSIX's")
def test_a_signal_to_all_processes_saves_the_fit_and_ends_them(tmp_path):
    """As Ctrl-C in a terminal, `timeout` and batch systems send it."""
    (tmp_path / "fit.py").write_text(SIGNALLED)
    run = subprocess.run(
        [sys.executable, str(tmp_path / "fit.py"), str(tmp_path / "run")],
        start_new_session=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 128 + signal.SIGTERM
    assert not run.stderr
    assert json.loads((tmp_path / "run" / "checkpoint.json").read_bytes().splitlines()[0])["stages"]["fit"]["iteration"]
    assert not [one for one in (tmp_path / "run").iterdir() if one.is_dir()]
    wait_until(lambda: not is_running(int(run.stdout)))


def wait_until(is_so, seconds=30.0):
    ends = monotonic() + seconds
    while not is_so():
        assert monotonic() < ends
        sleep(0.05)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def end_worker(_):
    os._exit(1)


def fit_here(X):
    return hs.OrdNMF(2, engine="dask", max_iter=2, tol=0.0, random_state=0).fit(X).W_


def test_a_fit_in_a_task_of_a_cluster_of_one_thread_and_tasks_that_fail(monkeypatch):
    monkeypatch.setattr(threads, "CELLS_PER_SHARD", CELLS_PER_SHARD)  # as in other processes
    with local_cluster(1) as cluster, distributed.Client(cluster) as client:
        there = client.submit(fit_here, ZERO).result(timeout=60)
        assert_array_equal(there, fitted(hs.OrdNMF(2), ZERO, "cpu", max_iter=2, tol=0.0).W_)
        with cluster_module.Workers() as workers:
            with pytest.raises(EngineError, match=r"with room enough\. Found No space left on device in '/folder'"):
                workers.gather(client.map(is_full, [1, 2]), folder=Path("/folder"))
            with pytest.raises(OSError, match="No space left"):
                workers.run(is_full, [1])
            workers.max_losses = 1
            client.run_on_scheduler(allow_no_failures)
            with pytest.raises(EngineError, match="Workers must stay, and have room for their tasks"):
                workers.run(end_worker, [1])


def allow_no_failures(dask_scheduler):
    dask_scheduler.allowed_failures = 0


def test_nothing_of_a_fit_stays_with_the_client(cluster):
    seen = []
    cluster.subscribe_topic("all", seen.append)
    handlers, X = dict(cluster._event_handlers), cells()
    fitted(hs.OrdNMF(2), X, "dask", max_iter=2)
    assert cluster._event_handlers == handlers
    cluster.unsubscribe_topic("all")
    last = weakref.ref(X)
    del X
    gc.collect()
    assert last() is None


def test_an_asynchronous_client_is_refused():
    async def fit():
        alone = distributed.LocalCluster(n_workers=0, processes=False, asynchronous=True, dashboard_address=None)
        async with alone as cluster, distributed.Client(cluster, asynchronous=True):
            fitted(hs.OrdNMF(2), ZERO, "dask")

    with pytest.raises(EngineError, match="needs a synchronous client"):
        asyncio.run(fit())


def test_arrays_that_are_not_computed_have_no_truth(cluster):
    with open_engine("dask") as engine:
        y = engine.place(ZERO, Side.ROWS).y
        for question in (bool, lambda one: one == 3.0, lambda one: one != 3.0):
            with pytest.raises(NotImplementedError):
                question(y)
        xp = y.__array_namespace__()
        for refused in (np.cumsum, np.sort, np.diff):  # which mix entries
            with pytest.raises(NotImplementedError, match="sums over them are those of `map`"):
                getattr(xp, refused.__name__)(y)


def test_a_cluster_without_workers_is_given_up(monkeypatch):
    monkeypatch.setattr(cluster_module, "SECONDS_WITHOUT_WORKERS", 1.0)
    with local_cluster(1) as cluster, distributed.Client(cluster) as client:
        with open_engine("dask") as engine:
            engine.place(ZERO, Side.ROWS)
            cluster.scale(0)
            client.sync(cluster._correct_state)
            W = engine.asarray(np.ones((ROWS, 2)), Side.ROWS)
            with pytest.raises(EngineError, match="must have workers"):
                engine.to_numpy(W)
        with pytest.raises(EngineError, match="must have workers"):
            fitted(hs.OrdNMF(2), ZERO, "dask")


def test_a_lost_scheduler_is_said():
    with local_cluster(1) as cluster, distributed.Client(cluster), open_engine("dask") as engine:
        engine.place(ZERO, Side.ROWS)
        W = engine.asarray(np.ones((ROWS, 2)), Side.ROWS)
        cluster.close()
        with pytest.raises(EngineError, match="scheduler of a cluster must stay"):
            engine.to_numpy(W)

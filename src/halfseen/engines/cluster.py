"""Clusters of Dask: one of this machine, tasks on the workers of any, and what is done when workers are lost.

Fits, the reading of long files (`on_dask`) and the command line run their tasks by `Workers`.
"""

import asyncio
import errno
import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent import futures as concurrent_futures
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from halfseen.array_files import FilePath
from halfseen.errors import EngineError
from halfseen.io.partitioned import CELLS_PER_BUCKET, ROWS_PER_PART, run_here

#: How many workers may be lost with a task on a cluster of our own before the task is said to be the reason; and how
#: many before the work is given up: of a fit, which goes on for long, and of other work.
MAX_LOSSES, MAX_LOSSES_OF_FIT, MAX_LOSSES_OF_WORK = 10, 100, 12
#: Seconds between looks at what is done; between looks at which workers there are, while somebody waits; and without
#: any worker, until the work is given up.
SECONDS_PER_LOOK, SECONDS_PER_COUNT, SECONDS_WITHOUT_WORKERS = 0.25, 1.0, 60.0
#: The same once the process was told to end and saves what it has; and without a task that is done.
SECONDS_TO_END, SECONDS_PER_TASK_TO_END = 10.0, 30.0
#: Seconds after which a worker of our own obeys SIGTERM: the fit may be saved first.
SECONDS_AFTER_SIGTERM = 30.0
#: Bytes that a worker needs for itself, and for a row of a part of long files, or a cell of a bucket, with long ids.
BYTES_OF_WORKER, BYTES_PER_ROW = 250_000_000, 400
#: The least memory of a worker.
LEAST_MEMORY = BYTES_OF_WORKER + BYTES_PER_ROW * max(ROWS_PER_PART, CELLS_PER_BUCKET)
#: What systems say about a folder that is full, or not writable, or not there.
ERRORS_OF_FOLDERS = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR,
    errno.EIO,
)  # fmt: skip

logger = logging.getLogger(__name__)
_of_thread = threading.local()


def local_cluster(n_workers: int, memory_limit: Any = "auto") -> Any:
    """Start a Dask cluster of processes of this machine, with one thread each.

    Workers neither spill nor pause near their limit: what does not fit is read from files again.

    Parameters
    ----------
    n_workers : int
        Number of processes.
    memory_limit : str, int or "auto", default="auto"
        Memory that each of them may take, such as "2GB"; "auto" is its share of the machine's.

    Returns
    -------
    distributed.LocalCluster
        To be entered with `with`, as is the `distributed.Client` of it.
    """
    import dask
    import distributed

    settings: dict[str, Any] = {f"distributed.worker.memory.{name}": False for name in ("target", "spill")}
    # A worker near its limit would be paused, and wait for room that nothing makes; beyond it, it is started again.
    settings["distributed.worker.memory.pause"] = False
    # By default every array is a mapping of its own, whose pages the system clears again and again.
    settings["distributed.nanny.pre-spawn-environ"] = {
        **dask.config.get("distributed.nanny.pre-spawn-environ"),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 27), "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    }  # fmt: skip
    settings["distributed.worker.profile.enabled"] = False  # which looks at all threads a hundred times a second
    settings["distributed.scheduler.allowed-failures"] = MAX_LOSSES  # tasks are hardly to blame for lost workers
    with dask.config.set(settings):
        return distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            dashboard_address="127.0.0.1:0",  # any port that is free
            silence_logs=logging.CRITICAL,
            preload=[__name__],
        )


def dask_setup(_: Any) -> None:
    """Called by Dask in each worker of `local_cluster`, which preloads this module: signals are the client's matter.

    Ctrl-C, `timeout` and batch systems signal all processes at once, but a fit that ends needs its workers to save what
    it has. They end when the client closes them, or is lost.
    """

    def end_later(*_: object) -> None:
        timer = threading.Timer(SECONDS_AFTER_SIGTERM, os._exit, [128 + signal.SIGTERM])
        timer.daemon = True
        timer.start()

    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end_later)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Workers:
    """The workers of the current Dask client; without one, of a cluster of processes of this machine, which is closed.

    Parameters
    ----------
    how_to_go_on : str, default="Then repeat the call."
        What users do when the cluster works again: the end of errors.
    n_workers : int, default=1
        Number of processes of a cluster of its own.
    max_losses : int, default=MAX_LOSSES_OF_WORK
        How many workers may be lost with a task.
    """

    def __init__(
        self, how_to_go_on: str = "Then repeat the call.", n_workers: int = 1, max_losses: int = MAX_LOSSES_OF_WORK
    ) -> None:
        self.how_to_go_on, self.n_workers, self.max_losses = how_to_go_on, n_workers, max_losses
        self.on_progress: Callable[[int, int], None] | None = None
        """Called with how much is done, and of how much."""
        self.on_loss: Callable[[str], None] | None = None
        """Called with a sentence when a worker is gone; without it, the sentence is logged."""
        self.n_lost = 0
        self._asked, self._threads = -float("inf"), dict[str, int]()
        self._is_ending = False

    def __enter__(self) -> Self:
        import distributed

        with ExitStack() as stack:
            try:
                self.client = distributed.get_client()
                self.is_local = False
            except ValueError:
                cluster = stack.enter_context(local_cluster(self.n_workers))
                self.client = stack.enter_context(distributed.Client(cluster))
                self.is_local = True
            if self.client.asynchronous:
                raise EngineError(
                    '`engine="dask"` needs a synchronous client.',
                    found="an asynchronous one",
                    remedy="Make it outside of async functions: distributed.Client(address).",
                    parameter="engine",
                )
            try:
                distributed.get_worker()
            except ValueError:
                pass
            else:  # this is a task: its thread must not be missing
                if not getattr(_of_thread, "has_seceded", False):
                    distributed.secede()
                    _of_thread.has_seceded = True
                    stack.callback(self._rejoin)
            try:
                self.client.wait_for_workers(1, timeout=SECONDS_WITHOUT_WORKERS)
            except TimeoutError:
                raise self._without_workers(SECONDS_WITHOUT_WORKERS) from None
            except Exception:
                self.check_scheduler()
                raise
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @staticmethod
    def _rejoin() -> None:
        import distributed

        _of_thread.has_seceded = False
        distributed.rejoin()

    def check_folder(self, folder: Path) -> None:
        """Refuse a folder that some workers do not see."""
        probe = folder / "probe"
        probe.touch()
        sees = self.client.run(os.path.exists, str(probe), on_error="return")
        blind = [worker for worker, answer in sees.items() if answer is False]
        if blind:
            raise EngineError(
                "All workers must see the folder in which a fit keeps its files.",
                found=f"{len(blind)} of {len(sees)} that do not see {str(folder)!r}",
                remedy="Set Dask's `temporary-directory`, or `checkpoint=`, to a folder on a volume that all share.",
                parameter="engine",
            )

    def call(self, function: Callable[[], Any]) -> None:
        """Call a function on each worker, and wait for a while."""
        if self.client.status == "running":
            concurrent_futures.wait([self._start(self._call(function))], SECONDS_TO_END)

    async def _call(self, function: Callable[[], Any]) -> None:
        await self.client.run(function, on_error="ignore")

    def _start(self, coroutine: Any) -> Any:
        loop: Any = self.client.loop
        return asyncio.run_coroutine_threadsafe(coroutine, loop.asyncio_loop)

    def threads(self, seconds: float = 0.0) -> dict[str, int]:
        """The number of threads of each worker, as it was so many seconds ago at most."""
        now = perf_counter()
        if now - self._asked >= seconds:
            try:
                found = dict(self.client.nthreads())
            except Exception:
                self.check_scheduler()
                raise
            for address in sorted(self._threads.keys() - found.keys()):
                self.n_lost += 1
                (self.on_loss or logger.warning)(f"A worker was lost: {address}. Its tasks run again on others.")
            self._asked, self._threads = now, found
        return self._threads

    def run(self, function: Callable[..., Any], *lists: Sequence[Any], sizes: Sequence[int] = ()) -> list[Any]:
        """Call a function with the items of some lists, one of each at a time; return the results in their order."""
        try:
            futures = self.client.map(function, *map(list, lists), pure=False)
        except Exception:
            self.check_scheduler()
            raise
        return self.gather(futures, sizes=sizes)

    def gather(
        self, wanted: Sequence[Any], watched: Sequence[Any] = (), sizes: Sequence[int] = (), folder: Path | None = None
    ) -> list[Any]:
        """Results of tasks; those of lost workers are computed again.

        The sizes of `watched` tasks that are done show progress. `folder` is where the tasks write; without it, errors
        of files are the caller's.
        """
        from distributed import KilledWorker

        n_losses = 0
        while True:
            getting = self._start(self._results(list(wanted)))
            try:
                return self._wait_for(getting, watched or wanted, sizes)
            except KilledWorker as error:  # it was on too many workers that were lost, which need not be its fault
                n_losses += error.allowed_failures + 1
                if n_losses >= self.max_losses or self._is_ending:
                    raise EngineError(
                        "Workers must stay, and have room for their tasks.",
                        found=f"that workers were lost whenever they had the task {str(error.task)!r}",
                        remedy="Give each more memory, or start more of them, with fewer threads each. "
                        + self.how_to_go_on,
                        parameter="engine",
                    ) from None
                self.client.retry(list(wanted))
            except KeyboardInterrupt:  # what follows is a save
                self._is_ending = True
                raise
            except OSError as error:
                if error.errno not in ERRORS_OF_FOLDERS:
                    self.check_scheduler()
                elif folder is not None and error.errno == errno.ENOENT:
                    raise EngineError(
                        "All workers must see the folder in which a fit keeps its files.",
                        found=f"a worker that does not see {error.filename!r}",
                        remedy=f"Start workers that share {str(folder.parent)!r}. {self.how_to_go_on}",
                        parameter="engine",
                    ) from None
                elif folder is not None:
                    raise error_of_folder(error, folder) from None
                raise
            except Exception:
                self.check_scheduler()
                raise
            finally:
                getting.cancel()

    async def _results(self, wanted: list[Any]) -> list[Any]:
        import distributed

        await distributed.wait(wanted)  # gathering alone would leave errors behind that nobody looks at, if cancelled
        results: list[Any] = await self.client.gather(wanted, direct=self.is_local or None)
        return results

    def _wait_for(self, getting: Any, watched: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """What is being gathered; meanwhile progress is shown, and somebody must be working."""
        last_seen = last_done = looked = perf_counter()
        patience, n_done = SECONDS_TO_END if self._is_ending else SECONDS_WITHOUT_WORKERS, 0
        while True:
            done, _ = concurrent_futures.wait([getting], SECONDS_PER_LOOK)
            if done:
                results: list[Any] = getting.result()
                return results
            is_done, now = [future.done() for future in watched], perf_counter()
            if sum(is_done) != n_done:
                n_done, last_done = sum(is_done), now
            if self.on_progress is not None and len(sizes) == len(watched):
                self.on_progress(sum(size for size, one in zip(sizes, is_done, strict=True) if one), sum(sizes))
            if now - looked > min(SECONDS_PER_COUNT, patience / 4):
                looked = now
                last_seen = now if self.threads() else last_seen
                if now - last_seen > patience:
                    raise self._without_workers(patience)
            if self._is_ending and now - last_done > SECONDS_PER_TASK_TO_END:
                raise EngineError(
                    "Workers must finish their tasks when the process is told to end.",
                    found=f"none that was done within {SECONDS_PER_TASK_TO_END:.0f} seconds",
                    remedy=f"Look for what holds them. {self.how_to_go_on}",
                    parameter="engine",
                )

    # -----------------------------------------------------------------------------------------------------------------
    # errors

    def _without_workers(self, seconds: float) -> EngineError:
        return EngineError(
            "A cluster must have workers.",
            found=f"none for {seconds:.0f} second{'' if round(seconds) == 1 else 's'}",
            remedy=f"Start workers. {self.how_to_go_on}",
            parameter="engine",
        )

    def check_scheduler(self) -> None:
        """Say so if the scheduler was lost."""
        if self.client.status != "running":
            raise EngineError(
                "The scheduler of a cluster must stay until the work is done.",
                found="that the connection was lost",
                remedy=f"Start it again. {self.how_to_go_on}",
                parameter="engine",
            )


def error_of_folder(error: OSError, folder: Path) -> EngineError:
    """The error for a folder in which a file could not be written."""
    return EngineError(
        "The folder in which a fit keeps its files must be writable, with room enough.",
        found=error.strerror or str(error),
        where=f"in {str(folder)!r}",
        remedy="Set Dask's `temporary-directory`, or `checkpoint=`, to another folder.",
        parameter="engine",
    )


def on_dask(folder: FilePath | None = None) -> dict[str, Any]:
    """`folder` and `run` of `observe_files` where Dask is used: on the workers of the current client, if there is one.

    What a lost worker had done is repeated.
    """
    import dask
    from distributed import get_client

    folder = dask.config.get("temporary-directory", None) if folder is None else folder
    try:
        get_client()
    except ValueError:
        return {"folder": folder, "run": run_here}

    def run(function: Callable[..., Any], *lists: Sequence[Any]) -> list[Any]:
        with Workers() as workers:
            return workers.run(function, *lists)

    return {"folder": folder, "run": run}

"""Clusters of Dask: one of this machine, and what is done when workers or the scheduler are lost."""

import logging
from typing import Any

#: How many workers may be lost with a task on a cluster of our own.
MAX_LOSSES = 10


def local_cluster(n_workers: int, memory_limit: Any = "auto") -> Any:
    """A cluster of processes of this machine, one thread each; nothing is spilled to disk: cells are read again."""
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
        )

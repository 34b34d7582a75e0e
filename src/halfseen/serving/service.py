"""The service: the model that answers now, its exchange for a new one, and requests that wait for a thread."""

import datetime
import json
import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.errors import DataError, HalfseenError, ParameterError
from halfseen.serving.answers import ROWS_AT_A_TIME, ServedModel
from halfseen.serving.requests import ROUTES, Limits, RequestError, check_fields, openapi, read_json, too_slow

log = logging.getLogger("halfseen.serving")


@dataclass(frozen=True, eq=False)
class Job:
    """A request that waits for a thread: fields that are checked, or a body that is still to be read."""

    path: str
    deadline: float
    checked: Mapping[str, Any] | None
    body: bytes = b""
    done: Future[bytes] = field(default_factory=Future)

    @cached_property
    def kind(self) -> Any:
        """What jobs have in common that can be answered together; None of one that can't be."""
        checked = self.checked
        if self.path != "/recommend" or checked is None or checked.keys() != {"users", "n", "exclude_seen"}:
            return None
        return checked["n"], checked["exclude_seen"]


class Service:
    """A model file that is served, and loaded again when it changes.

    Parameters
    ----------
    path : str or path-like
        The model file.
    names : str or path-like, default=None
        A table of titles.
    engine : {"cpu", "cuda"}, default=None
        Where to compute. None: where the model was fitted.
    limits : Limits, default=Limits()
        What a request may ask for.
    hosts : tuple of str, default=None
        Names under which the server may be addressed, without ports. None: any.
    """

    def __init__(
        self,
        path: Any,
        names: Any = None,
        engine: str | None = None,
        limits: Limits | None = None,
        hosts: Sequence[str] | None = None,
    ) -> None:
        self.path, self.names, self.engine, self.hosts = path, names, engine, hosts
        self.limits = limits or Limits()
        self.counts: Counter[str] = Counter()
        self.started = time.monotonic()
        self.reloads = 0
        self.last_reload_error: dict[str, Any] | None = None
        self.pending = 0
        self._queue: deque[Job] = deque()
        self._lock = threading.Lock()
        self._signature = self._look()
        self.model = ServedModel.load(path, names, engine)

    def _look(self) -> tuple[Any, ...]:
        """What tells one version of the files from another: time, size and number on disk; None where there is none."""
        looks: list[Any] = []
        for path in filter(None, (self.path, self.names)):
            try:
                found = os.stat(path)
                looks.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except OSError:
                looks.append(None)
        return tuple(looks)

    def reload_if_changed(self, force: bool = False) -> bool:
        """Load the model file beside the present model and exchange the two, if the file is another one.

        A file that can't be served leaves the present model in its place; the error is logged and kept.

        Parameters
        ----------
        force : bool, default=False
            Load it even if it looks the same.

        Returns
        -------
        bool
            Whether a model was exchanged.
        """
        now = self._look()
        if now == self._signature and not force:
            return False
        self._signature = now
        try:
            model = ServedModel.load(self.path, self.names, self.engine)
        except (Exception, MemoryError) as error:  # whatever a file brings about
            message = str(error) if isinstance(error, HalfseenError) else f"{type(error).__name__}: {error}"
            when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            self.last_reload_error = {"at": when, "message": message}
            is_ours = isinstance(error, HalfseenError)  # of others, the log says where they were raised
            log.error("The new model file is not served, the old one is. %s", message, exc_info=not is_ours)
            return False
        self.model = model
        self.reloads += 1
        self.last_reload_error = None
        log.info("Loaded the new model %s (%s).", model.path.name, model.fingerprint)
        return True

    def answer(self, path: str, asked: Mapping[str, Any], deadline: float = math.inf) -> dict[str, Any]:
        """What a request is answered; a `RequestError` if it can't be.

        Parameters
        ----------
        path : str
            The route.
        asked : dict
            Fields as they came.
        deadline : float, default=inf
            When to give up, as `time.monotonic` counts.

        Returns
        -------
        dict
            To be sent as JSON.
        """
        if path in ("/recommend", "/similar"):
            return self.compute(path, [check_fields(path, asked, self.limits)], deadline)[0]
        model = self.model
        if asked:
            must, found = "This route must be asked without parameters.", repr(next(iter(asked))[:40])
            raise RequestError(must, found=found, remedy="Leave them out.")
        if path == "/health":
            return {
                "status": "ok",
                "model": model.fingerprint,
                "model_loaded_at": model.loaded_at,
                "reloads": self.reloads,
                "last_reload_error": self.last_reload_error,
                "requests": dict(self.counts),
                "pending": self.pending,
                "seconds_up": round(time.monotonic() - self.started, 1),
                "process": os.getpid(),
            }
        if path == "/model":
            return model.facts() | {"limits": vars(self.limits)}
        if path == "/openapi.json":
            return openapi(self.limits)
        return {"routes": {path: {"methods": methods, "does": does} for path, (methods, does) in ROUTES.items()}}

    def compute(self, path: str, many: Sequence[Mapping[str, Any]], deadline: float = math.inf) -> list[dict[str, Any]]:
        """Answers to checked requests; of several if they differ in their users alone.

        Parameters
        ----------
        path : {"/recommend", "/similar"}
            The route.
        many : list of dict
            What `check_fields` returned.
        deadline : float, default=inf
            When to give up, as `time.monotonic` counts.

        Returns
        -------
        list of dict
            To be sent as JSON.
        """
        model = self.model  # which answers to the end, even if another one comes meanwhile
        try:
            with np.errstate(all="ignore"):
                if len(many) > 1:
                    return model.recommend_together(many, deadline)
                return [(model.recommend if path == "/recommend" else model.similar)(many[0], deadline)]
        except (DataError, ParameterError) as error:  # such as a value that the model does not take
            fields = {name: getattr(error, name) for name in ("found", "where", "remedy", "parameter")}
            raise RequestError(error.must, status=422, **fields) from error
        except MemoryError:
            must, remedy = "The computation must fit into memory.", "Ask for fewer users at a time."
            raise RequestError(must, status=503, found="too little", remedy=remedy) from None

    def put(self, job: Job) -> None:
        """Let a job wait for `work`."""
        self._queue.append(job)

    def work(self) -> None:
        """Answer the job that waits longest, and those right behind it that can be answered together with it."""
        with self._lock:
            jobs: list[Job] = []
            users = 0
            while self._queue and (not jobs or (jobs[0].kind is not None and self._queue[0].kind == jobs[0].kind)):
                users += len((self._queue[0].checked or {}).get("users", ()))
                if jobs and users > ROWS_AT_A_TIME:
                    break
                jobs.append(self._queue.popleft())
        jobs = [job for job in jobs if job.done.set_running_or_notify_cancel()]
        if not jobs:
            return
        try:
            deadline = max(job.deadline for job in jobs)  # who waits no longer must not spoil it for the others
            if time.monotonic() > deadline:
                raise too_slow()
            checked = [job.checked or check_fields(job.path, read_json(job.body), self.limits) for job in jobs]
            for job, payload in zip(jobs, self.compute(jobs[0].path, checked, deadline), strict=True):
                job.done.set_result(as_bytes(payload))
        except BaseException as error:  # which is the request's own
            for job in jobs:
                if not job.done.done():
                    job.done.set_exception(error)


def as_bytes(payload: Any) -> bytes:
    """A payload as JSON."""
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")

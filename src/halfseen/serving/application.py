"""The application: HTTP around a service, by Starlette."""

import asyncio
import re
import signal
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

from halfseen.engines.threads import hold_blas, release_blas
from halfseen.errors import CODE, HalfseenError
from halfseen.serving.requests import ROUTES, RequestError, check_fields, read_json, read_query, too_slow
from halfseen.serving.service import Job, Service, as_bytes
from halfseen.validation import did_you_mean

#: Bytes of a body that is read at once, rather than by a thread.
SMALL_BODY = 1 << 13
#: Products of numbers, a tenth of a millisecond of them, for which no other thread is asked.
SMALL_WORK = 1 << 20
#: A body this many times as long as allowed is read to its end, so that its sender gets the answer.
PATIENCE = 8
#: Seconds between two looks at the model file.
POLL = 1.0
#: Names under which a browser reaches this machine itself.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def error_payload(error: HalfseenError) -> dict[str, Any]:
    """An error as an answer: the fields that are not empty, and the whole message.

    Parameters
    ----------
    error : HalfseenError
        Why a request is refused.

    Returns
    -------
    dict
    """
    names = ("parameter", "must", "found", "where", "remedy")
    fields = {name: CODE.sub(r"\1", str(getattr(error, name))) for name in names if getattr(error, name)}
    return {"error": fields | {"message": str(error)}}


def application(service: Service) -> Any:
    """The application that a server such as uvicorn runs.

    Parameters
    ----------
    service : Service
        What answers.

    Returns
    -------
    starlette.applications.Starlette
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

    limits = service.limits
    pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="halfseen-serving")

    def respond(payload: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        service.counts[f"{status // 100}xx"] += 1
        content = payload if isinstance(payload, bytes) else as_bytes(payload)
        return Response(content, status, {"cache-control": "no-store", **(headers or {})}, "application/json")

    def refuse(error: RequestError) -> Response:
        headers = {503: {"retry-after": "1"}, 413: {"connection": "close"}, 408: {"connection": "close"}}
        return respond(error_payload(error), error.status, headers.get(error.status))

    async def read_body(request: Request) -> bytes:
        """The body, before anything is answered: what comes after an answer that was too early breaks the connection.

        One that is too long is read on for a while, so that its sender gets the answer.
        """
        if not {"content-length", "transfer-encoding"}.intersection(request.headers.keys()):
            return b""
        declared = request.headers.get("content-length", "0")
        length = int(declared) if declared.isdecimal() else 0
        parts, size = [], 0

        async def read() -> None:
            nonlocal size
            async for chunk in request.stream():
                size += len(chunk)
                if size <= limits.bytes:
                    parts.append(chunk)
                elif size > PATIENCE * limits.bytes:
                    break

        if length <= PATIENCE * limits.bytes:
            try:
                await asyncio.wait_for(read(), limits.seconds)
            except TimeoutError:
                must, remedy = "A body must arrive in the time allowed.", "Send it again."
                raise RequestError(must, status=408, found="a part of it", remedy=remedy) from None
        if max(size, length) > limits.bytes:
            must = f"A body must have at most {limits.bytes:,} bytes."
            found = f"{max(size, length):,}"
            raise RequestError(must, status=413, found=found, remedy="Split the request.")
        return b"".join(parts)

    async def compute(job: Job) -> bytes:
        """The result of a job, from a thread; refused if too many wait, or if it takes too long."""
        if service.pending >= limits.threads + limits.waiting:
            must, found = "There must be room for a request.", f"{service.pending} at work or waiting"
            raise RequestError(must, status=503, found=found, remedy="Try again later.")
        service.pending += 1
        loop = asyncio.get_running_loop()

        def done(_: Any) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(lambda: setattr(service, "pending", service.pending - 1))

        job.done.add_done_callback(done)
        service.put(job)
        pool.submit(service.work)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.done), max(0.0, job.deadline - time.monotonic()))
        except TimeoutError:
            raise too_slow() from None

    async def endpoint(request: Request) -> Response:
        path = request.scope["path"]
        methods = ROUTES[path][0]
        deadline = time.monotonic() + limits.seconds
        try:
            body = await read_body(request)
            host = re.sub(r":\d*$", "", request.headers.get("host", ""))
            if service.hosts is not None and host and host.lower() not in service.hosts:
                must = f"The server must be addressed as {' or '.join(service.hosts)}."
                remedy = "Use one of these, or allow the name: halfseen serve --server-name NAME."
                raise RequestError(must, status=421, found=ascii(host[:60]), remedy=remedy)
            if request.method == "OPTIONS":
                return Response(None, 204, {"allow": ", ".join((*methods, "HEAD", "OPTIONS"))})
            query = request.scope["query_string"]
            is_post = request.method == "POST"
            if is_post:
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    must = "The content type of a body must be application/json."
                    found, remedy = ascii(kind[:60] or "none"), 'Send the header "content-type: application/json".'
                    raise RequestError(must, status=415, found=found, remedy=remedy)
                if query:
                    must, remedy = "A request with a body must have no query.", "Put all fields into the body."
                    raise RequestError(must, found=ascii(query[:40].decode("latin-1")), remedy=remedy)
            if is_post and len(body) > SMALL_BODY:
                return respond(await compute(Job(path, deadline, None, body)))
            names = ("users", "items", "filter_items", "exclude")
            asked = read_json(body) if is_post else read_query(query, names)
            if path not in ("/recommend", "/similar"):  # answered even while all threads are at work
                return respond(service.answer(path, asked))
            checked = check_fields(path, asked, limits)
            job = Job(path, deadline, checked)
            if job.kind is not None and service.model.terms * len(checked["users"]) <= SMALL_WORK:
                return respond(service.compute(path, [checked])[0])
            return respond(await compute(job))
        except RequestError as error:
            return refuse(error)
        except ClientDisconnect:
            return Response(None, 400)

    async def no_such(request: Request, error: Exception) -> Response:
        """Answer of unknown routes and methods."""
        path, status = request.scope["path"], getattr(error, "status_code", 400)
        try:
            await read_body(request)
        except RequestError as refused:
            return refuse(refused)
        except ClientDisconnect:
            return Response(None, 400)
        if status == 405:
            allowed = ", ".join((*ROUTES[path][0], "HEAD", "OPTIONS"))
            must, found = f"The method of {path} must be one of {allowed}.", ascii(request.method[:20])
            answer = refuse(RequestError(must, status=405, found=found, remedy="Use one of these."))
            answer.headers["allow"] = allowed
            return answer
        near = did_you_mean(path, ROUTES)
        remedy = f"Did you mean {near!r}?" if near else f"The routes are {', '.join(ROUTES)}."
        return refuse(RequestError("A route must be known.", status=status, found=ascii(path[:60]), remedy=remedy))

    async def failed(_: Request, error: Exception) -> Response:
        """Answer of a request that met a defect of ours: it is logged, not shown."""
        return respond({"error": {"message": "The server failed; its log has the reason."}}, 500)

    async def watch(wake: asyncio.Event) -> None:
        """Look at the model file each second, and at once when asked to."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), POLL)
            force = wake.is_set()
            wake.clear()
            await asyncio.to_thread(service.reload_if_changed, force)

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        hold_blas()  # requests share the processors as threads
        wake, loop = asyncio.Event(), asyncio.get_running_loop()
        is_main = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP")
        if is_main:
            loop.add_signal_handler(signal.SIGHUP, wake.set)
        watching = asyncio.create_task(watch(wake))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if is_main:
                loop.remove_signal_handler(signal.SIGHUP)
            pool.shutdown(wait=False, cancel_futures=True)
            release_blas()

    routes = [Route(path, endpoint, methods=[*methods, "OPTIONS"]) for path, (methods, _) in ROUTES.items()]
    handlers: Any = {HTTPException: no_such, Exception: failed}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False
    return app

"""halfseen serve: a model as a server on this machine, JSON over HTTP."""

import logging
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import click

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.summaries import count
from halfseen.errors import HalfseenError, ParameterError

#: Open connections per process; further ones are refused with 503.
CONNECTIONS = 1024
#: Seconds that a connection may be idle: longer than proxies keep theirs.
KEEP_ALIVE = 75
#: Seconds that a worker may take to come up, or to answer its supervisor.
PATIENCE = 120


@click.command(cls=Command)
@options.MODEL
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Port; 0 for any that is free.")
@click.option("--host", default="127.0.0.1", help="Address to listen on; by default this machine alone can ask.")
@click.option("--names", type=click.Path(), help="A table of items and their titles, which answers then contain.")
@click.option("--workers", type=click.IntRange(1, 256), default=1, help="Processes, each with a model of its own.")
@click.option("--threads", type=click.IntRange(1, 256), help="Requests that a process computes at the same time; by "
              "default its share of the processors, and 2 at least.")  # fmt: skip
@click.option("--waiting", type=click.IntRange(0), default=64, help="Requests that may wait for a thread; others are "
              "answered 503.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=10.0, help="Seconds for an answer.")
@click.option("--max-bytes", type=click.IntRange(1), default=1 << 20, help="Bytes of a request's body.")
@click.option("--max-n", type=click.IntRange(1), default=1000, help="Items per user.")
@click.option("--max-users", type=click.IntRange(1), default=1000, help="Users, histories or items per request.")
@click.option("--max-cells", type=click.IntRange(1), default=10_000, help="Cells of all histories of a request.")
@click.option("--server-name", "server_names", multiple=True, help="A further name under which the server is asked, "
              "as behind a proxy; may be given several times.")  # fmt: skip
@click.option("--access-log", is_flag=True, help="Print a line for each request.")
@options.ENGINE
@options.quiet("Print warnings and errors only.")
def serve(model: str, port: int, host: str, names: str | None, workers: int, threads: int | None, waiting: int,
          timeout: float, max_bytes: int, max_n: int, max_users: int, max_cells: int, server_names: tuple[str, ...],
          access_log: bool, engine: str | None, quiet: bool) -> None:  # fmt: skip
    """Serve MODEL on this machine: /recommend, /similar, /model and /health, JSON over HTTP.

    A new model file in the place of the old one is taken in without a pause. It has no authentication: it is meant for
    programs on this machine, or for a reverse proxy before it.

    \b
    halfseen serve model.hs --port 8000
    halfseen serve model.hs --names titles.csv --workers 4
    curl 'http://127.0.0.1:8000/recommend?user=bob&n=10'
    """
    check_tools()
    options.check_engine(engine)
    from halfseen.serving.application import LOOPBACK, application
    from halfseen.serving.requests import Limits
    from halfseen.serving.service import Service

    listening = listen(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    is_local = host in (*LOOPBACK, "::1") or host.startswith("127.")
    threads = threads or max(2, (os.cpu_count() or 1) // workers)
    limits = Limits(max_bytes, max_n, max_users, max(100_000, max_n), max_cells, timeout, threads, waiting)
    hosts = (*LOOPBACK, *([host] if host not in LOOPBACK else []), *(name.lower() for name in server_names))
    arguments = (model, names, engine, limits, hosts if is_local else None)
    log_to_stderr(quiet)
    service = Service(*arguments)
    users, items = service.model.shape
    megabytes = os.path.getsize(model) / 1e6
    if not quiet:
        each = f" in each of {workers} processes" if workers > 1 else ""
        what = f"{type(service.model.estimator).__name__}, {count(users, 'user')}, {count(items, 'item')}"
        click.echo(f"Serving {model} ({what}; {megabytes:,.1f} MB{each}) on {address}. Ctrl-C stops.")
        sys.stdout.flush()
    if not is_local:
        click.echo(f"note: Anybody who reaches {host} can ask this server: it has no authentication.", err=True)
    import uvicorn

    setting: dict[str, Any] = {
        "log_config": None, "access_log": access_log, "server_header": False, "ws": "none", "lifespan": "on",
        "limit_concurrency": CONNECTIONS, "timeout_keep_alive": KEEP_ALIVE, "workers": workers,
        "timeout_graceful_shutdown": int(timeout) + 5, "timeout_worker_healthcheck": PATIENCE,
    }  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # which uvicorn raises again when all requests are answered
    try:
        if workers == 1:
            uvicorn.Server(uvicorn.Config(application(service), **setting)).run(sockets=[listening])
        else:
            del service  # each worker has its own
            make = partial(make_application, *arguments, quiet)
            supervisor()(uvicorn.Config(make, factory=True, **setting), [listening]).run()
    except KeyboardInterrupt:
        if not quiet:
            click.echo("Stopped: all requests were answered.", err=True)


def check_tools() -> None:
    """Refuse to begin without what speaks HTTP."""
    for name in ("starlette", "uvicorn"):
        try:
            import_module(name)
        except ImportError:
            must, remedy = f"A server needs {name}. It is not installed.", "Install it: pip install 'halfseen[serve]'."
            raise HalfseenError(must, remedy=remedy) from None


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; a port that is taken is refused before a model is loaded, and who asks too early waits."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(CONNECTIONS)
    except OSError as error:
        must, found = "The server's address and port must be free.", f"{host}:{port}: {error.strerror or error}"
        remedy = "Choose another `port`, or 0 for any that is free."
        raise ParameterError(must, found=found, remedy=remedy) from None
    listening.set_inheritable(True)
    return listening


def log_to_stderr(quiet: bool) -> None:
    """Lines of the server and of uvicorn on standard error."""
    warnings.simplefilter("ignore")  # notes about a request go into its answer
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    levels = {"halfseen.serving": logging.INFO, "uvicorn.error": logging.WARNING, "uvicorn.access": logging.INFO}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(max(level, logging.WARNING) if quiet and name != "uvicorn.access" else level)


def make_application(path: str, names: str | None, engine: str | None, limits: Any, hosts: Any, quiet: bool) -> Any:
    """The application of one of several processes."""
    from halfseen.serving.application import application
    from halfseen.serving.service import Service

    log_to_stderr(quiet)
    return application(Service(path, names, engine, limits, hosts))


def supervisor() -> Callable[..., Any]:
    """uvicorn's supervisor of processes; on SIGHUP each looks at the model file, where uvicorn would restart it."""
    from uvicorn.supervisors import Multiprocess

    class Supervisor(Multiprocess):
        def handle_hup(self) -> None:
            for process in self.processes:
                if process.pid is not None:
                    os.kill(process.pid, signal.SIGHUP)

    return Supervisor

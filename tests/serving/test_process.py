"""The server as a process on this machine: malformed bytes, a new model under load, signals, ports."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from tests.cli.program import check_refusal, program, refused
from tests.serving import malformed
from tests.serving.conftest import counts, fit

MAIN = "from halfseen.cli import main; main()"


@contextlib.contextmanager
def serving(path, *words):
    """A server on a free port: its process and address; it is ended in any case."""
    command = [sys.executable, "-c", MAIN, "serve", str(path), "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            found = re.search(r"on (http://\S+)\. Ctrl-C stops\.$", line.strip())
            assert found, (line, process.poll())
            wait_for(lambda: httpx.get(f"{found[1]}/health", timeout=5).status_code == 200)
            yield process, found[1]
        finally:
            if process.poll() is None:
                process.kill()


def wait_for(condition, seconds=30):
    """Wait until something holds; the server may not listen yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if condition():
                return
        time.sleep(0.05)
    raise TimeoutError


def ended(process, number, seconds=20):
    """Exit code and standard error of a server after a signal."""
    process.send_signal(number)
    _, told = process.communicate(timeout=seconds)
    return process.returncode, told


@pytest.fixture
def own(path, tmp_path):
    mine = tmp_path / "own.hs"
    shutil.copy(path, mine)
    return mine


def test_malformed_requests_over_the_network(path):
    with serving(path, "--max-n", "50", "--max-users", "40", "--max-cells", "200") as (process, address):
        host, port = address.removeprefix("http://").split(":")
        with httpx.Client(base_url=address) as client:
            for method, place, body, headers in malformed.requests().values():
                answer = client.request(method, place, content=body, headers=headers)
                is_product = body is not None and b'"n": 50' in body  # of users and items: no option bounds it here
                if not is_product:
                    assert 400 <= answer.status_code < 500, (method, place, body and body[:80], answer.text[:200])
                    answer.status = answer.status_code
                    assert answer.json()["error"]["message"]
            for content in malformed.NO_HTTP:
                said = b""
                place = (host, int(port))
                with contextlib.suppress(OSError), socket.create_connection(place, timeout=5) as connection:
                    connection.sendall(content)  # it may be closed before all is sent
                    connection.shutdown(socket.SHUT_WR)
                    while part := connection.recv(1 << 16):
                        said += part
                assert said == b"" or said.startswith(b"HTTP/1.1 4"), (content[:60], said[:100])
            health = client.get("/health").json()
            assert health["status"] == "ok"
            assert "5xx" not in health["requests"]
        code, told = ended(process, signal.SIGTERM)
        assert code == 0
        assert "Traceback" not in told


async def load(address, until, found, fingerprints, clients=6):
    """Ask until `until` is set; answers are counted by status, errors of the connection by their class."""

    async def one(client, number):
        while not until.is_set():
            try:
                answer = await client.get(f"/recommend?user={10 * number}&n=5")
                found.append(answer.status_code)
                fingerprints.add(answer.json()["model"])
            except httpx.TransportError as error:
                found.append(type(error).__name__)
                if until.stops:
                    return
            await asyncio.sleep(0)

    async with httpx.AsyncClient(base_url=address, timeout=20) as client:
        await asyncio.gather(*(one(client, number) for number in range(clients)))


class Until(asyncio.Event):
    stops = False


def test_a_new_model_under_load_fails_no_request(own):
    async def run(process, address):
        until, found, fingerprints = Until(), [], set()
        loading = asyncio.create_task(load(address, until, found, fingerprints))
        async with httpx.AsyncClient(base_url=address, timeout=20) as client:

            async def reloads(number):
                for _ in range(400):
                    health = (await client.get("/health")).json()
                    if health["reloads"] >= number:
                        return health
                    await asyncio.sleep(0.05)
                raise TimeoutError

            await asyncio.to_thread(fit, counts(5), own, seed=5)
            await reloads(1)  # by watching
            await asyncio.to_thread(fit, counts(6), own, seed=6)
            process.send_signal(signal.SIGHUP)
            await reloads(2)
            damaged = own.with_suffix(".new")
            damaged.write_bytes(own.read_bytes()[:1000])
            os.replace(damaged, own)
            for _ in range(400):
                health = (await client.get("/health")).json()
                if health["last_reload_error"]:
                    break
                await asyncio.sleep(0.05)
            assert "damaged" in health["last_reload_error"]["message"]
            await asyncio.sleep(0.2)
        until.set()
        await loading
        return found, fingerprints

    with serving(own) as (process, address):
        found, fingerprints = asyncio.run(run(process, address))
        code, told = ended(process, signal.SIGINT)
    assert set(found) == {200}
    assert len(found) > 20
    assert len(fingerprints) == 3
    assert code == 0
    assert "Stopped" in told
    assert "not served" in told


def test_sigterm_under_load_answers_what_was_begun(own):
    async def run(process, address):
        until, found = Until(), []
        loading = asyncio.create_task(load(address, until, found, set()))
        await asyncio.sleep(1)
        until.stops = True
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 20)
        until.set()
        await loading
        return found

    with serving(own) as (process, address):
        found = asyncio.run(run(process, address))
        assert process.returncode == 0
    answered = [one for one in found if one == 200]
    assert len(answered) > 5
    cut = [one for one in found if one != 200]
    assert set(cut) <= {
        "ConnectError",
        "ReadError",
        "RemoteProtocolError",
    }  # connections that it closed between requests


def test_a_request_that_has_begun_is_answered_after_sigterm(path):
    body = b'{"users": [0], "n": 3}'
    head = (
        f"POST /recommend HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    )
    with serving(path) as (process, address):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=10) as connection:
            connection.sendall(f"{head}\r\n\r\n".encode() + body[:5])
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(connection.getpeername(), timeout=2)
            connection.sendall(body[5:])
            said = b""
            while part := connection.recv(1 << 16):
                said += part
        assert said.startswith(b"HTTP/1.1 200")
        assert b'"user":0,"known":true' in said
        assert process.wait(10) == 0


def test_several_processes_take_in_a_new_model(own):
    with serving(own, "--workers", "2", "--threads", "1") as (process, address):

        def processes():
            health = [httpx.get(f"{address}/health").json() for _ in range(10)]
            return {one["process"]: one["model"] for one in health}

        wait_for(lambda: len(processes()) == 2)
        before = set(processes().values())
        fit(counts(5), own, seed=5)
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: before.isdisjoint(processes().values()))
        assert process.pid not in processes()
        code, told = ended(process, signal.SIGTERM)
    assert code == 0
    assert "Traceback" not in told


def test_a_port_in_use_is_one_sentence(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = program("serve", path, "--port", str(port))
    check_refusal(refused.returncode, refused.stdout, refused.stderr)
    assert f"127.0.0.1:{port}" in refused.stderr
    assert "--port" in refused.stderr


def test_a_server_for_others_warns(path):
    with serving(path, "--host", "0.0.0.0") as (process, _):
        _, told = ended(process, signal.SIGTERM)
    assert "no authentication" in told


@pytest.mark.parametrize("absent", ["starlette", "uvicorn"])
def test_without_its_extra_it_says_what_to_install(path, absent, monkeypatch):
    monkeypatch.setitem(sys.modules, absent, None)
    assert refused("serve", path).endswith("Install it: pip install 'halfseen[serve]'.")

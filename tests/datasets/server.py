"""A data folder that does not exist yet, files in it, a server on this machine, and a dataset that it offers."""

import gzip
import hashlib
import io
import threading
import warnings
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from halfseen.datasets.catalogue import Download, Source, StoredFile, source, sources
from halfseen.datasets.registry import local_paths
from halfseen.errors import DataError, DataWarning

ONE, TWO = b"a,b\n1,2\n" * 1000, b"c\n3\n"


def sha(contents):
    return hashlib.sha256(contents).hexdigest()


def zipped(**members):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members.items():
            archive.writestr(f"folder/inside/{name}.csv", contents)
    return buffer.getvalue()


def paths_or_skip(name):
    """The real files of a dataset; the test is skipped if they are absent."""
    try:
        return local_paths(source(name), source(name).files + source(name).extras)
    except DataError as absent:
        pytest.skip(str(absent))


def cells_of(observed):
    """{(row label, column label): value}"""
    rows, columns = observed.row_labels[observed.row_of_cell()], observed.column_labels[observed.indices]
    return dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), observed.values.tolist(), strict=True))


@pytest.fixture
def published():
    """What the server returns by path (bytes, a status, or bytes and the length it says they have), and its address."""
    answers = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer = answers.get(self.path, 404)
            answers.setdefault("asked", []).append(self.path)
            if isinstance(answer, int):
                return self.send_error(answer)
            contents, length = answer if isinstance(answer, tuple) else (answer, len(answer))
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(contents)
            self.wfile.flush()
            return "hold" in answers and answers["hold"].wait(60)

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield answers, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The data folder, which does not exist yet."""
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "cache" / "data"))
    return tmp_path / "cache" / "data"


@pytest.fixture
def put(folder):
    """Writes a file of the data folder, gzipped if its name ends in .gz; that its checksum differs is no matter."""
    warnings.filterwarnings("ignore", ".*sha256", DataWarning)

    def write(name, text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        contents = text.encode() if isinstance(text, str) else text
        (folder / name).write_bytes(gzip.compress(contents) if name.endswith(".gz") else contents)
        return folder / name

    return write


@pytest.fixture
def offered(monkeypatch, folder, published):
    """Registers the dataset "some-set": by default two files in one zip archive."""
    published[0]["/both.zip"] = zipped(one=ONE, two=TWO, three=b"not needed")

    def offer(*urls, files=None, checksums=(), **fields):
        files = files or (StoredFile("some/set/one.csv", (sha(ONE),)), StoredFile("some/set/two.csv", (sha(TWO),)))
        addresses = [url if "//" in url else published[1] + url for url in urls or ("/both.zip",)]
        fields = {"downloads": tuple(Download(address, checksums) for address in addresses), **fields}
        plain = Source("Some set", "https://example.org/page", "CC0", "Nobody (2000)", files, "some-set")
        monkeypatch.setitem(sources(), "some-set", replace(plain, **fields))

    return offer

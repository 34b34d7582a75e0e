"""What a public address gives: brought to this machine whole, and unpacked by the names of its files."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from halfseen.data.shelf import Download
from halfseen.errors import DataError

#: Told how many bytes have come so far, and how many will if that is known.
Tell = Callable[[int, int | None], None]

PATIENCE = 60  # seconds without a byte
CHUNK = 1 << 18


class Parcel(NamedTuple):
    """A file as it came from an address."""

    of: Download
    path: Path
    sha256: str

    @property
    def name(self) -> str:
        """What the address calls it."""
        return PurePosixPath(urlsplit(self.of.address).path).name

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes] | None]:
        """The contents of the file that is called so; None if it is not in here. What is damaged is refused."""
        try:
            if self.name.endswith(".zip"):
                with zipfile.ZipFile(self.path) as archive:
                    inside = next((one for one in archive.namelist() if PurePosixPath(one).name == name), None)
                    if inside is None:
                        yield None
                    else:
                        with archive.open(inside) as contents:
                            yield contents
            elif self.name == f"{name}.gz":
                with gzip.open(self.path) as unpacked:
                    yield cast(IO[bytes], unpacked)
            elif self.name == name:
                with self.path.open("rb") as contents:
                    yield contents
            else:
                yield None
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DataError(
                f"{self.of.address} must give a whole archive. Found it damaged: {error}. Try again later."
            ) from None


def bring(download: Download, path: Path, tell: Tell) -> Parcel:
    """Save what an address gives as `path`; anything but all of it is refused."""
    request = Request(download.address, headers={"User-Agent": "halfseen"})
    with _answered(request) as answer, path.open("wb") as file:
        announced = answer.headers.get("Content-Length")
        total = int(announced) if announced else None
        digest, size = hashlib.sha256(), 0
        for chunk in _chunks(answer, download.address):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            tell(size, total)
    if total is not None and size != total:
        raise DataError(f"{download.address} must give {total:,} bytes. Found the end after {size:,}. Try again.")
    return Parcel(download, path, digest.hexdigest())


def copied(contents: IO[bytes], path: Path) -> str:
    """Write contents to a file; their sha256."""
    with path.open("wb") as file:
        shutil.copyfileobj(contents, file, CHUNK)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _answered(request: Request) -> Iterator[HTTPResponse]:
    try:
        answer: HTTPResponse = urlopen(request, timeout=PATIENCE)
    except HTTPError as error:
        error.close()
        raise DataError(f"{request.full_url} must give a file. It answered {error.code} {error.reason}.") from None
    except (URLError, HTTPException, OSError) as error:
        raise _unreachable(request.full_url, error) from None
    with answer:
        yield answer


def _chunks(answer: HTTPResponse, address: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = answer.read1(CHUNK)  # as it comes
        except (HTTPException, OSError) as error:
            raise _unreachable(address, error) from None
        if not chunk:
            return
        yield chunk


def _unreachable(address: str, error: Exception) -> DataError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return DataError(f"{address} must be reachable over the network, to its end. It is not: {reason}.")

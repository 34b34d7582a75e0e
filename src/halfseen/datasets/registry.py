"""Registry of datasets: find their files in the data folder, download them from their publishers, list them."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, cast
from urllib.parse import urlsplit

from halfseen.datasets.catalogue import Download, Source, StoredFile, read_catalogue, source, sources
from halfseen.errors import DataError, DataWarning
from halfseen.io.write import atomic_writes

VARIABLE = "HALFSEEN_DATA"
TIMEOUT, CHUNK = 60, 1 << 16  # seconds without a byte from the server, bytes at a time
UNREADABLE = (OSError, EOFError, zlib.error)  # raised on reading a file that is damaged, or no file
PRESENT, MODIFIED, UNVERIFIED = "present", "present, checksum differs", "present, not verified"
NOT_FETCHED, MANUAL = "not fetched", "manual download"
Progress = Callable[[int, int | None], None]  # of the bytes downloaded so far, and in all if the server says so


def data_folder() -> Path:
    """Return the folder of public data: $HALFSEEN_DATA, else `halfseen` in the user's cache folder."""
    caches = {"darwin": ("", "~/Library/Caches"), "win32": ("LOCALAPPDATA", "~/AppData/Local")}
    variable, default = caches.get(sys.platform, ("XDG_CACHE_HOME", "~/.cache"))
    return Path(os.environ.get(VARIABLE) or f"{os.environ.get(variable) or default}/halfseen").expanduser()


def local_paths(source: Source, files: Sequence[StoredFile] = ()) -> list[Path]:
    """Paths of files of a dataset (by default those that its loader reads); warns if a checksum differs."""
    paths = []
    for file in files or source.files:
        path, checksums = _locate(file, source)
        paths.append(path)
        try:
            found = _sha256(open_binary(path)) if checksums else ""
        except UNREADABLE as error:
            must = f"{path} must be a readable file."
            raise DataError(must, found=f"otherwise: {error}", remedy="Download it again.") from None
        if checksums and found not in checksums:
            must = f"{path} must have the sha256 {' or '.join(checksums)}."
            remedy = f"It is read as it is; if the numbers look wrong, download it again from {source.address}."
            warnings.warn(DataWarning(must, found=found, remedy=remedy), stacklevel=3)  # at the caller of the loader
    return paths


def _locate(file: StoredFile, source: Source) -> tuple[Path, tuple[str, ...]]:
    """The path of a file in the data folder, perhaps gzipped or under its alternative name, and its checksums."""
    folder = data_folder()
    for one in (file, file.alternative) if file.alternative else (file,):
        for path in (folder / one.path, folder / f"{one.path}.gz"):
            if os.path.exists(path):
                return path, one.checksums
    save = f"from {source.address} and save it as {folder / file.path}, or set {VARIABLE} to a folder that has it."
    get = "Get it by {}, or" if source.downloads else "Download it"
    raise DataError(
        f"The data of {source.title!r} need the file {file.path} (or {file.path}.gz) in the data folder.",
        found="neither",
        where=f"in {folder}",
        remedy=get.format(f'`halfseen.datasets.fetch("{source.name}")`') + f" {save}",
        remedy_cli=get.format(f"halfseen datasets {source.name} --fetch") + f" {save}",
    )


def open_binary(path: Path) -> IO[bytes]:
    """Open a file that may be gzipped."""
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if is_gzip else path.open("rb")


def _sha256(file: IO[bytes]) -> str:
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def fetch(name: str, *, progress: Progress | None = None) -> list[Path]:
    """Download a public dataset to the data folder, unless it is there.

    Files are verified by their sha256 where it is known, and appear all together or not at all. A failed download, and
    a dataset that can only be downloaded by hand, is a `DataError` that says what to save where. Needs pooch: ``pip
    install 'halfseen[datasets]'``. For the terms of use see ``source(name).terms``.

    Parameters
    ----------
    name : str
        Name of a public dataset, see `listing`.
    progress : callable, default=None
        Called as ``progress(done, total)`` with the bytes of the current file; total is None if it is not known.

    Returns
    -------
    list of Path
        Files that its loader reads.
    """
    dataset, folder = source(name), data_folder()
    files = (*dataset.files, *dataset.extras)
    with suppress(DataError, DataWarning), warnings.catch_warnings(action="error", category=DataWarning):
        return local_paths(dataset, files)[: len(dataset.files)]
    saved = ", and ".join(f"{Path(file.path).name} as {folder / file.path}" for file in dataset.files)
    by_hand = f"Open {dataset.address} in a browser and save {saved}. {dataset.hint}".rstrip()
    if not dataset.downloads:
        raise DataError(f"{dataset.title!r} must be downloaded by hand: it has no public URL.", remedy=by_hand)
    if find_spec("pooch") is None:
        remedy = f"Run pip install 'halfseen[datasets]', or do it by hand: {by_hand}"
        raise DataError("pooch must be installed.", remedy=remedy)
    paths = [folder / file.path for file in files]
    new_folders = sorted({one for path in paths for one in path.parents if not os.path.exists(one)}, reverse=True)
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary, atomic_writes(*paths) as drafts:
            archives = {Path(temporary, str(number)): one for number, one in enumerate(dataset.downloads)}
            for path, download in archives.items():
                _download(download.address, path, progress)
            for file, draft in zip(files, drafts, strict=True):
                _extract(file, archives, draft)
    except DataError as error:
        remedy = f"Nothing was kept. Try again later, or by hand: {by_hand}"
        raise DataError(error.must, found=error.found, remedy=remedy) from None
    except OSError as error:
        must = f"The data folder {folder} must be writable and have space."
        remedy = f"Nothing was kept. Make room, or set {VARIABLE} to another folder."
        raise DataError(must, found=f"otherwise: {error.strerror or error}", remedy=remedy) from None
    finally:
        for one in new_folders:
            with suppress(OSError):
                one.rmdir()  # only if it is empty
    return local_paths(dataset)


class _ProgressBar:
    """Progress bar for pooch that calls a function."""

    def __init__(self, report: Progress) -> None:
        self._report, self._done, self._total = report, 0, 0

    def _start(self, total: int) -> None:  # 0 if the server doesn't say
        self._total = total
        self.update(0)

    total = property(fset=_start)

    def update(self, n_bytes: int) -> None:
        self._done = min(self._done + n_bytes, self._total or sys.maxsize)
        self._report(self._done, self._total or None)

    def reset(self) -> None: ...  # before the last update, which is the total
    def close(self) -> None: ...


def _download(address: str, path: Path, progress: Progress | None) -> None:
    """Save what a URL returns."""
    import pooch
    from requests import HTTPError, RequestException

    options = {"chunk_size": CHUNK, "timeout": TIMEOUT, "headers": {"User-Agent": "halfseen"}}
    get = pooch.HTTPDownloader(progressbar=_ProgressBar(progress) if progress else False, **options)
    try:
        get(address, str(path), None)
    except HTTPError as error:
        with cast(Any, error.response) as answer:  # pooch leaves it open
            found = f"{answer.status_code} {answer.reason}"
        raise DataError(f"{address} must return a file. It returned {found}.") from None
    except RequestException as error:
        cause: BaseException = error
        while cause.__context__ is not None:  # requests wraps the errors of urllib3, which wraps those of the system
            cause = cause.__context__
        raise DataError(f"{address} must be reachable. Failed: {getattr(cause, 'strerror', None) or cause}.") from None


def _extract(file: StoredFile, archives: Mapping[Path, Download], draft: Path) -> None:
    """Copy a file out of the download that has it, and verify it."""
    name = Path(file.path).name
    for path, download in archives.items():
        address, checksums = download.address, file.checksums or download.checksums
        url_name = PurePosixPath(urlsplit(address).path).name
        try:
            with ExitStack() as opened:
                if url_name.endswith(".zip"):
                    archive = opened.enter_context(zipfile.ZipFile(path))
                    names = [one for one in archive.namelist() if PurePosixPath(one).name == name]
                    members = [archive.open(one) for one in names[:1]]
                else:
                    members = [open_binary(path)] if url_name.removesuffix(".gz") == name else []
                if not members:
                    continue
                shutil.copyfileobj(opened.enter_context(members[0]), opened.enter_context(draft.open("wb")))
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DataError(f"{address} must return a complete archive.", found=f"it damaged: {error}") from None
        found = _sha256((draft if file.checksums else path).open("rb"))
        if checksums and found not in checksums:
            raise DataError(f"{name} of {address} must have the sha256 {' or '.join(checksums)}.", found=found)
        return
    raise DataError(f"{' and '.join(one.address for one in archives.values())} must contain {name}. It does not.")


class Entry(NamedTuple):
    """A dataset in the list of `listing`.

    Attributes
    ----------
    name : str
        Name to load or fetch it by.
    kind : {"built in", "generated", "public"}
        Kind of dataset.
    title, size, terms : str
        Title; rows, columns and cells, in words; licence or terms of use.
    state : str
        Whether it is in the data folder, can be fetched, or must be downloaded by hand.
    call : str
        Python code that loads it, after ``halfseen.``.
    """

    name: str
    kind: str
    title: str
    size: str
    terms: str
    state: str
    call: str


def listing() -> list[Entry]:
    """List all datasets that have a name.

    Returns
    -------
    list of Entry
        Built-in and generated datasets, then public ones in the order of their loaders.
    """
    entries = [Entry(state=PRESENT, **record) for record in read_catalogue()["built_in"]]
    for name, one in sources().items():
        try:
            with warnings.catch_warnings(action="error", category=DataWarning):
                local_paths(one)
            state = PRESENT if all(_locate(file, one)[1] for file in one.files) else UNVERIFIED
        except DataWarning:
            state = MODIFIED
        except DataError:
            state = NOT_FETCHED if one.downloads else MANUAL
        argument = f'"{name}"' if one.loader in ("load_tabular", "load_ratings") else ""
        call = f"datasets.{one.loader}({argument})"
        entries.append(Entry(name, "public", one.title, one.size, one.terms, state, call))
    return entries

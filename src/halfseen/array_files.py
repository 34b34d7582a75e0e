"""Arrays in files of their own: written whole or not at all, with a checksum, and read whole or by rows."""

import math
import mmap
import os
import platform
import re
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from halfseen.arrays import ENTRIES_PER_PART, Array, in_parts
from halfseen.errors import DataError

fcntl: Any = None
with suppress(ImportError):  # not on Windows
    fcntl = import_module("fcntl")

FilePath: TypeAlias = str | os.PathLike[str]
#: Names of temporary folders, with a dot while they are made; and of the file that their process keeps locked.
_PREFIX, _LOCK = "halfseen-", ".lock"
_TEMPORARY = re.compile(rf"\.?{_PREFIX}.*-\d+-[a-z0-9_]{{8}}")
#: Locks of the temporary folders of this process.
_locks: dict[Path, IO[bytes]] = {}


class ArrayFile(NamedTuple):
    """An array in a file: where it begins, its type and its shape."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    crc: int | None = None
    """CRC-32 of its bytes, if known."""

    def read(self, rows: slice | None = None) -> Array:
        """The array, or some of its rows, in memory."""
        width, itemsize = int(np.prod(self.shape[1:])), np.dtype(self.dtype).itemsize
        start, stop = (0, self.shape[0]) if rows is None else (rows.start, rows.stop)
        offset = self.offset + start * width * itemsize
        array = np.fromfile(self.path, self.dtype, (stop - start) * width, offset=offset)
        return array.reshape(stop - start, *self.shape[1:])

    def map(self) -> Array:
        """The array, mapped from the file: read when it is used, and in no process's own memory."""
        if not np.prod(self.shape):
            return np.empty(self.shape, self.dtype)
        return np.memmap(self.path, self.dtype, mode="r", offset=self.offset, shape=self.shape)

    def check(self) -> None:
        """Refuse a file that was cut off or changed."""
        size = math.prod(self.shape) * np.dtype(self.dtype).itemsize
        try:
            is_whole = os.path.getsize(self.path) == self.offset + size  # before there is room for all of it
            if is_whole and self.crc is not None:
                is_whole = zlib.crc32(self.read().data.cast("B") if size else b"") == self.crc
        except (OSError, ValueError):
            is_whole = False
        if not is_whole:
            raise DataError(
                "A file of an array must be as it was written.",
                found="missing, cut off or changed bytes",
                where=f"in {self.path!r}",
                remedy="Restore the file from a backup, or begin again without it.",
            )


def write_array(array: Array, path: FilePath, lasting: bool = True) -> ArrayFile:
    """Write an array to a file of its own; no reader sees half of it, even after a crash.

    Parameters
    ----------
    array : ndarray
        The array.
    path : str or path-like
        Where to write.
    lasting : bool, default=True
        Whether it must outlast a crash of the machine, and gets a checksum; else only that of a process.

    Returns
    -------
    ArrayFile
    """
    array, path = np.ascontiguousarray(array), Path(path)
    content = array.data.cast("B") if array.size else b""
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")  # several processes may write the same array
    try:
        with draft.open("wb") as file:
            file.write(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return ArrayFile(str(path), 0, array.dtype.str, array.shape, zlib.crc32(content) if lasting else None)


def mapped_file(array: Array) -> ArrayFile | None:
    """Where an array lies in a file, if it is mapped from one, and is all that was mapped."""
    if not isinstance(array, np.memmap) or not isinstance(array.base, mmap.mmap) or not array.flags.c_contiguous:
        return None
    return ArrayFile(str(array.filename), array.offset, array.dtype.str, array.shape)


def lock_file(path: FilePath, make: bool = True) -> IO[bytes] | None:
    """Open a file and lock it, until it is closed or the process ends, in whatever way.

    Parameters
    ----------
    path : str or path-like
        The file.
    make : bool, default=True
        Whether to make it if it does not exist.

    Returns
    -------
    file or None
        None where there are no locks.

    Raises
    ------
    BlockingIOError
        If it is locked already, by this process or another one.
    """
    if fcntl is None:
        return None
    file = open(path, "ab" if make else "r+b")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise
        return None  # a file system without locks
    return file


def temporary_folder(parent: FilePath | None) -> Path:
    """Make a folder for files of this process, and remove what processes that were killed have left."""
    parent = Path(tempfile.gettempdir() if parent is None else parent).resolve()
    parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(parent)
    made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}{platform.node()}-{os.getpid()}-", dir=parent))
    lock = lock_file(made / _LOCK)
    folder = made.rename(made.with_name(made.name[1:]))  # nobody sees it before it is locked
    for one in list(_locks):
        if not one.exists() and (unneeded := _locks.pop(one, None)):
            unneeded.close()
    if lock is not None:
        _locks[folder] = lock
    return folder


def is_temporary(name: str) -> bool:
    """Whether a name is one that `temporary_folder` gives."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_leftovers(parent: Path) -> None:
    """Remove temporary folders of processes that no longer run: those whose locks nobody holds."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is in use, has no lock, or is of another user
            lock = lock_file(folder / _LOCK, make=False) if is_temporary(folder.name) else None
            if lock is not None:
                with lock:
                    shutil.rmtree(folder, ignore_errors=True)


def map_temporary(path: FilePath, dtype: Any, size: int) -> Array:
    """Map an array from a file, which is removed when nothing uses the array any more, and its folder once empty."""
    if not size:
        return np.empty(0, dtype)
    array = ArrayFile(str(path), 0, np.dtype(dtype).str, (size,)).map()
    weakref.finalize(array.base, _remove, Path(path), os.getpid())
    return array


def _remove(path: Path, process: int) -> None:
    if os.getpid() != process:  # a child of a fork, whose parent still uses the file
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)
        if is_temporary(path.parent.name) and os.listdir(path.parent) == [_LOCK]:
            (path.parent / _LOCK).unlink()
        path.parent.rmdir()


def computed_in_parts(function: Callable[..., Array], *arrays: Array | None, dtype: Any) -> Array:
    """`function` of arrays, which needs an entry at a time, as a new array of the first one's length.

    Where the first is mapped from a file, so is the result, from a temporary one beside it.
    """
    first: Any = arrays[0]
    file = mapped_file(first)
    if file is None and first.size <= ENTRIES_PER_PART:
        return function(*arrays).astype(dtype, copy=False)
    if file is None:
        result, done = np.empty(first.size, dtype), 0
        for parts in in_parts(*arrays):
            result[done : done + parts[0].size] = function(*parts)
            done += parts[0].size
        return result
    handle, path = tempfile.mkstemp(".array", dir=Path(file.path).parent)
    with open(handle, "wb") as out:
        for parts in in_parts(*arrays):
            np.ascontiguousarray(function(*parts), dtype).tofile(out)
    return map_temporary(path, dtype, first.size)

"""Arrays in files of their own: written whole or not at all, with a checksum, and read whole or by rows."""

import mmap
import os
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io.tables import FilePath


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
        try:
            content = self.read()
            is_whole = self.crc is None or zlib.crc32(content.data.cast("B") if content.size else b"") == self.crc
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

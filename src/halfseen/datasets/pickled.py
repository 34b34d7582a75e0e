"""Matrices in files that Python's pickle wrote, read without running anything that the file names.

Nothing that the file names is imported or called: its opcodes are interpreted by a small stack machine, for which every
class or function is only a name, kept with its arguments and its state. A matrix is built of these after all sizes and
ranges were checked.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.datasets.registry import UNREADABLE, open_binary
from halfseen.errors import DataError
from halfseen.observed import Observed

#: Largest file, unpacked, and most opcodes. The authors' 3 million cells take 36 to 48 MB, and the names of 32,000 rows
#: and columns some 500,000 opcodes, each of which takes about 200 bytes at most.
MAX_BYTES, MAX_OPCODES = 1 << 28, 2_000_000
#: Sizes of a matrix are below this.
MAX_SIZE = 1 << 31
#: Packages whose names may occur in such files (tables are skipped), and single names of others.
PACKAGES = ("numpy", "scipy.sparse", "pandas")
NAMES = {f"{module}.{name}" for module in ("__builtin__", "builtins") for name in ("object", "slice")} | {
    f"{module}.{name}" for module in ("copy_reg", "copyreg") for name in ("_reconstructor", "__newobj__")
} | {"_codecs.encode"}  # fmt: skip
RECONSTRUCTORS = {f"{module}._reconstructor" for module in ("copy_reg", "copyreg")}
ARRAYS = {f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core")}
BUFFERS = {f"numpy.{core}.numeric._frombuffer" for core in ("core", "_core")}
MATRICES = {f"scipy.sparse.{module}.csr_matrix" for module in ("csr", "_csr")}
NUMBERS = {"i4", "i8", "f4", "f8"}

#: Opcodes whose argument is a value, and those that are nothing but a value.
VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8",
}  # fmt: skip
CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict,
}  # fmt: skip


class Malformed(ValueError):
    """What is wrong with a file, in words that can be shown."""


@dataclass(eq=False, slots=True)
class Named:
    """What a file says of an object: the name of its class or function, what that was called with, and its state."""

    name: str
    args: Any = None
    state: Any = None


class StackMachine:
    """The stack and the memo of a pickled file. Classes and functions are `Named`; nothing is called."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, contents: bytes) -> Any:
        """The object that the file holds.

        Raises
        ------
        Malformed
            If an opcode or a name is not among those of numbers, arrays, matrices and tables.
        ValueError
            If the file is damaged; the words are Python's.
        """
        for number, (opcode, arg, _) in enumerate(pickletools.genops(contents)):
            if number > MAX_OPCODES:
                raise Malformed(f"more than {MAX_OPCODES:,} opcodes")
            if opcode.name == "STOP":
                return self.pop()
            self.step(opcode.name, arg)
        raise Malformed("a file without an end")

    def pop(self, n: int | None = None) -> Any:
        """The top of the stack, or a tuple of the top n."""
        if len(self.stack) - (self.marks[-1] if self.marks else 0) < (1 if n is None else n):
            raise Malformed("an opcode without the values that it needs")
        if n is None:
            return self.stack.pop()
        start = len(self.stack) - n
        items, self.stack[start:] = tuple(self.stack[start:]), []
        return items

    def pop_to_mark(self) -> tuple[Any, ...]:
        """All above the last mark."""
        if not self.marks:
            raise Malformed("an opcode without the mark that it needs")
        start = self.marks.pop()
        items, self.stack[start:] = tuple(self.stack[start:]), []
        return items

    def step(self, name: str, arg: Any) -> None:
        """One opcode."""
        if name in VALUES:
            self.stack.append(arg)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name]())
        elif name in ("PROTO", "FRAME"):
            pass
        elif name == "MARK":
            self.marks.append(len(self.stack))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            top = self.pop()
            self.memo[len(self.memo) if name == "MEMOIZE" else arg] = top
            self.stack.append(top)
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            if arg not in self.memo:
                raise Malformed("a reference to an object that was not stored")
            self.stack.append(self.memo[arg])
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self.stack.append(Named(self.checked_name(arg.split(" ") if name == "GLOBAL" else self.pop(2))))
        elif name in ("REDUCE", "NEWOBJ"):
            function, args = self.pop(2)
            name, args = self.expected(function, Named).name, self.expected(args, tuple)
            if name in RECONSTRUCTORS and args:  # protocols 0 and 1: an object of the class that is the first argument
                name, args = self.expected(args[0], Named).name, ()
            self.stack.append(Named(name, args))
        elif name == "BUILD":
            state = self.pop()
            owner = self.expected(self.pop(), Named)
            owner.state = state
            self.stack.append(owner)
        elif name in ("TUPLE", "LIST", "DICT"):
            items = self.pop_to_mark()
            self.stack.append(items if name == "TUPLE" else list(items) if name == "LIST" else self.pairs(items))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            self.stack.append(self.pop(int(name[-1])))
        elif name in ("APPEND", "APPENDS"):
            items = (self.pop(),) if name == "APPEND" else self.pop_to_mark()
            owner = self.pop()
            if isinstance(owner, list):  # lists of other classes are skipped
                owner.extend(items)
            self.stack.append(owner)
        elif name in ("SETITEM", "SETITEMS"):
            items = self.pop(2) if name == "SETITEM" else self.pop_to_mark()
            owner = self.pop()
            if isinstance(owner, dict):
                owner.update(self.pairs(items))
            self.stack.append(owner)
        else:
            raise Malformed(f"the opcode {name}")

    @staticmethod
    def pairs(items: tuple[Any, ...]) -> dict[str, Any]:
        """Keys and values in turn, as a dict of those whose key is a text."""
        if len(items) % 2:
            raise Malformed("a key without a value")
        return {key: value for key, value in zip(items[::2], items[1::2], strict=True) if isinstance(key, str)}

    @staticmethod
    def checked_name(parts: Any) -> str:
        """Module and name, joined."""
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise Malformed("a name that is not a text")
        name = ".".join(parts)
        if name not in NAMES and not any(parts[0] == one or parts[0].startswith(f"{one}.") for one in PACKAGES):
            raise Malformed(f"the name {name[:80]!r}")
        return name

    @staticmethod
    def expected(value: Any, kind: type) -> Any:
        """The value, if it is of this type."""
        if not isinstance(value, kind):
            raise Malformed(f"{type(value).__name__} where {kind.__name__} should be")
        return value


def read_pickled_csr(path: Path, key: str) -> Observed:
    """Read the CSR matrix of counts or levels under a key of a pickled dict, without unpickling it.

    Files that Python 3 wrote are read in all protocols, files of Python 2 in protocols 1 and 2, plain or gzipped.
    Everything else in them is skipped. Columns must ascend within each row, as they do where SciPy made the matrix of
    coordinates: a split by positions in the file's arrays is then one by positions of the cells.

    Parameters
    ----------
    path : Path
        The file.
    key : str
        Key of the matrix.

    Returns
    -------
    Observed
        Cells in row order, which is the order of the file, without labels.
    """
    try:
        with open_binary(path) as file:
            contents = file.read(MAX_BYTES + 1)
        if len(contents) > MAX_BYTES:
            raise Malformed(f"more than {MAX_BYTES:,} bytes")
        loaded = StackMachine().run(contents)
        if not isinstance(loaded, dict) or key not in loaded:
            raise Malformed(f"no dict with {key!r}")
        indptr, indices, data, shape = checked_csr(loaded[key], key)
        rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
        return Observed.from_cells(rows, indices, data.astype(np.float64), shape)
    except Malformed as error:
        found = str(error)
    except DataError:  # of the cells, in words of its own
        raise
    except MemoryError:
        found = "more than fits into memory"
    except UNREADABLE as error:
        found = getattr(error, "strerror", None) or "an archive that is damaged or cut short"
    except (ValueError, OverflowError, RecursionError, struct.error):  # by pickletools
        found = "no pickle, or one that is damaged or cut short"
    raise DataError(
        f"{path} must be a pickled dict with a SciPy CSR matrix as {key!r}, columns ascending in each row, and name "
        "nothing but classes of NumPy, SciPy and pandas.",
        found=f"otherwise: {found}",
        remedy="Download the file again from its authors. If it is yours, sort its columns by `matrix.sort_indices()` "
        "and save it from Python 3 with `pickle.dump(..., protocol=4)`.",
    )


def checked_csr(matrix: Any, key: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    """Row pointers, columns and values of a matrix that a file describes, and its shape."""
    if not isinstance(matrix, Named) or matrix.name not in MATRICES or not isinstance(matrix.state, dict):
        raise Malformed(f"no CSR matrix as {key!r}")
    state = matrix.state
    shape = state.get("_shape", state.get("shape"))
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(type(size) is int and size > 0 for size in shape):
        raise Malformed("a matrix without a shape")
    if max(shape) >= MAX_SIZE:
        raise Malformed(f"a matrix of {MAX_SIZE:,} rows or columns or more")
    indptr, indices, data = (checked_array(state.get(name), name) for name in ("indptr", "indices", "data"))
    if indptr.dtype.kind != "i" or indices.dtype.kind != "i":
        raise Malformed("indices that are not integers")
    indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    # Compared, not subtracted: differences of hostile pointers wrap around.
    if (
        indptr.size != shape[0] + 1
        or indptr[0] != 0
        or indptr[-1] != indices.size
        or indptr.min() < 0
        or indptr.max() > indices.size
        or (indptr[1:] < indptr[:-1]).any()
    ):
        raise Malformed("row pointers that do not fit the rows")
    if data.size != indices.size:
        raise Malformed(f"{data.size} values for {indices.size} cells")
    if indices.size and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise Malformed(f"columns from {indices.min()} to {indices.max()}, of {shape[1]}")
    ascends = np.append(True, indices[1:] > indices[:-1])
    ascends[indptr[:-1][indptr[:-1] < indices.size]] = True  # the first cell of a row
    if not ascends.all():
        cell = int(np.argmin(ascends))
        row = int(np.searchsorted(indptr, cell, side="right")) - 1
        raise Malformed(f"column {indices[cell]} after column {indices[cell - 1]} in row {row}")
    if not (np.isfinite(data).all() and (data > 0).all() and (data == np.floor(data)).all()):
        raise Malformed("values that are not integers above 0")
    return indptr, indices, data, shape


def checked_array(array: Any, name: str) -> np.ndarray:
    """The vector that a file describes: its shape, the type of its numbers, and its bytes."""
    if isinstance(array, Named) and array.name in ARRAYS and isinstance(array.state, tuple) and len(array.state) == 5:
        _, shape, dtype, _, raw = array.state
    elif isinstance(array, Named) and array.name in BUFFERS and isinstance(array.args, tuple) and len(array.args) == 4:
        raw, dtype, shape, _ = array.args  # protocol 5
    else:
        raise Malformed(f"no array as {name}")
    codes = dtype.args if isinstance(dtype, Named) and dtype.name == "numpy.dtype" else None
    code = codes[0] if codes else None
    order = dtype.state[1] if codes and isinstance(dtype.state, tuple) and len(dtype.state) > 1 else None
    if not (isinstance(code, str) and code in NUMBERS and isinstance(order, str) and order in ("<", ">")):
        raise Malformed(f"{name} of another type than integers or floating-point numbers of 4 or 8 bytes")
    if isinstance(raw, Named) and raw.name == "_codecs.encode" and raw.args:  # bytes that Python 3 wrote as Python 2
        raw = raw.args[0]
    raw = raw.encode("latin-1") if isinstance(raw, str) else raw
    kind = np.dtype(f"{order}{code}")
    if not isinstance(raw, bytes | bytearray) or not isinstance(shape, tuple):
        raise Malformed(f"no bytes as {name}")
    if len(raw) % kind.itemsize or shape != (len(raw) // kind.itemsize,):
        raise Malformed(f"{name} of another size than its bytes")
    return np.frombuffer(raw, kind)

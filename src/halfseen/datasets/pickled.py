"""Matrices in files that Python's pickle wrote, read without running anything that the file names.

Nothing is imported or called for the sake of the file: its opcodes are interpreted by a small stack machine, for which
every class or function is a mere name. What a name was given, its arguments and state, is kept beside it, and a matrix
is built of that after all sizes and ranges were checked.
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

#: Largest file, and most opcodes: many times what a matrix with the names of its rows and columns needs.
MAX_BYTES, MAX_OPCODES = 1 << 30, 20_000_000
#: Packages whose names may occur in such files (those of tables are left aside), and single names of others.
PACKAGES = ("numpy", "scipy.sparse", "pandas")
NAMES = {f"{module}.{name}" for module in ("__builtin__", "builtins") for name in ("object", "slice")} | {
    f"{module}.{name}" for module in ("copy_reg", "copyreg") for name in ("_reconstructor", "__newobj__")
} | {"_codecs.encode"}  # fmt: skip
ARRAYS = {f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core")}
MATRICES = {f"scipy.sparse.{module}.csr_matrix" for module in ("csr", "_csr")}
NUMBERS = {"i4", "i8", "f4", "f8"}

#: Opcodes whose argument is a value, and those that are nothing but a value.
VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8",
}  # fmt: skip
CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict,
}  # fmt: skip


@dataclass(eq=False)
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
        ValueError
            If an opcode or a name is not among those of numbers, arrays, matrices and tables, or the file is damaged.
        """
        for number, (opcode, arg, _) in enumerate(pickletools.genops(contents)):
            if number > MAX_OPCODES:
                raise ValueError(f"more than {MAX_OPCODES:,} opcodes")
            if opcode.name == "STOP":
                return self.pop()
            self.step(opcode.name, arg)
        raise ValueError("no end")

    def pop(self, n: int | None = None) -> Any:
        """The top of the stack, or a tuple of the top n."""
        if len(self.stack) - (self.marks[-1] if self.marks else 0) < (1 if n is None else n):
            raise ValueError("a stack that is empty")
        if n is None:
            return self.stack.pop()
        start = len(self.stack) - n
        items, self.stack[start:] = tuple(self.stack[start:]), []
        return items

    def pop_to_mark(self) -> tuple[Any, ...]:
        """All above the last mark."""
        if not self.marks:
            raise ValueError("no mark")
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
                raise ValueError(f"no object {arg}")
            self.stack.append(self.memo[arg])
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self.stack.append(Named(self.checked_name(arg.split(" ") if name == "GLOBAL" else self.pop(2))))
        elif name in ("REDUCE", "NEWOBJ"):
            function, args = self.pop(2)
            self.stack.append(Named(self.expected(function, Named).name, self.expected(args, tuple)))
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
            if isinstance(owner, list):  # else the list of some other class, which is left aside
                owner.extend(items)
            self.stack.append(owner)
        elif name in ("SETITEM", "SETITEMS"):
            items = self.pop(2) if name == "SETITEM" else self.pop_to_mark()
            owner = self.pop()
            if isinstance(owner, dict):
                owner.update(self.pairs(items))
            self.stack.append(owner)
        else:
            raise ValueError(f"the opcode {name}")

    @staticmethod
    def pairs(items: tuple[Any, ...]) -> dict[str, Any]:
        """Keys and values in turn, as a dict; keys that are no text are left aside."""
        return {key: value for key, value in zip(items[::2], items[1::2], strict=True) if isinstance(key, str)}

    @staticmethod
    def checked_name(parts: Any) -> str:
        """Module and name, joined."""
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise ValueError("a name that is no text")
        name = ".".join(parts)
        if name not in NAMES and not any(parts[0] == one or parts[0].startswith(f"{one}.") for one in PACKAGES):
            raise ValueError(f"the name {name[:80]!r}")
        return name

    @staticmethod
    def expected(value: Any, kind: type) -> Any:
        """The value, if it is of this type."""
        if not isinstance(value, kind):
            raise ValueError(f"{type(value).__name__} where {kind.__name__} should be")
        return value


def read_pickled_csr(path: Path, key: str) -> Observed:
    """Read the CSR matrix of counts or levels under a key of a pickled dict, without unpickling it.

    Files of Python 2 and 3 are read, plain or gzipped. All else in them is left aside.

    Parameters
    ----------
    path : Path
        The file.
    key : str
        Key of the matrix.

    Returns
    -------
    Observed
        Cells in the order of the file, without labels.
    """
    try:
        with open_binary(path) as file:
            contents = file.read(MAX_BYTES + 1)
        if len(contents) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES:,} bytes")
        loaded = StackMachine().run(contents)
        if not isinstance(loaded, dict) or key not in loaded:
            raise ValueError(f"no dict with {key!r}")
        matrix = loaded[key]
        if not isinstance(matrix, Named) or matrix.name not in MATRICES or not isinstance(matrix.state, dict):
            raise ValueError(f"no CSR matrix as {key!r}")
        state = matrix.state
        shape = state.get("_shape", state.get("shape"))
        if not isinstance(shape, tuple) or len(shape) != 2 or not all(type(size) is int and size > 0 for size in shape):
            raise ValueError("a matrix without a shape")
        indptr, indices, data = (checked_array(state.get(name), name) for name in ("indptr", "indices", "data"))
        if indptr.dtype.kind != "i" or indices.dtype.kind != "i":
            raise ValueError("indices that are no whole numbers")
        if indptr.size != shape[0] + 1 or indptr[0] != 0 or indptr[-1] != indices.size or (np.diff(indptr) < 0).any():
            raise ValueError("row pointers that do not fit the rows")
        if data.size != indices.size:
            raise ValueError(f"{data.size} values for {indices.size} cells")
        if indices.size and not 0 <= indices.min() <= indices.max() < shape[1]:
            raise ValueError(f"columns from {indices.min()} to {indices.max()}, of {shape[1]}")
        if not (np.isfinite(data).all() and (data > 0).all() and (data == np.floor(data)).all()):
            raise ValueError("values that are no whole numbers above 0")
    except (ValueError, OverflowError, struct.error, *UNREADABLE) as error:
        raise DataError(
            f"{path} must be a pickled dict with a SciPy CSR matrix as {key!r}, and name nothing but classes of NumPy, "
            "SciPy and pandas.",
            found=f"otherwise: {error}",
            remedy="Download the file again from its authors.",
        ) from None
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    return Observed.from_cells(rows, indices.astype(np.int64), data.astype(np.float64), shape)


def checked_array(array: Any, name: str) -> np.ndarray:
    """The vector that a file describes: its shape, the type of its numbers, and its bytes."""
    if not isinstance(array, Named) or array.name not in ARRAYS:
        raise ValueError(f"no array as {name}")
    state = array.state
    if not isinstance(state, tuple) or len(state) != 5:
        raise ValueError(f"an array without contents as {name}")
    _, shape, dtype, _, raw = state
    codes = dtype.args if isinstance(dtype, Named) and dtype.name == "numpy.dtype" else None
    order = dtype.state[1] if codes and isinstance(dtype.state, tuple) and len(dtype.state) > 1 else None
    if not codes or codes[0] not in NUMBERS or order not in ("<", ">"):
        raise ValueError(f"{name} of another type than whole or floating-point numbers of 4 or 8 bytes")
    if isinstance(raw, Named) and raw.name == "_codecs.encode" and raw.args:  # bytes that Python 3 wrote as Python 2
        raw = raw.args[0]
    raw = raw.encode("latin-1") if isinstance(raw, str) else raw
    kind = np.dtype(f"{order}{codes[0]}")
    if not isinstance(raw, bytes) or not isinstance(shape, tuple) or shape != (len(raw) // kind.itemsize,):
        raise ValueError(f"{name} of another size than its bytes")
    if len(raw) % kind.itemsize:
        raise ValueError(f"{name} of half a number")
    return np.frombuffer(raw, kind)

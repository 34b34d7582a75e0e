"""Array namespaces, so that a rule is written once for every engine; and specifications of arrays in files."""

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Entries of a part of a long array that is gone through in parts.
ENTRIES_PER_PART = 1 << 21


def in_parts(*arrays: Array | None) -> Iterator[tuple[Any, ...]]:
    """Arrays of one length in parts, for what needs an entry at a time; None stays None.

    Of arrays that are mapped from files, no more than a part is in memory.
    """
    given = [array for array in arrays if array is not None]
    maps: list[Any] = [array.base for array in given if isinstance(array.base, mmap.mmap)]
    size = given[0].size
    for start in range(0, size, ENTRIES_PER_PART):
        part = slice(start, start + ENTRIES_PER_PART)
        yield tuple(None if array is None else array[part] for array in arrays)
        for one in maps:
            if hasattr(mmap, "MADV_DONTNEED"):
                one.madvise(mmap.MADV_DONTNEED)


def namespace(x: Any) -> Any:
    """The module with `log`, `exp`, `maximum`, `where` for `x`: NumPy for its arrays, else the array's own library."""
    if isinstance(x, np.ndarray | np.generic | float | int):
        return np
    from sklearn.externals.array_api_compat import array_namespace

    return array_namespace(x)


def beside(x: Any, array: Any) -> Any:
    """Numbers as an array of the library, the device and the precision of `x`."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(array, dtype=x.dtype)
    return namespace(x).asarray(array, dtype=x.dtype, device=x.device)


def special(name: str, x: Any) -> Any:
    """A function of `scipy.special`, for arrays of any library: its own, or SciPy's by way of the host."""
    import scipy.special

    function = getattr(scipy.special, name)
    if isinstance(x, np.ndarray | np.generic | float | int):
        return function(x)
    xp = namespace(x)
    if type(x).__module__ == "torch":
        return getattr(xp.special, name)(x)
    from sklearn.externals.array_api_compat import to_device

    host = np.from_dlpack(to_device(x, xp.__array_namespace_info__().default_device()))
    return xp.asarray(np.asarray(function(host), dtype=host.dtype), device=x.device)


def floored(x: Any, root: float) -> Any:
    """x, but nowhere below the smallest normal number to the power 1 / `root`.

    Divisions by x up to the power root / 2 then neither fail nor overflow, and a product with a zero stays zero.
    """
    least = smallest(x) ** (1.0 / root)
    return np.maximum(x, least) if isinstance(x, np.ndarray | np.generic) else namespace(x).clip(x, least, None)


def smallest(x: Any) -> float:
    """The smallest normal number of the precision of `x`."""
    return float(namespace(x).finfo(x.dtype).smallest_normal)


@dataclass(frozen=True)
class ArraySpec:
    """Requirements on an array that is read from a file.

    Parameters
    ----------
    kind : str
        Accepted kinds of dtype, as in `numpy.dtype.kind`: "f", "iu", "U".
    shape : tuple of (str or int)
        The size of each axis: a number; a symbol such as "rows", which stands for one size throughout a file; or a
        symbol plus or minus a number, such as "rows+1"; "*" for any size.
    low : float, default=None
        Smallest allowed value. NaN is within no bounds.
    high : float or str, default=None
        Largest allowed value. A symbol means that values are indices, and must be below its size.
    finite : bool, default=True
        Whether NaN and infinities are refused.
    rising : bool, default=False
        Whether values must increase strictly along the last axis.
    sorted : bool, default=False
        Whether values must not decrease along the last axis.
    optional : bool, default=False
        Whether the array may be absent; None stands for it then.
    small : bool, default=False
        Whether numbers may have one byte or two.
    """

    kind: str
    shape: tuple[str | int, ...]
    low: float | None = None
    high: float | str | None = None
    finite: bool = True
    rising: bool = False
    sorted: bool = False
    optional: bool = False
    small: bool = False

    def check(self, name: str, array: Any, sizes: dict[str, int]) -> None:
        """Refuse an array that does not meet the requirements.

        Parameters
        ----------
        name : str
            What to call the array in messages.
        array : ndarray
            The array.
        sizes : dict of str to int
            Sizes of the symbols so far. A symbol that is not in it is added.

        Raises
        ------
        ValueError
            If the type, the number of axes, a size, a value or the order is wrong.
        """
        is_usable = isinstance(array, np.ndarray) and array.dtype.isnative and array.dtype.kind in self.kind
        if not is_usable or (array.dtype.kind in "iuf" and array.dtype.itemsize < 4 and not self.small):
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"{name} must be an array of kind {self.kind!r}. Found {found}.")
        if array.ndim != len(self.shape):
            raise ValueError(f"{name} must have {len(self.shape)} axes. Found {array.ndim}.")
        bound = dict(sizes)
        for size, wanted in zip(array.shape, self.shape, strict=True):
            if wanted == "*":
                continue
            symbol, offset = _symbol_and_offset(wanted)
            expected = offset if symbol is None else bound.setdefault(symbol, max(size - offset, 0)) + offset
            if size != expected:
                raise ValueError(f"{name} must have the size {expected} ({wanted}) along an axis. Found {size}.")
        if self.finite and array.dtype.kind in "fc" and not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite. Found {array[~np.isfinite(array)].flat[0]}.")
        high = bound.get(self.high, 0) - 1 if isinstance(self.high, str) else self.high
        if self.low is not None and not np.all(array >= self.low):
            raise ValueError(f"{name} must be {self.low:g} or larger. Found {array[~(array >= self.low)].flat[0]}.")
        if high is not None and not np.all(array <= high):
            raise ValueError(f"{name} must be {high:g} or smaller. Found {array[~(array <= high)].flat[0]}.")
        if self.rising and not np.all(array[..., 1:] > array[..., :-1]):
            raise ValueError(f"{name} must increase along its last axis.")
        if self.sorted and not np.all(array[..., 1:] >= array[..., :-1]):
            raise ValueError(f"{name} must not decrease along its last axis.")
        sizes.update(bound)


def _symbol_and_offset(size: str | int) -> tuple[str | None, int]:
    """("rows", 1) of "rows+1", ("rows", 0) of "rows", (None, 3) of 3."""
    if isinstance(size, int):
        return None, size
    symbol = re.split(r"[+-]", size)[0]
    return symbol, int(size[len(symbol) :] or 0)

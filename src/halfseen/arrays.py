"""Which array library an array belongs to, so that a rule is written once for every engine."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def namespace(x: Any) -> Any:
    """The module with `log`, `exp`, `maximum`, `where` for `x`: NumPy for its arrays, else the array's own library."""
    if isinstance(x, np.ndarray | np.generic | float | int):
        return np
    from sklearn.externals.array_api_compat import array_namespace

    return array_namespace(x)


def floored(x: Any, root: float) -> Any:
    """x, but nowhere below the smallest normal number to the power 1 / `root`.

    Divisions by x up to the power root / 2 then neither fail nor overflow, and a product with a zero stays zero.
    """
    return namespace(x).maximum(x, smallest(x) ** (1.0 / root))


def smallest(x: Any) -> float:
    """The smallest normal number of the precision of `x`."""
    return float(namespace(x).finfo(x.dtype).smallest_normal)

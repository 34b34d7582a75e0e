"""What the best rank-one fit keeps of the data: the sums of rows and columns over the seen cells."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io import observe
from halfseen.io.reader import as_numbers
from halfseen.observed import Observed


class SumsOfRowsAndColumns(NamedTuple):
    """One sum a row, one sum a column."""

    rows: Array
    """The sum of each row."""
    columns: Array
    """The sum of each column."""


def marginals(X: Any, cell_weight: Any = None) -> SumsOfRowsAndColumns:
    """r_i = sum of c_ij X_ij over j,  s_j = sum of c_ij X_ij over i,  both over the seen cells, of weight c (or 1).

    The best rank-one fit depends on X through them, and on where X is seen, alone. X and
    `cell_weight`, the weights of its cells, are anything that `observe` reads.
    """
    return _marginals(_seen(X, cell_weight))


def conservation_gap(X: Any, w: Any, h: Any, cell_weight: Any = None) -> float:
    """max |f - d| / max(f, d) over the marginals d of the data X and f of the fit w h', both at the seen cells.

    It is 0 at the best fit and nowhere else: the one-body eta do not change in the projection  (section 2.1.3). It is
    1, the largest it can be, where a sum is 0 in either alone.

    Parameters
    ----------
    X : the data, whatever `observe` reads.
    w, h : the factors, a number a row and a number a column.
    cell_weight : how much each cell counts, as in `observe`; None: each once.
    """
    seen = _seen(X, cell_weight)
    w, h = _factor(w, "w", "row", seen.shape[0]), _factor(h, "h", "column", seen.shape[1])
    data = np.concatenate(_marginals(seen))
    with np.errstate(over="ignore"):
        fit = np.concatenate(_marginals(replace(seen, values=w[seen.row_of_cell()] * h[seen.indices])))
    larger = np.maximum(fit, data)
    return float(np.max(np.abs(fit - data)[larger > 0] / larger[larger > 0], initial=0.0))


def _marginals(seen: Observed) -> SumsOfRowsAndColumns:
    weighted = seen.values if seen.weights is None else seen.values * seen.weights.astype(np.float64)
    rows = np.bincount(seen.row_of_cell(), weighted, minlength=seen.shape[0])
    columns = np.bincount(seen.indices, weighted, minlength=seen.shape[1])
    if np.isinf(rows).any() or np.isinf(columns).any():
        raise DataError("Sums of rows and columns must be finite. Found inf. Divide X, and w with it, by a constant.")
    return SumsOfRowsAndColumns(rows, columns)


def _seen(X: Any, cell_weight: Any) -> Observed:
    seen = observe(X, unseen=None, cell_weight=cell_weight)
    if seen.unseen == "zero":
        raise DataError(
            'The sums of the fit are over seen cells, so unseen ones must be missing. Found unseen="zero". Pass the '
            "dense array, or observe the data again."
        )
    negative = np.flatnonzero(seen.values < 0)
    if negative.size:
        found = f"{seen.values[negative[0]]:g} at {seen.place(int(negative[0]))}"
        raise DataError(f"Cells of X must not be negative. Found {found}. Set it to NaN if it is unknown.")
    return seen


def _factor(values: Any, name: str, side: str, size: int) -> Array:
    factor = as_numbers(np.asarray(values)).astype(np.float64)
    if factor.shape not in ((size,), (size, 1)):
        raise DataError(
            f"{name} must hold one number for each of {size} {side}s. Found shape {factor.shape}. Check it."
        )
    bad = np.flatnonzero(~((factor >= 0) & (factor < np.inf)))
    if bad.size:
        raise DataError(
            f"{name} must be finite and not negative. Found {factor.flat[bad[0]]:g} at {side} {bad[0]}. Correct it."
        )
    return factor.ravel()

"""Natural and expectation parameters of a triple of matrices, and the way back.

A triple (X, Y, Z), divided by its total, is a distribution p on Omega, the cells of the L-shaped table [X Z; Y .],
where (k, l) <= (s, t) if k <= s and l <= t. Its parameters are tables of shape (I + N, J + M) with NaN on the missing
block. They say nothing of the total: who goes back passes it.
"""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import check_parameters, number
from halfseen.errors import DataError
from halfseen.geometry.triples import Triple
from halfseen.io.reader import as_numbers
from halfseen.labels import Places

ROUNDING = 1e-9


def natural_parameters(X: Any, Y: Any = None, Z: Any = None) -> Array:
    """theta, where p(k, l) = exp(sum of theta_st over (s, t) <= (k, l))  (Eq. 3).

    Hence theta_kl = log p(k, l) - log p(k-1, l) - log p(k, l-1) + log p(k-1, l-1), and every cell must be above 0.
    X, Y and Z are the parts of a `Triple`; None: an empty one.
    """
    triple = Triple.read(X, Y, Z)
    table = triple.joined()
    _refuse(table == 0, table, "Cells of [X Z; Y .] must be above 0, as theta knows no 0", "Zeros have an eta only")
    log_p = np.log(table) - np.log(triple.total())
    return np.diff(np.diff(log_p, axis=0, prepend=0.0), axis=1, prepend=0.0)


def from_natural_parameters(theta: Any, shape: tuple[int, int], *, total: float = 1.0) -> Triple:
    """The triple whose X has this shape, with these natural parameters and this total  (Eq. 3).

    theta_11 follows from the others, as minus the normalisation psi(theta): what stands in its place is not used.
    """
    table = _parameters(theta, "theta", shape, total)
    log_p = table.cumsum(axis=0).cumsum(axis=1)
    p = np.exp(log_p - np.nanmax(log_p))
    return Triple.split(p * (total / np.nansum(p)), shape)


def expectation_parameters(X: Any, Y: Any = None, Z: Any = None) -> Array:
    """eta_kl = sum of p(s, t) over the (s, t) >= (k, l) in Omega  (section 2.1.2). Zeros are welcome.

    X, Y and Z are the parts of a `Triple`; None: an empty one.
    """
    triple = Triple.read(X, Y, Z)
    p = triple.joined(block=0.0) / triple.total()
    eta = p[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return Triple.split(eta, triple.X.shape).joined()


def from_expectation_parameters(eta: Any, shape: tuple[int, int], *, total: float = 1.0) -> Triple:
    """The triple whose X has this shape, with these expectation parameters and this total, by Moebius inversion:

    p(k, l) = eta_k,l - eta_k+1,l - eta_k,l+1 + eta_k+1,l+1,  where eta = 0 outside Omega.
    """
    table = _parameters(eta, "eta", shape, total)
    if abs(table[0, 0] - 1) > ROUNDING:
        raise DataError(f"eta_11 must be 1, the sum of p. Found {table[0, 0]:g}. Divide eta by it, and pass a total.")
    p = np.diff(np.diff(np.nan_to_num(table), axis=0, append=0.0), axis=1, append=0.0)
    _refuse(p < -ROUNDING, p, "The p that follows from eta must not be negative", "No triple has this eta: check it")
    return Triple.split(np.where(np.isnan(table), np.nan, total * p.clip(0.0)), shape)


def one_body(parameters: Any) -> Array:
    """Of a table of `parameters`, the theta_ij or eta_ij with i = 1 or j = 1, in row order."""
    parameters = _table(parameters)
    chosen = ~np.isnan(parameters)
    chosen[1:, 1:] = False
    return parameters[chosen]


def two_body(parameters: Any) -> Array:
    """Of a table of `parameters`, the theta_ij or eta_ij with i != 1 and j != 1, in row order."""
    inner = _table(parameters)[1:, 1:]
    return inner[~np.isnan(inner)]


def _table(values: Any) -> Array:
    table = as_numbers(np.asarray(values))
    if table.ndim != 2:
        raise DataError(f"Parameters must be a table. Found shape {table.shape}. Pass what the functions here return.")
    return table


def _parameters(values: Any, name: str, shape: tuple[int, int], total: float) -> Array:
    """A table of finite parameters, but for NaN exactly where X of this shape leaves the missing block."""
    check_parameters({"total": total}, {"total": number(0.0, above=True)})
    table = as_numbers(np.asarray(values))
    if table.ndim != 2 or len(shape) != 2 or not (0 < shape[0] <= table.shape[0] and 0 < shape[1] <= table.shape[1]):
        raise DataError(f"{name} must be a table around an X of shape {shape}. Found shape {table.shape}. Check both.")
    missing = np.zeros(table.shape, dtype=bool)
    missing[shape[0] :, shape[1] :] = True
    wrong = np.where(missing, ~np.isnan(table), ~np.isfinite(table))
    _refuse(wrong, table, f"{name} must be NaN on the missing block and finite elsewhere", "Check the shape of X")
    return table


def _refuse(bad: Array, table: Array, must: str, remedy: str) -> None:
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        raise DataError(f"{must}. Found {table[row, column]:g} at {Places().of(row, column)}. {remedy}.")

"""Information geometry of rank one (Ghalamkari & Sugiyama, AISTATS 2022, section 2.1).

A triple of matrices (X, Y, Z), divided by its total, is a distribution p on Omega, the cells of the L-shaped table
[X Z; Y .], where (k, l) <= (s, t) if k <= s and l <= t. Its natural and expectation parameters are tables of shape
(I + N, J + M) with NaN on the missing block. They do not contain the total.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io import observe
from halfseen.io.reader import as_numbers
from halfseen.labels import Places
from halfseen.observed import Observed, as_values
from halfseen.validation import check_parameters, number

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
#: What `observe` reads, frames among the array-likes.
Data: TypeAlias = MatrixLike | Observed | PathLike[str]

_ROUNDING = 1e-9


class Triple(NamedTuple):
    """Three matrices X (I, J), Y (N, J), which shares its columns, and Z (I, M), which shares its rows.

    Together they are the cells of a table whose last block is missing:

        X  Z
        Y  .
    """

    X: Any
    """Matrix of shape (I, J)."""
    Y: Any
    """Matrix of shape (N, J), below X."""
    Z: Any
    """Matrix of shape (I, M), beside X."""

    @classmethod
    def read(cls, X: MatrixLike, Y: MatrixLike | None = None, Z: MatrixLike | None = None) -> Triple:
        """Check X, Y and Z, dense or sparse, without missing or negative cells; None is an empty matrix."""
        X = _as_matrix(X, "X")
        rows, columns = X.shape
        if not (rows and columns):
            raise DataError("X must have a row and a column.", found=f"shape {X.shape}",
                            remedy="Pass Y or Z as X if it is all.", parameter="X")  # fmt: skip
        Y = np.empty((0, columns), X.dtype) if Y is None else _as_matrix(Y, "Y")
        Z = np.empty((rows, 0), X.dtype) if Z is None else _as_matrix(Z, "Z")
        for name, shape, axis, size, other in (("Y", Y.shape, 1, columns, "Z"), ("Z", Z.shape, 0, rows, "Y")):
            if shape[axis] != size:
                raise DataError(f"{name} must have {size} {('rows', 'columns')[axis]} like X.", found=f"shape {shape}",
                                remedy=f"Transpose {name}, or pass it as {other}.", parameter=name)  # fmt: skip
        return cls(X, Y, Z)

    def total(self) -> float:
        """S(X) + S(Y) + S(Z)."""
        with np.errstate(over="ignore"):
            total = float(sum(matrix.sum(dtype=np.float64) for matrix in self))
        if not 0 < total < np.inf:
            must = "The sum of X, Y and Z must be finite and above 0."
            raise DataError(must, found=f"{total:g}", remedy="Rescale all three.")
        return total

    def joined(self, block: ArrayLike = np.nan) -> Array:
        """The table [X Z; Y block] in double precision."""
        x, y, z = (matrix.toarray() if sparse.issparse(matrix) else matrix for matrix in self)
        filled = np.broadcast_to(block, (y.shape[0], z.shape[1]))
        table: Array = np.block([[x, z], [y, filled]]).astype(np.float64, copy=False)
        return table

    @classmethod
    def split(cls, table: Array, shape: tuple[int, int]) -> Triple:
        """The triple of a table, whose X has this shape."""
        rows, columns = shape
        return cls(table[:rows, :columns], table[rows:, :columns], table[:rows, columns:])


def _as_matrix(values: Any, name: str) -> Any:
    """A checked matrix: float32 stays float32, everything else becomes float64; sparse becomes COO."""
    is_sparse = sparse.issparse(values)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        matrix: Any = values.tocoo() if is_sparse else np.asarray(values)
    except ValueError:
        raise DataError(f"The rows of {name} must be of one length.", found="different ones", remedy="Make them equal.",
                        parameter=name) from None  # fmt: skip
    if matrix.ndim != 2:
        found = f"shape {matrix.shape}" if matrix.ndim else f"a {type(values).__name__}"
        raise DataError("must have rows and columns.", found=found, remedy="Pass an array of two axes.", parameter=name)
    if is_sparse:
        matrix = sparse.coo_array((as_values(matrix.data), matrix.coords), shape=matrix.shape)
    else:
        matrix = as_numbers(matrix)
    numbers = matrix.data if is_sparse else matrix
    if not (numbers.min(initial=0.0) >= 0 and numbers.max(initial=0.0) < np.inf):  # so NaN does not pass
        cells = sparse.coo_array(matrix)
        first = int(np.argmax(~((cells.data >= 0) & (cells.data < np.inf))))
        place = Places().of(*(int(position[first]) for position in cells.coords))
        raise DataError(f"Cells of {name} must be finite and not negative.", found=f"{cells.data[first]:g}",
                        where=f"at {place}", remedy="Correct it, or use `RankOneNMF` if it is a hole.",
                        parameter=name)  # fmt: skip
    return matrix


def natural_parameters(X: MatrixLike, Y: MatrixLike | None = None, Z: MatrixLike | None = None) -> Array:
    """Natural parameters theta, where p(k, l) = exp(sum of theta_st over (s, t) <= (k, l))  (Eq. 3).

    Hence theta_kl = log p(k, l) - log p(k-1, l) - log p(k, l-1) + log p(k-1, l-1), and every cell must be above 0.

    Parameters
    ----------
    X, Y, Z : array-like or sparse matrix
        Matrices of a `Triple`. None is an empty one.

    Returns
    -------
    ndarray of shape (I + N, J + M)
        theta, NaN on the missing block.
    """
    triple = Triple.read(X, Y, Z)
    table = triple.joined()
    must = "Cells of [X Z; Y .] must be above 0, as theta is infinite at 0."
    _check_cells(table == 0, table, must, "Use `expectation_parameters`, which are finite.")
    log_p = np.log(table) - np.log(triple.total())
    return np.diff(np.diff(log_p, axis=0, prepend=0.0), axis=1, prepend=0.0)


def from_natural_parameters(theta: ArrayLike, shape: tuple[int, int], *, total: float = 1.0) -> Triple:
    """Triple with given natural parameters  (Eq. 3).

    theta_11 follows from the others, as minus the normalization psi(theta): its given value is not used.

    Parameters
    ----------
    theta : array-like of shape (I + N, J + M)
        Natural parameters, NaN on the missing block.
    shape : tuple of int
        Shape (I, J) of X.
    total : float, default=1.0
        Sum of all cells.

    Returns
    -------
    Triple
    """
    table = _as_parameters(theta, "theta", shape, total)
    log_p = table.cumsum(axis=0).cumsum(axis=1)
    p = np.exp(log_p - np.nanmax(log_p))
    return Triple.split(p * (total / np.nansum(p)), shape)


def expectation_parameters(X: MatrixLike, Y: MatrixLike | None = None, Z: MatrixLike | None = None) -> Array:
    """Expectation parameters eta_kl = sum of p(s, t) over the (s, t) >= (k, l) in Omega  (section 2.1.2).

    Parameters
    ----------
    X, Y, Z : array-like or sparse matrix
        Matrices of a `Triple`, which may have zeros. None is an empty one.

    Returns
    -------
    ndarray of shape (I + N, J + M)
        eta, NaN on the missing block.
    """
    triple = Triple.read(X, Y, Z)
    p = triple.joined(block=0.0) / triple.total()
    eta = p[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return Triple.split(eta, triple.X.shape).joined()


def from_expectation_parameters(eta: ArrayLike, shape: tuple[int, int], *, total: float = 1.0) -> Triple:
    """Triple with given expectation parameters, by Moebius inversion:

    p(k, l) = eta_k,l - eta_k+1,l - eta_k,l+1 + eta_k+1,l+1,  where eta = 0 outside Omega.

    Parameters
    ----------
    eta : array-like of shape (I + N, J + M)
        Expectation parameters, NaN on the missing block.
    shape : tuple of int
        Shape (I, J) of X.
    total : float, default=1.0
        Sum of all cells.

    Returns
    -------
    Triple
    """
    table = _as_parameters(eta, "eta", shape, total)
    if abs(table[0, 0] - 1) > _ROUNDING:
        raise DataError("eta_11 must be 1, the sum of p.", found=f"{table[0, 0]:g}",
                        remedy="Divide eta by it, and pass a total.", parameter="eta")  # fmt: skip
    p = np.diff(np.diff(np.nan_to_num(table), axis=0, append=0.0), axis=1, append=0.0)
    must = "The p that follows from eta must not be negative."
    _check_cells(p < -_ROUNDING, p, must, "No triple has this eta: check it.")
    return Triple.split(np.where(np.isnan(table), np.nan, total * p.clip(0.0)), shape)


def one_body(parameters: ArrayLike) -> Array:
    """One-body parameters: the theta_ij or eta_ij with i = 1 or j = 1, in row order.

    Parameters
    ----------
    parameters : array-like of shape (I + N, J + M)
        Natural or expectation parameters, NaN on the missing block.

    Returns
    -------
    ndarray of one axis
    """
    table = _as_table(parameters)
    chosen = ~np.isnan(table)
    chosen[1:, 1:] = False
    return table[chosen]


def two_body(parameters: ArrayLike) -> Array:
    """Two-body parameters: the theta_ij or eta_ij with i != 1 and j != 1, in row order.

    Parameters
    ----------
    parameters : array-like of shape (I + N, J + M)
        Natural or expectation parameters, NaN on the missing block.

    Returns
    -------
    ndarray of one axis
    """
    inner = _as_table(parameters)[1:, 1:]
    return inner[~np.isnan(inner)]


def _as_table(values: ArrayLike) -> Array:
    table = as_numbers(np.asarray(values))
    if table.ndim != 2:
        raise DataError("Parameters must be a table.", found=f"shape {table.shape}",
                        remedy="Pass what the functions here return.", parameter="parameters")  # fmt: skip
    return table


def _as_parameters(values: ArrayLike, name: str, shape: tuple[int, int], total: float) -> Array:
    """A table of parameters, NaN exactly on the block that an X of this shape leaves missing."""
    check_parameters({"total": total}, {"total": number(0.0, above=True)})
    table = as_numbers(np.asarray(values))
    if table.ndim != 2 or len(shape) != 2 or not (0 < shape[0] <= table.shape[0] and 0 < shape[1] <= table.shape[1]):
        raise DataError(f"must be a table around an X of shape {shape}.", found=f"shape {table.shape}",
                        remedy="Check both.", parameter=name)  # fmt: skip
    missing = np.zeros(table.shape, dtype=bool)
    missing[shape[0] :, shape[1] :] = True
    wrong = np.where(missing, ~np.isnan(table), ~np.isfinite(table))
    must = f"{name} must be NaN on the missing block and finite elsewhere."
    _check_cells(wrong, table, must, "Check the shape of X.")
    return table


def _check_cells(wrong: Array, table: Array, must: str, remedy: str) -> None:
    """Refuse the first wrong cell of a table."""
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        raise DataError(must, found=f"{table[row, column]:g}", where=f"at {Places().of(row, column)}", remedy=remedy)


def is_simultaneously_rank_one(
    X: MatrixLike, Y: MatrixLike | None = None, Z: MatrixLike | None = None, *, tol: float = _ROUNDING
) -> bool:
    """Whether X = w h', Y = a h', Z = w b' for some w, h, a, b: all two-body theta are 0  (Proposition 1).

    Parameters
    ----------
    X, Y, Z : array-like or sparse matrix
        Matrices of a `Triple`, with all cells above 0. None is an empty one.
    tol : float, default=1e-9
        Largest absolute theta. As a two-body theta is the log odds ratio of four adjacent cells, this is a relative
        error of cells.

    Returns
    -------
    bool
    """
    check_parameters({"tol": tol}, {"tol": number(0.0)})
    return bool((np.abs(two_body(natural_parameters(X, Y, Z))) <= tol).all())


def expectations_factorize(
    X: MatrixLike, Y: MatrixLike | None = None, Z: MatrixLike | None = None, *, tol: float = _ROUNDING
) -> bool:
    """Whether e_ij = e_i1 e_1j: rank one by expectation parameters, which allow zeros  (Proposition 2, corrected).

    Here e is the eta of the full table [X Z; Y U] with U_nm = (sum of row n of Y) (sum of column m of Z) / S(X), the
    only block that rank one allows. Without a missing block (N = 0 or M = 0) e is eta, as the paper prints it.
    With one, eta_ij = eta_i1 eta_1j as printed holds for no positive triple of rank one, save those with I = J = 1:
    its proof splits a sum over Omega into a product of two sums, and an L-shaped Omega has no such split.

    Parameters
    ----------
    X, Y, Z : array-like or sparse matrix
        Matrices of a `Triple`. None is an empty one.
    tol : float, default=1e-9
        Largest relative difference.

    Returns
    -------
    bool
    """
    check_parameters({"tol": tol}, {"tol": number(0.0)})
    triple = Triple.read(X, Y, Z)
    p = Triple.split(triple.joined() / triple.total(), triple.X.shape)
    if not p.X.any():
        raise DataError("X must have a cell above 0, because U divides by its sum.", found="only 0",
                        remedy="Judge Y and Z alone.", parameter="X")  # fmt: skip
    block = np.outer(p.Y.sum(axis=1), p.Z.sum(axis=0)) / p.X.sum()
    e = expectation_parameters(p.joined(block))
    product = np.outer(e[:, 0], e[0])
    return bool((np.abs(e - product) <= tol * np.maximum(e, product)).all())


class SumsOfRowsAndColumns(NamedTuple):
    """Row sums and column sums."""

    rows: Array
    """Sum of each row."""
    columns: Array
    """Sum of each column."""


def marginals(X: Data, cell_weight: Data | None = None) -> SumsOfRowsAndColumns:
    """Marginals r_i = sum of c_ij X_ij over j,  s_j = sum of c_ij X_ij over i,  over the observed cells.

    The best rank-one fit depends on X only through them and through which cells are observed.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path or Observed
        Data, as for `observe`.
    cell_weight : as X, default=None
        Weights c of the cells; 1 if None.

    Returns
    -------
    SumsOfRowsAndColumns
    """
    return _marginals(_observe(X, cell_weight))


def conservation_gap(X: Data, w: ArrayLike, h: ArrayLike, cell_weight: Data | None = None) -> float:
    """max |f - d| / max(f, d) over the marginals d of the data X and f of the fit w h', both at the observed cells.

    It is 0 at the best fit and nowhere else: the projection conserves the one-body eta  (section 2.1.3). It is 1, its
    largest value, where only one of the two sums is 0.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path or Observed
        Data, as for `observe`.
    w : array-like of shape (n,) or (n, 1)
        Factor of the rows.
    h : array-like of shape (m,) or (m, 1)
        Factor of the columns.
    cell_weight : as X, default=None
        Weights of the cells; 1 if None.

    Returns
    -------
    float
    """
    observed = _observe(X, cell_weight)
    w, h = _as_factor(w, "w", "row", observed.shape[0]), _as_factor(h, "h", "column", observed.shape[1])
    data = np.concatenate(_marginals(observed))
    with np.errstate(over="ignore"):
        values = w[observed.row_of_cell()] * h[observed.indices]
        fit = np.concatenate(_marginals(replace(observed, values=values)))
    larger = np.maximum(fit, data)
    return float(np.max(np.abs(fit - data)[larger > 0] / larger[larger > 0], initial=0.0))


def _marginals(observed: Observed) -> SumsOfRowsAndColumns:
    weighted = observed.values if observed.weights is None else observed.values * observed.weights.astype(np.float64)
    rows = np.bincount(observed.row_of_cell(), weighted, minlength=observed.shape[0])
    columns = np.bincount(observed.indices, weighted, minlength=observed.shape[1])
    if np.isinf(rows).any() or np.isinf(columns).any():
        raise DataError("Sums of rows and columns must be finite.", found="inf",
                        remedy="Divide X, and w with it, by a constant.", parameter="X")  # fmt: skip
    return SumsOfRowsAndColumns(rows, columns)


def _observe(X: Data, cell_weight: Data | None) -> Observed:
    """Non-negative data whose unobserved cells are missing."""
    observed = observe(X, unseen=None, cell_weight=cell_weight)
    if observed.unseen == "zero":
        must = "The sums of the fit are over seen cells, so unseen ones must be missing."
        remedy = "Pass the dense array, or observe the data again."
        raise DataError(must, found='unseen="zero"', remedy=remedy, parameter="X")
    negative = np.flatnonzero(observed.values < 0)
    if negative.size:
        first = int(negative[0])
        raise DataError("Cells of X must not be negative.", found=f"{observed.values[first]:g}",
                        where=f"at {observed.place(first)}", remedy="Set it to NaN if it is unknown.",
                        parameter="X")  # fmt: skip
    return observed


def _as_factor(values: ArrayLike, name: str, side: str, size: int) -> Array:
    factor = as_numbers(np.asarray(values)).astype(np.float64)
    if factor.shape not in ((size,), (size, 1)):
        raise DataError(f"must hold one number for each of {size} {side}s.", found=f"shape {factor.shape}",
                        remedy="Check it.", parameter=name)  # fmt: skip
    wrong = np.flatnonzero(~((factor >= 0) & (factor < np.inf)))
    if wrong.size:
        raise DataError("must be finite and not negative.", found=f"{factor.flat[wrong[0]]:g}",
                        where=f"at {side} {wrong[0]}", remedy="Correct it.", parameter=name)  # fmt: skip
    return factor.ravel()

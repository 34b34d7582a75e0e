"""Closed forms of Ghalamkari & Sugiyama (2022): rank-one NMMF (Theorem 1), A1GM, and the em algorithm."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.rankone.exact_solution import Step, error_estimator, max_relative_change, objective
from halfseen.rankone.incomplete_tables import Table
from halfseen.rankone.information_geometry import MatrixLike, Triple
from halfseen.rankone.marginals import Marginals, ignore_overflow
from halfseen.validation import check_parameters, number


class SharedFactors(NamedTuple):
    """Factors of X ~ w h', Y ~ a h', Z ~ w b'."""

    w: Array
    """Factor of the rows of X and Z."""
    h: Array
    """Factor of the columns of X and Y."""
    a: Array
    """Factor of the rows of Y."""
    b: Array
    """Factor of the columns of Z."""


def rank_one_nmmf(
    X: MatrixLike, Y: MatrixLike | None = None, Z: MatrixLike | None = None, *, alpha: float = 1.0, beta: float = 1.0
) -> SharedFactors:
    """Minimize  D(X, w h') + alpha D(Y, a h') + beta D(Z, w b')  (Eq. 1 of [1]_) in closed form (Theorem 1):

        w_i = sqrt(S(X)) (sum of row i of X + beta sum of row i of Z) / (S(X) + beta S(Z))
        h_j = sqrt(S(X)) (sum of column j of X + alpha sum of column j of Y) / (S(X) + alpha S(Y))
        a_n = sum of row n of Y / sqrt(S(X)),    b_m = sum of column m of Z / sqrt(S(X))

    where D is the Kullback-Leibler divergence and S the sum of all cells: non-negative multiple matrix factorization at
    rank one. Without Y and Z it is the formula of [2]_.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (I, J)
        Non-negative matrix without missing cells, not all zero. Cells not stored in a sparse matrix are 0.
    Y : array-like or sparse matrix of shape (N, J), default=None
        Matrix that shares its columns with X.
    Z : array-like or sparse matrix of shape (I, M), default=None
        Matrix that shares its rows with X.
    alpha, beta : float, default=1.0
        Weights of Y and Z. With alpha = 0, Y does not influence h, but a is still the best for Y given h.

    Returns
    -------
    SharedFactors
        The factors w, h, a, b with S(w) = S(h); float32 if all matrices are, else float64. They stay optimal if w and a
        are multiplied by a number, and h and b divided by it.

    References
    ----------
    .. [1] K. Ghalamkari, M. Sugiyama, "Fast rank-1 NMF for missing data with KL divergence", AISTATS 2022.
    .. [2] N.-D. Ho, P. Van Dooren, "Non-negative matrix factorization with fixed row and column sums", Linear Algebra
       and its Applications 429, 2008.
    """
    check_parameters({"alpha": alpha, "beta": beta}, {"alpha": number(0.0), "beta": number(0.0)})
    alpha, beta = float(alpha), float(beta)
    triple = Triple.read(X, Y, Z)
    (x_rows, x_columns), (y_rows, y_columns), (z_rows, z_columns) = (
        _marginals(matrix, name) for matrix, name in zip(triple, "XYZ", strict=True)
    )
    total, y_total, z_total = (float(rows.sum()) for rows in (x_rows, y_rows, z_rows))
    if total == 0:
        raise DataError("X must have a cell above 0, as its sum divides.", found="only 0",
                        remedy="Factorize Y and Z on their own.", parameter="X")  # fmt: skip
    root = np.sqrt(total)
    rows, columns = _mean(x_rows, z_rows, beta), _mean(x_columns, y_columns, alpha)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        w = root * (rows / _mean(total, z_total, beta))
        h = root * (columns / _mean(total, y_total, alpha))
        dtype = np.result_type(*(matrix.dtype for matrix in triple))
        factors = SharedFactors(*(factor.astype(dtype) for factor in (w, h, y_rows / root, z_columns / root)))
    for name, factor, sums in zip(factors._fields, factors, (rows, columns, y_rows, z_columns), strict=True):
        out_of_range = ~np.isfinite(factor) | ((factor == 0) & (sums > 0))
        if out_of_range.any():
            first = int(np.argmax(out_of_range))
            raise DataError(f"{name} must lie in the range of {factor.dtype}.", found=f"{factor[first]:g}",
                            where=f"at position {first}", remedy="Bring X, Y and Z to similar scales.")  # fmt: skip
    return factors


def _marginals(matrix: Any, name: str) -> tuple[Array, Array]:
    """Row and column sums in double precision."""
    if sparse.issparse(matrix):
        matrix = matrix.astype(np.float64)  # else scipy would add up in float32
    with np.errstate(over="ignore"):
        rows, columns = (matrix.sum(axis=axis, dtype=np.float64) for axis in (1, 0))
        if rows.sum() == np.inf:
            raise DataError(f"The sum of {name} must be finite.", found="inf",
                            remedy="Divide X, Y and Z by a large number.", parameter=name)  # fmt: skip
    return rows, columns


def _mean(x: Any, other: Any, weight: float) -> Any:
    """(x + weight * other) / (1 + weight): numerators and denominators of Theorem 1, prevented from overflowing."""
    return x / (1 + weight) + other * (weight / (1 + weight))


class GridLikeFit(NamedTuple):
    """Result of A1GM: the factors, and (cells treated as missing) / (missing cells), which is 1 if the fit is exact."""

    step: Step
    increase_rate: float


def a1gm(table: Table, threads: Threads) -> GridLikeFit:
    """Fit by A1GM (Algorithm 1 of Ghalamkari & Sugiyama, 2022): the closed form for grid-like missing cells.

    Where rows with missing cells meet columns with missing cells, all cells are treated as missing: then they are
    grid-like (Definition 1). Sorted to the end, they leave X (complete rows and columns), Y below it and Z beside it,
    for which Theorem 1 gives the best factors. Only sums are needed, so nothing is sorted.
    """
    marginals, rows = table.marginals, table.incomplete_rows
    (r, c), n = marginals.sums, marginals.row_sums.size
    m, remedy = c.size, 'Use `method="exact"`, which takes any '
    incomplete = np.arange(r.size) < rows.size if marginals.merged is not None else np.isin(np.arange(n), rows)
    complete = (marginals.counts[1] == n) | (marginals.unseen == "zero")
    n_incomplete = m - int(complete.sum())
    if rows.size == n or n_incomplete == m:
        axis = ("row", "column")[marginals.axes[0 if rows.size == n else 1]]
        raise DataError("A1GM must find a row and a column without a hole.", found=f"a hole in every {axis}",
                        remedy=f"{remedy}holes.", parameter="method")  # fmt: skip
    beside, above = table.block_sums(rows, complete)
    total = float(above[complete].sum())
    if total == 0.0 and marginals.total > 0:
        raise DataError("A1GM must find a value above 0 where rows and columns without holes meet.", found="none there",
                        remedy=f"{remedy}zeros.", parameter="method")  # fmt: skip
    # Theorem 1, with w divided and h multiplied by the root of S(X), which might make small numbers underflow; r and c
    # of complete rows and columns are already the sums over X and Z, and over X and Y.
    w = r / (total + float(above[~complete].sum()) or 1.0)
    w[incomplete] = beside / (total or 1.0)
    h = np.where(complete, c * (total / (total + float(beside.sum()) or 1.0)), above)
    if ((w == 0) & (r > 0)).any() or ((h == 0) & (c > 0)).any():
        raise DataError(
            "A1GM must find a value above 0 in every row and column that has one, outside the block where rows and "
            "columns with holes meet.",
            found="one that has none there", remedy='Use `method="exact"`, which uses all cells.', parameter="method",
        )  # fmt: skip
    mass = float((w * marginals.weights.matvec(h, threads)).sum())
    with ignore_overflow():
        step = Step((w, h), objective((w, h), marginals, mass), distance=0.0)
    n_missing = n * m - int(marginals.counts[0].sum())
    return GridLikeFit(step, rows.size * n_incomplete / n_missing if n_incomplete else 1.0)


def em(marginals: Marginals, threads: Threads, tol: float) -> Iterator[Step]:
    """Fit by the em algorithm (section 2.2.2): fill the missing cells, take the best rank-one matrix, fill again.

        e-step:  missing cells become w_i h_j
        m-step:  w = row sums / sqrt(total),  h = column sums / sqrt(total)

    The filled matrix is never made: its row sums are those of the observed cells plus w_i times the sum of h over the
    row's missing cells. These start at the mean. Stops when the estimated distance is at most `tol`.
    """
    (r, c), weights = marginals.sums, marginals.weights
    # Rows of sum 0 do not take part: with an observed zero they become 0, without one they would stay at their start.
    w, h = ((sums > 0).astype(np.float64) for sums in marginals.sums)
    size = np.sqrt(marginals.total / max(int(marginals.counts[0].sum()), 1))
    w, h = w * size, h * size
    if marginals.merged is not None:
        w = w * np.bincount(marginals.merged.group, minlength=w.size)
    estimate_error = error_estimator()
    exposures = weights.matvec(h, threads)
    while True:
        with ignore_overflow():
            rows = r + w * (h.sum() - exposures)
            columns = c + h * (w.sum() - weights.rmatvec(w, threads))
            total = rows.sum()
            new = rows / np.sqrt(total), columns / np.sqrt(total)
            if not total > 0:
                new = np.zeros_like(rows), np.zeros_like(columns)
            distance, _ = estimate_error(max_relative_change((w, h), new))
            w, h = new
            exposures = weights.matvec(h, threads)
            step = Step(new, objective(new, marginals, float((w * exposures).sum())), distance)
        yield step
        if distance <= tol:
            return

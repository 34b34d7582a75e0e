"""Three matrices that share factors, factorized at rank one in closed form."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from halfseen.arrays import Array
from halfseen.checks import check_parameters, number
from halfseen.errors import DataError
from halfseen.geometry.triples import Triple


class SharedFactors(NamedTuple):
    """X is w h', Y is a h', Z is w b', as nearly as can be."""

    w: Array
    """Of the rows of X and Z."""
    h: Array
    """Of the columns of X and Y."""
    a: Array
    """Of the rows of Y."""
    b: Array
    """Of the columns of Z."""


class _Sums(NamedTuple):
    """The sums of one matrix, in double precision."""

    rows: Array
    columns: Array
    total: float


def rank_one_nmmf(X: Any, Y: Any = None, Z: Any = None, *, alpha: float = 1.0, beta: float = 1.0) -> SharedFactors:
    """The minimum of  D(X, w h') + alpha D(Y, a h') + beta D(Z, w b')  (Eq. 1) in closed form  (Theorem 1):

        w_i = sqrt(S(X)) (sum of row i of X + beta sum of row i of Z) / (S(X) + beta S(Z))
        h_j = sqrt(S(X)) (sum of column j of X + alpha sum of column j of Y) / (S(X) + alpha S(Y))
        a_n = sum of row n of Y / sqrt(S(X)),    b_m = sum of column m of Z / sqrt(S(X))

    where D is Kullback and Leibler's divergence and S the sum of all cells. Non-negative multiple matrix factorization
    at rank one (Ghalamkari & Sugiyama 2022); without Y and Z, the formula of Ho & Van Dooren (2008).

    Parameters
    ----------
    X, Y, Z : matrices of shapes (I, J), (N, J), (I, M), dense or sparse (what is not stored is 0), without holes. Y and
        Z may be None. Zeros are welcome, as long as X is not all zero.
    alpha, beta : how much Y and Z count. With alpha = 0, Y says nothing about h, but a is still the best for Y given h.

    Returns
    -------
    SharedFactors (w, h, a, b), with S(w) = S(h). They stay the best if w and a are multiplied by a number, and h and b
    divided by it. float32 if all matrices are, else float64.
    """
    check_parameters({"alpha": alpha, "beta": beta}, {"alpha": number(0.0), "beta": number(0.0)})
    alpha, beta = float(alpha), float(beta)
    triple = Triple.read(X, Y, Z)
    x, y, z = (_sums(part, name) for part, name in zip(triple, "XYZ", strict=True))
    if x.total == 0:
        raise DataError("X must have a cell above 0, as its sum divides. Found only 0. Factorize Y and Z on their own.")
    dtype = np.result_type(*(part.dtype for part in triple))
    root = np.sqrt(x.total)
    rows, columns = _mean(x.rows, z.rows, beta), _mean(x.columns, y.columns, alpha)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        w = root * (rows / _mean(x.total, z.total, beta))
        h = root * (columns / _mean(x.total, y.total, alpha))
        exact = SharedFactors(w, h, y.rows / root, z.columns / root)
        factors = SharedFactors(*(factor.astype(dtype) for factor in exact))
    _refuse_out_of_range(factors, SharedFactors(rows, columns, y.rows, z.columns))
    return factors


def _mean(x: Any, other: Any, weight: float) -> Any:
    """(x + weight * other) / (1 + weight): the two sums of a fraction of Theorem 1, kept from overflowing."""
    return x / (1 + weight) + other * (weight / (1 + weight))


def _sums(matrix: Any, name: str) -> _Sums:
    if sparse.issparse(matrix):
        matrix = matrix.astype(np.float64)  # else scipy would add up in float32
    with np.errstate(over="ignore"):
        rows, columns = (matrix.sum(axis=axis, dtype=np.float64) for axis in (1, 0))
        total = float(rows.sum())
    if total == np.inf:
        raise DataError(f"The sum of {name} must be finite. Found inf. Divide X, Y and Z by a large number.")
    return _Sums(rows, columns, total)


def _refuse_out_of_range(factors: SharedFactors, sums: SharedFactors) -> None:
    """Refuse a factor that is too large for its precision, or 0 where the data are not."""
    for name, factor, data in zip(factors._fields, factors, sums, strict=True):
        bad = ~np.isfinite(factor) | ((factor == 0) & (data > 0))
        if bad.any():
            first = int(np.argmax(bad))
            raise DataError(
                f"{name} must lie in the range of {factor.dtype}. Found {factor[first]:g} at position {first}. "
                "Bring X, Y and Z to similar scales."
            )

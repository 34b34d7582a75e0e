"""Closed forms of Ghalamkari & Sugiyama (2022): rank-one NMMF (Theorem 1) and A1GM, also of tensors; and em."""

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, sparse

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.io.reader import as_numbers
from halfseen.rankone.exact_solution import Step, error_estimator, max_relative_change, objective
from halfseen.rankone.incomplete_tables import Table
from halfseen.rankone.information_geometry import MatrixLike, Triple
from halfseen.rankone.marginals import Marginals, ignore_overflow, kron, safe_divide, sum_along_axes
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


class TensorFactors(NamedTuple):
    """Factors of tensors that share modes: the fit of each tensor is the outer product of its factors."""

    x: tuple[Array, ...]
    """Factors of X, one per axis, with equal sums."""
    others: tuple[tuple[Array, ...], ...]
    """Factors of each of the other tensors, one per axis; those of shared axes are those of X."""


def rank_one_nmtf(X: ArrayLike, *others: tuple[ArrayLike, Sequence[int | None], float]) -> TensorFactors:
    """Minimize  D(X, x_1 o ... o x_d) + sum over the others Y of weight * D(Y, y_1 o y_2 o ...)  in closed form:

        factor of axis k of X = S(X)^(1/d) (sums of X along k + sum of weight * sums of Y along k)
                                / (S(X) + sum of weight * S(Y))        over those Y that share axis k
        factor of an axis of Y alone = sums of Y along it, scaled so that the fit of Y has the sum S(Y)

    where D is the Kullback-Leibler divergence, o the outer product and S the sum of all cells: Theorem 1 of [1]_ for
    tensors, that is, non-negative multiple tensor factorization [2]_ at rank one. It holds because every Y has an axis
    of its own: then the sums of all tensors are conserved one by one. Where two tensors share an axis that X does not
    have, as the blocks around grid-like holes of a tensor do, see `RankOneNMF(method="a1gm")`.

    Parameters
    ----------
    X : array-like
        Non-negative tensor without missing cells, not all zero.
    *others : tuple of (array-like, sequence of int or None, float)
        A further tensor; for each of its axes the axis of X that it shares, or None for one of its own, of which it
        must have at least one; and its weight.

    Returns
    -------
    TensorFactors
        Factors of X and of the others, in double precision.

    References
    ----------
    .. [1] K. Ghalamkari, M. Sugiyama, "Fast rank-1 NMF for missing data with KL divergence", AISTATS 2022.
    .. [2] K. Takeuchi, R. Tomioka, K. Ishiguro, A. Kimura, H. Sawada, "Non-negative multiple tensor factorization",
       ICDM 2013.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X, Y = np.ones((2, 3, 4)), np.full((5, 3), 2.0)  # Y has rows of its own; its columns are the second axis of X
    >>> x, (y,) = hs.rank_one_nmtf(X, (Y, (None, 1), 0.5))
    >>> np.outer(*y)[0].round(6)
    array([2., 2., 2.])
    """
    x = read_tensor(X, "X")
    sums = [along.astype(np.float64) for along in sum_along_axes(x)]
    total, order = float(x.sum()), x.ndim
    if not 0 < total < np.inf:
        raise DataError("The sum of X must be finite and above 0.", found=f"{total:g}", parameter="X",
                        remedy="Factorize the others on their own, or rescale.")  # fmt: skip
    denominators = np.full(order, total)
    read: list[tuple[Array, tuple[int | None, ...]]] = []
    for number_, other in enumerate(others, 1):
        name = f"tensor {number_}"
        if not isinstance(other, tuple | list) or len(other) != 3:
            length = f" of length {len(other)}" if isinstance(other, tuple | list) else ""
            raise DataError(f"{name.capitalize()} must be a tuple (tensor, axes, weight).", parameter="others",
                            found=f"{type(other).__name__}{length}",
                            remedy="Give all three: `(Y, (None, 1), 1.0)`.")  # fmt: skip
        tensor, axes, weight = other
        check_parameters({"weight": weight}, {"weight": number(0.0)})
        y = read_tensor(tensor, name)
        axes = tuple(axes) if isinstance(axes, Iterable) else (axes,)
        shared = [axis for axis in axes if axis is not None]
        in_x = all(isinstance(axis, Integral) and not isinstance(axis, bool) and 0 <= axis < order for axis in shared)
        if len(axes) != y.ndim or not in_x or len(set(shared)) < len(shared):
            raise DataError(f"The axes of {name} must be an axis of X, at most once each, or None, for each of its "
                            f"{y.ndim} axes.", found=str(axes), remedy="Number the axes of X from 0.")  # fmt: skip
        if len(shared) == len(axes):
            raise DataError(f"At least one axis of {name} must be its own.", found=f"only shared ones, {axes}",
                            remedy="Give it a further axis of length 1, which is its scale.")  # fmt: skip
        for size, axis in zip(y.shape, axes, strict=True):
            if axis is not None and size != x.shape[axis]:
                raise DataError(f"Shared axes must have the same length in {name} and X.", found=f"{size} and "
                                f"{x.shape[axis]}", where=f"for axis {axis} of X", remedy="Transpose it.")  # fmt: skip
        for along, axis in zip(sum_along_axes(y), axes, strict=True):
            if axis is not None:
                sums[axis] += weight * along
                denominators[axis] += weight * float(y.sum())
        read.append((y, axes))
    root = total ** (1.0 / order)
    factors = tuple(root * (along / below) for along, below in zip(sums, denominators, strict=True))
    fitted = []
    for y, axes in read:
        mine = [factors[axis] if axis is not None else along / (float(along.sum()) or 1.0)
                for along, axis in zip(sum_along_axes(y), axes, strict=True)]  # fmt: skip
        first = axes.index(None)
        mine[first] = mine[first] * (float(y.sum()) / root ** (len(axes) - axes.count(None)))
        fitted.append(tuple(mine))
    return TensorFactors(factors, tuple(fitted))


def read_tensor(values: ArrayLike, name: str) -> Array:
    """A tensor in double precision, with cells, all of them finite and not negative."""
    tensor: Array = as_numbers(np.asarray(values)).astype(np.float64)
    if tensor.ndim == 0 or tensor.size == 0:
        raise DataError(f"Every axis of {name} must have a length of 1 or more.", found=f"shape {tensor.shape}",
                        remedy="Leave the tensor out.")  # fmt: skip
    wrong = ~((tensor >= 0) & (tensor < np.inf))
    if wrong.any():
        first = tuple(int(place) for place in np.unravel_index(int(np.argmax(wrong)), tensor.shape))
        remedy = "Correct it, or use `RankOneNMF` if it is a hole."
        raise DataError(f"Cells of {name} must be finite and not negative.", found=f"{tensor[first]:g}",
                        where=f"at position {first}", remedy=remedy)  # fmt: skip
    return tensor


class GridLikeFit(NamedTuple):
    """Result of A1GM: the factors, the marginals that they belong to, and (cells treated as missing) / (missing cells).

    The last is 1 if the fit is exact.
    """

    step: Step
    marginals: Marginals
    increase_rate: float


def a1gm(table: Table, threads: Threads) -> GridLikeFit:
    """Fit by A1GM (Algorithm 1 of Ghalamkari & Sugiyama, 2022): the closed form for grid-like missing cells.

    Where rows with missing cells meet columns with missing cells, all cells are treated as missing: then they are
    grid-like (Definition 1). Sorted to the end, they leave X (complete rows and columns), Y below it and Z beside it,
    for which Theorem 1 gives the best factors. Only sums are needed, so nothing is sorted. For tensors see
    `a1gm_tensor`.
    """
    if len(table.marginals.sums) > 2:
        return a1gm_tensor(table, threads)
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
    return GridLikeFit(step, marginals, rows.size * n_incomplete / n_missing if n_incomplete else 1.0)


def a1gm_tensor(table: Table, threads: Threads) -> GridLikeFit:
    """Fit a tensor by the closed form for grid-like missing cells:

        fit = t * product over the axes k of u_k,    u_k[i] = sum of slice i / t                        without a hole
                                                     u_k[i] = sum of slice i / (t (1 - prod_{l != k} b_l))     with one
        b_l = 1 - P_l / t,    P_l = sum of all slices along l without a hole

    Slices with missing cells along all axes meet in a block that is treated as missing: Definition 1 with a set of
    slices per axis. The sums of slices leave it out. t is the total of the fit with the block filled: the one root of

        t (1 - prod_l (1 - P_l / t)) = T    with t >= max P_l,    T = sum of all cells outside the block

    a polynomial in t of degree d - 1 for d axes: t = P_1 P_2 / (P_1 + P_2 - T) for a matrix, which is Theorem 1, and
    the larger root of a quadratic for three axes. The left side grows with t; Brent's method finds the root.
    """
    marginals = table.marginals.unmerged()
    shape = tuple(sums.size for sums in marginals.sums)
    incomplete = tuple(
        (counts < np.prod(shape) // counts.size) & (marginals.unseen == "missing") for counts in marginals.counts
    )
    sums = table.sums_outside(incomplete)
    complete = np.array([float(along[~mask].sum()) for along, mask in zip(sums, incomplete, strict=True)])
    total, exact = float(sums[0].sum()), 'Use `method="exact"`, which takes any holes and zeros.'
    if marginals.total > 0 and np.count_nonzero(complete) < 2:
        raise DataError(
            "A1GM must find values above 0 in slices without a hole along two axes of a tensor or more.",
            found=f"{np.count_nonzero(complete)} such axes", remedy=exact, parameter="method",
        )  # fmt: skip
    if marginals.total > 0 and total >= (1.0 - 1e-12) * complete.sum():
        raise DataError("A1GM must find a value above 0 where slices without a hole along two axes meet.",
                        found="none there", remedy=exact, parameter="method")  # fmt: skip

    largest = float(complete.max()) or 1.0
    complete, total = complete / largest, total / largest  # else products of small sums underflow

    def log_missing(t: float) -> Array:
        """Logarithm of b_l, the share of slices with holes, for each axis."""
        with np.errstate(divide="ignore"):
            return np.log1p(-np.minimum(complete / t, 1.0))

    def excess(t: float) -> float:
        """What a fit of total t has outside the block beyond the data."""
        return float(-t * np.expm1(log_missing(t).sum()) - total)

    filled = 1.0
    if total > filled:
        while excess(2.0 * filled) < 0:
            filled *= 2.0
        filled = float(optimize.brentq(excess, filled, 2.0 * filled, xtol=1e-300, rtol=1e-15))
    factors = []
    for axis, (along, mask) in enumerate(zip(sums, incomplete, strict=True)):
        others = -np.expm1(np.delete(log_missing(filled), axis).sum())
        factors.append(safe_divide(along / largest, np.where(mask, filled * others, filled)))
    w, inner = filled * factors[0] * largest, tuple(factors[1:])
    if any(((factor == 0) & (of_all > 0)).any() for factor, of_all in zip((w, *inner), marginals.sums, strict=True)):
        raise DataError(
            "A1GM must find a value above 0 in every slice that has one, outside the block where holes meet.",
            found="one that has none there", remedy='Use `method="exact"`, which uses all cells.', parameter="method",
        )  # fmt: skip
    mass = float((w * marginals.weights.matvec(kron(inner), threads)).sum())
    with ignore_overflow():
        step = Step((w, *inner), objective((w, *inner), marginals, mass), distance=0.0)
    n_missing = np.prod(shape) - int(marginals.counts[0].sum())
    is_whole = not any(mask.any() for mask in incomplete)
    return GridLikeFit(step, marginals, 1.0 if is_whole else float(np.prod([m.sum() for m in incomplete]) / n_missing))


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

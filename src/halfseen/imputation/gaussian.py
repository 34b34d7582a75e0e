"""A Gaussian fitted by EM to rows with holes: full covariance, or low rank plus diagonal where columns are many.

    z_i ~ N(mu, Sigma);     Sigma = (n S + nu diag S) / (n + nu)

S is EM's covariance of the completed rows, nu the number of earlier rows that knew nothing of the other columns. What a
row misses (m) follows from what it shows (o) by

    E[z_m | z_o] = mu_m + Sigma_mo Sigma_oo^-1 (z_o - mu_o) = mu_m - P_mm^-1 P_mo (z_o - mu_o),      P = Sigma^-1

in either of two forms: the smaller of the two blocks is solved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from halfseen.arrays import Array

#: Numbers that a block of rows may take at a time.
BLOCK = 4_000_000
#: Pulls of a full covariance to its diagonal that are tried, in units of p / 2 + 2 rows (the usual one first),
#: and ranks that are tried where columns are many.
PULLS, RANKS = (1.0, 0.3, 0.03, 3.0, 10.0), (5, 10, 20, 40)
#: Rows of a bootstrap, at least where there are so many, and steps of EM on them.
BOOTSTRAP_ROWS, BOOTSTRAP_STEPS = 1_000, 5
#: Columns from which on ranks are tried, too.
LEAST_RANKED = 40
#: Columns and operations per iteration up to which the covariance is full.
MOST_FULL, MOST_OPERATIONS = 400, 3e9


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian with a full covariance.

    Parameters
    ----------
    mean : ndarray of shape (p,)
        mu.
    covariance, precision : ndarray of shape (p, p)
        Sigma and its inverse.
    n_iter : int, default=0
        Number of iterations of EM.
    """

    mean: Array
    covariance: Array
    precision: Array
    n_iter: int = 0

    @classmethod
    def of_covariance(cls, mean: Array, covariance: Array, n_iter: int = 0) -> "Gaussian":
        """With the precision; a little is added to the diagonal, so that columns may repeat each other."""
        covariance = covariance + 1e-8 * np.diag(np.diagonal(covariance))
        return cls(mean, covariance, np.linalg.inv(covariance), n_iter)

    def complete(self, Z: Array) -> tuple[Array, Array]:
        """Rows with their conditional means in the holes; variances, 0 where a cell was seen."""
        filled, variance, _ = self._expect(Z)
        return filled, variance

    def scaled_residuals(self, filled: Array) -> Array:
        """P (z - mu), a row per row."""
        return (filled - self.mean) @ self.precision

    def towards(self, other: "Gaussian", share: float) -> "Gaussian":
        """The Gaussian whose mean and covariance are moved by a share of the way to another's."""
        mean, covariance = self.mean + share * (other.mean - self.mean), other.covariance - self.covariance
        return self.of_covariance(mean, self.covariance + share * covariance)

    def draw(self, n_rows: int, random: np.random.RandomState) -> Array:
        """Complete rows from the model."""
        return self.mean + random.standard_normal((n_rows, self.mean.size)) @ np.linalg.cholesky(self.covariance).T

    def precision_rows(self, columns: Array) -> Array:
        """Rows of P."""
        return self.precision[columns]

    def precision_diagonal(self) -> Array:
        """The diagonal of P."""
        return np.diagonal(self.precision)

    def _expect(self, Z: Array, total: bool = False) -> tuple[Array, Array, Array]:
        """Completed rows, variances of what was missing and, if `total`, the sum of the conditional covariances."""
        p = self.mean.size
        holes = np.isnan(Z)
        centred = np.where(holes, 0.0, Z - self.mean)
        variance = np.zeros(Z.shape)
        covariances = np.zeros(p * p if total else 0)
        pulls = centred @ self.precision  # of a hole: P_mo (z_o - mu_o), as its own z - mu is 0 there
        for rows, m, o in rows_by_number_of_holes(holes):
            if m.shape[1] <= o.shape[1]:
                inverse = np.linalg.inv(self.precision[m[:, :, None], m[:, None, :]])
                means = -np.einsum("rab,rb->ra", inverse, pulls[rows[:, None], m])
            else:
                across = self.covariance[m[:, :, None], o[:, None, :]]
                solved = np.linalg.solve(self.covariance[o[:, :, None], o[:, None, :]], across.transpose(0, 2, 1))
                means = np.einsum("roa,ro->ra", solved, centred[rows[:, None], o])
                inverse = self.covariance[m[:, :, None], m[:, None, :]] - across @ solved
            centred[rows[:, None], m] = means
            variance[rows[:, None], m] = np.maximum(np.diagonal(inverse, axis1=1, axis2=2), 1e-12)
            if total:
                flat = m[:, :, None] * p + m[:, None, :]
                covariances += np.bincount(flat.ravel(), inverse.ravel(), minlength=p * p)
        return np.where(holes, centred + self.mean, Z), variance, covariances.reshape(p, p) if total else covariances


def rows_by_number_of_holes(holes: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Rows with as many holes each, in blocks; the columns that they miss, and those that they show."""
    counts = np.count_nonzero(holes, axis=1)
    width = holes.shape[1]
    order = np.argsort(counts, kind="stable")
    starts = np.flatnonzero(np.diff(counts[order], prepend=-1))
    for start, end in zip(starts, [*starts[1:], order.size], strict=True):
        k = int(counts[order[start]])
        if k == 0:
            continue
        height = max(1, BLOCK // (min(k, width - k) * width + k * k + width))
        for top in range(start, end, height):
            rows = order[top : min(top + height, end)]
            columns = np.argsort(~holes[rows], axis=1, kind="stable")
            yield rows, columns[:, :k], columns[:, k:]


def fits_full(Z: Array) -> bool:
    """Whether the table is small enough for a full covariance."""
    missing = np.count_nonzero(np.isnan(Z), axis=1).astype(float)
    smaller = np.minimum(missing, Z.shape[1] - missing)
    return Z.shape[1] <= MOST_FULL and float((smaller**2 * np.maximum(missing, smaller)).sum()) <= MOST_OPERATIONS


def fit_gaussian(
    Z: Array,
    earlier_rows: float | None = None,
    *,
    max_iter: int = 50,
    tol: float = 1e-3,
    start: Gaussian | None = None,
) -> Gaussian:
    """Fit a Gaussian with full covariance by EM.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Rows on the standard scale, NaN where nothing was seen.
    earlier_rows : float, default=None
        nu, the pull of the covariance to its diagonal; None: p / 2 + 2.
    max_iter : int, default=50
        Most iterations.
    tol : float, default=1e-3
        EM stops when no entry of mean and covariance moves by more.
    start : Gaussian, default=None
        Where EM starts; None: at the means and variances of the seen cells.

    Returns
    -------
    Gaussian
        The fitted model.
    """
    n, p = Z.shape
    nu = p / 2 + 2 if earlier_rows is None else earlier_rows
    seen = np.maximum(np.count_nonzero(~np.isnan(Z), axis=0), 1)
    mean = np.nansum(Z, axis=0) / seen
    spread = np.nansum((Z - mean) ** 2, axis=0) / seen
    model = start or Gaussian.of_covariance(mean, np.diag(np.maximum(spread, 1e-6)))
    for iteration in range(1, max_iter + 1):
        filled, _, covariances = model._expect(Z, total=True)
        mean = filled.mean(axis=0)
        S = ((filled - mean).T @ (filled - mean) + covariances) / n
        covariance = n / (n + nu) * S
        covariance[np.diag_indices(p)] = np.maximum(np.diagonal(S), 1e-6)
        moved = max(np.abs(mean - model.mean).max(), np.abs(covariance - model.covariance).max())
        model = Gaussian.of_covariance(mean, covariance, iteration)
        if moved < tol or not np.isnan(Z).any():
            break
    return model


@dataclass(frozen=True)
class FactorModel:
    """A Gaussian whose covariance is of low rank plus diagonal, Sigma = L L^T + diag(psi) (factor analysis).

    A row's factors w given what is seen of it have the precision A = I + sum_o l_j l_j^T / psi_j and the mean
    A^-1 sum_o l_j (z_j - mu_j) / psi_j: nothing of size p x p is made.

    Parameters
    ----------
    mean : ndarray of shape (p,)
        mu.
    loadings : ndarray of shape (p, k)
        L.
    noise : ndarray of shape (p,)
        psi.
    n_iter : int, default=0
        Number of iterations of EM.
    """

    mean: Array
    loadings: Array
    noise: Array
    n_iter: int = 0

    def complete(self, Z: Array) -> tuple[Array, Array]:
        """Rows with their conditional means in the holes; variances, 0 where a cell was seen."""
        filled, variance = np.array(Z, dtype=float), np.zeros(Z.shape)
        for rows, w, W in self._factors(Z):
            holes = np.isnan(Z[rows])
            filled[rows][holes] = (self.mean + w @ self.loadings.T)[holes]
            spread = np.einsum("pk,rkl,pl->rp", self.loadings, W, self.loadings, optimize=True) + self.noise
            variance[rows] = np.where(holes, spread, 0.0)
        return filled, variance

    def scaled_residuals(self, filled: Array) -> Array:
        """P (z - mu) by Woodbury's formula."""
        centred = (filled - self.mean) / self.noise
        return centred - centred @ self.loadings @ self._core() @ self.loadings.T / self.noise

    def towards(self, other: "FactorModel", share: float) -> "FactorModel":
        """The model whose mean, loadings and noise are moved by a share of the way to another's."""
        parts = ("mean", "loadings", "noise")
        return FactorModel(*((1 - share) * getattr(self, one) + share * getattr(other, one) for one in parts))

    def draw(self, n_rows: int, random: np.random.RandomState) -> Array:
        """Complete rows from the model."""
        p, k = self.loadings.shape
        common = random.standard_normal((n_rows, k)) @ self.loadings.T
        return self.mean + common + random.standard_normal((n_rows, p)) * np.sqrt(self.noise)

    def precision_rows(self, columns: Array) -> Array:
        """Rows of P."""
        ends = self.loadings[columns] @ self._core() @ self.loadings.T
        block = -ends / self.noise[columns][:, None] / self.noise
        block[np.arange(columns.size), columns] += 1 / self.noise[columns]
        return block

    def precision_diagonal(self) -> Array:
        """The diagonal of P."""
        return 1 / self.noise - np.einsum("pk,kl,pl->p", self.loadings, self._core(), self.loadings) / self.noise**2

    def _core(self) -> Array:
        return np.linalg.inv(np.eye(self.loadings.shape[1]) + (self.loadings.T / self.noise) @ self.loadings)

    def _factors(self, Z: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks of rows with the means and covariances of their factors."""
        p, k = self.loadings.shape
        squares = (self.loadings[:, :, None] * self.loadings[:, None, :] / self.noise[:, None, None]).reshape(p, k * k)
        height = max(1, BLOCK // (4 * (p + k * k)))
        for top in range(0, len(Z), height):
            rows = slice(top, min(top + height, len(Z)))
            seen = ~np.isnan(Z[rows])
            pulls = np.where(seen, Z[rows] - self.mean, 0.0) / self.noise @ self.loadings
            W = np.linalg.inv(np.eye(k) + (seen.astype(float) @ squares).reshape(-1, k, k))
            yield rows, np.einsum("rkl,rl->rk", W, pulls), W


#: What both models can do: complete rows, leave cells out, draw.
Conditional = Gaussian | FactorModel


@dataclass(frozen=True)
class Structure:
    """How a covariance is fitted.

    Parameters
    ----------
    earlier_rows : float
        nu of a full covariance, the pull to its diagonal.
    rank : int, default=None
        Rank of the common part; None: full covariance.
    """

    earlier_rows: float
    rank: int | None = None

    def fit(self, Z: Array, max_iter: int = 50) -> Conditional:
        """Fit to rows on the standard scale."""
        if self.rank is not None:
            return fit_factors(Z, self.rank, max_iter=max_iter)
        return fit_gaussian(Z, self.earlier_rows, max_iter=max_iter)

    def refit(self, model: Any, Z: Array, n_rows: int, random: np.random.RandomState) -> Any:
        """A model as it would be after a fit to other rows of the same kind: some steps of EM on a bootstrap of rows.

        Where it is of fewer rows than the model's own `n_rows`, it moves by the root of their ratio of what these do.
        """
        rows = Z[random.randint(len(Z), size=min(len(Z), max(BOOTSTRAP_ROWS, 5 * Z.shape[1])))]
        ratio = len(rows) / n_rows
        means = [np.nansum(one, axis=0) / np.maximum((~np.isnan(one)).sum(axis=0), 1) for one in (Z, rows)]
        start = replace(model, mean=model.mean + means[1] - means[0])  # which EM of factors moves slowly
        if self.rank is not None:
            other: Conditional = fit_factors(rows, self.rank, max_iter=BOOTSTRAP_STEPS, start=start)
        else:
            other = fit_gaussian(rows, self.earlier_rows * ratio, max_iter=BOOTSTRAP_STEPS, start=start)
        return model.towards(other, np.sqrt(ratio))

    @classmethod
    def best(cls, draws: Sequence[tuple[Array, Array, Array]]) -> "Structure":
        """What predicts hidden cells best: among pulls of a full covariance, and ranks where columns are many.

        A draw is a table with hidden cells, the same with all, and the mask of those hidden. Ranks rise until one
        predicts worse than the one before.
        """
        (n, p), is_full = draws[0][0].shape, fits_full(draws[0][0])
        options = [cls(pull * (p / 2 + 2)) for pull in PULLS] if is_full else []
        if p >= LEAST_RANKED or not is_full:
            options += [cls(0.0, rank) for rank in RANKS if rank <= max(min(n, p) // 3, RANKS[0])]
        errors = np.full(len(options), np.inf)
        for place, one in enumerate(options):
            have_ranks = place > 1 and options[place - 2].rank is not None
            if have_ranks and errors[place - 1] > errors[place - 2]:
                break
            errors[place] = 0.0
            for Z, truth, hidden in draws:
                filled, _ = one.fit(Z, max_iter=20).complete(Z)
                errors[place] += np.sum(np.minimum(np.abs(filled[hidden] - truth[hidden]), 5.0) ** 2)
        return options[int(np.argmin(errors))]


def fit_factors(
    Z: Array,
    n_factors: int,
    earlier_rows: float = 2.0,
    *,
    max_iter: int = 50,
    tol: float = 1e-3,
    random_state: int = 0,
    start: FactorModel | None = None,
) -> FactorModel:
    """Fit a Gaussian of low rank plus diagonal by EM, in time and memory linear in the cells.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Rows on the standard scale, NaN where nothing was seen.
    n_factors : int
        Rank of the common part.
    earlier_rows : float, default=2.0
        Pull of the loadings to 0, in rows.
    max_iter : int, default=50
        Most iterations.
    tol : float, default=1e-3
        EM stops when no loading or noise moves by more.
    random_state : int, default=0
        Seed of the start.
    start : FactorModel, default=None
        Where EM starts; None: at principal components.

    Returns
    -------
    FactorModel
        The fitted model.
    """
    p, k = Z.shape[1], n_factors
    seen = ~np.isnan(Z)
    counts = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, Z, 0.0).sum(axis=0) / counts
    centred = np.where(seen, Z - mean, 0.0)
    spread = np.maximum((centred**2).sum(axis=0) / counts, 1e-6)
    if start is None:
        _, sizes, directions = randomized_svd(centred, k, random_state=random_state)
        loadings = directions.T * sizes / np.sqrt(len(Z))
        start = FactorModel(mean, loadings, np.maximum(spread - (loadings**2).sum(axis=1), 0.1 * spread))
    model = start
    ridge = earlier_rows * np.eye(k + 1)
    ridge[k, k] = 1e-8
    for iteration in range(1, max_iter + 1):
        # column j is regressed on the factors of the rows that show it, and 1: sums of E[w w^T] and of z_j E[w]
        squares, products = np.zeros((p, (k + 1) ** 2)), np.zeros((p, k + 1))
        for rows, w, W in model._factors(Z):
            w = np.column_stack([w, np.ones(len(w))])
            moments = w[:, :, None] * w[:, None, :]
            moments[:, :k, :k] += W
            squares += seen[rows].T.astype(float) @ moments.reshape(len(w), -1)
            products += np.where(seen[rows], Z[rows], 0.0).T @ w
        grams = squares.reshape(p, k + 1, k + 1)
        found = np.linalg.solve(grams + ridge, products[:, :, None])[:, :, 0]
        total = (np.where(seen, Z, 0.0) ** 2).sum(axis=0)
        noise = total - 2 * (found * products).sum(axis=1) + np.einsum("pk,pkl,pl->p", found, grams, found)
        noise = (noise + earlier_rows * spread) / (counts + earlier_rows)
        new = FactorModel(found[:, k], found[:, :k], np.maximum(noise, 1e-3 * spread), iteration)
        moved = max(np.abs(new.loadings - model.loadings).max(), np.abs(new.noise - model.noise).max())
        model = new
        if moved < tol:
            break
    return model

"""Half-seen matrices whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen.data.observed import Observed
from halfseen.errors import ParameterError

NOISES = ("poisson", "gaussian", None)
GAUSSIAN_SHARE = 0.1
FLATTENING = 0.6
UNMF_SIZE = 10
UNMF_NOISE = 0.6


def planted(
    n: int, m: int, k: int, *, seen: float = 0.5, noise: str | None = "poisson", random_state: Any = None
) -> tuple[Observed, np.ndarray, np.ndarray]:
    """A half-seen matrix with planted factors: (observed, W of shape (n, k), H of shape (m, k)).

    Each cell is seen with probability `seen`, and every row and every column at least once. The values are W @ H.T
    with Poisson noise; with Gaussian noise of a tenth of their standard deviation, cut off at 0; or with none.

    Parameters
    ----------
    n, m, k : the numbers of rows, columns and components.
    seen : the probability with which each cell is seen.
    noise : "poisson", "gaussian" or None.
    random_state : None, or a whole number: the same one makes the same matrix.
    """
    _check_planted(seen, noise)
    rng = np.random.default_rng(random_state)
    W, H = rng.gamma(1.0, 1.0, (n, k)), rng.gamma(1.0, 1.0, (m, k))
    rows, columns = np.nonzero(_seen_mask(n, m, seen, rng))
    values = _noisy(np.einsum("ck,ck->c", W[rows], H[columns]), noise, rng)
    return Observed.from_cells(rows, columns, values, (n, m)), W, H


def _check_planted(seen: float, noise: str | None) -> None:
    if not 0 <= seen <= 1:
        raise ParameterError(f"seen must be a probability between 0 and 1. Found {seen}.")
    if noise not in NOISES:
        raise ParameterError(f'noise must be "poisson", "gaussian" or None. Found {noise!r}.')


def _seen_mask(n: int, m: int, seen: float, rng: np.random.Generator) -> np.ndarray:
    mask = rng.random((n, m)) < seen
    for empty in np.flatnonzero(~mask.any(axis=1)):
        mask[empty, rng.integers(m)] = True
    for empty in np.flatnonzero(~mask.any(axis=0)):
        mask[rng.integers(n), empty] = True
    return mask


def _noisy(means: np.ndarray, noise: str | None, rng: np.random.Generator) -> np.ndarray:
    if noise == "poisson":
        return rng.poisson(means).astype(np.float64)
    if noise == "gaussian":
        return np.maximum(rng.normal(means, GAUSSIAN_SHARE * means.std()), 0.0)
    return means


def planted_levels(
    n: int, m: int, k: int, thresholds: int, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A whole matrix of levels 0..N of generalized round-rank k at most: (Y, W, H, tau), Y the thresholds below W H^T.

    W, H and the N thresholds are drawn from normal distributions, the thresholds as wide as the product; all are drawn
    anew until every level is there, as it must be for its thresholds to be learned.
    """
    if not 1 <= thresholds < n * m:
        raise ParameterError(f"thresholds must be at least 1, and fewer than the {n * m} cells. Found {thresholds}.")
    rng = np.random.default_rng(random_state)
    Y = np.zeros((n, m), dtype=np.intp)
    while np.unique(Y).size <= thresholds:
        W, H = rng.normal(size=(n, k)), rng.normal(size=(m, k))
        tau = np.sort(rng.normal(scale=np.sqrt(k), size=thresholds))
        Y = np.searchsorted(tau, W @ H.T)
    return Y, W, H, tau


def unmf_synthetic(random_state: Any = None) -> np.ndarray:
    """The synthetic matrix of Kohjima (2022), 10 x 10: 2 + (j + 1)/2 [i, j <= 4] + (j - 4)/2 [i, j > 5] and noise.

    i and j count from 1: then the means lie in 2..5, and the range [0.5, 6.5] that the paper gives its random guesses
    is 2.5 deviations of the noise more on both sides. Counted from 0 they would end at 4.5. The noise is Gaussian with
    a standard deviation of 0.6; values are cut off at 0, because the methods are for non-negative ones.
    """
    number = np.arange(1, UNMF_SIZE + 1)
    low, high = number <= 4, number > 5
    means = 2.0 + (number + 1) / 2 * np.outer(low, low) + (number - 4) / 2 * np.outer(high, high)
    noise = np.random.default_rng(random_state).normal(scale=UNMF_NOISE, size=means.shape)
    return np.maximum(means + noise, 0.0)


def skewed_cells(n: int, m: int, nnz: int, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of `nnz` different cells, in row order, a few rows and columns holding most of them.

    Rows and columns are drawn with Zipf-like chances and cells drawn before are drawn anew; the chances get flatter
    with every round, so that a crowded matrix fills up too.
    """
    if not 0 <= nnz <= n * m / 2:
        raise ParameterError(f"nnz must lie between 0 and half of the {n * m} cells. Found {nnz}.")
    rng = np.random.default_rng(random_state)
    row_ranks, column_ranks = rng.permutation(n), rng.permutation(m)
    cells, skew = np.empty(0, dtype=np.int64), 1.0
    while cells.size < nnz:
        draws = int(1.3 * (nnz - cells.size)) + nnz // 50 + 10
        drawn = _zipf(row_ranks, draws, skew, rng) * m + _zipf(column_ranks, draws, skew, rng)
        cells, skew = different(np.append(cells, drawn)), FLATTENING * skew
    surplus = rng.choice(cells.size, cells.size - nnz, replace=False, shuffle=False)
    cells = np.delete(cells, surplus)
    return cells // m, cells % m


def _zipf(ranks: np.ndarray, draws: int, skew: float, rng: np.random.Generator) -> np.ndarray:
    cumulated = np.cumsum((ranks + 10.0) ** -skew)
    drawn = np.searchsorted(cumulated, rng.random(draws) * cumulated[-1], side="right")
    return np.minimum(drawn, ranks.size - 1)  # a draw may be rounded up to the very end


def different(cells: np.ndarray) -> np.ndarray:
    """The cells sorted, each once; np.unique would hash them, which is slower here."""
    cells.sort(kind="stable")  # quick where most are in order already
    return cells[np.append(True, cells[1:] != cells[:-1])]

"""Synthetic data whose true factors are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfseen.errors import ParameterError
from halfseen.labels import text_array
from halfseen.observed import Observed
from halfseen.uncoupled.collection import Uncoupled, sorted_unique
from halfseen.validation import check_parameters, one_of, whole


def planted(
    n: int, m: int, k: int, *, seen: float = 0.5, noise: str | None = "poisson", random_state: int | None = None
) -> tuple[Observed, np.ndarray, np.ndarray]:
    """Generate a matrix W H^T with missing values and noise from gamma-distributed factors.

    Parameters
    ----------
    n, m, k : int
        Numbers of rows, columns and components.
    seen : float, default=0.5
        Probability that a cell is seen; every row and every column has at least one.
    noise : {"poisson", "gaussian", None}, default="poisson"
        Distribution around W H^T. Gaussian noise has a tenth of its standard deviation; negative values become 0.
    random_state : int or None, default=None
        Random seed.

    Returns
    -------
    observed : Observed
        The matrix.
    W, H : ndarray of shape (n, k) and (m, k)
        Its factors.
    """
    if not 0 <= seen <= 1:
        raise ParameterError("must be a probability between 0 and 1.", parameter="seen", found=str(seen))
    check_parameters({"noise": noise}, {"noise": one_of("poisson", "gaussian", or_none=True)})
    rng = np.random.default_rng(random_state)
    W, H = rng.gamma(1.0, 1.0, (n, k)), rng.gamma(1.0, 1.0, (m, k))
    mask = rng.random((n, m)) < seen
    for empty in np.flatnonzero(~mask.any(axis=1)):
        mask[empty, rng.integers(m)] = True
    for empty in np.flatnonzero(~mask.any(axis=0)):
        mask[rng.integers(n), empty] = True
    rows, columns = np.nonzero(mask)
    values = np.einsum("ck,ck->c", W[rows], H[columns])
    if noise == "poisson":
        values = rng.poisson(values).astype(np.float64)
    elif noise == "gaussian":
        values = np.maximum(rng.normal(values, 0.1 * values.std()), 0.0)
    return Observed.from_cells(rows, columns, values, (n, m)), W, H


def planted_levels(
    n: int, m: int, k: int, thresholds: int, random_state: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Generate a complete matrix Y of levels 0..N with generalized round-rank at most k.

    Y counts the thresholds below W H^T. W, H and the thresholds are normally distributed, the thresholds with the
    standard deviation of the product; all are drawn again until every level occurs.

    Parameters
    ----------
    n, m, k : int
        Numbers of rows, columns and components.
    thresholds : int
        Number of thresholds N.
    random_state : int or None, default=None
        Random seed.

    Returns
    -------
    Y : ndarray of shape (n, m)
        Levels.
    W, H, tau : ndarray of shape (n, k), (m, k) and (N,)
        Factors and thresholds.
    """
    if not 1 <= thresholds < n * m:
        must = f"must be at least 1, and fewer than the {n * m} cells."
        raise ParameterError(must, parameter="thresholds", found=str(thresholds))
    rng = np.random.default_rng(random_state)
    Y = np.zeros((n, m), dtype=np.intp)
    while np.unique(Y).size <= thresholds:
        W, H = rng.normal(size=(n, k)), rng.normal(size=(m, k))
        tau = np.sort(rng.normal(scale=np.sqrt(k), size=thresholds))
        Y = np.searchsorted(tau, W @ H.T)
    return Y, W, H, tau


def unmf_synthetic(random_state: int | None = None) -> np.ndarray:
    """Generate the matrix of Kohjima (2022): 2 + (j + 1)/2 [i, j <= 4] + (j - 4)/2 [i, j > 5] and Gaussian noise.

    i and j count from 1, so that the paper's range of random guesses, [0.5, 6.5], extends the means, in 2..5, by 2.5
    standard deviations of the noise, 0.6. Negative values become 0.

    Parameters
    ----------
    random_state : int or None, default=None
        Random seed.

    Returns
    -------
    ndarray of shape (10, 10)
        The matrix.
    """
    number = np.arange(1, 11)
    low, high = number <= 4, number > 5
    means = 2.0 + (number + 1) / 2 * np.outer(low, low) + (number - 4) / 2 * np.outer(high, high)
    noise = np.random.default_rng(random_state).normal(scale=0.6, size=means.shape)
    return np.maximum(means + noise, 0.0)


class Survey(NamedTuple):
    """A survey that keeps names and answers apart, and its true matrix.

    Attributes
    ----------
    collected : Uncoupled
        Collected data: the questions asked of each respondent, answers without names, comparisons.
    truth : ndarray of shape (n_questions, n_respondents)
        Answer of every respondent to every question.
    """

    collected: Uncoupled
    truth: np.ndarray


def make_survey(
    n_questions: int = 40, n_respondents: int = 25, n_comparisons: int = 40, *, random_state: int | None = None
) -> Survey:
    """Generate a survey: everybody answers every question with an amount, some pairs of respondents are compared.

    Amounts have rank two up to noise: x = (W H^T) e^noise, W and H gamma-distributed, rounded to a tenth.

    Parameters
    ----------
    n_questions, n_respondents, n_comparisons : int, default=40, 25 and 40
        Numbers of questions and respondents, at least 2, and of pairs of respondents compared on each question.
    random_state : int or None, default=None
        Random seed.

    Returns
    -------
    Survey
        Collected data and true matrix.
    """
    sizes = {"n_questions": n_questions, "n_respondents": n_respondents}
    check_parameters(sizes, dict.fromkeys(sizes, whole(2)))
    rng = np.random.default_rng(random_state)
    W, H = rng.gamma(2.0, 4.0, (n_questions, 2)), rng.gamma(2.0, 0.5, (n_respondents, 2))
    truth = np.round(W @ H.T * np.exp(rng.normal(scale=0.3, size=(n_questions, n_respondents))), 1)
    rows, columns = np.indices(truth.shape).reshape(2, -1)
    questions = text_array(f"question {number + 1}" for number in range(n_questions))
    people = text_array(f"respondent {number + 1}" for number in range(n_respondents))
    coupled = Observed.from_cells(rows, columns, truth.ravel(), truth.shape, row_labels=questions, column_labels=people)
    return Survey(Uncoupled.from_coupled(coupled, n_comparisons, random_state=int(rng.integers(2**32))), truth)


def skewed_cells(n: int, m: int, nnz: int, random_state: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of `nnz` distinct cells in row order, drawn from a Zipf-like distribution, for benchmarks."""
    if not 0 <= nnz <= n * m / 2:
        raise ParameterError(f"must be between 0 and half of the {n * m} cells.", parameter="nnz", found=str(nnz))
    rng = np.random.default_rng(random_state)
    row_ranks, column_ranks = rng.permutation(n), rng.permutation(m)

    def zipf(ranks: np.ndarray) -> np.ndarray:
        cumulated = np.cumsum((ranks + 10.0) ** -skew)
        drawn = np.searchsorted(cumulated, rng.random(draws) * cumulated[-1], side="right")
        return np.minimum(drawn, ranks.size - 1)  # a draw may be rounded up to the very end

    cells, skew = np.empty(0, dtype=np.int64), 1.0
    while cells.size < nnz:  # flatter in every round, so that dense matrices are filled, too
        draws = int(1.3 * (nnz - cells.size)) + nnz // 50 + 10
        drawn = zipf(row_ranks) * m + zipf(column_ranks)
        cells, skew = sorted_unique(np.append(cells, drawn)), 0.6 * skew
    surplus = rng.choice(cells.size, cells.size - nnz, replace=False, shuffle=False)
    return np.divmod(np.delete(cells, surplus), m)

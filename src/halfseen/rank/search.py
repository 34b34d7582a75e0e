"""Factors of a given number of columns that round to given levels, looked for from several starts."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from halfseen.arrays import Array
from halfseen.rank.proofs import Proof, Question

_MAX_ITER = 500
#: Corrections that L-BFGS keeps. Twice the usual number pays: most starts end where they should.
_MEMORY = 20
#: Ever smaller margins, as parts of the first: the only solutions may be those with little room.
_MARGINS = (1.0, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Problem:
    """Levels 0..N, all of them present if the thresholds are free (None); given thresholds are about 1 in size."""

    levels: Array
    thresholds: Array | None
    margin: float
    n_thresholds: int

    def unpacked(self, vector: Array) -> tuple[Array, Array, Array]:
        """W, H and the thresholds from the one vector that an optimizer moves."""
        n, m = self.levels.shape
        n_free = self.n_thresholds if self.thresholds is None else 0
        rank = (vector.size - n_free) // (n + m)
        W, H, tau = np.split(vector, [n * rank, (n + m) * rank])
        return W.reshape(n, rank), H.reshape(m, rank), tau if self.thresholds is None else self.thresholds

    def loss(self, vector: Array, margin: float) -> tuple[float, Array]:
        """The hinge in units of margins, and its slopes."""
        W, H, tau = self.unpacked(vector)
        value, by_x, by_tau = hinge(W @ H.T, tau, self.levels, margin)
        slopes = [(by_x @ H).reshape(-1), (by_x.T @ W).reshape(-1), by_tau[: vector.size - W.size - H.size]]
        return value / margin**2, np.concatenate(slopes) / margin**2


def found_by_search(question: Question, rank: int, n_init: int, random: np.random.RandomState) -> Proof | None:
    """A proof of that rank, or None if no start led to one."""
    for number in range(n_init):
        problem, scale = _problem(question, number)
        vector = _settled(problem, _start(problem, rank, number, random))
        W, H, _ = problem.unpacked(vector)
        if proof := question.proof(W * scale, H, f"A search found factors of {rank} columns."):
            return proof
    return None


def hinge(X: Array, tau: Array, levels: Array, margin: float) -> tuple[float, Array, Array]:
    """The sum over cells of  (tau_y + e - x)_+^2 / 2 + (x + e - tau_{y+1})_+^2 / 2,  and its slopes by x and by tau.

    The Round loss (section 3.2), squared, without bounds for the lowest and the highest level: 0 where all cells are
    inside by a margin e. The order of free thresholds follows from that of the cells.
    """
    edges = np.concatenate([[-np.inf], tau, [np.inf]])
    too_low = np.maximum(edges[levels] + margin - X, 0.0)
    too_high = np.maximum(X + margin - edges[levels + 1], 0.0)
    loss = 0.5 * float(np.sum(too_low**2) + np.sum(too_high**2))
    push_up, push_down = (
        np.bincount(levels.reshape(-1), each.reshape(-1), tau.size + 1) for each in (too_low, too_high)
    )
    return loss, too_high - too_low, push_up[1:] - push_down[:-1]


def _problem(question: Question, number: int) -> tuple[Problem, float]:
    """The question with thresholds of about 1, and by what they were divided.

    Of one free threshold nothing matters but its sign (Lemma 2.1.2). Free to move, it is drawn to 0, where it is good
    for little: so it is free in one start, 1 in the next and -1 in the one after.
    """
    if question.thresholds is not None:
        scale = float(np.abs(question.thresholds).max()) or 1.0
        return _with_thresholds(question.levels, question.thresholds / scale), scale
    present, codes = np.unique(question.levels, return_inverse=True)
    levels = codes.reshape(question.levels.shape)
    if present.size == 2 and number % 3:
        return _with_thresholds(levels, np.array([1.0 if number % 3 == 1 else -1.0])), 1.0
    return Problem(levels, None, 1.0, present.size - 1), 1.0


def _with_thresholds(levels: Array, tau: Array) -> Problem:
    margin = float(np.diff(tau).min()) / 4 if tau.size > 1 else 0.5
    return Problem(levels, tau, margin, tau.size)


def _start(problem: Problem, rank: int, number: int, random: np.random.RandomState) -> Array:
    """First the singular value decomposition of the levels, then random factors."""
    n, m = problem.levels.shape
    if number == 0:
        zero = problem.levels.mean()
        left, values, right = np.linalg.svd(problem.levels - zero, full_matrices=False)
        roots = np.sqrt(values[:rank])
        factors = np.concatenate([(left[:, :rank] * roots).reshape(-1), (right[:rank].T * roots).reshape(-1)])
    else:
        zero = random.randint(problem.n_thresholds + 1)  # its level: thresholds of both signs are tried
        factors = random.standard_normal((n + m) * rank)
    tau = np.arange(problem.n_thresholds) + 0.5 - zero if problem.thresholds is None else np.empty(0)
    return np.concatenate([factors, tau])


def _settled(problem: Problem, vector: Array) -> Array:
    """Where the loss settles, or all cells have their levels: then it is below half a squared margin."""

    def stop(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun < 0.5:
            raise StopIteration

    for part in _MARGINS:
        found = minimize(
            problem.loss, vector, args=(part * problem.margin,), jac=True, method="L-BFGS-B", callback=stop,
            options={"maxiter": _MAX_ITER, "maxcor": _MEMORY},
        )  # fmt: skip
        vector = found.x
        if found.fun < 0.5:
            break
    return vector

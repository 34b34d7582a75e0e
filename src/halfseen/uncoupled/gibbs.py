"""Draws of the Gibbs sampler of uncoupled data: which answer belongs to which cell, and rows of a factor.

Every loop walks the rows from `start` to `stop` of whole arrays, because a slice of an array is a counted reference,
and threads would wait for each other's counting.

A row has as many *tokens* as cells: its answers in ascending order, then, where answers were lost, unknown values. A
coupling assigns every token to a cell of its row: `token_of_cell` and `cell_of_token`. Cells and tokens are numbered
through all rows; `indptr` says where those of each row begin.

Comparisons are lists of neighbours: `below[below_indptr[c]:below_indptr[c + 1]]` are the cells that cell c was said to
be no smaller than, `above` those that it was said to be no larger than.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel
from halfseen.kernels.random_streams import normal, start_stream, uniform

Array = npt.NDArray[Any]

#: In longer rows close tokens are exchanged more often than distant ones.
_LONG = 32


# Couplings, by Metropolis' algorithm.


@kernel
def draw_couplings(
    start: int, stop: int, indptr: Array, n_answers: Array, seed: int, proposals: int, trust: float,
    below_indptr: Array, below: Array, above_indptr: Array, above: Array, half_known: Array,
    mean: Array, precision: Array, tokens: Array, token_of_cell: Array, cell_of_token: Array,
) -> None:  # fmt: skip
    """In every row, `proposals` per cell to exchange the tokens of two cells, accepted by the density

        prod over cells of N(token | mean, 1 / precision) * exp(-trust * violated comparisons) * standing

    and a new value proposed for every unknown token. `n_answers` has the number of answers of each row. `half_known`
    has the comparisons that each cell won and lost against unnamed others: each is won with the probability that a
    random answer is smaller (`standing`).

    One function for all of it: cut into functions of whole arrays it takes half as long again.
    """
    stream = np.empty(1, np.uint64)
    for row in range(start, stop):
        first, size = np.int64(indptr[row]), np.int64(indptr[row + 1] - indptr[row])
        start_stream(seed, row, stream)
        answers_end = first + n_answers[row]
        for _ in range(proposals * size if size > 1 else 0):
            one = np.int64(uniform(stream) * size)
            other = _partner(one, size, uniform(stream), stream)
            if other < 0 or other >= size:
                continue
            one, other = first + min(one, other), first + max(one, other)
            if tokens[one] == tokens[other] or one >= answers_end:
                continue
            # Cells a and b exchange their tokens; an unknown one (the other, if any) takes a new value where it goes,
            # whose density is that of its proposal, so that only the answer's counts.
            a, b = cell_of_token[one], cell_of_token[other]
            old_a, old_b, new_b = tokens[one], tokens[other], tokens[one]
            gain = 0.5 * (precision[a] * (old_a - mean[a]) ** 2 - precision[b] * (new_b - mean[b]) ** 2)
            if other < answers_end:
                new_a = old_b
                gain += 0.5 * (precision[b] * (old_b - mean[b]) ** 2 - precision[a] * (new_a - mean[a]) ** 2)
            else:
                new_a = mean[a] + normal(stream) / np.sqrt(precision[a])
                gain += 0.5 * (np.log(precision[b]) - np.log(precision[a]))
            violated = 0
            for cell, old, new, partner in ((a, old_a, new_a, b), (b, old_b, new_b, a)):
                for p in range(below_indptr[cell], below_indptr[cell + 1]):
                    neighbour = tokens[token_of_cell[below[p]]]
                    if below[p] != partner:
                        violated += (new < neighbour) - (old < neighbour)
                    else:  # the partner changes too; met from both sides, and counted from one
                        violated += (new_a < new_b) - (old_a < old_b) if cell == a else 0
                for p in range(above_indptr[cell], above_indptr[cell + 1]):
                    neighbour = tokens[token_of_cell[above[p]]]
                    if above[p] != partner:
                        violated += (new > neighbour) - (old > neighbour)
                    else:
                        violated += (new_a > new_b) - (old_a > old_b) if cell == a else 0
            gain -= trust * violated
            for cell, old, new in ((a, old_a, new_a), (b, old_b, new_b)):
                if half_known[cell, 0] + half_known[cell, 1] > 0:
                    gain += _half_known_gain(half_known, cell, old, new, tokens, first, answers_end)
            if gain >= 0 or uniform(stream) < np.exp(gain):
                cell_of_token[one], cell_of_token[other] = b, a
                token_of_cell[a], token_of_cell[b] = other, one
                tokens[other] = new_a
        for token in range(answers_end, first + size):
            cell = cell_of_token[token]
            old, new = tokens[token], mean[cell] + normal(stream) / np.sqrt(precision[cell])
            violated = 0
            for p in range(below_indptr[cell], below_indptr[cell + 1]):
                neighbour = tokens[token_of_cell[below[p]]]
                violated += (new < neighbour) - (old < neighbour)
            for p in range(above_indptr[cell], above_indptr[cell + 1]):
                neighbour = tokens[token_of_cell[above[p]]]
                violated += (new > neighbour) - (old > neighbour)
            gain = -trust * violated
            if half_known[cell, 0] + half_known[cell, 1] > 0:
                gain += _half_known_gain(half_known, cell, old, new, tokens, first, answers_end)
            if gain >= 0 or uniform(stream) < np.exp(gain):
                tokens[token] = new


@kernel
def _partner(one: int, size: int, chance: float, stream: Array) -> Any:
    """Another token to exchange with; both directions are equally likely. Outside the row: none.

    In a short row any other one. In a long one every order of distance is equally likely, because most exchanges over
    a long distance would be rejected.
    """
    if size <= _LONG:
        other = one + 1 + np.int64(chance * (size - 1))
        return other if other < size else other - size
    distance = np.int64(np.exp(chance * np.log(np.float64(size))))
    return one + distance if uniform(stream) < 0.5 else one - distance


@kernel
def _half_known_gain(half_known: Array, cell: int, old: float, new: float, tokens: Array, first: int, end: int) -> Any:
    """Log-likelihood gained by comparisons against unnamed others when a cell's value changes."""
    before, after = _standing(old, tokens, first, end), _standing(new, tokens, first, end)
    return half_known[cell, 0] * np.log(after / before) + half_known[cell, 1] * np.log((1.0 - after) / (1.0 - before))


@kernel
def _standing(value: float, tokens: Array, first: int, end: int) -> Any:
    """Fraction of a row's answers below a value, equal ones half, kept off 0 and 1 as if there were one more."""
    answers = tokens[first:end]
    count = 1 + np.searchsorted(answers, value, side="left") + np.searchsorted(answers, value, side="right")
    return count / (2.0 * answers.size + 2.0)


@kernel
def count_violations(below_indptr: Array, below: Array, tokens: Array, token_of_cell: Array) -> Any:
    """Number of comparisons that the coupling violates."""
    violated = 0
    for cell in range(below_indptr.size - 1):
        value = tokens[token_of_cell[cell]]
        for p in range(below_indptr[cell], below_indptr[cell + 1]):
            violated += value < tokens[token_of_cell[below[p]]]
    return violated


# Factors, from their normal distributions.


@kernel
def draw_rows(
    start: int, stop: int, indptr: Array, indices: Array, x: Array, G: Array, near: Array, far: Array,
    prior: Array, prior_pull: Array, out: Array,
) -> None:  # fmt: skip
    """out[u] ~ N(A^{-1} r, A^{-1}),   A = prior + near[u] sum of far[i] G[i] G[i]^T,
    r = prior_pull + near[u] sum of far[i] x[p] G[i].

    The precision of a cell is near[u] * far[i]; `prior_pull` is the prior's precision times its mean. `out` comes
    filled with standard normal numbers. With rows and columns exchanged it draws the other factor.
    """
    k = G.shape[1]
    A, r = np.empty((k, k)), np.empty(k)
    for u in range(start, stop):
        r[:] = 0.0
        A[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            i = indices[p]
            weight, value = far[i], x[p]
            for a in range(k):
                weighted = weight * G[i, a]
                r[a] += weighted * value
                for b in range(a + 1):
                    A[a, b] += weighted * G[i, b]
        for a in range(k):
            r[a] = prior_pull[a] + near[u] * r[a]
            for b in range(a + 1):
                A[a, b] = prior[a, b] + near[u] * A[a, b]
        _draw_normal(A, r, u, out)


@kernel
def _draw_normal(A: Array, r: Array, u: int, out: Array) -> None:
    """With A = C C^T, by Cholesky's method: C^T out[u] = C^{-1} r + out[u]. Overwrites r and the lower half of A."""
    k = r.size
    for a in range(k):
        for b in range(a + 1):
            dot = A[a, b]
            for j in range(b):
                dot -= A[a, j] * A[b, j]
            A[a, b] = np.sqrt(dot) if a == b else dot / A[b, b]
        dot = r[a]
        for j in range(a):
            dot -= A[a, j] * r[j]
        r[a] = dot / A[a, a]
    for a in range(k - 1, -1, -1):
        dot = r[a] + out[u, a]
        for j in range(a + 1, k):
            dot -= A[j, a] * out[u, j]
        out[u, a] = dot / A[a, a]

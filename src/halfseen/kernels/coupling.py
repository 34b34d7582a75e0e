"""Which answer belongs to which cell: Metropolis' algorithm over the couplings of one row after another.

A row has as many *tokens* as cells: its answers in rising order, then, where answers are lacking, unknown values. A
coupling hands every token to a cell of its row: `token_of_cell` and `cell_of_token`. Cells and tokens are numbered
through all rows, `indptr` says where each row's begin; all loops walk the rows from `start` to `stop` of whole arrays,
because a slice of an array is a counted reference, and threads would wait for each other's counting. The longest of
them is one piece for the same reason: cut into functions of whole arrays it takes half as long again.

Comparisons are lists of neighbours: `beaten[beaten_links[c]:beaten_links[c + 1]]` are the cells that cell c was said to
be no smaller than, `beaters` those that it was said to be no larger than.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel, streams

Array = npt.NDArray[Any]

#: In longer rows near tokens are exchanged more often than far ones.
_LONG = 32


@kernel
def couple(
    start: int, stop: int, indptr: Array, known: Array, seed: int, moves: int, trust: float,
    beaten_links: Array, beaten: Array, beater_links: Array, beaters: Array, alone: Array,
    mean: Array, precision: Array, tokens: Array, token_of_cell: Array, cell_of_token: Array,
) -> None:  # fmt: skip
    """In every row, `moves` proposals a cell to exchange the tokens of two cells, accepted by the density

        prod over cells of N(token | mean, 1 / precision) * exp(-trust * violated comparisons) * standing

    and a new value proposed for every unknown token. `known` has each row's number of answers. `alone` has each cell's
    comparisons won and lost against unnamed others: each is won with the chance that a random answer is smaller
    (`standing`).
    """
    stream = np.empty(1, np.uint64)
    for row in range(start, stop):
        first, size = np.int64(indptr[row]), np.int64(indptr[row + 1] - indptr[row])
        streams.start(seed, row, stream)
        answers_end = first + known[row]
        for _ in range(moves * size if size > 1 else 0):
            one = np.int64(streams.uniform(stream) * size)
            other = _partner(one, size, streams.uniform(stream), stream)
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
                new_a = mean[a] + streams.normal(stream) / np.sqrt(precision[a])
                gain += 0.5 * (np.log(precision[b]) - np.log(precision[a]))
            broken = 0
            for cell, old, new, besides in ((a, old_a, new_a, b), (b, old_b, new_b, a)):
                for p in range(beaten_links[cell], beaten_links[cell + 1]):
                    of_other = tokens[token_of_cell[beaten[p]]]
                    if beaten[p] != besides:
                        broken += (new < of_other) - (old < of_other)
                    else:  # the other one changes too; met from both sides, and counted from one
                        broken += (new_a < new_b) - (old_a < old_b) if cell == a else 0
                for p in range(beater_links[cell], beater_links[cell + 1]):
                    of_other = tokens[token_of_cell[beaters[p]]]
                    if beaters[p] != besides:
                        broken += (new > of_other) - (old > of_other)
                    else:
                        broken += (new_a > new_b) - (old_a > old_b) if cell == a else 0
            gain -= trust * broken
            for cell, old, new in ((a, old_a, new_a), (b, old_b, new_b)):
                if alone[cell, 0] + alone[cell, 1] > 0:
                    gain += _alone_gain(alone, cell, old, new, tokens, first, answers_end)
            if gain >= 0 or streams.uniform(stream) < np.exp(gain):
                cell_of_token[one], cell_of_token[other] = b, a
                token_of_cell[a], token_of_cell[b] = other, one
                tokens[other] = new_a
        for token in range(answers_end, first + size):
            cell = cell_of_token[token]
            old, new = tokens[token], mean[cell] + streams.normal(stream) / np.sqrt(precision[cell])
            broken = 0
            for p in range(beaten_links[cell], beaten_links[cell + 1]):
                of_other = tokens[token_of_cell[beaten[p]]]
                broken += (new < of_other) - (old < of_other)
            for p in range(beater_links[cell], beater_links[cell + 1]):
                of_other = tokens[token_of_cell[beaters[p]]]
                broken += (new > of_other) - (old > of_other)
            gain = -trust * broken
            if alone[cell, 0] + alone[cell, 1] > 0:
                gain += _alone_gain(alone, cell, old, new, tokens, first, answers_end)
            if gain >= 0 or streams.uniform(stream) < np.exp(gain):
                tokens[token] = new


@kernel
def _partner(one: int, size: int, chance: float, stream: Array) -> Any:
    """Another token to exchange with; the two ways are equally likely. Outside the row: none.

    In a short row any other one. In a long one every order of distance is equally likely, because most far exchanges
    would be refused.
    """
    if size <= _LONG:
        other = one + 1 + np.int64(chance * (size - 1))
        return other if other < size else other - size
    distance = np.int64(np.exp(chance * np.log(np.float64(size))))
    return one + distance if streams.uniform(stream) < 0.5 else one - distance


@kernel
def _alone_gain(alone: Array, cell: int, old: float, new: float, tokens: Array, first: int, end: int) -> Any:
    """What comparisons against unnamed others say of a cell's new value instead of its old one."""
    before, after = _standing(old, tokens, first, end), _standing(new, tokens, first, end)
    return alone[cell, 0] * np.log(after / before) + alone[cell, 1] * np.log((1.0 - after) / (1.0 - before))


@kernel
def _standing(value: float, tokens: Array, first: int, end: int) -> Any:
    """The share of a row's answers below a value, equal ones half, kept off 0 and 1 as if there were one more."""
    answers = tokens[first:end]
    below = 1 + np.searchsorted(answers, value, side="left") + np.searchsorted(answers, value, side="right")
    return below / (2.0 * answers.size + 2.0)


@kernel
def violations(beaten_links: Array, beaten: Array, tokens: Array, token_of_cell: Array) -> Any:
    """How many comparisons the coupling violates."""
    broken = 0
    for cell in range(beaten_links.size - 1):
        value = tokens[token_of_cell[cell]]
        for p in range(beaten_links[cell], beaten_links[cell + 1]):
            broken += value < tokens[token_of_cell[beaten[p]]]
    return broken

"""Factors of few columns that round to given levels, by construction. Each is checked exactly before it counts."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.rank.outer_products import as_outer_product
from halfseen.rank.proofs import Proof, Question
from halfseen.rank.rounding import grf
from halfseen.rank.runs import factors_of_runs

#: Levels that are tried as the level of 0 when thresholds are free, the most frequent ones.
_MOST_ZEROS = 5


def by_construction(question: Question, lower: int) -> Proof:
    """The proof of the smallest rank that a construction finds; none is tried any more when one has rank `lower`."""
    best = by_unit_vectors(question)
    for construct in (by_runs, by_truncation, by_shifting):
        for proof in construct(question, lower, best.rank) if best.rank > lower else ():
            best = min(best, proof, key=lambda one: one.rank)
    return best


def bisected(lower: int, upper: int, attempt: Callable[[int], Proof | None]) -> Proof | None:
    """The proof of the smallest rank from `lower` to below `upper` that is found by halving."""
    best = None
    while lower < upper:
        middle = (lower + upper) // 2
        if proof := attempt(middle):
            best, upper = proof, middle
        else:
            lower = middle + 1
    return best


def by_unit_vectors(question: Question) -> Proof:
    """X is a product of as many columns as it has rows, or columns, other than 0  (Lemma A.1)."""
    both = ((question, _itself), (question.transposed, _transposed))
    tables = value_tables(question)
    proofs = [turned(_by_unit_vectors(one, table)) for one, turned in both for table in tables]
    return min(proofs, key=lambda proof: proof.rank)


def _by_unit_vectors(question: Question, table: Array) -> Proof:
    X = table[question.levels]
    lives = np.flatnonzero(X.any(axis=1))
    W = np.zeros((len(X), lives.size))
    W[lives, np.arange(lives.size)] = 1.0
    proof = question.proof(W, X[lives].T, f"Y has {lives.size} rows, or columns, that differ and can't all be 0.")
    if proof is None:
        raise ParameterError(
            "thresholds must leave room for numbers between, below and above them. "
            f"Found {question.thresholds}. Use numbers of moderate size."
        )
    return proof


def _itself(proof: Proof) -> Proof:
    return proof


def _transposed(proof: Proof) -> Proof:
    return replace(proof, W=proof.H, H=proof.W)


def value_tables(question: Question) -> list[Array]:
    """Numbers for the levels 0..N, some with 0 among them."""
    if question.thresholds is None:
        present, counts = np.unique(question.levels, return_counts=True)
        lines = [*question.levels, *question.levels.T]
        constant = [line[0] for line in lines if np.ptp(line) == 0]
        zeros = dict.fromkeys([*constant, *present[np.argsort(-counts)][:_MOST_ZEROS]])
        return [np.arange(question.n_thresholds + 1.0) - zero for zero in zeros]
    tau = question.thresholds
    reach = np.diff(tau).mean() if tau.size > 1 else np.abs(tau).max(initial=0.0) or 1.0
    with np.errstate(over="ignore"):
        edges = np.concatenate([tau[:1] - 2 * reach, tau, tau[-1:] + 2 * reach])
        between = np.maximum(edges[:-1] / 2 + edges[1:] / 2, np.nextafter(edges[:-1], np.inf))
    with_zero = between.copy()
    with_zero[grf(0.0, tau)] = 0.0
    return [with_zero, between]


def by_runs(question: Question, lower: int, upper: int) -> Iterator[Proof]:
    """Ones side by side, or zeros side by side, in some order: runs.py."""
    present = np.unique(question.levels)
    if present.size != 2 or (question.thresholds is not None and question.thresholds.size != 1):
        return
    tau = 1.0 if question.thresholds is None else float(question.thresholds[0])
    for one, turned in ((question, _itself), (question.transposed, _transposed)):
        ones = one.levels == present[1]
        for sign, binary, what in ((1, ones, "ones"), (-1, ~ones, "zeros")):
            why = f"The {what} of Y are runs, in some order."
            factors = factors_of_runs(binary, sign * tau)
            if factors and (proof := one.proof(sign * factors[0], factors[1], why)):
                yield turned(proof)


def by_truncation(question: Question, lower: int, upper: int) -> Iterator[Proof]:
    """The first singular vectors of numbers for the levels: all of them give the linear rank, fewer may do."""
    on_threshold = question.thresholds is not None and 0.0 in question.thresholds  # where rounding errors decide
    for table in value_tables(question)[1 if on_threshold else 0 :]:
        left, values, right = np.linalg.svd(table[question.levels], full_matrices=False)

        def attempt(rank: int, W: Array = left * values, H: Array = right.T) -> Proof | None:
            why = f"{rank} singular vectors of numbers for the levels round to Y."
            return question.proof(np.ascontiguousarray(W[:, :rank]), np.ascontiguousarray(H[:, :rank]), why)

        if proof := bisected(lower, upper, attempt):
            upper = proof.rank
            yield proof


def by_shifting(question: Question, lower: int, upper: int) -> Iterator[Proof]:
    """k X + c rounds to Y with thresholds k tau + c: one column more than with free thresholds (Lemmas 2.1.1, 2.1.2).

    Two thresholds at most can be brought where they should be.
    """
    if question.thresholds is None or question.thresholds.size not in (1, 2):
        return
    free = question.freed
    found = as_outer_product(free).proof or by_construction(free, max(lower - 1, 1))
    tau, own = question.thresholds, found.thresholds
    if own.size < tau.size:  # the highest level is not there, and its threshold anywhere above
        own = np.append(own, _above(found, own))
    scale = np.ptp(tau) / np.ptp(own) if tau.size == 2 else 1.0
    W = np.column_stack([scale * found.W, np.full(len(found.W), tau[0] - scale * own[0])])
    H = np.column_stack([found.H, np.ones(len(found.H))])
    if proof := question.proof(W, H, f"{found.why[:-1]} with other thresholds, and one column more shifts them."):
        yield proof


def _above(found: Proof, thresholds: Array) -> float:
    """A number above all of W H' and the thresholds."""
    return 1.0 + max(float((found.W @ found.H.T).max()), float(thresholds.max(initial=-np.inf)))

"""The generalized round-rank of a matrix of levels, between bounds that are proved."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.checks import check_parameters, flag, seed, whole
from halfseen.engines.threads import hold_blas, release_blas
from halfseen.rank.levels import checked_levels
from halfseen.rank.lower import Bound, binary_bounds
from halfseen.rank.outer_products import as_outer_product
from halfseen.rank.proofs import Distinct, Proof, Question
from halfseen.rank.rounding import checked_thresholds
from halfseen.rank.search import found_by_search
from halfseen.rank.upper import bisected, by_construction

_ONE = Bound(1, "Not all of Y is at the level of 0.")
_TWO = Bound(2, "No outer product rounds to Y: the signs or the sizes of its factors would contradict each other.")

_RULES = {"search": flag(), "n_init": whole(1), "random_state": seed()}


@dataclass(frozen=True, eq=False)
class RoundRank:
    """Bounds on a round-rank. GRF(W H') = Y with these thresholds, exactly: that proves the upper one."""

    lower: int
    """Below this rank nothing rounds to Y."""
    upper: int
    """At this rank W H' does."""
    W: Array = field(repr=False)
    """(n, upper) the factor of the rows."""
    H: Array = field(repr=False)
    """(m, upper) the factor of the columns."""
    thresholds: Array
    """tau_1 < ... < tau_N, those given or those found."""
    why_lower: str
    """Why the lower bound holds, in a sentence."""
    why_upper: str
    """Where the factors come from, in a sentence."""

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    def __str__(self) -> str:
        rank = f"{self.upper}" if self.exact else f"from {self.lower} to {self.upper}"
        return f"Round-rank {rank}. {self.why_lower} {self.why_upper}"


def round_rank(
    Y: Any, thresholds: Any = None, *, search: bool = True, n_init: int = 5, random_state: Any = 0
) -> RoundRank:
    """GRR(Y) = min rank X with GRF(X) = Y, over X  (Eq. 2.6)  or over X and the thresholds  (Eq. 2.2).

    Whether the rank is 0 or 1 is decided exactly. Beyond, the lower bound is the best of Forster's bound and of
    shattered rows and columns; the upper bound is the best of constructions and of a search. Both are proved, the
    upper one by factors whose rounded product was checked in exact arithmetic: they hold whatever their distance.

    Parameters
    ----------
    Y : (n, m) levels 0..N, a whole number in every cell.
    thresholds : tau_1 < ... < tau_N, or None for those with which the rank is smallest.
    search : whether to look for factors of smaller rank than the constructions have.
    n_init : starts of the search for each rank that is tried, of which there are about log2 of the distance between the
        bounds. More may find a lower upper bound; for matrices of many hundred rows few take long as well.
    random_state : of the search.

    Returns
    -------
    A `RoundRank` with `lower`, `upper`, `exact`, the factors `W`, `H` and the `thresholds`, `why_lower`, `why_upper`.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> bounds = hs.rank.round_rank(np.tri(8))  # of linear rank 8
    >>> bounds.lower, bounds.upper
    (1, 1)
    >>> bool(np.all(hs.rank.grf(bounds.W @ bounds.H.T, bounds.thresholds) == np.tri(8)))
    True
    """
    check_parameters({"search": search, "n_init": n_init, "random_state": random_state}, _RULES)
    tau = None if thresholds is None else checked_thresholds(thresholds)
    distinct = Distinct.of(Question(checked_levels(Y, tau), tau))
    hold_blas()  # the search ends elsewhere with other sums, and small ones do not gain by threads
    try:
        bound, proof = _bounds(distinct.question, n_init if search else 0, random_state)
    finally:
        release_blas()
    proof = distinct.repeated(proof)
    return RoundRank(bound.rank, proof.rank, proof.W, proof.H, proof.thresholds, bound.why, proof.why)


def _bounds(question: Question, n_init: int, random_state: Any) -> tuple[Bound, Proof]:
    if proof := _by_nothing(question):
        return Bound(0, "No rank is smaller."), proof
    decision = as_outer_product(question)
    if decision.proof:
        return _ONE, decision.proof
    bound = max([_TWO if decision.impossible else _ONE, *binary_bounds(question)], key=lambda bound: bound.rank)
    best = by_construction(question, bound.rank)
    random = check_random_state(random_state)
    found = bisected(bound.rank, best.rank, lambda rank: found_by_search(question, rank, n_init, random))
    return bound, found or best


def _by_nothing(question: Question) -> Proof | None:
    """X = 0."""
    n, m = question.levels.shape
    return question.proof(np.zeros((n, 0)), np.zeros((m, 0)), "0 rounds to Y.")


def bound_for_any_thresholds(rank: Any, n_thresholds: Any) -> int:
    """GRR_tau'(Y) <= N GRR_tau*(Y) + 1,  tau* the best thresholds and tau' any others  (Theorem 2.1.1).

    With N = 1 or 2 the rank rises by 1 at most: k X + c with k > 0 brings two thresholds to any two places (Lemmas
    2.1.1 and 2.1.2). From N = 3 on the thesis' proof has a gap, and `round_rank` does not rely on it: see "The notions
    of rank" in the methods.

    Parameters
    ----------
    rank : GRR_tau*(Y), or a bound above it.
    n_thresholds : N.
    """
    check_parameters({"rank": rank, "n_thresholds": n_thresholds}, {"rank": whole(0), "n_thresholds": whole(1)})
    return int(n_thresholds) * int(rank) + 1

"""Notions of rank after "Compact Factorization of Matrices Using Generalized Round-Rank" (Pezeshkpour 2018)."""

from halfseen.roundrank.bounds import (
    RoundRank,
    approximation_errors,
    bound_for_any_thresholds,
    epsilon_rank,
    round_rank,
)
from halfseen.roundrank.certainty import Certainty, Verdict, certainty
from halfseen.roundrank.exact_rounding import grf, rounds_to
from halfseen.roundrank.examples import Construction, band, identity, triangular
from halfseen.roundrank.lower_bounds import forster_bound

__all__ = [
    "Certainty",
    "Construction",
    "RoundRank",
    "Verdict",
    "approximation_errors",
    "band",
    "bound_for_any_thresholds",
    "certainty",
    "epsilon_rank",
    "forster_bound",
    "grf",
    "identity",
    "round_rank",
    "rounds_to",
    "triangular",
]

"""The notions of rank of "Compact Factorization of Matrices Using Generalized Round-Rank" (Pezeshkpour 2018)."""

from halfseen.rank.approximation import approximation_errors, epsilon_rank
from halfseen.rank.bounds import RoundRank, bound_for_any_thresholds, round_rank
from halfseen.rank.certainty import Certainty, Verdict, certainty
from halfseen.rank.exactness import rounds_to
from halfseen.rank.known import Construction, band, identity, triangular
from halfseen.rank.lower import forster_bound
from halfseen.rank.rounding import grf

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

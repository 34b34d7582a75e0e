"""Notions of rank after "Compact Factorization of Matrices Using Generalized Round-Rank" (Pezeshkpour 2018)."""

from halfseen.roundrank.approximate_ranks import ApproximateRank, approximate_rank, approximation_errors, epsilon_rank
from halfseen.roundrank.bounds import (
    CellsNeeded,
    RoundRank,
    bound_for_any_thresholds,
    cells_needed,
    round_rank,
    sign_rank,
)
from halfseen.roundrank.certainty import Certainty, Verdict, certainty
from halfseen.roundrank.exact_rounding import grf, rounds_to
from halfseen.roundrank.examples import Construction, band, identity, triangular
from halfseen.roundrank.lower_bounds import forster_bound
from halfseen.roundrank.orders import OrderPosterior, complete_by_orders

__all__ = [
    "ApproximateRank",
    "CellsNeeded",
    "Certainty",
    "Construction",
    "OrderPosterior",
    "RoundRank",
    "Verdict",
    "approximate_rank",
    "approximation_errors",
    "band",
    "bound_for_any_thresholds",
    "cells_needed",
    "certainty",
    "complete_by_orders",
    "epsilon_rank",
    "forster_bound",
    "grf",
    "identity",
    "round_rank",
    "rounds_to",
    "sign_rank",
    "triangular",
]

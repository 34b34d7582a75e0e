"""How good a model is on cells that it has not seen: by ranking, and by the probabilities of ordered levels."""

from halfseen.metrics.level_scores import Calibration, calibration, log_score, ranked_probability_score
from halfseen.metrics.posterior_check import PredictiveCheck, predictive_check
from halfseen.metrics.ranking import (
    RankingScores,
    map_at_k,
    ndcg_at_k,
    precision_at_k,
    ranking_scores,
    recall_at_k,
)

__all__ = [
    "Calibration",
    "PredictiveCheck",
    "RankingScores",
    "calibration",
    "log_score",
    "map_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "predictive_check",
    "ranked_probability_score",
    "ranking_scores",
    "recall_at_k",
]

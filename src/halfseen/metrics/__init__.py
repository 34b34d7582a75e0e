"""How good a model is on cells that it has not seen: by rankings, predicted values and probabilities of levels."""

from halfseen.metrics.evaluation import Evaluation, evaluate
from halfseen.metrics.posterior_check import PredictiveCheck, predictive_check
from halfseen.metrics.ranking import (
    RankingScores,
    auc,
    coverage_at_k,
    hit_rate_at_k,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    novelty_at_k,
    precision_at_k,
    ranking_scores,
    recall_at_k,
    standard_error,
)
from halfseen.metrics.value_scores import (
    Calibration,
    calibration,
    log_loss,
    log_score,
    mae,
    ranked_probability_score,
    rmse,
)

__all__ = [
    "Calibration",
    "Evaluation",
    "PredictiveCheck",
    "RankingScores",
    "auc",
    "calibration",
    "coverage_at_k",
    "evaluate",
    "hit_rate_at_k",
    "log_loss",
    "log_score",
    "mae",
    "map_at_k",
    "mrr_at_k",
    "ndcg_at_k",
    "novelty_at_k",
    "precision_at_k",
    "predictive_check",
    "ranked_probability_score",
    "ranking_scores",
    "recall_at_k",
    "rmse",
    "standard_error",
]

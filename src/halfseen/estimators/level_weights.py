"""How much a seen cell counts, by its level."""

from typing import Any

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.levels import Levels, said


def rule_of_weights() -> checks.Rule:
    """None, "levels", or finite numbers above 0: a list, or a dict by level."""

    def rule(value: Any) -> tuple[str, str] | None:
        if value is None or (isinstance(value, str) and value == "levels"):
            return None
        given = list(value.values()) if isinstance(value, dict) else value
        try:
            weights = np.asarray([] if isinstance(given, str) else given, dtype=np.float64)
        except (TypeError, ValueError):
            weights = np.empty(0)
        if weights.ndim == 1 and weights.size and np.isfinite(weights).all() and (weights > 0).all():
            return None
        near = checks.did_you_mean(value, ["levels"]) if isinstance(value, str) else None
        return (
            "'levels', None, or a finite weight above 0 for each level",
            f"Did you mean {near!r}?" if near else "Pass a list or a dict of weights.",
        )

    return rule


def weights_of_levels(level_weight: Any, levels: Levels, mean_level: float) -> Array:
    """How much a seen cell of each level 0..V counts; where unseen cells are zeros, one at level 0 counts once."""
    if level_weight is None:
        return np.ones(levels.values.size)
    first = 1 if levels.unseen == "zero" else 0
    if isinstance(level_weight, str):
        return np.append(1.0, np.arange(1, levels.values.size) / mean_level)
    labels = levels.labels[first:].tolist()
    weights = _looked_up(level_weight, labels) if isinstance(level_weight, dict) else list(level_weight)
    if len(weights) != len(labels):
        raise ParameterError(
            f"level_weight must hold a weight for each of the {len(labels)} levels {', '.join(map(said, labels))}. "
            f"Found {len(weights)}. List them from the lowest level to the highest, or pass a dict."
        )
    return np.array([1.0] * first + weights, dtype=np.float64)


def _looked_up(weights: dict[Any, float], labels: list[Any]) -> list[float]:
    for label in labels:
        if label not in weights:
            raise ParameterError(
                f"level_weight must hold a weight for each of the {len(labels)} levels {', '.join(map(said, labels))}. "
                f"Found none for {said(label)}. Add it."
            )
    return [weights[label] for label in labels]

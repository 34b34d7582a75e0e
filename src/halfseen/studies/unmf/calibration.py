"""Whether the sampled couplings are as sure as they may be. This looks at the truth, and chooses nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.studies.unmf.protocol import Fold

LEVEL = 0.9
#: The numbers of comparisons that are looked at.
AT = (6, 12, 20, 28)


class Calibration(NamedTuple):
    """Of one fit: how many test cells lie in their intervals, how wide these are, the mean disclosure risk of the
    asked cells, and how many of these have the answer that was most likely."""

    coverage: float
    width: float
    risk: float
    hits: float


def calibrated(model: Any, fold: Fold) -> Calibration:
    """Of a model with sampled couplings, by the values that it was not given."""
    low, high = model.predict_interval(*fold.places, LEVEL)
    answer: Array = model.coupling().answer  # cells in the order of the training cells
    return Calibration(
        float(np.mean((low <= fold.test.values) & (fold.test.values <= high))),
        float(np.mean(high - low)),
        float(model.disclosure_risk().mean()),
        float(np.mean(answer == fold.train.values)),
    )

"""The methods of Table 4.4 and Figures 4.4 to 4.6: factorizations of ratings."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

import halfseen
from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.metrics import ranked_probability_score
from halfseen.studies.grr.printed import LINEAR, ROUND, SIGMOID
from halfseen.studies.grr.protocol import Method, named

ORDINAL = "OrdinalMF"
LOSSES = {ROUND: "round", LINEAR: "linear", SIGMOID: "multi-sigmoid"}
#: What l2 is chosen from.
L2 = (3.0, 5.0, 7.0, 10.0, 15.0, 22.0, 30.0)
#: The components of OrdinalMF, the thesis's best competitor having 30.
ORDINAL_K = (10, 30)


def with_loss(name: str, k: int, biases: bool, l2: Sequence[float]) -> Method:
    """RoundMF with one of the thesis's losses."""
    words = f"{name}, biases" if biases else name
    make = partial(halfseen.RoundMF, k, loss=LOSSES[name], biases=biases)
    return Method(words, make, [{"l2": value} for value in l2])


def ordinal(ks: Sequence[int], l2: Sequence[float]) -> Method:
    """The probabilistic sister, its components chosen too."""
    grid = [{"n_components": k, "l2": value} for k, value in product(ks, l2)]
    return Method(ORDINAL, halfseen.OrdinalMF, grid)


def score_of_probabilities(model: Any, cells: Observed) -> float:
    """The ranked probability score at the cells, in levels: smaller is better."""
    return ranked_probability_score(cells.values, probabilities(model, cells), labels=model.levels_)


def probabilities(model: Any, cells: Observed) -> Array:
    """Of each level at each cell: OrdinalMF's own; the heights of Multi-sigmoid's steps; else all at one level."""
    rows, columns = cells.row_of_cell(), cells.indices
    if isinstance(model, halfseen.OrdinalMF):
        return np.asarray(model.predict_proba(*named(model, cells)))
    x = np.einsum("ck,ck->c", model.W_[rows], model.H_[columns])
    if model.loss == "multi-sigmoid":
        above = expit(x[:, None] - model.likelihood_.thresholds)
    else:
        above = (x[:, None] > model.thresholds_).astype(np.float64)
    return -np.diff(above, axis=1, prepend=1.0, append=0.0)

"""The thesis's methods and ours: for small matrices (Figures 4.1 to 4.3, Tables 4.1 to 4.3), and for ratings."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

import halfseen
from halfseen.arrays import Array
from halfseen.observed import Observed
from halfseen.studies.grr.protocol import Method, Setting, named
from halfseen.studies.grr.sets import Family

LINEAR, SIGMOID, SIGMOID_FIXED = "Linear", "Multi-sigmoid", "Multi-sigmoid, fixed τ"
ROUND, ROUND_FIXED = "Round", "Round, fixed τ"
OURS_SIGMOID, OURS_ROUND, OURS_ORDINAL = "ours: Multi-sigmoid", "ours: Round", "ours: OrdinalMF"

#: The l2 that ours choose from, and the epochs of the thesis's methods.
L2 = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
EPOCHS = 40
#: Matrices as small as these are done before a second thread has started.
ONE_THREAD = 1
#: Without a margin the learned threshold of two levels comes to x, where nothing costs anything, and all stays there.
MARGIN = 0.25
#: Of fits that recover a matrix: next to nothing, since it is not to be predicted.
RECOVERY_L2 = 1e-5

LOSSES = {ROUND: "round", LINEAR: "linear", SIGMOID: "multi-sigmoid"}
#: What l2 is chosen from for ratings, and the components of OrdinalMF, the thesis's best competitor having 30.
RATINGS_L2 = (3.0, 5.0, 7.0, 10.0, 15.0, 22.0, 30.0)
ORDINAL_K = (10, 30)


def _losses(family: Family) -> dict[str, dict[str, Any]]:
    """The thesis's five methods. Fixed thresholds need no cell at every level."""
    fixed = {"thresholds": family.fixed, "levels": list(range(len(family.fixed) + 1))}
    return {
        LINEAR: {"loss": "linear"},
        SIGMOID: {"loss": "multi-sigmoid"},
        SIGMOID_FIXED: {"loss": "multi-sigmoid", **fixed},
        ROUND: {"loss": "round"},
        ROUND_FIXED: {"loss": "round", **fixed},
    }


def of_recovery(family: Family) -> list[Method]:
    """The thesis's five by Newton's method, without biases."""
    make = partial(halfseen.RoundMF, family.k, biases=False, l2=RECOVERY_L2, tol=0.0, n_jobs=ONE_THREAD)
    return [Method(name, partial(make, **loss)) for name, loss in _losses(family).items()]


def of_the_thesis(family: Family, size: int, epochs: int = EPOCHS) -> list[Method]:
    """Stochastic gradients from a start uniform in (-0.005, 0.005), no biases  (section 3.2, the thesis's program)."""
    margins = {ROUND: {"margin": MARGIN}, ROUND_FIXED: {"margin": 0.0}}

    def make(loss: Setting, *, random_state: int) -> halfseen.RoundMF:
        random = np.random.default_rng(random_state)
        init = tuple(random.uniform(-0.005, 0.005, (size, family.k)) for _ in range(2))
        return halfseen.RoundMF(
            family.k, biases=False, centred=False, solver="sgd", init=init, l2=1e-4, tol=0.0, max_iter=epochs,
            random_state=random_state, n_jobs=ONE_THREAD, **loss,
        )  # fmt: skip

    losses = {name: loss | margins.get(name, {}) for name, loss in _losses(family).items()}
    return [Method(name, partial(make, loss)) for name, loss in losses.items()]


def our_own(family: Family, l2: Sequence[float] = L2, starts: int = 2) -> list[Method]:
    """Newton's method from several starts, biases or none, a ridge around 0 or our centre: whatever the held-out cells
    prefer."""
    forms = product((False, True), (False, True), l2)
    grid = [{"biases": biases, "centred": centred, "l2": value} for biases, centred, value in forms]
    how: dict[str, Any] = {"n_init": starts, "n_jobs": ONE_THREAD}
    losses = _losses(family)

    def rounded(*, fixed: bool, random_state: int) -> halfseen.RoundMF:
        loss = losses[ROUND_FIXED if fixed else ROUND]
        return halfseen.RoundMF(family.k, biases=False, margin=MARGIN, random_state=random_state, **how, **loss)

    return [
        Method(OURS_SIGMOID, partial(halfseen.RoundMF, family.k, **how), grid),
        Method(OURS_ROUND, rounded, [{"fixed": False}, {"fixed": True}]),
        Method(OURS_ORDINAL, partial(halfseen.OrdinalMF, family.k, **how), grid),
    ]


def of_ratings(name: str, k: int, biases: bool, l2: Sequence[float]) -> Method:
    """RoundMF with one of the thesis's losses, for ratings."""
    make = partial(halfseen.RoundMF, k, loss=LOSSES[name], biases=biases)
    return Method(f"{name}, biases" if biases else name, make, [{"l2": value} for value in l2])


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

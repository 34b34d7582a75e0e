"""The rows of Tables 4.1 to 4.3 and the lines of Figures 4.1 to 4.3: the thesis's five methods, and ours."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import halfseen
from halfseen.studies.grr.matrices import Family
from halfseen.studies.grr.printed import LINEAR, ROUND, ROUND_FIXED, SIGMOID, SIGMOID_FIXED
from halfseen.studies.grr.protocol import Method, Setting

OURS_SIGMOID, OURS_ROUND, OURS_ORDINAL = "ours: Multi-sigmoid", "ours: Round", "ours: OrdinalMF"

#: The l2 that ours choose from, and the epochs of the thesis's methods.
L2 = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
EPOCHS = 40
#: Matrices as small as these are done before a second thread has woken up.
ONE_THREAD = 1
#: Without a margin the learned threshold of two levels comes to x, where nothing costs anything, and all stays there.
MARGIN = 0.25


def of_the_thesis(family: Family, size: int, epochs: int = EPOCHS) -> list[Method]:
    """Stochastic gradients from a start uniform in (-0.005, 0.005), no biases  (section 3.2, the thesis's program)."""
    losses: dict[str, dict[str, Any]] = {
        LINEAR: {"loss": "linear"},
        SIGMOID: {"loss": "multi-sigmoid"},
        SIGMOID_FIXED: {"loss": "multi-sigmoid", **fixed_thresholds(family)},
        ROUND: {"loss": "round", "margin": MARGIN},
        ROUND_FIXED: {"loss": "round", "margin": 0.0, **fixed_thresholds(family)},
    }
    make = partial(_descending, family.k, size, epochs)
    return [Method(name, partial(make, loss)) for name, loss in losses.items()]


def our_own(family: Family, l2: Sequence[float] = L2, starts: int = 2) -> list[Method]:
    """Newton's method from several starts, biases or none, a ridge around 0 or our centre: whatever the held-out cells
    prefer."""
    forms = product((False, True), (False, True), l2)
    grid = [{"biases": biases, "centred": centred, "l2": value} for biases, centred, value in forms]
    rounding = [{"fixed": False}, {"fixed": True}]
    return [
        Method(OURS_SIGMOID, partial(halfseen.RoundMF, family.k, n_init=starts, n_jobs=ONE_THREAD), grid),
        Method(OURS_ROUND, partial(_rounded, family, starts), rounding),
        Method(OURS_ORDINAL, partial(halfseen.OrdinalMF, family.k, n_init=starts, n_jobs=ONE_THREAD), grid),
    ]


def fixed_thresholds(family: Family) -> dict[str, Any]:
    """Fixed thresholds need no cell at a level to stand beside."""
    return {"thresholds": family.fixed, "levels": list(range(len(family.fixed) + 1))}


def _descending(k: int, size: int, epochs: int, loss: Setting, *, random_state: int) -> halfseen.RoundMF:
    random = np.random.default_rng(random_state)
    return halfseen.RoundMF(
        k,
        biases=False,
        centred=False,
        solver="sgd",
        init=tuple(random.uniform(-0.005, 0.005, (size, k)) for _ in range(2)),
        l2=1e-4,
        tol=0.0,
        max_iter=epochs,
        random_state=random_state,
        n_jobs=ONE_THREAD,
        **loss,
    )


def _rounded(family: Family, starts: int, *, fixed: bool, random_state: int) -> halfseen.RoundMF:
    thresholds = fixed_thresholds(family) if fixed else {}
    how = {"biases": False, "margin": MARGIN, "n_init": starts, "random_state": random_state, "n_jobs": ONE_THREAD}
    return halfseen.RoundMF(family.k, loss="round", **how, **thresholds)  # type: ignore[arg-type]

"""Half-seen matrices with everything in them that could hurt, and the runs that all laws share."""

from contextlib import contextmanager

import numpy as np

from halfseen.engines import Side, open_engine
from halfseen.io import observe
from halfseen.likelihoods import (
    LINKS,
    BetaDivergence,
    CompoundPoisson,
    Cumulative,
    GammaNoise,
    Gaussian,
    InverseGammaNoise,
    Linear,
    MultiSigmoid,
    Ordinal,
    OwnThresholds,
    Poisson,
    Round,
    SingleCountOrdinal,
    Squared,
)
from halfseen.observed import Observed
from halfseen.solvers import Problem

#: Those whose divergence is a textbook's, zero at x = y: the dense oracle knows them by their beta.
DIVERGENCES = [
    Poisson(),
    Gaussian(),
    *map(BetaDivergence, (-1.0, 0.0, 0.5, 1.5, 3.0)),
]
DECREMENTS = np.array([0.3, 0.35, 0.2, 0.1, 0.05])
#: Those of levels and compound counts, whose own tests have oracles.
OTHERS = [
    Ordinal(DECREMENTS),
    CompoundPoisson(0.7),
    Squared(Ordinal(DECREMENTS, pinned=True)),
    GammaNoise(np.array([0.7, 1.5, 2.5, 4.0, 7.0])),
    GammaNoise(np.array([0.7, 1.5, 2.5, 4.0, 7.0]), 2.5),
    InverseGammaNoise(DECREMENTS, 2.5),
]
#: A new likelihood joins one of these lists and inherits every law.
LIKELIHOODS = [*DIVERGENCES, *OTHERS]

#: Thresholds between five levels.
THRESHOLDS = np.array([-1.2, 0.1, 0.9, 2.0])
#: Those with a slope at any x, of either sign: by the name of their loss in `tests/graded/oracle.py`.
SMOOTHS = {
    "linear": Linear(4, 1.7),
    "multi-sigmoid": MultiSigmoid(THRESHOLDS),
    "round": Round(THRESHOLDS),
    **{name: Cumulative(THRESHOLDS, link=link) for name, link in LINKS.items()},
}

#: Those of which every cell's value tells its owner and its level, and which laws of plain levels do not suit.
OWNED = OwnThresholds(
    THRESHOLDS,
    True,
    np.arange(5.0) ** 2,
    LINKS["probit"],
    np.random.default_rng(0).normal(0, 0.3, (3, 4)),
    0.7,
    "columns",
)
#: What files may hold.
STORED = {
    **{f"{one.name} {number}": one for number, one in enumerate(LIKELIHOODS)},
    **SMOOTHS,
    "own thresholds": OWNED,
    "presence": Ordinal(np.ones(1), learned=False),
    "named levels": Ordinal(DECREMENTS, False, np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])),
    "squared counts": Squared(Poisson()),
    "single counts": SingleCountOrdinal(DECREMENTS),
}

BETAS = {"kullback-leibler": 1.0, "frobenius": 2.0}


def beta_of(likelihood):
    return getattr(likelihood, "beta", None) if likelihood.name not in BETAS else BETAS[likelihood.name]


def made_legal(likelihood, X):
    """Data of the likelihood's kind: whole numbers where others are illegal, and none above the highest level."""
    if likelihood.legal(np.array([0.5]))[0]:
        return X
    whole = np.arange(100.0)
    return np.minimum(np.round(X), whole[likelihood.legal(whole)].max())


def names(likelihood):
    return likelihood.name


def half_seen(n=14, m=11, *, seed=0, zeros=True, blanks=True, holes=0.35):
    """A dense array with NaN, with zeros, a row and a column of zeros, an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.5, 2.0, (n, m)) + 0.05
    if zeros:
        X[rng.random((n, m)) < 0.2] = 0.0
        X[2], X[:, 4] = 0.0, 0.0
    X[rng.random((n, m)) < holes] = np.nan
    if blanks:
        X[5], X[:, 7] = np.nan, np.nan
    return X


def counts(n=14, m=11, *, seed=0, holes=0.35):
    X = half_seen(n, m, seed=seed, holes=holes)
    return np.round(X)


def levels(n=14, m=11, *, seed=0, holes=0.35, blanks=True, dtype=np.float64):
    """Codes of five levels with NaN, all of them seen, that rows and columns say something of; and blanks."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) + rng.normal(size=m) + 0.5 * rng.logistic(size=(n, m))
    Y = np.digitize(x, np.quantile(x, [0.1, 0.35, 0.6, 0.85])).astype(dtype)
    Y[rng.random((n, m)) < holes] = np.nan
    if blanks:
        Y[5], Y[:, 7] = np.nan, np.nan
    return Y


def signed_start(n, m, k, seed=0, dtype=np.float64):
    """Factors of either sign."""
    rng = np.random.default_rng(seed + 300)
    return rng.normal(0, 0.5, (n, k)).astype(dtype), rng.normal(0, 0.5, (m, k)).astype(dtype)


def weights_for(X, seed=0):
    """A weight for every cell of X: halves, ones, threes and odd ones."""
    rng = np.random.default_rng(seed + 100)
    return rng.choice([0.5, 1.0, 3.0, 0.37], X.shape)


def start(n, m, k, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed + 200)
    return rng.uniform(0.2, 1.5, (n, k)).astype(dtype), rng.uniform(0.2, 1.5, (m, k)).astype(dtype)


def observed_cases(likelihood, unseen, weighted, seed=0):
    """A half-seen matrix that the likelihood allows."""
    X = made_legal(likelihood, half_seen(seed=seed, zeros=bool(likelihood.legal(np.zeros(1))[0])))
    return observe(X, unseen=unseen, cell_weight=weights_for(X, seed) if weighted else None)


def matrix(likelihood, unseen, kind, dtype=np.float64):
    """An empty row and column; with weights, some cells and a row have weight 0; or some cells have several values."""
    X = made_legal(likelihood, half_seen(zeros=bool(likelihood.legal(np.zeros(1))[0]))).astype(dtype)
    if kind == "plain":
        return observe(X, unseen=unseen)
    if kind == "weighted":
        weights = weights_for(X)
        weights[3], weights[::4, 2] = 0.0, 0.0
        return observe(X, unseen=unseen, cell_weight=weights)
    rows, columns = np.nonzero(~np.isnan(X))
    cells = (np.append(positions, positions[::3]) for positions in (rows, columns))
    values = X[rows, columns]
    return Observed.from_cells(*cells, np.append(values, values[::3]), X.shape, unseen=unseen, duplicates="keep")


@contextmanager
def open_problem(likelihood, observed, n_jobs=1):
    with open_engine("cpu", n_jobs) as engine:
        yield Problem(engine, engine.place(observed, *Side), likelihood)


def states(solver, likelihood, observed, W, H, steps, n_jobs=1):
    """The states of a solver from (W, H), the start first."""
    with open_problem(likelihood, observed, n_jobs) as problem:
        state = solver.init_state(problem, W.copy(), H.copy())
        yield state
        for _ in range(steps):
            state = solver.epoch(problem, state)
            yield state

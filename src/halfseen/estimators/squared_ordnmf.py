"""Ordinal factorization through a square link, for ranking."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.level_weights import rule_of_weights, weights_of_levels
from halfseen.estimators.levels import Levels
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.estimators.squared_factorization import SquaredFactorization
from halfseen.likelihoods import Likelihood, Ordinal, Squared
from halfseen.observed import Observed


class SquaredOrdNMF(OrdinalMixin, SquaredFactorization):
    """Ordered levels for ranking: OrdNMF's levels at the rate x^2, with half-normal priors, at the mode.

    P(y <= v) = exp(-theta_v x^2) with x = <w_u, h_i> and theta_0 = 1. Unseen cells are *zeros* by default, observations
    of a level below all others; with `unseen="missing"` they say nothing. A linear rate pushes all unseen cells alike,
    the squared one those with high scores harder; the prior holds all factors down. Recommendations and ranking are by
    x, in which this model is ahead of OrdNMF. The penalised loss never rises. Its probabilities are those of a
    likelihood that was weighted and held down: by and large too few cells are expected above level 0 and, under
    `level_weight="levels"`, too few at low levels; where probabilities must mean what they say, use OrdNMF.

    Parameters
    ----------
    n_components : the number k of components.
    levels : the levels from the lowest to the highest; None takes the different values of the data.
    thresholds : the thresholds b_0 < ... < b_{V-1} between levels 0..V, which are divided by the first; None learns
        them.
    level_weight : how much a seen cell counts: "levels", in proportion to its level (the mean is 1); None, once; or
        weights of your own, a list with one for each level that can be seen, from the lowest to the highest, or a dict
        from level to weight. What is not seen counts once: weights below 1 trust what is seen less than that.
    l2 : the prior exp(-l2 / 2 w^2) on every entry of both factors. None takes 0.72 (sqrt(n) + sqrt(m)): in x, the noise
        of every cell is about as large, and such is its spectral norm, which an L2 on both factors must outweigh. That
        was near the best on four of five sets of ratings; where users have rated little, twice as much was better. Hold
        cells out to choose your own.
    max_iter, tol : stop after max_iter iterations, or when one lowers the loss by less than tol times the loss at the
        start.
    accelerate : let iterations start ahead of the last one, by momentum, and keep only what gains: fewer of them, and
        most often a better end. False gives the plain iterations.
    init : "random" or a pair of arrays (W0, H0).
    random_state : seed of the random start; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    unseen : "zero" or "missing".
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k), H_ : (m, k), components_ : H_ transposed.
    levels_ : the levels 0..V; thresholds_ : b_0..b_{V-1} between them.
    l2_ : the l2 of the fit; level_weights_ : how much a seen cell of each level counts.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the penalised loss) and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1)]
    >>> model = hs.SquaredOrdNMF(n_components=1, random_state=0).fit(stars)
    >>> model.recommend(["bob"], n=5).ids
    array([['Brazil']], dtype=object)
    """

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **SquaredFactorization.parameter_rules,
        **OrdinalMixin.rules_of_levels,
        "level_weight": rule_of_weights(),
    }

    def __init__(
        self,
        n_components: int = 50,
        *,
        levels: Any = None,
        thresholds: Any = None,
        level_weight: Any = "levels",
        l2: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        accelerate: bool = True,
        init: Any = "random",
        random_state: Any = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.levels = levels
        self.thresholds = thresholds
        self.level_weight = level_weight
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.unseen = unseen
        self.engine = engine
        self.n_jobs = n_jobs

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        self._settle_l2(observed)
        coded, likelihood = super()._begun(observed)
        levels = Levels.fitted(self.levels_, self.unseen)
        self.level_weights_ = weights_of_levels(self.level_weight, levels, _mean_above_zero(coded))
        return self._weighted(coded), likelihood

    def _coded(self, observed: Observed) -> Observed:
        return self._weighted(super()._coded(observed))

    def _weighted(self, coded: Observed) -> Observed:
        """Every seen cell counts as its level does."""
        if np.all(self.level_weights_ == 1.0):
            return coded
        weights = self.level_weights_[coded.values.astype(np.intp)].astype(coded.dtype)
        return replace(coded, weights=weights if coded.weights is None else weights * coded.weights)

    def _first_likelihood(self, histogram: Array) -> Squared:
        ordinal = self._first_ordinal(histogram)
        return self._taken(replace(ordinal, decrements=ordinal.decrements / ordinal.theta[0]))

    def _taken(self, ordinal: Ordinal) -> Squared:
        return Squared(replace(ordinal, pinned=True))

    @property
    def _ordinal(self) -> Ordinal:
        ordinal: Ordinal = self.likelihood_.inner
        return ordinal

    def _further_arrays(self) -> dict[str, Array]:
        return super()._further_arrays() | {"level_weights": self.level_weights_}

    def _restore(self, further: dict[str, Array]) -> None:
        super()._restore(further)
        self.level_weights_ = further["level_weights"]
        if not isinstance(self.level_weight, str) and np.any(self.level_weights_ != 1.0):  # a list or a dict
            self.level_weight = self.level_weights_[1 if self.unseen == "zero" else 0 :].tolist()


def _mean_above_zero(coded: Observed) -> float:
    """The mean level of the cells above level 0, each as often as it counts."""
    above = coded.values > 0
    weights = None if coded.weights is None else coded.weights[above]
    return float(np.average(coded.values[above], weights=weights)) if above.any() else 1.0

"""Ordinal non-negative matrix factorization, by variational inference."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.errors import ParameterError
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.estimators.levels import Levels, given
from halfseen.likelihoods import Likelihood, Ordinal


class OrdNMF(GammaFactorization):
    """Ordered levels, such as stars, as a quantised non-negative product with multiplicative noise.

    Level v of a cell is where x = <w_u, h_i> times inverse-gamma noise falls between thresholds b_{v-1} and b_v, which
    are learned: P(y <= v) = exp(-x / b_v). Unseen cells are *zeros* by default, observations of a level below all that
    were seen, as in Gouvert, Oberlin & Févotte (2020); with `unseen="missing"` they say nothing, and the lowest level
    seen is the lowest there is. Inference is the paper's Algorithm 1, whose evidence lower bound never falls.

    Parameters
    ----------
    n_components : the number k of components.
    levels : the levels from the lowest to the highest; None takes the different values of the data.
    thresholds : the thresholds b_0 < ... < b_{V-1} between levels 0..V; None learns them.
    prior_shape : shape a of the gamma priors; below 1 it makes factors sparse.
    prior_rate : rate b of the gamma priors; None learns one for every row and every column.
    max_iter, tol : stop after max_iter iterations, or when one raises the bound by less than tol times its size.
    init : "random" (means from Gamma(1, 1)) or a pair of arrays (W0, H0) of means.
    random_state : seed of the random start; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    unseen : "zero" or "missing".
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k) and H_ : (m, k), the posterior means; components_ : H_ transposed.
    W_shape_, W_rate_, H_shape_, H_rate_ : the posteriors' shapes and rates.
    levels_ : the values of the levels 0..V; thresholds_ : b_0..b_{V-1} between them.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the bound) and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.
    """

    likelihood_: Ordinal

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **GammaFactorization.parameter_rules,
        "levels": checks.rising(),
        "thresholds": checks.rising(above=0.0),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        levels: Any = None,
        thresholds: Any = None,
        prior_shape: float = 0.3,
        prior_rate: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
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
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.unseen = unseen
        self.engine = engine
        self.n_jobs = n_jobs

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        whose = type(self).__name__
        levels = Levels.found_in(observed, whose) if self.levels is None else given(self.levels, observed.unseen)
        coded = levels.coded(observed, whose)
        histogram = np.bincount(coded.values.astype(np.int64), coded.weights, minlength=levels.values.size)
        levels.refuse_unseen(histogram)
        self.levels_ = levels.values
        return coded, self._first_likelihood(histogram)

    def _first_likelihood(self, histogram: Array) -> Ordinal:
        """With the given thresholds; or with those of the paper's start, where N_0 is the number of seen cells."""
        if self.thresholds is not None:
            return Ordinal(self._given_decrements(), False, self.levels_)
        zeros = histogram.sum() if self.unseen == "zero" else histogram[0]
        return replace(Ordinal.from_histogram(histogram[1:], zeros), values=self.levels_)

    def _given_decrements(self) -> Array:
        thresholds = np.asarray(self.thresholds, dtype=np.float64)
        if thresholds.size != self.levels_.size - 1:
            raise ParameterError(
                f"thresholds must stand between the {self.levels_.size} levels: {self.levels_.size - 1} of them. "
                f"Found {thresholds.size}. Give one for each step from level to level, or None to learn them."
            )
        return -np.diff(1.0 / thresholds, append=0.0)

    def _coded(self, observed: Observed) -> Observed:
        return Levels(self.levels_, self.unseen).coded(observed, "Data passed to a fitted model")

    def _make_likelihood(self) -> Likelihood:
        return self.likelihood_

    @property
    def thresholds_(self) -> Array:
        """b_0 < ... < b_{V-1} between the levels."""
        thresholds: Array = 1.0 / self.likelihood_.theta[:-1]
        return thresholds

    def predict_proba(self, rows: Any, cols: Any = None) -> Array:
        """The probability of every level (last axis, in the order of `levels_`) at pairs of rows and columns.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and every cell is told of.
        """
        check_is_fitted(self)
        x = self._x_at(rows, cols) if cols is not None else self._x_everywhere(rows)
        probabilities: Array = self.likelihood_.probabilities(x.astype(np.float64))
        return probabilities

    def predict_level(self, rows: Any, cols: Any = None) -> Array:
        """The median level where `predict_proba` tells of levels: the lowest not exceeded in half of all cases."""
        up_to = np.cumsum(self.predict_proba(rows, cols), axis=-1)
        levels: Array = self.levels_[(up_to < 0.5 - 1e-12).sum(axis=-1)]
        return levels

    def _further_arrays(self) -> dict[str, Array]:
        return {"decrements": self.likelihood_.decrements, "levels": self.levels_}

    def _restore(self, further: dict[str, Array]) -> None:
        self.levels_ = further["levels"]
        self.likelihood_ = Ordinal(further["decrements"], self.thresholds is None, self.levels_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = self.unseen == "zero"
        return tags

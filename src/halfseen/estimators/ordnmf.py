"""Ordinal non-negative matrix factorization, by variational inference."""

from collections.abc import Mapping
from typing import Any, ClassVar

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.likelihoods import Ordinal


class OrdNMF(OrdinalMixin, GammaFactorization):
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
        **OrdinalMixin.rules_of_levels,
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

    def _first_likelihood(self, histogram: Array) -> Ordinal:
        return self._first_ordinal(histogram)

    @property
    def _ordinal(self) -> Ordinal:
        return self.likelihood_

    def _taken(self, ordinal: Ordinal) -> Ordinal:
        return ordinal

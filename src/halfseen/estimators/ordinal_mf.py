"""Matrix factorization of ordered levels through cumulative links."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.graded_factorization import GradedFactorization
from halfseen.estimators.ordinal import ProbableLevelsMixin
from halfseen.estimators.predictive import PredictiveMixin
from halfseen.likelihoods import LINKS, Cumulative, Smooth


class OrdinalMF(ProbableLevelsMixin, GradedFactorization, PredictiveMixin):
    """Ordered levels with probabilities: x = <w_u, h_i> + b_u + c_i and noise, cut by thresholds tau_1 < ... < tau_N.

    P(y <= v) = F(tau_{v+1} - x), with F the distribution of the noise that `link` names: the cumulative link models of
    ordinal regression with x made of factors. Unseen cells are *missing* and say nothing. Factors may have any sign;
    they are those of the highest posterior density. The penalised loss never rises.

    Parameters
    ----------
    n_components : the number k of components, beside biases.
    link : the noise: "logit" (logistic), "probit" (normal), "cloglog" (long lower tail), "loglog" (long upper tail),
        "cauchit" (long tails on both sides: strange cells hardly count).
    levels : the levels from the lowest to the highest; None takes the different values of the data.
    thresholds : tau_1 < ... < tau_N between levels 0..N, in units of x; None learns them.
    biases : whether each row and each column has a bias.
    l2 : the prior exp(-l2 / 2 |w - mean|^2) on the rows of both factors, a third of it on biases. None takes it from
        the number of cells and the slope of the loss, as noise makes it necessary. Hold cells out to choose your own.
    solver : "newton": all cells at once, each row by a step of Newton's method; "sgd": single cells in random order.
    learning_rate, batch_size : for "sgd": how far the first step goes; how many cells between two looks at slopes.
    n_init : so many random starts; the best run is kept.
    early_stopping : hold cells out of the fit, stop when their loss no longer falls, keep the best iteration.
    validation_fraction, n_iter_no_change : the share of cells held out; for how many iterations to wait.
    max_iter, tol : stop after max_iter iterations, or when one lowers the loss by less than tol times the loss at the
        start.
    init : "random", or a pair of arrays (W0, H0), with the columns of biases or without.
    random_state : seed of the random start; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    unseen : "missing".
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k), H_ : (m, k), and x = W_ H_^T; with biases two columns more, W_ = [w, b, 1] and H_ = [h, 1, c].
    row_biases_, column_biases_ : b and c; None without biases.
    thresholds_ : tau_1..tau_N; levels_ : the levels 0..N between them.
    l2_ : the l2 of the fit.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the penalised loss), "seconds" and, if cells were
        held out, "held_out" (their mean loss).
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.
    """

    has_posterior = False
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **GradedFactorization.parameter_rules,
        "link": checks.one_of(*LINKS),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        link: str = "logit",
        levels: Any = None,
        thresholds: Any = None,
        biases: bool = True,
        l2: float | None = None,
        solver: str = "newton",
        learning_rate: float = 0.1,
        batch_size: int = 1000,
        n_init: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_iter: int = 200,
        tol: float = 1e-4,
        init: Any = "random",
        random_state: Any = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.link = link
        self.levels = levels
        self.thresholds = thresholds
        self.biases = biases
        self.l2 = l2
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_init = n_init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.unseen = unseen
        self.engine = engine
        self.n_jobs = n_jobs

    def _unfitted(self, thresholds: Array, learned: bool) -> Smooth:
        return Cumulative(thresholds, learned, self._numbers, link=LINKS[self.link])

    def _drawn_factors(
        self, random: np.random.Generator, rows: Array | None, columns: Array | None
    ) -> tuple[Array, Array]:
        """The factors themselves, which have no distribution."""
        W, H = (
            factor if chosen is None else factor[chosen] for factor, chosen in ((self.W_, rows), (self.H_, columns))
        )
        return W, H

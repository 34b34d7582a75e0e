"""Bayesian Poisson factorization, by variational inference."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.estimators.drawing import draw_counts
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.likelihoods import Likelihood, Poisson


class PoissonFactorization(GammaFactorization):
    """Counts y ~ Poisson(<w_u, h_i>) with gamma priors on both factors, by variational inference.

    Unseen cells count as *zeros* by default, as is usual for purchases and plays; with `unseen="missing"` they say
    nothing. Every entry's posterior is a gamma distribution; the evidence lower bound never falls. The updates are
    those of Cemgil (2009) and Gopalan, Hofman & Blei (2015), with the schedule and the learned prior rates of the
    OrdNMF paper (Gouvert, Oberlin & Févotte 2020).

    Parameters
    ----------
    n_components : the number k of components.
    prior_shape : shape a of the gamma priors; below 1 it makes factors sparse.
    prior_rate : rate b of the gamma priors; None learns one for every row and every column. With `unseen="missing"` and
        rows of few cells a fixed rate, such as 1.0, keeps them from running away.
    max_iter, tol : stop after max_iter iterations, or when one raises the bound by less than tol times its size.
    accelerate : let iterations start ahead of the last one, by momentum, and keep only what gains: fewer of them, and
        most often a better end. False gives the plain iterations.
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
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the bound) and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> counts = np.array([[4, 3, 0, 0], [6, 5, 0, 0], [0, 0, 7, 8], [0, 0, 2, 3]])
    >>> model = hs.PoissonFactorization(n_components=2, random_state=0).fit(counts)
    >>> model.predict(0, [0, 1, 2, 3]).round(1)
    array([3.6, 2.9, 0.2, 0.2])
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        prior_shape: float = 0.3,
        prior_rate: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        accelerate: bool = True,
        init: Any = "random",
        random_state: Any = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.unseen = unseen
        self.engine = engine
        self.n_jobs = n_jobs

    def _make_likelihood(self) -> Likelihood:
        return Poisson()

    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        return draw_counts(x, random)

"""Bernoulli-Poisson factorization of what is there or is not."""

from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.estimators.drawing import draw_levels
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.likelihoods import Likelihood, Ordinal, Poisson
from halfseen.observed import Observed


class BernoulliPoisson(GammaFactorization):
    """Presence and absence: P(y > 0) = 1 - exp(-<w_u, h_i>), with gamma priors, by variational inference.

    Whatever is above 0 counts as there. Unseen cells are *zeros* by default, absences; with `unseen="missing"` they say
    nothing. It is `OrdNMF` with one level and its threshold at 1 (Acharya and others 2015; section 2.2 of Gouvert,
    Oberlin & Févotte 2020), and `PoissonFactorization` of the same zeros and ones is its limit for small x.

    Parameters
    ----------
    n_components : the number k of components.
    prior_shape : shape a of the gamma priors; below 1 it makes factors sparse.
    prior_rate : rate b of the gamma priors; None learns one for every row and every column.
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
    >>> model = hs.BernoulliPoisson(n_components=2, random_state=0).fit(counts)
    >>> model.predict(0, [1, 3]).round(1)  # how likely there is something
    array([0.7, 0.2])
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
        return Ordinal(np.ones(1), learned=False)

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        return self._coded(observed), self._make_likelihood()

    def _coded(self, observed: Observed) -> Observed:
        return self._counted(observed)

    def _counted(self, observed: Observed) -> Observed:
        """1 for what is there."""
        Poisson().check(observed, type(self).__name__)  # counts of any size are welcome, negative ones are not
        return replace(observed, values=(observed.values > 0).astype(observed.dtype))

    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        return draw_levels(self.likelihood_, 1, x, random)

"""Poisson factorization through a square link, for ranking."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.estimators.drawing import draw_counts
from halfseen.estimators.squared_factorization import SquaredFactorization
from halfseen.likelihoods import Poisson, Squared


class SquaredPoisson(SquaredFactorization):
    """Counts for ranking: y ~ Poisson(x^2), x = <w_u, h_i>, with half-normal priors, at the mode.

    `PoissonFactorization` with the link and the prior of `SquaredOrdNMF`. Unseen cells are *zeros* by default; with
    `unseen="missing"` they say nothing. A linear rate pushes all unseen cells alike, the squared one those with high
    scores harder; the prior holds all factors down. Recommendations and ranking are by x. The penalised loss never
    rises. Counts that span orders of magnitude rule such a model: rank by whether there are any (zeros and ones), or
    make levels of them for `SquaredOrdNMF`.

    Parameters
    ----------
    n_components : the number k of components.
    l2 : the prior exp(-l2 / 2 w^2) on every entry of both factors. None takes 0.72 (sqrt(n) + sqrt(m)), as
        `SquaredOrdNMF` does, where it is told why: hold cells out to choose your own.
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
    l2_ : the l2 of the fit.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the penalised loss) and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> counts = np.array([[4, 3, 0, 0], [6, 5, 2, 0], [0, 0, 7, 8], [0, 0, 2, 3]])
    >>> model = hs.SquaredPoisson(n_components=2, random_state=0).fit(counts)
    >>> model.recommend([0], n=1).ids
    array([[2]])
    """

    def __init__(
        self,
        n_components: int = 50,
        *,
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

    def _make_likelihood(self) -> Squared:
        return Squared(Poisson())

    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        return draw_counts(x * x, random)

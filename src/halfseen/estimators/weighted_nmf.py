"""Non-negative matrix factorization of what was seen, by multiplicative updates."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.base import Factorization
from halfseen.estimators.starts import around_rank_one
from halfseen.likelihoods import Likelihood, likelihood_for
from halfseen.solvers import Multiplicative, Penalty, PointFactor, Problem, Solver


class WeightedNMF(Factorization):
    """Non-negative matrix factorization with missing values and weights, by multiplicative updates.

    Minimises the sum over seen cells of  weight * d(y | <w_u, h_i>) + penalties  over non-negative W and H. Unseen
    cells are *missing* by default and say nothing; with `unseen="zero"` each counts as an observed 0 of weight 1 (for
    the Kullback-Leibler and Frobenius losses, never making a dense matrix). Without holes, weights and penalties it
    is scikit-learn's `NMF(solver="mu")`; with Kullback-Leibler and holes it is the KL-WNMF of the A1GM paper
    (Ghalamkari & Sugiyama 2022). The loss never rises.

    Parameters
    ----------
    n_components : the rank k.
    loss : "kullback-leibler", "frobenius", "itakura-saito" (the beta divergences with beta 1, 2 and 0), or any number
        beta.
    l1, l2 : penalties l1 * sum(F) + l2 / 2 * sum(F**2) on both factors.
    max_iter, tol : stop after max_iter iterations, or when one lowers the loss by less than tol times the loss at the
        start.
    accelerate : let iterations start ahead of the last one, by momentum, and keep only what gains: fewer of them. False
        by default: the plain updates are those of the literature, step by step.
    init : "random" (uniform, scaled to the mean of the data), "rank-one" (around the best rank-one factors of what was
        seen, as `RankOneNMF` finds them: rows and columns start at their sizes) or a pair of arrays (W0, H0).
    random_state : seed of the random start; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    unseen : "missing" or "zero".
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k), H_ : (m, k), components_ : H_ transposed.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[2, 4, 6], [1, np.nan, 3], [4, 8, 12.0]])
    >>> model = hs.WeightedNMF(n_components=1, tol=1e-8, random_state=0).fit(X)
    >>> model.complete(X)[1].round(2)
    array([1., 2., 3.])
    """

    factor_type = PointFactor
    score_is_log_likelihood = False
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **Factorization.parameter_rules,
        "init": checks.start("random", "rank-one"),
        "l1": checks.number(0.0),
        "l2": checks.number(0.0),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str | float = "kullback-leibler",
        l1: float = 0.0,
        l2: float = 0.0,
        max_iter: int = 200,
        tol: float = 1e-4,
        accelerate: bool = False,
        init: Any = "random",
        random_state: Any = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.l1 = l1
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

    def _make_likelihood(self) -> Likelihood:
        return likelihood_for(self.loss)

    def _make_solver(self) -> Multiplicative:
        return Multiplicative(Penalty(self.l1, self.l2))

    def _named_start(
        self, task: Problem, solver: Solver[Any], sizes: tuple[tuple[int, int], ...], random: np.random.RandomState
    ) -> tuple[Array, Array]:
        if self.init == "rank-one":
            return around_rank_one(task.cells.observed, self.n_components, random, self.n_jobs)
        return super()._named_start(task, solver, sizes, random)

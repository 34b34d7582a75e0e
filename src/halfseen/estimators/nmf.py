"""Non-negative matrix factorization of the observed cells, by multiplicative updates."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from halfseen import rankone, validation
from halfseen.arrays import Array
from halfseen.checkpoint import Checkpoint
from halfseen.encoders import Encoder
from halfseen.engines.threads import Threads
from halfseen.estimators.base import Factorization, Method
from halfseen.io.tables import FilePath
from halfseen.likelihoods import likelihood_for
from halfseen.observed import Observed
from halfseen.solvers import Multiplicative, Penalty, Problem

#: Of the rank-one fit that random factors start around.
_START_TOL = 1e-3
_START_MAX_ITER = 100


class WeightedNMF(Factorization):
    """Non-negative matrix factorization with missing values and weights, by multiplicative updates.

    Minimises the sum over observed cells of  weight * d(y | w_u @ h_i) + penalties  over non-negative W and H. Unseen
    cells are *missing* by default and carry no information; with `unseen="zero"` each counts as an observed 0 of
    weight 1 (for the Kullback-Leibler and Frobenius losses, without ever making a dense matrix). Without missing cells,
    weights and penalties it is scikit-learn's `NMF(solver="mu")`; with Kullback-Leibler and missing cells it is the
    KL-WNMF of the A1GM paper [1]_. The loss never rises.

    Parameters
    ----------
    {n_components}
    loss : {"kullback-leibler", "frobenius", "itakura-saito"} or float, default="kullback-leibler"
        Beta divergence: by name (beta 1, 2 and 0), or as the number beta.
    l1, l2 : float, default=0.0
        Penalties l1 * sum(F) + l2 / 2 * sum(F**2) on both factors.
    {max_iter}
    {tol:loss}
    accelerate : bool, default=False
        Extrapolate from the last iterations (momentum), and keep only what improves the loss: fewer iterations. By
        default the plain updates are those of the literature, step by step.
    init : {"random", "rank-one"} or tuple of array-like, default="random"
        Initial factors: "random" (uniform, scaled to the mean of the data), "rank-one" (around the best rank-one
        factors of the observed cells, as `RankOneNMF` finds them), or a pair of arrays (W0, H0).
    {random_state}
    {verbose}
    {unseen}
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_}
    {fit}

    References
    ----------
    .. [1] K. Ghalamkari, M. Sugiyama, "Fast rank-1 NMF for missing data with KL divergence", AISTATS 2022.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[2, 4, 6], [1, np.nan, 3], [4, 8, 12.0]])
    >>> model = hs.WeightedNMF(n_components=1, tol=1e-8, random_state=0).fit(X)
    >>> model.complete(X)[1].round(2)
    array([1., 2., 3.])
    """

    may_mean_zeros = True
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **Factorization.parameter_rules,
        "init": validation.start("random", "rank-one"),
        "l1": validation.number(0.0),
        "l2": validation.number(0.0),
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
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
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
        self.checkpoint = checkpoint

    def _method(self) -> Method:
        return Method(
            encoder=Encoder(),
            likelihood=likelihood_for(self.loss),
            solver=Multiplicative(Penalty(self.l1, self.l2)),
            start=self._rank_one_start if isinstance(self.init, str) and self.init == "rank-one" else None,
        )

    def _rank_one_start(self, problem: Problem, solver: Any, shapes: Any, random: Any) -> tuple[Array, Array]:
        return rank_one_start(problem.cells.observed, self.n_components, random, self.n_jobs)


def rank_one_start(
    observed: Observed, n_components: int, random: np.random.RandomState, n_jobs: int | None
) -> tuple[Array, Array]:
    """The best rank-one factors, divided among the components, every entry times a number in 0.5 .. 1.5.

    Rows and columns have their sizes from the first iteration on, whatever is missing of them. Narrower numbers take
    long to let the components separate, wider ones lose the sizes.
    """
    with Threads(n_jobs) as threads:
        table = rankone.ListedTable(observed)
        components = rankone.find_components(table, table.marginals)
        *_, last = islice(rankone.exact(components, threads, _START_TOL), _START_MAX_ITER)
    w, h = rankone.rescale(last.factors, components, _START_TOL, np.dtype(np.float64))
    W, H = (
        factor[:, None] * random.uniform(0.5, 1.5, (factor.size, n_components)) / np.sqrt(n_components)
        for factor in (w, h)
    )
    return W, H

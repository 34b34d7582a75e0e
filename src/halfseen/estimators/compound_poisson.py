"""Compound Poisson factorization of counts that are more dispersed than Poisson's."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from halfseen import checks, likelihoods
from halfseen.arrays import Array
from halfseen.estimators.drawing import draw_compound
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.likelihoods import Likelihood


class CompoundPoisson(GammaFactorization):
    """Counts as sums of a Poisson number of logarithmic draws, with gamma priors, by variational inference.

    n ~ Poisson(<w_u, h_i>) says how often, each time adds a draw of P(k) = p^k / (-k log(1 - p)): counts such as plays,
    whose few large values would rule a Poisson model. p is learned; p -> 0 is `PoissonFactorization` of the counts,
    p -> 1 of whether there are any. Unseen cells are *zeros* by default; with `unseen="missing"` they say nothing. The
    dcPF of Gouvert, Oberlin & Févotte (2019), in their paper of 2020 beside `OrdNMF`.

    Parameters
    ----------
    n_components : the number k of components.
    p : the parameter of the logarithmic distribution, between 0 and 1; None learns it.
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
    p_ : the parameter of the logarithmic distribution.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the bound) and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> plays = np.array([[4, 30, 0, 0], [6, 50, 0, 0], [0, 0, 7, 240], [0, 0, 2, 90]])
    >>> model = hs.CompoundPoisson(n_components=1, tol=1e-4, random_state=0).fit(plays)
    >>> round(float(model.p_), 1)  # near 1: repeats say little
    1.0
    """

    likelihood_: likelihoods.CompoundPoisson

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **GammaFactorization.parameter_rules,
        "p": checks.between(0.0, 1.0, or_none=True),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        p: float | None = None,
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
        self.p = p
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
        """A p that is learned starts at 1/2."""
        return likelihoods.CompoundPoisson(-float(np.log1p(-(0.5 if self.p is None else self.p))), self.p is None)

    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        return draw_compound(x, self.p_, random)

    @property
    def p_(self) -> float:
        """The parameter of the logarithmic distribution, given or learned."""
        return self.likelihood_.p

    def _further_arrays(self) -> dict[str, Array]:
        return {"s": np.array(self.likelihood_.s)}

    def _restore(self, further: dict[str, Array]) -> None:
        self.likelihood_ = likelihoods.CompoundPoisson(float(further["s"]), self.p is None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # whole numbers
        return tags

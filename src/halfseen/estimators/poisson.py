"""Poisson factorization and its relatives, with gamma priors, by variational inference."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from halfseen import likelihoods, validation
from halfseen.arrays import Array
from halfseen.checkpoint import Checkpoint
from halfseen.docstrings import insert_parameters
from halfseen.encoders import Encoder, PresenceEncoder
from halfseen.estimators.base import SEED_RULES, Factorization, Method, fitted
from halfseen.estimators.inputs import Seed
from halfseen.io.tables import FilePath
from halfseen.likelihoods import Ordinal, Poisson
from halfseen.model import random_generator
from halfseen.solvers import Gamma, GammaPrior


class GammaFactorization(Factorization):
    """Gamma priors on both factors, variational inference, a posterior for every entry."""

    prior_shape: Any
    prior_rate: float | None

    offers = frozenset({"likelihood", "posterior"})
    score_is_log_likelihood = True
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **Factorization.parameter_rules,
        "prior_shape": validation.number(0.0, above=True),
        "prior_rate": validation.number(0.0, above=True, or_none=True),
    }

    W_shape_ = fitted(lambda model: model.rows.shape, "Shape of the posterior of every entry of W.")
    W_rate_ = fitted(lambda model: model.rows.rate, "Rate of the posterior of every entry of W.")
    H_shape_ = fitted(lambda model: model.columns.shape, "Shape of the posterior of every entry of H.")
    H_rate_ = fitted(lambda model: model.columns.rate, "Rate of the posterior of every entry of H.")

    def _gamma_solver(self) -> Gamma:
        prior = GammaPrior(self.prior_shape, self.prior_rate)
        return Gamma(prior, prior)

    @insert_parameters
    def sample_factors(self, n: int = 1, random_state: Seed = None) -> list[tuple[Array, Array]]:
        """Draw factors (W, H) from their posteriors, every entry independently.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        {random_state:draws}

        Returns
        -------
        list of tuple of ndarray
            Pairs (W, H).
        """
        check_is_fitted(self)
        validation.check_parameters({"n": n, "random_state": random_state}, SEED_RULES)
        random = random_generator(random_state)
        return [self.model_.sample_factors(random) for _ in range(n)]

    def factor_intervals(self, level: float = 0.9) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Central credible intervals of every entry of the factors.

        Parameters
        ----------
        level : float, default=0.9
            Posterior probability of each interval.

        Returns
        -------
        tuple of tuple of ndarray
            ((W low, W high), (H low, H high)).
        """
        check_is_fitted(self)
        validation.check_parameters({"level": level}, {"level": validation.between(0.0, 1.0)})
        tails = (0.5 - level / 2, 0.5 + level / 2)
        model = self.model_
        rows, columns = (tuple(factor.quantile(tail) for tail in tails) for factor in (model.rows, model.columns))
        return rows, columns


class PoissonFactorization(GammaFactorization):
    """Counts y ~ Poisson(w_u @ h_i) with gamma priors on both factors, by variational inference.

    Unseen cells count as *zeros* by default, as is usual for purchases and plays; with `unseen="missing"` they carry no
    information. Every entry's posterior is a gamma distribution; the evidence lower bound never falls. The updates are
    those of Cemgil (2009) and Gopalan, Hofman & Blei (2015), with the schedule and the learned prior rates of the
    OrdNMF paper (Gouvert, Oberlin & Févotte 2020).

    Parameters
    ----------
    {n_components}
    {prior_shape}
    prior_rate : float or None, default=None
        Rate of the gamma priors; None learns one for every row and every column. With `unseen="missing"` and rows of
        few cells a fixed rate, such as 1.0, keeps their factors bounded.
    {max_iter}
    {tol:bound}
    {accelerate}
    {init:gamma}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_:means}
    {fit}

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
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
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
        self.checkpoint = checkpoint

    def _method(self) -> Method:
        return Method(Encoder(), Poisson(), self._gamma_solver())


class BernoulliPoisson(GammaFactorization):
    """Presence and absence: P(y > 0) = 1 - exp(-w_u @ h_i), with gamma priors, by variational inference.

    Whatever is above 0 counts as present. Unseen cells are *zeros* by default, absences; with `unseen="missing"` they
    carry no information. It is `OrdNMF` with one level and its threshold at 1 (Acharya and others 2015; section 2.2 of
    Gouvert, Oberlin & Févotte 2020), and `PoissonFactorization` of the same zeros and ones is its limit for small x.

    Parameters
    ----------
    {n_components}
    {prior_shape}
    {prior_rate}
    {max_iter}
    {tol:bound}
    {accelerate}
    {init:gamma}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_:means}
    {fit}

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> counts = np.array([[4, 3, 0, 0], [6, 5, 0, 0], [0, 0, 7, 8], [0, 0, 2, 3]])
    >>> model = hs.BernoulliPoisson(n_components=2, random_state=0).fit(counts)
    >>> model.predict(0, [1, 3]).round(1)  # probability that there is something
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
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
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
        self.checkpoint = checkpoint

    def _method(self) -> Method:
        return Method(PresenceEncoder(), Ordinal(np.ones(1), learned=False), self._gamma_solver())


class CompoundPoisson(GammaFactorization):
    """Counts as sums of a Poisson number of logarithmic draws, with gamma priors, by variational inference.

    n ~ Poisson(w_u @ h_i) says how often, each time adds a draw of P(k) = p^k / (-k log(1 - p)): counts such as plays,
    whose few large values would dominate a Poisson model. p is learned; p -> 0 is `PoissonFactorization` of the counts,
    p -> 1 of whether there are any. Unseen cells are *zeros* by default; with `unseen="missing"` they carry no
    information. The dcPF of Gouvert, Oberlin & Févotte (2019), in their paper of 2020 beside `OrdNMF`.

    Parameters
    ----------
    {n_components}
    p : float or None, default=None
        Parameter of the logarithmic distribution, between 0 and 1; None learns it.
    {prior_shape}
    {prior_rate}
    {max_iter}
    {tol:bound}
    {accelerate}
    {init:gamma}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_:means}
    p_ : float
        Parameter of the logarithmic distribution, given or learned.
    {fit}

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> plays = np.array([[4, 30, 0, 0], [6, 50, 0, 0], [0, 0, 7, 240], [0, 0, 2, 90]])
    >>> model = hs.CompoundPoisson(n_components=1, tol=1e-4, random_state=0).fit(plays)
    >>> round(float(model.p_), 1)  # near 1: repeated plays say little
    1.0
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **GammaFactorization.parameter_rules,
        "p": validation.between(0.0, 1.0, or_none=True),
    }
    p_ = fitted(lambda model: model.likelihood.p, "Parameter of the logarithmic distribution, given or learned.")

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
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
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
        self.checkpoint = checkpoint

    def _method(self) -> Method:
        p = 0.5 if self.p is None else self.p  # a p that is learned starts at 1/2
        likelihood = likelihoods.CompoundPoisson(-float(np.log1p(-p)), self.p is None)
        return Method(Encoder(), likelihood, self._gamma_solver())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # whole numbers
        return tags

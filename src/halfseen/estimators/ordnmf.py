"""Ordinal non-negative matrix factorization, by variational inference."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.likelihoods import GammaNoise, Likelihood, Ordinal
from halfseen.observed import Observed
from halfseen.solvers import Gamma, GammaFactor, GammaPrior, InverseGaussian, InverseGaussianFactor, Solver

NOISES = ("inverse-gamma", "exponential", "gamma")
#: The shape of the priors where none is asked for: the paper's, and one at which no entry can die out.
USUAL_SHAPE = {False: 0.3, True: 1.0}
#: The largest grid whose unseen zeros are spelled out.
MOST_CELLS = 1 << 22


class OrdNMF(OrdinalMixin, GammaFactorization):
    """Ordered levels, such as stars, as a quantised non-negative product with multiplicative noise.

    Level v of a cell is where x = <w_u, h_i> times inverse-gamma noise falls between thresholds b_{v-1} and b_v, which
    are learned: P(y <= v) = exp(-x / b_v). Unseen cells are *zeros* by default, observations of a level below all that
    were seen, as in Gouvert, Oberlin & Févotte (2020); with `unseen="missing"` they say nothing, and the lowest level
    seen is the lowest there is. Inference is the paper's Algorithm 1, whose evidence lower bound never falls.

    The noise may also be exponential, P(y > v) = exp(-b_v / x), or gamma (section 3.1 of the paper). Inverse-gamma
    noise has a heavy tail: now and then a low x shows a high level. Exponential noise has it at 0: now and then a high
    x shows a low level. Gamma noise of a large shape has neither, and levels follow x closely. The posteriors are then
    generalised inverse-Gaussian, and the bound, another one, never falls either. Unseen zeros have no closed form under
    such noises: with `unseen="zero"` every place of the grid is counted as a cell, and 4 million are the most; time and
    memory grow with rows times columns.

    Parameters
    ----------
    n_components : the number k of components.
    levels : the levels from the lowest to the highest, numbers or texts; None takes the different values of the data.
    thresholds : the thresholds b_0 < ... < b_{V-1} between levels 0..V; None learns them.
    noise : "inverse-gamma", "exponential" or "gamma".
    noise_shape : shape of gamma noise, 0.1 or more; the larger, the less noise. The other two have shape 1.
    prior_shape : shape a of the gamma priors; small ones make factors sparse. None takes the paper's 0.3 or, under
        exponential and gamma noise, 1: there, entries with a shape below 1/2 die out early and never come back.
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
    W_inverse_rate_, H_inverse_rate_ : under exponential and gamma noise, c in the posterior w^(shape - 1)
        exp(-rate w - c / w).
    levels_ : the values of the levels 0..V; thresholds_ : b_0..b_{V-1} between them. Thresholds and factors share a
        free scale: only ratios of thresholds can be compared from fit to fit.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the bound) and "seconds".
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1)]
    >>> model = hs.OrdNMF(n_components=1, random_state=0).fit(stars)
    >>> model.levels_  # 0 is unseen
    array([0., 1., 4., 5.])
    >>> model.predict_proba("bob", "Brazil").round(1)
    array([0.6, 0.2, 0.1, 0. ])
    """

    likelihood_: Ordinal | GammaNoise
    prior_shape: float | None  # type: ignore[assignment]

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **GammaFactorization.parameter_rules,
        **OrdinalMixin.rules_of_levels,
        "prior_shape": checks.number(0.0, above=True, or_none=True),
        "noise": checks.one_of(*NOISES),
        "noise_shape": checks.number(0.1),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        levels: Any = None,
        thresholds: Any = None,
        noise: str = "inverse-gamma",
        noise_shape: float = 1.0,
        prior_shape: float | None = None,
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
        self.levels = levels
        self.thresholds = thresholds
        self.noise = noise
        self.noise_shape = noise_shape
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

    @property
    def _divides(self) -> bool:
        """Whether the noise is such that x divides, which needs a likelihood and a solver of its own."""
        return self.noise != "inverse-gamma"

    @property
    def factor_type(self) -> Any:  # type: ignore[override]
        return InverseGaussianFactor if self._divides else GammaFactor

    def _make_solver(self) -> Solver[Any]:  # type: ignore[override]
        usual = USUAL_SHAPE[self._divides]
        prior = GammaPrior(usual if self.prior_shape is None else self.prior_shape, self.prior_rate)
        return InverseGaussian(prior, prior) if self._divides else Gamma(prior, prior)

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        self._refuse_shape()
        coded, likelihood = super()._begun(observed)
        if not self._divides:
            return coded, likelihood
        coded = self._spelled_out(coded)
        return coded, self._first_noise(np.bincount(coded.values.astype(np.int64), coded.weights, self.levels_.size))

    def _refuse_shape(self) -> None:
        if self.noise != "gamma" and self.noise_shape != 1.0:
            why = (
                "is not linear in x for any other" if self.noise == "inverse-gamma" else "is gamma noise of that shape"
            )
            raise ParameterError(
                f"noise_shape must be 1 with {self.noise} noise, which {why}. Found {self.noise_shape!r}. "
                'Use noise="gamma", or leave noise_shape at 1.'
            )

    def _coded(self, observed: Observed) -> Observed:
        coded = super()._coded(observed)
        return self._spelled_out(coded) if self._divides else coded

    def _spelled_out(self, coded: Observed) -> Observed:
        return _whole_grid(coded, f'OrdNMF(noise="{self.noise}")') if coded.unseen == "zero" else coded

    def _first_likelihood(self, histogram: Array) -> Ordinal:
        return self._first_ordinal(histogram)

    def _first_noise(self, histogram: Array) -> GammaNoise:
        """The given thresholds; or those that suit the histogram at the mean x of the random start, the rank."""
        shape = float(self.noise_shape)
        if self.thresholds is not None:
            return GammaNoise(self._given_thresholds(), shape, False, self._numbers)
        return replace(GammaNoise.from_histogram(histogram, shape, self.n_components), values=self._numbers)

    @property
    def _ordinal(self) -> Ordinal | GammaNoise:
        return self.likelihood_

    def _taken(self, ordinal: Ordinal) -> Ordinal:
        return ordinal

    @property
    def thresholds_(self) -> Array:
        """b_0 < ... < b_{V-1} between the levels."""
        return self.likelihood_.thresholds if isinstance(self.likelihood_, GammaNoise) else super().thresholds_

    def _kept_of_levels(self) -> dict[str, Array]:
        return {"thresholds": self.thresholds_} if self._divides else super()._kept_of_levels()

    def _restored_likelihood(self, further: dict[str, Array]) -> Likelihood:
        if not self._divides:
            return super()._restored_likelihood(further)
        return GammaNoise(further["thresholds"], float(self.noise_shape), self.thresholds is None, self._numbers)

    @property
    def W_inverse_rate_(self) -> Array:
        """c in the posterior w^(shape - 1) exp(-rate w - c / w) of every entry of W."""
        return self.factors_[0].inverse_rate

    @property
    def H_inverse_rate_(self) -> Array:
        """c in the posterior w^(shape - 1) exp(-rate w - c / w) of every entry of H."""
        return self.factors_[1].inverse_rate


def _whole_grid(coded: Observed, whose: str) -> Observed:
    """The same cells and, at every place without one, a cell of level 0; what has no weight is left out."""
    n, m = coded.shape
    if n * m > MOST_CELLS:
        raise DataError(
            f"{whose} counts every unseen zero as a cell, so rows times columns must be at most {MOST_CELLS:,}. "
            f'Found {n:,} x {m:,}. Use noise="inverse-gamma", whose zeros need no cells, or unseen="missing"; to a '
            "fitted model, pass fewer rows at a time."
        )
    rows = coded.row_of_cell()
    unseen = np.ones(coded.shape, bool)
    unseen[rows, coded.indices] = False
    more_rows, more_columns = np.nonzero(unseen)
    ones = np.ones(more_rows.size, coded.dtype)
    return Observed.from_cells(
        np.concatenate([rows, more_rows]),
        np.concatenate([coded.indices, more_columns]),
        np.concatenate([coded.values, 0 * ones]),
        coded.shape,
        weights=None if coded.weights is None else np.concatenate([coded.weights, ones]),
        row_labels=coded.row_labels,
        column_labels=coded.column_labels,
        duplicates="keep",
        allow_empty=True,
    )

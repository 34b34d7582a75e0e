"""Ordinal non-negative factorization with multiplicative noise."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array, in_parts
from halfseen.checkpoint import Checkpoint
from halfseen.encoders import OrdinalEncoder, levels_rule
from halfseen.errors import ParameterError
from halfseen.estimators.base import Method, fitted
from halfseen.estimators.inputs import Data
from halfseen.estimators.poisson import GammaFactorization
from halfseen.io.tables import FilePath
from halfseen.likelihoods import GammaNoise, InverseGammaNoise, Ordinal, SingleCountOrdinal
from halfseen.model import products_at
from halfseen.observed import Observed
from halfseen.solvers import Gamma, GammaPrior, InverseGaussian

NOISES = ("inverse-gamma", "exponential", "gamma")
LEVEL_RULES: Mapping[str, validation.Rule] = {"levels": levels_rule(), "thresholds": validation.rising(above=0.0)}


def count_levels(codes: Observed, encoder: OrdinalEncoder, thresholds: Any) -> Array:
    """Number of cells at each level; refuses empty levels if thresholds are learned, or too many or few thresholds."""
    n_levels = encoder.fitted_labels.size
    histogram = np.zeros(n_levels, np.int64 if codes.weights is None else np.float64)
    for values, weights in in_parts(codes.values, codes.weights):
        if weights is None:
            histogram += np.bincount(values.astype(np.int64), minlength=n_levels)
        else:
            np.add.at(histogram, values.astype(np.int64), weights)  # in the order of the cells
    if thresholds is None:
        encoder.check_all_observed(histogram)
    elif len(thresholds) != n_levels - 1:
        raise ParameterError(
            f"must stand between the {n_levels} levels: {n_levels - 1} of them.",
            parameter="thresholds",
            found=f"{len(thresholds)}",
            remedy="Give one for each step from level to level, or None to learn them.",
        )
    return histogram


def initial_ordinal(codes: Observed, encoder: OrdinalEncoder, thresholds: Any) -> Ordinal:
    """With the given thresholds; or with those of the paper's start, where N_0 is the number of cells above 0."""
    histogram = count_levels(codes, encoder, thresholds)
    if thresholds is not None:
        decrements = Ordinal.decrements_of(np.asarray(thresholds, dtype=np.float64))
        return Ordinal(decrements, False, encoder.numbers)
    # Not histogram[0]: a zero that is stored carries the information of an unseen one.
    zeros = histogram[1:].sum() if encoder.unseen == "zero" else histogram[0]
    return replace(Ordinal.from_histogram(histogram[1:], zeros), values=encoder.numbers)


class OrdNMF(GammaFactorization):
    """Ordered levels, such as stars, as a quantised non-negative product with multiplicative noise.

    Level v of a cell is where x = w_u @ h_i times inverse-gamma noise falls between thresholds b_{v-1} and b_v, which
    are learned: P(y <= v) = exp(-x / b_v). Unseen cells are *zeros* by default, observations of a level below all that
    were seen, as in [1]_; with `unseen="missing"` they carry no information, and the lowest level seen is the lowest
    there is. Inference is the paper's Algorithm 1, whose evidence lower bound never falls.

    The noise may also be exponential, P(y > v) = exp(-b_v / x), or gamma (section 3.1 of the paper). Inverse-gamma
    noise has a heavy tail: now and then a low x shows a high level. Exponential noise has it at 0: now and then a high
    x shows a low level. Gamma noise of a large shape has neither, and levels follow x closely. The posteriors are then
    generalised inverse-Gaussian, and the bound, another one, never falls either. Unseen zeros have no closed form under
    such noises: with `unseen="zero"` every cell of the matrix is counted, and 4 million are the most; time and memory
    grow with rows times columns. So it is under inverse-gamma noise of another shape than 1; its posteriors are gamma.

    Parameters
    ----------
    {n_components}
    {levels}
    thresholds : array-like of shape (n_levels - 1,) or None, default=None
        Thresholds b_0 < ... < b_{V-1} between levels 0..V; None learns them.
    noise : {"inverse-gamma", "exponential", "gamma"}, default="inverse-gamma"
        Distribution of the noise.
    noise_shape : float, default=1.0
        Shape of the noise: of gamma noise 0.1 or more, of inverse-gamma noise 1 or more; the larger, the less noise.
        Exponential noise is gamma noise of shape 1.
    prior_shape : float or None, default=None
        Shape of the gamma priors; small ones make factors sparse. None takes the paper's 0.3 or, under exponential and
        gamma noise, 1: there, entries with a shape below 1/2 vanish early and never come back.
    {prior_rate}
    approximate : bool, default=False
        Fit with q(n) = delta_1 at levels above 0, as Poisson factorization of zeros and ones does (section 4.2 of the
        paper): log x in the place of log(1 - exp(-x)). Where `expected_counts` is near 1, results are near those
        without. Only for inverse-gamma noise of shape 1.
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
    W_inverse_rate_, H_inverse_rate_ : ndarray
        Under exponential and gamma noise, c in the posterior w^(shape - 1) exp(-rate w - c / w).
    levels_ : ndarray of shape (n_levels,)
        Values of the levels 0..V.
    thresholds_ : ndarray of shape (n_levels - 1,)
        b_0..b_{V-1} between the levels. Thresholds and factors share a free scale: only ratios of thresholds can be
        compared from fit to fit.
    {fit}

    References
    ----------
    .. [1] O. Gouvert, T. Oberlin, C. Févotte, "Ordinal non-negative matrix factorization for recommendation", ICML
       2020.

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

    offers = frozenset({"levels", "likelihood", "posterior"})
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **GammaFactorization.parameter_rules,
        **LEVEL_RULES,
        "prior_shape": validation.number(0.0, above=True, or_none=True),
        "noise": validation.one_of(*NOISES),
        "noise_shape": validation.number(0.1),
        "approximate": validation.flag(),
    }

    thresholds_ = fitted(lambda model: model.likelihood.thresholds, "b_0 < ... < b_{V-1} between the levels.")
    W_inverse_rate_ = fitted(
        lambda model: model.rows.inverse_rate, "c in the posterior w^(shape - 1) exp(-rate w - c / w) of entries of W."
    )
    H_inverse_rate_ = fitted(
        lambda model: model.columns.inverse_rate,
        "c in the posterior w^(shape - 1) exp(-rate w - c / w) of entries of H.",
    )

    def __init__(
        self,
        n_components: int = 10,
        *,
        levels: ArrayLike | None = None,
        thresholds: ArrayLike | None = None,
        noise: str = "inverse-gamma",
        noise_shape: float = 1.0,
        prior_shape: float | None = None,
        prior_rate: float | None = None,
        approximate: bool = False,
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
        self.levels = levels
        self.thresholds = thresholds
        self.noise = noise
        self.noise_shape = noise_shape
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.approximate = approximate
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
        shape, x_divides = self.noise_shape, self.noise != "inverse-gamma"  # the rate of the noise is 1 / x
        if (self.noise == "exponential" and shape != 1.0) or (self.noise == "inverse-gamma" and shape < 1.0):
            must = {
                "exponential": "must be 1 with exponential noise, which is gamma noise of that shape.",
                "inverse-gamma": "must be 1 or more with inverse-gamma noise: below 1 the push of a zero would depend "
                "on x, and thresholds would have no closed form.",
            }
            raise ParameterError(
                must[self.noise],
                parameter="noise_shape",
                found=repr(shape),
                remedy='Use `noise="gamma"`, of shape 0.1 or more, or leave `noise_shape` at 1.',
            )
        if self.approximate and (x_divides or shape != 1.0):
            raise ParameterError(
                "must be False but for inverse-gamma noise of shape 1, whose counts n it fixes at 1.",
                parameter="approximate",
                found=f"True, with {self.noise} noise of shape {shape:g}",
                remedy="Leave `approximate`, or `noise` and `noise_shape`, as they are by default.",
            )
        is_linear = not x_divides and shape == 1.0  # log p(0) in x
        default_shape = 1.0 if x_divides else 0.3
        prior = GammaPrior(default_shape if self.prior_shape is None else self.prior_shape, self.prior_rate)
        return Method(
            encoder=OrdinalEncoder(self.levels, self.unseen, fill_zeros=not is_linear),
            likelihood=self._linear_noise if is_linear else self._other_noise,
            solver=InverseGaussian(prior, prior) if x_divides else Gamma(prior, prior),
        )

    def _linear_noise(self, codes: Observed, encoder: OrdinalEncoder) -> Ordinal:
        ordinal = initial_ordinal(codes, encoder, self.thresholds)
        return SingleCountOrdinal(ordinal.decrements, ordinal.learned, ordinal.values) if self.approximate else ordinal

    def _other_noise(self, codes: Observed, encoder: OrdinalEncoder) -> GammaNoise | InverseGammaNoise:
        """The given thresholds; or those that suit the histogram at the mean x of the random start, the rank."""
        histogram, shape = count_levels(codes, encoder, self.thresholds), float(self.noise_shape)
        noise: type[GammaNoise | InverseGammaNoise] = InverseGammaNoise if self.noise == "inverse-gamma" else GammaNoise
        if self.thresholds is None:
            return replace(noise.from_histogram(histogram, shape, self.n_components), values=encoder.numbers)
        thresholds = np.asarray(self.thresholds, dtype=np.float64)
        given = InverseGammaNoise.decrements_of(thresholds) if noise is InverseGammaNoise else thresholds
        return noise(given, shape, False, encoder.numbers)

    def expected_counts(self, X: Data) -> Array:
        """E_q[n] of the latent counts of cells, which shows how good the approximation of `approximate` is.

            q(n) = ZTP(z),    E_q[n] = z / (1 - exp(-z)),    z = D_y exp(E[log w_u]) @ exp(E[log h_i])     (Table 1)

        The approximation q(n) = delta_1 is good where this is near 1, as can only be checked afterwards (section 4.2).

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `fit`, and of its rows and columns: usually the data of the fit.

        Returns
        -------
        ndarray of shape (n_cells,)
            In row order, of the cells above level 0; where unseen cells are missing, of all observed cells, 0 at the
            lowest level.

        Examples
        --------
        >>> import halfseen as hs
        >>> stars = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1)]
        >>> model = hs.OrdNMF(n_components=1, random_state=0).fit(stars)
        >>> model.expected_counts(stars).round(1)
        array([1.3, 1.2, 1.2, 1. ])
        """
        check_is_fitted(self)
        model = self.model_
        if not isinstance(model.likelihood, Ordinal):
            raise ParameterError(
                'must be "inverse-gamma", of shape 1: other noises have no counts n.',
                parameter="noise",
                found=f"{self.noise!r}, of shape {self.noise_shape:g}",
                remedy="Fit with the default noise.",
            )
        cells = model.scored_cells(X)
        x = products_at(model.rows.geometric, model.columns.geometric, cells.row_of_cell(), cells.indices)
        return model.likelihood.expected_counts(cells.values, x.astype(np.float64))

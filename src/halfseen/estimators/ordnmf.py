"""Ordinal non-negative factorization with multiplicative noise, and its relatives through a square link."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.encoders import Encoder, OrdinalEncoder, level_weight_rule, levels_rule
from halfseen.errors import ParameterError
from halfseen.estimators.base import Factorization, Method, fitted
from halfseen.estimators.inputs import Data
from halfseen.estimators.poisson import GammaFactorization
from halfseen.likelihoods import GammaNoise, InverseGammaNoise, Ordinal, Poisson, SingleCountOrdinal, Squared
from halfseen.model import products_at
from halfseen.observed import Observed
from halfseen.solvers import Gamma, GammaPrior, InverseGaussian, Multiplicative, Penalty, Problem, Solver

NOISES = ("inverse-gamma", "exponential", "gamma")
#: l2 of squared models by default, as a share of sqrt(n) + sqrt(m); how it was found, and where it is too small:
#: docs/methods.md.
L2_SHARE = 0.72
#: The exponent that is tried first, without momentum and with it; an iteration that it spoils is done again with 1/2.
EAGER_EXPONENT = {False: 0.95, True: 0.65}
LEVEL_RULES: Mapping[str, validation.Rule] = {"levels": levels_rule(), "thresholds": validation.rising(above=0.0)}


def count_levels(codes: Observed, encoder: OrdinalEncoder, thresholds: Any) -> Array:
    """Number of cells at each level; refuses empty levels if thresholds are learned, or too many or few thresholds."""
    n_levels = encoder.fitted_labels.size
    histogram = np.bincount(codes.values.astype(np.int64), codes.weights, minlength=n_levels)
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


def squared_start(problem: Problem, solver: Any, shapes: Any, random: Any) -> tuple[Array, Array]:
    """Gamma(1, 1) sqrt(sqrt(density) / k), so that x^2 is about the share of cells that are above 0."""
    observed = problem.cells.observed
    weights = np.ones(observed.nnz) if observed.weights is None else observed.weights
    cells = observed.shape[0] * observed.shape[1] if observed.unseen == "zero" else weights.sum()
    density = min(1.0, weights[observed.values > 0].sum(dtype=np.float64) / cells)
    scale = np.sqrt(np.sqrt(density) / shapes[0][1])
    W, H = (scale * random.standard_gamma(1.0, size=shape) for shape in shapes)
    return W, H


class SquaredFactorization(Factorization):
    """A likelihood of rates at the rate x^2, with the prior exp(-l2 / 2 w^2) on every entry, at the mode."""

    l2: float | None

    offers = frozenset({"likelihood"})
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **Factorization.parameter_rules,
        "l2": validation.number(0.0, or_none=True),
    }
    l2_ = fitted(lambda model: model.folding.solver.penalty.l2, "l2 of the fit.")

    def _solver(self, codes: Observed, likelihood: Any) -> Multiplicative:
        l2 = L2_SHARE * float(np.sqrt(codes.shape).sum()) if self.l2 is None else float(self.l2)
        return Multiplicative(Penalty(l2=l2), eager=EAGER_EXPONENT[bool(self.accelerate)])

    def _start(self, problem: Problem, solver: Solver[Any], method: Method, random: Any) -> tuple[Array, Array]:
        W, H = super()._start(problem, solver, method, random)
        for name, factor in (("W0", W), ("H0", H)):
            zeros = np.flatnonzero(~factor.any(axis=1))
            if zeros.size:
                raise ParameterError(
                    f"{name} of init must have a number above 0 in every row: a row of zeros never leaves 0.",
                    parameter="init",
                    found="only zeros",
                    where=f"in row {zeros[0]}",
                    remedy="Start it elsewhere.",
                )
        return W, H


class SquaredOrdNMF(SquaredFactorization):
    """Ordered levels for ranking: OrdNMF's levels at the rate x^2, with half-normal priors, at the mode.

    P(y <= v) = exp(-theta_v x^2) with x = w_u @ h_i and theta_0 = 1. Unseen cells are *zeros* by default, observations
    of a level below all others; with `unseen="missing"` they carry no information. A linear rate pushes all unseen
    cells alike, the squared one those with high scores harder; the prior shrinks all factors. Recommendations and
    ranking are by x, in which this model is ahead of OrdNMF. The penalised loss never rises. Its probabilities are
    those of a likelihood that was weighted and shrunk: by and large too few cells are expected above level 0 and, under
    `level_weight="levels"`, too few at low levels; where probabilities must be calibrated, use OrdNMF.

    Parameters
    ----------
    {n_components}
    {levels}
    thresholds : array-like of shape (n_levels - 1,) or None, default=None
        Thresholds b_0 < ... < b_{V-1} between levels 0..V, which are divided by the first; None learns them.
    level_weight : "levels", array-like, dict or None, default="levels"
        Weight of an observed cell: "levels", in proportion to its level (1 on average); None, 1; or given weights, a
        list with one for each level that can be seen, from the lowest to the highest, or a dict from level to weight.
        Unseen cells have weight 1: weights below 1 trust observed cells less than that.
    l2 : float or None, default=None
        Prior exp(-l2 / 2 w^2) on every entry of both factors. None takes 0.72 (sqrt(n) + sqrt(m)): in x, the noise of
        every cell is about as large, and such is its spectral norm, which an L2 on both factors must outweigh. That was
        near the best on four of five sets of ratings; where users have rated little, twice as much was better. Hold
        cells out to choose it.
    {max_iter}
    {tol:loss}
    {accelerate}
    {init}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}

    Attributes
    ----------
    {W_, H_}
    levels_ : ndarray of shape (n_levels,)
        Values of the levels 0..V.
    thresholds_ : ndarray of shape (n_levels - 1,)
        b_0..b_{V-1} between the levels.
    l2_ : float
        l2 of the fit.
    level_weights_ : ndarray of shape (n_levels,)
        Weight of an observed cell of each level.
    {fit}

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1)]
    >>> model = hs.SquaredOrdNMF(n_components=1, random_state=0).fit(stars)
    >>> model.recommend(["bob"], n=5).ids
    array([['Brazil']], dtype=object)
    """

    offers = frozenset({"levels", "likelihood"})
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **SquaredFactorization.parameter_rules,
        **LEVEL_RULES,
        "level_weight": level_weight_rule(),
    }

    thresholds_ = fitted(lambda model: model.likelihood.inner.thresholds, "b_0 < ... < b_{V-1} between the levels.")

    @property
    def level_weights_(self) -> Array:
        """Weight of an observed cell of each level."""
        weights: Array | None = self.model_.encoder.level_weights
        return np.ones(self.levels_.size) if weights is None else weights

    def __init__(
        self,
        n_components: int = 50,
        *,
        levels: ArrayLike | None = None,
        thresholds: ArrayLike | None = None,
        level_weight: str | ArrayLike | Mapping[Any, float] | None = "levels",
        l2: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        accelerate: bool = True,
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.levels = levels
        self.thresholds = thresholds
        self.level_weight = level_weight
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

    def _method(self) -> Method:
        encoder = OrdinalEncoder(self.levels, self.unseen, self.level_weight)
        return Method(encoder, self._likelihood, self._solver, squared_start)

    def _likelihood(self, codes: Observed, encoder: OrdinalEncoder) -> Squared:
        ordinal = initial_ordinal(codes, encoder, self.thresholds)
        return Squared(replace(ordinal, decrements=ordinal.decrements / ordinal.theta[0], pinned=True))


class SquaredPoisson(SquaredFactorization):
    """Counts for ranking: y ~ Poisson(x^2), x = w_u @ h_i, with half-normal priors, at the mode.

    `PoissonFactorization` with the link and the prior of `SquaredOrdNMF`. Unseen cells are *zeros* by default; with
    `unseen="missing"` they carry no information. A linear rate pushes all unseen cells alike, the squared one those
    with high scores harder; the prior shrinks all factors. Recommendations and ranking are by x. The penalised loss
    never rises. Counts that span orders of magnitude dominate such a model: rank by whether there are any (zeros and
    ones), or make levels of them for `SquaredOrdNMF`.

    Parameters
    ----------
    {n_components}
    l2 : float or None, default=None
        Prior exp(-l2 / 2 w^2) on every entry of both factors. None takes 0.72 (sqrt(n) + sqrt(m)), as `SquaredOrdNMF`
        does, where the reason is given. Hold cells out to choose it.
    {max_iter}
    {tol:loss}
    {accelerate}
    {init}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}

    Attributes
    ----------
    {W_, H_}
    l2_ : float
        l2 of the fit.
    {fit}

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
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
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

    def _method(self) -> Method:
        return Method(Encoder(), Squared(Poisson()), self._solver, squared_start)

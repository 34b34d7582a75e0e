"""Factorization of ordered levels through thresholds on x of any sign: cumulative links, and rounding."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import checkpoint as checkpoints
from halfseen import validation
from halfseen.arrays import Array
from halfseen.checkpoint import Checkpoint, CheckpointFolder, Stage
from halfseen.encoders import OrdinalEncoder, levels_rule
from halfseen.engines import Side, check_is_cpu
from halfseen.engines.threads import Threads
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.base import Factorization, Method, check_start, fitted
from halfseen.estimators.inputs import Data, add_listed, keep, observe_features, observe_rows
from halfseen.estimators.ordnmf import count_levels
from halfseen.fitting import Callback, EarlyStopping, Outcome, Start, callbacks, run, warn_if_empty
from halfseen.held_out import split_validation
from halfseen.io.tables import FilePath
from halfseen.likelihoods import LINKS, Cumulative, Linear, MultiSigmoid, OwnThresholds, Round, SmoothOrdinal
from halfseen.model import Fit, Status, products_at
from halfseen.observed import Observed
from halfseen.ranking import Seen, index_of
from halfseen.sampling.markov_chains import Mixing, Plan, Sampled, sample_chains
from halfseen.sampling.sampled_model import FactorRecorder, SampledModel, implicit_sets, principal_factors
from halfseen.solvers import BIAS_L2, GD, SGD, Newton, PointFactor, Problem, Ridge, Solver

#: Part of what noise adds to singular values that is the default l2: chosen by cells held out of surveys and ratings.
NOISE_PART = 0.6
#: l2 of loss="round" by default: next to nothing, so that levels without noise are met exactly.
EXACT_L2 = 1e-5
#: Standard deviation of its random start: different starts should have different ends.
WIDE_START = 0.5
#: learning_rate by default: of the solver "sgd", and of "gd".
SGD_RATE, GD_RATE = 0.3, 0.01

RULES: Mapping[str, validation.Rule] = {
    **Factorization.parameter_rules,
    "levels": levels_rule(),
    "thresholds": validation.rising(),
    "biases": validation.flag(),
    "l2": validation.number(0.0, or_none=True),
    "centred": validation.flag(),
    "solver": validation.one_of("newton", "sgd"),
    "learning_rate": validation.number(0.0, above=True),
    "batch_size": validation.whole(1),
    "n_init": validation.whole(1),
    "early_stopping": validation.flag(),
    "validation_fraction": validation.between(0.0, 1.0),
    "n_iter_no_change": validation.whole(1),
}


class ThresholdFactorization(Factorization):
    """Levels cut out of x = w_u @ h_i + b_u + c_i by thresholds: biases, a ridge, restarts, early stopping."""

    levels: Any
    thresholds: Any
    biases: bool
    l2: float | None
    centred: bool
    solver: str
    learning_rate: float | None
    batch_size: int
    n_init: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int

    offers = frozenset({"levels"})

    thresholds_ = fitted(lambda model: model.likelihood.cuts, "tau_1 < ... < tau_N between the levels, in units of x.")
    ridge_ = fitted(lambda model: _ridge_of(model), "Prior of the factors.")
    l2_ = fitted(lambda model: _ridge_of(model).l2, "l2 of the fit.")

    @property
    def row_biases_(self) -> Array | None:
        """b, one for each row; None without biases."""
        return self.W_[:, -2] if self._has_biases else None

    @property
    def column_biases_(self) -> Array | None:
        """c, one for each column; None without biases."""
        return self.H_[:, -1] if self._has_biases else None

    @property
    def _has_biases(self) -> bool:
        return bool(self.ridge_.biases)

    @abstractmethod
    def _common_likelihood(self, thresholds: Array, learned: bool, numbers: Array | None) -> SmoothOrdinal:
        """Likelihood with these thresholds for all rows and columns."""

    def _method(self) -> Method:
        return Method(
            encoder=OrdinalEncoder(self.levels, self.unseen),
            likelihood=self._initial_likelihood,
            solver=self._solver,
            # rows alone have one best place, which Newton finds fastest
            folding=lambda solver: Newton(solver.ridge_of_row if isinstance(solver, GD) else solver.ridge),
        )

    def _initial_likelihood(self, codes: Observed, encoder: OrdinalEncoder) -> SmoothOrdinal:
        histogram = count_levels(codes, encoder, self.thresholds)
        if self.thresholds is not None:
            given = np.asarray(self.thresholds, dtype=np.float64)
            return self._common_likelihood(given, False, encoder.numbers)
        likelihood = self._common_likelihood(np.zeros(histogram.size - 1), True, encoder.numbers)
        likelihood.check_unseen(self.unseen, type(self).__name__)  # else no cell would be at level 0
        return likelihood.initialize(histogram)

    def _solver(self, codes: Observed, likelihood: Any) -> Solver[Any]:
        ridge = self._ridge(noise_l2(codes, likelihood, self.n_components) if self.l2 is None else float(self.l2))
        if self.solver == "newton":
            return Newton(ridge)
        if self.solver == "gd":
            weight = codes.nnz if codes.weights is None else float(codes.weights.sum())
            per_row = weight / codes.shape[0]
            per_cell = replace(ridge, l2=ridge.l2 / per_row) if self.l2 is None else ridge
            return GD(per_cell, GD_RATE if self.learning_rate is None else self.learning_rate, per_row)
        rate = SGD_RATE if self.learning_rate is None else self.learning_rate
        return SGD(ridge, rate, self.batch_size, check_random_state(self.random_state))

    def _ridge(self, l2: float) -> Ridge:
        return Ridge(l2, bool(self.biases), bool(self.centred))

    @property
    def _is_one_run(self) -> bool:
        return bool(self.n_init == 1)

    def _run(
        self, problem: Problem, solver: Any, method: Method, callback: Callback | None,
        folder: CheckpointFolder | None,
    ) -> Fit:  # fmt: skip
        """The best of `n_init` runs: by the held-out cells, if there are any, else by the loss."""
        random = self._random(folder)
        generators = [random]
        if isinstance(solver, SGD):
            if self.random_state is None:
                solver.random_state = self._random(folder)
            generators.append(solver.random_state)
        fitted, held_out = problem, None
        if self.early_stopping:
            cells, others = split_validation(problem.cells.observed, self.validation_fraction, random)
            engine, likelihood = problem.engine, problem.likelihood
            shards = problem.cells.row_shards
            fitted = Problem(engine, engine.place(cells, Side.ROWS, Side.COLUMNS, shards=shards), likelihood)
            held_out = Problem(engine, engine.place(others, Side.ROWS, shards=shards), likelihood)
        best: Any = None
        best_stage: Stage | None = None
        # From a given start Newton's method goes one way, however often.
        n_starts = self.n_init if isinstance(self.init, str) or self.solver == "sgd" else 1
        for number in range(n_starts):
            stage = None if folder is None else folder.stage(f"start {number}", *generators)
            stopping = None if held_out is None else EarlyStopping(held_out, self.n_iter_no_change, callback)
            if stage is not None and stage.was_dropped:
                stage.load()  # the states of the generators after it
                continue
            watching = callback if stopping is None else stopping
            fit = self._run_once(fitted, solver, method, random, watching, stage)
            fit = fit if stopping is None else stopping.best(fit, fitted, solver)
            if self._is_perfect(fit, problem):  # what would follow only shrinks the factors
                return replace(fit, status=Status.CONVERGED) if fit.status is Status.MAX_ITER else fit
            is_best = best is None or _final_loss(fit) < _final_loss(best)
            best, best_stage, other = (fit, stage, best_stage) if is_best else (best, best_stage, stage)
            if fit.status in (Status.INTERRUPTED, Status.STOPPED):  # no other start is wanted
                break
            if other is not None:
                other.drop()
        result: Fit = best
        return result

    def _is_perfect(self, fit: Fit, problem: Problem) -> bool:
        """Whether no other start could do better."""
        return False

    def _run_once(
        self, problem: Problem, solver: Any, method: Method, random: Any, callback: Callback | None,
        stage: Stage | None,
    ) -> Fit:  # fmt: skip
        """One run, from a random start or from the given one."""
        return self._run_from(lambda: self._start(problem, solver, method, random), problem, solver, callback, stage)

    def _run_from(
        self, start: Start, problem: Problem, solver: Any, callback: Callback | None, stage: Stage | None
    ) -> Fit:
        # Single cells in random order have no direction to extrapolate in.
        accelerate = bool(self.accelerate) and self.solver == "newton"
        return run(
            problem,
            solver,
            start,
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=accelerate,
            callback=callback,
            stage=stage,
        )

    def _start(self, problem: Problem, solver: Any, method: Method, random: Any) -> tuple[Array, Array]:
        ridge: Ridge = solver.ridge
        if isinstance(self.init, str):
            W, H = super()._start(problem, solver, method, random)
            return ridge.initialize(W, Side.ROWS), ridge.initialize(H, Side.COLUMNS)
        # the pair of arrays, which may have the columns of biases already
        k, factors = self.n_components, []
        has_biases = bool(self.biases) and all(np.shape(factor)[1:] == (k + 2,) for factor in self.init)
        shape = problem.cells.observed.shape
        for factor, count, name, side in zip(self.init, shape, ("W0", "H0"), Side, strict=True):
            given = check_start(factor, (count, k + 2 if has_biases else k), name, solver)
            if self.biases and not has_biases:
                given = ridge.with_biases(given, side)
            fixed = ridge.penalty(given.shape[1], side).fixed
            factors.append(np.where(fixed == 1, 1.0, given).astype(given.dtype))
        return factors[0], factors[1]


def _ridge_of(model: Any) -> Ridge:
    if model.folding is None:
        raise AttributeError('A fit with inference="gibbs" has no ridge and no l2: precisions are drawn.')
    ridge: Ridge = model.folding.solver.ridge
    return ridge


def noise_l2(observed: Observed, likelihood: SmoothOrdinal, n_components: int) -> float:
    """NOISE_PART of what noise adds to the leading singular values of the matrix of slopes at x = 0, on average.

    An l2 on both factors takes the same off every singular value of x, and ought to take what noise has added. Noise
    whose squares have the sums r in every row and c in every column has singular values up to sqrt(r) + sqrt(c); to one
    that is observed as y, above that, it has added

        y - sqrt((y^2 - r - c)^2 - 4 r c) / y

    (the optimal shrinkage of Gavish & Donoho, IEEE Trans. Inf. Theory 2017), and those below are nothing but noise.
    Uneven rows count in r by the squares of their sums, uneven columns in c, as the leading singular vectors of noise
    are on those with many cells. What stands out is no noise: r and c are smaller by its share. One value more than
    there are components is looked at, for what rows and columns have on average.
    """
    slopes = likelihood.quadratic(observed.values, np.zeros_like(observed.values)).slope.astype(np.float64)
    slopes = slopes if observed.weights is None else slopes * observed.weights
    exponent = int(np.frexp(np.abs(slopes).max(initial=0.0))[1])  # squares of great weights would overflow
    slopes = np.ldexp(slopes, -exponent)
    matrix = csr_array((slopes, observed.indices, observed.indptr), shape=observed.shape)
    if observed.is_first_at_cell is not None:  # what is observed twice in one place is one cell of the matrix
        matrix = matrix.copy()
        matrix.sum_duplicates()
    squares = matrix.power(2)
    sums = [np.asarray(squares.sum(axis=axis)).ravel() for axis in (1, 0)]
    total = float(sums[0].sum())
    if total == 0.0:
        return 0.0
    rows, columns = (float((of_side**3).sum() / (of_side**2).sum()) for of_side in sums)
    count, added, share = n_components + 1, np.zeros(1), 1.0
    if count < min(matrix.shape):
        start = np.random.default_rng(0).normal(size=min(matrix.shape))
        found = svds(matrix, count, tol=1e-3, v0=start, return_singular_vectors=False)
    else:
        short: Any = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
        found = np.sqrt(np.maximum(np.linalg.eigvalsh((short @ short.T).toarray()), 0.0))
    for _ in range(3):
        r, c = share * rows, share * columns
        y = np.maximum(found, np.sqrt(r) + np.sqrt(c))
        added = y - np.sqrt(np.maximum((y**2 - r - c) ** 2 - 4.0 * r * c, 0.0)) / y
        share = 1.0 - float((np.maximum(found - added, 0.0) ** 2).sum()) / total
    return float(np.ldexp(NOISE_PART * added.mean(), exponent))


def _final_loss(fit: Fit) -> float:
    """Loss by which runs are compared: the lowest on held-out cells, else the last."""
    losses = fit.trace.get("held_out", fit.trace["objective"][-1:])
    return float(np.min(losses, initial=np.inf))


class OrdinalMF(ThresholdFactorization):
    """Ordered levels with probabilities: x = w_u @ h_i + b_u + c_i and noise, cut by thresholds tau_1 < ... < tau_N.

    P(y <= v) = F(tau_{v+1} - x), with F the distribution of the noise that `link` names: the cumulative link models of
    ordinal regression with x made of factors. Unseen cells are *missing* and carry no information. Factors may have any
    sign.

    With `inference="map"` the factors are those of the highest posterior density, and the penalised loss never rises.
    With "gibbs" factors, biases, thresholds and their hyper-parameters are drawn from their posterior, with normal
    noise (the probit link) whose precision differs between rows and between columns; predictions are means over the
    draws, and `predict_interval` knows what the posterior leaves open. It predicts better, and takes longer. `l2`,
    `centred`, `solver`, `n_init`, `max_iter`, `tol`, `accelerate` and `init` are of "map"; `implicit` to `n_draws` of
    "gibbs". `W_` and `H_` are then the largest components of the posterior mean of x, and its biases;
    `inverse_transform`, which has nothing else to go by, is an approximation without own thresholds.

    Parameters
    ----------
    n_components : int, default=10
        Number of components, beside biases.
    inference : {"map", "gibbs"}, default="map"
        A point estimate, or draws from the posterior.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default="logit"
        Noise: logistic, normal, with a long lower tail, with a long upper tail, or with long tails on both sides
        (outlying cells hardly count). With "gibbs" it is normal.
    {levels}
    thresholds : array-like of shape (n_levels - 1,) or None, default=None
        tau_1 < ... < tau_N between levels 0..N, in units of x; None learns them.
    own_thresholds : {"rows", "columns"} or None, default=None
        Which of the two have thresholds of their own, shrunk towards the common ones (some people call everything good,
        some little); None: all share one set. Newton's solver only. With those of columns, `recommend` of "map" goes by
        x, which then need not be the order of expected values. New rows have the common thresholds in the place of
        their own.
    implicit : bool, default=False
        Whether which columns a row has cells in tells about it, whatever their values, and which rows about a column:
        each adds a vector of its own to the factor, divided by the square root of their number, as in SVD++.
    row_features, column_features : sparse matrix, array-like or frame, default=None
        Features of rows and of columns, which add to factors and biases by linear maps. A frame has the labels in its
        first column, or in a pandas index with a name, where rows (or columns) have labels; a column of words, or of
        lists of words, counts as one feature per word, and numbers other than 0 and 1 are standardised. Numbers must be
        finite; in a frame they may be missing. A row or column without a cell is predicted from its features: all that
        such a frame lists, but for columns beyond those of a wide table of numbers. New rows, of which no features are
        known, are taken for average ones.
    n_sweeps, n_burn : int, default=200 and 40
        Number of sweeps of each chain, and of those discarded at the start.
    n_chains : int, default=2
        Number of chains, which run side by side.
    n_draws : int, default=160
        Number of draws kept of all chains together, at least one per chain. Each has
        (rows + columns) * (n_components + 2) * 4 bytes, with `implicit` a further columns * n_components * 4, with
        `own_thresholds` a further rows (or columns) * (n_levels - 1) * 8; at most 1 GiB in all, else fewer are kept.
    {biases}
    {l2}
    {centred}
    {solver}
    {max_iter}
    {tol:loss}
    {accelerate:newton}
    {init:biases}
    {random_state}
    {verbose}
    unseen : {"missing"}, default="missing"
        Unseen cells are missing.
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_:biases}
    own_thresholds_ : ndarray or None
        tau_1..tau_N of each row or column, if they have their own.
    diagnostics_ : dict of Mixing
        With "gibbs": mean, split R-hat (over all chains) and effective number of draws of the noise and the
        log-likelihood; of "predicted cells", the expected level of up to 20, the values that nine of ten are not worse
        than; and the mean "acceptance" of proposed thresholds. `status_` is UNMIXED if the R-hat of predicted cells
        exceeds 1.1, and TOO_SHORT if there are too few sweeps to tell.
    {ordinal}
    {fit}

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Clue", 2), ("bob", "Alien", 4), ("bob", "Clue", 1), ("cy", "Clue", 1)]
    >>> model = hs.OrdinalMF(n_components=1, random_state=0).fit(stars)
    >>> model.levels_
    array([1., 2., 4., 5.])
    >>> model.predict_proba("cy", "Alien").round(1)
    array([0. , 0.2, 0.5, 0.2])
    """

    offers = frozenset({"levels", "likelihood"})
    more_state: ClassVar[Any] = dict
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **RULES,
        "inference": validation.one_of("map", "gibbs"),
        "link": validation.one_of(*LINKS),
        "own_thresholds": validation.one_of("rows", "columns", or_none=True),
        "implicit": validation.flag(),
        "n_sweeps": validation.whole(1),
        "n_burn": validation.whole(0),
        "n_chains": validation.whole(1),
        "n_draws": validation.whole(1),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        inference: str = "map",
        link: str = "logit",
        levels: ArrayLike | None = None,
        thresholds: ArrayLike | None = None,
        own_thresholds: str | None = None,
        implicit: bool = False,
        row_features: Any = None,
        column_features: Any = None,
        n_sweeps: int = 200,
        n_burn: int = 40,
        n_chains: int = 2,
        n_draws: int = 160,
        biases: bool = True,
        l2: float | None = None,
        centred: bool = True,
        solver: str = "newton",
        learning_rate: float = 0.3,
        batch_size: int = 4000,
        n_init: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_iter: int = 200,
        tol: float = 1e-4,
        accelerate: bool = True,
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
    ) -> None:
        self.n_components = n_components
        self.inference = inference
        self.link = link
        self.levels = levels
        self.thresholds = thresholds
        self.own_thresholds = own_thresholds
        self.implicit = implicit
        self.row_features = row_features
        self.column_features = column_features
        self.n_sweeps = n_sweeps
        self.n_burn = n_burn
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.biases = biases
        self.l2 = l2
        self.centred = centred
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_init = n_init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
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
        if self.own_thresholds is not None and (self.thresholds is not None or self.solver != "newton"):
            other = "thresholds" if self.thresholds is not None else f"solver={self.solver!r}"
            raise ParameterError(
                "must be None where thresholds are given, or single cells make the steps.",
                parameter="own_thresholds",
                found=f"{self.own_thresholds!r} and {other}",
                remedy='Leave one of them out, or use `solver="newton"`.',
            )
        encoder = OrdinalEncoder(self.levels, self.unseen, owners=self.own_thresholds)
        return replace(super()._method(), encoder=encoder)

    def _common_likelihood(self, thresholds: Array, learned: bool, numbers: Array | None) -> SmoothOrdinal:
        return Cumulative(thresholds, learned, numbers, link=LINKS[self.link])

    def _initial_likelihood(self, codes: Observed, encoder: OrdinalEncoder) -> SmoothOrdinal:
        common: Any = super()._initial_likelihood(codes, encoder)
        if self.own_thresholds is None:
            return common
        n_codes = (max(codes.shape) + 1) * encoder.fitted_labels.size
        if n_codes > 2 ** np.finfo(codes.dtype).nmant:
            raise DataError(
                f"With own_thresholds, numbers must tell {n_codes:,} pairs of an owner and a level apart.",
                found=f"{codes.dtype}, which can't",
                remedy="Use float64.",
                parameter="own_thresholds",
            )
        l2 = noise_l2(codes, common, self.n_components) if self.l2 is None else float(self.l2)
        n_owners = codes.shape[0 if self.own_thresholds == "rows" else 1]
        shared = (common.thresholds, True, common.values, common.link)
        return OwnThresholds(*shared, np.zeros((n_owners, common.highest)), BIAS_L2 * l2, self.own_thresholds)

    def _solver(self, codes: Observed, likelihood: Any) -> Solver[Any]:
        if self.own_thresholds is not None:
            likelihood = Cumulative(likelihood.thresholds, True, likelihood.values, link=likelihood.link)
        return super()._solver(codes, likelihood)

    @property
    def _is_sampled(self) -> bool:
        """Whether the model consists of draws; before a fit, whether it will."""
        return self.model_.has_posterior if hasattr(self, "model_") else self.inference == "gibbs"

    @property
    def objective_name(self) -> str:
        """What the objective in the trace is, in words."""
        return "Log-likelihood" if self._is_sampled else "Loss"

    @property
    def own_thresholds_(self) -> Array | None:
        """tau_1..tau_N of each row or column; None if all share `thresholds_`."""
        if self._is_sampled:
            own = self.model_.kept.own_thresholds
            return None if own is None else own.mean(axis=1)
        likelihood = self.model_.likelihood
        return likelihood.owner_thresholds[:-1] if isinstance(likelihood, OwnThresholds) else None

    @property
    def _has_biases(self) -> bool:
        return self.model_.kept.biases if self._is_sampled else super()._has_biases

    def score(self, X: Data, y: object = None) -> float:
        """How well the rows of X are explained after folding them in: log-likelihood per cell; larger is better.

        Every component helps to explain cells that it has seen: to choose n_components, hold cells out.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `transform`.
        y : None
            Ignored, for scikit-learn's pipelines.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if not self._is_sampled:
            return super().score(X, y)
        model: SampledModel = self.model_
        return model.score_rows(observe_rows(self, X, allow_empty=False), self.n_jobs)

    def _means_of(self, X: Data) -> Array:
        return self._predict_rows("mean", observe_rows(self, X)) if self._is_sampled else super()._means_of(X)

    def _fit_observed(self, observed: Observed, columns: dict[str, Any], X: Any, y: Any, cell_weight: Any) -> None:
        if self.inference == "gibbs":
            self._fit_by_sampling(observed, columns, X, y, cell_weight)
            return
        for name in ("implicit", "row_features", "column_features"):
            value = getattr(self, name)
            if value is not None and value is not False:
                raise ParameterError(
                    'must be left out for `inference="map"`.',
                    parameter=name,
                    found="True" if value is True else type(value).__name__,
                    remedy='Use `inference="gibbs"`.',
                )
        super()._fit_observed(observed, columns, X, y, cell_weight)

    def _fit_by_sampling(self, observed: Observed, columns: dict[str, Any], X: Any, y: Any, cell_weight: Any) -> None:
        """Draw from the posterior, and keep the draws in the place of factors."""
        # what is asked for must go together
        check_is_cpu(self.engine, type(self).__name__)
        if self.n_burn >= self.n_sweeps:
            must, remedy = "must be below `n_sweeps`, so that some sweeps are kept.", "Discard fewer, or draw more."
            found = f"{self.n_burn} of {self.n_sweeps} sweeps"
            raise ParameterError(must, found=found, remedy=remedy, parameter="n_burn")
        if self.link not in ("logit", "probit"):
            must, remedy = 'must be "probit" for `inference="gibbs"`.', 'Leave it out, or use `inference="map"`.'
            raise ParameterError(must, found=repr(self.link), remedy=remedy, parameter="link")
        for name, value, is_given in (
            ("l2", repr(self.l2), self.l2 is not None),
            ("init", "arrays", not isinstance(self.init, str)),
        ):
            if is_given:
                must = 'must be left out for `inference="gibbs"`, which draws precisions and starts at random.'
                raise ParameterError(must, found=value, remedy='Or use `inference="map"`.', parameter=name)
        if self.early_stopping:
            must, remedy = 'must be False for `inference="gibbs"`, which does not overfit by going on.', "Leave it out."
            raise ParameterError(must, found="True", remedy=remedy, parameter="early_stopping")
        if observed.weights is not None and np.any(observed.weights != 1.0):
            raise DataError(
                'Cells must have weight 1 for `inference="gibbs"`.',
                found=f"{observed.weights[observed.weights != 1.0][0]:g}",
                remedy='Leave `cell_weight` out, repeat cells (`duplicates="keep"`), or use `inference="map"`.',
                parameter="cell_weight",
            )
        if "feature_names_in_" not in columns:  # else columns are those of a wide table
            observed = add_listed(observed, self.column_features, "column")
            columns = columns | {"n_features_in_": observed.shape[1]}
        fingerprint = observed.fingerprint()
        observed = add_listed(observed, self.row_features, "row")
        encoder, cells = OrdinalEncoder(self.levels, self.unseen).fit(observed, type(self).__name__)
        likelihood: Any = super()._initial_likelihood(cells, encoder)
        likelihood.check_unseen(self.unseen, type(self).__name__)

        # features of both sides, the implicit ones first
        from halfseen.sampling.factor_chain import FactorChain, FeatureMatrix, OrderedProbit  # compiled code

        down = observed.columns
        turned = replace(observed, indptr=down.indptr, indices=down.rows, shape=observed.shape[::-1])
        features = []
        for side, labels, given, name in (
            (observed, observed.row_labels, self.row_features, "row_features"),
            (turned, observed.column_labels, self.column_features, "column_features"),
        ):
            groups = [FeatureMatrix(implicit_sets(side), False)] if self.implicit else []
            if given is not None:
                groups.append(FeatureMatrix(observe_features(given, labels, side.shape[0], name)))
            else:  # features would tell about those without a cell
                what, effect = name.removesuffix("_features"), "is drawn from the distribution of the others"
                warn_if_empty(what, side.seen_per_row() == 0, labels, stacklevel=6, effect=effect)
            features.append(groups)

        # chains
        n_owners = {None: 0, "rows": observed.shape[0], "columns": observed.shape[1]}[self.own_thresholds]
        thresholds = None if self.thresholds is None else np.asarray(self.thresholds, np.float64)
        codes = cells.values.astype(np.int64)

        def make_chain(streams: list[np.random.Generator], threads: Threads, number: int) -> FactorChain:
            seen = OrderedProbit(codes, encoder.fitted_labels.size, thresholds, self.own_thresholds, n_owners)
            return FactorChain(
                observed.indptr, observed.indices, observed.shape, seen, self.n_components, streams[number], threads,
                biases=bool(self.biases), row_features=features[0], column_features=features[1],
            )  # fmt: skip

        def attributes(sampled: Sampled, fingerprint: str | None = None) -> dict[str, Any]:
            """Fitted attributes after a run."""
            draws = sampled.draws
            W, H = (PointFactor(factor.astype(observed.dtype)) for factor in principal_factors(draws))
            mean = replace(likelihood, thresholds=draws.thresholds.mean(axis=0), link=LINKS["probit"])
            record = (W, H, mean, encoder, index_of(observed), Seen.from_observed(observed), observed.unseen)
            model = SampledModel(*record, None, fingerprint, draws)
            of_run = {"model_": model, "trace_": sampled.trace, "status_": sampled.status}
            return of_run | {"n_iter_": len(sampled.trace["objective"]), "diagnostics_": sampled.mixing} | columns

        def at_sweep(outcome: Outcome) -> dict[str, Any]:
            return attributes(outcome.state.sampled(outcome.status, outcome.trace))

        plan = Plan(self.n_sweeps, self.n_burn, self.n_draws)
        with (
            checkpoints.opened(self.checkpoint, self, fingerprint) as folder,
            callbacks(self, X, y, cell_weight, at_sweep, self.n_sweeps) as callback,
        ):
            streams = np.random.default_rng(self._random(folder).randint(2**31, size=4)).spawn(self.n_chains)
            stage = None if folder is None else folder.stage("sweeps", *streams)
            make = partial(make_chain, streams)
            sampled = sample_chains(make, FactorRecorder, self.n_chains, plan, self.n_jobs, callback, stage=stage)
            keep(self, attributes(sampled, fingerprint))

    def _more_state(self) -> Any:
        if not self._is_sampled:
            return {}
        names = np.array(list(self.diagnostics_), dtype=object)
        return {
            "diagnosed": names,
            "diagnostics": np.array(list(self.diagnostics_.values()), np.float64).reshape(-1, 3),
        }

    def _set_state(self, model: Any, trace: dict[str, Array], more: Any) -> None:
        super()._set_state(model, trace, ())
        if model.has_posterior:
            names, numbers = more["diagnosed"].tolist(), more["diagnostics"]
            if numbers.shape != (len(names), 3) or numbers.dtype.kind != "f":
                raise ValueError("more/diagnostics must have three numbers for each name")
            self.diagnostics_ = {name: Mixing(*row) for name, row in zip(names, numbers.tolist(), strict=True)}


class RoundMF(ThresholdFactorization):
    """Ordered levels as x = w_u @ h_i + b_u + c_i, rounded at thresholds tau_1 < ... < tau_N (Pezeshkpour 2018).

    The level is GRF(x), the number of thresholds below x. Unseen cells are *missing* and carry no information. Factors
    may have any sign. Matrices of full rank can be of a low generalized round-rank: an identity matrix is of 2, a
    triangular one of 1. The penalised loss never rises, but for `solver="gd"`.

    Parameters
    ----------
    n_components : int, default=10
        Number of components, beside biases.
    loss : {"multi-sigmoid", "round", "linear"}, default="multi-sigmoid"
        "multi-sigmoid": squared error of a staircase of sigmoids, for data with noise; "round": hinges around the
        interval of each level, for data without noise, which they meet exactly if they can, or with an l2 for data
        with noise; "linear": squared error of the levels' numbers themselves, for comparison.
    {levels}
    thresholds : array-like of shape (n_levels - 1,) or None, default=None
        tau_1 < ... < tau_N between levels 0..N, in units of x; None learns them ("round" with an l2 and a smooth start
        keeps those of the start). For "linear", which rounds to the nearest level, they must be a unit apart: 0.5,
        1.5, ... leave it without an offset.
    biases : bool, default=True
        Whether each row and each column has a bias. False gives the model of the thesis.
    l2 : float or None, default=None
        Prior exp(-l2 / 2 |w - centre|^2) on the rows of both factors, a third of it on biases; with `solver="gd"` once
        for each cell of the row. None takes it from the singular values of the slopes at x = 0: 0.6 times what noise
        adds to the first n_components + 1, on average, which is less the clearer the data are; for "round" next to
        nothing. Hold cells out to choose it.
    {centred}
    margin : float, default=0.05
        For "round": how far inside its interval x must be to cost nothing; 0 in the thesis. The hinges are smoothed by
        a parabola over 0.01, with `solver="gd"` too; those of the thesis are not.
    ends : float or None, default=None
        For "round": length of the intervals of the lowest and the highest level, 1 in the thesis; None: infinite.
    {solver:gd}
    {max_iter}
    {tol:loss}
    {accelerate:newton}
    init : {"random", "smooth"} or tuple of array-like, default="smooth"
        Initial factors: random; "smooth", for "round": from a fit of "multi-sigmoid"; or a pair of arrays (W0, H0),
        with the columns of biases or without.
    {random_state}
    {verbose}
    unseen : {"missing"}, default="missing"
        Unseen cells are missing.
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_:biases}
    {ordinal}
    {fit}

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> triangle = np.tri(5)  # of rank 5, but of round-rank 1
    >>> model = hs.RoundMF(n_components=1, loss="round", biases=False, random_state=0).fit(triangle)
    >>> model.predict_level(2, [0, 1, 2, 3, 4])
    array([1., 1., 1., 0., 0.])
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **RULES,
        "loss": validation.one_of("multi-sigmoid", "round", "linear"),
        "margin": validation.number(0.0),
        "ends": validation.number(0.0, above=True, or_none=True),
        "solver": validation.one_of("newton", "sgd", "gd"),
        "learning_rate": validation.number(0.0, above=True, or_none=True),
        "init": validation.start("random", "smooth"),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "multi-sigmoid",
        levels: ArrayLike | None = None,
        thresholds: ArrayLike | None = None,
        biases: bool = True,
        l2: float | None = None,
        centred: bool = True,
        margin: float = 0.05,
        ends: float | None = None,
        solver: str = "newton",
        learning_rate: float | None = None,
        batch_size: int = 4000,
        n_init: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_iter: int = 200,
        tol: float = 1e-4,
        accelerate: bool = True,
        init: str | tuple[ArrayLike, ArrayLike] = "smooth",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.levels = levels
        self.thresholds = thresholds
        self.biases = biases
        self.l2 = l2
        self.centred = centred
        self.margin = margin
        self.ends = ends
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_init = n_init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
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
        is_exact = self.loss == "round" and self.l2 is None and self.solver != "gd"
        return replace(super()._method(), start=_wide_start if is_exact else None)

    def _initial_likelihood(self, codes: Observed, encoder: OrdinalEncoder) -> SmoothOrdinal:
        likelihood: Any = super()._initial_likelihood(codes, encoder)
        if self.solver != "gd" or self.loss == "linear" or not likelihood.learned:
            return likelihood
        return replace(likelihood, thresholds=np.arange(float(likelihood.highest)))

    def _common_likelihood(self, thresholds: Array, learned: bool, numbers: Array | None) -> SmoothOrdinal:
        if self.loss == "round":
            ends = np.inf if self.ends is None else float(self.ends)
            return Round(thresholds, learned, numbers, margin=self.margin, ends=ends)
        if self.loss == "multi-sigmoid":
            return MultiSigmoid(thresholds, learned, numbers)
        if not learned and not np.allclose(np.diff(thresholds), 1.0):
            raise ParameterError(
                'must be a unit apart for `loss="linear"`, which rounds to the nearest level.',
                parameter="thresholds",
                found=repr(self.thresholds),
                remedy="Leave them out, or choose another loss.",
            )
        return Linear(thresholds.size, 0.5 - float(thresholds[0]), learned, numbers)

    def _ridge(self, l2: float) -> Ridge:
        """Where levels are to be met exactly there is nothing to shrink, and no reason for a centre."""
        if self.loss == "round" and self.l2 is None:
            return Ridge(EXACT_L2, bool(self.biases), False)
        return super()._ridge(l2)

    def _is_perfect(self, fit: Fit, problem: Problem) -> bool:
        """For "round": whether every cell is at its level."""
        if self.loss != "round":
            return False
        cells = problem.cells.observed
        x = products_at(fit.rows.mean, fit.columns.mean, cells.row_of_cell(), cells.indices)
        return bool(np.all(fit.likelihood.levels(x) == cells.values))

    @property
    def _starts_smooth(self) -> bool:
        return self.loss == "round" and isinstance(self.init, str) and self.init == "smooth"

    @property
    def _is_one_run(self) -> bool:
        return super()._is_one_run and not self._starts_smooth

    def _run_once(
        self, problem: Problem, solver: Any, method: Method, random: Any, callback: Callback | None,
        stage: Stage | None,
    ) -> Fit:  # fmt: skip
        if not self._starts_smooth:
            return super()._run_once(problem, solver, method, random, callback, stage)
        likelihood: Any = problem.likelihood
        smooth = MultiSigmoid(likelihood.thresholds, likelihood.learned, likelihood.values)
        before = None if stage is None else stage.folder.stage(f"{stage.name}, smooth", *stage.generators)
        first = super()._run_once(problem.with_likelihood(smooth), solver, method, random, None, before)
        # Under a ridge learned thresholds would shrink with x until no interval is left: hinges have no scale.
        learned = likelihood.learned and self.l2 is None
        likelihood = replace(likelihood, thresholds=first.likelihood.cuts, learned=learned)
        if first.status is Status.INTERRUPTED:
            return replace(first, likelihood=likelihood)
        factors = (first.rows.mean, first.columns.mean)
        return self._run_from(lambda: factors, problem.with_likelihood(likelihood), solver, callback, stage)


def _wide_start(problem: Problem, solver: Any, shapes: Any, random: Any) -> tuple[Array, Array]:
    W, H = (random.normal(0.0, WIDE_START, shape) for shape in shapes)
    return W, H

"""Levels and counts for ranking, through a square link: SquaredOrdNMF, SquaredPoisson."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from halfseen import validation
from halfseen.arrays import Array
from halfseen.checkpoint import Checkpoint, CheckpointFolder
from halfseen.encoders import Encoder, OrdinalEncoder, level_weight_rule
from halfseen.engines import Side, open_engine
from halfseen.engines.topk import Products, best_columns
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.base import Factorization, Method, Prepared, fitted, prepare
from halfseen.estimators.ordnmf import LEVEL_RULES, initial_ordinal
from halfseen.fitting import Start, run
from halfseen.held_out import LENGTH, SHARE, HeldOut, mean_ndcg, split_validation
from halfseen.io.tables import FilePath
from halfseen.likelihoods import Likelihood, Poisson, Squared
from halfseen.model import Fit, Status
from halfseen.observed import Observed
from halfseen.solvers import ColumnPenalty, Multiplicative, Penalty, Problem, Solver

#: Components by default, where there are as many rows and columns.
COMPONENTS = 200
#: l2 as a share of sqrt(n) + sqrt(m), where it is not looked for; how all these numbers were found: docs/methods.md.
L2_SHARE = 0.72
#: Shares that are tried, in this order.
L2_SHARES = (1.95, 1.4, 1.0, 0.72, 0.52, 0.37)
#: Iterations at the first share; at each further one, of so many cells, and in proportion to the square root of cells.
FIRST_ITERATIONS, FURTHER_ITERATIONS, CELLS_OF_THESE = 16, 8, 60_000
#: Components, and cells, of the fits that look for l2: more take rows at random.
SEARCH_COMPONENTS, SEARCH_CELLS = 100, 150_000
LEAST_ENTRY = 1e-12
#: Fewer cells, or fewer that can be held out, say too little.
LEAST_CELLS, LEAST_HELD_OUT = 5_000, 500
#: By default, fits to so many cells are in single precision.
CELLS_OF_SINGLE_PRECISION = 100_000
#: The exponent that is tried first, without momentum and with it; an iteration that it spoils is done again with 1/2.
EAGER_EXPONENT = {False: 0.95, True: 0.65}


def squared_start(problem: Problem, solver: Any, shapes: Any, random: Any) -> tuple[Array, Array]:
    """Gamma(1, 1) sqrt(sqrt(density) / k), so that x^2 is about the share of cells that are above 0."""
    observed = problem.cells.observed
    weights = np.ones(observed.nnz) if observed.weights is None else observed.weights
    cells = observed.shape[0] * observed.shape[1] if observed.unseen == "zero" else weights.sum()
    density = min(1.0, weights[observed.values > 0].sum(dtype=np.float64) / cells)
    scale = np.sqrt(np.sqrt(density) / shapes[0][1])
    W, H = (scale * random.standard_gamma(1.0, size=shape) for shape in shapes)
    return W, H


def in_precision(cells: Observed, dtype: Any) -> Observed:
    """The same cells, with values and weights of this type."""
    if cells.dtype == dtype:
        return cells
    weights = None if cells.weights is None else cells.weights.astype(dtype)
    return replace(cells, values=cells.values.astype(dtype), weights=weights)


class SquaredFactorization(Factorization):
    """A likelihood of rates at the rate x^2, with the prior exp(-l2 / 2 w^2) on every entry, at the mode."""

    l2: float | None
    frequency_scaling: float
    dtype: str | None

    offers = frozenset({"likelihood"})
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **Factorization.parameter_rules,
        "n_components": validation.whole(1, validation.MOST_COMPONENTS, or_none=True),
        "l2": validation.number(0.0, or_none=True),
        "frequency_scaling": validation.number(0.0),
        "dtype": validation.one_of("float32", "float64", or_none=True),
    }
    #: Parameters that a fit finds, and later fits to more of the same data need not find again.
    finds: ClassVar[tuple[str, ...]] = ("n_components", "l2")
    n_components_ = fitted(lambda model: model.H.shape[1], "Number of components of the fit.")
    l2_ = fitted(lambda model: model.folding.solver.penalty.l2, "l2 of the fit.")
    column_l2_ = fitted(lambda model: model.folding.solver.penalty.of_columns(len(model.H)), "l2 of each column.")

    def _solver(self, l2: float, codes: Observed) -> Multiplicative:
        penalty = Penalty(l2=float(l2))
        if self.frequency_scaling:
            counts = np.maximum(codes.seen_per_column(), 1.0)
            penalty = ColumnPenalty(l2=float(l2), columns=(counts / counts.mean()) ** self.frequency_scaling)
        return Multiplicative(penalty, eager=EAGER_EXPONENT[bool(self.accelerate)])

    def _prepare(self, observed: Observed, folder: CheckpointFolder | None) -> Prepared:
        method, encoder, cells, likelihood, _ = prepare(self, observed)
        # components
        k = self.n_components
        if k is None:
            k = min(COMPONENTS, *cells.shape) if isinstance(self.init, str) else np.shape(self.init[0])[-1]
        # precision
        small = cells.nnz < CELLS_OF_SINGLE_PRECISION
        dtype = self.dtype or (cells.dtype if small else np.float32)
        # l2
        l2 = self.l2
        if l2 is None:
            likelihood.check(cells, type(self).__name__)
            random = self._random(folder)

            def find() -> float | None:
                return self._best_share(cells, likelihood, k, random)

            share = find() if folder is None else folder.once("l2", find, random)
            l2 = (share or L2_SHARE) * float(np.sqrt(cells.shape).sum())
        method = replace(method, n_components=k)
        return Prepared(method, encoder, in_precision(cells, dtype), likelihood, self._solver(l2, cells))

    def _best_share(self, cells: Observed, likelihood: Likelihood, n_components: int, random: Any) -> float | None:
        """The share of sqrt(n) + sqrt(m) at which held-out cells rank best; None if the data say too little.

        One path of short fits in single precision, each from the last one's factors and with a smaller share. They lag
        behind, so the best share is smaller than that of converged fits; so is that of all cells, which are more.
        """
        if cells.unseen != "zero" or cells.nnz < LEAST_CELLS:
            return None
        if cells.nnz > SEARCH_CELLS:
            order = random.permutation(cells.shape[0])
            enough = np.searchsorted(np.cumsum(np.diff(cells.indptr)[order]), SEARCH_CELLS) + 1
            cells = cells.select_rows(np.sort(order[:enough]))
        try:
            train, held = split_validation(in_precision(cells, np.float32), SHARE, random)
        except DataError:  # hardly a row or column with two cells
            return None
        positive = held.values[held.values > 0]
        if positive.size < LEAST_HELD_OUT:
            return None
        rows = np.flatnonzero(held.seen_per_row())
        held_out = HeldOut(rows, held.select_rows(rows), np.array([positive.min(), np.median(positive)]))
        hidden = train.select_rows(rows)
        k = min(n_components, SEARCH_COMPONENTS)
        shapes = ((train.shape[0], k), (train.shape[1], k))

        def start_at(W: Array, H: Array) -> Start:
            return lambda: (W, H)

        further = max(1, round(FURTHER_ITERATIONS * np.sqrt(cells.nnz / CELLS_OF_THESE)))
        scores: list[float] = []
        fit: Fit | None = None
        # few cells, which are no work for a cluster; the numbers are the same
        engine_name = "cpu" if self.engine == "dask" else self.engine
        with open_engine(engine_name, self.n_jobs, likelihood, self._solver(0.0, cells)) as engine:
            problem = Problem(engine, engine.place(train, Side.ROWS, Side.COLUMNS), likelihood)
            for share in L2_SHARES:
                solver = self._solver(share * float(np.sqrt(train.shape).sum()), cells)
                if fit is None:
                    start = squared_start(problem, solver, shapes, random)
                else:  # entries that a large share took to 0 may come back
                    start = np.maximum(fit.rows.mean, LEAST_ENTRY), np.maximum(fit.columns.mean, LEAST_ENTRY)
                fit = run(
                    problem if fit is None else problem.with_likelihood(fit.likelihood),
                    solver,
                    start_at(*start),
                    max_iter=further if scores else FIRST_ITERATIONS,
                    tol=0.0,
                    accelerate=bool(self.accelerate),
                )
                if fit.status is Status.INTERRUPTED:
                    raise KeyboardInterrupt
                best = best_columns(
                    Products(fit.rows.mean[rows], fit.columns.mean), LENGTH, (hidden.indptr, hidden.indices),
                    n_jobs=self.n_jobs, engine=engine_name,
                )  # fmt: skip
                scores.append(mean_ndcg(held_out.ndcg(held_out.values_at(best.columns))))
                if len(scores) > 2 and scores[-1] < scores[-2] < scores[-3]:
                    break
        if not np.isfinite(scores).all():
            return None
        place = int(np.argmax(scores))
        step = 0.0
        if 0 < place < len(scores) - 1:  # the vertex of the parabola through the best and its neighbours
            before, at, after = scores[place - 1 : place + 2]
            step = 0.5 * (before - after) / min(before - 2.0 * at + after, -1e-12)
        return float(L2_SHARES[place] * (L2_SHARES[1] / L2_SHARES[0]) ** step)

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
    n_components : int or None, default=None
        Number of components. None: 200, or as many as there are rows or columns, if that is less. The prior holds
        down what is not needed.
    {levels}
    thresholds : array-like of shape (n_levels - 1,) or None, default=None
        Thresholds b_0 < ... < b_{V-1} between levels 0..V, which are divided by the first; None learns them.
    level_weight : "levels", array-like, dict or None, default="levels"
        Weight of an observed cell: "levels", in proportion to its level (1 on average); None, 1; or given weights, a
        list with one for each level that can be seen, from the lowest to the highest, or a dict from level to weight.
        Unseen cells have weight 1: weights below 1 trust observed cells less than that.
    l2 : float or None, default=None
        Prior exp(-l2 / 2 w^2) on every entry of both factors. None takes share * (sqrt(n) + sqrt(m)): in x, the noise
        of every cell is about as large, and such is its spectral norm, which an L2 on both factors must outweigh. The
        share is where cells held out of training rank best, between 1.95 and 0.37: a fifth of the observed cells, of
        as many random rows as have 150,000, after six short fits with 100 components, each from the factors of the
        one before. It depends on `random_state`, and takes at most about as long as the fit itself.
        Where unseen cells are missing, or fewer than 5,000 are observed, the share is 0.72.
    frequency_scaling : float, default=0.0
        Exponent p of frequency-scaled regularization: the l2 of a column with c observed cells is l2 (c / mean c)^p.
        0: the same for all. 0.25 ranked better for plays of artists, and a little worse for ratings of films.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the fit. None: single from 100,000 observed cells on, which is about three times as fast and ranks
        alike; below, that of the data. Factors have the precision of the data in any case.
    {max_iter}
    {tol:loss}
    {accelerate}
    {init}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_}
    levels_ : ndarray of shape (n_levels,)
        Values of the levels 0..V.
    thresholds_ : ndarray of shape (n_levels - 1,)
        b_0..b_{V-1} between the levels.
    n_components_ : int
        Number of components of the fit.
    l2_ : float
        l2 of the fit.
    column_l2_ : ndarray of shape (n_columns,)
        l2 of each column: l2_, where it is not scaled by frequency.
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
        n_components: int | None = None,
        *,
        levels: ArrayLike | None = None,
        thresholds: ArrayLike | None = None,
        level_weight: str | ArrayLike | Mapping[Any, float] | None = "levels",
        l2: float | None = None,
        frequency_scaling: float = 0.0,
        dtype: str | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
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
        self.level_weight = level_weight
        self.l2 = l2
        self.frequency_scaling = frequency_scaling
        self.dtype = dtype
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
        encoder = OrdinalEncoder(self.levels, self.unseen, self.level_weight)
        return Method(encoder, self._likelihood, Multiplicative(), squared_start)

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
    n_components : int or None, default=None
        Number of components. None: 200, or as many as there are rows or columns, if that is less. The prior holds
        down what is not needed.
    l2 : float or None, default=None
        Prior exp(-l2 / 2 w^2) on every entry of both factors. None finds it by held-out cells, as `SquaredOrdNMF` does,
        where that is described.
    frequency_scaling : float, default=0.0
        Exponent p of frequency-scaled regularization: the l2 of a column with c observed cells is l2 (c / mean c)^p.
        0: the same for all.
    dtype : {"float32", "float64"} or None, default=None
        Precision of the fit. None: single from 100,000 observed cells on; below, that of the data. Factors have the
        precision of the data in any case.
    {max_iter}
    {tol:loss}
    {accelerate}
    {init}
    {random_state}
    {verbose}
    {unseen:zero}
    {engine}
    {n_jobs}
    {checkpoint}

    Attributes
    ----------
    {W_, H_}
    n_components_ : int
        Number of components of the fit.
    l2_ : float
        l2 of the fit.
    column_l2_ : ndarray of shape (n_columns,)
        l2 of each column: l2_, where it is not scaled by frequency.
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
        n_components: int | None = None,
        *,
        l2: float | None = None,
        frequency_scaling: float = 0.0,
        dtype: str | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
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
        self.l2 = l2
        self.frequency_scaling = frequency_scaling
        self.dtype = dtype
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
        return Method(Encoder(), Squared(Poisson()), Multiplicative(), squared_start)

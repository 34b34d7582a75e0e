"""The outcome of a fit: why it ended, and the fitted model as a record of all that prediction needs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from halfseen.arrays import Array
from halfseen.encoders import Encoder
from halfseen.engines import Side, open_engine
from halfseen.engines.threads import one_blas_thread
from halfseen.engines.topk import Cosines, Products, Scores, Sketch
from halfseen.errors import CODE, DataError
from halfseen.folding import fold_in
from halfseen.labels import Index
from halfseen.likelihoods import Likelihood, OwnThresholds
from halfseen.observed import Observed, match_cells
from halfseen.ranking import Ranker, Seen, index_of, read_cells
from halfseen.solvers import Problem, Solver

#: Cells whose products are held at a time.
CELLS_AT_A_TIME = 1 << 18
#: Pairs whose draws are held at a time.
PAIRS_AT_A_TIME = 1 << 12
#: Pairs whose two factor rows are gathered at a time.
PRODUCTS_AT_A_TIME = 1 << 14


class Status(Enum):
    """Why a run ended, as a value that carries its message. In every case the fit so far is kept."""

    CONVERGED = "The objective hardly changes any more."
    MAX_ITER = "Stopped at `max_iter` before the objective settled. Raise `max_iter`, or `tol`."
    STOPPED = "A callback asked to stop."
    HELD_OUT = "The loss on held-out cells no longer fell; the iteration where it was lowest is kept."
    DIRECT = "Found without iterating."
    SAMPLED = "All sweeps were drawn, and what they predict has settled."
    UNMIXED = (
        "All sweeps were drawn, but the chains, or their halves, differ in what they predict (a split R-hat above 1.1)."
        " Raise `n_sweeps` and `n_burn`."
    )
    TOO_SHORT = (
        "All sweeps were drawn, but fewer than four after the first `n_burn`: too few to tell whether what they "
        "predict has settled. Raise `n_sweeps`."
    )
    INTERRUPTED = "Interrupted from the keyboard; the last whole iteration is kept."
    NOT_FINITE = (
        "The next iteration was not finite; the last finite one, or the start, is kept. Scale the data to moderate "
        "numbers, or use float64."
    )
    WORSENED = "The next iteration was worse than rounding explains; the one before is kept. Please report this."

    @property
    def message(self) -> str:
        """What happened and what to do, as plain text."""
        return CODE.sub(r"\1", self.value)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Fit:
    """Result of a run of a solver.

    Attributes
    ----------
    rows, columns : Factor
        Factors; `rows.mean` has shape (n, k), `columns.mean` (m, k).
    likelihood : Likelihood
        With the parameters that were learned.
    trace : dict of ndarray
        Arrays with an entry per iteration: "objective", "seconds" since the start.
    status : Status
        Why it ended.
    """

    rows: Any
    columns: Any
    likelihood: Any
    trace: Mapping[str, Array]
    status: Status

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.trace["objective"])


class Interval(NamedTuple):
    """Ends of intervals, both included.

    Attributes
    ----------
    low, high : ndarray
        Lower and upper ends.
    """

    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Folding:
    """How new rows are folded in."""

    solver: Solver[Any]
    max_iter: int
    tol: float

    state: ClassVar[Mapping[str, Any]] = {"solver": Solver, "max_iter": int, "tol": float}

    def check_state(self, path: str) -> None:
        """Refuse limits that no estimator has."""
        if self.max_iter < 1 or self.tol < 0:
            raise ValueError(f"{path} must have a max_iter of 1 or more, and a tol of 0 or more")


@dataclass(frozen=True, eq=False)
class FittedModel(Ranker):
    """All that prediction needs of a fit, and nothing else: no later `set_params` changes it.

    Parameters
    ----------
    rows, columns : Factor
        Factors of rows and columns: points, or distributions.
    likelihood : Likelihood
        With the parameters that were learned.
    encoder : Encoder
        Between the values of the data and those of the likelihood.
    index : tuple of Index or None
        Labels of rows and of columns.
    seen : Seen
        Cells of the training data.
    unseen : {"missing", "zero"}
        What an unseen cell means.
    folding : Folding or None
        How new rows are folded in; None if they cannot be.
    fingerprint : str, optional
        Of the training data.
    """

    rows: Any
    columns: Any
    likelihood: Likelihood
    encoder: Encoder
    index: tuple[Index | None, Index | None]
    seen: Seen
    unseen: str
    folding: Folding | None
    fingerprint: str | None = None

    state: ClassVar[Mapping[str, Any]] = {
        "rows": tuple,
        "columns": tuple,
        "likelihood": Likelihood,
        "encoder": Encoder,
        "index": (Index | None, Index | None),
        "seen": Seen,
        "unseen": str,
        "folding": Folding | None,
        "fingerprint": str | None,
    }

    def check_state(self, path: str) -> None:
        """Refuse labels, levels, thresholds and a meaning of unseen cells that do not fit together."""
        for index, size in zip(self.index, self.shape, strict=True):
            if index is not None and len(index) != size:
                raise ValueError(f"{path}/index has {len(index)} labels for {size} rows or columns")
        if self.unseen not in ("missing", "zero") or self.seen.n_columns != self.shape[1]:
            raise ValueError(f"{path} must say what unseen cells are, of {self.shape[1]} columns")
        n_levels = None if self.likelihood.highest is None else self.likelihood.highest + 1
        if n_levels != self.encoder.n_levels:
            raise ValueError(f"{path}/encoder has {self.encoder.n_levels} levels, the likelihood {n_levels}")
        owners, n_rows = getattr(self.encoder, "owners", None), getattr(self.encoder, "n_rows", 0)
        if owners is not None or isinstance(self.likelihood, OwnThresholds):
            axis, offsets = getattr(self.likelihood, "axis", None), getattr(self.likelihood, "offsets", ())
            n_owners = self.shape[0 if owners == "rows" else 1]
            if axis != owners or len(offsets) != n_owners or n_rows != (n_owners if owners == "rows" else 0):
                raise ValueError(f"{path}/likelihood must have thresholds for {n_owners} {owners}")

    @property
    def W(self) -> Array:
        """Means of the row factor, of shape (n, k)."""
        W: Array = self.rows.mean
        return W

    @property
    def H(self) -> Array:
        """Means of the column factor, of shape (m, k)."""
        H: Array = self.columns.mean
        return H

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.W), len(self.H)

    @property
    def can_fold_in(self) -> bool:
        """Whether new rows can be folded in."""
        return self.folding is not None

    @property
    def levels_to_read(self) -> Any:
        """Which text may stand for values, as `levels` of `halfseen.observe`."""
        return self.encoder.levels_to_read

    def nearest_levels(self, observed: Observed) -> tuple[Observed, int]:
        """Cells whose values between two levels of the fit are at the nearer one, and the number of these cells."""
        return self.encoder.nearest(observed)

    @property
    def has_posterior(self) -> bool:
        """Whether factors have a distribution."""
        return hasattr(self.rows, "sample")

    def scored_cells(self, X: Any) -> Observed:
        """Codes of the cells of X that have a likelihood; where unseen cells are zeros, those above 0."""
        cells = read_cells(X, "X", self.unseen, self.encoder.levels_to_read)
        cells = self.encoder.codes(match_cells(cells, self.shape, self.labels, "X", duplicates="keep"))
        is_zero = self.unseen == "zero"
        if is_zero:
            cells = cells.select_cells(cells.values > 0)
        if cells.nnz == 0:
            raise DataError(
                f"must have a cell{' above 0' if is_zero else ''} in a row and a column of the model.",
                parameter="X",
                found="none",
                remedy="Check that X is of the rows and columns of the fit.",
            )
        return cells

    # -----------------------------------------------------------------------------------------------------------------
    # predictions

    def products(self, u: Array, i: Array) -> Array:
        """x = w_u @ h_i at pairs of positions."""
        return products_at(self.W, self.H, u, i)

    def likelihood_at(self, rows: Array | None = None, columns: Array | None = None) -> Any:
        """Likelihood of cells at positions, which differ where rows or columns have thresholds of their own.

        None stands for new rows, and for all columns.
        """
        if not isinstance(self.likelihood, OwnThresholds):
            return self.likelihood
        if self.likelihood.axis == "rows":
            return self.likelihood.for_owners(len(self.W) if rows is None else rows)
        return self.likelihood.for_owners(np.arange(len(self.H)) if columns is None else columns)

    def predict(self, what: str, u: Array, i: Array) -> Array:
        """The "mean", the "mean of seen" cells, the "level" (its code), or the "probabilities" of levels at pairs."""
        return self._answer(what, self.products(u, i), self.likelihood_at(u, i))

    def predict_rows(self, what: str, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Array:
        """The same for every cell of new rows, which are folded in."""
        return self._answer(what, self.fold_in(observed, engine, n_jobs, name) @ self.H.T, self.likelihood_at())

    def _answer(self, what: str, x: Array, likelihood: Any) -> Array:
        if what == "mean of seen" and self.unseen == "zero":
            return self._mean_above_zero(x, likelihood)
        if what in ("mean", "mean of seen"):
            means: Array = likelihood.mean(x)
            return means
        if what == "level":
            return self.level_at(x, likelihood)
        probabilities: Array = likelihood.probabilities(x.astype(np.float64))
        return probabilities

    def _mean_above_zero(self, x: Array, likelihood: Any) -> Array:
        """E[y | y > 0, x]: of levels by their probabilities, else E[y] / P(y > 0), at an x not too near to 0."""
        x = likelihood.away_from_zero(x)
        if likelihood.highest is None:
            means: Array = likelihood.mean(x) / -np.expm1(likelihood.log_prob(np.zeros_like(x), x))
            return means
        logs = likelihood.log_prob_levels(x)
        shares = np.exp(logs - logsumexp(logs, axis=0))
        values = getattr(self.encoder, "level_values", np.arange(likelihood.highest + 1))
        of_levels: Array = np.tensordot(values[1:].astype(np.float64), shares, axes=1)
        return of_levels

    def means(self, W: Array) -> Array:
        """Expected values of every cell of rows with factor W, which are new ones unless it is the model's own."""
        rows = np.arange(len(W))[:, None] if W is self.W else None
        means: Array = self.likelihood_at(rows, None).mean(W @ self.H.T)
        return means

    def level_at(self, x: Array, likelihood: Any) -> Array:
        """Code of the level at x: the median where levels have probabilities, else the one whose interval holds x."""
        if not hasattr(likelihood, "probabilities"):
            codes: Array = likelihood.levels(x)
            return codes
        up_to = np.cumsum(likelihood.probabilities(x.astype(np.float64)), axis=-1)
        return (up_to < 0.5 - 1e-12).sum(axis=-1)

    def fold_in(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Array:
        """W of new rows, with the columns fixed; `name` is the estimator's, for messages."""
        W: Array = self._folded(observed, Side.ROWS, engine, n_jobs, name).mean
        return W

    def _folded(self, observed: Observed, side: Side, engine: str, n_jobs: int | None, name: str) -> Any:
        """Factor of new rows with the columns fixed, or the other way round."""
        folding: Any = self.folding
        solver = folding.solver if side is Side.ROWS else folding.solver.for_new_columns(0, observed.shape[1])
        if observed.unseen != self.unseen:  # what was observed for another model
            observed = replace(observed, unseen=self.unseen)
        cells = self.encoder.weigh(self.encoder.codes(observed))
        with open_engine(engine, n_jobs, self.likelihood, solver) as opened:
            problem = Problem(opened, opened.place(cells, side), self.likelihood)
            self.likelihood.check(cells, name)
            near, far = (self.rows, self.columns) if side is Side.ROWS else (self.columns, self.rows)
            far = far._make(np.ascontiguousarray(array, dtype=cells.dtype) for array in far)
            average = near.mean.mean(axis=0)
            limits = {"max_iter": folding.max_iter, "tol": folding.tol}
            return fold_in(problem, solver, far, average, side=side, **limits)

    @property
    def can_update(self) -> bool:
        """Whether `updated` can take in new cells: thresholds of each row or column, and draws, need a fit."""
        return type(self) is FittedModel and self.can_fold_in and not isinstance(self.likelihood, OwnThresholds)

    def updated(self, new: Observed, engine: str, n_jobs: int | None, name: str) -> "FittedModel":
        """The model with new cells, without another fit.

        Columns of the fit and rows without a new cell stay as they are. Rows with new cells are solved again, with the
        columns fixed, from all their cells; then new columns, with the rows fixed, and then these rows once more.

        Parameters
        ----------
        new : Observed
            Cells; see `Ranker.merged`.
        engine : str
            Where to compute.
        n_jobs : int or None
            Number of threads.
        name : str
            Of the estimator, for messages.

        Returns
        -------
        FittedModel
        """
        cells, touched = self.merged(new, self.W.dtype)
        (n, m), (old_n, old_m) = cells.shape, self.shape
        solver: Any = self.folding.solver if self.folding is not None else None
        average = (factor.mean.mean(axis=0) for factor in (self.rows, self.columns))
        rows, columns = (
            factor._make(
                np.concatenate([old, np.asarray(more, old.dtype)])
                for old, more in zip(factor, solver.default_factor(mean, count, side), strict=True)
            )
            for factor, mean, count, side in zip(
                (self.rows, self.columns), average, (n - old_n, m - old_m), Side, strict=True
            )
        )
        index, seen = index_of(cells), Seen.from_observed(cells)
        grown = replace(self, rows=rows, columns=columns, index=index, seen=seen, fingerprint=cells.fingerprint())
        if self.folding is not None and m > old_m:
            grown = replace(grown, folding=replace(self.folding, solver=solver.for_new_columns(old_m, m - old_m)))
        changed, created = cells.select_rows(touched), cells.select_columns(np.arange(old_m, m))
        steps = [(Side.ROWS, changed, rows, touched)]
        if m > old_m:
            steps += [(Side.COLUMNS, created, columns, np.arange(old_m, m)), steps[0]]
        for side, part, factor, places in steps:
            folded = grown._folded(part, side, engine, n_jobs, name)
            for target, array in zip(factor, folded, strict=True):
                target[places] = array
        return grown

    def served_rows(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Any:
        """W of new rows; a row without a history is served like the average row."""
        W = self.fold_in(observed, engine, n_jobs, name)
        W[observed.seen_per_row() == 0] = self.W.mean(axis=0)
        return W

    def known_rows(self, positions: Array) -> Any:
        """W of rows of the fit."""
        return self.W[positions]

    def scores(self, rows: Any) -> Scores:
        """x of rows with factor W: whatever increases with x ranks as x does."""
        return Products(rows, self.H, lambda: self.sketch)

    @cached_property
    def sketch(self) -> Sketch:
        """H with a byte per number, by which lists of single rows are found."""
        return Sketch(self.H)

    def similarities(self, positions: Array, side: str) -> Scores:
        """Cosines between factors, without biases."""
        factor = self.W if side == "row" else self.H
        solver = None if self.folding is None else self.folding.solver
        has_biases = getattr(getattr(solver, "ridge", None), "biases", False)
        return Cosines.between(factor[:, : factor.shape[1] - 2 * has_biases], positions)

    # -----------------------------------------------------------------------------------------------------------------
    # distributions

    def log_likelihoods(self, cells: Observed) -> Array:
        """log p(y | x) of each cell (of codes); where unseen cells are zeros, log p(y | y > 0, x)."""
        rows, logs = cells.row_of_cell(), [np.empty(0)]
        for start in range(0, cells.nnz, CELLS_AT_A_TIME):
            part = slice(start, start + CELLS_AT_A_TIME)
            u, i = rows[part], cells.indices[part]
            x = self.likelihood.away_from_zero(self.products(u, i))
            log = self.likelihood_at(u, i).log_prob(cells.values[part].astype(np.float64), x)
            logs.append(log - self._log_above_zero(x) if self.unseen == "zero" else log)
        return np.concatenate(logs)

    def _log_above_zero(self, x: Array) -> Array:
        """log p(y > 0 | x)."""
        if self.encoder.has_levels:
            return logsumexp(self.likelihood.log_prob_levels(x), axis=0)
        return np.log(-np.expm1(self.likelihood.log_prob(np.zeros_like(x), x)))

    def sample_factors(
        self, random: np.random.Generator, rows: Array | None = None, columns: Array | None = None
    ) -> tuple[Array, Array]:
        """W and H of rows and columns at positions, or of all, from their posteriors; points are what they are."""
        drawn = []
        for factor, chosen in ((self.rows, rows), (self.columns, columns)):
            factor = factor if chosen is None else factor._make(array[chosen] for array in factor)
            drawn.append(factor.sample(random) if self.has_posterior else factor.mean)
        return drawn[0], drawn[1]

    def sample(self, random: np.random.Generator) -> sparse.csr_array:
        """Data set drawn from the posterior predictive distribution, block by block."""
        W, H = self.sample_factors(random)
        drawn = self._sample_grid(W, H, random) if self.unseen == "zero" else self._sample_seen(W, H, random)
        drawn.data = self.encoder.values_of(drawn.data)
        return drawn

    def _sample_grid(self, W: Array, H: Array, random: np.random.Generator) -> sparse.csr_array:
        """A value for every cell of the matrix; zeros are not stored."""
        n, m = len(W), len(H)
        height = max(1, CELLS_AT_A_TIME // max(1, m))
        counts, columns, values = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
        with one_blas_thread():
            for top in range(0, n, height):
                y = self.likelihood.sample(W[top : top + height] @ H.T, random)
                here = np.nonzero(y)
                counts.append(np.bincount(here[0], minlength=len(y)))
                columns.append(here[1])
                values.append(y[here])
        indptr = np.cumsum(np.concatenate(counts))
        return sparse.csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=(n, m))

    def _sample_seen(self, W: Array, H: Array, random: np.random.Generator) -> sparse.csr_array:
        """A value for every cell of the training data, once for each place; zeros are stored."""
        rows, columns = np.repeat(np.arange(len(W)), np.diff(self.seen.indptr)), self.seen.indices
        is_first = np.ones(columns.size, bool)
        is_first[1:] = (np.diff(rows) > 0) | (np.diff(columns) != 0)  # cells of one place stand side by side
        rows, columns = rows[is_first], columns[is_first]
        values = np.empty(columns.size)
        for start in range(0, values.size, CELLS_AT_A_TIME):
            part = slice(start, start + CELLS_AT_A_TIME)
            u, i = rows[part], columns[part]
            values[part] = self.likelihood_at(u, i).sample(products_at(W, H, u, i), random)
        indptr = np.searchsorted(rows, np.arange(len(W) + 1))
        return sparse.csr_array((values, columns, indptr), shape=(len(W), len(H)))

    def interval(
        self, u: Array, i: Array, level: float, of: str, n_draws: int, random: np.random.Generator
    ) -> Interval:
        """Central intervals of the value, its mean or x at pairs of positions, from draws of the factors."""
        u, i = np.broadcast_arrays(u, i)
        tails = np.array([0.5 - level / 2, 0.5 + level / 2])
        ends = [np.empty((2, 0))]
        for start in range(0, u.size, PAIRS_AT_A_TIME):
            part = slice(start, start + PAIRS_AT_A_TIME)
            rows, columns = u.reshape(-1)[part], i.reshape(-1)[part]
            x = self._sample_products(rows, columns, n_draws, random)
            likelihood = self.likelihood_at(rows, columns)
            if of != "value":
                ends.append(np.quantile(x if of == "x" else likelihood.mean(x), tails, axis=0))
            elif self.encoder.has_levels:  # levels reached with the mean probabilities over the draws
                up_to = np.cumsum(sum(map(likelihood.probabilities, x)) / len(x), axis=-1)
                codes = np.stack([(up_to[..., :-1] < tail - 1e-12).sum(axis=-1) for tail in tails])
                ends.append(self.encoder.labels_of(codes))
            else:
                values = likelihood.sample(x, random)
                ends.append(np.quantile(values, tails, axis=0, method="inverted_cdf"))
        low, high = np.concatenate(ends[1:] or ends, axis=1).reshape(2, *u.shape)
        return Interval(low, high)

    def _sample_products(self, u: Array, i: Array, n_draws: int, random: np.random.Generator) -> Array:
        """x at pairs of positions, a row per draw; only the factors of these rows and columns are drawn."""
        rows, u = np.unique(u, return_inverse=True)
        columns, i = np.unique(i, return_inverse=True)
        x = np.empty((n_draws, u.size))
        for draw in range(n_draws):
            x[draw] = products_at(*self.sample_factors(random, rows, columns), u, i)
        return x


def products_at(W: Array, H: Array, u: Array, i: Array) -> Array:
    """w_u @ h_i at pairs of positions; one row may be paired with many columns, and one column with many rows."""
    x = np.empty(np.broadcast_shapes(u.shape, i.shape), W.dtype)
    u, i = (np.broadcast_to(positions, x.shape).reshape(-1) for positions in (u, i))
    for start in range(0, x.size, PRODUCTS_AT_A_TIME):
        part = slice(start, start + PRODUCTS_AT_A_TIME)
        x.reshape(-1)[part] = np.einsum("pk,pk->p", W[u[part]], H[i[part]])
    return x


def random_generator(random_state: Any) -> np.random.Generator:
    """A new generator for None, the same one for the same number, the next one of a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, 4, dtype=np.uint32))
    return np.random.default_rng(random_state)


#: Classes of this module that occur in model files.
RECORDS = {kind.__name__: kind for kind in (FittedModel, Folding, Seen, Index)}

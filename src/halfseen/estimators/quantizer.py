"""Counts as ordered levels."""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError
from halfseen.estimators.inputs import Data, Seed
from halfseen.estimators.ordnmf import OrdNMF
from halfseen.io import observe
from halfseen.io.reader import Grid, grid_of
from halfseen.io.schema import ReadOptions, recognise
from halfseen.io.sources import as_frame, frame_table
from halfseen.observed import Observed, as_values

#: Of edges that are fitted: candidates, cells that they are chosen by, times that edges and factors take turns,
#: and iterations of the factors.
CANDIDATES, SAMPLED_CELLS, ROUNDS, ITERATIONS = 40, 50_000, 5, 200
#: From values to as many values, NaN to NaN.
Rule = Callable[[Array], Array]


def _edges() -> validation.Rule:
    def rule(value: Any) -> tuple[str, str] | None:
        if isinstance(value, str) and value in ("quantiles", "fit"):
            return None
        is_list = not isinstance(value, str) and hasattr(value, "__len__") and np.ndim(value) == 1 and len(value) > 0
        edges = np.asarray(value) if is_list else np.zeros(1)
        if edges.dtype.kind in "iuf" and edges[0] > 0 and np.all(np.diff(edges) > 0) and np.all(np.isfinite(edges)):
            return None
        return '"quantiles", "fit" or a list of finite numbers above 0, each larger than the one before', "Sort them."

    return rule


class Quantizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Counts as ordered levels: the level of a value is the number of edges that it reaches.

        level(y) = #{ l : edge_l <= y }

    0 below the first edge, V from the last of V edges on. Unseen cells stay unseen, and X keeps its kind: an array
    gives an array, a sparse matrix one that stores the same cells, an `Observed` an `Observed`, a wide frame a frame
    with other numbers, a long frame one with another column of values. A file gives an `Observed`.

    Parameters
    ----------
    edges : "quantiles", "fit" or array-like of float, default="quantiles"
        Ascending numbers above 0, so that 0 stays level 0; [1, 2, 3, 6, 11, 21, 51, 101, 201, 501] are where the
        classes of play counts of Gouvert, Oberlin & Févotte (2020) begin. "quantiles": edges are learned from the
        values above 0 that `fit` sees, the lowest of them first, so that each level has about as many. "fit": edges
        are learned together with an `OrdNMF` of the levels, see below; cells that are not seen are zeros.
    n_levels : int, default=10
        Number of levels above 0 that are learned by "quantiles" or "fit"; fewer where one value alone fills several.
    n_components : int, default=10
        Number of components of the `OrdNMF` of "fit".
    random_state : int, RandomState or None, default=None
        Random seed of the start of "fit".

    Attributes
    ----------
    edges_ : ndarray
        Edges, given or learned.
    values_ : ndarray
        For each level 0..V a value that has it, which `inverse_transform` gives: the median of the values of this level
        in the fit; of a level that had none, its edge (0 for level 0).
    n_features_in_ : int
        Number of columns, if the columns of X are the columns of the matrix.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if these are text.

    Notes
    -----
    "fit" looks for the edges with the highest likelihood of the values themselves, so that they are comparable:

        log p(y | x) = log P(level of y | x) + log(share of y among the values of its level)

    with OrdNMF's P(y < c | x) = exp(-theta(c) x). Given x, theta is learned at about 40 candidate edges, and the sum
    has a term for each level, so that the best edges are found exactly, by dynamic programming; given the edges, the
    factors are fitted again from where they were. Both take turns until the edges stay, five times at most.
    The likelihood is that of the data seen, for which more levels are rarely worse: `n_levels` is not learned. Where x
    is small the level says next to nothing about x, and all edges are about as good.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> plays = np.array([[0, 1, np.nan], [3, 30, 7.0]])
    >>> hs.Quantizer([1, 2, 5, 10]).fit_transform(plays)
    array([[ 0.,  1., nan],
           [ 2.,  4.,  3.]])
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "edges": _edges(),
        "n_levels": validation.whole(1),
        "n_components": validation.whole(1),
        "random_state": validation.seed(),
    }

    def __init__(
        self, edges: Any = "quantiles", *, n_levels: int = 10, n_components: int = 10, random_state: Seed = None
    ) -> None:
        self.edges = edges
        self.n_levels = n_levels
        self.n_components = n_components
        self.random_state = random_state

    @insert_parameters
    def fit(self, X: Data, y: object = None) -> Self:
        """Learn the edges, if they are not given, and what a value of each level is.

        Parameters
        ----------
        {X}
        {y}

        Returns
        -------
        self
        """
        validation.check_parameters(self.get_params(deep=False), self.parameter_rules)
        observed = observe(X, unseen=None)
        values = np.sort(observed.values.astype(np.float64))
        if isinstance(self.edges, str):
            edges = self._quantiles(values, self.n_levels)
            edges = edges if self.edges == "quantiles" else self._fitted(observed, edges, values)
        else:
            edges = np.asarray(self.edges, np.float64)
        self._compare_columns(X, reset=True)
        self.edges_, self.values_ = edges, _medians(values, edges)
        return self

    @insert_parameters
    def transform(self, X: Data) -> Any:
        """Replace values by levels.

        Parameters
        ----------
        {X}

        Returns
        -------
        array, sparse matrix, frame or Observed
            Of the kind of X.
        """
        check_is_fitted(self)
        self._compare_columns(X, reset=False)
        return _replaced(X, self._levels_of)

    @insert_parameters
    def inverse_transform(self, X: Data) -> Any:
        """Replace levels by values: each by the one in `values_`, which `transform` turns back.

        Parameters
        ----------
        {X}

        Returns
        -------
        array, sparse matrix, frame or Observed
            Of the kind of X.
        """
        check_is_fitted(self)
        return _replaced(X, self._values_of)

    def _quantiles(self, values: Array, parts: int) -> Array:
        """Of the values above 0, in order, those that begin each of so many equal parts."""
        positive = values[np.searchsorted(values, 0.0, side="right") :]
        if positive.size == 0:
            raise DataError(
                "Edges are learned from values above 0.",
                found=f"none among {values.size}",
                remedy="Give the edges: Quantizer([1, 2, 5, 10]).",
                parameter="edges",
            )
        return np.unique(positive[np.arange(parts) * positive.size // parts])

    def _fitted(self, observed: Observed, edges: Array, values: Array) -> Array:
        """Edges and the factors of an OrdNMF in turn, from quantiles on."""
        candidates = np.unique(values[values > 0])
        if candidates.size > CANDIDATES:
            candidates = np.union1d(self._quantiles(values, CANDIDATES), edges)
        if candidates.size <= self.n_levels:
            return candidates
        seen = replace(observed, unseen="zero").select_cells(observed.values > 0)
        fine = np.searchsorted(candidates, seen.values, side="right")
        random = check_random_state(self.random_state)
        cells = random.permutation(seen.nnz)[:SAMPLED_CELLS]
        ordnmf = OrdNMF(self.n_components, random_state=random, max_iter=ITERATIONS, tol=1e-4)
        for _ in range(ROUNDS):
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                ordnmf.fit(replace(seen, values=np.searchsorted(edges, seen.values, side="right").astype(np.float64)))
            W, H = ordnmf.W_.astype(np.float64), ordnmf.H_.astype(np.float64)
            x = np.einsum("ck,ck->c", W[seen.row_of_cell()], H[seen.indices])
            theta = theta_at(fine, x, max(0.0, float(W.sum(axis=0) @ H.sum(axis=0) - x.sum())))
            before, edges = edges, candidates[best_edges(fine[cells], x[cells], theta, self.n_levels)]
            if np.array_equal(before, edges):
                break
            ordnmf.set_params(init=(W, H))
        return edges

    def _levels_of(self, values: Array) -> Array:
        levels = np.searchsorted(self.edges_, values, side="right").astype(values.dtype)
        return np.where(np.isnan(values), values, levels)

    def _values_of(self, levels: Array) -> Array:
        seen = ~np.isnan(levels)
        known = np.isin(levels, np.arange(self.values_.size))
        if np.any(seen & ~known):
            raise DataError(
                f"Levels must be whole numbers from 0 to {self.edges_.size}.",
                found=f"{levels[seen & ~known][0]}",
                remedy="Pass levels as transform gives them; round expected ones.",
                parameter="X",
            )
        values = self.values_[np.where(seen, levels, 0).astype(np.intp)].astype(levels.dtype)
        return np.where(seen, values, levels)

    def _compare_columns(self, X: Data, reset: bool) -> None:
        """Keep the columns of a table, or compare them with those kept; anything else has cells, and no columns."""
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        if sparse.issparse(X) or grid_of(X) is not None:
            validate_data(self, X, skip_check_array=True, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def theta_at(level: Array, x: Array, unseen: float) -> Array:
    """theta of P(y < v | x) = exp(-theta x) with the highest likelihood at given x, for the values v = 1..V, and a 0.

    Each is that of whether y >= v alone, OrdNMF as a BePoF for each threshold (section 3.2 of `ordnmf-2020`), so that
    it holds whatever the other edges are:  sum over y >= v of x / (exp(theta x) - 1) = sum over y < v of x.
    `unseen` is the sum of x over the cells at level 0.
    """
    order = np.argsort(level, kind="stable")
    x, starts = x[order], np.searchsorted(level[order], np.arange(1, level.max() + 1))
    below = unseen + np.append(0.0, np.cumsum(x))[starts]
    theta = np.zeros(starts.size + 1)
    for place, start in enumerate(starts):
        above = np.maximum(x[start:], 1e-300)
        total = max(float(below[place]), 1e-9 * float(above.sum()))  # where nothing is below

        def excess(log_theta: float, above: Array = above, total: float = total) -> float:
            return float(np.sum(above / np.expm1(np.minimum(np.exp(log_theta) * above, 700.0)))) - total

        # At theta = size / total the sum is at most total; and x / (exp(z) - 1) >= x / z - x / 2.
        high = np.log(above.size / total)
        low = np.log(above.size / (total + above.sum()))
        theta[place] = np.exp(brentq(excess, low, high)) if excess(low) > 0 > excess(high) else np.exp(low)
    return np.minimum.accumulate(theta)


def best_edges(level: Array, x: Array, theta: Array, n_levels: int) -> Array:
    """Positions at which the values 1..V are best cut into levels, the first at 0, by dynamic programming.

    score of the level from value i up to, not including, j
        = sum of log(exp(-theta_{j-1} x) - exp(-theta_{i-1} x)) + sum of N_v log(N_v / sum of N)  over i <= v < j
    """
    top = theta.size - 1
    order = np.argsort(level, kind="stable")
    x, N = x[order], np.bincount(level, minlength=top + 1)[1:]
    ends = np.append(0, np.cumsum(N))
    entropy = np.append(0.0, np.cumsum(np.where(N > 0, N * np.log(np.maximum(N, 1)), 0.0)))
    scores = np.full((top, top + 1), -np.inf)  # of values from i on, up to j
    for i in range(top):
        for j in range(i + 1, top + 1):
            here, size = x[ends[i] : ends[j]], ends[j] - ends[i]
            gap = np.maximum((theta[i] - theta[j]) * here, 1e-300)
            scores[i, j] = np.sum(np.log(-np.expm1(-gap)) - theta[j] * here) + entropy[j] - entropy[i]
            scores[i, j] -= size * np.log(max(size, 1))
    best, cuts = scores[0], []
    for _ in range(min(n_levels, top) - 1):  # the best of one level more, up to each j
        totals = best[:-1, None] + scores
        totals[0] = -np.inf
        cuts.append(np.argmax(totals, axis=0))
        best = np.max(totals, axis=0)
    positions, at = [], top
    for cut in reversed(cuts):
        at = int(cut[at])
        positions.append(at)
    return np.array([0, *reversed(positions)])


def _medians(values: Array, edges: Array) -> Array:
    """The median of the values, which are sorted, of each level: one of them, so that it has the level itself."""
    ends = np.append(np.searchsorted(values, edges), values.size)
    starts = np.append(0, ends[:-1])
    middles = np.minimum((starts + ends - 1) // 2, values.size - 1)
    return np.where(ends > starts, values[middles], np.append(0.0, edges))


def _replaced(X: Any, rule: Rule) -> Any:
    """X with other values."""
    observed = observe(X, unseen=None, allow_empty=True)  # which refuses what can't be read, with its place
    if isinstance(X, Observed | str | os.PathLike):
        return replace(observed, values=rule(observed.values))
    if sparse.issparse(X):
        return _replaced_in_sparse(X, rule)
    frame, grid = as_frame(X), grid_of(X)
    if grid is None:
        return _replaced_in_long(frame, rule)
    return rule(grid.values) if frame is None else _replaced_in_wide(frame, grid, rule)


def _replaced_in_sparse(X: Any, rule: Rule) -> Any:
    stored = X.tocsr() if X.format in ("lil", "dok") else X.copy()
    stored.data = rule(as_values(stored.data))
    return stored.asformat(X.format)


def _replaced_in_long(frame: Any, rule: Rule) -> Any:
    table = frame_table(frame)
    header = recognise(table, ReadOptions())
    if header is None or header.value is None:
        raise DataError(
            "A long table must have a column of values.",
            found=f"only {', '.join(map(repr, frame.columns))}, every pair counting as 1",
            remedy='Count the pairs first: `observe(X, duplicates="sum")`.',
            parameter="X",
        )
    return _with_columns(frame, {header.value: rule(table.numbers(header.value))})


def _replaced_in_wide(frame: Any, grid: Grid, rule: Rule) -> Any:
    """Columns that name the rows stay."""
    names = frame.columns if grid.column_labels is None else grid.column_labels.tolist()
    return _with_columns(frame, dict(zip(names, rule(grid.values).T, strict=True)))


def _with_columns(frame: Any, columns: dict[Any, Array]) -> Any:
    """The frame with these columns in the place of its own; whole numbers stay whole numbers."""
    backend = nw.get_native_namespace(frame)
    series = []
    for name, numbers in columns.items():
        whole = frame.schema[name].is_integer() and np.all(numbers == np.floor(numbers))
        series.append(nw.new_series(name, numbers.astype(np.int64) if whole else numbers, backend=backend))
    return frame.with_columns(*series).to_native()

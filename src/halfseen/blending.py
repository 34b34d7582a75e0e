"""Blends of rankers: sums of their standardised scores, with weights that rank held-out cells best."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array, ArraySpec
from halfseen.engines.threads import Threads, one_blas_thread
from halfseen.engines.topk import (
    COLUMNS_PER_TILE,
    SCORES_PER_TILE,
    Chosen,
    DenseScores,
    Products,
    Scores,
    best_columns,
)
from halfseen.graphs import check_labels
from halfseen.held_out import LENGTH, HeldOut
from halfseen.labels import Index
from halfseen.observed import Observed
from halfseen.ranking import Ranker, Seen

#: Columns of a row that are candidates of a blend: so many of the best by each model, three times what is ranked.
CANDIDATES = 3 * LENGTH
#: Steps of the search for weights.
STEPS = (0.2, 0.1, 0.05)


class Columns(NamedTuple):
    """Mean and covariance of the columns' factor, from which moments of products follow."""

    mean: Array
    covariance: Array

    @classmethod
    def of(cls, H: Array) -> "Columns":
        """Those of the rows of H."""
        H = H.astype(np.float64)
        mean = H.mean(axis=0)
        with one_blas_thread():
            return cls(mean, (H - mean).T @ (H - mean) / len(H))

    def moments(self, W: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of each row's products with all columns."""
        W = W.astype(np.float64)
        return with_deviation(W @ self.mean, np.einsum("uk,uk->u", W @ self.covariance, W))


def with_deviation(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and standard deviation; 1 in its place where all are the same, but for rounding."""
    is_flat = variance <= 1e-12 * mean**2 + 1e-300
    return mean, np.where(is_flat, 1.0, np.sqrt(np.where(is_flat, 1.0, variance)))


class Standardized:
    """Scores of which each row has mean 0 and deviation 1 over all columns; a row of equal scores has zeros."""

    def __init__(self, scores: Scores, columns: Columns | None = None) -> None:
        self.shape, self.dtype = scores.shape, scores.dtype
        self._scores = scores
        self._known: tuple[Array, Array] | None = None
        if isinstance(scores, Products):
            self._known = (columns or Columns.of(scores.H)).moments(scores.W)
        #: Moments of others by (first row, last row): a tile of some columns needs those of all.
        self._met: dict[tuple[int, int], tuple[Array, Array]] = {}

    def tile(self, rows: slice, columns: slice) -> Array:
        rows = slice(rows.start, min(rows.stop, self.shape[0]))
        x = self._scores.tile(rows, columns)
        mean, deviation = self._moments(rows, x if x.shape[1] == self.shape[1] else None)
        x -= mean.astype(x.dtype)[:, None]
        x /= deviation.astype(x.dtype)[:, None]
        return x

    def among(self, columns: Array) -> Scores:
        return Chosen(self, columns)

    def _moments(self, rows: slice, x: Array | None) -> tuple[Array, Array]:
        """Moments of rows, of which x are all scores, if they are at hand."""
        if self._known is not None:
            return self._known[0][rows], self._known[1][rows]
        key = rows.start, rows.stop
        if key not in self._met:
            n, m = rows.stop - rows.start, self.shape[1]
            sums, squares = np.zeros(n), np.zeros(n)
            for first in range(0, m, COLUMNS_PER_TILE):
                part = slice(first, min(first + COLUMNS_PER_TILE, m))
                tile = (self._scores.tile(rows, part) if x is None else x[:, part]).astype(np.float64)
                sums += tile.sum(axis=1)
                squares += np.einsum("ui,ui->u", tile, tile)
            mean = sums / m
            self._met[key] = with_deviation(mean, np.maximum(squares / m - mean**2, 0))
        return self._met[key]


@dataclass(frozen=True, eq=False)
class Blended:
    """sum_m weight_m (score_m - mean_m) / deviation_m,  mean and deviation over all columns of each row."""

    parts: Sequence[Standardized]
    weights: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*(part.dtype for part in self.parts))

    def tile(self, rows: slice, columns: slice) -> Array:
        x: Array | None = None
        for part, weight in zip(self.parts, self.weights, strict=True):
            if weight > 0:
                tile = part.tile(rows, columns).astype(self.dtype, copy=False)
                tile *= self.dtype.type(weight)
                x = tile if x is None else np.add(x, tile, out=x)
        return np.zeros(self.shape, self.dtype)[rows, columns] if x is None else x

    def among(self, columns: Array) -> Scores:
        return Chosen(self, columns)


@dataclass(frozen=True, eq=False)
class BlendModel(Ranker):
    """All that a blend needs to rank.

    Parameters
    ----------
    models : sequence of Ranker
        Records of the models, of the same rows and columns.
    names : sequence of str
        Their names.
    weights : ndarray of shape (n_models,)
        Their weights, of sum 1.
    ndcg, standard_errors : ndarray of shape (n_models + 1,) or None
        NDCG of each model and of the blend on held-out cells; None if there were none.
    index, seen, unseen, fingerprint
        See `Ranker`.
    level_names : ndarray or None
        The texts that the values 1, 2, ... stand for.
    """

    models: tuple[Ranker, ...]
    names: Sequence[str]
    weights: Array
    ndcg: Array | None
    standard_errors: Array | None
    index: tuple[Index | None, Index | None]
    seen: Seen
    unseen: str
    fingerprint: str | None = None
    level_names: Array | None = None
    _columns: dict[int, Columns] = field(default_factory=dict, init=False, repr=False)

    state: ClassVar[Mapping[str, Any]] = {
        "models": [Ranker],
        "names": [str],
        "weights": ArraySpec("f", ("models",), low=0.0, high=1.0),
        "ndcg": ArraySpec("f", ("models+1",), low=0.0, high=1.0, optional=True),
        "standard_errors": ArraySpec("f", ("models+1",), low=0.0, optional=True),
        "index": (Index | None, Index | None),
        "seen": Seen,
        "unseen": str,
        "fingerprint": str | None,
        "level_names": ArraySpec("O", ("names",), optional=True),
    }

    def __post_init__(self) -> None:
        """Labels and seen cells are those of all models, and kept once, also where a file has them for each."""
        models: Any = self.models
        shared = [replace(one, index=self.index, seen=self.seen) if one.shape == self.shape else one for one in models]
        object.__setattr__(self, "models", tuple(shared))

    def check_state(self, path: str) -> None:
        """Refuse models that do not fit together."""
        check_labels(self, path)
        counts = {len(self.models), len(self.names), self.weights.size}
        if len(counts) > 1 or not self.models or any(model.shape != self.shape for model in self.models):
            raise ValueError(
                f"{path} must have {self.weights.size} models of {self.shape} rows and columns, with names"
            )

    @property
    def levels_to_read(self) -> Any:
        return None if self.level_names is None else self.level_names.tolist()

    def nearest_levels(self, observed: Observed) -> tuple[Observed, int]:
        """Cells whose values all models with levels know, and the number of cells that were moved to one."""
        moved = 0
        for model in self.models:
            observed, of_model = model.nearest_levels(observed)
            moved = max(moved, of_model)
        return observed, moved

    def known_rows(self, positions: Array) -> list[Any]:
        """Rows of the fit, as each model has them."""
        return [model.known_rows(positions) for model in self.models]

    def served_rows(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> list[Any]:
        """New rows, as each model folds them in."""
        return [
            model.served_rows(replace(observed, unseen=model.unseen), engine, n_jobs, name) for model in self.models
        ]

    def scores(self, rows: Any) -> Scores:
        """Weighted sums of standardised scores."""
        parts = []
        for number, (model, own) in enumerate(zip(self.models, rows, strict=True)):
            scores = model.scores(own)
            if isinstance(scores, Products) and number not in self._columns:
                self._columns[number] = Columns.of(scores.H)
            parts.append(Standardized(scores, self._columns.get(number)))
        return Blended(parts, self.weights)

    def similarities(self, positions: Array, side: str) -> Scores:
        """Weighted sums of standardised similarities."""
        return Blended([Standardized(model.similarities(positions, side)) for model in self.models], self.weights)


# ---------------------------------------------------------------------------------------------------------------------
# weights


class Candidates(NamedTuple):
    """The columns that may be among the best of rows by a blend, with all that blends are judged by.

    They are those that a model has among its `CANDIDATES` best. A column that no model has there could only get into
    the best hundred of a blend where few columns are good in two models at once.
    """

    scores: Array
    """Standardised scores, (n_models, n_rows, n_candidates); -inf at empty places."""
    values: Array
    """Values of held-out cells, (n_rows, n_candidates); -inf elsewhere."""
    held_out: HeldOut

    @classmethod
    def find(cls, models: Sequence[Ranker], held_out: HeldOut, seen: Seen, n_jobs: int | None) -> "Candidates":
        """Rank the columns that rows have not seen by each model."""
        m = models[0].shape[1]
        height = max(1, SCORES_PER_TILE // m)
        parts = [Standardized(model.scores(model.known_rows(held_out.rows))) for model in models]

        def rank_rows(top: int) -> tuple[Array, Array]:
            """Candidates of some rows, ascending, -1 at empty places at the end; and their scores."""
            some = slice(top, min(top + height, held_out.rows.size))
            hidden = seen.in_rows(held_out.rows[some])
            tiles = [part.tile(some, slice(0, m)) for part in parts]
            best = [best_columns(DenseScores(tile), CANDIDATES, hidden, n_jobs=1).columns for tile in tiles]
            columns = np.sort(np.concatenate(best, axis=1), axis=1)
            columns[:, 1:][columns[:, 1:] == columns[:, :-1]] = -1
            scores = np.stack([np.take_along_axis(tile, columns, axis=1) for tile in tiles])
            return columns, np.where(columns < 0, -np.inf, scores).astype(np.float32)

        with Threads(n_jobs) as threads, one_blas_thread():
            found = threads.all(rank_rows, range(0, held_out.rows.size, height))
        columns = np.concatenate([columns for columns, _ in found])
        return cls(np.concatenate([scores for _, scores in found], axis=1), held_out.values_at(columns), held_out)

    def ndcg(self, weights: Array, n_jobs: int | None) -> Array:
        """NDCG of a blend, (n_thresholds, n_rows)."""
        x = np.zeros(self.values.shape, np.float32)
        for weight, scores in zip(weights, self.scores, strict=True):
            x += scores if weight == 1 else np.float32(weight) * scores if weight > 0 else 0
        x[np.isneginf(self.scores[0])] = -np.inf
        places = best_columns(DenseScores(x), LENGTH, n_jobs=n_jobs).columns
        values = np.take_along_axis(self.values, np.maximum(places, 0), axis=1)
        return self.held_out.ndcg(np.where(places < 0, -np.inf, values))


def find_weights(score: Callable[[Array], float], n_models: int) -> tuple[Array, list[float]]:
    """Weights of sum 1 and the highest score: the best of equal weights and of each model alone, from where weight is
    moved from one model to another in ever smaller steps, as long as a move helps. Also the scores on the way.
    """
    met: dict[tuple[float, ...], float] = {}

    def scored(weights: tuple[float, ...]) -> float:
        if weights not in met:
            met[weights] = score(np.array(weights))
        return met[weights]

    starts = [tuple(1.0 if one == other else 0.0 for one in range(n_models)) for other in range(n_models)]
    best = max([(1 / n_models,) * n_models, *starts], key=scored)
    path = [scored(best)]
    for step in STEPS:
        while True:
            moves = []
            for source, target in permutations(range(n_models), 2):
                moved = list(best)
                amount = min(step, moved[source])
                moved[source], moved[target] = round(moved[source] - amount, 6), round(moved[target] + amount, 6)
                moves.append(tuple(moved))
            candidate = max(moves, key=scored, default=best)
            if scored(candidate) <= scored(best):
                break
            best = candidate
            path.append(scored(best))
    weights = np.array(best)
    return weights / weights.sum(), path


def standard_error(of_rows: Array) -> float:
    """Standard error of `mean_ndcg` by rows: the mean over thresholds of those of the means."""
    counts = np.maximum((~np.isnan(of_rows)).sum(axis=1), 1)
    means = np.nansum(of_rows, axis=1) / counts
    variances = np.nansum((of_rows - means[:, None]) ** 2, axis=1) / np.maximum(counts - 1, 1)
    return float(np.sqrt(variances / counts).mean())

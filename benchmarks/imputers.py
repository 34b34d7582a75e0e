"""What fills tables in `benchmarks/imputing.py`: tables of mixed columns, and every imputer as a function of one."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from halfseen import TableImputer

#: Complete tables that gcimpute draws, for probabilities of levels and categories.
COPULA_DRAWS = 50
#: Ranks from which the low-rank copula's is chosen.
COPULA_RANKS = (1, 3, 6)

#: Seed of cells that are held out to choose settings of others; not one of the hidden cells' own.
HELD_OUT_SEED = 1000


@dataclass(frozen=True)
class MixedTable:
    """Numbers, levels and categories as floats: a level or category is its place among the column's values.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN in holes.
    names : tuple of str
        Names of the columns.
    categories, levels : mapping of int to tuple of str
        Values of the columns of categories, and of ordered levels from the lowest, by position.
    """

    X: np.ndarray
    names: tuple[str, ...]
    categories: Mapping[int, tuple[str, ...]]
    levels: Mapping[int, tuple[str, ...]]

    @property
    def choices(self) -> dict[int, tuple[str, ...]]:
        return {**self.categories, **self.levels}

    @property
    def numbers(self) -> list[int]:
        return [j for j in range(self.X.shape[1]) if j not in self.choices]

    def frame(self) -> pd.DataFrame:
        """As a user has it: text in the columns of levels and categories."""
        columns = {name: self.X[:, j] for j, name in enumerate(self.names)}
        for j, values in self.choices.items():
            codes = np.where(np.isnan(self.X[:, j]), -1, self.X[:, j]).astype(int)
            columns[self.names[j]] = np.array([*values, None], dtype=object)[codes]
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class Imputed:
    """A table without holes, and how to ask for more, which is not timed.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        As that of `MixedTable`.
    probabilities : callable, default=None
        Gives probabilities of levels by position of the column, of shape (n, n_levels). None: nothing but X is known.
    interval : callable, default=None
        Gives the ends of 90 % intervals of all cells.
    """

    X: np.ndarray
    probabilities: Callable[[], Mapping[int, np.ndarray]] | None = None
    interval: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None


Imputer = Callable[[MixedTable, int], Imputed]


# ours


def table_imputer(table: MixedTable, seed: int, trees: bool = True) -> Imputed:
    choices, names = table.choices, table.names
    if not choices:
        ours = TableImputer(trees=trees, random_state=seed)
        return Imputed(ours.fit_transform(table.X), interval=partial(ours.predict_interval, table.X, 0.9))
    ours = TableImputer(
        categories=[names[j] for j in table.categories],
        levels={names[j]: list(values) for j, values in table.levels.items()},
        numbers=[names[j] for j in table.numbers],
        trees=trees,
        random_state=seed,
    )
    frame = table.frame()
    filled = ours.fit_transform(frame)

    def codes(frame: pd.DataFrame) -> np.ndarray:
        X = np.full(table.X.shape, np.nan)
        for j, name in enumerate(names):
            X[:, j] = frame[name].map({v: k for k, v in enumerate(choices[j])}) if j in choices else frame[name]
        return X

    def probabilities() -> dict[int, np.ndarray]:
        given = ours.predict_proba(frame)
        return {j: given[names[j]] for j in table.levels}

    def interval() -> tuple[np.ndarray, np.ndarray]:
        low, high = ours.predict_interval(frame, 0.9)
        return codes(low), codes(high)

    return Imputed(codes(filled), probabilities, interval)


# imputers of numbers, for which categories become columns of 0 and 1, and levels their places in the order


def one_hot(table: MixedTable) -> tuple[np.ndarray, list[slice]]:
    """The columns as numbers, and where each column of the table is among them; two categories are one column."""
    blocks, places, start = [], [], 0
    for j in range(table.X.shape[1]):
        block = table.X[:, [j]]
        if len(table.categories.get(j, ())) > 2:
            block = np.where(np.isnan(block), np.nan, block == np.arange(len(table.categories[j])))
        blocks.append(block)
        places.append(slice(start, start + block.shape[1]))
        start += block.shape[1]
    return np.hstack(blocks), places


def from_one_hot(table: MixedTable, filled: np.ndarray, places: Sequence[slice]) -> np.ndarray:
    """The table by the nearest level and the largest of the columns of a category."""
    X = np.empty(table.X.shape)
    for j, place in enumerate(places):
        X[:, j] = filled[:, place].argmax(axis=1) if place.stop - place.start > 1 else filled[:, place.start]
        if j in table.choices:
            X[:, j] = np.clip(np.round(X[:, j]), 0, len(table.choices[j]) - 1)
    return X


def column_mean(table: MixedTable, seed: int) -> Imputed:
    """Means, the most frequent category, the median level, and the frequencies of the levels as probabilities."""
    Z, places = one_hot(table)
    filled = SimpleImputer(keep_empty_features=True).fit_transform(Z)
    X = from_one_hot(table, filled, places)
    frequencies = {}
    for j, values in table.levels.items():
        seen = table.X[~np.isnan(table.X[:, j]), j].astype(int)
        X[:, j] = np.where(np.isnan(table.X[:, j]), np.round(np.median(seen)), table.X[:, j])
        frequencies[j] = np.tile(np.bincount(seen, minlength=len(values)) / seen.size, (len(X), 1))
    return Imputed(X, lambda: frequencies)


def standardised(make: Callable[[], Any], table: MixedTable, seed: int) -> Imputed:
    """An imputer of numbers on standardised columns."""
    Z, places = one_hot(table)
    centre, spread = np.nanmean(Z, axis=0), np.nanstd(Z, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    filled = make().fit_transform((Z - centre) / spread) * spread + centre
    return Imputed(from_one_hot(table, filled, places))


def chained(make: Callable[[], Any] | None = None, **settings: Any) -> Imputer:
    def make_imputer() -> IterativeImputer:
        return IterativeImputer(make and make(), keep_empty_features=True, random_state=0, **settings)

    return partial(standardised, make_imputer)


class SoftImpute:
    """softImpute (Mazumder, Hastie, Tibshirani, 2010), written here.

        min over Z of  1/2 sum over seen cells (x - z)^2 + lambda ||Z||_*:  Z <- shrink(seen x, elsewhere Z)

    `shrink` lowers singular values by lambda, and drops those below 0. Lambda is the best of ten on a tenth of the
    seen cells, held out, each fit starting from the one of the lambda above.
    """

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        seen = ~np.isnan(X)
        held_out = seen & (np.random.default_rng(HELD_OUT_SEED).random(X.shape) < 0.1)
        largest = np.linalg.norm(np.where(seen, X, 0.0), 2)
        errors, lambdas = [], largest * np.geomspace(0.5, 0.005, 10)
        Z = np.zeros(X.shape)
        for one in lambdas:
            Z = self.shrunk(X, seen & ~held_out, one, Z)
            errors.append(np.mean((Z - X)[held_out] ** 2) if held_out.any() else 0.0)
        Z = np.zeros(X.shape)
        for one in lambdas[: int(np.argmin(errors)) + 1]:
            Z = self.shrunk(X, seen, one, Z)
        return np.where(seen, X, Z)

    @staticmethod
    def shrunk(X: np.ndarray, seen: np.ndarray, shrinkage: float, Z: np.ndarray) -> np.ndarray:
        for _ in range(100):
            completed = np.where(seen, X, Z)
            squares, V = np.linalg.eigh(completed.T @ completed)  # singular values squared, right singular vectors
            kept = np.sqrt(np.maximum(squares, 0.0)) > shrinkage
            V, kept_share = V[:, kept], 1 - shrinkage / np.sqrt(squares[kept])
            before, Z = Z, (completed @ (V * kept_share)) @ V.T
            if np.sum((Z - before) ** 2) <= 1e-6 * np.sum(before**2):
                break
        return Z


# packages that take mixed columns


def gaussian_copula(table: MixedTable, seed: int, low_rank: bool = False) -> Imputed:
    """gcimpute. Categories are columns of 0 and 1 here, too, less that of the most frequent one.

    With all of them, it failed or was worse than the column mean on most mixed tables here, and was changed for that.
    Numbers with at most 20 different values and all columns of choices are ordinal, others continuous: its own choice
    has a third kind, on which it fails in several tables. Columns with one value are left out, as it asks. The most
    likely category, and the probabilities of levels, come from the frequencies among `COPULA_DRAWS` completed tables
    that it draws; the low-rank copula, whose draws fail, gives its own values. The rank of the latter is the best on a
    tenth of the seen cells, held out.
    """
    from gcimpute.gaussian_copula import GaussianCopula
    from gcimpute.low_rank_gaussian_copula import LowRankGaussianCopula

    warnings.simplefilter("ignore")  # its import turns all warnings into errors
    vars(np).setdefault("round_", np.round)  # gcimpute 0.0.4 needs this name of NumPy 1
    Z, places = one_hot(table)
    filled = SimpleImputer(keep_empty_features=True).fit_transform(Z)
    dropped = {j: places[j].start + int(np.nansum(Z[:, places[j]], axis=0).argmax()) for j in table.categories}
    dropped = {j: one for j, one in dropped.items() if places[j].stop - places[j].start > 1}

    def fit(model: Any, given: np.ndarray) -> np.ndarray:
        distinct = np.array([np.unique(one[~np.isnan(one)]).size for one in given.T])
        kept = (distinct > 1) & ~np.isin(np.arange(given.shape[1]), list(dropped.values()))
        ordinal = np.flatnonzero(distinct[kept] <= 20)
        continuous = np.flatnonzero(distinct[kept] > 20)
        types = {"ordinal": ordinal, "continuous": continuous}
        filled[:, kept] = model.fit_transform(given[:, kept], **{k: list(v) for k, v in types.items() if v.size})
        return kept

    if low_rank:
        held_out = ~np.isnan(Z) & (np.random.default_rng(HELD_OUT_SEED).random(Z.shape) < 0.1)
        spread, errors = np.nanstd(Z, axis=0), {}
        for rank in (one for one in COPULA_RANKS if one < Z.shape[1] - len(dropped)):
            kept = fit(LowRankGaussianCopula(rank, random_state=seed), np.where(held_out, np.nan, Z))
            errors[rank] = np.mean((((filled - Z) / spread)[held_out & kept]) ** 2)
        model = LowRankGaussianCopula(min(errors, key=errors.__getitem__), random_state=seed)
    else:
        model = GaussianCopula(random_state=seed)
    kept = fit(model, Z)

    def decoded(filled: np.ndarray) -> np.ndarray:
        for j, one in dropped.items():
            filled[:, one] = 1 - np.delete(filled[:, places[j]], one - places[j].start, axis=1).sum(axis=1)
        return np.where(np.isnan(table.X), from_one_hot(table, filled, places), table.X)

    X = decoded(filled)
    if low_rank or not table.choices:
        return Imputed(X)
    draws = np.repeat(filled[:, :, None], COPULA_DRAWS, axis=2)
    draws[:, kept] = model.sample_imputation(Z[:, kept], num=COPULA_DRAWS)
    categories = list(table.categories)
    X[:, categories] = decoded(draws.mean(axis=2))[:, categories]
    shares = {
        j: np.stack([(draws[:, places[j].start] == level).mean(axis=1) for level in range(len(values))], axis=1)
        for j, values in table.levels.items()
    }
    return Imputed(X, lambda: shares)


def miss_forest(table: MixedTable, seed: int) -> Imputed:
    """MissForest of PyPI with its defaults, gradient boosting by LightGBM; one thread, faster on small tables."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from missforest import MissForest

    constant = [j for j, one in enumerate(table.X.T) if np.unique(one[~np.isnan(one)]).size < 2]
    X = np.where(np.isnan(table.X), np.nanmean(table.X, axis=0), table.X)  # what is left out gets its only value
    kept = [j for j in range(X.shape[1]) if j not in constant]
    settings = {"verbosity": -1, "linear_tree": True, "n_jobs": 1}
    categorical = [f"c{j}" for j in kept if j in table.categories]
    model = MissForest(
        LGBMClassifier(**settings), LGBMRegressor(**settings), categorical=categorical or None, verbose=0
    )
    frame = pd.DataFrame({f"c{j}": table.X[:, j] for j in kept})
    X[:, kept] = model.fit_transform(frame)[[f"c{j}" for j in kept]].to_numpy(float)
    return Imputed(from_one_hot(replace(table, categories={}), X, [slice(j, j + 1) for j in range(X.shape[1])]))


#: All of them, in the order of the tables, ours last.
IMPUTERS: dict[str, Imputer] = {
    "column mean": column_mean,
    "KNN": partial(standardised, lambda: KNNImputer(n_neighbors=10, weights="distance", keep_empty_features=True)),
    "BayesianRidge": chained(),
    "ExtraTrees": chained(lambda: ExtraTreesRegressor(50, n_jobs=2, random_state=0), max_iter=5),
    "RandomForest": chained(
        lambda: RandomForestRegressor(100, max_features="sqrt", n_jobs=2, random_state=0), max_iter=5
    ),
    "softImpute": partial(standardised, SoftImpute),
    "gcimpute": gaussian_copula,
    "gcimpute, low rank": partial(gaussian_copula, low_rank=True),
    "MissForest": miss_forest,
    "without trees": partial(table_imputer, trees=False),
    "TableImputer": table_imputer,
}
OURS = ("without trees", "TableImputer")
#: Draws of hidden cells for those that take long.
FEWER_DRAWS = {"ExtraTrees": 1, "RandomForest": 1, "MissForest": 1, "gcimpute, low rank": 2}
_PACKAGES = {"gcimpute": ("gcimpute",), "gcimpute, low rank": ("gcimpute",), "MissForest": ("missforest", "lightgbm")}


def is_installed(method: str) -> bool:
    return all(find_spec(one) for one in _PACKAGES.get(method, ()))

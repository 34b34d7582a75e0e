"""Columns of a table: their kinds, and their marginals on a standard scale."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io.numbers import is_missing, is_number

#: Values that a marginal keeps at most: all different ones, or means of as many equal parts.
MOST_ATOMS = 64
#: Different values up to which all are common in a column, and the share of cells from which on one of more is.
FEW_VALUES, LARGE_SHARE = 20, 0.05
#: Least variance of the latent normal, given all other cells.
LEAST_LATENT = 1e-4


@dataclass(frozen=True)
class Marginal:
    """A column's distribution by thresholds: the value is `atoms[l]` where the latent normal is between two cuts.

        x = atoms[l]  <=>  cuts[l] < z <= cuts[l + 1],      P(x <= atoms[l]) = Phi(cuts[l + 1])

    Few different values are levels with their thresholds; of many, an atom stands for the mean of an equal part, and
    `scores` go by ranks.

    Parameters
    ----------
    atoms : ndarray of shape (K,)
        Values, ascending.
    cuts : ndarray of shape (K + 1,)
        Thresholds, from -inf to inf.
    knots, scores : ndarray of shape (Q,)
        Values and their latent means, between which others are interpolated.
    score_variance : float
        s^2, the variance of the scores of the column's cells; 1 if all cells are the same.
    originals : ndarray of shape (K,)
        The atoms on the scale of the data, without rounding.
    """

    atoms: Array
    cuts: Array
    knots: Array
    scores: Array
    score_variance: float
    originals: Array

    @classmethod
    def of(cls, values: Array, originals: Array | None = None) -> "Marginal":
        """From the seen values of a column; and what they are on the scale of the data, if that is another."""
        distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
        originals = distinct if originals is None else originals[first]
        shares = np.concatenate([[0.0], np.cumsum(counts)]) / values.size
        cuts = ndtri(shares)
        density = np.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi)
        scores = -np.diff(density) / np.diff(shares)  # E[z | between the cuts]
        variance = float(scores**2 @ counts) / values.size if distinct.size > 1 else 1.0
        if distinct.size <= MOST_ATOMS:
            return cls(distinct, cuts, distinct, scores, variance, originals)
        edges = np.unique(np.searchsorted(shares, np.linspace(0, 1, MOST_ATOMS + 1)).clip(0, distinct.size))
        sizes = np.add.reduceat(counts, edges[:-1])
        atoms, means = (np.add.reduceat(one * (counts / sizes.repeat(np.diff(edges))), edges[:-1])
                        for one in (distinct, originals))  # fmt: skip
        keep = np.searchsorted(shares, np.linspace(0, 1, 512)).clip(0, distinct.size - 1)
        keep = np.unique(np.concatenate([np.arange(20), keep, distinct.size - 1 - np.arange(20)]))  # and all far out
        return cls(atoms, cuts[edges], distinct[keep], scores[keep], variance, means)

    @property
    def common(self) -> Array:
        """Mask of atoms that many cells have; all, where different values are few."""
        return (self.atoms.size <= FEW_VALUES) | (np.diff(ndtr(self.cuts)) > LARGE_SHARE)

    def to_latent(self, values: Array) -> Array:
        """Values as normal scores; NaN stays."""
        return np.interp(values, self.knots, self.scores)

    def shares(self, mean: Array, variance: Array, scale: float = 1.0) -> Array:
        """Probabilities of the atoms, of shape (K, m), where the scores have these means and variances.

        Scores of levels vary by s^2 < 1, the latent normal by 1: the share R^2 of it that is known has the variance
        R^2 s^4 among the scores, so that the latent mean is mean / s^2, its variance 1 - (s^2 - variance) / s^4. The
        latent standard deviation is multiplied by `scale`.
        """
        s2 = self.score_variance
        spread = scale * np.sqrt(np.clip(1 - (s2 - variance) / s2**2, LEAST_LATENT, 1.0))
        return np.diff(ndtr((self.cuts[:, None] - mean / s2) / spread), axis=0)

    def shares_with_mean(self, wanted: Array, mean: Array, variance: Array, scale: float = 1.0) -> Array:
        """The same, with the mean of the scores moved to where the atoms have the `wanted` mean, by bisection."""
        wanted = np.clip(wanted, self.atoms[0], self.atoms[-1])
        low, high = mean - 10.0, mean + 10.0
        for _ in range(30):
            middle = (low + high) / 2
            is_low = self.atoms @ self.shares(middle, variance, scale) < wanted
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return self.shares((low + high) / 2, variance, scale)

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance of the value where the scores have these."""
        shares = self.shares(mean, variance)
        first = self.atoms @ shares
        return first, np.maximum((self.atoms**2) @ shares - first**2, 0.0)


#: Kinds of columns that are fitted and filled, and those that are left as they are.
NUMBERS = ("continuous", "count", "constant")
CHOICES = ("levels", "category", "boolean")
LEFT_OUT = {
    "empty": "nothing in it is seen",
    "id": "ids are not invented",
    "code": "codes are not amounts",
    "date": "dates are not filled",
    "text": "it holds texts, most of them different",
    "number as text": "its numbers are written as text",
    "skipped": "`skip` names it",
}
#: Last words of the names of columns whose whole numbers are ids or codes.
ID_WORDS = {"id": "id", **dict.fromkeys(("zip", "zipcode", "postcode", "postalcode", "code", "phone"), "code")}
#: Categories of a column of text at most, and the share of its cells that may differ.
MOST_CATEGORIES, MOST_DIFFERENT = 50, 0.5
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")


@dataclass(frozen=True)
class Column:
    """What a column of a table holds, and how it enters the fit.

    Parameters
    ----------
    name : str or int
        Its name or position.
    kind : str
        One of `NUMBERS`, `CHOICES` or `LEFT_OUT`.
    values : tuple, default=()
        Of a choice: its values; those of levels in their order.
    decimals : int, default=None
        Of numbers: digits after the point of those seen; None: many.
    """

    name: Any
    kind: str
    values: tuple[Any, ...] = ()
    decimals: int | None = None

    @property
    def width(self) -> int:
        """Columns of the fit: one for each category, one for anything else that is fitted."""
        if self.kind == "category":
            return len(self.values) if len(self.values) > 2 else 1
        return int(self.kind not in LEFT_OUT)

    def encode(self, cells: Array) -> tuple[Array, Array]:
        """Cells as numbers, of shape (n, width), NaN where nothing that is known was seen; positions of unknown ones.

        A level is its place in the order, a category 1 in its own column.
        """
        if self.kind in NUMBERS:
            return cells[:, None], np.empty(0, int)
        place_of = {value: place for place, value in enumerate(self.values)}
        holes = missing_cells(cells)
        places = np.array([place_of.get(plain_value(one), -1) for one in cells.tolist()], dtype=float)
        unknown = np.flatnonzero((places < 0) & ~holes)
        places[places < 0] = np.nan
        if self.width == 1:
            return places[:, None], unknown
        one_hot = (places[:, None] == np.arange(self.width)).astype(float)
        one_hot[np.isnan(places)] = np.nan
        return one_hot, unknown

    def decode(self, numbers: Array, round_to: int | None = None) -> Array:
        """Predictions of shape (m, width) as values of the column: the nearest level, the most likely category."""
        if self.kind in NUMBERS:
            return numbers[:, 0] if round_to is None else np.round(numbers[:, 0], round_to)
        places = np.argmax(numbers, axis=1) if self.width > 1 else np.round(numbers[:, 0])
        choices = np.empty(len(self.values), dtype=object)
        choices[:] = self.values
        return choices[np.clip(places, 0, len(self.values) - 1).astype(int)]

    def draw(self, numbers: Array, ranks: Array) -> Array:
        """Categories drawn by their probabilities: the predictions of shape (m, width), made positive with sum 1."""
        shares = np.clip(numbers if self.width > 1 else np.column_stack([1 - numbers, numbers]), 0.0, None)
        below = np.cumsum(shares, axis=1)
        places = (below < (ranks * below[:, -1])[:, None]).sum(axis=1)
        return np.eye(shares.shape[1])[places][:, -self.width :]


def missing_cells(cells: Array) -> Array:
    """Mask of the holes of a column."""
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    return np.array([not isinstance(one, str) and is_missing(one) for one in cells.tolist()], dtype=bool)


def plain_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def recognise_numbers(name: Any, cells: Array, *, named: bool, amount: bool = False) -> Column:
    """The kind of a column of floats; whole numbers are ids or codes if the name says so, unless it is an `amount`."""
    seen = cells[~np.isnan(cells)]
    if seen.size == 0:
        return Column(name, "empty")
    if np.isinf(seen).any():
        row = int(np.argmax(np.isinf(cells)))
        must, remedy = "Values must be finite.", "Replace it by NaN if it is unknown."
        raise DataError(
            must, found=f"{cells[row]}", where=f"at row {row}, column {name!r}", remedy=remedy, parameter="X"
        )
    decimals = next((d for d in range(7) if np.abs(seen).max() < 1e8 and np.array_equal(np.round(seen, d), seen)), None)
    if seen.min() == seen.max():
        return Column(name, "constant", decimals=decimals)
    if named and not amount and decimals == 0:
        word = str(name).strip().lower().replace("_", " ").replace("-", " ").split(" ")[-1]
        if word in ID_WORDS:
            return Column(name, ID_WORDS[word])
    return Column(name, "count" if decimals == 0 and seen.min() >= 0 else "continuous", decimals=decimals)


def recognise_choices(name: Any, cells: Array, levels: Sequence[Any] | None = None, category: bool = False) -> Column:
    """The kind of a column of texts, booleans or mixed objects; `levels` are all values in their order, if given."""
    present = [plain_value(one) for one, hole in zip(cells.tolist(), missing_cells(cells), strict=True) if not hole]
    if not present:
        return Column(name, "empty")
    if levels is not None:
        order = tuple(map(plain_value, levels))
        odd = next((one for one in present if one not in order), None)
        if odd is not None:
            must = f"The levels of column {name!r} must be all of its values: {', '.join(map(repr, order))}."
            raise DataError(must, found=repr(odd), remedy="Add it to `levels`, or correct it.", parameter="levels")
        return Column(name, "levels", order)
    kinds = {bool if isinstance(one, bool) else Real if isinstance(one, Real) else type(one) for one in present}
    if kinds == {bool}:
        return Column(name, "boolean", (False, True))
    if category and len(kinds) == 1:
        return Column(name, "category", tuple(sorted(set(present))))
    if kinds <= {date, datetime, time, timedelta} or any(one.__name__ in ("Timestamp", "Timedelta") for one in kinds):
        return Column(name, "date")
    if kinds != {str}:
        first, other = present[0], next((one for one in present if type(one) is not type(present[0])), present[0])
        must = "A column must hold values of one type."
        found = f"{first!r} and {other!r}" if other is not first else f"{first!r}, of type {type(first).__name__}"
        remedy = "Convert them, or name the column in `skip`."
        raise DataError(must, found=found, where=f"in column {name!r}", remedy=remedy, parameter="X")
    different = sorted(set(present))
    if all(text.strip().isdecimal() for text in different) and any(
        re.match("0[0-9]", one.strip()) for one in different
    ):
        return Column(name, "code")
    if all(map(is_number, different)):
        return Column(name, "number as text")
    if all(DATE.fullmatch(text.strip()) for text in different):
        return Column(name, "date")
    if len(different) > max(2, min(MOST_CATEGORIES, MOST_DIFFERENT * len(present))):
        return Column(name, "text")
    return Column(name, "category", tuple(different))

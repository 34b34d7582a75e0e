"""Columns of a table: their kinds, orders of their words, and their marginals on a standard scale."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from itertools import pairwise
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
    "number as text": "its numbers are written as text; convert them to fill it",
    "single text": "all of its seen cells hold the same text, which holes may lack on purpose",
    "skipped": "`skip` names it",
}
#: Last words of the names of columns whose whole numbers are ids or codes.
CODE_WORDS = ("zip", "zipcode", "postcode", "postalcode", "code", "barcode", "isbn", "phone", "telephone")
ID_WORDS = {"id": "id", **dict.fromkeys(CODE_WORDS, "code")}
#: And the words before "number" or "no" of such names.
NUMBERED = {"phone": "code", "telephone": "code", **dict.fromkeys(("account", "customer", "invoice", "order"), "id")}
#: First words of the names of columns whose whole numbers are ids if all are different.
FIRST_ID_WORDS = ("id", "uuid", "ssn", "unnamed")
#: Categories of a column of text at most, and the share of its cells that may differ.
MOST_CATEGORIES, MOST_DIFFERENT = 50, 0.5
#: Different whole numbers that are levels at most (0 to 10 is a common scale), seen at least so often each on average.
MOST_LEVELS, LEAST_REPEATS = 11, 2
PANDAS_DATES = ("Timestamp", "Timedelta", "Period")
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")
#: Common scales, from the lowest to the highest level; other spellings of a level after a slash.
SCALES = """
very low < low < medium/moderate/middle/average/mid < high < very high < critical/urgent
extra small/x small/tiny < small < medium < large/high/big < extra large/x large/huge
xxs < xs < s < m < l < xl < xxl/2xl < xxxl/3xl
never < almost never/hardly ever/very rarely < rarely/seldom < sometimes/occasionally < often/frequently/usually \
< very often/almost always/very frequently < always
never < yearly/annually < quarterly < monthly < weekly < daily
strongly disagree/disagree strongly/completely disagree < disagree < somewhat disagree/slightly disagree \
< neutral/neither agree nor disagree/neither/undecided < somewhat agree/slightly agree < agree \
< strongly agree/agree strongly/completely agree
very dissatisfied < dissatisfied/unsatisfied < somewhat dissatisfied \
< neutral/neither satisfied nor dissatisfied/neither < somewhat satisfied < satisfied < very satisfied
very unlikely < unlikely < somewhat unlikely < neutral/neither likely nor unlikely/neither < somewhat likely < likely \
< very likely
not at all < slightly/a little/a little bit < moderately/somewhat < very/quite a bit < extremely/very much
very poor/very bad/terrible < poor/bad < fair/average/ok/okay/acceptable < good < very good < excellent/outstanding
none/absent < minimal/trace < mild/light/slight < moderate < severe/heavy < very severe/extreme
trivial < minor < moderate < major < critical < blocker
beginner/novice < intermediate < advanced < expert
junior < mid/middle/mid level < senior
freshman < sophomore < junior < senior
young < middle/middle aged < old/elderly
short < medium/average < tall/long
slow < medium/average < fast
cold < cool < mild < warm < hot
primary < secondary < tertiary
primary school/elementary school < middle school < high school/secondary school \
< bachelor/bachelors/bachelors degree < master/masters/masters degree < phd/doctorate
first < second < third < fourth < fifth
zero < one < two < three < four < five < six < seven < eight < nine < ten < eleven < twelve
"""
#: Ranks of the words of each scale.
RANKS = tuple(
    {word.strip(): rank for rank, level in enumerate(line.split("<")) for word in level.split("/")}
    for line in SCALES.strip().splitlines()
)
#: Words before a number that say that it counts upwards; those of groups, rooms and teams do not.
RANKED = (
    "tier|level|grade|stage|class|rank|step|phase|degree|band|priority|severity|generation|quartile|quintile|decile"
)
ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}
#: Texts with numbers, in lower case: what they may look like, with the ends of the range that they stand for.
NUMBER = r"(?P<{}>(?:0|[1-9]\d*)(?:\.\d+)?)"
LOW, HIGH, UNIT = NUMBER.format("low"), NUMBER.format("high"), r"(?P<unit>[a-z% ]*?)"
WITH_NUMBERS = {
    kind: re.compile(pattern)
    for kind, pattern in {
        "ranked": rf"(?P<unit>{RANKED})[ #]?(?:{LOW}|(?P<roman>[ivx]+))",  # Tier 1, stage IV
        "labelled": rf"\(?{LOW}\)? ?[-:.=)] ?[a-z].*",  # 1 - bad
        "nth": rf"{LOW}(?:st|nd|rd|th)(?P<unit>(?: [a-z]+)?)",  # 2nd class
        "below": rf"(?:<=?|≤|under|below|less than|fewer than|younger than|up to|at most) ?{HIGH}{UNIT}",
        "or less": rf"{HIGH}{UNIT} (?:or|and) (?:less|under|below|fewer|younger)",
        "above": rf"(?:>=?|≥|over|above|more than|older than|at least) ?{LOW}{UNIT}",
        "or more": rf"{LOW}{UNIT}(?: (?:or|and) (?:more|over|above|older|up)|\+(?P<more>[a-z% ]*))",
        "range": rf"{LOW}(?P<first>[a-z%]*) ?(?:-|to) ?{HIGH}{UNIT}",  # 18-25 years
        "amount": rf"{LOW}[- ]?(?P<unit>[a-z%][a-z% ]*)",  # 2 rooms
    }.items()
}


def find_order(words: Sequence[str]) -> tuple[str, ...] | None:
    """The order that different words have by themselves, None if they show none.

    They are words of one common scale (low, medium, high), ranges that follow each other (<18, 18-25, 26+), or begin
    or end with numbers that count upwards (1 - bad, 2 - fair; Tier 1, Tier 2). Case does not matter. Two words are
    enough if they have three letters or more.

    Parameters
    ----------
    words : sequence of str
        Different texts.

    Returns
    -------
    tuple of str or None
        The same texts from the lowest to the highest.
    """
    if not 2 <= len(words) <= MOST_CATEGORIES:
        return None
    plain = [" ".join(re.sub("[\u2010-\u2015]", "-", word.casefold().replace("_", " ")).split()) for word in words]
    orders: set[tuple[str, ...]] = set()
    spoken = [" ".join(re.sub("['\u2019]", "", one).replace("-", " ").split()) for one in plain]
    if len(words) > 2 or all(len(one) > 2 for one in spoken):
        for rank_of in RANKS:
            ranks = {rank_of[one]: word for one, word in zip(spoken, words, strict=True) if one in rank_of}
            if len(ranks) == len(words):
                orders.add(tuple(ranks[rank] for rank in sorted(ranks)))
    if orders:
        return orders.pop() if len(orders) == 1 else None
    ends: list[tuple[float, float]] = []
    kinds, units = set(), set()
    for one in plain:
        amount = re.sub(r"[$€£]|(?<=\d),(?=\d{3}(?!\d))", "", one)
        matches = ((kind, pattern.fullmatch(amount)) for kind, pattern in WITH_NUMBERS.items())
        kind, match = next(((kind, match) for kind, match in matches if match), ("", None))
        parts = {} if match is None else {key: value or "" for key, value in match.groupdict().items()}
        unit = (parts.get("unit", "") + parts.get("more", "")).strip()
        numeral, first = parts.get("roman", ""), parts.get("first", "")
        if match is None or (numeral and numeral not in ROMAN) or first not in ("", unit):
            return None
        low = float(parts.get("low", "") or ROMAN.get(numeral, -np.inf))
        ends.append((low, float(parts.get("high", "") or (np.inf if kind in ("above", "or more") else low))))
        kinds.add(kind)
        units.add(unit.removesuffix("s"))
    order = sorted(range(len(words)), key=lambda place: ends[place])
    follow = all(ends[a][1] <= ends[b][0] and ends[a] != ends[b] for a, b in pairwise(order))
    follow &= all(low <= high for low, high in ends)
    mixed = len(kinds) > 1 and bool(kinds & {"ranked", "labelled", "nth"})
    codes = kinds == {"labelled"} and ends[order[-1]][0] - ends[order[0]][0] > len(words)  # of many, a few
    return tuple(words[place] for place in order) if follow and len(units) == 1 and not mixed and not codes else None


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
    order : str, default=""
        Of levels that are words: whether their order was "given" or "found".
    """

    name: Any
    kind: str
    values: tuple[Any, ...] = ()
    decimals: int | None = None
    order: str = ""

    @property
    def is_numeric(self) -> bool:
        """Whether its cells enter the fit as the numbers that they are, levels and booleans of numbers among them."""
        return self.kind in NUMBERS or self.decimals is not None

    @property
    def width(self) -> int:
        """Columns of the fit: one for each category, one for anything else that is fitted."""
        if self.kind == "category":
            return len(self.values) if len(self.values) > 2 else 1
        return int(self.kind not in LEFT_OUT)

    def encode(self, cells: Array) -> tuple[Array, Array]:
        """Cells as numbers, of shape (n, width), NaN where nothing that is known was seen; positions of unknown ones.

        A level is its place in the order, a category 1 in its own column; levels of numbers are themselves, also
        unknown ones.
        """
        if self.is_numeric:
            is_unknown = ~np.isnan(cells) & ~np.isin(cells, self.values) & bool(self.values)
            return cells[:, None], np.flatnonzero(is_unknown)
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
        if self.is_numeric:
            return numbers[:, 0] if round_to is None else np.round(numbers[:, 0], round_to)
        places = np.argmax(numbers, axis=1) if self.width > 1 else np.round(numbers[:, 0])
        choices = np.empty(len(self.values), dtype=object)
        choices[:] = self.values
        return choices[np.clip(places, 0, len(self.values) - 1).astype(int)]

    def shares(self, numbers: Array) -> Array:
        """Probabilities of categories, of shape (m, n_values): predictions of shape (m, width), positive with sum 1."""
        shares = np.clip(numbers if self.width > 1 else np.column_stack([1 - numbers, numbers]), 0.0, None)
        total = shares.sum(axis=1, keepdims=True)
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1 / shares.shape[1])

    def draw(self, numbers: Array, ranks: Array, noise: Array) -> Array:
        """Categories drawn by their probabilities, as columns of the fit.

        Of more than two, the one with the least -log(u_k) / share_k, which is k with probability share_k if the u_k are
        independent: a high rank u_k makes category k more likely. The ranks of K categories that exclude each other
        have a correlation of about -1 / (K - 1), which a common noise takes away.

        Parameters
        ----------
        numbers, ranks : ndarray of shape (m, width)
            Predictions, and where the true values are drawn to be in their distributions.
        noise : ndarray of shape (m,)
            Normal noise.
        """
        shares = self.shares(numbers)
        if self.width == 1:
            return (ranks > shares[:, :1]).astype(float)
        scores = ndtri(np.clip(ranks, 1e-12, 1 - 1e-12))
        u = ndtr(np.sqrt(1 - 1 / self.width) * scores + np.sqrt(1 / self.width) * noise[:, None])
        places = np.argmin(-np.log(np.maximum(u, 1e-300)) / np.maximum(shares, 1e-12), axis=1)
        return np.eye(self.width)[places]


def missing_cells(cells: Array) -> Array:
    """Mask of the holes of a column."""
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    return np.array([not isinstance(one, str) and is_missing(one) for one in cells.tolist()], dtype=bool)


def plain_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def shown(value: Any) -> str:
    """A value as messages show it: whole numbers without a point."""
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def recognise_numbers(name: Any, cells: Array, *, named: bool, amount: bool = False) -> Column:
    """The kind of a column of floats.

    Whole numbers are ids or codes if the name says so, dates if all are such as 20240131, levels if few are different,
    booleans if they are 0 and 1, unless the column is an `amount`.
    """
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
    if named and not amount and np.array_equal(seen, np.floor(seen)):
        words = re.findall("[a-z]+", re.sub("([a-z0-9])([A-Z])", r"\1 \2", str(name)).lower()) or [""]
        if words[-1] in ID_WORDS:
            return Column(name, ID_WORDS[words[-1]])
        if words[-1] in ("number", "no") and words[-2:-1] and words[-2] in NUMBERED:
            return Column(name, NUMBERED[words[-2]])
        if words[0] in FIRST_ID_WORDS and np.unique(seen).size == seen.size:
            return Column(name, "id")
    if decimals == 0 and not amount and are_dates(seen):
        return Column(name, "date")
    if decimals == 0 and not amount:
        distinct = np.unique(seen)
        if distinct.tolist() == [0, 1]:
            return Column(name, "boolean", (0, 1), 0)
        if distinct.size <= min(MOST_LEVELS, seen.size / LEAST_REPEATS):
            return Column(name, "levels", tuple(map(int, distinct)), 0)
    return Column(name, "count" if decimals == 0 and seen.min() >= 0 else "continuous", decimals=decimals)


def are_dates(numbers: Array) -> bool:
    """Whether whole numbers are all days of 1800 to 2199 without separators, as 20240131."""
    year, month, day = numbers // 10_000, numbers // 100 % 100, numbers % 100
    return bool(np.all((year >= 1800) & (year < 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def choose_scale(cells: Array, scales: Sequence[Sequence[Any]]) -> Sequence[Any] | None:
    """The scale that has all texts of a column, else one that has most of them, though it should have all; or None."""
    present = {one for one in cells.tolist() if isinstance(one, str)}
    shared = [len(present & set(scale)) for scale in scales]
    best = int(np.argmax(shared)) if shared else 0
    return scales[best] if shared and 2 * shared[best] > len(present) else None


def recognise_choices(name: Any, cells: Array, levels: Sequence[Any] | None = None, category: bool = False) -> Column:
    """The kind of a column of texts, booleans or mixed objects; `levels` are all values in their order, if given."""
    present = [plain_value(one) for one, hole in zip(cells.tolist(), missing_cells(cells), strict=True) if not hole]
    if not present:
        return Column(name, "empty")
    if levels is not None:
        order = tuple(map(plain_value, levels))
        odd = [one for one in present if one not in order]
        if odd:
            must = f"The levels of column {name!r} must be all of its values: {', '.join(map(shown, order))}."
            different = list(dict.fromkeys(map(shown, odd)))
            others = f" and {len(different) - 5} more" if len(different) > 5 else ""
            found = f"{', '.join(different[:5])}{others} in {len(odd):,} of {len(present):,} cells"
            near = next(iter(get_close_matches(str(odd[0]), [one for one in order if isinstance(one, str)], 1)), None)
            hint = "" if near is None else f" to {near!r}"
            remedy = f"Add it to `levels`, or correct it{hint}; or name the column in `categories`."
            raise DataError(must, found=found, remedy=remedy, parameter="levels")
        return Column(name, "levels", order, order="given")
    kinds = {bool if isinstance(one, bool) else Real if isinstance(one, Real) else type(one) for one in present}
    if kinds == {bool}:
        return Column(name, "boolean", (False, True))
    if (category and len(kinds) == 1) or kinds == {Real}:  # numbers of a categorical
        return Column(name, "category", tuple(sorted(set(present))))
    if kinds <= {date, datetime, time, timedelta} or any(one.__name__ in PANDAS_DATES for one in kinds):
        return Column(name, "date")
    if kinds != {str}:
        first, other = present[0], next((one for one in present if type(one) is not type(present[0])), present[0])
        must = "A column must hold values of one type: numbers, texts, booleans or dates."
        found = f"{first!r} and {other!r}" if other is not first else f"{first!r}, of type {type(first).__name__},"
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
    if len(different) == 1:
        return Column(name, "single text", tuple(different))
    ordered = find_order(different)
    if ordered is not None and (
        len(different) < len(present) or len(different) <= 3
    ):  # else house numbers, for instance
        return Column(name, "levels", ordered, order="found")
    if len(different) > max(2, min(MOST_CATEGORIES, MOST_DIFFERENT * len(present))):
        return Column(name, "text")
    return Column(name, "category", tuple(different))

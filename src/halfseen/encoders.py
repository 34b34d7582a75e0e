"""Encoders: between the values of a user's data and the numbers that a likelihood works with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from halfseen import validation
from halfseen.array_files import computed_in_parts
from halfseen.arrays import Array, ArraySpec, in_parts
from halfseen.errors import DataError, ParameterError
from halfseen.labels import quoted
from halfseen.likelihoods import Poisson
from halfseen.observed import Observed

#: More levels than this are taken for counts or measurements.
MAX_LEVELS = 100
#: Values as confidences, by name: the power that they are raised to; None is the logarithm.
CONFIDENCES: Mapping[str, float | None] = {"auto": 1.0, "values": 1.0, "log": None, "ones": 0.0}
#: Values of which the largest is more than this times the mean are counts of many orders of magnitude.
MOST_OF_MEAN = 10.0
#: The weight of all unseen zeros together, in that of all seen cells, by default; how it was found: docs/methods.md.
UNSEEN_SHARE = 5.0
#: The largest matrix whose unseen zeros are made cells.
MAX_FILLED_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Encoder:
    """Values as they are; the base of all encoders."""

    #: Fields of an encoder in a model file.
    state: ClassVar[Mapping[str, Any]] = {}
    has_levels: ClassVar[bool] = False
    #: Whether values are text.
    is_text: ClassVar[bool] = False

    @property
    def n_levels(self) -> int | None:
        """Number of different codes; None if values are not levels."""
        return None

    @property
    def levels_to_read(self) -> Any:
        """Which text may stand for values, as `levels` of `halfseen.observe`."""
        return None

    def fit(self, observed: Observed, name: str) -> tuple[Self, Observed]:
        """Return the fitted encoder, and the codes of the training data; `name` is the estimator's, for messages."""
        return self, self.codes(observed)

    def codes(self, observed: Observed) -> Observed:
        """Values as the likelihood knows them, each cell with the weight that it came with."""
        return observed

    def weigh(self, codes: Observed, new_rows: bool = True) -> Observed:
        """Cells for a fit or for folding in, from codes."""
        return codes

    def nearest(self, observed: Observed) -> tuple[Observed, int]:
        """Cells whose values between two levels are at the nearer one, the lower one halfway, and their number."""
        return observed, 0

    def labels_of(self, codes: Array) -> Array:
        """Values as in the user's data, from codes."""
        return codes

    def values_of(self, codes: Array) -> Array:
        """Values as numbers, from codes; text levels are 1, 2, ..., as `halfseen.observe` reads them."""
        return codes


@dataclass(frozen=True, eq=False)
class PresenceEncoder(Encoder):
    """1 for whatever is above 0."""

    @property
    def n_levels(self) -> int:
        return 2

    def codes(self, observed: Observed) -> Observed:
        Poisson().check(observed, "BernoulliPoisson")  # counts of any size are welcome, negative ones are not
        present = computed_in_parts(lambda values: values > 0, observed.values, dtype=observed.dtype)
        return replace(observed, values=present)


@dataclass(frozen=True, eq=False)
class ConfidenceEncoder(Encoder):
    """Values as confidences c that a cell should have x = 1, where all cells, weighing a, should have x = 0.

        c (1 - x)^2 + a x^2 = (c + a) (c / (c + a) - x)^2 + a constant

    so a seen cell has the value c / (c + a) and, in units of a, the weight 1 + c / a.

    Parameters
    ----------
    power : float or None
        c is the value to this power; None: log(1 + value).
    unseen_weight : float or None
        a; None takes `UNSEEN_SHARE` times the mean of c over all cells of the matrix, and at most that over the seen.
    dtype : {"float32", "float64"} or None
        Of the codes, and of the fit; None: that of the data.
    may_be_log : bool, default=False
        Whether to fit takes the logarithm of values of which the largest is more than `MOST_OF_MEAN` times the mean.
    """

    power: float | None = 1.0
    unseen_weight: float | None = None
    dtype: str | None = None
    may_be_log: bool = False

    state: ClassVar[Mapping[str, Any]] = {"power": float | None, "unseen_weight": float, "dtype": str | None}

    def check_state(self, path: str) -> None:
        """Refuse what no fit could leave."""
        if self.dtype not in (None, "float32", "float64") or not (self.unseen_weight and self.unseen_weight > 0):
            raise ValueError(f"{path} must have a known dtype and an unseen_weight above 0")

    def fit(self, observed: Observed, name: str) -> tuple[Self, Observed]:
        encoder, codes = self, self.codes(observed)
        if self.may_be_log:
            seen = codes.values[codes.values > 0].astype(np.float64)
            is_wide = seen.size > 0 and seen.max() > MOST_OF_MEAN * seen.mean()
            encoder = replace(self, power=None if is_wide else self.power)
        if self.unseen_weight is None:
            confidence = encoder.confidence(codes)
            weights = (confidence > 0) if codes.weights is None else (confidence > 0) * codes.weights
            total = float(np.sum(confidence * weights, dtype=np.float64))
            share = min(1.0 / max(float(weights.sum(dtype=np.float64)), 1.0), UNSEEN_SHARE / np.prod(codes.shape))
            encoder = replace(encoder, unseen_weight=share * total or 1.0)
        return encoder, codes

    def codes(self, observed: Observed) -> Observed:
        values = observed.values
        negative = np.flatnonzero(values < 0)
        if negative.size:
            others = f" ({negative.size} such cells)" if negative.size > 1 else ""
            raise DataError(
                "Negative values in data passed to ImplicitMF: they say how surely a cell should rank high, and 0 is "
                "the least.",
                found=f"{values[negative[0]]:g}",
                where=f"at {observed.place(int(negative[0]))}{others}",
                remedy="Shift or drop these values.",
            )
        return observed

    def confidence(self, codes: Observed) -> Array:
        """c of every cell, in double precision; 0 where the value is 0."""
        values = codes.values.astype(np.float64)
        return np.log1p(values) if self.power is None else np.where(values > 0, values**self.power, 0.0)

    def weigh(self, codes: Observed, new_rows: bool = True) -> Observed:
        ratio = self.confidence(codes) / (self.unseen_weight or 1.0)
        weights = 1.0 + ratio if codes.weights is None else (1.0 + ratio) * codes.weights
        dtype = np.dtype(self.dtype or codes.dtype)
        return replace(codes, values=(ratio / (1.0 + ratio)).astype(dtype), weights=weights.astype(dtype))


@dataclass(frozen=True, eq=False)
class OrdinalEncoder(Encoder):
    """Ordered levels as codes 0..V.

    Where unseen cells are zeros, level 0 is theirs: its label is 0, or None where levels are text.

    Parameters
    ----------
    levels : array-like, optional
        Levels from the lowest to the highest, numbers or text; by default the distinct values of the data.
    unseen : {"missing", "zero"}
        What an unseen cell means.
    level_weight : "levels", array-like or dict, optional
        Weight of an observed cell by its level.
    fill_zeros : bool, default=False
        Whether unseen zeros become cells, because the likelihood has no closed form for them.
    owners : {"rows", "columns"}, optional
        Which of the two have thresholds of their own: values are then owner * (V + 1) + level.
    labels : ndarray, optional
        Fitted: the label of each code.
    level_weights : ndarray, optional
        Fitted: the weight of each code.
    n_rows : int, default=0
        Fitted: number of rows, if rows are owners; a new row is owner `n_rows`.
    """

    levels: Any = None
    unseen: str = "missing"
    level_weight: Any = None
    fill_zeros: bool = False
    owners: str | None = None
    labels: Array | None = None
    level_weights: Array | None = None
    n_rows: int = 0

    state: ClassVar[Mapping[str, Any]] = {
        "unseen": str,
        "fill_zeros": bool,
        "owners": str | None,
        "labels": ArraySpec("fO", ("levels",)),
        "level_weights": ArraySpec("f", ("levels",), low=0.0, optional=True),
        "n_rows": int,
    }
    has_levels: ClassVar[bool] = True

    def check_state(self, path: str) -> None:
        """Refuse labels and owners that no fit could leave."""
        labels = self.fitted_labels
        first = 1 if self.unseen == "zero" and labels.size and labels[0] is None else 0
        if labels.size < 2 or (self.is_text and not all(isinstance(label, str) for label in labels[first:])):
            raise ValueError(f"{path}/labels must be two or more numbers or texts")
        if not self.is_text and not np.all(np.diff(labels) > 0):
            raise ValueError(f"{path}/labels must increase")
        if self.owners not in (None, "rows", "columns") or self.unseen not in ("missing", "zero"):
            raise ValueError(f"{path} must have known owners and a known meaning of unseen cells")

    @property
    def is_text(self) -> bool:  # type: ignore[override]
        return self.fitted_labels.dtype.kind == "O"

    @property
    def fitted_labels(self) -> Array:
        """Label of each code."""
        if self.labels is None:
            raise AttributeError("The encoder is not fitted.")
        return self.labels

    @property
    def n_levels(self) -> int:
        return self.fitted_labels.size

    @property
    def level_values(self) -> Array:
        """Value of each code; text levels are 1, 2, ..."""
        labels = self.fitted_labels
        return np.arange(0 if labels[0] is None else 1, len(texts_in(labels)) + 1.0) if self.is_text else labels

    @property
    def numbers(self) -> Array | None:
        """Label of each code if these are numbers, else None: text has no expected value."""
        return None if self.is_text else self.labels

    @property
    def levels_to_read(self) -> Any:
        if self.labels is not None:
            return texts_in(self.labels) if self.is_text else None
        if self.levels is None:
            return "ordered"
        return list(map(str, self.levels)) if are_texts(self.levels) else None

    def fit(self, observed: Observed, name: str) -> tuple[Self, Observed]:
        unseen = observed.unseen
        if self.levels is None:
            values = _distinct_levels(observed, name)
            names = observed.level_names
        elif are_texts(self.levels):
            values = np.arange(0 if unseen == "zero" else 1, len(self.levels) + 1, dtype=np.float64)
            names = np.asarray(self.levels, dtype=object)
        else:
            values, names = np.asarray(self.levels, dtype=np.float64), None
            if unseen == "zero":
                if values.min() < 0:
                    raise ParameterError(
                        "must be 0 or larger where unseen cells are zeros, which are the lowest.",
                        parameter="levels",
                        found=f"{values.min():g}",
                        remedy='Shift the levels, or use `unseen="missing"`.',
                    )
                values = np.append(0.0, values[values != 0])
        labels = values if names is None else _names_of(values, names)
        if values.size < 2:
            raise DataError(
                "Ordinal data must have two levels or more.",
                found=f"only {level_text(labels[0])}",
                remedy='Fit data with more, or `OrdNMF` with `unseen="zero"` if unseen cells are a level of their own.',
            )
        codes = _find_codes(observed, values, labels, is_fitted=False)
        weights = None if self.level_weight is None else _weights_of(self.level_weight, labels, unseen, codes)
        n_rows = codes.shape[0] if self.owners == "rows" else 0
        encoder = replace(self, labels=labels, level_weights=weights, n_rows=n_rows)
        return encoder, encoder._filled(codes)

    def codes(self, observed: Observed) -> Observed:
        return _find_codes(observed, self.level_values, self.fitted_labels, is_fitted=True)

    def weigh(self, codes: Observed, new_rows: bool = True) -> Observed:
        if new_rows:
            codes = self._filled(codes)
        if self.level_weights is not None and np.any(self.level_weights != 1.0):
            by_level = self.level_weights.astype(codes.dtype)

            def weigh(values: Array, weights: Array | None) -> Array:
                of_level = by_level[values.astype(np.intp)]
                return of_level if weights is None else of_level * weights

            weights = computed_in_parts(weigh, codes.values, codes.weights, dtype=codes.dtype)
            codes = replace(codes, weights=weights)
        if self.owners is not None:
            owner: Any = codes.indices
            if self.owners == "rows":
                owner = self.n_rows if new_rows else codes.row_of_cell()
            values = (owner * self.fitted_labels.size + codes.values).astype(codes.dtype)
            codes = replace(codes, values=values)
        return codes

    def nearest(self, observed: Observed) -> tuple[Observed, int]:
        levels = self.level_values.astype(np.float32)  # as codes are found
        if not np.all(np.diff(levels) > 0):
            return observed, 0
        lowest = levels[1 if self.unseen == "zero" else 0]  # what is above 0 is seen
        values = observed.values.astype(np.float32)
        between = np.flatnonzero((values > levels[0]) & (values < levels[-1]) & ~np.isin(values, levels))
        if not between.size:
            return observed, 0
        above = np.searchsorted(levels, values[between])
        is_nearer = levels[above] - values[between] < values[between] - levels[above - 1]
        moved = observed.values.copy()
        moved[between] = self.level_values[np.where(is_nearer, above, above - 1)]
        moved[between] = np.maximum(moved[between], lowest)
        return replace(observed, values=moved), between.size

    def labels_of(self, codes: Array) -> Array:
        return self.fitted_labels[codes.astype(np.intp)]

    def values_of(self, codes: Array) -> Array:
        return self.level_values[codes.astype(np.intp)]

    def check_all_observed(self, histogram: Array) -> None:
        """Refuse levels without a cell: nothing tells where their thresholds are."""
        first = 1 if self.unseen == "zero" else 0  # unseen zeros are at level 0
        empty = np.flatnonzero(histogram[first:] == 0)
        if empty.size:
            raise DataError(
                "Every level must be seen in the data of a fit.",
                found=f"none at level {level_text(self.fitted_labels[first + empty[0]])}",
                remedy="Leave it out of `levels`.",
                parameter="levels",
            )

    def _filled(self, codes: Observed) -> Observed:
        """The same cells and, if `fill_zeros`, a cell of level 0 wherever there is none."""
        if not self.fill_zeros or codes.unseen != "zero":
            return codes
        n, m = codes.shape
        if n * m > MAX_FILLED_CELLS:
            raise DataError(
                "With exponential or gamma noise every unseen zero counts as a cell, so rows times columns must be at "
                f"most {MAX_FILLED_CELLS:,}.",
                found=f"{n:,} x {m:,}",
                remedy='Use `noise="inverse-gamma"`, whose zeros need no cells, or `unseen="missing"`; to a fitted '
                "model, pass fewer rows at a time.",
                parameter="noise",
            )
        rows = codes.row_of_cell()
        unseen = np.ones(codes.shape, bool)
        unseen[rows, codes.indices] = False
        more_rows, more_columns = np.nonzero(unseen)
        ones = np.ones(more_rows.size, codes.dtype)
        return Observed.from_cells(
            np.concatenate([rows, more_rows]),
            np.concatenate([codes.indices, more_columns]),
            np.concatenate([codes.values, 0 * ones]),
            codes.shape,
            weights=None if codes.weights is None else np.concatenate([codes.weights, ones]),
            row_labels=codes.row_labels,
            column_labels=codes.column_labels,
            duplicates="keep",
            allow_empty=True,
        )


ENCODERS: Mapping[str, type[Encoder]] = {
    kind.__name__: kind for kind in (Encoder, PresenceEncoder, ConfidenceEncoder, OrdinalEncoder)
}


def are_texts(levels: Any) -> bool:
    """Whether levels are a list of text."""
    is_list = not isinstance(levels, str) and hasattr(levels, "__len__") and len(levels) > 0
    return is_list and all(isinstance(level, str) for level in levels)


def texts_in(labels: Array) -> list[str]:
    """Text labels without the None of unseen cells."""
    return [str(label) for label in labels if label is not None]


def text_labels(levels: list[str], unseen: str) -> Array:
    """Labels of text levels: None first, for unseen cells, where these are zeros."""
    names: list[str | None] = [None] if unseen == "zero" else []
    return np.array([*names, *levels], dtype=object)


def level_text(label: Any) -> str:
    """A level as error messages show it."""
    return quoted(label) if isinstance(label, str) else f"{label:g}"


def levels_rule() -> validation.Rule:
    """None, ascending numbers, or distinct text."""
    rising = validation.rising()

    def rule(value: Any) -> tuple[str, str] | None:
        if are_texts(value):
            texts = list(map(str, value))
            good = len(set(texts)) == len(texts) and all(text.strip() for text in texts)
        else:
            good = rising(value) is None
        return (
            None if good else ("None, rising numbers or different texts", "List them from the lowest to the highest.")
        )

    return rule


def level_weight_rule() -> validation.Rule:
    """None, "levels", or finite numbers above 0: a list, or a dict by level."""

    def rule(value: Any) -> tuple[str, str] | None:
        if value is None or (isinstance(value, str) and value == "levels"):
            return None
        given = list(value.values()) if isinstance(value, dict) else value
        try:
            weights = np.asarray([] if isinstance(given, str) else given, dtype=np.float64)
        except (TypeError, ValueError):
            weights = np.empty(0)
        if weights.ndim == 1 and weights.size and np.isfinite(weights).all() and (weights > 0).all():
            return None
        near = validation.did_you_mean(value, ["levels"]) if isinstance(value, str) else None
        return (
            "'levels', None, or a finite weight above 0 for each level",
            f"Did you mean {near!r}?" if near else "Pass a list or a dict of weights.",
        )

    return rule


def confidence_rule() -> validation.Rule:
    """A name of `CONFIDENCES`, or a number of 0 or more."""
    of_power = validation.number(0.0)

    def rule(value: Any) -> tuple[str, str] | None:
        if (isinstance(value, str) and value in CONFIDENCES) or of_power(value) is None:
            return None
        near = validation.did_you_mean(value, CONFIDENCES) if isinstance(value, str) else None
        must = f"{', '.join(map(repr, CONFIDENCES))} or a finite number of at least 0, a power of the values"
        return must, f"Did you mean {near!r}?" if near else "Choose one of these."

    return rule


def _distinct_levels(observed: Observed, name: str) -> Array:
    """The distinct values of the data in ascending order, 0 first where unseen cells are zeros."""
    values = observed.values[:0]
    for (part,) in in_parts(observed.values):
        values = np.unique(np.concatenate([values, np.unique(part)]))
    if observed.unseen == "zero" and values.size and values[0] < 0:
        negative = np.flatnonzero(observed.values < 0)
        if negative.size:
            raise DataError(
                f"Negative values in data passed to {name}: levels must be 0 or larger where unseen cells are zeros.",
                found=f"{observed.values[negative[0]]:g}",
                where=f"at {observed.place(int(negative[0]))}",
                remedy='Shift the values, or use `unseen="missing"`.',
            )
    if values.size > MAX_LEVELS:
        raise DataError(
            f"{name} must have at most {MAX_LEVELS} ordered levels.",
            found=f"{values.size} different values, from {values[0]:g} to {values[-1]:g}",
            remedy="Make levels of counts with `Quantizer`, or use `PoissonFactorization`.",
            remedy_cli="Make a few levels of the counts, or use `PoissonFactorization`.",
        )
    return np.append(0.0, values[values != 0]) if observed.unseen == "zero" else values


def _names_of(values: Array, names: Array) -> Array:
    """Name of each value 1, 2, ...; None for 0, which stands for unseen cells."""
    unnamed = values[(values != np.floor(values)) | (values > names.size)]
    if unnamed.size:
        raise DataError(
            f"Values must be the numbers of levels, 0 to {names.size}, as {', '.join(map(quoted, names))} are read.",
            found=f"{unnamed[0]:g}",
            remedy="Merge repeated cells by min, max, first or last, not by sum or mean.",
        )
    named: Array = np.append(np.array([None], dtype=object), names)[values.astype(np.intp)]
    return named


def _find_codes(observed: Observed, values: Array, labels: Array, *, is_fitted: bool) -> Observed:
    """Codes in the place of values; a value that is no level is refused."""
    # in single precision, so that 0.1 is 0.1 whichever it was read in, unless that merges levels
    known, in_single = values.astype(np.float32), True
    if not np.all(np.diff(known) > 0):
        known, in_single = values, False
    halves = 2.0 * known
    # stars: by a table, five times as fast
    is_coarse = bool(np.all(halves == np.floor(halves)) and halves[0] >= 0 and halves[-1] < 1000)
    code_of = np.zeros(int(halves[-1]) + 1 if is_coarse else 0, np.intp)
    if is_coarse:
        code_of[halves.astype(np.intp)] = np.arange(known.size)
    unfound, done = list[Array](), 0

    def find(cells: Array) -> Array:
        nonlocal done
        cells = cells.astype(np.float32) if in_single else cells
        if is_coarse:
            codes = code_of[np.clip(2.0 * cells, 0, halves[-1]).astype(np.intp)]
        else:
            codes = np.searchsorted(known, cells).clip(0, values.size - 1)
        unfound.append(np.flatnonzero(known[codes] != cells) + done)
        done += cells.size
        return codes

    found = computed_in_parts(find, observed.values, dtype=observed.dtype)
    unknown = np.concatenate(unfound)
    if unknown.size:
        count = "1 such cell" if unknown.size == 1 else f"{unknown.size} such cells"
        remedy = "Fit with data that have this level" if is_fitted else "Add it to `levels`"
        listed = ", ".join(level_text(label) for label in labels if label is not None)
        raise DataError(
            f"Values must be among the levels that were {'fitted' if is_fitted else 'given'}: {listed}.",
            found=f"{observed.values[unknown[0]]:g}",
            where=f"at {observed.place(int(unknown[0]))} ({count})",
            remedy=f"{remedy}, or round the value.",
            remedy_cli=None if is_fitted else "Add it to `levels` when fitting, or round the value.",
            parameter="levels",
        )
    return replace(observed, values=found)


def _weights_of(level_weight: Any, labels: Array, unseen: str, codes: Observed) -> Array:
    """Weight of an observed cell by level; where unseen cells are zeros, one at level 0 has weight 1."""
    if isinstance(level_weight, str):  # in proportion to levels, 1 on average over the cells above level 0
        above = codes.values > 0
        weights = None if codes.weights is None else codes.weights[above]
        has_weight = above.any() if weights is None else weights.any()
        mean_level = float(np.average(codes.values[above], weights=weights)) if has_weight else 1.0
        return np.append(1.0, np.arange(1, labels.size) / mean_level)
    first = 1 if unseen == "zero" else 0
    weighted = labels[first:].tolist()
    absent = [label for label in weighted if label not in level_weight] if isinstance(level_weight, dict) else []
    if absent or (not isinstance(level_weight, dict) and len(level_weight) != len(weighted)):
        raise ParameterError(
            f"must hold a weight for each of the {len(weighted)} levels {', '.join(map(level_text, weighted))}.",
            parameter="level_weight",
            found=f"none for {level_text(absent[0])}" if absent else f"{len(level_weight)}",
            remedy="Add it." if absent else "List them from the lowest level to the highest, or pass a dict.",
        )
    by_level = [level_weight[label] for label in weighted] if isinstance(level_weight, dict) else list(level_weight)
    return np.array([1.0] * first + by_level, dtype=np.float64)

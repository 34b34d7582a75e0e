"""What models of ordered levels share: levels, thresholds, probabilities."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.drawing import draw_levels, logs_of_levels
from halfseen.estimators.levels import Levels, are_texts, rule_of_levels, texts_among
from halfseen.likelihoods import Likelihood, Ordinal


class OrdinalMixin:
    """Levels in, probabilities of levels out. Comes before the base class of an estimator."""

    levels: Any
    thresholds: Any
    unseen: str
    likelihood_: Any
    levels_: Array
    _x_at: Any
    _x_everywhere: Any

    rules_of_levels: ClassVar[Mapping[str, checks.Rule]] = {
        "levels": rule_of_levels(),
        "thresholds": checks.rising(above=0.0),
    }

    @property
    @abstractmethod
    def _ordinal(self) -> Any:
        """The levels' likelihood inside the fitted one."""

    @abstractmethod
    def _taken(self, ordinal: Ordinal) -> Likelihood:
        """A likelihood with these levels in it."""

    @abstractmethod
    def _first_likelihood(self, histogram: Array) -> Likelihood:
        """The likelihood to start with, by the number of cells at each level."""

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        whose = type(self).__name__
        is_given = self.levels is not None
        levels = Levels.given(self.levels, observed.unseen) if is_given else Levels.found_in(observed, whose)
        coded = levels.coded(observed, "given")
        histogram = np.bincount(coded.values.astype(np.int64), coded.weights, minlength=levels.values.size)
        levels.refuse_unseen(histogram)
        self._check_thresholds(levels.values.size)
        self.levels_ = levels.labels
        return coded, self._first_likelihood(histogram)

    def _first_ordinal(self, histogram: Array) -> Ordinal:
        """With the given thresholds; or with those of the paper's start, where N_0 is the number of cells above 0."""
        if self.thresholds is not None:
            return Ordinal(-np.diff(1.0 / self._given_thresholds(), append=0.0), False, self._numbers)
        # Not histogram[0]: a zero that is stored says what an unseen one says.
        zeros = histogram[1:].sum() if self.unseen == "zero" else histogram[0]
        return replace(Ordinal.from_histogram(histogram[1:], zeros), values=self._numbers)

    @property
    def _numbers(self) -> Array | None:
        """The values of the levels; None for texts, which count 0..V."""
        numbers: Array | None = None if self.levels_.dtype.kind == "O" else self.levels_
        return numbers

    def _given_thresholds(self) -> Array:
        return np.asarray(self.thresholds, dtype=np.float64)

    def _check_thresholds(self, levels: int) -> None:
        if self.thresholds is not None and len(self.thresholds) != levels - 1:
            raise ParameterError(
                f"thresholds must stand between the {levels} levels: {levels - 1} of them. "
                f"Found {len(self.thresholds)}. Give one for each step from level to level, or None to learn them."
            )

    def _levels_to_read(self) -> Any:
        if self.levels is None:
            return "ordered"
        return list(map(str, self.levels)) if are_texts(self.levels) else None

    def _fitted_names(self) -> list[str] | None:
        return texts_among(self.levels_) if self._numbers is None else None

    def _coded(self, observed: Observed) -> Observed:
        return self._counted(observed)

    def _counted(self, observed: Observed) -> Observed:
        return Levels.fitted(self.levels_, self.unseen).coded(observed)

    def _labelled(self, counted: Array) -> Array:
        return self.levels_[counted.astype(np.intp)]

    def _valued(self, counted: Array) -> Array:
        numbers: Array = Levels.fitted(self.levels_, self.unseen).values[counted.astype(np.intp)]
        return numbers

    def _make_likelihood(self) -> Likelihood:
        return self.likelihood_

    @property
    def thresholds_(self) -> Array:
        """b_0 < ... < b_{V-1} between the levels."""
        thresholds: Array = 1.0 / self._ordinal.theta[:-1]
        return thresholds

    def predict_proba(self, rows: Any, cols: Any = None) -> Array:
        """The probability of every level (last axis, in the order of `levels_`) at pairs of rows and columns.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and every cell is told of.
        """
        check_is_fitted(self)
        x = self._x_at(rows, cols) if cols is not None else self._x_everywhere(rows)
        probabilities: Array = self.likelihood_.probabilities(x.astype(np.float64))
        return probabilities

    def predict_level(self, rows: Any, cols: Any = None) -> Array:
        """The median level where `predict_proba` tells of levels: the lowest not exceeded in half of all cases."""
        up_to = np.cumsum(self.predict_proba(rows, cols), axis=-1)
        levels: Array = self.levels_[(up_to < 0.5 - 1e-12).sum(axis=-1)]
        return levels

    def complete(self, X: Any) -> Any:
        """X with its holes filled by the model's mean, as for other models; levels that are texts have none."""
        check_is_fitted(self)
        if self._numbers is None:
            raise DataError(
                f"complete fills holes with expected values, so levels must be numbers. Found {self.levels_[-1]!r}. "
                "Ask predict_level for the cells of interest, or fit on numbers."
            )
        return super().complete(X)  # type: ignore[misc]

    def _log_above_zero(self, x: Array) -> Array:
        above: Array = logsumexp(logs_of_levels(self.likelihood_, self.levels_.size - 1, x), axis=0)
        return above

    def _draw(self, x: Array, random: np.random.Generator) -> Array:
        return draw_levels(self.likelihood_, self.levels_.size - 1, x, random)

    def _value_quantiles(self, x: Array, tails: Array, random: np.random.Generator) -> Array:
        """The levels that are reached with the probabilities `tails`, by the mean probabilities over draws of x."""
        up_to = np.cumsum(sum(map(self.likelihood_.probabilities, x)) / len(x), axis=-1)
        return np.stack([(up_to[..., :-1] < tail - 1e-12).sum(axis=-1) for tail in tails])

    def _further_arrays(self) -> dict[str, Array]:
        further: dict[str, Array] = super()._further_arrays()  # type: ignore[misc]
        levels = np.array(self._fitted_names() or self.levels_)
        return further | self._kept_of_levels() | {"levels": levels}

    def _kept_of_levels(self) -> dict[str, Array]:
        """What model files keep of the levels' likelihood, to the last bit."""
        return {"decrements": self._ordinal.decrements}

    def _restore(self, further: dict[str, Array]) -> None:
        levels = further["levels"]
        self.levels_ = Levels.given(levels.tolist(), self.unseen).labels if levels.dtype.kind == "U" else levels
        self.likelihood_ = self._restored_likelihood(further)
        super()._restore(further)  # type: ignore[misc]

    def _restored_likelihood(self, further: dict[str, Array]) -> Likelihood:
        return self._taken(Ordinal(further["decrements"], self.thresholds is None, self._numbers))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = self.unseen == "zero"
        return tags

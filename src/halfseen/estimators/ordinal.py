"""What models of ordered levels share: levels, thresholds, probabilities."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.errors import ParameterError
from halfseen.estimators.levels import Levels, given
from halfseen.likelihoods import Likelihood, Ordinal


class OrdinalMixin:
    """Levels in, probabilities of levels out. Comes before the base class of an estimator."""

    levels: Any
    thresholds: Any
    unseen: str
    likelihood_: Any
    _x_at: Any
    _x_everywhere: Any

    rules_of_levels: ClassVar[Mapping[str, checks.Rule]] = {
        "levels": checks.rising(),
        "thresholds": checks.rising(above=0.0),
    }

    @property
    @abstractmethod
    def _ordinal(self) -> Ordinal:
        """The levels' likelihood inside the fitted one."""

    @abstractmethod
    def _taken(self, ordinal: Ordinal) -> Likelihood:
        """A likelihood with these levels in it."""

    @abstractmethod
    def _first_likelihood(self, histogram: Array) -> Likelihood:
        """The likelihood to start with, by the number of cells at each level."""

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        whose = type(self).__name__
        levels = Levels.found_in(observed, whose) if self.levels is None else given(self.levels, observed.unseen)
        coded = levels.coded(observed, whose)
        histogram = np.bincount(coded.values.astype(np.int64), coded.weights, minlength=levels.values.size)
        levels.refuse_unseen(histogram)
        self.levels_ = levels.values
        return coded, self._first_likelihood(histogram)

    def _first_ordinal(self, histogram: Array) -> Ordinal:
        """With the given thresholds; or with those of the paper's start, where N_0 is the number of seen cells."""
        if self.thresholds is not None:
            return Ordinal(self._given_decrements(), False, self.levels_)
        zeros = histogram.sum() if self.unseen == "zero" else histogram[0]
        return replace(Ordinal.from_histogram(histogram[1:], zeros), values=self.levels_)

    def _given_decrements(self) -> Array:
        thresholds = np.asarray(self.thresholds, dtype=np.float64)
        if thresholds.size != self.levels_.size - 1:
            raise ParameterError(
                f"thresholds must stand between the {self.levels_.size} levels: {self.levels_.size - 1} of them. "
                f"Found {thresholds.size}. Give one for each step from level to level, or None to learn them."
            )
        return -np.diff(1.0 / thresholds, append=0.0)

    def _coded(self, observed: Observed) -> Observed:
        return Levels(self.levels_, self.unseen).coded(observed, "Data passed to a fitted model")

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

    def _further_arrays(self) -> dict[str, Array]:
        return {"decrements": self._ordinal.decrements, "levels": self.levels_}

    def _restore(self, further: dict[str, Array]) -> None:
        self.levels_ = further["levels"]
        self.likelihood_ = self._taken(Ordinal(further["decrements"], self.thresholds is None, self.levels_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = self.unseen == "zero"
        return tags

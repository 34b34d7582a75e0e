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
from halfseen.estimators.drawing import draw_levels, logs_of_levels
from halfseen.estimators.leveled import LeveledMixin
from halfseen.likelihoods import Likelihood, Ordinal


class ProbableLevelsMixin(LeveledMixin):
    """Levels in, probabilities of levels out. Comes before the base class of an estimator."""

    _x_and_likelihood: Any
    _likelihood_at: Any

    def predict_proba(self, rows: Any, cols: Any = None) -> Array:
        """The probability of every level (last axis, in the order of `levels_`) at pairs of rows and columns.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and every cell is told of.
        """
        check_is_fitted(self)
        x, likelihood = self._x_and_likelihood(rows, cols)
        probabilities: Array = likelihood.probabilities(x.astype(np.float64))
        return probabilities

    def predict_level(self, rows: Any, cols: Any = None) -> Array:
        """The median level where `predict_proba` tells of levels: the lowest not exceeded in half of all cases.

        `rows` and `cols` are pairs, or `rows` data, as in `predict_proba`.
        """
        up_to = np.cumsum(self.predict_proba(rows, cols), axis=-1)
        levels: Array = self.levels_[(up_to < 0.5 - 1e-12).sum(axis=-1)]
        return levels

    def _log_above_zero(self, x: Array) -> Array:
        above: Array = logsumexp(logs_of_levels(self.likelihood_, self.levels_.size - 1, x), axis=0)
        return above

    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        return draw_levels(self.likelihood_, self.levels_.size - 1, x, random)

    def _value_quantiles(self, x: Array, tails: Array, random: np.random.Generator, *at: Array) -> Array:
        """The levels that are reached with the probabilities `tails`, by the mean probabilities over draws of x."""
        up_to = np.cumsum(sum(map(self._likelihood_at(*at).probabilities, x)) / len(x), axis=-1)
        return np.stack([(up_to[..., :-1] < tail - 1e-12).sum(axis=-1) for tail in tails])


class OrdinalMixin(ProbableLevelsMixin):
    """Levels as OrdNMF has them: cut out of a positive line."""

    rules_of_levels: ClassVar[Mapping[str, checks.Rule]] = {
        **LeveledMixin.rules_of_levels,
        "thresholds": checks.rising(above=0.0),
    }

    @property
    @abstractmethod
    def _ordinal(self) -> Any:
        """The levels' likelihood inside the fitted one."""

    @abstractmethod
    def _taken(self, ordinal: Ordinal) -> Likelihood:
        """A likelihood with these levels in it."""

    def _first_ordinal(self, histogram: Array) -> Ordinal:
        """With the given thresholds; or with those of the paper's start, where N_0 is the number of cells above 0."""
        if self.thresholds is not None:
            return Ordinal(-np.diff(1.0 / self._given_thresholds(), append=0.0), False, self._numbers)
        # Not histogram[0]: a zero that is stored says what an unseen one says.
        zeros = histogram[1:].sum() if self.unseen == "zero" else histogram[0]
        return replace(Ordinal.from_histogram(histogram[1:], zeros), values=self._numbers)

    def _given_thresholds(self) -> Array:
        return np.asarray(self.thresholds, dtype=np.float64)

    @property
    def thresholds_(self) -> Array:
        """b_0 < ... < b_{V-1} between the levels."""
        thresholds: Array = 1.0 / self._ordinal.theta[:-1]
        return thresholds

    def _kept_of_levels(self) -> dict[str, Array]:
        return {"decrements": self._ordinal.decrements}

    def _restored_likelihood(self, further: dict[str, Array]) -> Likelihood:
        return self._taken(Ordinal(further["decrements"], self.thresholds is None, self._numbers))

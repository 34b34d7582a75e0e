"""What models of values that are ordered levels share: which levels there are, and how they are called."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.levels import Levels, are_texts, rule_of_levels, texts_among
from halfseen.likelihoods import Likelihood
from halfseen.observed import Observed


class LeveledMixin:
    """Levels in, as the likelihood counts them. Comes before the base class of an estimator."""

    levels: Any
    thresholds: Any
    unseen: str
    likelihood_: Any
    levels_: Array

    rules_of_levels: ClassVar[Mapping[str, checks.Rule]] = {"levels": rule_of_levels(), "thresholds": checks.rising()}

    @abstractmethod
    def _first_likelihood(self, histogram: Array) -> Likelihood:
        """The likelihood to start with, by the number of cells at each level."""

    @abstractmethod
    def _kept_of_levels(self) -> dict[str, Array]:
        """What model files keep of the levels' likelihood, to the last bit."""

    @abstractmethod
    def _restored_likelihood(self, further: dict[str, Array]) -> Likelihood:
        """The likelihood of what was kept."""

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        whose = type(self).__name__
        is_given = self.levels is not None
        levels = Levels.given(self.levels, observed.unseen) if is_given else Levels.found_in(observed, whose)
        coded = levels.coded(observed, "given")
        histogram = np.bincount(coded.values.astype(np.int64), coded.weights, minlength=levels.values.size)
        if self.thresholds is None:  # nothing would tell where those of a level that is not there are
            levels.refuse_unseen(histogram)
        self._check_thresholds(levels.values.size)
        self.levels_ = levels.labels
        return coded, self._first_likelihood(histogram)

    @property
    def _numbers(self) -> Array | None:
        """The values of the levels; None for texts, which count 0..V."""
        numbers: Array | None = None if self.levels_.dtype.kind == "O" else self.levels_
        return numbers

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

    def complete(self, X: Any) -> Any:
        """X with its holes filled by the model's mean, as for other models; levels that are texts have none."""
        check_is_fitted(self)
        if self._numbers is None:
            raise DataError(
                f"complete fills holes with expected values, so levels must be numbers. Found {self.levels_[-1]!r}. "
                "Ask predict_level for the cells of interest, or fit on numbers."
            )
        return super().complete(X)  # type: ignore[misc]

    def _further_arrays(self) -> dict[str, Array]:
        further: dict[str, Array] = super()._further_arrays()  # type: ignore[misc]
        levels = np.array(self._fitted_names() or self.levels_)
        return further | self._kept_of_levels() | {"levels": levels}

    def _restore(self, further: dict[str, Array]) -> None:
        levels = further["levels"]
        self.levels_ = Levels.given(levels.tolist(), self.unseen).labels if levels.dtype.kind == "U" else levels
        self.likelihood_ = self._restored_likelihood(further)
        super()._restore(further)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = self.unseen == "zero"
        return tags

"""Which factors round to given levels: the question, and what proves an answer."""

from dataclasses import dataclass, replace

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.exactness import are_levels_of
from halfseen.rank.levels import first_of_each


@dataclass(frozen=True)
class Proof:
    """Factors and thresholds with GRF(W H') = Y, checked exactly, and how they were found."""

    W: Array
    H: Array
    thresholds: Array
    why: str

    @property
    def rank(self) -> int:
        return self.W.shape[1]


@dataclass(frozen=True)
class Question:
    """For which W and H of few columns is GRF(W H') = levels, with given thresholds, or with some (None)?"""

    levels: Array
    thresholds: Array | None

    @property
    def n_thresholds(self) -> int:
        return int(self.levels.max()) if self.thresholds is None else self.thresholds.size

    @property
    def transposed(self) -> "Question":
        return replace(self, levels=self.levels.T)

    @property
    def freed(self) -> "Question":
        return replace(self, thresholds=None)

    def proof(self, W: Array, H: Array, why: str) -> Proof | None:
        """A proof by these factors, if they are one."""
        with np.errstate(over="ignore", invalid="ignore"):
            thresholds = separating(W @ H.T, self.levels) if self.thresholds is None else self.thresholds
        if thresholds is None or not are_levels_of(W, H, thresholds, self.levels):
            return None
        return Proof(W, H, thresholds, why)


def separating(X: Array, levels: Array) -> Array | None:
    """Thresholds halfway between the numbers of neighbouring levels, or None if these are not apart.

    Where levels are skipped, their thresholds share the gap.
    """
    present = np.unique(levels)
    top = np.maximum.accumulate([X[levels == level].max() for level in present])
    bottom = np.minimum.accumulate([X[levels == level].min() for level in present[::-1]])[::-1]
    if not (np.isfinite(top[-1]) and np.isfinite(bottom[0]) and np.all(top[:-1] < bottom[1:])):
        return None
    below = bottom[0] - max(1.0, abs(bottom[0])) * np.arange(present[0], 0, -1)
    gaps = zip(top[:-1], bottom[1:], np.diff(present), strict=True)
    found = np.concatenate([below, *(_inside(low, high, count) for low, high, count in gaps)])
    return found if np.all(np.diff(found) > 0) else None


def _inside(low: float, high: float, count: int) -> Array:
    shares = np.arange(1, count + 1) / (count + 1)
    return low + (high - low) * shares


@dataclass(frozen=True)
class Distinct:
    """A question without repeated rows and columns, which can have the factors of the first of their kind."""

    question: Question
    row_like: Array
    column_like: Array

    @classmethod
    def of(cls, question: Question) -> "Distinct":
        rows, row_like = first_of_each(question.levels)
        columns, column_like = first_of_each(question.levels.T)
        return cls(replace(question, levels=question.levels[np.ix_(rows, columns)]), row_like, column_like)

    def repeated(self, proof: Proof) -> Proof:
        """The same for all rows and columns."""
        return replace(proof, W=proof.W[self.row_like], H=proof.H[self.column_like])

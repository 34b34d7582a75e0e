"""Warm starts: from the factors of one rank to a start for a larger one.

What a start must be like depends on the solver. A variational posterior gives up a new component that explains
nothing yet, however large: it must begin near structure. Multiplicative updates of single numbers do the opposite:
copies take long to part, and new random components soon find what is not explained. Where a fit from scratch needs few
iterations anyway (Newton's method; the squared models), warm starts gain no time, and none are made.
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.estimators import WeightedNMF
from halfseen.estimators.gamma_factorization import GammaFactorization
from halfseen.estimators.ordinal import OrdinalMixin

#: The part of x that new random components have at the start, all together; the old ones keep the rest.
OF_NEW = 0.5
#: Copies are multiplied by random numbers in here: narrower ones take long to part, wider ones forget what they were.
APART = (0.5, 1.5)


def grown(model: Any, n_components: int, train: Observed, random: np.random.RandomState) -> tuple[Array, Array] | None:
    """Factors (W0, H0) to start `n_components` from, by a model fitted with fewer; None if better from scratch."""
    more = n_components - model.n_components
    if isinstance(model, WeightedNMF):
        return _joined(model.W_, model.H_, more, random)
    if isinstance(model, GammaFactorization):
        scale = _scale_of_start(model, n_components, train)
        return _split(scale * model.W_, scale * model.H_, more, random)
    return None


def _joined(W: Array, H: Array, more: int, random: np.random.RandomState) -> tuple[Array, Array]:
    """[sqrt(1 - p) W, new] and the same for H, where new components are uniform and make up the part p of mean x."""
    size = 2.0 * np.sqrt(OF_NEW / more * float(_shares(W, H).sum()))
    W, H = (
        np.hstack([np.sqrt(1.0 - OF_NEW) * factor, size * random.uniform(size=(len(factor), more))])
        for factor in (W, H)
    )
    return W, H


def _split(W: Array, H: Array, more: int, random: np.random.RandomState) -> tuple[Array, Array]:
    """The largest components in two or more copies w / sqrt(copies), h / sqrt(copies), every entry times its own
    random number; the others as they are."""
    copies = _copies(_shares(W, H), more)
    parents = np.repeat(np.arange(copies.size), copies)
    size, is_copy = copies[parents] ** -0.5, copies[parents] > 1
    W, H = (
        factor[:, parents] * size * np.where(is_copy, random.uniform(*APART, (len(factor), parents.size)), 1.0)
        for factor in (W, H)
    )
    return W, H


def _copies(shares: Array, more: int) -> Array:
    """How many copies of each component there should be, `more` than components, none much larger than the others."""
    copies = np.ones(shares.size, dtype=np.intp)
    for _ in range(more):
        copies[np.argmax(shares / copies)] += 1
    return copies


def _shares(W: Array, H: Array) -> Array:
    """What each component adds to the mean of x over all cells."""
    shares: Array = W.mean(axis=0, dtype=np.float64) * H.mean(axis=0, dtype=np.float64)
    return shares


def _scale_of_start(model: Any, n_components: int, train: Observed) -> float:
    """sqrt(b_0 at the start / b_0 as fitted), for models whose x and thresholds share a free scale; else 1.

    A fit begins with thresholds of its own. Without this, x would not be of their scale, farther off at each rank.
    """
    if not isinstance(model, OrdinalMixin):
        return 1.0
    fresh: Any = clone(model).set_params(n_components=n_components)
    fresh.likelihood_ = fresh._begun(train)[1]
    return float(np.sqrt(fresh.thresholds_[0] / model.thresholds_[0]))

"""Warm starts: initial factors of a larger rank from those fitted with a smaller one.

A variational posterior prunes a new component that explains nothing yet, so new components are copies of large ones.
Multiplicative updates are slow to separate copies, so new components are random. Newton's method and the squared models
need few iterations from scratch and get no warm start.
"""

from typing import Any

import numpy as np
from numpy.random import RandomState
from sklearn.base import clone

from halfseen.arrays import Array
from halfseen.estimators.base import prepare
from halfseen.estimators.nmf import WeightedNMF
from halfseen.estimators.poisson import GammaFactorization
from halfseen.observed import Observed

#: Share of x that new random components have at the start, together.
NEW_SHARE = 0.5
#: Range of the random factors of copies: narrower ones separate slowly, wider ones forget the fit.
JITTER = (0.5, 1.5)


def has_warm_start(estimator: Any) -> bool:
    """Whether a model gains by the factors of one with fewer components."""
    return isinstance(estimator, WeightedNMF | GammaFactorization)


def warm_start(model: Any, n_components: int, train: Observed, random: RandomState) -> tuple[Array, Array] | None:
    """Initial factors (W0, H0) of `n_components` from a model fitted with fewer; None to start from scratch."""
    n_new = n_components - model.n_components
    if isinstance(model, WeightedNMF):
        return _append_random(model.W_, model.H_, n_new, random)
    if isinstance(model, GammaFactorization):
        scale = _threshold_scale(model, n_components, train)
        return _split_largest(scale * model.W_, scale * model.H_, n_new, random)
    return None


def _append_random(W: Array, H: Array, n_new: int, random: RandomState) -> tuple[Array, Array]:
    """[sqrt(1 - p) W, new] and the same for H, where new components are uniform and the share p of the mean of x."""
    size = 2.0 * np.sqrt(NEW_SHARE / n_new * float(_mean_products(W, H).sum()))
    W, H = (
        np.hstack([np.sqrt(1.0 - NEW_SHARE) * factor, size * random.uniform(size=(len(factor), n_new))])
        for factor in (W, H)
    )
    return W, H


def _split_largest(W: Array, H: Array, n_new: int, random: RandomState) -> tuple[Array, Array]:
    """Replace the largest components by copies w / sqrt(copies), h / sqrt(copies), each entry times a random factor."""
    sizes = _mean_products(W, H)
    copies = np.ones(sizes.size, dtype=np.intp)
    for _ in range(n_new):
        copies[np.argmax(sizes / copies)] += 1
    parents = np.repeat(np.arange(copies.size), copies)
    scale, is_copy = copies[parents] ** -0.5, copies[parents] > 1
    W, H = (
        factor[:, parents] * scale * np.where(is_copy, random.uniform(*JITTER, (len(factor), parents.size)), 1.0)
        for factor in (W, H)
    )
    return W, H


def _mean_products(W: Array, H: Array) -> Array:
    """What each component adds to the mean of x over all cells."""
    return W.mean(axis=0, dtype=np.float64) * H.mean(axis=0, dtype=np.float64)


def _threshold_scale(model: Any, n_components: int, train: Observed) -> float:
    """sqrt(b_0 at the start / b_0 as fitted): brings x to the scale of a new fit's thresholds, where it is free."""
    if "levels" not in model.offers:
        return 1.0
    likelihood: Any = prepare(clone(model).set_params(n_components=n_components), train).likelihood
    return float(np.sqrt(likelihood.thresholds[0] / model.thresholds_[0]))

"""Variational inference with gamma priors where x divides (Hoffman, Blei & Cook 2010, GaP-NMF, for Itakura-Saito).

For a likelihood whose push is c / x, with log p(y|x) + c log x the logarithm of a sum of exp(-s / x), each entry's
posterior is the generalised inverse-Gaussian q(w) ~ w^(a - 1) exp(-rate w - inverse_rate / w) with

    rate = b + sum of push * E[h],    inverse_rate = w^2 * sum of pull * h    at harmonic means w = 1 / E[1 / w], and h

where the pulls are taken at the harmonic x^ = <w, h>, and the pushes at the mean x = <E[w], E[h]>. This is coordinate
ascent on the bound that Jensen's inequality, E[-s / x] >= -s / x^, and a tangent, E[-log x] >= -log <E[w], E[h]>, give:

    ELBO = sum of (log p(y|x^) - c log(<E[w], E[h]> / x^)) + sum of (E[log p(w)] - E[log q(w)]),

which therefore never falls. An entry whose harmonic mean has come down to 0 has its prior's shape left, and no pull.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from halfseen.arrays import Array, floored
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood
from halfseen.solvers import gig
from halfseen.solvers.base import State, positive
from halfseen.solvers.task import Task
from halfseen.solvers.variational import Variational

#: How often a step of the likelihood's own parameters is halved before it is given up until the next epoch.
_MOST_HALVINGS = 8


class InverseGaussianFactor(NamedTuple):
    """A factor whose entries are generalised inverse-Gaussian, with their means and harmonic means 1 / E[1 / w]."""

    shape: Any
    rate: Any
    inverse_rate: Any
    mean: Any
    harmonic: Any

    @property
    def linked(self) -> Any:
        return self.harmonic

    @property
    def starts_from(self) -> tuple[str, ...]:
        return "mean", "harmonic"

    def drawn(self, random: np.random.Generator) -> Array:
        """A draw of every entry."""
        return self._of_every_entry(lambda shape, rate, inverse_rate: gig.draw(shape, rate, inverse_rate, random))

    def quantile(self, part: float) -> Array:
        """Below which number this part of every entry's mass is."""
        return self._of_every_entry(lambda shape, rate, inverse_rate: gig.quantile(shape, rate, inverse_rate, part))

    def _of_every_entry(self, function: Callable[..., Array]) -> Array:
        """A function of shape, rate and inverse rate; an entry that no epoch has given a spread is its mean."""
        spread = np.isfinite(self.rate)
        values: Array = self.mean.copy()
        if spread.any():
            rates = (array[spread].astype(np.float64) for array in (self.rate, self.inverse_rate))
            values[spread] = function(float(self.shape[spread][0]), *rates)
        return values


class InverseGaussian(Variational[InverseGaussianFactor]):
    """Alternating: both x are taken anew between the rows' half-step and the columns'; the likelihood is refitted last.

    Its Bessel functions are SciPy's: it runs where arrays are NumPy's.
    """

    name = "inverse-Gaussian"

    def check(self, likelihood: Likelihood) -> None:
        need = "whose push is a constant divided by x, such as that of gamma noise"
        self._needs(likelihood.push_is_inverse, likelihood, need)

    def begin(self, task: Task, W: Array, H: Array) -> State[InverseGaussianFactor]:
        # The bound of a start without a distribution is not defined: any first epoch is a gain.
        return self.at(task, self.begin_factor(W), self.begin_factor(H))

    def at(
        self, task: Task, rows: InverseGaussianFactor, columns: InverseGaussianFactor
    ) -> State[InverseGaussianFactor]:
        x = task.engine.dots(task.cells, rows.harmonic, columns.harmonic)
        return State(rows, columns, x, -np.inf, task.likelihood)

    def begin_factor(self, factor: Array) -> InverseGaussianFactor:
        """The harmonic means equal the means: a distribution without spread."""
        endless = np.broadcast_to(np.asarray(np.inf, dtype=factor.dtype), factor.shape)
        return InverseGaussianFactor(endless, endless, endless, factor, factor)

    def epoch(self, task: Task, state: State[InverseGaussianFactor]) -> State[InverseGaussianFactor]:
        task = task.under(state.likelihood)
        dots = task.engine.dots
        rows, row_gain = self._move(task, state.rows, state.columns, Side.ROWS, state.cells)
        x = dots(task.cells, rows.harmonic, state.columns.harmonic, into=state.cells)
        columns, column_gain = self._move(task, state.columns, rows, Side.COLUMNS, x)
        x = dots(task.cells, rows.harmonic, columns.harmonic, into=x)
        means = dots(task.cells, rows.mean, columns.mean)
        task, gain = self._refitted(task, x, means)
        return State(rows, columns, x, gain + row_gain + column_gain, task.likelihood)

    def half_step(
        self, task: Task, near: InverseGaussianFactor, far: InverseGaussianFactor, side: Side, x: Any
    ) -> InverseGaussianFactor:
        return self._move(task, near, far, side, x)[0]

    def _move(
        self, task: Task, near: InverseGaussianFactor, far: InverseGaussianFactor, side: Side, x: Any
    ) -> tuple[InverseGaussianFactor, float]:
        """The side's new distribution, and what prior and spread add to the bound."""
        engine, likelihood, prior = task.engine, task.likelihood, self.priors[side]
        pull = _each(task, lambda y, x: likelihood.pull_push(y, x)[0], x)
        P = engine.spread(task.cells, pull, far.harmonic, side)
        rows, columns = (near, far) if side is Side.ROWS else (far, near)
        means = engine.dots(task.cells, rows.mean, columns.mean, into=pull)
        Q = engine.spread(task.cells, _each(task, likelihood.push, means), far.mean, side)
        b = np.broadcast_to(np.asarray(prior.rates(near.mean), dtype=P.dtype), (len(P), 1))
        a, constant = prior.shape, float(gammaln(prior.shape))

        def posterior(P: Any, Q: Any, harmonic: Any, b: Any) -> tuple[Any, ...]:
            dtype = P.dtype
            P, Q, harmonic, b = (array.astype(np.float64) for array in (P, Q, harmonic, b))
            root, rate = harmonic * np.sqrt(P), b + Q
            log_norm, mean, harmonic, inverse_part = gig.moments(a, rate, root)
            # E[log p(w)] - E[log q(w)], entry by entry: both have (a - 1) E[log w].
            gain = a * np.log(b) - constant + log_norm + Q * mean + inverse_part
            rate, inverse_rate, mean, harmonic = (array.astype(dtype) for array in (rate, root**2, mean, harmonic))
            return rate, inverse_rate, mean, positive(harmonic), gain.sum(axis=1)

        *arrays, gain = engine.each(posterior, P, Q, near.harmonic, b)
        shape = np.broadcast_to(np.asarray(a, dtype=P.dtype), P.shape)
        return InverseGaussianFactor(shape, *arrays), engine.total(lambda gain: gain, gain)

    def _refitted(self, task: Task, x: Any, means: Any) -> tuple[Task, float]:
        """The likelihood's parameters stepped towards the best for x^, if that gains; the cells' part of the bound."""
        gain, likelihood = _gain_of_cells(task, x, means), task.likelihood
        if not getattr(likelihood, "learned", False):
            return task, gain
        new: Any = likelihood
        (sums,) = task.engine.tally(lambda *cell: (new.derivatives(*cell),), task.cells.y, x, *_weights(task))
        new = new.stepped(sums)
        for _ in range(_MOST_HALVINGS):
            if (new_gain := _gain_of_cells(task.under(new), x, means)) >= gain:
                return task.under(new), new_gain
            new = new.halfway(likelihood)
        return task, gain

    def blank(self, average: Array, count: int, side: Side) -> InverseGaussianFactor:
        """The prior around the average: such a row is as uncertain as the prior."""
        mean = np.repeat(np.maximum(average, np.finfo(average.dtype).tiny ** 0.5)[None], count, axis=0)
        shape = np.full_like(mean, self.priors[side].shape)
        harmonic = np.maximum(1.0 - 1.0 / shape, 0.0) * mean
        return InverseGaussianFactor(shape, shape / mean, np.zeros_like(mean), mean, harmonic)


def _weights(task: Task) -> tuple[Any, ...]:
    return () if task.cells.weights is None else (task.cells.weights,)


def _each(task: Task, rule: Callable[..., Any], x: Any) -> Any:
    """A rule of y and x at every seen cell, times its weight; x is used up."""

    def weighed(y: Any, x: Any, *weight: Any) -> Any:
        return rule(y, x) * weight[0] if weight else rule(y, x)

    return task.engine.each(weighed, task.cells.y, x, *_weights(task), into=(x,))


def _gain_of_cells(task: Task, x: Any, means: Any) -> float:
    """Sum of log p(y|x) - c log(mean x / x) at the harmonic x, where the push is c / x."""
    likelihood = task.likelihood

    def gain(y: Any, x: Any, mean: Any, *weight: Any) -> Any:
        x = floored(x, likelihood.root)
        gain = likelihood.push(y, x) * x * np.log(x / mean) - likelihood.divergence(y, x)
        return gain * weight[0] if weight else gain

    return task.engine.total(gain, task.cells.y, x, means, *_weights(task)) + task.saturated

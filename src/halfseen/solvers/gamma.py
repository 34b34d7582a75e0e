"""Variational inference with gamma priors (`ordnmf-2020`, Algorithm 1, without its thresholds; Cemgil 2009 for counts).

Each entry's posterior is q(w) = Gamma(shape, rate) with

    shape = a + w~ * sum of pull * h~,    rate = b + sum of push * E[h]

where w~ = exp(E[log w]) is the geometric mean, and the pulls are taken at x~ = <w~, h~>. Each step is a coordinate
ascent on the evidence lower bound

    ELBO = sum of (log p(y|x~) + push x~) - sum of push E[w] E[h] + sum of (E[log p(w)] - E[log q(w)]),

which therefore never falls.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaincinv, gammaln

from halfseen.arrays import Array, namespace
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood
from halfseen.solvers.base import State, positive
from halfseen.solvers.task import Task
from halfseen.solvers.variational import Variational


class GammaFactor(NamedTuple):
    """A factor whose entries are Gamma(shape, rate), with their means and geometric means exp(E[log])."""

    shape: Any
    rate: Any
    mean: Any
    geometric: Any

    @property
    def linked(self) -> Any:
        return self.geometric

    @property
    def starts_from(self) -> tuple[str, ...]:
        return "mean", "geometric"

    def drawn(self, random: np.random.Generator) -> Array:
        """A draw of every entry; one that no epoch has given a spread is its mean."""
        spread = np.isfinite(self.shape)
        drawn = random.standard_gamma(np.where(spread, self.shape, 1.0)) / np.where(spread, self.rate, 1.0)
        return np.where(spread, drawn, self.mean).astype(self.mean.dtype)

    def quantile(self, part: float) -> Array:
        """Below which number this part of every entry's mass is."""
        spread = np.isfinite(self.shape)
        shape, rate = (np.where(spread, array, 1.0) for array in (self.shape, self.rate))
        return np.where(spread, gammaincinv(shape, part) / rate, self.mean).astype(self.mean.dtype)


class Gamma(Variational[GammaFactor]):
    """Joint: the shapes of rows and columns come from the same x~; the columns' rates from the new row means."""

    name = "gamma"

    def check(self, likelihood: Likelihood) -> None:
        self._needs(likelihood.push_is_constant, likelihood, "whose push does not depend on x, such as Poisson's")

    def begin(self, task: Task, W: Array, H: Array) -> State[GammaFactor]:
        rows, columns = self.begin_factor(W), self.begin_factor(H)
        # The bound of a start without a distribution is not defined: any first epoch is a gain.
        return self.at(task, rows, columns)

    def at(self, task: Task, rows: GammaFactor, columns: GammaFactor) -> State[GammaFactor]:
        return self._between(task, rows, columns, -np.inf)

    def _between(
        self, task: Task, rows: GammaFactor, columns: GammaFactor, gains: float, into: Any | None = None
    ) -> State[GammaFactor]:
        """The local step: pulls and sums of E[n] at x~, and the bound, to which prior and pushes add `gains`."""
        x = task.engine.dots(task.cells, rows.linked, columns.linked, into=into)
        pull, bound, of_counts = task.pull_and_bound(x)
        return State(rows, columns, (pull, of_counts), bound + gains, task.likelihood)

    def begin_factor(self, factor: Array) -> GammaFactor:
        """The geometric means equal the means, as in the paper: a distribution without spread."""
        xp = namespace(factor)
        endless = xp.broadcast_to(xp.asarray(np.inf, dtype=factor.dtype), factor.shape)
        return GammaFactor(endless, endless, factor, factor)

    def epoch(self, task: Task, state: State[GammaFactor]) -> State[GammaFactor]:
        task = task.under(state.likelihood)
        pull, of_counts = state.cells
        if task.likelihood.learns:  # the pulls stay those at x~, the pushes become the new ones (Algorithm 1, line 11)
            task = task.refitted(of_counts, state.rows.mean, state.columns.mean)
        push = task.push()
        spread = task.engine.spread
        row_pulls = spread(task.cells, pull, state.columns.geometric, Side.ROWS)
        column_pulls = spread(task.cells, pull, state.rows.geometric, Side.COLUMNS)
        rows, row_gain, _ = self._move(task, state.rows, state.columns, Side.ROWS, row_pulls, push)
        columns, column_gain, pushed = self._move(task, state.columns, rows, Side.COLUMNS, column_pulls, push)
        return self._between(task, rows, columns, row_gain + column_gain - pushed, into=pull)

    def half_step(self, task: Task, near: GammaFactor, far: GammaFactor, side: Side, x: Any) -> GammaFactor:
        pull, push = task.pull_push(x)
        return self._move(task, near, far, side, task.engine.spread(task.cells, pull, far.geometric, side), push)[0]

    def _move(
        self, task: Task, near: GammaFactor, far: GammaFactor, side: Side, P: Any, push: Any
    ) -> tuple[GammaFactor, float, float]:
        """The side's new distribution, what prior and spread add to the bound, and the sum of push * E[x]."""
        prior, engine = self.priors[side], task.engine
        xp = namespace(P)
        Q = xp.broadcast_to(task.pushes(push, near.mean, far.mean, side), P.shape)
        b = xp.broadcast_to(xp.asarray(prior.rates(near.mean), dtype=P.dtype), (P.shape[0], 1))
        a, constant = prior.shape, float(gammaln(prior.shape))

        def posterior(P: Any, Q: Any, geometric: Any, b: Any) -> tuple[Any, ...]:
            shape, rate = a + geometric * P, b + Q
            log_rate = xp.log(rate)
            log_mean, log_gamma = engine.digamma_and_log_gamma(shape)
            mean = shape / rate
            # E[log p(w)] - E[log q(w)], where E[log w] = digamma(shape) - log_rate: entry by entry, as far as it must
            # be, then for each row.
            gain = _row_sums((a - shape) * log_mean + log_gamma + shape - a * log_rate)
            gain += P.shape[1] * (a * xp.log(b[:, 0]) - constant) - b[:, 0] * _row_sums(mean)
            pushed = _row_sums(mean * Q)
            log_mean -= log_rate
            return shape, rate, mean, positive(xp.exp(log_mean)), gain, pushed

        *arrays, gain, pushed = engine.each(posterior, P, Q, near.geometric, b, into=(P,))
        return GammaFactor(*arrays), engine.total(_itself, gain), engine.total(_itself, pushed)

    def blank(self, average: Array, count: int, side: Side) -> GammaFactor:
        """The prior's shape around the average: such a row is as uncertain as the prior."""
        mean = np.repeat(np.maximum(average, np.finfo(average.dtype).tiny ** 0.5)[None], count, axis=0)
        shape = np.full_like(mean, self.priors[side].shape)
        return GammaFactor(shape, shape / mean, mean, np.exp(digamma(shape)) / shape * mean)


def _row_sums(array: Any) -> Any:
    xp = namespace(array)
    return xp.sum(array, axis=1, dtype=xp.float64)


def _itself(array: Any) -> Any:
    return array

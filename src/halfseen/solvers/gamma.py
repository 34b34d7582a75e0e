"""Variational inference with gamma priors (`ordnmf-2020`, Algorithm 1, without its thresholds; Cemgil 2009 for counts).

Each entry's posterior is q(w) = Gamma(shape, rate) with

    shape = a + w~ * sum of pull * h~,    rate = b + sum of push * E[h]

where w~ = exp(E[log w]) is the geometric mean, and the pulls are taken at x~ = w~ @ h~. Each step is a coordinate
ascent on the evidence lower bound

    ELBO = sum of (log p(y|x~) + push x~) - sum of push E[w] E[h] + sum of (E[log p(w)] - E[log q(w)]),

which therefore never falls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, gammaincinv, gammaln

from halfseen.arrays import Array, namespace
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood
from halfseen.solvers.base import (
    NON_NEGATIVE,
    POSITIVE_OR_INFINITE,
    FactorT,
    GammaPrior,
    Solver,
    State,
    flush_to_zero,
    stored_as,
)
from halfseen.solvers.problem import Problem


@stored_as(shape=POSITIVE_OR_INFINITE, rate=POSITIVE_OR_INFINITE, mean=NON_NEGATIVE, geometric=NON_NEGATIVE)
class GammaFactor(NamedTuple):
    """A factor whose entries are Gamma(shape, rate), with their means and geometric means exp(E[log]).

    Shape and rate are infinite before the first epoch: a distribution without spread."""

    shape: Any
    rate: Any
    mean: Any
    geometric: Any

    @property
    def plug_in(self) -> Any:
        return self.geometric

    @property
    def extrapolated(self) -> tuple[str, ...]:
        return "mean", "geometric"

    def sample(self, random: np.random.Generator) -> Array:
        """A draw of every entry; its mean where there is no spread yet."""
        spread = np.isfinite(self.shape)
        draws = random.standard_gamma(np.where(spread, self.shape, 1.0)) / np.where(spread, self.rate, 1.0)
        return np.where(spread, draws, self.mean).astype(self.mean.dtype)

    def quantile(self, p: float) -> Array:
        """The p-quantile of every entry."""
        spread = np.isfinite(self.shape)
        shape, rate = (np.where(spread, array, 1.0) for array in (self.shape, self.rate))
        return np.where(spread, gammaincinv(shape, p) / rate, self.mean).astype(self.mean.dtype)


@dataclass(frozen=True, eq=False)
class Variational(Solver[FactorT]):
    """Coordinate ascent on a lower bound of the evidence, with gamma priors; the bound never falls."""

    rows: GammaPrior = field(default_factory=GammaPrior)
    columns: GammaPrior = field(default_factory=GammaPrior)

    minimizes = False
    #: Momentum in the first, large epochs makes more components die, and the bound end lower.
    momentum_below = 3e-3
    state: ClassVar[Mapping[str, Any]] = {"rows": GammaPrior, "columns": GammaPrior}
    start_requirement = ", in every row at least one above 0"

    @property
    def priors(self) -> dict[Side, GammaPrior]:
        """Priors of rows and of columns."""
        return {Side.ROWS: self.rows, Side.COLUMNS: self.columns}

    def accepts_start(self, factor: Array) -> bool:
        """A row of zeros has no distribution, and would stay 0."""
        return bool(np.all(factor.sum(axis=1) > 0))

    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Means from Gamma(1, 1), as in `ordnmf-2020`."""
        return random.standard_gamma(1.0, size=size)

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """The bound's relative rise is at most tol."""
        return current - previous <= tol * abs(current)


class Gamma(Variational[GammaFactor]):
    """Joint: the shapes of rows and columns come from the same x~; the columns' rates from the new row means."""

    name = "gamma"

    def check(self, likelihood: Likelihood) -> None:
        self._require(likelihood.push_is_constant, likelihood, "whose push does not depend on x, such as Poisson's")

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[GammaFactor]:
        rows, columns = self.init_factor(W), self.init_factor(H)
        # The bound of a start without a distribution is not defined: any first epoch gains.
        return self.state_at(problem, rows, columns)

    def state_at(self, problem: Problem, rows: GammaFactor, columns: GammaFactor) -> State[GammaFactor]:
        return self._state(problem, rows, columns, -np.inf)

    def _state(
        self, problem: Problem, rows: GammaFactor, columns: GammaFactor, gains: float, into: Any | None = None
    ) -> State[GammaFactor]:
        """The local step: pulls and sums of E[n] at x~, and the bound, to which prior and pushes add `gains`."""
        x = problem.engine.sddmm(problem.cells, rows.plug_in, columns.plug_in, into=into)
        pull, bound, of_counts = problem.pull_and_bound(x)
        return State(rows, columns, (pull, of_counts), bound + gains, problem.likelihood)

    def init_factor(self, factor: Array) -> GammaFactor:
        """The geometric means equal the means, as in the paper: a distribution without spread."""
        xp = namespace(factor)
        infinite = xp.broadcast_to(xp.asarray(np.inf, dtype=factor.dtype), factor.shape)
        return GammaFactor(infinite, infinite, factor, factor)

    def epoch(self, problem: Problem, state: State[GammaFactor]) -> State[GammaFactor]:
        problem = problem.with_likelihood(state.likelihood)
        pull, of_counts = state.cells
        if problem.likelihood.learns:  # pulls stay those at x~, pushes become new (Algorithm 1, line 11)
            problem = problem.update_parameters(of_counts, state.rows.mean, state.columns.mean)
        push = problem.push()
        spmm = problem.engine.spmm
        row_pulls = spmm(problem.cells, pull, state.columns.geometric, Side.ROWS)
        column_pulls = spmm(problem.cells, pull, state.rows.geometric, Side.COLUMNS)
        rows, row_gain, _ = self._update(problem, state.rows, state.columns, Side.ROWS, row_pulls, push)
        columns, column_gain, pushed = self._update(problem, state.columns, rows, Side.COLUMNS, column_pulls, push)
        return self._state(problem, rows, columns, row_gain + column_gain - pushed, into=pull)

    def half_step(self, problem: Problem, near: GammaFactor, far: GammaFactor, side: Side, x: Any) -> GammaFactor:
        pull, push = problem.pull_push(x)
        P = problem.engine.spmm(problem.cells, pull, far.geometric, side)
        return self._update(problem, near, far, side, P, push)[0]

    def _update(
        self, problem: Problem, near: GammaFactor, far: GammaFactor, side: Side, P: Any, push: Any
    ) -> tuple[GammaFactor, float, float]:
        """The side's new distribution, its prior and entropy terms of the bound, and the sum of push * E[x]."""
        prior, engine = self.priors[side], problem.engine
        xp = namespace(P)
        Q = xp.broadcast_to(problem.pushes(push, near.mean, far.mean, side), P.shape)
        b = xp.broadcast_to(xp.asarray(prior.rates(near.mean), dtype=P.dtype), (P.shape[0], 1))
        a, constant = prior.shape, float(gammaln(prior.shape))

        def posterior(P: Any, Q: Any, geometric: Any, b: Any) -> tuple[Any, ...]:
            shape, rate = a + geometric * P, b + Q
            log_rate = xp.log(rate)
            log_mean, log_gamma = engine.digamma_and_log_gamma(shape)
            mean = shape / rate
            # E[log p(w)] - E[log q(w)], where E[log w] = digamma(shape) - log_rate: by entry as far as necessary,
            # then by row.
            gain = _row_sums((a - shape) * log_mean + log_gamma + shape - a * log_rate)
            gain += P.shape[1] * (a * xp.log(b[:, 0]) - constant) - b[:, 0] * _row_sums(mean)
            pushed = _row_sums(mean * Q)
            log_mean -= log_rate
            return shape, rate, mean, flush_to_zero(xp.exp(log_mean)), gain, pushed

        *arrays, gain, pushed = engine.map(posterior, P, Q, near.geometric, b, into=(P,))
        return GammaFactor(*arrays), engine.sum(lambda gain: gain, gain), engine.sum(lambda pushed: pushed, pushed)

    def default_factor(self, average: Array, count: int, side: Side) -> GammaFactor:
        """The prior's shape around the average: a row without data is as uncertain as the prior."""
        mean = np.repeat(np.maximum(average, np.finfo(average.dtype).tiny ** 0.5)[None], count, axis=0)
        shape = np.full_like(mean, self.priors[side].shape)
        return GammaFactor(shape, shape / mean, mean, np.exp(digamma(shape)) / shape * mean)


def _row_sums(array: Any) -> Any:
    xp = namespace(array)
    return xp.sum(array, axis=1, dtype=xp.float64)

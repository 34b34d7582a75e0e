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

from halfseen.arrays import Array, namespace, special
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood, rules
from halfseen.likelihoods.rules import Terms
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
        # The bound of a start without a distribution is not defined: any first epoch gains.
        return self.state_at(problem, self.init_factor(W), self.init_factor(H))

    def state_at(self, problem: Problem, rows: GammaFactor, columns: GammaFactor) -> State[GammaFactor]:
        means = problem.means(rows.mean, columns.mean)
        return self._state(problem, rows, columns, None, means)

    def _state(
        self, problem: Problem, rows: GammaFactor, columns: GammaFactor, gains: Any, means: Any, for_next: bool = True
    ) -> State[GammaFactor]:
        """The local step: sums of pulls at x~, and the bound, of which `gains` are the terms of priors and pushes."""
        sides = (Side.ROWS, Side.COLUMNS) if for_next else ()
        local = problem.sweep(rules.pulls, rows.geometric, columns.geometric, *sides)
        (bound, *of_counts), *others = problem.engine.fetch(
            local.totals, *(vector for vector in (means, gains) if vector is not None)
        )
        kept = Local(local.rows, local.columns, np.array(of_counts), others[0] if means is not None else np.empty(0))
        objective = -np.inf if gains is None else float(bound) + problem.saturated + float(others[-1].sum())
        return State(rows, columns, kept, objective, problem.likelihood)

    def init_factor(self, factor: Array) -> GammaFactor:
        """The geometric means equal the means, as in the paper: a distribution without spread."""
        infinite = namespace(factor).full_like(factor, np.inf)
        return GammaFactor(infinite, infinite, factor, factor)

    def epoch(
        self, problem: Problem, state: State[GammaFactor], *, for_next: bool = True
    ) -> State[GammaFactor]:  # fmt: skip
        problem, kept = problem.with_likelihood(state.likelihood), state.kept
        if not kept.rows:
            kept = self.state_at(problem, state.rows, state.columns).kept
        (P_rows,), (P_columns,) = kept.rows, kept.columns
        if problem.likelihood.learns:  # pulls stay those at x~, pushes become new (Algorithm 1, line 11)
            problem = problem.refit(kept.of_counts, kept.of_means)
        rows, row_gains = self._update(problem, state.rows, state.columns, Side.ROWS, P_rows)
        columns, column_gains = self._update(problem, state.columns, rows, Side.COLUMNS, P_columns)
        means = problem.means(rows.mean, columns.mean) if for_next else None
        # Of the sums of push * E[x] only the last one, at the new means of both sides, is a term of the bound.
        gains = row_gains[:1] + column_gains[:1] - column_gains[1:]
        return self._state(problem, rows, columns, gains, means, for_next)

    def kept_to_save(self, kept: Any) -> Any:
        if not kept.rows:  # the next epoch starts elsewhere
            return (kept.of_counts, "host"), (kept.of_means, "host")
        (rows,), (columns,) = kept.rows, kept.columns
        return (kept.of_counts, "host"), (kept.of_means, "host"), (rows, Side.ROWS), (columns, Side.COLUMNS)

    def kept_again(self, problem: Problem, rows: GammaFactor, columns: GammaFactor, saved: Any) -> Any:
        of_counts, of_means, *pulls = saved
        return Local(tuple(pulls[:1]), tuple(pulls[1:]), of_counts, of_means)

    def half_step(self, problem: Problem, near: GammaFactor, far: GammaFactor, side: Side) -> GammaFactor:
        W, H = (near.geometric, far.geometric) if side is Side.ROWS else (far.geometric, near.geometric)
        sums = problem.sweep(rules.pulls, W, H, side)
        return self._update(problem, near, far, side, (sums.rows or sums.columns)[0])[0]

    def _update(
        self, problem: Problem, near: GammaFactor, far: GammaFactor, side: Side, P: Any
    ) -> tuple[GammaFactor, Any]:
        """The side's new distribution; its prior and entropy terms of the bound, and the sum of push * E[x]."""
        prior = self.priors[side]
        Q = problem.pushes(near.mean, far.mean, side)
        row, Q = (Q, None) if Q.ndim == 1 else (None, Q)
        b = prior.rates(near.mean)
        if prior.rate is not None:
            b = namespace(P).full_like(P[:, :1], prior.rate)
        params = (prior.shape, float(gammaln(prior.shape)), row)
        arrays, gains = problem.map(gamma_posterior, params, P, Q, near.geometric, b, side=side)
        return GammaFactor(*arrays), gains

    def default_factor(self, average: Array, count: int, side: Side) -> GammaFactor:
        """The prior's shape around the average: a row without data is as uncertain as the prior."""
        mean = np.repeat(np.maximum(average, np.finfo(average.dtype).tiny ** 0.5)[None], count, axis=0)
        shape = np.full_like(mean, self.priors[side].shape)
        return GammaFactor(shape, shape / mean, mean, np.exp(digamma(shape)) / shape * mean)


class Local(NamedTuple):
    """What a local step leaves for the next epoch."""

    rows: tuple[Any, ...]
    """The sum of pull * h~ along rows; nothing if the next epoch was to start elsewhere."""
    columns: tuple[Any, ...]
    """The sum of pull * w~ along columns."""
    of_counts: Array
    """Sums of E[n], for likelihoods that learn."""
    of_means: Array
    """Sums of E[x]."""


def gamma_posterior(params: tuple[float, float, Any], P: Any, Q: Any, geometric: Any, b: Any) -> Terms:
    """Gamma(shape, rate) of every entry of a factor, with its mean and geometric mean.

    The totals are E[log p(w)] - E[log q(w)], by row, and push * E[x]. Parameters are the prior's shape a, the logarithm
    of gamma(a), and the row of Q where all have the same.
    """
    a, log_gamma_a, row = params
    xp = namespace(P)
    Q = xp.broadcast_to(row, P.shape) if Q is None else Q
    shape, rate = a + geometric * P, b + Q
    log_rate, log_mean, mean = xp.log(rate), special("digamma", shape), shape / rate
    # E[log w] = digamma(shape) - log_rate
    gain = _row_sums((a - shape) * log_mean + special("gammaln", shape) + shape - a * log_rate)
    gain = gain + P.shape[1] * (a * xp.log(b[:, 0]) - log_gamma_a) - b[:, 0] * _row_sums(mean)
    arrays = (shape, rate, mean, flush_to_zero(xp.exp(log_mean - log_rate)))
    return Terms(arrays, (gain, _row_sums(mean * Q)))


def _row_sums(array: Any) -> Any:
    xp = namespace(array)
    return xp.sum(array, axis=1, dtype=xp.float64)

"""The problem to be fitted: the observed cells, their likelihood, and the contribution of unseen cells."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import Array, in_parts, namespace
from halfseen.engines import DeviceCells, Engine, Rule, Side, Sums
from halfseen.engines.threads import shard_blocks
from halfseen.likelihoods import Likelihood, Quadratic, UnseenPush, rules
from halfseen.likelihoods.rules import CellParams, Terms

#: Cells per chunk of `saturated`, so that no temporary array of all cells is made.
_CELLS_PER_CHUNK = 1 << 17


class GramCache:
    """F^T F of the last two factors: those of both sides of a fit, each of which is needed several times."""

    def __init__(self, engine: Engine[Any]) -> None:
        self._engine = engine
        self._last: list[tuple[Any, Any]] = []

    def get(self, factor: Any, shards: Any) -> Any:
        for known, gram in self._last:
            if known is factor:
                return gram
        gram = self._engine.gram(factor, shards)
        self._last = [*self._last[-1:], (factor, gram)]
        return gram


@dataclass(frozen=True)
class Problem:
    """Cells, likelihood and engine. Weights and unseen cells are handled here, for all solvers.

    Parameters
    ----------
    engine : Engine
        Where to compute.
    cells : DeviceCells
        The observed cells, as `engine.place` returns them.
    likelihood : Likelihood
        The likelihood of their values.
    """

    engine: Engine[Any]
    cells: DeviceCells
    likelihood: Likelihood

    @cached_property
    def grams(self) -> GramCache:
        return GramCache(self.engine)

    def gram(self, factor: Any, side: Side) -> Any:
        """F^T F of one side's factor."""
        return self.grams.get(factor, self.shards(side))

    def shards(self, side: Side) -> Any:
        """Entries of a side's factor that are to be summed apart."""
        return self.cells.row_shards if side is Side.ROWS else None

    def map(self, rule: Rule, params: Any, *arrays: Any, side: Side) -> tuple[tuple[Any, ...], Any]:
        """`Engine.map` on arrays with a row for each row (or column, by `side`) of the matrix."""
        return self.engine.map(rule, params, *arrays, shards=self.shards(side))

    def draws(self, random: np.random.RandomState) -> Any:
        """What a random start is drawn from: where there are several shards, a stream for each row, so that neither
        shards nor workers change it."""
        if len(shard_blocks(self.cells.observed.indptr)) == 1:
            return random
        return self.engine.row_draws(int(random.randint(2**31)))

    @property
    def zeros(self) -> UnseenPush | None:
        """The push of an unseen cell that counts as a zero; None if unseen cells are missing."""
        return self.likelihood.unseen if self.cells.observed.unseen == "zero" else None

    @property
    def params(self) -> CellParams:
        """Parameters of the rules."""
        return CellParams(self.likelihood, self.zeros)

    @property
    def push_cancels(self) -> bool:
        """Whether every observed cell pushes just as an unseen zero does, so that the whole grid is all there is."""
        plain = self.cells.weights is None and self.cells.is_first_at_cell is None
        return plain and self.zeros is not None and self.likelihood.pushes_as_unseen

    def sweep(self, rule: Rule, W: Any, H: Any, *sides: Side) -> Sums:
        """A pass over the cells with a rule of `likelihoods.rules`."""
        n_levels = 0 if self.likelihood.highest is None else self.likelihood.highest + 1
        return self.engine.sweep(self.cells, rule, self.params, W, H, *sides, n_levels=n_levels)

    def map_cells(self, rule: Rule, x: Any) -> tuple[tuple[Any, ...], Any]:
        """Arrays and totals of a rule of the likelihood, y, x and weights at every observed cell."""
        n_levels = getattr(self.likelihood, "n_codes", 0)
        arrays = (self.cells.y, x, self.cells.weights)
        return self.engine.map(rule, self.likelihood, *arrays, n_levels=n_levels, shards=self.cells.cell_shards)

    def quadratic(self, x: Any) -> Quadratic:
        """Weighted cost, slope and curvature of every observed cell at x, under a `SmoothOrdinal` likelihood."""
        return Quadratic(*self.map_cells(rules.quadratics, x)[0])

    def costs(self, x: Any) -> Quadratic:
        """Weighted cost of every observed cell at x, without derivatives."""
        (cost,), _ = self.map_cells(rules.divergences, x)
        return Quadratic(cost, None, None)

    def parameter_sums(self, x: Any) -> Array:
        """The sums that a `SmoothOrdinal` likelihood needs to update its parameters."""
        return self.engine.fetch(self.map_cells(rules.parameter_terms, x)[1])[0]

    def with_likelihood(self, likelihood: Likelihood) -> "Problem":
        """The same cells with another likelihood."""
        if likelihood is self.likelihood:
            return self
        other = replace(self, likelihood=likelihood)
        # What does not depend on the likelihood stays cached.
        other.__dict__.update(grams=self.grams, _has_data_by_side=self._has_data_by_side)
        return other

    def refit(self, of_counts: Array, of_means: Array) -> "Problem":
        """With the likelihood refitted to sums of E[n] and of E[x], as `means` gives them."""
        likelihood: Any = self.likelihood  # a `LearningLikelihood`
        if not likelihood.learns_from_means:
            return self.with_likelihood(likelihood.refit(of_counts, np.empty(0), 0.0))
        unseen_mean = 0.0 if self.zeros is None else float(of_means[0])
        return self.with_likelihood(likelihood.refit(of_counts, of_means[1:], unseen_mean))

    def means(self, W: Any, H: Any) -> Any:
        """The sums that `refit` needs of E[x] at x = W_u @ H_i, that of unseen zeros first; None if it needs none."""
        likelihood: Any = self.likelihood
        if not (likelihood.learns and likelihood.learns_from_means):
            return None
        return self.unseen_first(self.sweep(rules.means, W, H).totals, W, H)

    def unseen_first(self, totals: Any, W: Any, H: Any) -> Any:
        """Totals whose first is a sum over observed cells; it becomes that over all the others, where zeros count."""
        if self.zeros is None:
            return totals
        xp = namespace(totals)
        return xp.concat([self._grid_sum(W, H) - totals[:1], totals[1:]])

    def _unseen_push(self, near: Any, far: Any, side: Side) -> Any:
        """The push on each row of `near` if every cell of the grid were an unseen zero; the number 0 if none counts."""
        if self.zeros is None:
            return 0.0
        if self.zeros.power == 0:
            return self.zeros.scale * self.engine.column_sums(far, self.shards(side.other))
        return self.map(_times, self.zeros.scale * self.gram(far, side.other), near, side=side)[0][0]

    def pulls_and_pushes(self, near: Any, far: Any, side: Side) -> tuple[Any, Any, Any]:
        """P and Q of a half-step, and the summed divergence, but for that of unseen zeros."""
        W, H = (near, far) if side is Side.ROWS else (far, near)
        sums = self.sweep(rules.pulls_and_pushes, W, H, side)
        P, Q = sums.rows or sums.columns
        return P, self.with_unseen(Q, near, far, side), sums.totals

    def pushes(self, near: Any, far: Any, side: Side) -> Any:
        """Q of a half-step, where the push does not depend on x: of all cells along each row of `near`, or one row for
        all of them."""
        if self.push_cancels:
            return self._unseen_push(near, far, side)
        factors = (None, far) if side is Side.ROWS else (far, None)
        sums = self.sweep(rules.pushes, *factors, side)
        return self.with_unseen((sums.rows or sums.columns)[0], near, far, side)

    def with_unseen(self, from_seen: Any, near: Any, far: Any, side: Side) -> Any:
        """The pushes of observed cells and of all unseen zeros."""
        Q = from_seen + self._unseen_push(near, far, side)
        if self.zeros is None or self.cells.weights is None:
            return Q
        # Where cells of weight 0 cancel all of the grid's push, the rest is rounding error.
        return namespace(Q).where(self._has_data(side) & (Q > 0), Q, 0.0)

    def weight_along(self, side: Side) -> Array:
        """The weight of all cells that count of each row (or column), on the host; unseen zeros count."""
        observed, axis = self.cells.observed, 0 if side is Side.ROWS else 1

        def sums(numbers: Array | None) -> Array:
            if numbers is None:
                return observed.seen_per_row() if side is Side.ROWS else observed.seen_per_column()
            sums = np.zeros(observed.shape[axis])
            positions = observed.row_of_cell() if side is Side.ROWS else observed.indices
            for position, number in in_parts(positions, numbers):
                np.add.at(sums, position, number)  # in the order of the cells
            return sums

        weight = sums(observed.weights).astype(np.float64)
        if self.zeros is not None:
            weight += observed.shape[1 - axis] - sums(observed.is_first_at_cell)
        return weight

    def _has_data(self, side: Side) -> Any:
        """Mask of rows (or columns), as one column, with a cell that counts: an observed one, or an unseen zero."""
        if side not in self._has_data_by_side:
            self._has_data_by_side[side] = self.engine.asarray((self.weight_along(side) > 0)[:, None], side)
        return self._has_data_by_side[side]

    @cached_property
    def _has_data_by_side(self) -> dict[Side, Array]:
        return {}

    def divergence(self, W: Any, H: Any) -> float:
        """The summed divergence between values and x, over the observed cells or, where zeros count, over all."""
        return float(
            sum(one[0] for one in self.engine.fetch(self.sweep(rules.costs, W, H).totals, *self.cost_of_zeros(W, H)))
        )

    @cached_property
    def saturated(self) -> float:
        """The log-likelihood of the observed cells if every x were its y."""
        observed, total = self.cells.observed, 0.0
        if self.likelihood.saturated_is_zero:
            return total
        of_small = self.likelihood.saturated(np.arange(1000.0))  # most values are small counts: looked up, not computed
        for start in range(0, observed.nnz, _CELLS_PER_CHUNK):
            part = slice(start, start + _CELLS_PER_CHUNK)
            values = np.clip(observed.values[part], 0, of_small.size - 1).astype(np.intp)
            if np.array_equal(values, observed.values[part]):
                saturated = of_small[values]
            else:
                saturated = self.likelihood.saturated(observed.values[part].astype(np.float64))
            total += float(np.sum(saturated if observed.weights is None else saturated * observed.weights[part]))
        return total

    @property
    def weight_of_cells(self) -> float:
        """The sum of the weights of all cells that count; where zeros count, of the unseen ones too."""
        observed = self.cells.observed
        seen = observed.nnz if observed.weights is None else float(observed.weights.sum(dtype=np.float64))
        return seen + (0 if self.zeros is None else observed.n_unobserved)

    def cost_of_zeros(self, W: Any, H: Any) -> list[Any]:
        """The cost of the whole grid if every cell were an unseen zero, as a vector; empty if none counts."""
        if self.zeros is None:
            return []
        return [self.zeros.scale * (1.0 if self.zeros.power == 0 else 0.5) * self._grid_sum(W, H)]

    def _grid_sum(self, W: Any, H: Any) -> Any:
        """The sum over the whole grid of x, or of x^2 where an unseen zero pushes in proportion to x, as a vector."""
        xp = namespace(W)
        if self.zeros is None or self.zeros.power == 0:
            terms = self.engine.column_sums(W, self.shards(Side.ROWS)) * self.engine.column_sums(H)
        else:
            terms = self.gram(W, Side.ROWS) * self.gram(H, Side.COLUMNS)
        return xp.reshape(xp.sum(terms, dtype=xp.float64), (1,))


def _times(matrix: Any, rows: Any) -> Terms:
    return Terms((rows @ matrix,))


def has_data(seen: Array, unseen: str) -> Array:
    """Mask of rows (or columns) with a cell that counts: all where zeros count, else those with an observed cell."""
    return (seen > 0) | (unseen == "zero")


def where(mask: Array, yes: Any, no: Any) -> Any:
    """The rows of one factor where the mask holds, of the other elsewhere."""
    if not mask.any():
        return no
    return yes._make(where_rows(mask, a, b) for a, b in zip(yes, no, strict=True))


def where_rows(mask: Array, yes: Any, no: Any) -> Any:
    """The rows of one array where the mask, on the host, holds, of the other elsewhere."""
    xp = namespace(yes)
    return xp.where(mask[:, None] if xp is np else xp.asarray(mask[:, None], device=yes.device), yes, no)

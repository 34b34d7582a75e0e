"""The Markov chain over couplings, factors and noise variances. Importing it imports compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaincc, gammainccinv

from halfseen.arrays import Array
from halfseen.engines.threads import Block, Threads, row_blocks
from halfseen.kernels import cells as cell_kernels
from halfseen.uncoupled import gibbs
from halfseen.uncoupled.layout import CellIndex, Layout

#: Blocks of rows per thread: two, for one may take longer than another. A block has at least so many cells. No sum goes
#: over blocks, so that draws do not depend on them.
BLOCKS_PER_THREAD, MIN_CELLS = 2, 1 << 9
#: Inverse-gamma priors of the noise: of rows IG(2, 2), of columns IG(3, 3 s0) around a common s0 ~ Gamma(1, 1), cut off
#: below the layout's `noise_floor`: else, where couplings can be found that fit exactly, all noise would go to 0.
ROW_SHAPE = ROW_SCALE = 2.0
COLUMN_SHAPE = 3.0
COMMON_SHAPE = COMMON_RATE = 1.0
#: Weight of the prior mean of a factor's rows, as if one row had been seen at 0.
_PRIOR_ROWS = 1.0
#: Below this probability, the tail of a distribution is drawn from by rejection.
_MIN_TAIL = 1e-8


class Noise(NamedTuple):
    """Variances: that of a cell is rows[i] * columns[j]; `common` is what those of columns scatter around."""

    rows: Array
    columns: Array
    common: float


class Chain:
    """x_ij ~ N(a_i . b_j, rho_i s_j^2), the x of a row being its tokens in an unknown order.

    The prior probability of a coupling falls by exp(-trust) with every comparison it violates. One sweep draws in turn
    the couplings (by Metropolis, `uncoupled.gibbs`), the distributions of the a_i and of the b_j, all a_i, all
    b_j, and the noise variances. Rows are drawn on all threads, each from its own stream: the same draws for any
    number of threads.
    """

    def __init__(
        self, layout: Layout, n_components: int, trust: float, random: np.random.Generator, threads: Threads
    ) -> None:
        self.layout, self.trust, self.random, self.threads = layout, trust, random, threads
        n, m = layout.shape
        n_cells, row = layout.n_cells, layout.row_of_cell
        self.A = random.standard_normal((n, n_components))
        self.B = random.standard_normal((m, n_components))
        self.noise = Noise(np.ones(n), np.ones(m), 1.0)
        self.mean = np.zeros(n_cells)
        share = n_cells // (BLOCKS_PER_THREAD * threads.count if threads.count > 1 else 1) + 1
        self._row_blocks, self._column_blocks = (
            row_blocks(side.indptr, max(share, MIN_CELLS)) for side in (layout.rows, layout.columns)
        )

        # First coupling: tokens in the order of the cells' shrunk win rates (wins + 1) / (comparisons + 2), cells of
        # one rate in random order. The unknown tokens of a row go to random cells of it, and start at its mean answer.
        wins, losses = (np.diff(neighbours.indptr) for neighbours in (layout.below, layout.above))
        wins, losses = wins + layout.half_known[:, 0], losses + layout.half_known[:, 1]
        rate = (wins + 1) / (wins + losses + 2)
        chance = random.random(n_cells)
        with_answer = np.empty(n_cells, bool)
        with_answer[np.lexsort((chance, row))] = layout.is_answer  # in every row, the cells shuffled
        self.cell_of_token = np.lexsort((chance, rate, ~with_answer, row))
        self.token_of_cell = np.empty(n_cells, np.int64)
        self.token_of_cell[self.cell_of_token] = np.arange(n_cells)
        sums = np.bincount(row, layout.tokens * layout.is_answer, minlength=n)
        means = sums / np.maximum(layout.n_answers, 1)
        self.tokens = np.where(layout.is_answer, layout.tokens, means[row])

    @property
    def x(self) -> Array:
        """Value at every cell."""
        return self.tokens[self.token_of_cell]

    def sweep(self, proposals: int) -> None:
        """Draw everything once; `proposals` per cell to exchange two tokens."""
        layout, noise = self.layout, self.noise
        if proposals:
            self._draw_couplings(proposals)
        x = self.x
        self._draw_factor(self.A, self.B, layout.rows, self._row_blocks, x, noise.rows, noise.columns)
        x_down = x[layout.columns.order]
        self._draw_factor(self.B, self.A, layout.columns, self._column_blocks, x_down, noise.columns, noise.rows)

        def update_means(part: Block) -> None:
            rows, pointers, cells = part
            indptr, indices = layout.rows.indptr[pointers], layout.rows.indices[cells]
            cell_kernels.sddmm(indptr, indices, self.A[rows], self.B, self.mean[cells])

        self.threads.all(update_means, self._row_blocks)
        self._draw_noise((x - self.mean) ** 2)

    def _draw_couplings(self, proposals: int) -> None:
        layout = self.layout
        seed = int(self.random.integers(2**63))
        precision = 1 / self.variance()

        def block(part: Block) -> None:
            rows, _, _ = part
            gibbs.draw_couplings(
                rows.start, rows.stop, layout.rows.indptr, layout.n_answers, seed, proposals, self.trust,
                *layout.below, *layout.above, layout.half_known,
                self.mean, precision, self.tokens, self.token_of_cell, self.cell_of_token,
            )  # fmt: skip

        self.threads.all(block, self._row_blocks)

    def _draw_factor(
        self, near: Array, far: Array, side: CellIndex, blocks: list[Block], x: Array, near_noise: Array,
        far_noise: Array,
    ) -> None:  # fmt: skip
        """Draw all rows of `near`, in place; the noise is that of its side and of the other."""
        prior_mean, prior_precision = draw_normal_wishart(near, self.random)
        prior_pull = prior_precision @ prior_mean
        self.random.standard_normal(out=near)
        near_precision, far_precision = 1 / near_noise, 1 / far_noise

        def block(part: Block) -> None:
            rows, _, _ = part
            gibbs.draw_rows(
                rows.start, rows.stop, side.indptr, side.indices, x, far,
                near_precision, far_precision, prior_precision, prior_pull, near,
            )  # fmt: skip

        self.threads.all(block, blocks)

    def _draw_noise(self, squares: Array) -> None:
        """rho_i | s, then s_j^2 | rho, then s0 | s, given the squared deviations of the cells."""
        layout, random, (n, m) = self.layout, self.random, self.layout.shape
        row, column = layout.row_of_cell, layout.rows.indices
        scale = ROW_SCALE + np.bincount(row, squares / self.noise.columns[column], minlength=n) / 2
        rows = scale / random.standard_gamma(ROW_SHAPE + np.diff(layout.rows.indptr) / 2)
        scale = COLUMN_SHAPE * self.noise.common + np.bincount(column, squares / rows[row], minlength=m) / 2
        columns = scale / random.standard_gamma(COLUMN_SHAPE + np.diff(layout.columns.indptr) / 2)
        rate = COMMON_RATE + COLUMN_SHAPE * float(np.sum(1 / columns))
        common = draw_gamma_above(layout.noise_floor, COMMON_SHAPE + COLUMN_SHAPE * m, rate, random)
        self.noise = Noise(rows, columns, common)

    def variance(self) -> Array:
        """rho_i s_j^2 at every cell."""
        return np.asarray(self.noise.rows[self.layout.row_of_cell] * self.noise.columns[self.layout.rows.indices])

    def log_likelihood(self, variance: Array) -> float:
        """sum over cells of  log N(x | a_i . b_j, rho_i s_j^2)."""
        return float(-0.5 * np.sum((self.x - self.mean) ** 2 / variance + np.log(2 * np.pi * variance)))

    def violations(self) -> int:
        """Number of comparisons that the coupling violates."""
        return int(gibbs.count_violations(*self.layout.below, self.tokens, self.token_of_cell))


def draw_normal_wishart(rows: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """mean, precision | rows, a priori  precision ~ Wishart(I, k + 1),  mean ~ N(0, precision^{-1}).

    With n rows of average f and scatter S about it,

        precision ~ Wishart((I + S + n / (n + 1) f f^T)^{-1}, k + 1 + n),
        mean ~ N(n / (n + 1) f, precision^{-1} / (n + 1))
    """
    n, k = rows.shape
    average = rows.mean(axis=0)
    scatter = (rows - average).T @ (rows - average)
    share = n / (n + _PRIOR_ROWS)
    inverse = np.eye(k) + scatter + share * _PRIOR_ROWS * np.outer(average, average)
    # Bartlett's lower triangle T, T T^T ~ Wishart(I, k + 1 + n); with inverse = C C^T, (C^{-T} T)(C^{-T} T)^T is a draw
    # of the precision.
    triangle = np.tril(random.standard_normal((k, k)), -1)
    triangle[np.diag_indices(k)] = np.sqrt(2 * random.standard_gamma((k + 1.0 + n - np.arange(k)) / 2))
    root = solve_triangular(np.linalg.cholesky(inverse), triangle, lower=True, trans="T")
    deviation = np.linalg.solve(root.T, random.standard_normal(k))
    return share * average + deviation / np.sqrt(n + _PRIOR_ROWS), root @ root.T


def draw_gamma_above(lower: float, shape: float, rate: float, random: np.random.Generator) -> float:
    """Draw from Gamma(shape, rate) truncated to values above `lower`.

    By the inverse distribution function or, deep in the tail, where that has no digits left, by rejection from an
    exponential, which the tail nearly is.
    """
    above = float(gammaincc(shape, lower * rate))
    if above > _MIN_TAIL:
        return max(lower, float(gammainccinv(shape, above * random.random())) / rate)
    while True:
        # Beyond the mode the density falls at least as fast as exp(-slope x): proposals by that, accepted by the rest.
        slope = rate - (shape - 1) / lower
        step = random.standard_exponential() / slope
        if np.log(random.random()) <= (shape - 1) * (np.log1p(step / lower) - step / lower):
            return lower + float(step)

"""The Markov chain over couplings, factors and noises."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, gammainccinv

from halfseen.arrays import Array
from halfseen.coupling.sampling.hyper import drawn_normal
from halfseen.coupling.sampling.layout import Layout, Side
from halfseen.engines.threads import Block, Threads, row_blocks
from halfseen.kernels import cells as cell_kernels
from halfseen.kernels import coupling as coupling_kernels
from halfseen.kernels import draws as draw_kernels

#: Blocks of rows a thread: two, for one may take longer than another. A block has at least so many cells. No sum goes
#: over blocks, so the draws do not know them.
BLOCKS_PER_THREAD, LEAST_CELLS = 2, 1 << 9
#: Inverse-gamma priors of the noise: of rows IG(2, 2), of columns IG(3, 3 s0) around a common s0 ~ Gamma(1, 1), cut off
#: below the layout's `least_noise`: else, where couplings can be found that fit exactly, all noise would go to 0.
ROW_SHAPE = ROW_SCALE = 2.0
COLUMN_SHAPE = 3.0
COMMON_SHAPE = COMMON_RATE = 1.0
#: Below this share of a distribution, its tail is drawn from by itself.
_SHALLOW = 1e-8


class Noise(NamedTuple):
    """Variances: a cell's is rows[i] * columns[j]; `common` is what the columns' scatter around."""

    rows: Array
    columns: Array
    common: float


class Chain:
    """x_ij ~ N(a_i . b_j, rho_i s_j^2), the x of a row being its tokens in an unknown order.

    A coupling's prior chance falls by exp(-trust) with every comparison it violates. One sweep draws in turn the
    couplings (by Metropolis' algorithm, `kernels.coupling`), the distributions of the a_i and of the b_j, all a_i, all
    b_j, and the noises. Rows are drawn on all threads, each from a stream of its own: the same draws for any number.
    """

    def __init__(
        self, layout: Layout, n_components: int, trust: float, random: np.random.Generator, threads: Threads
    ) -> None:
        self.layout, self.trust, self.random, self.threads = layout, trust, random, threads
        n, m = layout.shape
        self.A = random.standard_normal((n, n_components))
        self.B = random.standard_normal((m, n_components))
        self.noise = Noise(np.ones(n), np.ones(m), 1.0)
        self.tokens = layout.tokens.copy()
        self.token_of_cell, self.cell_of_token = self._first_coupling()
        self.mean = np.zeros(layout.n_cells)
        share = layout.n_cells // (BLOCKS_PER_THREAD * threads.count if threads.count > 1 else 1) + 1
        self._row_blocks, self._column_blocks = (
            row_blocks(side.indptr, max(share, LEAST_CELLS)) for side in (layout.rows, layout.columns)
        )

    def _first_coupling(self) -> tuple[Array, Array]:
        """Tokens laid out in the order of the cells' shrunk win rates (wins + 1) / (comparisons + 2).

        Cells of one rate come in random order. The unknown tokens of a row go to random cells of it, and start at its
        mean answer.
        """
        layout = self.layout
        n_cells, row = layout.n_cells, layout.row_of_cell
        wins, losses = (np.diff(links.indptr) for links in (layout.beaten, layout.beaters))
        wins, losses = wins + layout.alone[:, 0], losses + layout.alone[:, 1]
        rate = (wins + 1) / (wins + losses + 2)
        chance = self.random.random(n_cells)
        by_chance = np.lexsort((chance, row))  # in every row, the cells shuffled
        with_answer = np.empty(n_cells, bool)
        with_answer[by_chance] = layout.is_answer
        by_rate = np.lexsort((chance, rate, ~with_answer, row))
        token_of_cell = np.empty(n_cells, np.int64)
        token_of_cell[by_rate] = np.arange(n_cells)
        self._start_unknown_tokens()
        return token_of_cell, by_rate

    def _start_unknown_tokens(self) -> None:
        layout = self.layout
        sums = np.bincount(layout.row_of_cell, layout.tokens * layout.is_answer, minlength=layout.shape[0])
        means = sums / np.maximum(layout.known, 1)
        self.tokens[~layout.is_answer] = means[layout.row_of_cell[~layout.is_answer]]

    @property
    def x(self) -> Array:
        """The value at every cell."""
        return self.tokens[self.token_of_cell]

    def sweep(self, moves: int) -> None:
        """One draw of everything; `moves` proposals a cell to exchange two tokens."""
        layout, noise = self.layout, self.noise
        if moves:
            self._draw_couplings(moves)
        x = self.x
        self._draw_factor(self.A, self.B, layout.rows, self._row_blocks, x, noise.rows, noise.columns)
        x_down = x[layout.columns.order]
        self._draw_factor(self.B, self.A, layout.columns, self._column_blocks, x_down, noise.columns, noise.rows)
        self._find_means()
        self._draw_noise((x - self.mean) ** 2)

    def _draw_couplings(self, moves: int) -> None:
        layout = self.layout
        seed = int(self.random.integers(2**63))
        precision = 1 / self.variance()

        def block(part: Block) -> None:
            rows, _, _ = part
            coupling_kernels.couple(
                rows.start, rows.stop, layout.rows.indptr, layout.known, seed, moves, self.trust,
                layout.beaten.indptr, layout.beaten.cells, layout.beaters.indptr, layout.beaters.cells, layout.alone,
                self.mean, precision, self.tokens, self.token_of_cell, self.cell_of_token,
            )  # fmt: skip

        self.threads.all(block, self._row_blocks)

    def _draw_factor(
        self, near: Array, far: Array, side: Side, blocks: list[Block], x: Array, of_near: Array, of_far: Array
    ) -> None:
        """All rows of `near`, over the draw before; the noises are those of its own and of the far side."""
        law = drawn_normal(near, self.random)
        pulled = law.precision @ law.mean
        self.random.standard_normal(out=near)
        near_precision, far_precision = 1 / of_near, 1 / of_far

        def block(part: Block) -> None:
            rows, _, _ = part
            draw_kernels.draw_rows(
                rows.start, rows.stop, side.indptr, side.indices, x, far,
                near_precision, far_precision, law.precision, pulled, near,
            )  # fmt: skip

        self.threads.all(block, blocks)

    def _find_means(self) -> None:
        rows = self.layout.rows

        def block(part: Block) -> None:
            mine, pointers, cells = part
            cell_kernels.sddmm(rows.indptr[pointers], rows.indices[cells], self.A[mine], self.B, self.mean[cells])

        self.threads.all(block, self._row_blocks)

    def _draw_noise(self, squares: Array) -> None:
        """rho_i | s, then s_j^2 | rho, then s0 | s, given the squared deviations of the cells."""
        layout, (n, m) = self.layout, self.layout.shape
        row, column = layout.row_of_cell, layout.rows.indices
        sums = np.bincount(row, squares / self.noise.columns[column], minlength=n)
        of_rows = _inverse_gamma(ROW_SHAPE + np.diff(layout.rows.indptr) / 2, ROW_SCALE + sums / 2, self.random)
        sums = np.bincount(column, squares / of_rows[row], minlength=m)
        shape = COLUMN_SHAPE + np.diff(layout.columns.indptr) / 2
        of_columns = _inverse_gamma(shape, COLUMN_SHAPE * self.noise.common + sums / 2, self.random)
        rate = COMMON_RATE + COLUMN_SHAPE * float(np.sum(1 / of_columns))
        common = _gamma_above(layout.least_noise, COMMON_SHAPE + COLUMN_SHAPE * m, rate, self.random)
        self.noise = Noise(of_rows, of_columns, common)

    def variance(self) -> Array:
        """rho_i s_j^2 at every cell."""
        variance: Array = self.noise.rows[self.layout.row_of_cell] * self.noise.columns[self.layout.rows.indices]
        return variance

    def log_likelihood(self, variance: Array) -> float:
        """sum over cells of  log N(x | a_i . b_j, rho_i s_j^2)."""
        return float(-0.5 * np.sum((self.x - self.mean) ** 2 / variance + np.log(2 * np.pi * variance)))

    def violations(self) -> int:
        """How many comparisons the coupling violates."""
        layout = self.layout
        return int(
            coupling_kernels.violations(layout.beaten.indptr, layout.beaten.cells, self.tokens, self.token_of_cell)
        )


def _inverse_gamma(shape: Array, scale: Array, random: np.random.Generator) -> Array:
    return scale / random.standard_gamma(shape)


def _gamma_above(least: float, shape: float, rate: float, random: np.random.Generator) -> float:
    """A draw of Gamma(shape, rate) above `least`: by its distribution function or, deep in the tail, where that has no
    digits left, by steps along the tail's own exponential, which it all but is there."""
    above = float(gammaincc(shape, least * rate))
    if above > _SHALLOW:
        return max(least, float(gammainccinv(shape, above * random.random())) / rate)
    while True:
        # Beyond the mode the density falls at least as fast as exp(-slope x): proposals by that, accepted by the rest.
        slope = rate - (shape - 1) / least
        step = random.standard_exponential() / slope
        if np.log(random.random()) <= (shape - 1) * (np.log1p(step / least) - step / least):
            return least + float(step)

"""The Markov chain of uncoupled answers: which answer belongs to which cell, factors, noise variances.

A row has as many *tokens* as cells: its answers in ascending order, then, where answers were lost, unknown values. A
coupling assigns every token to a cell of its row: `token_of_cell` and `cell_of_token`. Cells and tokens are numbered
through all rows; `indptr` says where those of each row begin.

Comparisons are lists of neighbours: `below[below_indptr[c]:below_indptr[c + 1]]` are the cells that cell c was said to
be no smaller than, `above` those that it was said to be no larger than.

Compiled loops walk the rows from `start` to `stop` of whole arrays, because a slice of an array is a counted reference,
and threads would wait for each other's counting. Importing this module imports compiled code.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaincc, gammainccinv

from halfseen.arrays import Array
from halfseen.engines.threads import Block, Threads, row_blocks
from halfseen.kernels import cells as cell_kernels
from halfseen.kernels import kernel
from halfseen.kernels.random_streams import normal, start_stream, uniform
from halfseen.sampling.coupling import CellIndex, Layout

#: Blocks of rows per thread: two, for one may take longer than another. A block has at least so many cells. No sum goes
#: over blocks, so that draws do not depend on them.
BLOCKS_PER_THREAD, MIN_CELLS = 2, 1 << 9
#: Inverse-gamma priors of the noise: of rows IG(2, 2), of columns IG(3, 3 s0) around a common s0 ~ Gamma(1, 1), cut off
#: below the layout's `noise_floor`: else, where couplings can be found that fit exactly, all noise would go to 0.
ROW_SHAPE = ROW_SCALE = 2.0
COLUMN_SHAPE = 3.0
COMMON_SHAPE = COMMON_RATE = 1.0
#: Draws of the factors alone at the start, else the first coupling would be lost to their random start.
WARM_UP = 5
#: Priors of rows with units of their own: standard deviations of their offsets, and of the logarithms of their scales.
OFFSET_DEVIATION, SCALE_DEVIATION = 1.0, 0.5
#: Steps of the random walk of a scale, and their size, times the root of the number of cells.
_SCALE_STEPS, _SCALE_STEP = 5, 1.5
#: Weight of the prior mean of a factor's rows, as if one row had been seen at 0.
_PRIOR_ROWS = 1.0
#: Below this probability, the tail of a distribution is drawn from by rejection.
_MIN_TAIL = 1e-8
#: In longer rows close tokens are exchanged more often than distant ones.
_LONG = 32


class Noise(NamedTuple):
    """Variances: that of a cell is rows[i] * columns[j]; `common` is what those of columns scatter around."""

    rows: Array
    columns: Array
    common: float


class Normal(NamedTuple):
    """Distribution of the vectors of a factor."""

    mean: Array
    precision: Array


class CouplingChain:
    """x_ij ~ N(a_i . b_j, rho_i s_j^2), the x of a row being its tokens in an unknown order.

    Where rows are in units of their own, which come from a few answers and are uncertain, x_ij is a token divided by
    the row's `scale`, and its mean is a_i . b_j + c_i; log scale ~ N(0, 0.5^2) and c_i ~ N(0, 1).
    Rows that are not informative (`Layout`) are drawn given the others, which are drawn without them.

    The prior probability of a coupling falls by exp(-trust) with every comparison it violates. One sweep draws in turn
    the couplings (by Metropolis' algorithm), the distributions of the a_i and of the b_j, all a_i, all b_j, and the
    noise variances. Rows are drawn on all threads, each from its own stream: the same draws for any number of threads.
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
        self.scale, self.offset = np.ones(n), np.zeros(n)
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

    def warm_up(self) -> None:
        """Draw the factors alone a few times."""
        for _ in range(WARM_UP):
            self.sweep(0)

    @property
    def x(self) -> Array:
        """Value at every cell."""
        return self.tokens[self.token_of_cell]

    @property
    def state(self) -> dict[str, Array]:
        """All that the next sweep depends on, beside the generator; means, answers in units, and the inverse of the
        coupling follow."""
        noise = {"row_noise": self.noise.rows, "column_noise": self.noise.columns, "noise": np.array(self.noise.common)}
        units = {"scale": self.scale, "offset": self.offset, "unknown": self.tokens[~self.layout.is_answer]}
        return {"A": self.A, "B": self.B, **noise, **units, "cell_of_token": self.cell_of_token}

    @state.setter
    def state(self, saved: dict[str, Array]) -> None:
        layout = self.layout
        self.A, self.B, rows, columns, common, self.scale, self.offset, unknown, self.cell_of_token = (
            saved[name] for name in self.state
        )
        self.noise = Noise(rows, columns, float(common))
        self.token_of_cell[self.cell_of_token] = np.arange(layout.n_cells)
        self.tokens = layout.tokens / self.scale[layout.row_of_cell]
        self.tokens[~layout.is_answer] = unknown
        self._update_means()

    def sweep(self, proposals: int) -> None:
        """Draw everything once; `proposals` per cell to exchange two tokens."""
        layout, noise = self.layout, self.noise
        prior, (A, B) = draw_normal_wishart(self.A[layout.is_informative], self.random), self.factors()
        if layout.units.are_own:
            k = len(prior.mean)
            precision = np.diag(np.append(np.zeros(k), OFFSET_DEVIATION**-2))
            precision[:k, :k] = prior.precision
            prior = Normal(np.append(prior.mean, 0.0), precision)
        if proposals:
            self._draw_couplings(proposals, prior, B)
        if layout.units.are_own:
            self._draw_scales(prior, B)
        x = self.x
        self._draw_factor(A, B, prior, layout.rows, self._row_blocks, x, noise.rows, noise.columns)
        if layout.units.are_own:
            self.A, self.offset = A[:, :-1].copy(), A[:, -1].copy()
            x = x - self.offset[layout.row_of_cell]
        x_down, prior = x[layout.columns.order], draw_normal_wishart(self.B, self.random)
        columns = layout.columns
        self._draw_factor(self.B, self.A, prior, columns, self._column_blocks, x_down, noise.columns, noise.rows)
        self._update_means()
        self._draw_noise((self.x - self.mean) ** 2)

    def _update_means(self) -> None:
        layout, (A, B) = self.layout, self.factors()

        def update(part: Block) -> None:
            rows, pointers, cells = part
            indptr, indices = layout.rows.indptr[pointers], layout.rows.indices[cells]
            cell_kernels.sddmm(indptr, indices, A[rows], B, self.mean[cells])

        self.threads.all(update, self._row_blocks)

    def factors(self) -> tuple[Array, Array]:
        """A and B with A B^T = the means; where units are their own, the offsets are a component more."""
        if not self.layout.units.are_own:
            return self.A, self.B
        return np.column_stack([self.A, self.offset]), np.column_stack([self.B, np.ones(len(self.B))])

    def _draw_couplings(self, proposals: int, prior: Normal, B: Array) -> None:
        layout = self.layout
        prior_pull = prior.precision @ prior.mean
        seed = int(self.random.integers(2**63))
        precision = 1 / self.variance()

        def block(part: Block) -> None:
            rows, _, _ = part
            draw_couplings(
                rows.start, rows.stop, layout.rows.indptr, layout.n_answers, seed, proposals, self.trust,
                *layout.below, *layout.above, layout.half_known,
                self.mean, precision, self.tokens, self.token_of_cell, self.cell_of_token,
                layout.rows.indices, B, prior.precision, prior_pull,
            )  # fmt: skip

        self.threads.all(block, self._row_blocks)

    def _draw_scales(self, prior: Normal, B: Array) -> None:
        layout, last = self.layout, self.scale.copy()
        seed, precision, prior_pull = (
            int(self.random.integers(2**63)),
            1 / self.variance(),
            prior.precision @ prior.mean,
        )

        def block(part: Block) -> None:
            rows, _, _ = part
            draw_scales(
                rows.start, rows.stop, layout.rows.indptr, seed, precision, self.tokens, self.token_of_cell,
                layout.rows.indices, B, prior.precision, prior_pull, self.scale,
            )  # fmt: skip

        self.threads.all(block, self._row_blocks)
        row = layout.row_of_cell
        self.tokens = np.where(layout.is_answer, layout.tokens, self.tokens * last[row]) / self.scale[row]

    def _draw_factor(
        self, near: Array, far: Array, prior: Normal, side: CellIndex, blocks: list[Block], x: Array,
        near_noise: Array, far_noise: Array,
    ) -> None:  # fmt: skip
        """Draw all rows of `near`, in place; the noise is that of its side and of the other."""
        prior_pull = prior.precision @ prior.mean
        self.random.standard_normal(out=near)
        near_precision, far_precision = 1 / near_noise, 1 / far_noise

        def block(part: Block) -> None:
            rows, _, _ = part
            draw_rows(
                rows.start, rows.stop, side.indptr, side.indices, x, far,
                near_precision, far_precision, prior.precision, prior_pull, near,
            )  # fmt: skip

        self.threads.all(block, blocks)

    def _draw_noise(self, squares: Array) -> None:
        """rho_i | s, then s_j^2 | rho, then s0 | s, given the squared deviations of the cells."""
        layout, random, (n, m) = self.layout, self.random, self.layout.shape
        row, column = layout.row_of_cell, layout.rows.indices
        scale = ROW_SCALE + np.bincount(row, squares / self.noise.columns[column], minlength=n) / 2
        rows = scale / random.standard_gamma(ROW_SHAPE + np.diff(layout.rows.indptr) / 2)
        squares = squares * layout.is_informative[row]
        scale = COLUMN_SHAPE * self.noise.common + np.bincount(column, squares / rows[row], minlength=m) / 2
        columns = scale / random.standard_gamma(COLUMN_SHAPE + np.diff(layout.columns.indptr) / 2)
        rate = COMMON_RATE + COLUMN_SHAPE * float(np.sum(1 / columns))
        common = draw_gamma_above(layout.noise_floor, COMMON_SHAPE + COLUMN_SHAPE * m, rate, random)
        self.noise = Noise(rows, columns, common)

    def variance(self) -> Array:
        """rho_i s_j^2 at every cell."""
        return np.asarray(self.noise.rows[self.layout.row_of_cell] * self.noise.columns[self.layout.rows.indices])

    def log_likelihood(self, variance: Array) -> float:
        """Of the values of all cells, in the units of the layout:  sum of  log N(x | a_i . b_j, rho_i s_j^2)."""
        scales = np.log(self.scale) @ np.diff(self.layout.rows.indptr)
        return float(-0.5 * np.sum((self.x - self.mean) ** 2 / variance + np.log(2 * np.pi * variance)) - scales)

    def violations(self) -> int:
        """Number of comparisons that the coupling violates."""
        return int(count_violations(*self.layout.below, self.tokens, self.token_of_cell))


def draw_normal_wishart(rows: Array, random: np.random.Generator) -> Normal:
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
    return Normal(share * average + deviation / np.sqrt(n + _PRIOR_ROWS), root @ root.T)


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


# ---------------------------------------------------------------------------------------------------------------------
# couplings, by Metropolis' algorithm


@kernel
def draw_couplings(
    start: int, stop: int, indptr: Array, n_answers: Array, seed: int, proposals: int, trust: float,
    below_indptr: Array, below: Array, above_indptr: Array, above: Array, half_known: Array,
    mean: Array, precision: Array, tokens: Array, token_of_cell: Array, cell_of_token: Array,
    columns: Array, B: Array, prior: Array, prior_pull: Array,
) -> None:  # fmt: skip
    """In every row, `proposals` per cell to exchange the tokens of two cells, accepted by the density

        N(tokens | B prior_mean, B prior^{-1} B^T + 1 / precision) * exp(-trust * violated comparisons) * standing

    with B the vectors of the cells' columns: the row's own vector is integrated out, since given that vector a coupling
    would hardly move. Up to a constant the logarithm of the normal density is

        -1/2 sum over cells of precision x^2 + 1/2 |u|^2,      u = C^{-1} (prior_pull + sum of precision x b),
        C C^T = prior + sum over cells of precision b b^T

    In rows with unknown values it is that given the row's vector, N(token | mean, 1 / precision), and a new value is
    proposed for every unknown token. `n_answers` has the number of answers of each row. `half_known` has the
    comparisons that each cell won and lost against unnamed others: each is won with the probability that a random
    answer is smaller (`standing`).

    One function for all of it: cut into functions of whole arrays it takes half as long again.
    """
    stream, k, longest = np.empty(1, np.uint64), prior_pull.size, np.int64(0)
    for row in range(start, stop):
        longest = max(longest, np.int64(indptr[row + 1] - indptr[row]))
    C, u, G = np.empty((k, k)), np.empty(k), np.empty((longest, k))
    for row in range(start, stop):
        first, size = np.int64(indptr[row]), np.int64(indptr[row + 1] - indptr[row])
        start_stream(seed, row, stream)
        answers_end = first + n_answers[row]
        is_whole = k > 0 and n_answers[row] == size
        if is_whole:
            integrate_out(first, size, precision, tokens, token_of_cell, columns, B, prior, prior_pull, C, u, G)
        for _ in range(proposals * size if size > 1 else 0):
            one = np.int64(uniform(stream) * size)
            other = _partner(one, size, uniform(stream), stream)
            if other < 0 or other >= size:
                continue
            one, other = first + min(one, other), first + max(one, other)
            if tokens[one] == tokens[other] or one >= answers_end:
                continue
            # Cells a and b exchange their tokens; an unknown one (the other, if any) takes a new value where it goes,
            # whose density is that of its proposal, so that only the answer's counts.
            a, b = cell_of_token[one], cell_of_token[other]
            old_a, old_b, new_b = tokens[one], tokens[other], tokens[one]
            if is_whole:
                new_a, rise = old_b, old_b - old_a
                gain = 0.5 * (precision[a] - precision[b]) * (old_a**2 - old_b**2)
                for j in range(k):
                    change = rise * (G[a - first, j] - G[b - first, j])
                    gain += change * (u[j] + 0.5 * change)
            else:
                gain = 0.5 * (precision[a] * (old_a - mean[a]) ** 2 - precision[b] * (new_b - mean[b]) ** 2)
                if other < answers_end:
                    new_a = old_b
                    gain += 0.5 * (precision[b] * (old_b - mean[b]) ** 2 - precision[a] * (new_a - mean[a]) ** 2)
                else:
                    new_a = mean[a] + normal(stream) / np.sqrt(precision[a])
                    gain += 0.5 * (np.log(precision[b]) - np.log(precision[a]))
            violated = 0
            for cell, old, new, partner in ((a, old_a, new_a, b), (b, old_b, new_b, a)):
                for p in range(below_indptr[cell], below_indptr[cell + 1]):
                    neighbour = tokens[token_of_cell[below[p]]]
                    if below[p] != partner:
                        violated += (new < neighbour) - (old < neighbour)
                    else:  # the partner changes too; met from both sides, and counted from one
                        violated += (new_a < new_b) - (old_a < old_b) if cell == a else 0
                for p in range(above_indptr[cell], above_indptr[cell + 1]):
                    neighbour = tokens[token_of_cell[above[p]]]
                    if above[p] != partner:
                        violated += (new > neighbour) - (old > neighbour)
                    else:
                        violated += (new_a > new_b) - (old_a > old_b) if cell == a else 0
            gain -= trust * violated
            for cell, old, new in ((a, old_a, new_a), (b, old_b, new_b)):
                if half_known[cell, 0] + half_known[cell, 1] > 0:
                    gain += _half_known_gain(half_known, cell, old, new, tokens, first, answers_end)
            if gain >= 0 or uniform(stream) < np.exp(gain):
                cell_of_token[one], cell_of_token[other] = b, a
                token_of_cell[a], token_of_cell[b] = other, one
                tokens[other] = new_a
                for j in range(k if is_whole else 0):
                    u[j] += (old_b - old_a) * (G[a - first, j] - G[b - first, j])
        for token in range(answers_end, first + size):
            cell = cell_of_token[token]
            old, new = tokens[token], mean[cell] + normal(stream) / np.sqrt(precision[cell])
            violated = 0
            for p in range(below_indptr[cell], below_indptr[cell + 1]):
                neighbour = tokens[token_of_cell[below[p]]]
                violated += (new < neighbour) - (old < neighbour)
            for p in range(above_indptr[cell], above_indptr[cell + 1]):
                neighbour = tokens[token_of_cell[above[p]]]
                violated += (new > neighbour) - (old > neighbour)
            gain = -trust * violated
            if half_known[cell, 0] + half_known[cell, 1] > 0:
                gain += _half_known_gain(half_known, cell, old, new, tokens, first, answers_end)
            if gain >= 0 or uniform(stream) < np.exp(gain):
                tokens[token] = new


@kernel
def integrate_out(
    first: int, size: int, precision: Array, tokens: Array, token_of_cell: Array, columns: Array, B: Array,
    prior: Array, prior_pull: Array, C: Array, u: Array, G: Array,
) -> None:  # fmt: skip
    """C and u of `draw_couplings`, of one row, and in G the change of u by a value at each cell, C^{-1} precision b."""
    k = u.size
    u[:] = prior_pull
    C[:] = prior
    for cell in range(first, first + size):
        i, weight, value = columns[cell], precision[cell], tokens[token_of_cell[cell]]
        for a in range(k):
            weighted = weight * B[i, a]
            u[a] += weighted * value
            for b in range(a + 1):
                C[a, b] += weighted * B[i, b]
    for a in range(k):
        for b in range(a + 1):
            dot = C[a, b]
            for j in range(b):
                dot -= C[a, j] * C[b, j]
            C[a, b] = np.sqrt(dot) if a == b else dot / C[b, b]
        for j in range(a):
            u[a] -= C[a, j] * u[j]
        u[a] /= C[a, a]
    for cell in range(first, first + size):
        i, g = columns[cell], cell - first
        for a in range(k):
            dot = precision[cell] * B[i, a]
            for j in range(a):
                dot -= C[a, j] * G[g, j]
            G[g, a] = dot / C[a, a]


@kernel
def draw_scales(
    start: int, stop: int, indptr: Array, seed: int, precision: Array, tokens: Array, token_of_cell: Array,
    columns: Array, B: Array, prior: Array, prior_pull: Array, scale: Array,
) -> None:  # fmt: skip
    """A few steps of a random walk of log scale, in every row, with the row's vector integrated out.

    With n tokens divided by r, that density is  -n log r - a / (2 r^2) + b / r,  a = sum of precision x^2 - |v|^2,
    b = v . C^{-1} prior_pull, and v the part of u that the tokens add (`draw_couplings`).
    """
    stream, k, longest = np.empty(1, np.uint64), prior_pull.size, np.int64(0)
    for row in range(start, stop):
        longest = max(longest, np.int64(indptr[row + 1] - indptr[row]))
    C, u, w, G = np.empty((k, k)), np.empty(k), np.empty(k), np.empty((longest, k))
    for row in range(start, stop):
        first, size = np.int64(indptr[row]), np.int64(indptr[row + 1] - indptr[row])
        start_stream(seed, row, stream)
        integrate_out(first, size, precision, tokens, token_of_cell, columns, B, prior, prior_pull, C, u, G)
        for a in range(k):
            w[a] = prior_pull[a]
            for j in range(a):
                w[a] -= C[a, j] * w[j]
            w[a] /= C[a, a]
        squares, linear = 0.0, 0.0
        for cell in range(first, first + size):
            squares += precision[cell] * tokens[token_of_cell[cell]] ** 2
        for a in range(k):
            squares -= (u[a] - w[a]) ** 2
            linear += (u[a] - w[a]) * w[a]
        before, change = np.log(scale[row]), 0.0
        for _ in range(_SCALE_STEPS):
            new = change + _SCALE_STEP / np.sqrt(size + 1.0) * normal(stream)
            gain = size * (change - new) - 0.5 * squares * (np.exp(-2 * new) - np.exp(-2 * change))
            gain += linear * (np.exp(-new) - np.exp(-change))
            gain -= 0.5 * ((before + new) ** 2 - (before + change) ** 2) / SCALE_DEVIATION**2
            if gain >= 0 or uniform(stream) < np.exp(gain):
                change = new
        scale[row] *= np.exp(change)


@kernel
def _partner(one: int, size: int, chance: float, stream: Array) -> Any:
    """Another token to exchange with; both directions are equally likely. Outside the row: none.

    In a short row any other one. In a long one every order of distance is equally likely, because most exchanges over
    a long distance would be rejected.
    """
    if size <= _LONG:
        other = one + 1 + np.int64(chance * (size - 1))
        return other if other < size else other - size
    distance = np.int64(np.exp(chance * np.log(np.float64(size))))
    return one + distance if uniform(stream) < 0.5 else one - distance


@kernel
def _half_known_gain(half_known: Array, cell: int, old: float, new: float, tokens: Array, first: int, end: int) -> Any:
    """Log-likelihood gained by comparisons against unnamed others when a cell's value changes."""
    before, after = _standing(old, tokens, first, end), _standing(new, tokens, first, end)
    return half_known[cell, 0] * np.log(after / before) + half_known[cell, 1] * np.log((1.0 - after) / (1.0 - before))


@kernel
def _standing(value: float, tokens: Array, first: int, end: int) -> Any:
    """Fraction of a row's answers below a value, equal ones half, kept off 0 and 1 as if there were one more."""
    answers = tokens[first:end]
    count = 1 + np.searchsorted(answers, value, side="left") + np.searchsorted(answers, value, side="right")
    return count / (2.0 * answers.size + 2.0)


@kernel
def count_violations(below_indptr: Array, below: Array, tokens: Array, token_of_cell: Array) -> Any:
    """Number of comparisons that the coupling violates."""
    violated = 0
    for cell in range(below_indptr.size - 1):
        value = tokens[token_of_cell[cell]]
        for p in range(below_indptr[cell], below_indptr[cell + 1]):
            violated += value < tokens[token_of_cell[below[p]]]
    return violated


# ---------------------------------------------------------------------------------------------------------------------
# factors, from their normal distributions


@kernel
def draw_rows(
    start: int, stop: int, indptr: Array, indices: Array, x: Array, G: Array, near: Array, far: Array,
    prior: Array, prior_pull: Array, out: Array,
) -> None:  # fmt: skip
    """out[u] ~ N(A^{-1} r, A^{-1}),   A = prior + near[u] sum of far[i] G[i] G[i]^T,
    r = prior_pull + near[u] sum of far[i] x[p] G[i].

    The precision of a cell is near[u] * far[i]; `prior_pull` is the prior's precision times its mean. `out` comes
    filled with standard normal numbers. With rows and columns exchanged it draws the other factor.
    """
    k = G.shape[1]
    A, r = np.empty((k, k)), np.empty(k)
    for u in range(start, stop):
        r[:] = 0.0
        A[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            i = indices[p]
            weight, value = far[i], x[p]
            for a in range(k):
                weighted = weight * G[i, a]
                r[a] += weighted * value
                for b in range(a + 1):
                    A[a, b] += weighted * G[i, b]
        for a in range(k):
            r[a] = prior_pull[a] + near[u] * r[a]
            for b in range(a + 1):
                A[a, b] = prior[a, b] + near[u] * A[a, b]
        _draw_normal(A, r, u, out)


@kernel
def _draw_normal(A: Array, r: Array, u: int, out: Array) -> None:
    """With A = C C^T, by Cholesky's method: C^T out[u] = C^{-1} r + out[u]. Overwrites r and the lower half of A."""
    k = r.size
    for a in range(k):
        for b in range(a + 1):
            dot = A[a, b]
            for j in range(b):
                dot -= A[a, j] * A[b, j]
            A[a, b] = np.sqrt(dot) if a == b else dot / A[b, b]
        dot = r[a]
        for j in range(a):
            dot -= A[a, j] * r[j]
        r[a] = dot / A[a, a]
    for a in range(k - 1, -1, -1):
        dot = r[a] + out[u, a]
        for j in range(a + 1, k):
            dot -= A[j, a] * out[u, j]
        out[u, a] = dot / A[a, a]

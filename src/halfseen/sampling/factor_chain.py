"""One Markov chain over factors, biases, weights of features, noise, thresholds and hyper-parameters.

    x_ui = <w_u, h_i> + b_u + c_i,        (w_u, b_u) = own_u + sum over features j of row u of  value_uj weights_j

and likewise for columns. Own vectors, and the weights of each group of features, are normal in every coordinate, with
means and precisions of their own, which are normal-gamma(0, 1, 1, 1). The noise at a cell has precision r_u s_i, both
Gamma(10, 10): some rows and columns can be predicted better than others, and if all had the same noise, factors would
fit that of the noisiest. What is observed of x plus noise is said by `Gaussian` or `OrderedProbit`.

Importing this module imports compiled code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from halfseen.arrays import Array
from halfseen.engines.threads import Block, Threads, row_blocks
from halfseen.sampling import normal_draws

#: Blocks of rows per thread: several, for one may take longer than another. A block has at least so many cells. No sum
#: goes over blocks, so that draws do not depend on them.
_BLOCKS_PER_THREAD, _MIN_CELLS = 4, 1 << 10
#: Standard deviation of random vectors at the start.
_START = 0.1
#: Shape and rate of the gamma prior of the noise of rows and of columns.
NOISE_SHAPE = 10.0
#: Thresholds at the start are the normal quantiles of the levels' frequencies, times this: x varies, too.
_SPREAD_OF_X = 1.2
#: Prior of the thresholds: standard deviations of the first one, and of the logarithms of the gaps.
FIRST_DEVIATION, GAP_DEVIATION = 5.0, 1.0
#: Shape of the gamma prior, of rate 1, of the precisions of owners' thresholds around the common ones.
OWN_SHAPE = 4.0
#: Random walks of thresholds: the first step size, the acceptance that is aimed at, and how fast steps adapt.
_FIRST_STEP, _ACCEPTANCE, _ADAPTING = 0.1, 0.4, 0.3
#: Proposals per sweep for each threshold of an owner.
_OWN_ROUNDS = 2


#: Whose thresholds there are, as compiled loops know it.
OWNERS = {None: 0, "rows": 1, "columns": 2}


class Cells(NamedTuple):
    """Cells along one side: pointers, indices of the other side, positions of the cells in row order."""

    indptr: Array
    indices: Array
    order: Array


class Hyper(NamedTuple):
    """Means and precisions of the coordinates of a group of vectors."""

    mean: Array
    precision: Array


class FeatureMatrix(NamedTuple):
    """Features of all rows (or columns): a sparse array of values, and whether they add to biases, too."""

    values: Any
    adds_to_bias: bool = True


class FeatureGroup:
    """A group of features with their weights, one row of `weights` for each feature."""

    def __init__(self, matrix: FeatureMatrix, size: int, random: np.random.Generator) -> None:
        self.values, self.adds_to_bias = sparse.csc_array(matrix.values, dtype=np.float64), matrix.adds_to_bias
        #: Rows as unsigned numbers, which compiled loops need not check for a count from the end.
        self.indptr, self.rows = self.values.indptr.astype(np.int64), self.values.indices.astype(np.uint32)
        #: Values as multiples of a scale of each row; none where all are 1, as in sets.
        self.scales, self.multiples = np.ones(self.values.shape[0]), self.values.data
        scales = self.scales.copy()
        scales[self.rows] = self.values.data
        if np.array_equal(scales[self.rows], self.values.data):
            self.scales, self.multiples = scales, np.empty(0)
        largest = np.maximum(np.abs(self.values).max(axis=0).toarray().ravel(), 1.0)  # adds no more at the start
        self.weights = random.normal(0.0, _START, (self.values.shape[1], size)) / largest[:, None]
        self.hyper = Hyper(np.zeros(size), np.ones(size))


class FactorSide:
    """The vectors of all rows, or of all columns: own ones, and what features add; and the precision of their noise.

    Parameters
    ----------
    cells : Cells
        Cells of the side.
    n_components : int
        Number of coordinates, beside the bias.
    biases : bool
        Whether there is a bias, the last coordinate.
    features : list of FeatureMatrix
        Groups of features.
    zero_mean_bias : bool
        Whether the mean of own biases is 0, because it could not be told from another parameter.
    has_noise : bool
        Whether the precision of the noise is drawn, or 1.
    random : Generator
        For the start.
    """

    def __init__(
        self, cells: Cells, n_components: int, biases: bool, features: list[FeatureMatrix], zero_mean_bias: bool,
        has_noise: bool, random: np.random.Generator,
    ) -> None:  # fmt: skip
        n, size = cells.indptr.size - 1, n_components + biases
        self.cells, self.has_noise = cells, has_noise
        self.is_zero_mean = (np.arange(size) >= n_components) & zero_mean_bias
        self.own = random.normal(0.0, _START, (n, size))
        self.hyper = Hyper(np.zeros(size), np.ones(size))
        self.noise = np.ones(n)
        self.features = [
            FeatureGroup(matrix, size if matrix.adds_to_bias else n_components, random) for matrix in features
        ]
        self.linear = np.zeros((n, size))
        for group in self.features:
            self.linear[:, : group.weights.shape[1]] += group.values @ group.weights
        self.factor = self.own + self.linear
        n_kept = n if self.features else 0
        self.grams, self.pulls = np.empty((size, n_kept, size)), np.empty((n_kept, size))

    @property
    def roots(self) -> Array:
        """Square roots of the precisions of the noise."""
        return np.sqrt(self.noise)

    @property
    def state(self) -> dict[str, Array]:
        """All that the next sweep depends on, and the distribution of the own vectors. With features, sums are moved
        along with the weights: their last bits depend on all that was drawn."""
        state = {"own": self.own, "noise": self.noise, **self.hyper._asdict()}
        if self.features:
            state |= {"linear": self.linear, "factor": self.factor}
        return state | {f"weights {number}": group.weights for number, group in enumerate(self.features)}

    @state.setter
    def state(self, saved: dict[str, Array]) -> None:
        self.own, self.noise, self.hyper = saved["own"], saved["noise"], Hyper(saved["mean"], saved["precision"])
        self.linear = saved.get("linear", self.linear)
        self.factor = saved["factor"] if self.features else self.own + self.linear
        for number, group in enumerate(self.features):
            group.weights = saved[f"weights {number}"]

    def draw_hyper(self, random: np.random.Generator) -> None:
        """Draw the means and precisions of all groups."""
        self.hyper = draw_hyper(self.own, self.is_zero_mean, random)
        for group in self.features:
            group.hyper = draw_hyper(group.weights, np.zeros(group.weights.shape[1], bool), random)


def draw_hyper(vectors: Array, is_zero_mean: Array, random: np.random.Generator) -> Hyper:
    """mean, precision | vectors, a priori  precision ~ Gamma(1, 1),  mean ~ N(0, 1 / precision), for each coordinate.

    With n vectors of average f and sum of squares s about it,

        precision ~ Gamma(1 + n / 2, 1 + s / 2 + n f^2 / (2 (n + 1))),
        mean ~ N(n f / (n + 1), 1 / ((n + 1) precision))

    and where the mean is 0,  precision ~ Gamma(1 + n / 2, 1 + (sum of squares) / 2).
    """
    n = len(vectors)
    average = np.where(is_zero_mean, 0.0, vectors.mean(axis=0))
    squares = ((vectors - average) ** 2).sum(axis=0)
    precision = random.standard_gamma(1.0 + 0.5 * n, average.size) / (
        1.0 + 0.5 * (squares + n / (n + 1.0) * average**2)
    )
    deviation = random.standard_normal(average.size) / np.sqrt((n + 1.0) * precision)
    return Hyper(np.where(is_zero_mean, 0.0, n / (n + 1.0) * average + deviation), precision)


class FactorChain:
    """A chain over all unknowns of the model; one `sweep` draws each of them once.

    Rows are drawn on all threads, each from its own stream: the same draws for any number of threads. With features, a
    matrix of size x size numbers is kept per row or column.

    Parameters
    ----------
    indptr, indices : ndarray
        The cells in row order.
    shape : tuple of int
        Numbers of rows and columns.
    observation : Gaussian or OrderedProbit
        What is observed at the cells.
    n_components : int
        Number of components, beside biases.
    random : Generator
        Source of all randomness.
    threads : Threads
        Where rows are drawn.
    biases : bool, default=True
        Whether rows and columns have biases.
    row_features, column_features : list of FeatureMatrix, default=()
        Groups of features.
    """

    def __init__(
        self, indptr: Array, indices: Array, shape: tuple[int, int], observation: Observation, n_components: int,
        random: np.random.Generator, threads: Threads, *, biases: bool = True,
        row_features: list[FeatureMatrix] | tuple[()] = (), column_features: list[FeatureMatrix] | tuple[()] = (),
    ) -> None:  # fmt: skip
        n, m = shape
        self.random, self.threads, self.observation, self.biases = random, threads, observation, biases
        along = Cells(indptr.astype(np.int64), indices.astype(np.int64), np.arange(indices.size))
        order = np.argsort(indices, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(indices, minlength=m)))
        down = Cells(starts, np.repeat(np.arange(n), np.diff(indptr))[order], order)
        sides = ((along, row_features, True, "rows"), (down, column_features, observation.has_offset, "columns"))
        self.rows, self.columns = (
            FactorSide(cells, n_components, biases, list(features), fixed, observation.owners != name, random)
            for cells, features, fixed, name in sides
        )
        share = indices.size // (_BLOCKS_PER_THREAD * threads.count if threads.count > 1 else 1) + 1
        self.row_blocks, self.column_blocks = (
            row_blocks(cells.indptr, max(share, _MIN_CELLS)) for cells in (along, down)
        )
        self.x, self.latent = np.empty(indices.size), np.empty(indices.size)
        self._update_x()

    def sweep(self, adapt: bool = False) -> None:
        """Draw everything once; `adapt` lets the steps of thresholds adapt, in sweeps that will be discarded."""
        self.observation.draw(self, adapt)
        both = ((self.rows, self.columns, self.row_blocks), (self.columns, self.rows, self.column_blocks))
        for near, far, blocks in both:
            if near.has_noise:
                self._draw_noise(near, far, blocks)
        for near, far, blocks in both:
            near.draw_hyper(self.random)
            self._draw_vectors(near, far, blocks)
        self._update_x()

    @property
    def state(self) -> dict[str, Array]:
        """All that the next sweep depends on, beside the generator: latent values are drawn first, and x follows."""
        parts: dict[str, Any] = {"rows": self.rows, "columns": self.columns, "observation": self.observation}
        return {f"{part}/{name}": one for part, owner in parts.items() for name, one in owner.state.items()}

    @state.setter
    def state(self, saved: dict[str, Array]) -> None:
        for part in ("rows", "columns", "observation"):
            arrays = {name.removeprefix(f"{part}/"): one for name, one in saved.items() if name.startswith(f"{part}/")}
            getattr(self, part).state = arrays
        self._update_x()

    def next_seed(self) -> int:
        """Seed of the streams of one operation."""
        return int(self.random.integers(2**63))

    def _draw_noise(self, near: FactorSide, far: FactorSide, blocks: list[Block]) -> None:
        """r_u ~ Gamma(10 + cells / 2, 10 + (sum of s_i (latent - x)^2) / 2), times the precision of all noise."""
        sums, precision, roots = np.empty(near.noise.size), self.observation.precision, far.roots

        def add(part: Block) -> None:
            normal_draws.squares(part[0].start, part[0].stop, *near.cells, self.x, self.latent, roots, sums)

        self.threads.all(add, blocks)
        shape = NOISE_SHAPE + 0.5 * np.diff(near.cells.indptr)
        near.noise = self.random.standard_gamma(shape) / (NOISE_SHAPE + 0.5 * precision * sums)

    def _draw_vectors(self, near: FactorSide, far: FactorSide, blocks: list[Block]) -> None:
        factor, offset = self._as_far(far)
        roots, seed, near_noise = far.roots, self.next_seed(), near.noise * self.observation.precision
        factor = factor * roots[:, None]

        def draw(part: Block) -> None:
            normal_draws.draw_rows(
                part[0].start, part[0].stop, *near.cells, self.latent, factor, offset, near_noise, roots,
                near.linear, *near.hyper, seed, 1, near.own, near.factor, near.grams, near.pulls,
            )  # fmt: skip

        self.threads.all(draw, blocks)
        for group in near.features:
            normal_draws.draw_weights(
                group.indptr, group.rows, group.multiples, group.scales, near.grams, near.pulls, *group.hyper,
                self.next_seed(), group.weights, near.linear, near.factor,
            )  # fmt: skip
            if group.adds_to_bias:  # sets of cells are many: a second pass would not pay
                seed = self.next_seed()

                def move(a: int, group: FeatureGroup = group, seed: int = seed) -> None:
                    normal_draws.move_weights(
                        group.indptr, group.rows, group.values.data, *near.hyper, *group.hyper, seed, a,
                        group.weights, near.own, near.linear,
                    )  # fmt: skip

                self.threads.all(move, range(group.weights.shape[1]))

    def _update_x(self) -> None:
        factor, offset = self._as_far(self.columns)
        along, W = self.rows.cells, self.rows.factor

        def update(part: Block) -> None:
            where = (part[0].start, part[0].stop, along.indptr, along.indices)
            normal_draws.products(*where, W, factor, offset, self.x)

        self.threads.all(update, self.row_blocks)

    def _as_far(self, side: FactorSide) -> tuple[Array, Array]:
        """By what the vectors of the other side are multiplied, 1 beside its biases; and the biases of this side."""
        if not self.biases:
            return side.factor, np.zeros(len(side.factor))
        factor = side.factor.copy()
        factor[:, -1] = 1.0
        return factor, side.factor[:, -1].copy()


class Gaussian:
    """y ~ N(x, 1 / (precision r_u s_i)), precision ~ Gamma(1, 1)."""

    has_offset = False
    owners = None

    def __init__(self, values: Array) -> None:
        self.values, self.precision = np.asarray(values, np.float64), 1.0

    @property
    def state(self) -> dict[str, Array]:
        """All that the next draw depends on."""
        return {"precision": np.array(self.precision)}

    @state.setter
    def state(self, saved: dict[str, Array]) -> None:
        self.precision = float(saved["precision"])

    def draw(self, chain: FactorChain, adapt: bool) -> None:
        """Draw the precision; the latent values are what is observed."""
        chain.latent[:] = self.values
        rows = chain.rows
        noise = np.repeat(rows.noise, np.diff(rows.cells.indptr)) * chain.columns.noise[rows.cells.indices]
        squares = float(np.sum(noise * (self.values - chain.x) ** 2))
        self.precision = float(chain.random.standard_gamma(1.0 + 0.5 * self.values.size)) / (1.0 + 0.5 * squares)


class OrderedProbit:
    """P(y <= v) = Phi((tau_{v+1} - x) sqrt(r_u s_i)): x plus normal noise is between the two thresholds of level y.

    Two levels make it the probit model of binary data. A priori tau_1 ~ N(0, 5^2), and the logarithms of the gaps
    between thresholds are N(0, 1). Thresholds of owners (rows or columns) are normal around the common ones, in these
    parameters, with precisions that are Gamma(4, 1); then the noise of the owners is 1. Thresholds move by Metropolis'
    algorithm with the latent values integrated out: given these, they could hardly move.

    Parameters
    ----------
    codes : ndarray of int
        Level of each cell, from 0.
    n_levels : int
        Number of levels.
    thresholds : ndarray of shape (n_levels - 1,), default=None
        Thresholds, if they are known.
    owners : {"rows", "columns"} or None, default=None
        Which of the two have thresholds of their own.
    n_owners : int, default=0
        Number of owners.
    """

    precision = 1.0

    def __init__(
        self, codes: Array, n_levels: int, thresholds: Array | None = None, owners: str | None = None, n_owners: int = 0
    ) -> None:
        n = n_levels - 1
        self.codes, self.owners = codes, owners
        #: Whether thresholds are learned: then a constant added to all x could not be told from one added to them.
        self.has_offset = thresholds is None
        if thresholds is None:
            counts = np.bincount(codes, minlength=n_levels) + 0.5
            thresholds = _SPREAD_OF_X * ndtri(np.cumsum(counts)[:-1] / counts.sum())
        #: Ends of the levels' intervals, those of all in a single row; and those of each owner.
        self.bounds = np.concatenate([[-np.inf], thresholds, [np.inf]])[None]
        self.own_bounds = np.repeat(self.bounds, n_owners if owners else 0, axis=0)
        self.own_precision = np.ones(n)
        #: Share of proposals that were accepted in the last sweep, and sum of log P(y | x) once thresholds were drawn.
        self.acceptance, self.log_likelihood = np.nan, np.nan
        self._prior = Hyper(np.zeros(n), np.append(FIRST_DEVIATION**-2.0, np.full(n - 1, GAP_DEVIATION**-2.0)))
        self._steps, self._turn = np.full(n, _FIRST_STEP), 0

    @property
    def state(self) -> dict[str, Array]:
        """All that the next draw depends on."""
        bounds = {"bounds": self.bounds, "own_bounds": self.own_bounds, "own_precision": self.own_precision}
        return {**bounds, "steps": self._steps, "turn": np.array(self._turn)}

    @state.setter
    def state(self, saved: dict[str, Array]) -> None:
        self.bounds, self.own_bounds, self.own_precision, self._steps, turn = (saved[name] for name in self.state)
        self._turn = int(turn)

    def draw(self, chain: FactorChain, adapt: bool) -> None:
        """Draw thresholds given x, then latent values given both."""
        if self.owners is not None:
            self._draw_own(chain, adapt)
        elif self.has_offset:
            self._draw_common(chain, adapt)
        bounds, seed, cells = (self.own_bounds if self.owners else self.bounds), chain.next_seed(), chain.rows.cells
        owners, roots = OWNERS[self.owners], (chain.rows.roots, chain.columns.roots)
        logs = np.empty(cells.indptr.size - 1)

        def draw(part: Block) -> None:
            normal_draws.draw_latent(
                part[0].start, part[0].stop, cells.indptr, cells.indices, self.codes, chain.x, bounds, owners,
                *roots, seed, 1, chain.latent, logs,
            )  # fmt: skip

        chain.threads.all(draw, chain.row_blocks)
        self.log_likelihood = float(logs.sum())

    def _draw_common(self, chain: FactorChain, adapt: bool) -> None:
        """Every second threshold at once: given its neighbours, each is independent of the rest.

        The others in the next sweep or, while steps adapt, in the same.
        """
        cells, n = chain.rows.cells, self.bounds.size - 2
        accepted, gains = np.zeros(n), np.empty((cells.indptr.size - 1, n))
        roots = (chain.rows.roots, chain.columns.roots)
        self._turn = (self._turn + 1) % min(2, n)
        turns = range(min(2, n)) if adapt else (self._turn,)
        for parity in turns:
            proposed = self.bounds[0].copy()
            moving = slice(1 + parity, -1, 2)
            steps = self._steps[parity::2] * chain.random.standard_normal(proposed[moving].size)
            proposed[moving] += steps
            in_order = (proposed[:-2] < proposed[1:-1]) & (proposed[1:-1] < proposed[2:])
            proposed[1:-1] = np.where(in_order, proposed[1:-1], self.bounds[0, 1:-1])

            def gain(part: Block, proposed: Array = proposed) -> None:
                normal_draws.threshold_gains(
                    part[0].start, part[0].stop, cells.indptr, cells.indices, self.codes, chain.x, *roots, self.bounds,
                    proposed, gains,
                )  # fmt: skip

            chain.threads.all(gain, chain.row_blocks)
            totals, chances = gains.sum(axis=0), np.log(chain.random.random(n))
            for d in np.flatnonzero(proposed[1:-1] != self.bounds[0, 1:-1]):
                trial = self.bounds.copy()
                trial[0, d + 1] = proposed[d + 1]
                prior = normal_draws.log_prior(trial, 0, *self._prior)
                if chances[d] < totals[d] + prior - normal_draws.log_prior(self.bounds, 0, *self._prior):
                    self.bounds, accepted[d] = trial, 1.0
        self._adapt(accepted if adapt else accepted[self._turn :: 2], adapt)

    def _draw_own(self, chain: FactorChain, adapt: bool) -> None:
        """Thresholds of all owners given the common ones and x, then the common ones and the precisions around them."""
        by_rows = self.owners == "rows"
        near, far = (chain.rows, chain.columns) if by_rows else (chain.columns, chain.rows)
        bounds, centre = self.own_bounds, Hyper(parameters_of(self.bounds)[0], self.own_precision)
        roots, seed, accepted = far.roots, chain.next_seed(), np.zeros((len(bounds), bounds.shape[1] - 2))

        def move(part: Block) -> None:
            normal_draws.move_own_thresholds(
                part[0].start, part[0].stop, *near.cells, self.codes, chain.x, roots, _OWN_ROUNDS, *centre,
                self._steps, seed, bounds, accepted,
            )  # fmt: skip

        chain.threads.all(move, chain.row_blocks if by_rows else chain.column_blocks)
        self._adapt(accepted[np.diff(near.cells.indptr) > 0].mean(axis=0) / _OWN_ROUNDS, adapt)
        own, n = parameters_of(bounds), len(bounds)
        precision = self._prior.precision + n * self.own_precision
        mean = self.own_precision * own.sum(axis=0) / precision
        common = mean + chain.random.standard_normal(mean.size) / np.sqrt(precision)
        self.bounds[0, 1:-1] = np.cumsum(np.append(common[0], np.exp(common[1:])))
        rate = 1.0 + 0.5 * ((own - common) ** 2).sum(axis=0)
        self.own_precision = chain.random.standard_gamma(OWN_SHAPE + 0.5 * n, mean.size) / rate

    def _adapt(self, accepted: Array, adapt: bool) -> None:
        self.acceptance = float(np.mean(accepted))
        if adapt:
            self._steps = np.clip(self._steps * np.exp(_ADAPTING * (accepted - _ACCEPTANCE)), 1e-6, 10.0)


def parameters_of(bounds: Array) -> Array:
    """First threshold and logarithms of the gaps between thresholds, in each row of `bounds`."""
    return np.concatenate([bounds[:, 1:2], np.log(np.diff(bounds[:, 1:-1], axis=1))], axis=1)


Observation = Gaussian | OrderedProbit

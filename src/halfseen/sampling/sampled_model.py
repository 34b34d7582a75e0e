"""The draws that are kept of factor chains, and the fitted model that answers from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammaincinv, ndtr

from halfseen.arrays import Array, ArraySpec
from halfseen.engines.threads import Threads, one_blas_thread
from halfseen.engines.topk import Cosines, Scores
from halfseen.model import FittedModel, Interval
from halfseen.observed import Observed
from halfseen.sampling.markov_chains import Mixing, Plan, Recorder

if TYPE_CHECKING:
    from halfseen.sampling.factor_chain import FactorChain

#: Draws that are kept take at most so many bytes; fewer are kept, if they would take more.
MAX_BYTES = 1 << 30
#: Number of cells whose expected levels are monitored.
MONITORED_CELLS = 20
#: Pairs whose probabilities one thread computes at a time, and draws of x that are held at a time.
_PAIRS_AT_A_TIME, _DRAWS_AT_A_TIME = 1 << 12, 1 << 21
#: A probability that can be divided by.
TINY = np.finfo(np.float64).tiny
#: Sweeps over new rows at the first draw of a chain, and at every other.
_FIRST_SWEEPS, _SWEEPS = 12, 3
#: Seed of the draws of new rows: a row is folded in to the same numbers whenever it is.
_FOLDING_SEED = 0
#: Subspace iteration: directions beyond the number of components, and rounds.
_SPARE, _ROUNDS = 8, 4


class RowDraws(NamedTuple):
    """Vectors of some rows, of shape (rows, draws, size), precisions of their noise, and thresholds of their own."""

    W: Array
    noise: Array
    thresholds: Array | None


@dataclass(frozen=True, eq=False)
class FactorDraws:
    """Draws kept of all chains, along the second axis of arrays (the first, where there is neither a row nor a column).

    Attributes
    ----------
    W, H : ndarray of shape (n, n_draws, size) and (m, n_draws, size)
        Vectors of rows and columns, with what features add; the last coordinate is the bias, if there are biases.
    row_noise, column_noise : ndarray of shape (n, n_draws) and (m, n_draws)
        Precisions of the noise.
    thresholds : ndarray of shape (n_draws, n_levels - 1)
        Thresholds of all, around which those of owners are.
    own_thresholds : ndarray of shape (n_owners, n_draws, n_levels - 1) or None
        Thresholds of each row or column.
    owners : {"rows", "columns"} or None
        Which of the two have thresholds of their own.
    row_mean, row_precision : ndarray of shape (n_draws, size)
        Distribution of the own vectors of rows.
    row_linear : ndarray of shape (n_draws, size)
        What features, but for the implicit ones, add to the vector of the average row.
    implicit : ndarray of shape (m, n_draws, n_components) or None
        Weights of having a cell in each column.
    chain : ndarray of shape (n_draws,)
        Chain of each draw.
    biases : bool
        Whether there are biases.
    """

    W: Array
    H: Array
    row_noise: Array
    column_noise: Array
    thresholds: Array
    own_thresholds: Array | None
    owners: str | None
    row_mean: Array
    row_precision: Array
    row_linear: Array
    implicit: Array | None
    chain: Array
    biases: bool

    state: ClassVar[Mapping[str, Any]] = {
        "W": ArraySpec("f", ("rows", "draws", "size")),
        "H": ArraySpec("f", ("columns", "draws", "size")),
        "row_noise": ArraySpec("f", ("rows", "draws"), low=0.0),
        "column_noise": ArraySpec("f", ("columns", "draws"), low=0.0),
        "thresholds": ArraySpec("f", ("draws", "levels-1"), rising=True),
        "own_thresholds": ArraySpec("f", ("*", "draws", "levels-1"), sorted=True, optional=True),
        "owners": str | None,
        "row_mean": ArraySpec("f", ("draws", "size")),
        "row_precision": ArraySpec("f", ("draws", "size"), low=0.0),
        "row_linear": ArraySpec("f", ("draws", "size")),
        "implicit": ArraySpec("f", ("columns", "draws", "*"), optional=True),
        "chain": ArraySpec("i", ("draws",), low=0, sorted=True),
        "biases": bool,
    }

    def check_state(self, path: str) -> None:
        """Refuse draws that do not fit together."""
        n_owners = {None: 0, "rows": len(self.W), "columns": len(self.H)}.get(self.owners, -1)
        if n_owners != (0 if self.own_thresholds is None else len(self.own_thresholds)) or not self.chain.size:
            raise ValueError(f"{path} must have a draw, and thresholds for {n_owners} {self.owners}")
        if self.n_components < 1 or (self.implicit is not None and self.implicit.shape[2] != self.n_components):
            raise ValueError(f"{path}/implicit must have {self.n_components} components")

    @property
    def n_components(self) -> int:
        """Number of components, beside biases."""
        return int(self.W.shape[2]) - self.biases

    @property
    def rows(self) -> RowDraws:
        """Draws of all rows."""
        return RowDraws(self.W, self.row_noise, self.own_thresholds if self.owners == "rows" else None)

    def probabilities(self, rows: RowDraws, u: Array, i: Array, n_jobs: int | None = None) -> Array:
        """Mean probabilities of the levels at pairs of positions, of shape (n_pairs, n_levels)."""
        from halfseen.sampling import normal_draws  # compiled code

        out = np.empty((u.size, self.thresholds.shape[1] + 1))
        if self.owners == "columns":
            owners, thresholds = 2, self.own_thresholds
        else:
            owners, thresholds = (0, self.thresholds[None]) if rows.thresholds is None else (1, rows.thresholds)
        arrays = (rows.W, self.H, self.biases, rows.noise, self.column_noise, thresholds, owners, out)

        def fill(start: int) -> None:
            stop = min(start + _PAIRS_AT_A_TIME, u.size)
            normal_draws.level_probabilities(start, stop, u, i, *arrays)

        with Threads(n_jobs) as threads:
            threads.all(fill, range(0, u.size, _PAIRS_AT_A_TIME))
        return out

    def products(self, rows: RowDraws, u: Array, i: Array) -> Array:
        """x at pairs of positions, of shape (n_draws, n_pairs)."""
        k = self.n_components
        x = np.einsum("pdk,pdk->dp", rows.W[u, :, :k], self.H[i, :, :k], dtype=np.float64)
        return x + rows.W[u, :, k].T + self.H[i, :, k].T if self.biases else x

    def fold_in(self, cells: Observed, n_jobs: int | None) -> RowDraws:
        """Draw vectors and noise of new rows (cells of codes), given the columns and all else of every draw.

        Rows start at the mean of all rows, and go on from draw to draw of a chain, whose columns change little.
        """
        from halfseen.sampling import normal_draws  # compiled code
        from halfseen.sampling.factor_chain import NOISE_SHAPE, OWNERS

        (n, m), size, n_draws, k = cells.shape, self.W.shape[2], self.chain.size, self.n_components
        indptr, indices = cells.indptr.astype(np.int64), cells.indices.astype(np.int64)
        codes, order = cells.values.astype(np.int64), np.arange(cells.nnz)
        random = np.random.default_rng(_FOLDING_SEED)
        sets = None if self.implicit is None else implicit_sets(cells)
        own, factor, noise, near_roots = np.empty((n, size)), np.empty((n, size)), np.ones(n), np.ones(n)
        x, latent, squares, logs = np.empty(cells.nnz), np.empty(cells.nnz), np.empty(n), np.empty(n)
        shape, no_grams, no_pulls = NOISE_SHAPE + 0.5 * np.diff(indptr), np.empty((size, 0, size)), np.empty((0, size))
        W, noises = np.empty((n, n_draws, size), self.W.dtype), np.empty((n, n_draws), self.W.dtype)
        owners = OWNERS[self.owners] if self.owners == "columns" else 0

        def fold(draw: int) -> None:
            far, roots = self.H[:, draw].astype(np.float64), np.sqrt(self.column_noise[:, draw].astype(np.float64))
            offset = np.zeros(m)
            if self.biases:
                offset, far[:, -1] = far[:, -1].copy(), 1.0
            scaled = far * roots[:, None]
            linear = np.repeat(self.row_linear[draw][None], n, axis=0)
            if sets is not None and self.implicit is not None:
                linear[:, :k] += sets @ self.implicit[:, draw].astype(np.float64)
            thresholds: Any = self.own_thresholds if owners else self.thresholds[None]
            ends = np.full((len(thresholds), 1), np.inf)
            bounds = np.hstack([-ends, thresholds[:, draw], ends])
            is_first = draw == 0 or self.chain[draw] != self.chain[draw - 1]
            if is_first:
                own[:] = self.row_mean[draw]
                noise[:] = 1.0
            factor[:] = own + linear
            count = _FIRST_SWEEPS if is_first else _SWEEPS
            seeds, chances = random.integers(2**62, size=count).tolist(), random.random(count)

            def sweep(part: tuple[int, int]) -> None:
                rows = slice(*part)
                for seed, chance in zip(seeds, chances, strict=True):
                    normal_draws.products(*part, indptr, indices, factor, far, offset, x)
                    near_roots[rows] = np.sqrt(noise[rows])
                    normal_draws.draw_latent(
                        *part, indptr, indices, codes, x, bounds, owners, near_roots, roots, seed, 0, latent, logs
                    )
                    if self.owners != "rows":
                        normal_draws.squares(*part, indptr, indices, order, x, latent, roots, squares)
                        noise[rows] = gammaincinv(shape[rows], chance) / (NOISE_SHAPE + 0.5 * squares[rows])
                    normal_draws.draw_rows(
                        *part, indptr, indices, order, latent, scaled, offset, noise, roots, linear,
                        self.row_mean[draw], self.row_precision[draw], seed + 1, 0, own, factor, no_grams, no_pulls,
                    )  # fmt: skip

            threads.all(sweep, parts)
            W[:, draw], noises[:, draw] = factor, noise

        with Threads(n_jobs) as threads:
            step = n // threads.count + 1
            parts = [(start, min(start + step, n)) for start in range(0, n, step)]
            for draw in range(n_draws):
                fold(draw)
        return RowDraws(W, noises, None)


def implicit_sets(cells: Observed) -> sparse.csr_array:
    """1 / sqrt(number of cells of the row) at every cell: which columns a row has, as features of it."""
    arrays = (np.ones(cells.nnz), cells.indices, cells.indptr)
    sets = sparse.csr_array(arrays, shape=cells.shape, copy=True)  # merging repeated cells writes to its arrays
    sets.sum_duplicates()
    sets.data[:] = 1.0
    counts = np.diff(sets.indptr)
    sets.data /= np.sqrt(np.repeat(counts, counts))
    return sets


@dataclass(frozen=True, eq=False)
class SampledModel(FittedModel):
    """A fitted model that answers from draws: probabilities of levels are means over the draws.

    `rows` and `columns` are the largest components of the posterior mean of x, and its biases.
    """

    draws: FactorDraws | None = None

    state: ClassVar[Mapping[str, Any]] = {**FittedModel.state, "draws": FactorDraws}

    @property
    def kept(self) -> FactorDraws:
        """The draws."""
        draws: Any = self.draws
        return draws

    @property
    def can_fold_in(self) -> bool:
        return True

    @property
    def has_posterior(self) -> bool:
        return True

    def _from_probabilities(self, what: str, probabilities: Array) -> Array:
        """Expected values, median levels, or the probabilities themselves."""
        if what == "probabilities":
            return probabilities
        if what == "level":
            levels: Array = (np.cumsum(probabilities, axis=-1) < 0.5 - 1e-12).sum(axis=-1)
            return levels
        numbers = self._numbers
        if what == "mean of seen" and self.unseen == "zero":
            return (probabilities[..., 1:] @ numbers[1:]) / np.maximum(probabilities[..., 1:].sum(axis=-1), TINY)
        return probabilities @ numbers

    @property
    def _numbers(self) -> Array:
        encoder: Any = self.encoder
        return (
            np.arange(float(encoder.n_levels)) if encoder.numbers is None else np.asarray(encoder.numbers, np.float64)
        )

    def predict(self, what: str, u: Array, i: Array) -> Array:
        shape = np.broadcast_shapes(u.shape, i.shape)
        u, i = (np.broadcast_to(places, shape).reshape(-1).copy() for places in (u, i))
        answer = self._from_probabilities(what, self.kept.probabilities(self.kept.rows, u, i))
        return answer.reshape(shape + answer.shape[1:])

    def predict_rows(self, what: str, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Array:
        if observed.fingerprint() == self.fingerprint:
            return self._predict_all(what, self.known_rows(np.arange(observed.shape[0])), n_jobs)
        return self._predict_all(what, self.kept.fold_in(self.encoder.codes(observed), n_jobs), n_jobs)

    def _predict_all(self, what: str, rows: RowDraws, n_jobs: int | None = None) -> Array:
        """For every cell of some rows, a few at a time."""
        n, m = len(rows.W), self.shape[1]
        height, parts = max(1, _DRAWS_AT_A_TIME // m), []
        for top in range(0, n, height):
            u, i = np.divmod(np.arange(top * m, min(top + height, n) * m), m)
            answer = self._from_probabilities(what, self.kept.probabilities(rows, u, i, n_jobs))
            parts.append(answer.reshape(-1, m, *answer.shape[1:]))
        return np.concatenate(parts)

    def means(self, W: Array) -> Array:
        return self._predict_all("mean", self.kept.rows) if W is self.W else super().means(W)

    def fold_in(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Array:
        """Coordinates of new rows in the columns' factor: of their posterior mean of x, the best approximation."""
        rows = self.kept.fold_in(self.encoder.codes(observed), n_jobs)
        return project_rows(rows.W, self.kept, self.H).astype(observed.dtype, copy=False)

    def served_rows(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Any:
        return self.kept.fold_in(self.encoder.codes(observed), n_jobs)

    def known_rows(self, positions: Array) -> Any:
        W, noise, thresholds = self.kept.rows
        return RowDraws(W[positions], noise[positions], None if thresholds is None else thresholds[positions])

    def scores(self, rows: Any) -> Scores:
        return _ExpectedValues(self, rows, np.arange(self.shape[1]))

    def similarities(self, positions: Array, side: str) -> Scores:
        """Cosines between the components of the posterior mean of x, without biases."""
        return Cosines.between((self.W if side == "row" else self.H)[:, : self.kept.n_components], positions)

    def log_likelihoods(self, cells: Observed) -> Array:
        return self._logs(self.kept.rows, cells)

    def score_rows(self, observed: Observed, n_jobs: int | None) -> float:
        """Log-likelihood per cell of new rows, after folding them in."""
        cells = self.encoder.codes(observed)
        return float(self._logs(self.kept.fold_in(cells, n_jobs), cells, n_jobs).mean())

    def _logs(self, rows: RowDraws, cells: Observed, n_jobs: int | None = None) -> Array:
        probabilities = self.kept.probabilities(rows, cells.row_of_cell(), cells.indices, n_jobs)
        at_level = probabilities[np.arange(cells.nnz), cells.values.astype(np.intp)]
        return np.log(np.maximum(at_level, np.finfo(np.float64).tiny))

    def sample(self, random: np.random.Generator) -> sparse.csr_array:
        """One of the draws, and values of the training cells at its x."""
        draws, seen = self.kept, self.seen
        draw = int(random.integers(draws.chain.size))
        rows, columns = np.repeat(np.arange(self.shape[0]), np.diff(seen.indptr)), seen.indices
        one = FactorDraws(
            **{name: getattr(draws, name) for name in draws.state}
            | {name: getattr(draws, name)[:, [draw]] for name in ("W", "H", "row_noise", "column_noise")}
        )
        x = one.products(one.rows, rows, columns)[0]
        x += random.standard_normal(x.size) / np.sqrt(draws.row_noise[rows, draw] * draws.column_noise[columns, draw])
        owner = {None: np.zeros(1, np.int64), "rows": rows, "columns": columns}[draws.owners]
        thresholds: Any = draws.thresholds[None] if draws.own_thresholds is None else draws.own_thresholds
        codes = (thresholds[owner, draw] < x[:, None]).sum(axis=1)
        drawn = sparse.csr_array((self.encoder.values_of(codes), columns, seen.indptr), shape=self.shape)
        drawn.data = drawn.data.astype(np.float64)
        return drawn

    def interval(
        self, u: Array, i: Array, level: float, of: str, n_draws: int, random: np.random.Generator
    ) -> Interval:
        """Central intervals, from all draws that were kept: `n_draws` and `random` are of models that draw anew."""
        draws, tails = self.kept, np.array([0.5 - level / 2, 0.5 + level / 2])
        u, i = np.broadcast_arrays(u, i)
        if of == "value":
            up_to = np.cumsum(self.predict("probabilities", u, i), axis=-1)
            codes = np.stack([(up_to[..., :-1] < tail - 1e-12).sum(axis=-1) for tail in tails])
            return Interval(*self.encoder.labels_of(codes))
        ends, pairs = [np.empty((2, 0))], max(1, _DRAWS_AT_A_TIME // draws.chain.size)
        for start in range(0, u.size, pairs):
            rows, columns = u.reshape(-1)[start : start + pairs], i.reshape(-1)[start : start + pairs]
            x = draws.products(draws.rows, rows, columns)
            if of == "mean":
                x = self._means_of_draws(x, rows, columns)
            ends.append(np.quantile(x, tails, axis=0))
        low, high = np.concatenate(ends, axis=1).reshape(2, *u.shape)
        return Interval(low, high)

    def _means_of_draws(self, x: Array, rows: Array, columns: Array) -> Array:
        """Expected value in every draw, of shape (n_draws, n_pairs)."""
        draws = self.kept
        root = np.sqrt(draws.row_noise[rows] * draws.column_noise[columns]).T
        numbers = self._numbers
        means = np.full(x.shape, numbers[0])
        for step, gap in enumerate(np.diff(numbers)):
            if draws.own_thresholds is None:
                threshold = draws.thresholds[:, step, None]
            else:
                threshold = draws.own_thresholds[rows if draws.owners == "rows" else columns, :, step].T
            means += gap * ndtr((x - threshold) * root)
        return means


class _ExpectedValues:
    """Expected values of rows and columns as scores that are computed tile by tile."""

    def __init__(self, model: SampledModel, rows: RowDraws, columns: Array) -> None:
        self._model, self._rows, self._columns = model, rows, columns
        self.dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._rows.W), self._columns.size

    def tile(self, rows: slice, columns: slice) -> Array:
        wanted, asked = np.arange(self.shape[0])[rows], self._columns[columns]
        u, i = np.repeat(wanted, asked.size), np.tile(asked, wanted.size)
        answer = self._model._from_probabilities("mean", self._model.kept.probabilities(self._rows, u, i, 1))
        return answer.reshape(wanted.size, asked.size)

    def among(self, columns: Array) -> _ExpectedValues:
        return _ExpectedValues(self._model, self._rows, self._columns[columns])


# ---------------------------------------------------------------------------------------------------------------------
# the posterior mean as a product of two factors


def principal_factors(draws: FactorDraws) -> tuple[Array, Array]:
    """W and H, the best approximation of the posterior mean of x by so many components, and biases.

    By a few rounds of subspace iteration from random directions; no array of the size of the matrix is made. The layout
    is [w, b, 1] and [h, 1, c], with biases.
    """
    (n, count, _), m, k = draws.W.shape, len(draws.H), draws.n_components
    F, G = (np.ascontiguousarray(array[:, :, :k].transpose(1, 0, 2), np.float64) for array in (draws.W, draws.H))
    width = min(k + _SPARE, n, m)
    Q = np.random.default_rng(_FOLDING_SEED).standard_normal((m, width))
    with one_blas_thread():
        for _ in range(_ROUNDS):
            Q = np.linalg.qr(np.einsum("dnk,dkw->nw", F, G.transpose(0, 2, 1) @ Q))[0]
            B = np.einsum("dmk,dkw->mw", G, F.transpose(0, 2, 1) @ Q) / count
            Q = np.linalg.qr(B)[0]
        A = np.einsum("dnk,dkw->nw", F, G.transpose(0, 2, 1) @ Q) / count  # the posterior mean, in the basis Q
        _, s, Vt = np.linalg.svd(A, full_matrices=False)
    V = Q @ Vt.T
    signs = np.where(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])] < 0, -1.0, 1.0)
    H = np.zeros((m, k))
    H[:, : s.size] = (V * signs * np.sqrt(s))[:, :k]
    if draws.biases:
        H = np.column_stack([H, np.ones(m), draws.H[:, :, k].mean(axis=1, dtype=np.float64)])
    return project_rows(draws.W, draws, H), H


def project_rows(W: Array, draws: FactorDraws, H: Array) -> Array:
    """The rows w with  w H^T  nearest to the mean over the draws of  W_d H_d^T, and their mean biases."""
    k, count = draws.n_components, draws.chain.size
    far = H[:, :k]
    towards = np.einsum("mdk,ml->dkl", draws.H[:, :, :k], far, dtype=np.float64, optimize=True)
    mean = np.einsum("ndk,dkl->nl", W[:, :, :k], towards, dtype=np.float64, optimize=True) / count
    near: Array = mean @ np.linalg.pinv(far.T @ far)
    if draws.biases:
        near = np.column_stack([near, W[:, :, k].mean(axis=1, dtype=np.float64), np.ones(len(near))])
    return near


# ---------------------------------------------------------------------------------------------------------------------
# running chains


class FactorRecorder(Recorder):
    """Recorder of `FactorChain`: log-likelihood, noise, acceptance, and expected levels of some cells."""

    quantities = ("objective", "noise", "acceptance")
    diagnosed: ClassVar[Mapping[str, str]] = {"noise": "noise", "log-likelihood": "objective"}
    keeps_spares = False

    def __init__(self, chains: list[FactorChain], plan: Plan) -> None:
        per_draw = sum(array.nbytes for array in self.copy(chains[0]).values())
        super().__init__(chains, plan._replace(draws=min(plan.draws, max(1, MAX_BYTES // per_draw))))

    def sweep(self, chain: FactorChain, number: int) -> tuple[float, ...]:
        """A sweep, and what is recorded of it."""
        chain.sweep(adapt=number <= self._plan.burn)
        seen: Any = chain.observation
        cells = np.unique(np.linspace(0, chain.x.size - 1, MONITORED_CELLS).astype(np.int64))
        rows, columns = (
            np.searchsorted(chain.rows.cells.indptr, cells, side="right") - 1,
            chain.rows.cells.indices[cells],
        )
        owner = {"rows": rows, "columns": columns}.get(seen.owners, np.zeros(cells.size, np.int64))
        thresholds = (seen.own_bounds if seen.owners else seen.bounds)[owner, 1:-1]
        root = np.sqrt(chain.rows.noise[rows] * chain.columns.noise[columns])
        levels = ndtr((chain.x[cells][:, None] - thresholds) * root[:, None]).sum(axis=1)
        return seen.log_likelihood, float(np.mean(chain.rows.noise) ** -0.5), seen.acceptance, *levels

    def copy(self, chain: FactorChain) -> dict[str, Array]:
        """The state of a chain, as fields of `FactorDraws` without their axis of draws."""
        rows, columns, observation = chain.rows, chain.columns, chain.observation
        seen: Any = observation
        copied = {"W": rows.factor, "H": columns.factor, "row_noise": rows.noise, "column_noise": columns.noise}
        copied = {name: array.astype(np.float32) for name, array in copied.items()}
        mean_linear, is_set = rows.linear.mean(axis=0), [not group.adds_to_bias for group in rows.features]
        if any(is_set):
            group = rows.features[is_set.index(True)]
            copied["implicit"] = group.weights.astype(np.float32)
            mean_linear[: group.weights.shape[1]] -= (group.values @ group.weights).mean(axis=0)
        if seen.owners is not None:
            copied["own_thresholds"] = seen.own_bounds[:, 1:-1].copy()
        return {
            **copied, "thresholds": seen.bounds[0, 1:-1].copy(), "row_mean": rows.hyper.mean,
            "row_precision": rows.hyper.precision, "row_linear": mean_linear,
        }  # fmt: skip

    def draws(self) -> FactorDraws:
        """States kept so far, chain by chain; the last state of each chain, if there are none."""
        of_chains = self.states()
        draws = [draw for chain in of_chains for draw in chain]
        small = ("thresholds", "row_mean", "row_precision", "row_linear")
        arrays: dict[str, Any] = {
            name: np.stack([draw[name] for draw in draws], axis=0 if name in small else 1) for name in draws[0]
        }
        observation: Any = self._chains[0].observation
        arrays |= {name: None for name in ("implicit", "own_thresholds") if name not in arrays}
        chain = np.repeat(np.arange(len(of_chains)), [len(one) for one in of_chains])
        return FactorDraws(**arrays, owners=observation.owners, chain=chain, biases=self._chains[0].biases)

    def mixing(self) -> dict[str, Mixing]:
        """Of the sweeps that were not discarded, and the rate at which steps of thresholds were accepted."""
        found = super().mixing()
        if found:
            start = self._plan.burn if len(self._sweeps) > self._plan.burn else 0
            accepted = float(np.mean(np.transpose(self._sweeps[start:], (2, 1, 0))[2]))
            found["acceptance"] = Mixing(accepted, np.nan, np.nan)
        return found

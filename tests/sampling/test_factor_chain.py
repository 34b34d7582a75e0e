"""Draws of the chain of factors: compiled loops against SciPy and dense linear algebra, the whole chain by Geweke's
joint-distribution test, and the same bits for any number of threads."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.special import log_ndtr

from halfseen.engines.threads import Threads
from halfseen.kernels.random_streams import start_stream
from halfseen.sampling import normal_draws
from halfseen.sampling.factor_chain import (
    FIRST_DEVIATION,
    GAP_DEVIATION,
    NOISE_SHAPE,
    OWN_SHAPE,
    FactorChain,
    FeatureGroup,
    FeatureMatrix,
    Gaussian,
    OrderedProbit,
    draw_hyper,
)

#: Below this, chance does not explain it: one test in a million.
CHANCE = 1e-6
#: Cells of a small matrix, one row and one column without any, one row with a single one.
SHAPE = (5, 4)
ROWS, COLUMNS = np.array([0, 0, 0, 1, 1, 2, 3, 3]), np.array([0, 1, 2, 0, 2, 1, 1, 2])
INDPTR = np.append(0, np.cumsum(np.bincount(ROWS, minlength=SHAPE[0])))


# ---------------------------------------------------------------------------------------------------------------------
# normal distributions of one variable


@njit
def many_truncated(a, b, count):
    out, stream = np.empty(count), np.empty(1, np.uint64)
    start_stream(7, 0, stream)
    for place in range(count):
        out[place] = normal_draws.truncated_normal(a, b, stream)
    return out


INTERVALS = [
    (-np.inf, np.inf), (-np.inf, 0.3), (-1.0, 0.5), (-4.0, 3.0), (0.2, 0.9), (0.2, np.inf), (0.5, 4.0), (3.0, 3.1),
    (6.0, np.inf), (-9.0, -8.0), (-np.inf, -5.0), (-0.1, 0.0), (5.5, 40.0), (-42.0, -38.0), (60.0, np.inf),
    (6.5, np.inf), (-7.0, -6.6),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), INTERVALS)
def test_truncated_normal_numbers_are_distributed_as_scipys(a, b):
    draws = many_truncated(a, b, 20_000)
    assert draws.min() >= a
    assert draws.max() <= b
    assert stats.kstest(draws, stats.truncnorm(a, b).cdf).pvalue > CHANCE


def test_an_empty_interval_does_not_hang():
    assert_array_equal(many_truncated(2.0, 2.0, 2), [2.0, 2.0])
    assert np.isnan(many_truncated(np.nan, 1.0, 2)).all()


@pytest.mark.parametrize(("a", "b"), INTERVALS)
def test_latent_values_are_truncated_normal(a, b):
    """Rows of many equal cells, each with noise of its own; with the log-likelihood of their levels."""
    counts = np.array([0, 1, 3, 700, 10_000])
    n, nnz, indptr = counts.size, counts.sum(), np.append(0, np.cumsum(counts))
    row_roots, column_roots, x = np.linspace(0.5, 2.0, n), np.array([1.3]), np.full(nnz, 0.7)
    latent, logs = np.empty(nnz), np.empty(n)
    scale = 1 / (row_roots * 1.3)
    bounds = np.stack([np.full(n, -np.inf), 0.7 + a * scale, 0.7 + b * scale, np.full(n, np.inf)], axis=1)
    cells = np.zeros(nnz, np.int64)
    codes = cells + 1
    normal_draws.draw_latent(0, n, indptr, cells, codes, x, bounds, 1, row_roots, column_roots, 5, 1, latent, logs)
    z = (latent - x) / np.repeat(scale, counts)
    assert z.min() >= a - 1e-9 * abs(a)
    assert z.max() <= b + 1e-9 * abs(b)
    law = stats.truncnorm(a, b)
    assert stats.kstest(z, law.cdf).pvalue > CHANCE
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 5 / np.sqrt(nnz)
    low, high = (log_ndtr(-a), log_ndtr(-b)) if a > 0 else (log_ndtr(b), log_ndtr(a))
    assert_allclose(logs, counts * (low + np.log1p(-np.exp(high - low))), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("a", [1e7, 1e9, 1e200, 1.7e308])
def test_an_interval_far_out_has_draws_at_its_end(a):
    """The tail beyond a is exponential with mean 1 / a: next to nothing beside a."""
    assert_allclose(many_truncated(a, np.inf, 100), a)
    assert_allclose(many_truncated(-np.inf, -a, 100), -a)
    assert_allclose(many_truncated(a, 1.01 * a, 100), a)


@pytest.mark.parametrize("x", [-60.0, -26.0, -24.9, -3.0, -0.1, 0.0, 0.2, 2.0, 24.9, 25.1, 60.0])
def test_log_probabilities_of_intervals(x):
    for width in (1e-3, 0.5, 3.0, np.inf):
        low, high = (log_ndtr(-x), log_ndtr(-x - width)) if x > 0 else (log_ndtr(x + width), log_ndtr(x))
        truth = low + np.log1p(-np.exp(high - low))
        assert_allclose(normal_draws.log_interval(x, x + width), truth, rtol=1e-8, atol=1e-12)
        assert_allclose(normal_draws.log_interval(-x - width, -x), truth, rtol=1e-8, atol=1e-12)


def test_gains_of_thresholds_are_differences_of_log_likelihoods():
    random = np.random.default_rng(0)
    codes = np.array([0, 1, 2, 3, 3, 1, 0, 2])
    x, row_noise, column_noise = random.normal(size=8), random.gamma(5, 0.2, 5), random.gamma(5, 0.2, 4)
    bounds, out = np.array([[-np.inf, -1.0, 0.2, 1.5, np.inf]]), np.empty((5, 3))
    proposed = np.array([-np.inf, -0.7, 0.2, 2.1, np.inf])
    roots = np.sqrt(row_noise), np.sqrt(column_noise)
    normal_draws.threshold_gains(0, 5, INDPTR, COLUMNS, codes, x, *roots, bounds, proposed, out)

    def logs(bounds):
        root = np.sqrt(row_noise[ROWS] * column_noise[COLUMNS])
        high, low = (stats.norm.cdf((bounds[codes + one] - x) * root) for one in (1, 0))
        return np.log(high - low)

    gains = logs(proposed) - logs(bounds[0])
    beside = np.where(codes <= 1, 0, 2)  # the first threshold is beside levels 0 and 1, the third beside 2 and 3
    truth = np.zeros((5, 3))
    np.add.at(truth, (ROWS, beside), gains)
    assert_allclose(out, truth, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------------
# conjugate draws against closed forms


def test_rows_are_drawn_from_their_normal_distribution():
    """Thousands of equal rows, each with its own stream; longer than what is gathered at a time."""
    random = np.random.default_rng(1)
    n_cells, k, copies = 200, 3, 4000
    far, offset, far_noise = (
        random.normal(size=(n_cells, k)),
        random.normal(size=n_cells),
        random.gamma(5, 0.2, n_cells),
    )
    latent, linear, roots = random.normal(size=n_cells), random.normal(size=k), np.sqrt(far_noise)
    mean, precision, noise = random.normal(size=k), random.gamma(3, 10.0, k), 0.3
    indptr, indices = np.arange(copies + 1) * n_cells, np.tile(np.arange(n_cells), copies)
    own, factor = np.empty((copies, k)), np.empty((copies, k))
    grams, pulls = np.empty((k, copies, k)), np.empty((copies, k))
    normal_draws.draw_rows(
        0, copies, indptr, indices, indices, latent, far * roots[:, None], offset, np.full(copies, noise), roots,
        np.tile(linear, (copies, 1)), mean, precision, 3, 1, own, factor, grams, pulls,
    )  # fmt: skip
    gram = noise * (far * far_noise[:, None]).T @ far
    asked = noise * far.T @ (far_noise * (latent - offset))
    covariance = np.linalg.inv(np.diag(precision) + gram)
    centre = covariance @ (precision * mean + asked - gram @ linear)
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (own - centre).T)
    for coordinate in whitened:
        assert stats.kstest(coordinate, "norm").pvalue > CHANCE
    assert_allclose(np.corrcoef(whitened) - np.eye(k), 0.0, atol=5 / np.sqrt(copies))
    assert_allclose(factor, own + linear)
    assert_allclose(grams[:, 0], gram)
    assert_allclose(pulls, asked - factor @ gram, atol=1e-8)


@pytest.mark.parametrize("are_sets", [False, True])
def test_weights_of_features_settle_at_their_posterior(are_sets):
    """With cells, own vectors and noise fixed, draws of weights have the moments of a linear regression.

    Values of sets are the same in every row.
    """
    random = np.random.default_rng(2)
    n, d, k = 6, 3, 2
    has = random.random((n, d)) < 0.7
    values = sparse.csc_array(random.normal(size=(n, 1 if are_sets else d)) * has)
    group = FeatureGroup(FeatureMatrix(values), k, random)
    assert group.multiples.size == (0 if are_sets else values.nnz)
    roots = random.normal(size=(n, 4, k))
    grams = np.einsum("nak,nal->nkl", roots, roots)
    asked, own = random.normal(size=(n, k)), random.normal(size=(n, k))
    mean, precision = random.normal(size=k), random.gamma(5, 1.0, k)
    weights = np.zeros((d, k))
    linear, factor = np.zeros((n, k)), own.copy()
    pulls = asked - np.einsum("nkl,nl->nk", grams, factor)
    draws = np.empty((20_000, d, k))
    for place in range(len(draws)):
        normal_draws.draw_weights(
            group.indptr, group.rows, group.multiples, group.scales, grams.transpose(1, 0, 2).copy(), pulls, mean,
            precision, place, weights, linear, factor,
        )  # fmt: skip
        draws[place] = weights
    assert_allclose(linear, values @ weights, atol=1e-8)
    assert_allclose(factor, own + linear, atol=1e-8)
    assert_allclose(pulls, asked - np.einsum("nkl,nl->nk", grams, factor), atol=1e-6)
    design = np.stack([np.kron(row, np.eye(k)) for row in values.toarray()])  # from all weights to each row's vector
    P = np.diag(np.tile(precision, d)) + np.einsum("nka,nkl,nlb->ab", design, grams, design)
    r = np.tile(precision * mean, d) + np.einsum("nka,nk->a", design, asked - np.einsum("nkl,nl->nk", grams, own))
    covariance = np.linalg.inv(P)
    flat = draws[100:].reshape(-1, d * k)
    deviations = np.sqrt(np.diag(covariance))
    assert_allclose((flat.mean(axis=0) - covariance @ r) / deviations, 0.0, atol=0.06)
    assert_allclose(
        np.cov(flat.T) / np.outer(deviations, deviations), covariance / np.outer(deviations, deviations), atol=0.06
    )


def test_hyper_parameters_are_normal_gamma():
    """Of no vectors at all, those of the prior; of some, the posterior's two marginals."""
    random = np.random.default_rng(3)
    vectors = np.tile(random.normal(2.0, 3.0, (7, 1)), (1, 5000))
    hyper = draw_hyper(vectors, np.zeros(5000, bool), random)
    n, f, s = 7, vectors[:, 0].mean(), 7 * vectors[:, 0].var()
    rate = 1 + s / 2 + n * f**2 / (2 * (n + 1))
    assert stats.kstest(hyper.precision, stats.gamma(1 + n / 2, scale=1 / rate).cdf).pvalue > CHANCE
    t = (hyper.mean - n * f / (n + 1)) / np.sqrt(rate / ((1 + n / 2) * (n + 1)))  # Student's, after the precision
    assert stats.kstest(t, stats.t(2 + n).cdf).pvalue > CHANCE
    fixed = draw_hyper(vectors, np.ones(5000, bool), random)
    rate = 1 + (vectors[:, 0] ** 2).sum() / 2
    assert stats.kstest(fixed.precision, stats.gamma(1 + n / 2, scale=1 / rate).cdf).pvalue > CHANCE
    assert not fixed.mean.any()


def test_noise_of_rows_is_gamma():
    """Thousands of equal rows of two cells, of which x and the noise of the columns are known."""
    random, copies = np.random.default_rng(4), 4000
    seen = Gaussian(np.tile([0.3, -1.0], copies))
    with Threads(1) as threads:
        chain = FactorChain(2 * np.arange(copies + 1), np.tile([0, 1], copies), (copies, 2), seen, 1, random, threads)
        chain.x[:], chain.latent[:], seen.precision = np.tile([1.0, 0.5], copies), seen.values, 2.5
        chain.columns.noise, chain.columns.has_noise = np.array([0.7, 1.8]), False
        chain._draw_noise(chain.rows, chain.columns, chain.row_blocks)
    rate = NOISE_SHAPE + 2.5 / 2 * (0.7 * 0.7**2 + 1.8 * 1.5**2)
    assert stats.kstest(chain.rows.noise, stats.gamma(NOISE_SHAPE + 1, scale=1 / rate).cdf).pvalue > CHANCE


# ---------------------------------------------------------------------------------------------------------------------
# the whole chain (Geweke 2004): the same joint distribution from the prior, and from sweeps with data drawn in between

IMPLICIT = (
    FeatureMatrix(sparse.csr_array((np.full(8, 0.6), (ROWS, COLUMNS)), shape=SHAPE), False),
    FeatureMatrix(sparse.csr_array((np.full(8, 0.5), (COLUMNS, ROWS)), shape=SHAPE[::-1]), False),
)
ABOUT_ROWS = FeatureMatrix(sparse.csr_array(np.array([[1.0, 0.5], [0, -1], [1, 0], [0, 2], [1, 1]])))
CASES = {
    "gaussian": ({}, {}),
    "ordered probit": ({"n_levels": 4}, {}),
    "given thresholds": ({"n_levels": 3, "thresholds": np.array([-0.5, 0.8])}, {}),
    "binary": ({"n_levels": 2}, {}),
    "own thresholds of rows": ({"n_levels": 3, "owners": "rows", "n_owners": 5}, {}),
    "own thresholds of columns": ({"n_levels": 3, "owners": "columns", "n_owners": 4}, {}),
    "without biases": ({"n_levels": 3}, {"biases": False}),
    "implicit sets": ({"n_levels": 3}, {"row_features": IMPLICIT[:1], "column_features": IMPLICIT[1:]}),
    "sets and features": (
        {"n_levels": 3},
        {"row_features": [IMPLICIT[0], ABOUT_ROWS], "column_features": list(IMPLICIT[1:])},
    ),
    "gaussian with features": ({}, {"row_features": [ABOUT_ROWS]}),
}


def make_chain(observation, options, threads, random):
    codes = np.zeros(8, np.int64)
    seen = OrderedProbit(codes, **observation) if observation else Gaussian(codes)
    return FactorChain(INDPTR, COLUMNS, SHAPE, seen, 2, random, threads, **options)


def draw_prior(chain, random):
    """Put draws from the prior into a chain, by the formulas of its documentation."""

    def hyper(size, is_zero):
        precision = random.gamma(1.0, 1.0, size)
        return np.where(is_zero, 0.0, random.normal(0.0, precision**-0.5)), precision

    seen = chain.observation
    for side, is_fixed, name in ((chain.rows, True, "rows"), (chain.columns, seen.has_offset, "columns")):
        size = side.own.shape[1]
        is_zero = (np.arange(size) == 2) & is_fixed
        mean, precision = hyper(size, is_zero)
        side.hyper = type(side.hyper)(mean, precision)
        side.own[:] = random.normal(mean, precision**-0.5, side.own.shape)
        side.linear[:] = 0.0
        for group in side.features:
            mean, precision = hyper(group.weights.shape[1], False)
            group.hyper = type(side.hyper)(mean, precision)
            group.weights[:] = random.normal(mean, precision**-0.5, group.weights.shape)
            side.linear[:, : group.weights.shape[1]] += group.values.toarray() @ group.weights
        side.factor[:] = side.own + side.linear
        side.noise = random.gamma(NOISE_SHAPE, 1 / NOISE_SHAPE, len(side.own)) if seen.owners != name else side.noise
    if isinstance(seen, Gaussian):
        seen.precision = random.gamma(1.0, 1.0)
    elif seen.has_offset:
        n = seen.bounds.size - 2
        deviations = np.append(FIRST_DEVIATION, np.full(n - 1, GAP_DEVIATION))
        common = random.normal(0.0, deviations)
        seen.bounds[0, 1:-1] = np.cumsum(np.append(common[0], np.exp(common[1:])))
        if seen.owners:
            seen.own_precision = random.gamma(OWN_SHAPE, 1.0, n)
            own = random.normal(common, seen.own_precision**-0.5, (len(seen.own_bounds), n))
            seen.own_bounds[:, 1:-1] = np.cumsum(np.hstack([own[:, :1], np.exp(own[:, 1:])]), axis=1)
    chain.x[:] = dense_x(chain)[ROWS, COLUMNS]


def dense_x(chain):
    W, H = chain.rows.factor, chain.columns.factor
    return W[:, :2] @ H[:, :2].T + (W[:, 2:] + H[:, 2:].T if chain.biases else 0.0)


def draw_data(chain, random):
    """Replace what was observed by data drawn from the model."""
    seen = chain.observation
    deviation = (seen.precision * chain.rows.noise[ROWS] * chain.columns.noise[COLUMNS]) ** -0.5
    values = random.normal(dense_x(chain)[ROWS, COLUMNS], deviation)
    if isinstance(seen, Gaussian):
        seen.values[:] = values
        return
    bounds = {None: np.repeat(seen.bounds, 8, axis=0)}
    if seen.owners:
        bounds = {"rows": seen.own_bounds[ROWS % len(seen.own_bounds)]}
        bounds["columns"] = seen.own_bounds[COLUMNS]
    seen.codes[:] = (bounds[seen.owners][:, 1:-1] < values[:, None]).sum(axis=1)


def summaries(chain):
    """Bounded functions of all unknowns and of the data: moments of the heavy tails of the prior do not exist."""
    seen = chain.observation
    parts = [dense_x(chain).ravel()[[0, 1, 7, 14, 19]]]
    for side in (chain.rows, chain.columns):
        parts += [side.own[0], side.own[-1], side.hyper.mean, np.log(side.hyper.precision), np.log(side.noise[[0, -1]])]
        for group in side.features:
            parts += [group.weights[0], group.weights[-1], group.hyper.mean, np.log(group.hyper.precision)]
    if isinstance(seen, Gaussian):
        parts += [np.log([seen.precision]), seen.values[:3]]
    else:
        parts += [seen.bounds[0, 1:-1], seen.codes[:3] - 0.5 * seen.bounds.size + 1.5]
        parts += [seen.own_bounds[[0, -1], 1:-1].ravel(), np.log(seen.own_precision)] if seen.owners else []
    values = np.arctan(np.concatenate(parts))
    return np.concatenate([values, values**2, values[:1] * values[1:]])


@pytest.mark.parametrize("case", CASES)
def test_sweeps_leave_the_joint_distribution_as_it_is(case):
    """From draws of the prior, sweeps with new data in between must not move the mean of anything."""
    n_starts, n_sweeps = 1200, 4
    random = np.random.default_rng(11)
    with Threads(1) as threads:
        chain = make_chain(*CASES[case], threads, random)
        for _ in range(200):  # the steps of thresholds adapt
            draw_prior(chain, random)
            draw_data(chain, random)
            chain.sweep(adapt=True)
        moves = []
        for _ in range(n_starts):
            draw_prior(chain, random)
            draw_data(chain, random)
            start = summaries(chain)
            for _ in range(n_sweeps):
                chain.sweep()
                draw_data(chain, random)
            moves.append(summaries(chain) - start)
    moves = np.array(moves)
    moves = moves[:, moves.std(axis=0) > 1e-12]  # but what is fixed
    distances = np.abs(moves.mean(axis=0)) / (moves.std(axis=0) / np.sqrt(n_starts))
    assert moves.shape[1] > 40
    assert 2 * stats.norm.sf(distances.max()) * distances.size > 1e-3


# ---------------------------------------------------------------------------------------------------------------------
# rows without cells, threads


@pytest.mark.parametrize("owners", [None, "rows", "columns"])
def test_draws_are_the_same_for_any_number_of_threads(owners):
    random = np.random.default_rng(5)
    n, m, count = 300, 200, 9000
    cells = np.sort(random.choice(n * m, count, replace=False))
    rows, columns = np.divmod(cells, m)
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
    implicit = sparse.csr_array((np.full(count, 0.2), (rows, columns)), shape=(n, m))
    ends, codes, n_owners = [], random.integers(0, 4, count), {None: 0, "rows": n, "columns": m}[owners]
    for n_jobs in (1, 2, 3):
        seen = OrderedProbit(codes, 4, None, owners, n_owners)
        with Threads(n_jobs) as threads:
            chain = FactorChain(
                indptr, columns, (n, m), seen, 4, np.random.default_rng(0), threads,
                row_features=[FeatureMatrix(implicit, False)], column_features=[FeatureMatrix(implicit.T)],
            )  # fmt: skip
            for sweep in range(4):
                chain.sweep(sweep < 2)
            assert n_jobs == 1 or len(chain.row_blocks) > n_jobs
        ends.append([chain.x, chain.latent, chain.rows.factor, chain.columns.factor, seen.bounds, seen.own_bounds])
    for other in ends[1:]:
        for one, two in zip(ends[0], other, strict=True):
            assert_array_equal(one, two)

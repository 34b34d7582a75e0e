"""Single draws of a chain, of a factor's distribution, noises and couplings, against the laws that SciPy knows."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from halfseen.coupling.sampling import chain as chain_module
from halfseen.coupling.sampling.chain import Chain, Noise, _gamma_above
from halfseen.coupling.sampling.hyper import drawn_normal
from halfseen.coupling.sampling.layout import Layout
from halfseen.engines.threads import Threads
from tests.coupling import sampling_oracle as oracle

#: Below this, chance does not explain it: one test in a million.
CHANCE = 1e-6


@pytest.fixture(autouse=True)
def one_thread():
    """Thousands of small products are slower on many threads."""
    with threadpool_limits(1):
        yield


def posterior(rows):
    """The Normal-Wishart's parameters after these rows, updated one row after another: (mean, weight, scale, freedom).

    Before any: mean 0 seen once, scale I, freedom k + 1. After a row f the inverse scale grows by the square of f's
    distance from the mean, shrunk by how often that was seen.
    """
    k = rows.shape[1]
    mean, weight, inverse, freedom = np.zeros(k), 1.0, np.eye(k), k + 1.0
    for row in rows:
        inverse = inverse + weight / (weight + 1) * np.outer(row - mean, row - mean)
        mean = (weight * mean + row) / (weight + 1)
        weight, freedom = weight + 1, freedom + 1
    return mean, weight, np.linalg.inv(inverse), freedom


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 2), (3, 3), (40, 3)])
def test_the_normal_of_a_factor_is_drawn_from_its_normal_wishart(n, k):
    random = np.random.default_rng(n)
    rows = random.normal(0.8, 1.5, (n, k))
    mean, weight, scale, freedom = posterior(rows)
    draws = [drawn_normal(rows, random) for _ in range(2500)]
    means, precisions = np.array([draw.mean for draw in draws]), np.array([draw.precision for draw in draws])
    deviations = means - mean
    inverse = np.linalg.inv(scale)
    covariances = np.linalg.inv(precisions)
    distances = weight * np.einsum("da,dab,db->d", deviations, precisions, deviations)
    assert stats.kstest(distances, "chi2", (k,)).pvalue > CHANCE
    for a in (*np.eye(k), np.arange(1.0, k + 1)):
        # a' P a / a' S a is chi-square; so is a' S^-1 a / a' P^-1 a; the mean alone has Student's distribution.
        forms = np.einsum("a,dab,b->d", a, precisions, a) / (a @ scale @ a)
        assert stats.kstest(forms, "chi2", (freedom,)).pvalue > CHANCE
        forms = (a @ inverse @ a) / np.einsum("a,dab,b->d", a, covariances, a)
        assert stats.kstest(forms, "chi2", (freedom - k + 1,)).pvalue > CHANCE
        left = freedom - k + 1
        spread = np.sqrt(a @ inverse @ a / (weight * left))
        assert stats.kstest(deviations @ a / spread, "t", (left,)).pvalue > CHANCE
    of_scipy = stats.wishart.rvs(freedom, scale, size=2500, random_state=random).reshape(-1, k, k)
    for what in (np.linalg.det, lambda P: np.trace(P, axis1=1, axis2=2), lambda P: P[:, 0, -1]):
        assert stats.ks_2samp(what(precisions), what(of_scipy)).pvalue > CHANCE


def chain_of(shape, seed=0):
    """A chain over a matrix without holes, without a comparison."""
    n, m = shape
    cells = m * np.arange(n + 1)
    nobody = np.empty(0, np.int64)
    values = np.sort(np.random.default_rng(seed).normal(size=(n, m)), axis=1).reshape(-1)
    seen = SimpleNamespace(
        indptr=cells, respondents=np.tile(np.arange(m), n), n_respondents=m, answers=values, answer_indptr=cells,
        higher=nobody, lower=nobody, times=None, n_asked=n * m,
    )  # fmt: skip
    return Chain(Layout.of(seen), 2, 1.0, np.random.default_rng(seed), Threads(1))


def test_row_noises_are_inverse_gamma():
    """IG(2 + m / 2, 2 + sum of squares / 2 s_j^2), of rows that all have the same squares."""
    n, m = 4000, 3
    chain = chain_of((n, m))
    squares, columns = np.array([0.3, 2.0, 0.7]), np.array([0.5, 1.0, 3.0])
    chain.noise = Noise(np.full(n, 7.0), columns, 1.0)
    chain._draw_noise(np.tile(squares, n))
    law = stats.invgamma(2 + m / 2, scale=2 + np.sum(squares / columns) / 2)
    assert stats.kstest(chain.noise.rows, law.cdf).pvalue > CHANCE


def test_column_noises_are_inverse_gamma_around_the_common_one():
    """IG(3 + n / 2, 3 s0 + sum of squares / 2 rho_i), of columns with the same squares, given the rows' draw."""
    n, m = 3, 4000
    chain = chain_of((n, m))
    squares, common = np.array([0.3, 2.0, 0.7]), 0.4
    chain.noise = Noise(np.full(n, 7.0), np.full(m, 5.0), common)
    chain._draw_noise(np.repeat(squares, m))
    law = stats.invgamma(3 + n / 2, scale=3 * common + np.sum(squares / chain.noise.rows) / 2)
    assert stats.kstest(chain.noise.columns, law.cdf).pvalue > CHANCE


@pytest.mark.parametrize("least", [0.0, 0.5, 2.0])
def test_the_common_noise_is_gamma_above_the_least_given_the_columns(least):
    """Gamma(1 + 3 m, rate 1 + 3 sum 1 / s_j^2), cut off: by its distribution function, each draw at its own columns."""
    m = 4
    chain = chain_of((2, m))
    chain.layout = replace(chain.layout, least_noise=least)
    levels = []
    for _ in range(2000):
        chain._draw_noise(np.ones(2 * m))
        law = stats.gamma(1 + 3 * m, scale=1 / (1 + 3 * np.sum(1 / chain.noise.columns)))
        levels.append(law.sf(chain.noise.common) / law.sf(least))
        assert chain.noise.common >= least
    assert stats.kstest(levels, "uniform").pvalue > CHANCE


def above(shape, rate, least, copies=4000, seed=3):
    """Draws, and the shares of the tail above `least` that lie beyond them: uniform if all is well."""
    random = np.random.default_rng(seed)
    draws = np.array([_gamma_above(least, shape, rate, random) for _ in range(copies)])
    assert (draws >= least).all()
    law = stats.gamma(shape, scale=1 / rate)
    return draws, law.sf(draws) / law.sf(least)


#: How much of a distribution lies above the bound: what is drawn by its distribution function, and what is not.
SHALLOW, DEEP = (1.0, 0.9, 0.5, 1e-2, 1e-6, 2e-8), (5e-9, 1e-12, 1e-40, 1e-280)


@pytest.mark.parametrize("share", SHALLOW + DEEP)
@pytest.mark.parametrize(("shape", "rate"), [(1.0, 1.0), (4.0, 50.0), (301.0, 30.0)])
def test_gamma_above_a_bound_is_the_truncated_gamma(shape, rate, share):
    assert min(SHALLOW) > chain_module._SHALLOW > max(DEEP)
    least = stats.gamma.isf(share, shape, scale=1 / rate)
    assert stats.kstest(above(shape, rate, least)[1], "uniform").pvalue > CHANCE


@pytest.mark.parametrize("share", [0.05, 1e-3, 1e-8])
def test_both_ways_to_draw_above_a_bound_agree(share, monkeypatch):
    """Each is forced on the same distribution, also where its tail is not yet all but exponential."""
    shape, rate = 25.0, 3.0
    least = stats.gamma.isf(share, shape, scale=1 / rate)
    found = []
    for shallow in (0.0, 1.0):
        monkeypatch.setattr(chain_module, "_SHALLOW", shallow)
        draws, levels = above(shape, rate, least, seed=int(shallow))
        assert stats.kstest(levels, "uniform").pvalue > CHANCE
        found.append(draws)
    assert stats.ks_2samp(*found).pvalue > CHANCE


@pytest.mark.parametrize("m", [1, 100, 200_000])
def test_where_there_is_no_noise_the_least_is_drawn_all_but_exactly(m):
    """Columns of no noise at all: s0 would be 0. Its tail is exponential, 3 sum 1 / s_j^2 - 3 m / least steep."""
    least, variance = 1e-4, 1e-12
    rate = 1 + 3 * m / variance
    random = np.random.default_rng(m)
    steps = np.array([_gamma_above(least, 1 + 3.0 * m, rate, random) for _ in range(500)]) - least
    assert (steps >= 0).all()
    assert steps.max() < 20 / (rate - 3 * m / least) + 1e-19


def test_couplings_are_drawn_under_the_noise_of_both_sides():
    """Rows of three answers, all alike: every order by its exact probability."""
    n, answers = 6000, [-1.0, 0.2, 0.9]
    chain = chain_of((n, 3))
    chain.tokens[:], chain.mean[:] = np.tile(answers, n), np.tile([0.5, 0.0, -0.2], n)
    columns, rho = np.array([0.5, 1.0, 2.0]), 0.3
    chain.noise = Noise(np.full(n, rho), columns, 1.0)
    chain._draw_couplings(30)
    how = {"mean": [0.5, 0.0, -0.2], "precision": 1 / (rho * columns), "trust": 1.0, "comparisons": []}
    expected = oracle.couplings(answers, alone=[(0, 0)] * 3, **how)
    counts = Counter(map(tuple, chain.x.reshape(n, 3).tolist()))
    assert oracle.chance_of_a_fit([counts[o] for o in expected], [n * p for p in expected.values()]) > CHANCE

"""The chain: what is drawn from the model stays so under its sweeps; single draws follow the laws that SciPy knows.

The whole chain: parameters are drawn from the priors, values from the parameters, and what a collection would keep from
the values. Started from the truth, a right chain leaves the joint distribution as it is, whatever it does to single
draws: over many such starts, the mean of anything before a sweep is its mean after it. (Geweke's test, each run by
itself, so that no draw depends on another.) With trust t, each comparison tells the truth with the chance
1 / (1 + exp(-t)).
"""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from halfseen import Uncoupled
from halfseen.engines.threads import Threads
from halfseen.sampling import coupling_chain
from halfseen.sampling.coupling import Layout, Units
from halfseen.sampling.coupling_chain import CouplingChain, Noise, Normal, draw_gamma_above, draw_normal_wishart
from tests.sampling import coupling_oracle as oracle

#: Further from 0 than this, a mean is not 0 by chance: one test in 150,000.
DEVIATIONS = 4.5
TRUST = 1.0
#: Columns that answered. Of row 1 an answer is lost; of row 2 nobody wrote down who the last one was; column 2 was
#: asked question 3 twice, and compared as it answered first.
ANSWERED = [[0, 1, 2, 3], [0, 1, 3], [1, 2, 3, 4], [0, 2, 2]]
N_KNOWN_COLUMNS = 4
LOST = [0, 1, 0, 0]
PAIRS = [[(0, 1), (1, 2), (0, 1)], [(0, 3)], [(1, 2), (2, 3)], [(0, 2)]]
#: Columns that are compared with others nobody named.
HALF_KNOWN = [[3], [1], [3, 3], [2]]
#: Below this the common noise s0 does not go: so high that a third of its prior would lie there. (The library takes it
#: from the data; a prior must not know them.)
LEAST_NOISE = 0.4


@pytest.fixture(autouse=True)
def one_thread():
    """Thousands of small products are slower on many threads."""
    with threadpool_limits(1):
        yield


def collect(drawn, random, compared):
    """What would be collected, and the coupling: the token of every asking, the unknown values, all values."""
    rows = [[drawn.value(random, i, j) for j in columns] for i, columns in enumerate(ANSWERED)]
    cells, answers, tokens, unknown, higher, lower = [], [], [], [], [], []
    for i, (columns, values) in enumerate(zip(ANSWERED, rows, strict=True)):
        lost = list(random.permutation(len(values))[: LOST[i]])
        order = sorted(set(range(len(values))) - set(lost), key=lambda place: values[place]) + lost
        tokens += [order.index(place) for place in range(len(values))]
        answers.append([values[place] for place in order[: len(values) - len(lost)]])
        unknown += [values[place] for place in lost]
        asked = sorted({j for j in columns if j < N_KNOWN_COLUMNS})
        number = {j: len(cells) + place for place, j in enumerate(asked)}
        cells += [(i, j, columns.count(j)) for j in asked]
        value = {j: values[columns.index(j)] for j in asked}
        for a, b in PAIRS[i] if compared else ():
            true = (value[a] >= value[b]) == (random.random() < 1 / (1 + np.exp(-TRUST)))
            higher.append(number[a if true else b])
            lower.append(number[b if true else a])
        for j in HALF_KNOWN[i] if compared else ():
            won = random.random() < oracle.standing(value[j], answers[-1])
            higher.append(number[j] if won else -1)
            lower.append(-1 if won else number[j])
    i, j, times = np.array(cells).T
    seen = SimpleNamespace(
        indptr=np.searchsorted(i, np.arange(5)), respondents=j, times=times.astype(float), n_asked=len(cells),
        n_respondents=N_KNOWN_COLUMNS, answers=np.concatenate(answers),
        answer_indptr=np.append(0, np.cumsum([len(row) for row in answers])),
        higher=np.array(higher, np.int64), lower=np.array(lower, np.int64),
    )  # fmt: skip
    return seen, np.array(tokens), np.array(unknown), np.concatenate(rows)


def started(drawn, random, compared, own):
    """A chain that stands at the truth, its values in their own units."""
    seen, tokens, unknown, values = collect(drawn, random, compared)
    layout = replace(Layout.from_collection(seen), noise_floor=LEAST_NOISE)
    layout.tokens[:] = np.where(layout.is_answer, layout.in_answer_units(layout.tokens), 0.0)
    if own:
        layout = replace(layout, units=Units(np.arange(4.0), np.ones(4)))
    chain = CouplingChain(layout, drawn.A.shape[1], TRUST, random, Threads(1))
    assert layout.rows.indices.tolist() == [j for columns in ANSWERED for j in columns]
    chain.A, chain.B = drawn.A.copy(), drawn.B.copy()
    chain.noise = Noise(drawn.row_noise.copy(), drawn.column_noise.copy(), drawn.common)
    chain.scale, chain.offset = drawn.scale.copy(), drawn.offset.copy()
    chain.tokens[~layout.is_answer] = unknown
    chain.tokens /= drawn.scale[layout.row_of_cell]
    chain.token_of_cell = tokens + layout.rows.indptr[layout.row_of_cell]
    chain.cell_of_token = np.argsort(chain.token_of_cell)
    chain.mean = drawn.mean[layout.row_of_cell, layout.rows.indices]
    assert np.abs(chain.x * drawn.scale[layout.row_of_cell] - values).max() <= 1e-9 * np.abs(values).max()
    return chain


def features(chain):
    """What is compared before and after: bounded, or with thin tails, because the priors have none of thinner ones."""
    layout, (rows, columns, common) = chain.layout, chain.noise
    row, column, x = layout.row_of_cell, layout.rows.indices, chain.x
    means = np.einsum("ck,ck->c", chain.A[row], chain.B[column]) + chain.offset[row]
    assert np.abs(chain.mean - means).max() <= 1e-9 * np.abs(means).max()
    residual = (x - chain.mean) / np.sqrt(rows[row] * columns[column])
    sizes = [np.log1p((factor**2).sum(axis=1)) for factor in (chain.A, chain.B)]
    log_rows, log_columns = np.log(rows), np.log(columns)
    told = {
        "log rho": log_rows.mean(), "log rho squared": (log_rows**2).mean(),
        "log s": log_columns.mean(), "log s squared": (log_columns**2).mean(), "log s of nobody": log_columns[4],
        "log s0": np.log(common), "log s0 squared": np.log(common) ** 2,
        "s0 near its bound": float(common < 1.5 * LEAST_NOISE),
        "s0 with s": np.log(common) * log_columns.mean(),
        "a": np.tanh(chain.A).mean(), "size of a": sizes[0].mean(), "size of a squared": (sizes[0] ** 2).mean(),
        "b": np.tanh(chain.B).mean(), "size of b": sizes[1].mean(), "size of b squared": (sizes[1] ** 2).mean(),
        "a of a row": np.tanh(chain.A[0] - chain.A[1])[0], "b of nobody": sizes[1][4],
        "spread of a": np.log(np.var(chain.A[:, 0])), "spread of b": np.log(np.var(chain.B[:, 0])),
        "mean of cells": np.tanh(chain.mean / 2).mean(), "size of means": np.log1p(chain.mean**2).mean(),
        "residual": residual.mean(), "residual squared": (residual**2).mean(),
        "residual of a cell": residual[5] ** 2, "of nobody": residual[row == 2][3] ** 2,
        "residual with mean": (residual * np.tanh(chain.mean)).mean(),
        "residual with rho": (residual**2 * log_rows[row]).mean(),
        "residual with s": (residual**2 * log_columns[column]).mean(),
        "residual with a": (residual**2 * sizes[0][row]).mean(),
        "residual with b": (residual**2 * sizes[1][column]).mean(),
        "value and mean": (np.tanh(x) * np.tanh(chain.mean)).mean(), "two values": np.tanh(x[0] - x[1]),
        "unknown": np.tanh(chain.tokens[~layout.is_answer]).mean(),
        "size of unknown": np.log1p(chain.tokens[~layout.is_answer] ** 2).mean(),
        "who lost": float(chain.token_of_cell[4] == 6) + 2.0 * (chain.token_of_cell[5] == 6),
    }  # fmt: skip
    if layout.units.are_own:
        scales, offset = np.log(chain.scale), np.tanh(chain.offset)
        told |= {
            "log scale": scales.mean(), "log scale squared": (scales**2).mean(), "scale of lost": scales[1],
            "offset": offset.mean(), "size of offset": (offset**2).mean(),
            "value": np.tanh(x * chain.scale[row]).mean(), "scale with rho": (scales * log_rows).mean(),
            "size of values": np.log1p((x * chain.scale[row]) ** 2).mean(),
            "scale with a": (scales * sizes[0]).mean(), "offset with a": (offset * np.tanh(chain.A[:, 0])).mean(),
        }  # fmt: skip
    if layout.below.cells.size:
        told["violated"] = chain.violations()
        answers = [chain.tokens[(row == i) & layout.is_answer].tolist() for i in range(4)]
        standings = np.array([oracle.standing(value, answers[i]) for value, i in zip(x.tolist(), row, strict=True)])
        won, lost = layout.half_known.T
        told["half known"] = np.sum(won * np.log(standings) + lost * np.log(1 - standings))
    return np.array(list(told.values())), list(told)


@pytest.mark.parametrize(
    ("compared", "k", "own", "starts"), [(False, 1, False, 800), (True, 2, False, 1500), (True, 2, True, 1500)],
    ids=["couplings alike", "compared", "own units"],
)  # fmt: skip
def test_sweeps_leave_the_joint_distribution_as_it_is(compared, k, own, starts):
    random = np.random.default_rng([compared, k])
    differences = []
    for _ in range(starts):
        chain = started(oracle.Drawn(random, (4, 5), k, LEAST_NOISE, own), random, compared, own)
        before, names = features(chain)
        for _ in range(5):
            chain.sweep(2)
        differences.append(features(chain)[0] - before)
    differences = np.array(differences)
    spread = differences.std(axis=0, ddof=1)
    assert (spread > 0).all(), np.array(names)[spread == 0]
    found = differences.mean(axis=0) / (spread / np.sqrt(starts))
    worst = np.argmax(np.abs(found))
    assert abs(found[worst]) < DEVIATIONS, (names[worst], found[worst])


#: Below this, chance does not explain it: one test in a million.
CHANCE = 1e-6


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
    draws = [draw_normal_wishart(rows, random) for _ in range(2500)]
    means, precisions = (np.array(arrays) for arrays in zip(*draws, strict=True))
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
    seen = Uncoupled.from_coupled(np.random.default_rng(seed).normal(size=shape), 0)
    return CouplingChain(Layout.from_collection(seen), 2, 1.0, np.random.default_rng(seed), Threads(1))


def test_noises_of_rows_and_columns_are_inverse_gamma():
    """IG(2 + m / 2, 2 + sum of squares / 2 s_j^2), of rows that all have the same squares."""
    n, m = 4000, 3
    chain = chain_of((n, m))
    squares, columns = np.array([0.3, 2.0, 0.7]), np.array([0.5, 1.0, 3.0])
    chain.noise = Noise(np.full(n, 7.0), columns, 1.0)
    chain._draw_noise(np.tile(squares, n))
    law = stats.invgamma(2 + m / 2, scale=2 + np.sum(squares / columns) / 2)
    assert stats.kstest(chain.noise.rows, law.cdf).pvalue > CHANCE
    # IG(3 + n / 2, 3 s0 + sum of squares / 2 rho_i), of columns with the same squares, given the rows' draw.
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
    chain.layout = replace(chain.layout, noise_floor=least)
    levels = []
    for _ in range(2000):
        chain._draw_noise(np.ones(2 * m))
        law = stats.gamma(1 + 3 * m, scale=1 / (1 + 3 * np.sum(1 / chain.noise.columns)))
        levels.append(law.sf(chain.noise.common) / law.sf(least))
        assert chain.noise.common >= least
    assert stats.kstest(levels, "uniform").pvalue > CHANCE


def above(shape, rate, least, copies=4000, seed=3):
    """The shares of the tail above `least` that lie beyond draws: uniform if all is well."""
    random = np.random.default_rng(seed)
    draws = np.array([draw_gamma_above(least, shape, rate, random) for _ in range(copies)])
    assert (draws >= least).all()
    law = stats.gamma(shape, scale=1 / rate)
    return law.sf(draws) / law.sf(least)


#: How much of a distribution lies above the bound: what is drawn by its distribution function, and what is not.
SHALLOW, DEEP = (1.0, 0.9, 0.5, 1e-2, 1e-6, 2e-8), (5e-9, 1e-12, 1e-40, 1e-280)


@pytest.mark.parametrize("share", SHALLOW + DEEP)
@pytest.mark.parametrize(("shape", "rate"), [(1.0, 1.0), (4.0, 50.0), (25.0, 3.0), (301.0, 30.0)])
def test_gamma_above_a_bound_is_the_truncated_gamma(shape, rate, share, monkeypatch):
    """Also where both ways to draw it, each forced, must agree, though the tail is not yet all but exponential."""
    assert min(SHALLOW) > coupling_chain._MIN_TAIL > max(DEEP)
    least = stats.gamma.isf(share, shape, scale=1 / rate)
    assert stats.kstest(above(shape, rate, least), "uniform").pvalue > CHANCE
    for shallow in (0.0, 1.0) if 1e-7 < share < 0.1 else ():
        monkeypatch.setattr(coupling_chain, "_MIN_TAIL", shallow)
        assert stats.kstest(above(shape, rate, least), "uniform").pvalue > CHANCE


@pytest.mark.parametrize("m", [1, 100, 200_000])
def test_where_there_is_no_noise_the_least_is_drawn_all_but_exactly(m):
    """Columns of no noise at all: s0 would be 0. Its tail is exponential, 3 sum 1 / s_j^2 - 3 m / least steep."""
    least, variance = 1e-4, 1e-12
    rate = 1 + 3 * m / variance
    random = np.random.default_rng(m)
    steps = np.array([draw_gamma_above(least, 1 + 3.0 * m, rate, random) for _ in range(500)]) - least
    assert (steps >= 0).all()
    assert steps.max() < 20 / (rate - 3 * m / least) + 1e-19


def test_couplings_are_drawn_under_the_noise_of_both_sides():
    """Rows of three answers, all alike: every order by its exact probability, vectors of rows integrated out."""
    n, answers = 6000, [-1.0, 0.2, 0.9]
    chain = chain_of((n, 3))
    chain.tokens[:] = np.tile(answers, n)
    columns, rho = np.array([0.5, 1.0, 2.0]), 0.3
    chain.noise = Noise(np.full(n, rho), columns, 1.0)
    prior = Normal(np.array([0.5, -0.2]), np.array([[2.0, 0.3], [0.3, 1.5]]))
    chain._draw_couplings(30, prior, chain.B)
    covariance = chain.B @ np.linalg.inv(prior.precision) @ chain.B.T + np.diag(rho * columns)
    law = stats.multivariate_normal(chain.B @ prior.mean, covariance)
    how = {"mean": [0.0] * 3, "precision": None, "trust": 1.0, "comparisons": [], "log_density_of": law.logpdf}
    expected = oracle.couplings(answers, alone=[(0, 0)] * 3, **how)
    counts = Counter(map(tuple, chain.x.reshape(n, 3).tolist()))
    assert oracle.chance_of_a_fit([counts[o] for o in expected], [n * p for p in expected.values()]) > CHANCE

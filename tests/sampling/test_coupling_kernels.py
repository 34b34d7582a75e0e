"""Draws in compiled loops: the published generator; Metropolis' algorithm over couplings against exhaustive sums; rows
from normal distributions against dense linear algebra.

Thousands of equal rows are run side by side, each from its own stream: what they end with are independent draws, so
that Pearson's test applies as it is.
"""

from collections import Counter

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from halfseen.kernels import random_streams
from halfseen.sampling import coupling_chain
from halfseen.sampling.coupling_chain import draw_rows
from tests.sampling import coupling_oracle as oracle

#: Below this, chance does not explain it: one test in a million.
CHANCE = 1e-6
COPIES = 8000

MEAN, PRECISION = [0.3, -0.5, 0.9, 0.0, 0.2], [1.0, 0.5, 2.0, 1.3, 0.2]
ANSWERS = [-1.1, -0.2, 0.4, 1.3, 2.0]

#: Answers, comparisons and half-known comparisons of one row.
CASES = {
    "two cells": (ANSWERS[:2], [(0, 1)], {}),
    "nothing compared": (ANSWERS[:4], [], {}),
    "compared": (ANSWERS[:4], [(0, 1), (2, 1), (3, 0)], {}),
    "contradictory": (ANSWERS[:3], [(0, 1), (1, 2), (2, 0)], {}),
    "repeated": (ANSWERS[:4], [(1, 0), (1, 0), (1, 0), (3, 2), (2, 3)], {}),
    "equal answers": ([-0.2, 0.4, 0.4, 1.0], [(0, 1), (1, 0), (3, 2)], {}),
    "all equal but one": ([0.4, 0.4, 0.4, 1.0], [(1, 2), (2, 1), (0, 3)], {}),
    "half known": (ANSWERS[:4], [], {0: (3, 0), 1: (0, 2), 3: (1, 1)}),
    "half known, of equal answers": ([-0.2, 0.4, 0.4, 1.0], [(3, 2)], {1: (2, 0), 2: (0, 3)}),
    "five cells": (ANSWERS, [(0, 1), (1, 2), (4, 3), (4, 0)], {2: (1, 0), 4: (0, 1)}),
}


def listed(by, others, copies, size):
    """Lists of neighbours, the same for each copy of a row of so many cells."""
    order = np.argsort(by, kind="stable")
    counts = np.tile(np.bincount(np.asarray(by, int), minlength=size), copies)
    links = np.asarray(others, int)[order]
    shifted = (links[None] + size * np.arange(copies)[:, None]).reshape(-1)
    return np.append(0, np.cumsum(counts)), shifted


#: Where the means of the cells are given, rows have no vectors.
GIVEN = (np.empty(0, int), np.empty((0, 0)), np.empty((0, 0)), np.empty(0))


def run(
    answers, comparisons, alone, *, mean, precision, trust, moves, copies=COPIES, seed=7, rounds=1, start=None,
    lost=None, vectors=GIVEN,
):  # fmt: skip
    """The values of the cells of every copy at the end, and the tokens that each cell holds.

    `vectors`: columns of the cells, vectors of the columns, precision and pull of the prior of a row's vector.
    """
    size, known = len(mean), len(answers)
    higher, lower = np.array(comparisons, int).reshape(-1, 2).T
    tokens = np.tile([*answers, *(lost if lost is not None else [float(np.mean(answers))] * (size - known))], copies)
    first = size * np.arange(copies)[:, None]
    cell_of_token = (first + (np.arange(size) if start is None else start)).reshape(-1)
    token_of_cell = np.empty_like(cell_of_token)
    token_of_cell[cell_of_token] = np.arange(size * copies)
    half_known = np.zeros((size, 2))
    for cell, counts in alone.items():
        half_known[cell] = counts
    fixed = (
        *listed(higher, lower, copies, size), *listed(lower, higher, copies, size), np.tile(half_known, (copies, 1)),
        np.tile(mean, copies), np.tile(precision, copies),
    )  # fmt: skip
    indptr, counts = size * np.arange(copies + 1), np.full(copies, known)
    for number in range(rounds):
        coupling_chain.draw_couplings(
            0, copies, indptr, counts, seed + number, moves, trust, *fixed, tokens, token_of_cell, cell_of_token,
            np.tile(vectors[0], copies), *vectors[1:],
        )  # fmt: skip
    held = token_of_cell.reshape(copies, size) - first
    assert_array_equal(np.sort(held, axis=1), np.broadcast_to(np.arange(size), held.shape))
    assert_array_equal(cell_of_token[token_of_cell], np.arange(size * copies))
    return tokens[token_of_cell].reshape(copies, size), held


def exact(comparisons, alone, trust, size):
    how = {"mean": MEAN[:size], "precision": PRECISION[:size], "trust": trust, "comparisons": comparisons}
    how["alone"] = [alone.get(cell, (0, 0)) for cell in range(size)]
    return how


def assert_as_often(outcomes, expected):
    counts = Counter(outcomes)
    assert set(counts) <= set(expected)
    assert oracle.chance_of_a_fit([counts[o] for o in expected], [COPIES * p for p in expected.values()]) > CHANCE


@pytest.mark.parametrize("trust", [0.7, 2.0])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_couplings_come_as_often_as_exhaustive_sums_say(case, trust):
    answers, comparisons, alone = case
    size = len(answers)
    values, _ = run(answers, comparisons, alone, mean=MEAN[:size], precision=PRECISION[:size], trust=trust, moves=80)
    assert_as_often(map(tuple, values.tolist()), oracle.couplings(answers, **exact(comparisons, alone, trust, size)))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("case", ["two cells", "compared", "equal answers", "half known", "five cells"])
def test_the_vector_of_a_row_is_integrated_out(case, k):
    """Against the normal density with a full covariance. Columns come in any order; one may be asked twice."""
    answers, comparisons, alone = CASES[case]
    size, trust, random = len(answers), 1.5, np.random.default_rng(k)
    B, half, pull = random.normal(size=(7, k)), random.normal(size=(k, k + 1)), random.normal(size=k)
    columns, prior = np.array([5, 2, 2, 0, 6])[:size], half @ half.T
    how = {**exact(comparisons, alone, trust, size), "mean": [0.0] * size}
    values, _ = run(
        answers, comparisons, alone, mean=how["mean"], precision=how["precision"], trust=trust, moves=40,
        vectors=(columns, B, prior, pull),
    )  # fmt: skip
    spread = np.linalg.inv(prior)
    covariance = B[columns] @ spread @ B[columns].T + np.diag(1 / np.array(how["precision"]))
    law = stats.multivariate_normal(B[columns] @ spread @ pull, covariance)
    assert_as_often(map(tuple, values.tolist()), oracle.couplings(answers, **how, log_density_of=law.logpdf))


@pytest.mark.parametrize("case", ["compared", "half known", "five cells"])
def test_what_is_exactly_distributed_stays_so_after_a_move_or_two(case):
    """A start by the exact probabilities, and few moves: nothing is left to convergence. Trust as it is by default."""
    answers, comparisons, alone = CASES[case]
    size, trust = len(answers), 12.0
    expected = oracle.couplings(answers, **exact(comparisons, alone, trust, size))
    random = np.random.default_rng(0)
    outcomes = np.array([[answers.index(x) for x in values] for values in expected])
    start = np.argsort(outcomes[random.choice(len(outcomes), COPIES, p=list(expected.values()))], axis=1)
    values, held = run(
        answers, comparisons, alone, mean=MEAN[:size], precision=PRECISION[:size], trust=trust, moves=1, start=start
    )
    assert (np.argsort(held, axis=1) != start).any(axis=1).mean() > 0.05
    assert_as_often(map(tuple, values.tolist()), expected)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_lost_answer_is_integrated_over(case):
    """One cell more than answers: which cell lost its answer, who has the others, and the values of the lost one."""
    answers, comparisons, alone = case
    answers, size, trust = answers[:-1], len(answers), 1.0
    values, held = run(
        answers, comparisons, alone, mean=MEAN[:size], precision=PRECISION[:size], trust=trust, moves=10, rounds=10
    )
    expected, (points, below) = oracle.couplings_with_one_lost(answers, **exact(comparisons, alone, trust, size))
    lost = held == len(answers)
    assert_as_often(map(tuple, np.where(lost, None, values).tolist()), expected)
    assert stats.kstest(values[lost], lambda x: np.interp(x, points, below)).pvalue > CHANCE


#: Rows of few answers and many lost ones, and little noise: answers, comparisons (disjoint), means, precisions.
SPARSE = {
    "one answer, seven cells": ([0.3], [], np.linspace(0.0, 0.6, 7), np.full(7, 400.0)),
    "far apart": ([0.55], [], np.linspace(0.0, 7.0, 8), np.geomspace(4, 900, 8)),
    "one answer, compared": ([0.3], [(0, 1), (5, 2), (4, 6)], np.linspace(0.0, 0.6, 7), np.geomspace(100, 900, 7)),
    "two answers, eight cells": ([0.1, 0.35], [(0, 1), (2, 3)], np.linspace(0.0, 0.7, 8), np.geomspace(900, 50, 8)),
    "two equal answers": ([0.2, 0.2], [(3, 4)], np.linspace(0.0, 0.5, 6), np.full(6, 200.0)),
}


@pytest.mark.parametrize("case", SPARSE.values(), ids=SPARSE)
def test_few_answers_find_their_cells_among_many(case):
    """From the worst start, the answers at the last cells and lost ones at the means of their own: far apart, these are
    so unlikely elsewhere that no exchange of values as they are would ever be accepted."""
    answers, pairs, mean, precision = case
    trust, size, known = 1.5, len(mean), len(answers)
    start = [*range(size - 1, size - 1 - known, -1), *range(size - known)]
    how = {"mean": mean, "precision": precision, "trust": trust, "start": start, "lost": mean[: size - known].tolist()}
    values, held = run(answers, pairs, {}, **how, moves=5, rounds=8)
    places = np.argsort(held, axis=1)[:, :known]
    assert_as_often(map(tuple, places.tolist()), oracle.places_of_few(answers, mean, precision, trust, pairs))
    for cell in set(range(size)) - {cell for pair in pairs for cell in pair}:
        lost = values[held[:, cell] >= known, cell]
        assert stats.kstest(lost, "norm", (mean[cell], precision[cell] ** -0.5)).pvalue > CHANCE


def test_a_row_of_which_no_answer_is_known_has_normal_values():
    """Uncompared, each cell's is its own normal distribution."""
    unknown = np.full(3 * COPIES, 9.9)
    token = np.arange(3 * COPIES)
    nobody = (np.zeros(3 * COPIES + 1, int), np.empty(0, int))
    coupling_chain.draw_couplings(
        0, COPIES, 3 * np.arange(COPIES + 1), np.zeros(COPIES, int), 1, 2, 6.0, *nobody, *nobody,
        np.zeros((3 * COPIES, 2)), np.tile(MEAN[:3], COPIES), np.tile(PRECISION[:3], COPIES), unknown, token,
        token.copy(), *GIVEN,
    )  # fmt: skip
    values = unknown[token].reshape(COPIES, 3)
    for cell in range(3):
        assert stats.kstest(values[:, cell], "norm", (MEAN[cell], PRECISION[cell] ** -0.5)).pvalue > CHANCE


@pytest.mark.parametrize("size", [32, 33, 60])
def test_rows_of_any_length_are_shuffled_evenly_where_nothing_is_known(size):
    """A precision of 0: every permutation alike. Where each of three tokens lies, and which way round two lie."""
    copies = 2000
    zeros = [0.0] * size
    answers = np.arange(float(size)).tolist()
    _, held = run(answers, [], {}, mean=zeros, precision=zeros, trust=1.0, moves=25, copies=copies)
    places = np.argsort(held, axis=1)
    for token in (0, size // 2, size - 1):
        assert stats.chisquare(np.bincount(places[:, token], minlength=size)).pvalue > CHANCE
    for one, other in ((0, 1), (0, size - 1), (5, 20)):
        assert stats.binomtest(int((places[:, one] < places[:, other]).sum()), copies).pvalue > CHANCE


@pytest.mark.parametrize("size", [30, 40])
def test_long_rows_of_two_values_follow_the_conditional_bernoulli_distribution(size):
    """Answers 0 and 1 alone: whoever holds a 1 is known exactly, by sums over how many do."""
    copies, ones, trust = 5000, size // 3, 1.2
    random = np.random.default_rng(size)
    mean, precision = random.normal(0.4, 0.8, size), random.uniform(0.3, 1.5, size)
    pairs = [(0, 1), (3, 2), (size - 1, 4)]
    answers = [0.0] * (size - ones) + [1.0] * ones
    values, _ = run(answers, pairs, {}, mean=mean, precision=precision, trust=trust, moves=40, copies=copies)
    favours = precision * ((0 - mean) ** 2 - (1 - mean) ** 2) / 2
    expected = oracle.chances_of_one(favours, ones, pairs, trust)
    assert np.isclose(expected.sum(), ones)
    for cell, chance in enumerate(expected):
        assert stats.binomtest(int(values[:, cell].sum()), copies, chance).pvalue > CHANCE, cell


def test_rows_are_what_they_are_in_any_company():
    """The same seed, the rows in two blocks or one, alone or among others; another seed gives other numbers."""
    answers, comparisons, alone = CASES["five cells"]
    how = {"mean": MEAN, "precision": PRECISION, "trust": 1.0, "moves": 3}
    many, _ = run(answers, comparisons, alone, **how, copies=50)
    few, _ = run(answers, comparisons, alone, **how, copies=20)
    assert_array_equal(many[:20], few)
    alone = drawn(random_streams.uniform, 9, [7], 50)
    assert_array_equal(alone, drawn(random_streams.uniform, 9, range(12), 50)[7:8])
    assert (alone != drawn(random_streams.uniform, 10, [7], 50)).all()
    arguments, _ = problem(3)
    start = np.random.default_rng(3).normal(size=(6, 3))
    whole = rows_drawn(arguments, start)
    part = rows_drawn(arguments, start, begin=2, end=4)
    assert_array_equal(part[2:4], whole[2:4])
    assert_array_equal(part[[0, 1, 4, 5]], start[[0, 1, 4, 5]])


def test_no_moves_single_cells_and_violations():
    answers, comparisons, alone = CASES["compared"]
    values, _ = run(answers, comparisons, alone, mean=MEAN[:4], precision=PRECISION[:4], trust=1.0, moves=0, copies=9)
    assert_array_equal(values, np.tile(answers, (9, 1)))
    values, _ = run([0.7], [], {}, mean=[3.0], precision=[2.0], trust=1.0, moves=5, copies=9)
    assert_array_equal(values, np.full((9, 1), 0.7))
    answers = [0.0, 1.0, 1.0, 2.0]  # by cell: the first coupling hands token 0 to cell 0, and so on
    comparisons = [(0, 1), (0, 1), (1, 2), (2, 1), (3, 0), (2, 3)]
    size = len(answers)
    higher, lower = np.array(comparisons).T
    links = listed(higher, lower, 1, size)
    assert coupling_chain.count_violations(*links, np.array(answers), np.arange(size)) == 3
    assert coupling_chain.count_violations(*links, np.array(answers), np.array([3, 2, 1, 0])) == 1


#: What SplitMix64 gives from 1234567 (Rosetta Code, "Pseudo-random numbers/Splitmix64").
PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]


@njit  # not kept on disk: that would not notice another generator
def fill(draw, seed, numbers, out):
    stream = np.empty(1, np.uint64)
    for row in range(numbers.size):
        random_streams.start_stream(seed, numbers[row], stream)
        for place in range(out.shape[1]):
            out[row, place] = draw(stream)


def drawn(draw, seed, numbers, length):
    out = np.empty((len(numbers), length))
    fill(draw, seed, np.asarray(numbers), out)
    return out


def test_it_is_the_published_generator():
    stream = np.array([1234567], np.uint64)
    found = [random_streams.uniform(stream) for _ in PUBLISHED]
    assert_array_equal(found, [(number >> 11) / 2**53 for number in PUBLISHED])
    # The smallest that 53 bits can say, and many.
    stream = np.array([-0x9E3779B97F4A7C15 % 2**64], np.uint64)  # the next counter is 0, which mixes to 0
    assert random_streams.uniform(stream) == 0.0
    assert drawn(random_streams.uniform, 3, range(2000), 500).max() < 1.0


@pytest.mark.parametrize("seed", [0, 1, 2**62 + 12345])
def test_uniform_numbers_are_even_and_know_nothing_of_their_neighbours(seed):
    """Pairs on a grid of 16 x 16: the next number, the next row's, the one two rows on, and the next seed's."""
    numbers, other = (drawn(random_streams.uniform, one, range(400), 501) for one in (seed, seed + 1))
    for together in (numbers.reshape(-1), numbers[:, 0], numbers[0], numbers[:, 17]):
        assert stats.kstest(together, "uniform").pvalue > CHANCE
    pairs = {
        "next number": (numbers[:, :-1], numbers[:, 1:]),
        "next row": (numbers[:-1], numbers[1:]),
        "two rows on": (numbers[:-2], numbers[2:]),
        "next row's next": (numbers[:-1, :-1], numbers[1:, 1:]),
        "next seed": (numbers, other),
    }
    for what, (one, two) in pairs.items():
        grid, _, _ = np.histogram2d(one.ravel(), two.ravel(), bins=16, range=[[0, 1], [0, 1]])
        assert stats.chisquare(grid.ravel()).pvalue > CHANCE, what
    assert np.unique(numbers).size == numbers.size  # no number of any row is met in another


def test_normal_numbers_are_normal_and_made_of_two_uniform_ones():
    """Box and Muller's formula, of the stream's own numbers."""
    numbers = drawn(random_streams.normal, 4, range(400), 500)
    assert stats.kstest(numbers.reshape(-1), "norm").pvalue > CHANCE
    uniform = drawn(random_streams.uniform, 4, [0], 20)[0]
    expected = np.sqrt(-2 * np.log(1 - uniform[::2])) * np.cos(2 * np.pi * uniform[1::2])
    assert_allclose(numbers[0, :10], expected, rtol=1e-12)


def problem(k, seed=0, shape=(6, 9)):
    """Cells of some rows (one has none), values, the far factor, precisions and a prior."""
    random = np.random.default_rng(seed)
    seen = random.random(shape) < 0.6
    seen[2] = False
    X = np.where(seen, random.normal(size=shape), 0.0)
    cells = sparse.csr_array(seen.astype(float))
    x = X[np.repeat(np.arange(shape[0]), np.diff(cells.indptr)), cells.indices]
    G = random.normal(size=(shape[1], k))
    near, far = random.gamma(2, 1, shape[0]), random.gamma(2, 1, shape[1])
    half = random.normal(size=(k, k + 2))
    prior, pulled = half @ half.T, random.normal(size=k)
    return (cells.indptr, cells.indices, x, G, near, far, prior, pulled), (seen, X)


def dense(arguments, whole, row):
    """The precision and the mean of one row, by matrix products."""
    _, _, _, G, near, far, prior, pulled = arguments
    seen, X = whole
    weights = np.diag(seen[row] * near[row] * far)
    precision = prior + G.T @ weights @ G
    return precision, np.linalg.solve(precision, pulled + G.T @ weights @ X[row])


def rows_drawn(arguments, start, shape=None, begin=0, end=None):
    out = np.array(start, float)
    draw_rows(begin, len(out) if end is None else end, *arguments, out)
    return out


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_a_draw_is_the_mean_and_a_root_of_the_covariance_times_its_noise(k):
    """An affine function of the normal numbers that `out` comes with: found by zeros and unit vectors, also of a row
    without cells, which has the prior alone."""
    arguments, whole = problem(k)
    n = len(arguments[4])
    means = rows_drawn(arguments, np.zeros((n, k)))
    roots = np.stack([rows_drawn(arguments, np.tile(unit, (n, 1))) - means for unit in np.eye(k)], axis=2)
    for row in range(n):
        precision, mean = dense(arguments, whole, row)
        assert_allclose(means[row], mean, rtol=1e-9, atol=1e-11)
        assert_allclose(roots[row] @ roots[row].T, np.linalg.inv(precision), rtol=1e-8, atol=1e-11)
    noise = np.random.default_rng(1).normal(size=(n, k))
    assert_allclose(rows_drawn(arguments, noise), means + np.einsum("nab,nb->na", roots, noise), rtol=1e-9, atol=1e-11)

"""What is said of cells after sampling, against plain loops over the draws."""

import math
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats

from halfseen.sampling.coupling import CouplingDraws
from halfseen.uncoupled import posterior as posterior_module
from halfseen.uncoupled.list_checks import AskedCells
from halfseen.uncoupled.posterior import AnyCoupling, SampledCoupling

#: Answers to three questions: of the first one less than was asked, of the second two less, of the third one more;
#: equal ones among them. Respondents asked, by question.
ANSWERS = [[1.0, 2.0, 2.0], [4.0], [3.0, 3.0, 7.0, 8.0]]
CENTRES, SCALES = [3.3, -1.2, 0.5], [1.0, 40.0, 0.03]
ASKED = [[0, 1, 2, 3], [0, 2, 3], [1, 2, 3]]
N_DRAWS, K = 31, 2


def pointers(rows):
    return np.append(0, np.cumsum([len(row) for row in rows]))


def asked_cells(rows, times=None):
    """Of four respondents, those listed for each question, and how often each question was asked."""
    return AskedCells(pointers(rows), np.concatenate(rows), 4, np.array(times or [len(row) for row in rows]))


@pytest.fixture(params=[1 << 22, 70], ids=["at once", "in parts"])
def drawn(request, monkeypatch):
    """Random draws, and the values that they say of the asked cells, (draws, cells); NaN where an answer was lost."""
    monkeypatch.setattr(posterior_module, "CHUNK_ENTRIES", request.param)
    random = np.random.default_rng(5)
    coupling, values, known = [], [], []
    unknown, first = random.normal(3, 2, (N_DRAWS, 3)), [0, 1, 3]
    for draw in range(N_DRAWS):
        tokens = [random.permutation(max(len(a), len(r)))[: len(r)] for a, r in zip(ANSWERS, ASKED, strict=True)]
        coupling.append(np.concatenate(tokens))
        said = [
            [answers[t] if t < len(answers) else unknown[draw, start + t - len(answers)] for t in of_row]
            for answers, of_row, start in zip(ANSWERS, tokens, first, strict=True)
        ]
        values.append(np.concatenate(said))
        known.append(np.concatenate([[t < len(a) for t in of_row] for a, of_row in zip(ANSWERS, tokens, strict=True)]))
    draws = CouplingDraws(
        random.normal(size=(3, N_DRAWS, K)).astype(np.float32), random.normal(size=(4, N_DRAWS, K)).astype(np.float32),
        random.gamma(2, 1, (3, N_DRAWS)).astype(np.float32), random.gamma(2, 1, (4, N_DRAWS)).astype(np.float32),
        np.array(coupling, np.uint8), unknown, np.array([0, 1, 3, 3]), np.array(CENTRES),
        np.array(SCALES),
    )  # fmt: skip
    found = SampledCoupling(draws, asked_cells(ASKED), np.concatenate(ANSWERS), pointers(ANSWERS))
    return found, np.array(values), np.array(known)


def pairs():
    """Every pair of a question and a respondent, and the number of its cell, -1 if it was not asked."""
    cells = [(i, j) for i, row in enumerate(ASKED) for j in row]
    everywhere = [(i, j) for i in range(3) for j in range(4)]
    numbers = [cells.index(pair) if pair in cells else -1 for pair in everywhere]
    rows, columns = np.array(everywhere).T
    return rows, columns, np.array(numbers)


def model_mean(draws, i, j):
    dots = [float(draws.A[i, d].astype(float) @ draws.B[j, d].astype(float)) for d in range(N_DRAWS)]
    return CENTRES[i] + SCALES[i] * sum(dots) / N_DRAWS


def test_means_are_of_the_answers_where_asked_and_of_the_model_elsewhere(drawn):
    found, values, _ = drawn
    rows, columns, cells = pairs()
    expected = [
        values[:, cell].mean() if cell >= 0 else model_mean(found.draws, i, j)
        for i, j, cell in zip(rows, columns, cells, strict=True)
    ]
    assert_allclose(found.means_at(rows, columns, cells), expected, rtol=1e-12)
    everywhere = [[model_mean(found.draws, i, j) for j in range(4)] for i in range(3)]
    assert_allclose(found.means(), everywhere, rtol=1e-12)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 0.999])
def test_quantiles_are_of_the_answers_where_asked_and_of_the_mixture_elsewhere(drawn, level):
    found, values, _ = drawn
    rows, columns, cells = pairs()
    low_share, high_share = 0.5 - level / 2, 0.5 + level / 2
    low, high = found.quantiles_at(rows, columns, cells, (low_share, high_share))
    for place, (i, j, cell) in enumerate(zip(rows, columns, cells, strict=True)):
        if cell >= 0:
            ordered = sorted(values[:, cell])
            assert low[place] == ordered[math.floor(low_share * (N_DRAWS - 1))]
            assert high[place] == ordered[math.ceil(high_share * (N_DRAWS - 1))]
            inside = (values[:, cell] >= low[place]) & (values[:, cell] <= high[place])
            assert inside.mean() >= level
        else:
            for share, quantile in ((low_share, low[place]), (high_share, high[place])):
                assert_allclose(quantile, mixture_quantile(found.draws, i, j, share), rtol=0, atol=1e-9 * SCALES[i])


def mixture_quantile(draws, i, j, share):
    """By a root finder, of the mean of normal distribution functions."""
    parts = [
        stats.norm(
            CENTRES[i] + SCALES[i] * (draws.A[i, d].astype(float) @ draws.B[j, d].astype(float)),
            SCALES[i] * math.sqrt(float(draws.row_noise[i, d]) * float(draws.column_noise[j, d])),
        )
        for d in range(N_DRAWS)
    ]
    reach = 200 * SCALES[i]
    low, high = CENTRES[i] - reach, CENTRES[i] + reach
    return optimize.brentq(lambda x: np.mean([part.cdf(x) for part in parts]) - share, low, high, xtol=1e-12)


def most_frequent(numbers):
    """Of the numbers that are not NaN; of equally frequent ones the smallest; NaN if there are none."""
    counts = Counter(x for x in numbers if not math.isnan(x))
    return min(counts, key=lambda x: (-counts[x], x)) if counts else math.nan


def guessed(numbers):
    """Each half's most frequent number, and how often the other half has it: the mean of both ways."""
    half = len(numbers) // 2
    one, other = list(numbers[:half]), list(numbers[half:])
    shares = [theirs.count(most_frequent(mine)) / len(theirs) for mine, theirs in ((one, other), (other, one))]
    return sum(shares) / 2


def test_the_likeliest_answers_are_those_of_plain_loops(drawn):
    found, values, known = drawn
    answers = np.where(known, values, np.nan)
    likeliest = found.likeliest()
    assert_array_equal(likeliest.answer, [most_frequent(column) for column in answers.T])
    assert_allclose(likeliest.probability, [guessed(column.tolist()) for column in answers.T], rtol=1e-12)
    assert_allclose(likeliest.mean, values.mean(axis=0), rtol=1e-12)


def test_always_lost_answers_and_single_draws():
    """Nobody answered the second question."""
    one = np.ones((2, 4, 1), np.float32)
    draws = CouplingDraws(
        one, one, one[:, :, 0], one[:, :, 0], np.array([[0, 0]] * 4, np.uint8), np.arange(4.0)[:, None],
        np.array([0, 0, 1]), np.zeros(2), np.ones(2),
    )  # fmt: skip
    found = SampledCoupling(draws, asked_cells([[0], [0]]), np.array([6.0]), np.array([0, 1, 1])).likeliest()
    assert_array_equal(found.answer, [6.0, np.nan])
    assert_array_equal(found.probability, [1.0, 0.0])
    assert_array_equal(found.mean, [6.0, 1.5])
    one = np.ones((1, 1, 1), np.float32)
    draws = CouplingDraws(
        one, np.ones((2, 1, 1), np.float32), one[:, :, 0], np.ones((2, 1), np.float32), np.array([[1, 0]], np.uint8),
        np.empty((1, 0)), np.array([0, 0]), np.zeros(1), np.ones(1),
    )  # fmt: skip
    found = SampledCoupling(draws, asked_cells([[0, 1]]), np.array([3.0, 4.0]), np.array([0, 2]))
    assert_array_equal(found.likeliest(), [[4.0, 3.0], [1.0, 1.0], [4.0, 3.0]])
    places = np.zeros(2, int), np.arange(2), np.arange(2)
    assert_array_equal(found.quantiles_at(*places, (0.05, 0.95)), [[4.0, 3.0], [4.0, 3.0]])


#: Questions: with ties, without an answer, with fewer answers than asked (and equal to one of the first), with more,
#: with one.
UNCOMPARED = [[1.0, 2.0, 2.0, 5.0], [], [5.0, 5.0], [3.0, 4.0, 4.0, 7.0, 7.0], [9.0]]
ASKED_OF = [[0, 1, 2, 3], [0, 3], [0, 1, 2], [1, 2, 3], [2]]
#: How often they were asked: some of the third more than once.
ASKINGS = [4, 2, 5, 3, 1]


def one_more_answer(row, everything, share):
    """The quantile of one more answer like those of a row; if these are fewer than two, as spread as all there are."""
    like = row if len(row) > 1 else everything
    reach = stats.t(len(like) - 1).ppf(share) * np.std(like, ddof=1) * math.sqrt(1 + 1 / max(len(row), 1))
    return np.mean(row or everything) + reach


def test_without_comparisons_every_answer_is_as_likely():
    found = AnyCoupling(asked_cells(ASKED_OF, ASKINGS), np.concatenate(UNCOMPARED), pointers(UNCOMPARED))
    everything = [x for row in UNCOMPARED for x in row]
    means = [np.mean(row or everything) for row in UNCOMPARED]
    assert_allclose(found.means(), np.tile(means, (4, 1)).T, rtol=1e-12)
    rows = np.repeat(np.arange(5), 4)
    columns = np.tile(np.arange(4), 5)
    assert_allclose(found.means_at(rows, columns, -np.ones(20, int)), np.repeat(means, 4), rtol=1e-12)
    elsewhere = found.quantiles_at(rows, columns, -np.ones(20, int), (0.1, 0.9))
    at_cells = found.quantiles_at(rows, columns, np.arange(20), (0.1, 0.9))  # the numbers of cells say no more
    for i, row in enumerate(UNCOMPARED):
        one_more = [one_more_answer(row, everything, share) for share in (0.1, 0.9)]
        assert_allclose([quantile[rows == i] for quantile in elsewhere], np.repeat([one_more], 4, axis=0).T, rtol=1e-9)
        ordered, last = sorted(row), len(row) - 1
        own = [ordered[math.floor(0.1 * last)], ordered[math.ceil(0.9 * last)]] if row else one_more
        assert_allclose([quantile[rows == i] for quantile in at_cells], np.repeat([own], 4, axis=0).T, rtol=1e-9)
    likeliest = found.likeliest()
    expected = []
    for asked, times, row in zip(ASKED_OF, ASKINGS, UNCOMPARED, strict=True):
        answer = most_frequent(row)
        share = row.count(answer) / max(len(row), times)
        expected += [(answer, share, np.mean(row or everything))] * len(asked)
    assert_allclose(np.transpose(likeliest), expected, rtol=1e-12)

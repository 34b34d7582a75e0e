"""Random numbers in compiled loops: the published generator, even, normal, and each row's its own."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from halfseen.kernels import streams

#: Below this, chance does not explain it: one test in a million.
CHANCE = 1e-6
#: What SplitMix64 gives from 1234567 (Rosetta Code, "Pseudo-random numbers/Splitmix64").
PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]


@njit  # not kept on disk: that would not notice another generator
def uniforms(seed, numbers, out):
    stream = np.empty(1, np.uint64)
    for row in range(numbers.size):
        streams.start(seed, numbers[row], stream)
        for place in range(out.shape[1]):
            out[row, place] = streams.uniform(stream)


@njit
def normals(seed, numbers, out):
    stream = np.empty(1, np.uint64)
    for row in range(numbers.size):
        streams.start(seed, numbers[row], stream)
        for place in range(out.shape[1]):
            out[row, place] = streams.normal(stream)


def drawn(draw, seed, numbers, length):
    out = np.empty((len(numbers), length))
    draw(seed, np.asarray(numbers), out)
    return out


def test_it_is_the_published_generator():
    stream = np.array([1234567], np.uint64)
    found = [streams.uniform(stream) for _ in PUBLISHED]
    assert_array_equal(found, [(number >> 11) / 2**53 for number in PUBLISHED])


def test_uniform_numbers_stay_below_one():
    """The largest that 53 bits can say, and the smallest."""
    stride, largest = 0x9E3779B97F4A7C15, 2**64
    stream = np.array([-stride % largest], np.uint64)  # the next counter is 0, which mixes to 0
    assert streams.uniform(stream) == 0.0
    assert drawn(uniforms, 3, range(2000), 500).max() < 1.0


@pytest.mark.parametrize("seed", [0, 1, 2**62 + 12345])
def test_uniform_numbers_are_even_within_rows_and_across(seed):
    numbers = drawn(uniforms, seed, range(400), 500)
    for together in (numbers.reshape(-1), numbers[:, 0], numbers[0], numbers[:, 17]):
        assert stats.kstest(together, "uniform").pvalue > CHANCE


@pytest.mark.parametrize("seed", [0, 1, 2**62 + 12345])
def test_neighbours_know_nothing_of_each_other(seed):
    """Pairs on a grid of 16 x 16: the next number, the next row's, the one two rows on, and the next seed's."""
    numbers, other = drawn(uniforms, seed, range(400), 501), drawn(uniforms, seed + 1, range(400), 501)
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


def test_rows_have_different_streams():
    """No number of any row is met in another: 200,000 of 53 bits."""
    assert np.unique(drawn(uniforms, 5, range(400), 500)).size == 200_000


def test_the_same_seed_and_row_give_the_same_numbers_in_any_company():
    alone = drawn(uniforms, 9, [7], 50)
    assert_array_equal(alone, drawn(uniforms, 9, range(12), 50)[7:8])
    assert (alone != drawn(uniforms, 10, [7], 50)).all()


def test_normal_numbers_are_normal_and_independent():
    numbers = drawn(normals, 4, range(400), 500)
    assert stats.kstest(numbers.reshape(-1), "norm").pvalue > CHANCE
    assert stats.kstest(numbers[:, 0], "norm").pvalue > CHANCE
    pairs = stats.norm.cdf(numbers)
    for one, two in ((pairs[:, :-1], pairs[:, 1:]), (pairs[:-1], pairs[1:])):
        grid, _, _ = np.histogram2d(one.ravel(), two.ravel(), bins=16, range=[[0, 1], [0, 1]])
        assert stats.chisquare(grid.ravel()).pvalue > CHANCE


def test_normal_numbers_are_made_of_two_uniform_ones():
    """Box and Muller's formula, of the stream's own numbers."""
    uniform = drawn(uniforms, 4, [0], 20)[0]
    expected = np.sqrt(-2 * np.log(1 - uniform[::2])) * np.cos(2 * np.pi * uniform[1::2])
    assert_allclose(drawn(normals, 4, [0], 10)[0], expected, rtol=1e-12)

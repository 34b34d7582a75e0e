"""The weights of the error bound against a linear program, and where they are known in closed form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.coupling.deviations import error_weights
from halfseen.engines.threads import Threads
from tests.coupling import oracle

KINDS = {
    "continuous": lambda rng, n: rng.normal(3, 1, n),
    "far from 0": lambda rng, n: rng.normal(100, 0.01, n),
    "stars": lambda rng, n: rng.integers(1, 6, n),
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.7, 0, rng.exponential(1, n)),
    "three levels": lambda rng, n: rng.integers(0, 3, n),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "all 0": lambda rng, n: np.zeros(n),
    "one": lambda rng, n: rng.normal(0, 1, 1),
    "two": lambda rng, n: rng.normal(1, 1, 2),
    "huge": lambda rng, n: rng.exponential(1e200, n),
    "tiny": lambda rng, n: rng.exponential(1e-200, n),
    "skewed": lambda rng, n: rng.lognormal(0, 3, n),
    "skewed the other way": lambda rng, n: rng.uniform(0, 1, n) ** 0.1,
    "two heaps": lambda rng, n: rng.beta(0.1, 0.1, n),
    "either sign": lambda rng, n: rng.normal(0, 1, n),
    "mostly negative": lambda rng, n: rng.normal(-1, 1, n),
    "all negative": lambda rng, n: -rng.exponential(1, n),
    "nearly on a line": lambda rng, n: np.arange(n) / 2 + rng.integers(0, 2, n),
    "on one of two lines": lambda rng, n: np.arange(n) * np.where(np.arange(n) < n / 2, 1.0, 3.0),
    "whole numbers of either sign": lambda rng, n: rng.integers(-3, 9, n),
}
SIZES = [1, 2, 3, 4, 5, 8, 20, 60]


def rows_of(kind, count, seed=0):
    rng = np.random.default_rng([seed, *kind.encode()])
    return [np.sort(KINDS[kind](rng, int(rng.choice(SIZES))).astype(float)) for _ in range(count)]


def solved(rows, n_jobs=1):
    indptr = np.cumsum([0, *map(len, rows)])
    with Threads(n_jobs) as threads:
        return error_weights(np.concatenate(rows), indptr, threads)


@pytest.mark.parametrize("kind", KINDS)
def test_no_linear_program_finds_less(kind):
    """1,000 rows in all."""
    rows = rows_of(kind, 50)
    w, errors = solved(rows)
    assert (w >= 0).all()
    for row, of_row, error in zip(rows, w, errors, strict=True):
        scale = np.abs(row).max() or 1.0
        assert_allclose(error / scale, oracle.deviation(row, of_row) / scale, rtol=0, atol=1e-12)
        assert_allclose(error / scale, oracle.least_deviation(row) / scale, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_weights_are_better_in_long_rows(seed):
    """The error is convex: what no small step in any direction lowers is the minimum."""
    rng = np.random.default_rng(seed)
    for row in (rng.normal(3, 1, 3000), rng.integers(0, 40, 3000), rng.lognormal(0, 2, 3000)):
        row = np.sort(row.astype(float))
        (w,), (error,) = solved([row])
        F = np.searchsorted(row, row, side="right") / row.size
        for angle in np.linspace(0, 2 * np.pi, 64, endpoint=False):
            for step in (1e-7, 1e-3):
                v = np.maximum(w + step * row.max() * np.array([np.cos(angle), np.sin(angle)]), 0.0)
                assert error <= np.abs(row - 2 * v[0] * F - 2 * v[1] * (1 - F)).mean() + 1e-14 * row.max()


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, 5.0), (2.0, 2.5), (0.3, 1e6)])
@pytest.mark.parametrize("n", [2, 3, 7, 100, 10_000])
def test_uniform_answers_have_no_error(a, b, n):
    """The remark after Theorem 4.2: h(x; b/2, a/2) = 0."""
    w, errors = solved([a + (b - a) * np.arange(1, n + 1) / n])
    assert_allclose(w, [[b / 2, a / 2]], rtol=1e-11, atol=1e-15 * b)
    assert errors[0] <= 1e-15 * b


def test_a_single_answer_however_often_makes_a_flat_line():
    w, errors = solved([np.array([3.0]), np.full(4, 5.0), np.zeros(3), np.array([-2.0]), np.full(2, -1.0)])
    assert_array_equal(w, [[1.5, 1.5], [2.5, 2.5], [0, 0], [0, 0], [0, 0]])
    assert_array_equal(errors, [0, 0, 0, 2, 1])


def test_two_answers_by_hand():
    """F is 1/2 and 1. The line through 3 and 4 starts at 2; that through 1 and 4 would start below 0."""
    w, errors = solved([np.array([3.0, 4.0]), np.array([1.0, 4.0])])
    assert_allclose(w, [[2, 1], [2, 0]], rtol=1e-15)
    assert_allclose(errors, [0, (2 - 1) / 2], atol=1e-15)


def test_rows_without_answers_are_left_open_and_move_no_other():
    rows = rows_of("continuous", 5) + rows_of("stars", 5)
    gaps = [np.empty(0), *rows[:4], np.empty(0), np.empty(0), *rows[4:], np.empty(0)]
    there = [len(row) > 0 for row in gaps]
    for with_gaps, without in zip(solved(gaps), solved(rows), strict=True):
        assert_array_equal(with_gaps[there], without)
        assert np.isnan(with_gaps[~np.array(there)]).all()


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.lognormal(0, 1, n)) for n in rng.integers(0, 400, 2000)]
    for one, three in zip(solved(rows), solved(rows, n_jobs=3), strict=True):
        assert_array_equal(one, three)


def test_a_scale_scales():
    rows = rows_of("stars", 20) + rows_of("either sign", 20)
    w, errors = solved(rows)
    for scale in (2.0**-900, 2.0**900):
        scaled_w, scaled_errors = solved([row * scale for row in rows])
        assert_array_equal(scaled_w, w * scale)
        assert_array_equal(scaled_errors, errors * scale)

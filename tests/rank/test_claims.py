"""What the thesis claims of ranks: what holds is shown, and what does not is refuted by an example."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen.errors import ParameterError
from halfseen.rank import bound_for_any_thresholds, grf, round_rank
from tests.rank import oracle


def test_theorem_2_1_1_as_printed():
    assert bound_for_any_thresholds(3, 1) == 4  # Remark 2.1.1: one more, with one threshold
    assert bound_for_any_thresholds(2, 5) == 11
    assert bound_for_any_thresholds(0, 4) == 1  # a constant matrix
    with pytest.raises(ParameterError, match=r"n_thresholds must be a whole number of at least 1\. Found 0"):
        bound_for_any_thresholds(2, 0)
    with pytest.raises(ParameterError, match=r"rank must be a whole number of at least 0\. Found -1"):
        bound_for_any_thresholds(-1, 2)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-5, 5), min_size=2, max_size=2, unique=True).map(sorted))
@settings(deadline=None, max_examples=30)
def test_two_thresholds_cost_one_column_at_most(seed, thresholds):
    """k X + c, with k > 0, brings two thresholds anywhere: less than Theorem 2.1.1 asks for."""
    Y = np.random.default_rng(seed).integers(0, 3, (4, 5))
    free = round_rank(Y, n_init=1)
    assert round_rank(Y, thresholds, n_init=1).lower <= free.upper + 1


def test_lemma_2_1_2_needs_a_positive_factor():
    """A constant matrix of ones: 0 rounds to it with threshold -1, but not with threshold 1 = -1 * -1."""
    Y = np.ones((2, 2))
    assert round_rank(Y, [-1.0]).upper == 0
    assert round_rank(Y, [1.0]).lower == 1


def test_a_round_rank_may_be_larger_than_the_linear_rank():
    """With thresholds between the levels it is not: Y itself rounds to Y. With others, zeros have linear rank 0."""
    Y = np.zeros((2, 2))
    assert round_rank(Y, [0.5]).upper == 0
    assert round_rank(Y, [-0.5]).lower == 1


def disjoint_outer_products():
    """A and B, each rounded from an outer product with threshold 1, of which the sum has all rows of 0 and 1."""
    parts_a = {(0, 0, 0): 0.0, (1, 0, 0): 0.8, (1, 1, 0): 1.5, (0, 0, 1): -1.5}
    parts_b = {(0, 0, 0): 0.0, (0, 1, 0): 0.8, (0, 1, 1): 1.5, (1, 0, 0): -1.5}
    va, vb = np.array([2.0, 1.0, -1.0]), np.array([-1.0, 2.0, 1.0])
    rows = {}
    for (a, ua), (b, ub) in itertools.product(parts_a.items(), parts_b.items()):
        if all(x + y <= 1 for x, y in zip(a, b, strict=True)):
            rows[tuple(x + y for x, y in zip(a, b, strict=True))] = (ua, ub)
    u = np.array(list(rows.values()))
    return grf(np.outer(u[:, 0], va), [1.0]), grf(np.outer(u[:, 1], vb), [1.0]), np.array(list(rows))


def test_equation_A3_does_not_hold():
    """GRR(A + B) <= GRR(A) + GRR(B) fails: numbers that are each below a threshold may add up to one above it."""
    A, B, total = disjoint_outer_products()
    np.testing.assert_array_equal(A + B, total)
    assert len(total) == 8
    for thresholds in (None, [1.0]):
        assert [round_rank(Y, thresholds).upper for Y in (A, B)] == [1, 1]
        assert round_rank(A + B, thresholds).lower == 3


@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
@settings(deadline=None, max_examples=30)
def test_lemma_A3_some_thresholds_ask_for_less(seed, left_out):
    """Leaving out a threshold merges two levels; the factors stay what they are."""
    thresholds = [-1.0, 0.5, 2.0]
    Y = np.random.default_rng(seed).integers(0, 4, (4, 4))
    merged = Y - np.greater(Y, left_out)
    all_of_them = round_rank(Y, thresholds, n_init=1)
    others = thresholds[:left_out] + thresholds[left_out + 1 :]
    assert oracle.levels_of(all_of_them.W, all_of_them.H, others) == merged.tolist()
    assert round_rank(merged, others, n_init=1).lower <= all_of_them.upper


def test_theorem_2_2_1_does_not_hold():
    """k different rows with two columns of ones, different elsewhere: the linear rank may be less than k."""
    bits = np.array(list(itertools.product([0, 1], repeat=3)))
    Y = np.hstack([np.ones((8, 2)), bits, bits])
    Y = np.vstack([Y, [1, 0, *np.zeros(6)]])
    assert len(np.unique(Y[:8], axis=0)) == 8
    assert oracle.linear_rank(Y) == 5


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_lemmas_A5_and_A6_thresholds_add_up_as_the_factors_do(seed):
    """The columns of both factorizations together round to Y with the sums of the thresholds, or with their means."""
    Y = np.random.default_rng(seed).integers(0, 3, (4, 4))
    one, other = (round_rank(Y, thresholds, n_init=1) for thresholds in ([-1.0, 2.0], [0.5, 0.75]))
    W, H = np.hstack([one.W, other.W]), np.hstack([one.H, other.H])
    total = one.thresholds + other.thresholds
    assert oracle.levels_of(W, H, total.tolist()) == Y.tolist()
    assert oracle.levels_of(W / 2, H, (total / 2).tolist()) == Y.tolist()

"""Rank one is decided: held against all outer products of a grid, and against certificates of their own."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs
from halfseen.roundrank.exact_rounding import RoundingProblem
from halfseen.roundrank.outer_products import decide_outer_product
from tests.roundrank import oracle

POWERS = [2.0**power for power in range(-4, 5)]
FINE = [2.0 ** (power / 4) for power in range(-8, 9)]


def decided(Y, thresholds=None):
    """Whether an outer product rounds to Y: "yes" by a certificate, "no" by a proof, or "unknown"."""
    tau = None if thresholds is None else np.array(thresholds, dtype=float)
    certificate, impossible = decide_outer_product(RoundingProblem(np.array(Y), tau).distinct()[0])
    assert certificate is None or not impossible
    return "yes" if certificate else "no" if impossible else "unknown"


def agree(matrices, possible, thresholds):
    """What is in the grid must be found, and what is called impossible must not be in it; all must be decided."""
    zero = oracle.level(0.0, thresholds)
    for matrix in matrices:
        if all(entry == zero for row in matrix for entry in row):
            continue  # rank 0
        answer = decided(matrix, thresholds)
        assert answer == "yes" or (answer == "no" and matrix not in possible), matrix
        yield answer == "yes"


def all_matrices(n_rows, n_columns, n_levels):
    """But for the order of the rows."""
    rows = itertools.product(range(n_levels), repeat=n_columns)
    return list(itertools.combinations_with_replacement(rows, n_rows))


@pytest.mark.parametrize("tau", [1.5, -1.5, 0.0])
def test_all_binary_matrices_of_size_3(tau):
    possible, matrices = oracle.outer_products(3, 3, [tau], POWERS), all_matrices(3, 3, 2)
    number = sum(agree(matrices, possible, [tau]))
    assert number == sum(matrix in possible for matrix in matrices) - 1  # all but that of rank 0


def test_free_thresholds_are_positive_or_negative():
    """Up to scale there are no others; that of 0 is no better than a small positive one."""
    possible = oracle.outer_products(3, 3, [1.5], POWERS) | oracle.outer_products(3, 3, [-1.5], POWERS)
    assert oracle.outer_products(3, 3, [0.0], POWERS) < possible
    for matrix in all_matrices(3, 3, 2):
        if len(set(itertools.chain(*matrix))) > 1:
            assert decided(matrix) == ("yes" if matrix in possible else "no")


@pytest.mark.parametrize(
    ("thresholds", "sizes"),
    [([1.5, 2.5], FINE), ([-2.5, -1.5], FINE), ([-1.0, 1.0], POWERS),  # products can be equal to both
     ([-1.0, 2.0], POWERS), ([-2.0, 1.0], POWERS), ([0.0, 1.0], POWERS), ([-1.0, 0.0], POWERS)],
)  # fmt: skip
def test_all_matrices_of_three_levels_and_size_2_by_3(thresholds, sizes):
    possible, matrices = oracle.outer_products(2, 3, thresholds, sizes), all_matrices(2, 3, 3)
    number = sum(agree(matrices, possible, thresholds))
    assert number >= sum(matrix in possible for matrix in matrices) - 1  # the grid may lack some


@pytest.mark.parametrize("thresholds", [[1.0], [-1.0, 1.0], [-2.0, -1.0, 1.0], [-2.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
def test_matrices_of_size_3_by_4_are_decided(thresholds):
    random = np.random.default_rng(len(thresholds))
    for _ in range(100):
        u, v = (random.choice([0.0, *POWERS], size) * random.choice([-1, 1], size) for size in (3, 4))
        planted = oracle.levels_of(u[:, None], v[:, None], thresholds)
        if np.any(np.array(planted) != oracle.level(0.0, thresholds)):
            assert decided(planted, thresholds) == "yes"
        assert decided(random.integers(0, len(thresholds) + 1, (3, 4)), thresholds) != "unknown"


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_what_is_rounded_from_an_outer_product_is_found(data):
    n, m = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    entries = st.integers(-9, 9)
    u, v = (np.array(data.draw(st.lists(entries, min_size=size, max_size=size))) for size in (n, m))
    given_ones = data.draw(st.lists(st.integers(-40, 40), min_size=1, max_size=5, unique=True).map(sorted))
    Y = np.array(oracle.levels_of(u[:, None], v[:, None], given_ones))
    thresholds = data.draw(st.sampled_from([None, given_ones]))
    if np.ptp(Y) == 0:
        return
    answer = decided(Y, thresholds)
    # given thresholds: some products may have to be equal to them, and floats are not
    assert answer == "yes" or (answer == "unknown" and thresholds is not None)


def test_ties_of_thresholds_are_exact():
    crossed = [[0, 1], [1, 0]]  # u_1 v_1 = -b and u_2 v_2 = -b, or below; u_1 v_2 and u_2 v_1 at most a: so b <= a
    assert decided(crossed, [-0.3, 0.3]) == "yes"
    assert decided(crossed, [-0.3, np.nextafter(0.3, 1)]) == "yes"
    assert decided(crossed, [-0.3, np.nextafter(0.3, 0)]) == "no"
    # u_1 v_1 <= 6 and u_2 v_2 <= 1, but u_1 v_2 > 2 and u_2 v_1 > 3: the bounds themselves are equal
    assert decided([[3, 2], [2, 0]], [1.0, 2.0, 3.0, 6.0]) == "yes"
    nested = [[3, 2], [3, 0]]
    assert decided(nested, [1.0, 2.0, 3.0, 6.0]) == "no"
    assert decided(nested, [1.0, 2.0, 3.0, 6.000001]) == "yes"
    assert decided(nested, [1.0, 2.0, 3.0, np.nextafter(6.0, 7.0)]) != "no"  # though floats may not show it


def test_a_threshold_of_zero_makes_triangles_impossible():
    triangle = np.triu(np.ones((5, 5), dtype=int))
    answers = [decided(triangle, thresholds) for thresholds in (None, [0.5], [-0.5], [0.0])]
    assert answers == ["yes", "yes", "yes", "no"]


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("thresholds", [[1e-3], [-7.0], [1.0, 2.0, 1e6], [-5.0, -1e-9, 3.0]])
def test_large_ones(n, thresholds):
    random = np.random.default_rng(n)
    u, v = (random.standard_normal(n) * np.exp(random.standard_normal(n)) for _ in range(2))
    Y = np.searchsorted(thresholds, np.outer(u, v))
    assert decided(Y) == "yes"
    assert decided(Y, thresholds) == "yes"
    Y[:3, :3] = len(thresholds) * np.eye(3, dtype=int)  # which is impossible by itself, as all matrices of size 3 show
    assert decided(Y) == "no"
    assert decided(Y, thresholds) == "no"


@pytest.mark.parametrize("tau", [0.5, 0.0, -0.5])
def test_random_matrices_are_decided_as_by_all_signs_and_linear_programs(tau):
    random = np.random.default_rng(7)
    answers = []
    for _ in range(30):
        Y = random.integers(0, 2, (3, 3))
        truth = oracle.is_outer_product(Y.tolist(), tau)
        assert (hs.rank.round_rank(Y, [tau], n_init=1).upper <= 1) == truth
        answers.append(truth)
    assert set(answers) == {True, False}

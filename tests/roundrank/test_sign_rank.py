"""Sign-ranks against all arrangements of vectors in the plane, and bounds on approximate ranks against all matrices."""

import itertools

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit

from halfseen.errors import DataError, ParameterError
from halfseen.rank import approximate_rank, cells_needed, identity, round_rank, sign_rank
from halfseen.roundrank.approximate_ranks import Ball
from halfseen.roundrank.exact_rounding import RoundingProblem
from halfseen.roundrank.lower_bounds import lower_bounds
from halfseen.roundrank.planar_signs import decide_plane
from halfseen.roundrank.upper_bounds import HingeLoss
from tests.roundrank import oracle

PLANE = oracle.rows_in_the_plane(3)


def ends(bounds):
    return bounds.lower, bounds.upper


def signs_of(bounds):
    """-1, 0 and 1: the signs of W H', every product and sum exact."""
    return np.sign(np.array(oracle.levels_of(bounds.W, bounds.H, [0])) - oracle.levels_of(-bounds.W, bounds.H, [0]))


def matrices(n_rows, n_columns):
    rows = list(itertools.product([0, 1], repeat=n_columns))
    return [np.array(chosen) for chosen in itertools.combinations(rows, n_rows)]


@pytest.mark.parametrize("strict", [False, True])
def test_vectors_in_the_plane_are_found_exactly_where_there_are_some(strict):
    """All matrices of 3 columns and 3 to 6 different rows."""
    possible = 0
    for Y in [one for n_rows in (3, 4, 5, 6) for one in matrices(n_rows, 3)]:
        truth = any({tuple(row) for row in Y.tolist()} <= rows for rows in PLANE[strict])
        certificate, impossible = decide_plane(RoundingProblem(Y, np.zeros(1), strict).distinct()[0])
        assert (certificate is not None, impossible) == (truth, not truth)
        possible += truth
    assert 0 < possible < 182


def test_sign_ranks_of_matrices_of_3_by_3_and_what_a_zero_counts_as():
    """Rank 0 and 1 by all products of factors -1, 0 and 1, rank 2 by all arrangements in the plane, else 3."""
    factors = list(itertools.product([-1, 0, 1], repeat=3))
    products = [np.outer(u, v) for u in factors for v in factors]
    for Y in matrices(3, 3)[::3]:
        for zeros, link in (("above", lambda x: x >= 0), ("below", lambda x: x > 0), ("none", np.sign)):
            wanted = 2 * Y - 1 if zeros == "none" else Y
            reached = {np.linalg.matrix_rank(x) for x in products if np.array_equal(link(x), wanted)}
            rows = {tuple(row) for row in (1 - Y if zeros == "above" else Y).tolist()}
            in_plane = any(rows <= allowed for allowed in PLANE[zeros == "none"])
            bounds = sign_rank(Y, zeros=zeros, n_init=1)
            assert ends(bounds) == (min(reached or {2 if in_plane else 3}),) * 2
            signs = signs_of(bounds)
            np.testing.assert_array_equal(signs if zeros == "none" else link(signs), wanted)


def test_identities_have_sign_rank_3_once_the_plane_is_full():
    """In the plane the half-plane of each vector leaves out all others: at most four, or three without zeros, can."""
    assert [ends(sign_rank(np.eye(n), zeros="below")) for n in (2, 3, 4, 5, 9)] == [
        (1, 1),
        (2, 2),
        (2, 2),
        (3, 3),
        (3, 3),
    ]
    assert [ends(sign_rank(np.eye(n), zeros="none")) for n in (2, 3, 4)] == [(1, 1), (2, 2), (3, 3)]
    assert (
        str(sign_rank([[0, 1], [1, 1]])) == "Sign-rank 1. 0 does not round to 1 - Y. An outer product rounds to 1 - Y."
    )


def test_planted_vectors_in_the_plane_are_found_among_many():
    random = np.random.default_rng(0)
    for strict in (False, True):
        Y = (random.standard_normal((25, 2)) @ random.standard_normal((2, 20)) > 0).astype(int)
        assert ends(sign_rank(Y, zeros="none" if strict else "below")) == (2, 2)


# Approximate ranks.


def all_near(Y, eps, highest):
    """All matrices of levels 0..highest within eps of Y."""
    for levels in itertools.product(range(highest + 1), repeat=Y.size):
        other = np.reshape(levels, Y.shape)
        if np.sum((other - Y) ** 2) <= eps:
            yield other


@pytest.mark.parametrize("link", ["round", "sign"])
@pytest.mark.parametrize("eps", [1, 2.5])
def test_the_approximate_rank_is_the_smallest_of_all_matrices_near_by(link, eps):
    rank = sign_rank if link == "sign" else round_rank
    for Y in (np.eye(3, dtype=int), np.array([[1, 0, 1], [0, 1, 1]])):
        truth = min(rank(other, n_init=1).upper for other in all_near(Y, eps, 1))
        bounds = approximate_rank(Y, eps, link=link)
        assert ends(bounds) == (truth, truth)
        assert bounds.error == np.sum((bounds.approximation - Y) ** 2) <= eps
        x = np.array(oracle.levels_of(bounds.W, bounds.H, bounds.thresholds.tolist()))
        np.testing.assert_array_equal(signs_of(bounds) >= 0 if link == "sign" else x, bounds.approximation)
        quick = approximate_rank(Y, eps, link=link, max_matrices=1)
        assert quick.lower <= truth <= quick.upper


def test_levels_that_are_two_apart_cost_four():
    Y = np.array([[0, 2, 1], [2, 0, 1]])
    for eps, thresholds in ((1, None), (3, [0.5, 1.5]), (4, [-1.0, 0.0])):
        truth = min(round_rank(other, thresholds, n_init=1).upper for other in all_near(Y, eps, 2))
        bounds = approximate_rank(Y, eps, thresholds)
        assert bounds.lower <= truth <= bounds.upper
        assert bounds.exact


def test_lower_bounds_survive_any_change_of_so_many_cells():
    """Whatever cells are changed, the bounds for that many changes are no larger than the rank."""
    random = np.random.default_rng(2)
    some = set()
    for trial in range(10):
        rank = trial % 2 + 1
        W, H = random.integers(-2, 3, (16, rank)), random.integers(-2, 3, (6, rank))
        for thresholds, strict in (([1.0], False), ([0.0], False), ([0.0], True)):
            factors = (W + 0.3, H + 0.3) if strict else (W, H)  # without a product of 0: whole multiples of .01
            Y = np.array(oracle.levels_of(*factors, thresholds))
            changes = int(random.integers(1, 4))
            Y.reshape(-1)[random.choice(Y.size, changes, replace=False)] ^= 1
            bounds = [bound.rank for bound in lower_bounds(RoundingProblem(Y, np.array(thresholds), strict), changes)]
            assert max(bounds, default=0) <= rank
            some.add(max(bounds, default=0))
    assert {1, 2} <= some


def test_large_matrices_have_bounds_in_spite_of_changes():
    assert ends(approximate_rank(identity(40).Y, 8)) == (2, 2)
    hadamard = np.array([[bin(i & j).count("1") % 2 for j in range(64)] for i in range(64)])
    assert approximate_rank(hadamard, 4, [0.0], search=False).lower == 5  # Forster: 64 / (8 + 2 * 2), and 1 less


def test_theorem_3_2_1_holds_below_a_quarter_for_signs_without_zeros():
    """eps-rank_sigmoid is the sign-rank without zeros; the factors show that it is no larger."""
    for Y in matrices(3, 3)[::7]:
        for eps in (1e-6, 0.24):
            bounds = approximate_rank(Y, eps, link="sigmoid")
            assert ends(bounds) == ends(sign_rank(Y, zeros="none"))
            assert np.sum((expit(bounds.W @ bounds.H.T) - Y) ** 2) <= eps
            stairs = approximate_rank(Y, eps, link="multi-sigmoid")
            assert ends(stairs) == ends(round_rank(Y))
            assert np.sum((expit(stairs.W @ stairs.H.T - stairs.thresholds) - Y) ** 2) <= eps


def test_theorem_3_2_1_does_not_hold_as_printed():
    """Not for any eps: 0 is within n m / 4. Not for signs with zeros: sigmoid(t x) is 1/2 there, however large t."""
    Y = np.array([[0, 1], [1, 1]])
    assert ends(sign_rank(Y)) == (1, 1)
    assert ends(approximate_rank(Y, 0.2, link="sigmoid")) == (2, 2)
    assert ends(approximate_rank(Y, 1.0, link="sigmoid")) == (0, 0)
    # no outer product comes near: the best of a fine grid, two of its four factors being free to scale
    grid = np.concatenate([-np.geomspace(1e-3, 50, 60), [0], np.geomspace(1e-3, 50, 60)])
    u, v, w = np.meshgrid(grid, grid, grid, indexing="ij")
    errors = [expit(u) ** 2, (1 - expit(v)) ** 2, (1 - expit(w)) ** 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors.append((1 - expit(v * w / u)) ** 2)  # x_11 x_22 = x_12 x_21
    assert np.nanmin(sum(errors)) > 0.25 - 1e-9  # the limit is a quarter


def test_remark_3_2_1_with_more_levels():
    Y = np.random.default_rng(4).integers(0, 3, (4, 4))
    bounds = approximate_rank(Y, 0.1, link="multi-sigmoid")
    assert ends(bounds) == ends(round_rank(Y))
    stairs = expit((bounds.W @ bounds.H.T)[:, :, None] - bounds.thresholds).sum(axis=2)
    assert bounds.error == pytest.approx(np.sum((stairs - Y) ** 2))
    assert bounds.error <= 0.1
    # a constant: the mean is the best, and its error the sum of squares around it
    spread = np.sum((Y - Y.mean()) ** 2)
    constant = approximate_rank(Y, spread + 1e-9, link="multi-sigmoid")
    assert (constant.upper, constant.error) == (0, pytest.approx(spread))
    assert approximate_rank(Y, spread - 1e-6, link="multi-sigmoid", n_init=1).lower == 1


def test_the_gradient_of_the_squared_error_is_that_of_differences():
    Y = np.random.default_rng(0).integers(0, 3, (3, 4))
    ball, loss = Ball(Y, 1.0, "multi-sigmoid", None), HingeLoss(Y, None, 1.0, 2)
    vector = np.random.default_rng(1).standard_normal(7 * 2 + 2)
    parts = [lambda z, part=part: ball.squared_error(loss, z)[part] for part in (0, 1)]
    assert check_grad(*parts, vector) < 1e-5


def test_what_cannot_be_approximated_is_named():
    refused = [
        ({"eps": -1}, "eps"),
        ({"eps": 0, "link": "sigmoid"}, "eps"),
        ({"link": "probit"}, "link"),
        ({"thresholds": [0.0], "link": "sign"}, "thresholds"),
        ({"max_matrices": 0}, "max_matrices"),
    ]
    for settings, name in refused:
        with pytest.raises(ParameterError) as error:
            approximate_rank([[0, 1]], **{"eps": 1, **settings})
        assert error.value.parameter == name
    with pytest.raises(ParameterError, match=r"^zeros must"):
        sign_rank([[0, 1]], zeros="both")
    for function in (sign_rank, lambda Y: approximate_rank(Y, 1, link="sigmoid")):
        with pytest.raises(DataError) as data_error:
            function([[0, 2]])
        assert (data_error.value.parameter, data_error.value.where) == ("Y", "at row 0, column 1")


# Theorem 1.1.1.


def test_rows_and_columns_are_seen_with_the_probability_asked_for():
    """Cells drawn a thousand times: the stricter of the two conditions holds as often as it should."""
    for n, m, rank in ((12, 30, 1), (30, 12, 3), (20, 20, 2)):
        needed = cells_needed(n, m, rank, probability=0.7)
        p = needed.worst_case / (n * m)
        block_of_row, block_of_column = (np.repeat(np.arange(rank), size // rank) for size in (n, m))
        inside = block_of_row[:, None] == block_of_column
        seen = (np.random.default_rng(0).random((4000, n, m)) < p) & inside
        shares = seen.any(axis=2).all(axis=1).mean(), seen.any(axis=1).all(axis=1).mean()
        assert min(shares) == pytest.approx(0.7, abs=0.025)
        assert needed.every_line == cells_needed(n, m, 1, probability=0.7).worst_case <= needed.worst_case


def test_the_degrees_of_freedom_are_the_rank_of_the_tangent_space():
    random = np.random.default_rng(0)
    for n, m, rank in ((6, 4, 1), (5, 5, 2), (4, 7, 3)):
        U, V = random.standard_normal((n, rank)), random.standard_normal((m, rank))
        tangent = np.hstack([np.kron(np.eye(n), V), np.kron(U, np.eye(m))])
        assert np.linalg.matrix_rank(tangent) == cells_needed(n, m, rank).degrees_of_freedom


def test_the_worst_case_grows_as_n_r_log_n():
    ratios = [[cells_needed(n, n, r).worst_case / cells_needed(n, n, r).order for n in (10**3, 10**4)] for r in (2, 20)]
    assert np.all(np.array(ratios) > 1)
    assert np.all(np.array(ratios) < 2)
    assert cells_needed(10, 10, 10).worst_case == pytest.approx(100, rel=0.01)  # a diagonal: all of it must be seen
    wide = cells_needed(5, 1000, 5)  # the necessary numbers are at most n m; what the theorem prints is not
    assert max(wide[:3]) <= 5000 < wide.order
    for settings, name in (((3, 4, 4), "rank"), ((3, 4, 0), "rank"), ((0, 4, 1), "n")):
        with pytest.raises(ParameterError, match=f"^{name} must"):
            cells_needed(*settings)
    with pytest.raises(ParameterError, match=r"^probability must"):
        cells_needed(3, 4, 1, probability=1.0)

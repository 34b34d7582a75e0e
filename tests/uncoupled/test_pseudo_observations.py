"""Pseudo-observations against Eq. 4 to 6 and Theorem 4.2 as loops over the three lists, their weights w against a
linear program, and rank decoding against NumPy's quantiles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import Uncoupled, UncoupledNMF
from halfseen.engines.threads import Threads
from halfseen.errors import DataError, ParameterError
from halfseen.likelihoods import likelihood_for
from halfseen.solvers import Multiplicative
from halfseen.uncoupled.pseudo_observations import decoded_answers, error_weights, pseudo_observations
from tests.laws.cases import states
from tests.uncoupled import oracle
from tests.uncoupled.cases import lists, seen_of

SHAPE = (5, 7)
BALANCES = {"zero": 0.0, "half": 0.5, "full": 1.0}
NUMBERS = [0.1, 0.0, 2.0, -0.3, 0.7]
CASES = {"plain": {}, "asked again": {"repeats": 9}, "unknown sides": {"unknown": 0.5}}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_balance = pytest.mark.parametrize("balance", [*BALANCES, 0.4, 50.0, NUMBERS], ids=str)
both_rules = pytest.mark.parametrize("beta", [2.0, 1.0], ids=["Eq. 5", "Eq. 6"])


def made(seen, balance):
    with Threads(1) as threads:
        w, _ = error_weights(seen.answers, seen.answer_indptr, threads)
    return pseudo_observations(seen, w, balance)


def lambdas(balance, w):
    """What the paper's lambda is under a balance."""
    return BALANCES[balance] * w.sum(axis=1) if isinstance(balance, str) else np.broadcast_to(balance, len(w))


def grid(observed):
    """The values and how much they weigh, as dense arrays."""
    Y, C = np.zeros(observed.shape), np.zeros(observed.shape)
    rows = np.repeat(np.arange(observed.shape[0]), np.diff(observed.indptr))
    Y[rows, observed.indices] = observed.values
    C[rows, observed.indices] = 1.0 if observed.weights is None else observed.weights
    return Y, C


@every_case
@every_balance
def test_they_are_z_over_gamma(case, balance):
    asked, answers, compared = lists(**case)
    pseudo = made(seen_of(asked, answers, compared, SHAPE), balance)
    assert_allclose(pseudo.balance, lambdas(balance, pseudo.w), rtol=1e-15)
    gamma, z = oracle.coefficients(asked, compared, SHAPE, pseudo.w, pseudo.balance)
    Y, C = grid(pseudo.observed)
    assert_allclose(C / len(asked), gamma, rtol=1e-15)
    assert (pseudo.observed.weights is None) == ("repeats" not in case)
    assert_allclose(Y, np.where(gamma > 0, np.maximum(z, 0) / np.where(gamma > 0, gamma, 1), 0), rtol=1e-12)
    assert pseudo.n_clipped == (z < 0).sum()
    assert pseudo.n_clipped > 0 or balance != 50.0
    assert pseudo.observed.unseen == "missing"


@every_case
@pytest.mark.parametrize("beta", oracle.BETAS)
@pytest.mark.parametrize("balance", BALANCES)
def test_eq_4_is_their_divergence_but_for_a_constant(case, beta, balance):
    """Answers so far above 0 that nothing is clipped: what the two differ by, no x can change."""
    asked, answers, compared = lists(1, floor=20.0, **case)
    pseudo = made(seen_of(asked, answers, compared, SHAPE), balance)
    assert pseudo.n_clipped == 0
    Y, C = grid(pseudo.observed)
    rng = np.random.default_rng(2)
    phi, psi = oracle.BETAS[beta]
    likelihood = likelihood_for(beta)
    differences = []
    for _ in range(4):
        X = rng.uniform(5, 40, SHAPE)
        divergence = (C / len(asked) * np.where(C > 0, likelihood.divergence(Y, X), 0)).sum()
        differences.append(divergence - oracle.loss(asked, compared, pseudo.w, pseudo.balance, X, phi, psi))
    assert_allclose(differences, differences[0], rtol=0, atol=1e-10)


@every_case
@both_rules
@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("floor", [0.0, 20.0])
def test_the_loop_takes_the_papers_steps(case, beta, balance, floor):
    """The paper moves A first, then B by the new A (Algorithm 1). So does the loop, questions being rows."""
    asked, answers, compared = lists(3, floor=floor, **case)
    pseudo = made(seen_of(asked, answers, compared, SHAPE), balance)
    gamma, z = oracle.coefficients(asked, compared, SHAPE, pseudo.w, pseudo.balance)
    z = np.maximum(z, 0)
    rng = np.random.default_rng(4)
    A, B = rng.uniform(0.2, 1.5, (SHAPE[0], 2)), rng.uniform(0.2, 1.5, (SHAPE[1], 2))
    phi, psi = oracle.BETAS[beta]
    losses = []
    for state in states(Multiplicative(), likelihood_for(beta), pseudo.observed, A, B, steps=12):
        assert_allclose(state.rows.mean, A, rtol=1e-10)
        assert_allclose(state.columns.mean, B, rtol=1e-10)
        losses.append(oracle.loss(asked, compared, pseudo.w, pseudo.balance, A @ B.T, phi, psi))
        A, B = oracle.step(gamma, z, A, B, beta)
    if floor > 0:  # Eq. 4 knows nothing of values that are clipped
        assert pseudo.n_clipped == 0
        assert np.all(np.diff(losses) <= 1e-13 * np.abs(losses[0]))
        assert losses[-1] < losses[0]


@both_rules
@pytest.mark.parametrize("balance", BALANCES)
def test_six_iterations_of_the_estimator_are_algorithm_1(beta, balance):
    """From the three lists to A and B, in plain loops but for w."""
    asked, answers, compared = lists(4, floor=20.0)
    seen = Uncoupled(asked, answers, compared)
    rows, columns = (np.asarray(labels) for labels in (seen.question_labels, seen.respondent_labels))
    rng = np.random.default_rng(4)
    A, B = rng.uniform(0.2, 1.5, (SHAPE[0], 2)), rng.uniform(0.2, 1.5, (SHAPE[1], 2))
    model = UncoupledNMF(
        2, method="unmf", loss=beta, balance=balance, init=(A[rows], B[columns]), max_iter=6, tol=0.0, n_jobs=1
    ).fit(seen)
    w, balances = np.empty((SHAPE[0], 2)), np.empty(SHAPE[0])
    w[rows], balances[rows] = model.w_, model.balance_
    assert_allclose(balances, lambdas(balance, w), rtol=1e-15)
    gamma, z = oracle.coefficients(asked, compared, SHAPE, w, balances)
    assert z.min() >= 0
    for _ in range(6):
        A, B = oracle.step(gamma, z, A, B, beta)
    assert_allclose(model.W_, A[rows], rtol=1e-13)
    assert_allclose(model.H_, B[columns], rtol=1e-13)


def uniform_rows(multiplicities, bounds):
    """Rows of values a + (b - a) F(x), F counting half of the equal ones, in another order in each row."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(len(multiplicities)), multiplicities)
    F = oracle.distribution(list(groups), ties=0.5)
    return np.array([a + (b - a) * rng.permutation(F) for a, b in bounds])


def listed(X, compare):
    asked = [(i, j) for i in range(X.shape[0]) for j in range(X.shape[1])]
    compared = [one for i in range(X.shape[0]) for one in compare(X[i], i)]
    return asked, [(i, X[i, j]) for i, j in asked], compared


@pytest.mark.parametrize("multiplicities", [[1] * 8, [1, 3, 2, 2], [8]], ids=["distinct", "ties", "constant"])
@pytest.mark.parametrize("beta", oracle.BETAS)
def test_theorem_4_2_is_exact_for_uniform_values(multiplicities, beta):
    """E[d(X, x)] = E[phi(X)] + Eq. 4, the comparisons being all pairs of two independent draws, for w = (b/2, a/2).

    F must be what Lemma 4.1 takes it for: P(J+ = j) = 2 F(x_j) / n. Summed over all pairs, a tie giving half to each
    side, it counts half of the equal values, the cell itself among them.
    """
    bounds = [(0.5, 3.0), (2.0, 2.5), (1.0, 7.0)]
    X = uniform_rows(multiplicities, bounds)
    asked, answers, compared = listed(X, oracle.every_pair)
    w = np.array([(b / 2, a / 2) for a, b in bounds])
    phi, psi = oracle.BETAS[beta]
    rng = np.random.default_rng(6)
    for balance in (np.zeros(3), w.sum(axis=1), rng.normal(0, 3, 3)):
        guess = rng.uniform(0.3, 8, X.shape)
        coupled = np.mean([oracle.bregman(X[cell], guess[cell], phi, psi) for cell in asked])
        constant = np.mean([phi(X[cell]) for cell in asked])
        uncoupled = oracle.loss(asked, compared, w, balance, guess, phi, psi)
        assert coupled == pytest.approx(constant + uncoupled, abs=1e-10)
        pseudo = pseudo_observations(seen_of(asked, answers, compared, X.shape), w, balance)
        assert_allclose(grid(pseudo.observed)[0], X, rtol=1e-12)


def test_theorem_4_2_is_exact_for_pairs_of_different_cells_too():
    """Each pair of different cells once: P(J+ = j) = 2 (rank - 1) / (n (n - 1)), so w = (highest, lowest) / 2."""
    rng = np.random.default_rng(7)
    X = np.array([rng.permutation(np.linspace(a, b, 9)) for a, b in [(1.0, 5.0), (0.0, 2.0)]])
    asked, answers, compared = listed(X, lambda row, i: [one for one in oracle.every_pair(row, i) if one[1] != one[2]])
    w = np.array([(2.5, 0.5), (1.0, 0.0)])
    for balance in ("zero", "half", "full", [3.0, -1.0]):
        Y, _ = grid(pseudo_observations(seen_of(asked, answers, compared, X.shape), w, balance).observed)
        assert_allclose(Y, X, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [4, 10, 50])
def test_w_of_a_sample_falls_short_by_half_a_step(n):
    """The sample's F counts all equal values (section 4.3), Lemma 4.1's half of them: 1 / (2 n) of the range apart."""
    X = np.random.default_rng(8).permutation(1 + 4 * np.arange(1, n + 1) / n)[None]
    Y, _ = grid(made(seen_of(*listed(X, oracle.every_pair), X.shape), "half").observed)
    assert_allclose(X - Y, 4 / (2 * n), rtol=1e-10)


@pytest.mark.parametrize("beta", oracle.BETAS)
def test_lambda_does_not_matter_when_every_pair_is_compared(beta):
    """Whatever the values and w: the terms of lambda cancel (the proof of Theorem 4.2)."""
    rng = np.random.default_rng(9)
    X, guess = rng.integers(1, 5, (3, 6)).astype(float), rng.uniform(0.3, 6, (3, 6))
    asked, answers, compared = listed(X, oracle.every_pair)
    w = rng.uniform(0, 2, (3, 2))
    losses = [oracle.loss(asked, compared, w, rng.normal(0, 3, 3), guess, *oracle.BETAS[beta]) for _ in range(4)]
    assert_allclose(losses, losses[0], rtol=0, atol=1e-10)
    seen = seen_of(asked, answers, compared, X.shape)
    values = [pseudo_observations(seen, w, balance).observed.values for balance in ("zero", "half", "full", 2.0)]
    assert_allclose(values, [values[0]] * 4, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("side", ["higher", "lower"])
def test_comparisons_that_never_tell_one_side_are_as_good_with_the_right_lambda(side):
    """lambda = 2 w_1 or 2 w_2 (section 4.2): the unknown side is worth nothing, whatever it was."""
    asked, answers, compared = lists(10)
    half = [(i, None, low) if side == "higher" else (i, high, None) for i, high, low in compared]
    for balance in ("zero", "full", NUMBERS):
        pseudo = made(seen_of(asked, answers, half, SHAPE), balance)
        needed = 2 * pseudo.w[:, 0 if side == "higher" else 1]
        assert_array_equal(pseudo.balance, needed)
        told = made(seen_of(asked, answers, compared, SHAPE), needed)
        assert_allclose(pseudo.observed.values, told.observed.values, rtol=1e-13)


@every_balance
def test_sides_untold_of_other_questions_do_not_matter(balance):
    """Hidden anywhere but in question 2: not a bit of its values changes, nor of its lambda."""
    asked, answers, compared = lists(17, unknown=0.3)
    random = np.random.default_rng(18)
    told = made(seen_of(asked, answers, compared, SHAPE), balance)
    others = []
    for i, high, low in compared:
        hidden = random.choice(3) if i != 2 and None not in (high, low) else 2
        others.append((i, None if hidden == 0 else high, None if hidden == 1 else low))
    assert others != compared
    found = made(seen_of(asked, answers, others, SHAPE), balance)
    assert_array_equal(grid(found.observed)[0][2], grid(told.observed)[0][2])
    assert found.balance[2] == told.balance[2]
    assert (grid(found.observed)[0] != grid(told.observed)[0]).any()


def test_untold_sides_leave_the_mean_of_a_question_as_it_is():
    """sum of gamma+ = sum of gamma- = n_i / n_C, told or not: so a question's z, and the mean of its y, stay."""
    asked, answers, compared = lists(19, floor=20.0)
    hidden = [(i, None if place % 3 == 0 else high, None if place % 3 == 1 else low)
              for place, (i, high, low) in enumerate(compared)]  # fmt: skip
    one, other = (made(seen_of(asked, answers, which, SHAPE), "half") for which in (compared, hidden))
    assert (one.n_clipped, other.n_clipped) == (0, 0)
    assert_array_equal(one.balance, other.balance)
    (Y, C), (theirs, _) = grid(one.observed), grid(other.observed)
    assert_allclose((C * Y).sum(axis=1), (C * theirs).sum(axis=1), rtol=1e-12)
    assert np.abs(Y - theirs).max() > 1


def test_a_question_without_answers_gets_the_mean_of_all():
    asked, answers, compared = lists(14)
    answers = [one for one in answers if one[0] != 3]
    pseudo = made(seen_of(asked, answers, compared, SHAPE), "half")
    assert_allclose(pseudo.w[3], np.delete(pseudo.w, 3, axis=0).mean(axis=0), rtol=1e-15)
    gamma, z = oracle.coefficients(asked, compared, SHAPE, pseudo.w, pseudo.balance)
    z[3] = gamma[3] * np.mean([x for _, x in answers])
    Y, C = grid(pseudo.observed)
    assert_allclose(Y[C > 0], np.maximum(z[C > 0] / gamma[C > 0], 0), rtol=1e-12)
    assert pseudo.n_clipped == (z < 0).sum()


def test_without_comparisons_only_lambda_is_left():
    asked, answers, _ = lists(15)
    seen = seen_of(asked, answers, [], SHAPE)
    for balance in ("half", "full", 0.4, NUMBERS):
        pseudo = made(seen, balance)
        Y, C = grid(pseudo.observed)
        truth = np.maximum(lambdas(balance, pseudo.w), 0)
        assert_allclose(Y[C > 0], np.broadcast_to(truth[:, None], SHAPE)[C > 0], rtol=1e-15)
    wrong = ("fulll", None, np.inf, [1.0, 2.0], np.ones((5, 1)), [], [1, 2, np.nan, 4, 5], ["a"] * 5)
    nothing = ("zero", 0, -1.0, np.zeros(5))
    for balance, kind in [(one, ParameterError) for one in wrong] + [(one, DataError) for one in nothing]:
        with pytest.raises(kind) as error:
            made(seen, balance)
        assert error.value.parameter == "balance"


@every_case
def test_uncoupled_data_are_read_as_the_loops_read_them(case):
    """By names: `Uncoupled` has its own numbers."""
    asked, answers, compared = lists(16, **case)
    seen = Uncoupled(
        [(f"q{i}", f"r{j}") for i, j in asked],
        [(f"q{i}", x) for i, x in answers],
        [(f"q{i}", *(None if j is None else f"r{j}" for j in pair)) for i, *pair in compared],
    )
    observed, clipped, w, _ = made(seen, "half")
    assert observed.indices.dtype == observed.indptr.dtype == np.int32
    truth = made(seen_of(asked, answers, compared, SHAPE), "half")
    rows, columns = ([int(name[1:]) for name in names] for names in (observed.row_labels, observed.column_labels))
    for found, expected in zip(grid(observed), grid(truth.observed), strict=True):
        assert_allclose(found, expected[np.ix_(rows, columns)], rtol=1e-13)
    assert_array_equal(w, truth.w[rows])
    assert clipped == truth.n_clipped


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
def test_no_linear_program_finds_less_or_a_flatter_line_at_the_same_cost(kind):
    """400 rows in all."""
    rows = rows_of(kind, 20)
    w, errors = solved(rows)
    assert (w >= 0).all()
    for row, of_row, error in zip(rows, w, errors, strict=True):
        scale = np.abs(row).max() or 1.0
        assert_allclose(error / scale, oracle.deviation(row, of_row) / scale, rtol=0, atol=1e-12)
        least, flattest = oracle.least_deviation(row)
        assert_allclose(error / scale, least / scale, rtol=0, atol=1e-9)
        assert_allclose(of_row / scale, flattest / scale, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_w_is_the_flattest_best_line_to_the_last_digit(kind):
    """Against every line through two answers, in fractions."""
    rows = [row for row in rows_of(kind, 30, seed=1) if row.size <= 8]
    w, errors = solved(rows)
    for row, of_row, error in zip(rows, w, errors, strict=True):
        scale = np.abs(row).max() or 1.0
        truth, least = oracle.flattest_line(row)
        assert_allclose(of_row / scale, [float(one) / scale for one in truth], rtol=0, atol=4e-16)
        assert_allclose(error / scale, float(least) / scale, rtol=0, atol=4e-16)


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


def test_rows_without_answers_threads_and_scales_move_no_other():
    rows = rows_of("continuous", 5) + rows_of("stars", 5)
    gaps = [np.empty(0), *rows[:4], np.empty(0), np.empty(0), *rows[4:], np.empty(0)]
    there = [len(row) > 0 for row in gaps]
    for with_gaps, without in zip(solved(gaps), solved(rows), strict=True):
        assert_array_equal(with_gaps[there], without)
        assert np.isnan(with_gaps[~np.array(there)]).all()
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.lognormal(0, 1, n)) for n in rng.integers(0, 400, 2000)]
    for one, three in zip(solved(rows), solved(rows, n_jobs=3), strict=True):
        assert_array_equal(one, three)
    rows = rows_of("stars", 20) + rows_of("either sign", 20)
    w, errors = solved(rows)
    for scale in (2.0**-900, 2.0**900):
        scaled_w, scaled_errors = solved([row * scale for row in rows])
        assert_array_equal(scaled_w, w * scale)
        assert_array_equal(scaled_errors, errors * scale)


@pytest.mark.parametrize(
    ("row", "w", "error"),
    [
        ([3.0], (1.5, 1.5), 0), ([5.0] * 4, (2.5, 2.5), 0), ([0.0] * 3, (0, 0), 0),
        ([-2.0], (0, 0), 2), ([-1.0] * 2, (0, 0), 1),
        ([3.0, 4.0], (2, 1), 0),  # F is 1/2 and 1: the line through both starts at 2,
        ([1.0, 4.0], (2, 0), 0.5),  # and this one would start below 0
        # Several lines are best: 0 to 1.5 .. 0 to 2; 1 to 5 .. 0 to 16/3; 0 to 0 .. 0 to 5/4.
        ([0.0, 1.0, 2.0], (0.75, 0), 1 / 3), ([1.0, 3.0, 4.0, 5.0], (2.5, 0.5), 0.25),
        ([0.0, 0.0, 0.0, 1.0, 2.0], (0, 0), 0.6),
    ],
)  # fmt: skip
def test_few_answers_by_hand(row, w, error):
    found, errors = solved([np.array(row)])
    assert_allclose(found, [w], rtol=1e-15)
    assert_allclose(errors, [error], atol=1e-15)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "more", [{}, {"repeats": 6}, {"unknown": 0.6}, {"comparisons": 0}, {"comparisons": 40}], ids=str
)
@pytest.mark.parametrize("change", ["none", "no answers to some", "no answers but one's", "other numbers", "negative"])
def test_decoded_answers_are_numpys_quantiles(seed, more, change):
    """Questions without answers get the mean of all; answers below 0 become 0 and are counted."""
    asked, answers, compared = lists(seed, **more)
    rng = np.random.default_rng(6)
    answers = {
        "none": answers,
        "no answers to some": [one for one in answers if one[0] not in (0, 2, 4)],
        "no answers but one's": [one for one in answers if one[0] == 4],
        "other numbers": [one for one in answers if rng.random() < 0.5] + [(1, 0.5)] * 20 + [(3, 2.0)],
        "negative": [(i, x - 4) for i, x in answers],
    }[change]
    truth = oracle.decoded(asked, answers, compared)
    found, n_clipped = decoded_answers(seen_of(asked, answers, compared, SHAPE))
    assert n_clipped == sum(value < 0 for value in truth.values())
    assert (n_clipped > 0) == (change == "negative")
    places = zip(np.repeat(np.arange(SHAPE[0]), np.diff(found.indptr)).tolist(), found.indices.tolist(), strict=True)
    assert list(places) == sorted(truth)
    assert_allclose(found.values, [max(truth[cell], 0) for cell in sorted(truth)], rtol=1e-13)

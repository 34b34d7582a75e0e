"""What every pair of a solver and a likelihood must obey."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, sparse, special, stats

from halfseen.engines import Side, cpu
from halfseen.errors import ParameterError
from halfseen.io import observe
from halfseen.likelihoods import CompoundPoisson, GammaNoise, Gaussian, Ordinal, Poisson
from halfseen.solvers import Gamma, GammaPrior, InverseGaussian, LeastSquares, Multiplicative, Penalty
from tests import oracle
from tests.laws.cases import (
    DECREMENTS,
    DIVERGENCES,
    LIKELIHOODS,
    OTHERS,
    beta_of,
    counts,
    half_seen,
    made_legal,
    names,
    observed_cases,
    open_problem,
    start,
    states,
    weights_for,
)

PENALTIES = [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7), (0.3, 0.7)]
RATES = [None, 0.8]
K = 3

every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=names)
every_divergence = pytest.mark.parametrize("likelihood", DIVERGENCES, ids=names)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=["plain", "l1", "l2", "l1 l2"])
both_rates = pytest.mark.parametrize("rate", RATES, ids=["learned", "fixed"])
with_and_without_weights = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
both_meanings = pytest.mark.parametrize("unseen", ["missing", "zero"])


def meanings(likelihood):
    return ["missing"] if likelihood.unseen is None else ["missing", "zero"]


def with_meanings(likelihoods):
    return pytest.mark.parametrize(
        ("likelihood", "unseen"),
        [pytest.param(one, unseen, id=f"{one.name} {unseen}") for one in likelihoods for unseen in meanings(one)],
    )


every_meaning, every_other_meaning = with_meanings(DIVERGENCES), with_meanings(OTHERS)


@every_meaning
@every_penalty
@with_and_without_weights
def test_multiplicative_iterates_are_the_oracles(likelihood, penalty, weighted, unseen):
    observed = observed_cases(likelihood, unseen, weighted)
    Y, C = oracle.grid(observed)
    W, H = start(*observed.shape, K)
    beta = beta_of(likelihood)
    for state in states(Multiplicative(Penalty(*penalty)), likelihood, observed, W, H, steps=20):
        assert_allclose(state.rows.mean, W, rtol=1e-10, atol=1e-12)
        assert_allclose(state.columns.mean, H, rtol=1e-10, atol=1e-12)
        assert_allclose(state.objective, oracle.loss(Y, C, W, H, beta, *penalty), rtol=1e-10)
        W, H = oracle.multiplicative_step(Y, C, W, H, beta, *penalty)


@every_meaning
@every_penalty
@with_and_without_weights
@pytest.mark.parametrize("seed", [1, 2])
def test_the_loss_never_rises(likelihood, penalty, weighted, unseen, seed):
    observed = observed_cases(likelihood, unseen, weighted, seed)
    Y, C = oracle.grid(observed)
    W, H = start(*observed.shape, K, seed)
    run = list(states(Multiplicative(Penalty(*penalty)), likelihood, observed, W, H, steps=60))
    truth = np.array([oracle.loss(Y, C, s.rows.mean, s.columns.mean, beta_of(likelihood), *penalty) for s in run])
    assert_allclose([state.objective for state in run], truth, rtol=1e-10)
    assert np.all(np.diff(truth) <= 1e-12 * truth[0])
    assert truth[-1] < 0.999 * truth[0]


@every_other_meaning
@every_penalty
@with_and_without_weights
def test_the_loss_of_levels_and_compound_counts_never_rises(likelihood, penalty, weighted, unseen):
    observed = observed_cases(likelihood, unseen, weighted)
    run = list(states(Multiplicative(Penalty(*penalty)), likelihood, observed, *start(*observed.shape, K), steps=60))
    losses = np.array([state.objective for state in run])
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    assert losses[-1] < 0.999 * losses[0]


@both_rates
@with_and_without_weights
@both_meanings
@pytest.mark.parametrize("shape", [0.3, 1.7])
def test_gamma_iterates_are_the_oracles(rate, weighted, unseen, shape):
    X = counts()
    observed = observe(X, unseen=unseen, cell_weight=weights_for(X) if weighted else None)
    Y, C = oracle.grid(observed)
    w, h = map(oracle.Start, start(*observed.shape, K))
    prior = GammaPrior(shape, rate)
    run = states(Gamma(prior, prior), Poisson(), observed, w.mean, h.mean, steps=20)
    assert next(run).objective == -np.inf
    for state in run:
        w, h = oracle.gamma_step(Y, C, w, h, shape, rate)
        for factor, truth in ((state.rows, w), (state.columns, h)):
            for name in ("shape", "rate", "mean", "geometric"):
                assert_allclose(getattr(factor, name), getattr(truth, name), rtol=1e-10, atol=1e-14, err_msg=name)
        assert_allclose(state.objective, oracle.elbo(Y, C, w, h, shape), rtol=1e-10)


@pytest.mark.parametrize("y", [0.0, 1.0, 7.0])
def test_the_bound_is_below_the_evidence_and_near_it(y):
    """One cell, one component: log p(y) is an integral over both gamma priors, here by quadrature."""
    a, b = 2.0, 1.5
    observed = observe(np.array([[y]]))
    prior = GammaPrior(a, b)
    *_, last = states(Gamma(prior, prior), Poisson(), observed, np.ones((1, 1)), np.ones((1, 1)), steps=200)

    def given_h(h):  # w integrated out: a negative binomial
        return stats.nbinom.pmf(y, a, b / (b + h)) * stats.gamma.pdf(h, a, scale=1 / b)

    evidence = np.log(integrate.quad(given_h, 0, np.inf)[0])
    assert evidence - 0.5 < last.objective < evidence


@every_divergence
def test_exact_factors_are_a_fixed_point(likelihood):
    W, H = start(9, 8, K)
    X = W @ H.T
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    *_, last = states(Multiplicative(), likelihood, observe(X), W, H, steps=3)
    assert_allclose(last.rows.mean, W, rtol=1e-12)
    assert_allclose(last.columns.mean, H, rtol=1e-12)
    assert_allclose(last.objective, 0, atol=1e-12)


@every_divergence
@every_penalty
def test_where_it_comes_to_rest_the_penalised_loss_is_flat(likelihood, penalty):
    """The oracle's slope along every entry is zero there."""
    W, H = start(7, 6, 1, seed=1)
    X = W @ H.T * np.random.default_rng(0).uniform(0.5, 1.5, (7, 6))
    observed = observe(np.where(X < 0.2, np.nan, X), cell_weight=weights_for(X))
    Y, C = oracle.grid(observed)
    *_, last = states(Multiplicative(Penalty(*penalty)), likelihood, observed, *start(7, 6, 1), steps=1500)
    rest = np.concatenate([last.rows.mean, last.columns.mean]).ravel()

    def loss(z):
        return oracle.loss(Y, C, z[:7, None], z[7:, None], beta_of(likelihood), *penalty)

    steps = 1e-5 * np.diag(rest)
    slope = [(loss(rest + step) - loss(rest - step)) / 2e-5 for step in steps]
    assert_allclose(slope, 0, atol=1e-6 * loss(rest))


@both_rates
def test_where_the_gamma_solver_comes_to_rest_it_stays(rate):
    X = np.random.default_rng(0).poisson(4.0, (6, 4)) + 1.0
    prior = GammaPrior(0.5, rate)
    *_, before, after = states(Gamma(prior, prior), Poisson(), observe(X), *start(6, 4, 1), steps=3000)
    assert_allclose(after.rows.mean @ after.columns.mean.T, before.rows.mean @ before.columns.mean.T, rtol=1e-9)
    assert_allclose(after.rows.shape, before.rows.shape, rtol=1e-9)


PAIRS = {
    **{likelihood.name: (Multiplicative(), likelihood) for likelihood in LIKELIHOODS},
    "penalised": (Multiplicative(Penalty(0.2, 0.4)), Poisson()),
    "least squares": (LeastSquares(1.0), Gaussian()),
    "gamma": (Gamma(), Poisson()),
    "gamma of levels": (Gamma(), Ordinal(DECREMENTS)),
    "gamma of compound counts": (Gamma(), CompoundPoisson(0.7)),
    "inverse-Gaussian": (InverseGaussian(), GammaNoise(np.array([0.7, 1.5, 2.5, 4.0, 7.0]))),
    "inverse-Gaussian of gamma noise": (InverseGaussian(), GammaNoise(np.array([0.7, 1.5, 2.5, 4.0, 7.0]), 2.5)),
}


def pairs(*wanted):
    """The pairs, each with those of the wanted meanings of unseen that it has."""
    return [
        pytest.param(*pair, unseen, id=f"{name} {unseen}")
        for name, pair in PAIRS.items()
        for unseen in meanings(pair[1])
        if unseen in wanted
    ]


every_pair = pytest.mark.parametrize(("solver", "likelihood"), PAIRS.values(), ids=PAIRS)
every_pair_and_meaning = pytest.mark.parametrize(("solver", "likelihood", "unseen"), pairs("missing", "zero"))
every_pair_with_zeros = pytest.mark.parametrize(("solver", "likelihood", "unseen"), pairs("zero"))


def last_factors(solver, likelihood, observed, steps=15, seed=0):
    *_, last = states(solver, likelihood, observed, *start(*observed.shape, K, seed), steps=steps)
    return last


def assert_same_state(one, other, rtol=1e-10):
    assert_allclose(one.rows.mean, other.rows.mean, rtol=rtol, atol=1e-14)
    assert_allclose(one.columns.mean, other.columns.mean, rtol=rtol, atol=1e-14)
    assert_allclose(one.objective, other.objective, rtol=rtol)


@every_pair
def test_a_masked_cell_equals_a_deleted_one(solver, likelihood):
    """Weight 0, NaN, a mask, and a cell that isn't stored."""
    X = made_legal(likelihood, half_seen(zeros=False, holes=0, blanks=False))
    masked = np.random.default_rng(4).random(X.shape) < 0.4
    rows, columns = np.nonzero(~masked)
    nan = last_factors(solver, likelihood, observe(np.where(masked, np.nan, X)))
    assert_same_state(last_factors(solver, likelihood, observe(X, cell_weight=np.where(masked, 0.0, 1.0))), nan)
    assert_same_state(last_factors(solver, likelihood, observe(np.ma.array(X, mask=masked))), nan)
    stored = sparse.coo_array((X[rows, columns], (rows, columns)), X.shape)
    assert_same_state(last_factors(solver, likelihood, observe(stored)), nan)
    other = np.where(masked, 1e3, X)  # what stands behind the mask doesn't matter
    assert_same_state(last_factors(solver, likelihood, observe(other, cell_weight=np.where(masked, 0.0, 1.0))), nan)


@every_pair_with_zeros
def test_a_masked_cell_says_nothing_even_where_unseen_cells_are_zeros(solver, likelihood, unseen):
    X = made_legal(likelihood, half_seen(zeros=False, blanks=False))
    weight = np.where(np.random.default_rng(4).random(X.shape) < 0.3, 0.0, 1.0)
    filled = np.nan_to_num(X)
    as_zero = last_factors(solver, likelihood, observe(X, unseen=unseen, cell_weight=np.where(np.isnan(X), 1, weight)))
    full = last_factors(solver, likelihood, observe(filled, cell_weight=np.where(np.isnan(X), 1, weight)))
    assert_same_state(as_zero, full)


@every_pair_with_zeros
def test_rows_and_columns_of_which_nothing_counts_are_not_moved_by_rounding(solver, likelihood, unseen):
    """Where all cells of a row weigh 0, pushes cancel; what rounding leaves of them must not be taken for a push."""
    X = made_legal(likelihood, np.random.default_rng(0).gamma(1.5, 2.0, (30, 25)))
    weight = np.ones_like(X)
    weight[[3, 4, 6, 8]], weight[:, [2, 9]] = 0, 0
    masked = observe(X, unseen=unseen, cell_weight=weight)
    deleted = observe(np.where(weight > 0, X, np.nan), unseen="missing")
    assert_same_state(last_factors(solver, likelihood, masked), last_factors(solver, likelihood, deleted))


@every_pair_with_zeros
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_weights_on_the_whole_grid_are_heard(solver, likelihood, unseen, dtype):
    """What rounding leaves must not be taken for a push, nor a small push for what rounding leaves."""
    X = made_legal(likelihood, np.random.default_rng(0).gamma(1.5, 2.0, (30, 25)) + 1)
    weight = np.full(X.shape, 1e-4)
    *_, rounded = states(
        solver, likelihood, observe(X.astype(dtype), unseen=unseen, cell_weight=weight),
        *start(30, 25, K, dtype=dtype), steps=5,
    )  # fmt: skip
    *_, truth = states(solver, likelihood, observe(X, cell_weight=weight), *start(30, 25, K), steps=5)
    assert_allclose(rounded.rows.mean @ rounded.columns.mean.T, truth.rows.mean @ truth.columns.mean.T, rtol=0.05)


@every_pair_and_meaning
def test_a_cell_of_weight_two_equals_the_same_cell_twice(solver, likelihood, unseen):
    X = made_legal(likelihood, half_seen(zeros=False, blanks=False))
    rows, columns = np.nonzero(~np.isnan(X))
    twice = np.random.default_rng(4).random(rows.size) < 0.4
    heavy = sparse.coo_array((X[rows, columns], (rows, columns)), X.shape)
    weight = np.where(twice, 2.0, 1.0)
    all_rows, all_columns = np.append(rows, rows[twice]), np.append(columns, columns[twice])
    repeated = sparse.coo_array((X[all_rows, all_columns], (all_rows, all_columns)), X.shape)
    assert_same_state(
        last_factors(solver, likelihood, observe(repeated, unseen=unseen, duplicates="keep")),
        last_factors(solver, likelihood, observe(heavy, unseen=unseen, cell_weight=weight)),
    )


@every_likelihood
def test_all_weights_doubled_doubles_the_loss_but_not_the_way(likelihood):
    solver = Multiplicative()
    X = made_legal(likelihood, half_seen(zeros=False, blanks=False))
    once = last_factors(solver, likelihood, observe(X))
    twice = last_factors(solver, likelihood, observe(X, cell_weight=np.full(X.shape, 2.0)))
    assert_allclose(twice.rows.mean, once.rows.mean, rtol=1e-10)
    assert_allclose(twice.objective, 2 * once.objective, rtol=1e-10)


@every_pair_and_meaning
def test_rows_and_columns_are_treated_alike(solver, likelihood, unseen):
    """One half-step serves both sides: from the same place, the columns of X move as the rows of its transpose."""
    X = made_legal(likelihood, half_seen(zeros=False, blanks=False))
    weight = weights_for(X)
    W, H = start(*X.shape, K)
    moved = []
    for data, weights, side in ((X, weight, Side.COLUMNS), (X.T, weight.T, Side.ROWS)):
        with open_problem(likelihood, observe(data, unseen=unseen, cell_weight=weights)) as problem:
            near, far = (solver.init_factor(F) for F in (H, W))
            moved.append(solver.half_step(problem, near, far, side).mean)
    assert_allclose(moved[0], moved[1], rtol=1e-12)
    assert np.abs(moved[0] - H).max() > 1e-3


@every_pair
def test_an_epoch_leaves_the_state_before_it_as_it_was(solver, likelihood):
    observed = observe(made_legal(likelihood, half_seen(zeros=False)))
    run = states(solver, likelihood, observed, *start(*observed.shape, K), steps=3)
    before = next(run), next(run)
    kept = [np.array(array) for array in (*before[1].rows, *before[1].columns)]
    list(run)
    for array, copy in zip((*before[1].rows, *before[1].columns), kept, strict=True):
        assert_array_equal(array, copy)


@every_pair_and_meaning
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_on_one_thread_and_on_two(solver, likelihood, unseen, dtype, monkeypatch):
    monkeypatch.setattr(cpu, "CELLS_PER_BLOCK", 17)
    monkeypatch.setattr(cpu, "BYTES_PER_CHUNK", 8 * 19)
    X = made_legal(likelihood, half_seen(40, 30, zeros=False)).astype(dtype)
    observed = observe(X, unseen=unseen, cell_weight=weights_for(X))
    lasts = []
    for n_jobs in (1, 2):
        *_, last = states(solver, likelihood, observed, *start(40, 30, K, dtype=dtype), steps=3, n_jobs=n_jobs)
        lasts.append(last)
    assert lasts[0].objective == lasts[1].objective
    for one, other in zip((*lasts[0].rows, *lasts[0].columns), (*lasts[1].rows, *lasts[1].columns), strict=True):
        assert one.dtype == dtype
        assert_array_equal(one, other)


@every_pair_and_meaning
def test_float32_follows_float64(solver, likelihood, unseen):
    observed = observe(made_legal(likelihood, half_seen(zeros=False)), unseen=unseen)
    single = replace(observed, values=observed.values.astype(np.float32))
    *_, wide = states(solver, likelihood, observed, *start(*observed.shape, K), steps=5)
    *_, narrow = states(solver, likelihood, single, *start(*observed.shape, K, dtype=np.float32), steps=5)
    assert_allclose(narrow.rows.mean, wide.rows.mean, rtol=2e-3, atol=1e-5)
    assert_allclose(narrow.objective, wide.objective, rtol=1e-3)


@every_likelihood
def test_the_gamma_solver_refuses_a_push_that_depends_on_x(likelihood):
    if likelihood.push_is_constant:
        Gamma().check(likelihood)
        return
    with pytest.raises(ParameterError, match=f"gamma solver needs .*Found {likelihood.name}. Choose"):
        Gamma().check(likelihood)


def test_the_oracles_bound_at_the_split_of_counts_it_takes_for_granted():
    """The oracle's local term y log x~ - log y! is E[log p(n)] + H[n] at the best split of y, written out here."""
    y, terms = 5.0, np.array([0.3, 1.1, 0.6])  # terms: exp(E log w + E log h) of each component
    share = terms / terms.sum()
    splits = np.array([[i, j, 5 - i - j] for i in range(6) for j in range(6 - i)], float)
    q = stats.multinomial.pmf(splits, 5, share)
    log_p = special.xlogy(splits, terms).sum(1) - special.gammaln(splits + 1).sum(1)
    assert_allclose((q * (log_p - np.log(q))).sum(), y * np.log(terms.sum()) - special.gammaln(y + 1), rtol=1e-12)

"""The variational oracle against other truths: finite differences, quadrature, sampling, scipy, the older oracle."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from .. import oracle as older
from . import oracle
from .noises import simulate

SHAPE = oracle.SHAPE


def levels(seed=0, shape=(7, 6), top=3, holes=0.0):
    """Levels 0..top, every one of them present; holes are NaN."""
    random = np.random.default_rng(seed)
    Y = random.integers(0, top + 1, shape).astype(float)
    Y.flat[: top + 1] = np.arange(top + 1)
    hole = random.random(shape) < holes
    hole.flat[: top + 1] = False
    return np.where(hole, np.nan, Y)


def starts(shape, K, seed=1):
    random = np.random.default_rng(seed)
    return random.gamma(1.0, 1.0, (shape[0], K)), random.gamma(1.0, 1.0, (shape[1], K))


MODELS = {
    "ordnmf": oracle.ordnmf,
    "fixed thresholds": lambda *a, **b: oracle.ordnmf(*a, thresholds=[0.5, 2.0, 3.0], **b),
    "bepof": oracle.bepof,
    "pf": oracle.pf,
    "pf of binary": oracle.pf_binary,
    "dcpf": oracle.dcpf,
    "dcpf, p fixed": lambda *a, **b: oracle.dcpf(*a, p=0.7, **b),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@every_model
@pytest.mark.parametrize("unseen", ["zero", "missing"])
@pytest.mark.parametrize("seed", range(3))
def test_the_elbo_never_falls(model, unseen, seed):
    Y = levels(seed, holes=0.4 if unseen == "missing" else 0.0)
    records = model(Y, *starts(Y.shape, 3, seed), 60, unseen=unseen)
    assert oracle.falls(records) < 1e-13
    assert records[-1].elbo > records[0].elbo + 1.0


def test_the_log_likelihood_of_the_augmented_model_sums_to_that_of_the_levels():
    """Eq. 29 over n and c, K = 2, is Eq. 25."""
    parts, family = np.array([0.7, 1.9]), oracle.Ordinal(oracle.decrements_of([0.5, 2.0, 3.0]))
    for y in (1, 2, 3):
        total, theta = 0.0, np.append(family.theta, 0.0)
        for c in itertools.product(range(40), repeat=2):
            if n := sum(c):
                log = (
                    n * np.log(family.decrements[y - 1])
                    + (special.xlogy(c, parts) - special.gammaln(np.add(c, 1))).sum()
                )
                total += np.exp(log - parts.sum() * theta[y - 1])
        expected = np.exp(-parts.sum() * theta[y]) - np.exp(-parts.sum() * theta[y - 1])
        assert total == pytest.approx(expected, rel=1e-12)


# --- every coordinate is at its maximum -----------------------------------------------------------------------------


def slopes(function, logs, step=1e-5):
    """Derivatives by the logarithms of positive parameters."""
    logs, flat = np.array(logs, float), []
    for at in np.ndindex(logs.shape):
        move = np.zeros(logs.shape)
        move[at] = step
        flat.append((function(np.exp(logs + move)) - function(np.exp(logs - move))) / (2 * step))
    return np.abs(flat).max()


@pytest.mark.parametrize("unseen", ["zero", "missing"])
@pytest.mark.parametrize("learned", [True, False])
def test_each_update_is_the_maximum_of_the_bound_in_its_coordinate(unseen, learned):
    """One iteration walked by hand from the end of the 5th; it must also end where the 6th ends."""
    Y, a = levels(4, (5, 4), holes=0.3 if unseen == "missing" else 0.0), SHAPE
    given = None if learned else [0.5, 2.0, 3.0]
    *_, before, after = oracle.ordnmf(Y, *starts(Y.shape, 2), 6, unseen=unseen, thresholds=given)
    Y, C = oracle.grid(Y, unseen)

    def local(w, h, D):
        products = w.geometric[:, None] * h.geometric
        return {
            "counts_rate": D[np.maximum(Y - 1, 0)] * products.sum(2),
            "split": products / products.sum(2, keepdims=True),
        }

    def bound(**new):
        return oracle.ordinal_bound(Y, C, a=a, **{**state, **new})

    D = before.family.decrements
    state = {"decrements": D, "w": before.w, "h": before.h, "prior_w": before.prior_w, "prior_h": before.prior_h}
    state |= local(before.w, before.h, D)
    assert bound() == pytest.approx(before.elbo, rel=1e-13)
    assert slopes(lambda b: bound(prior_w=b), np.log(before.prior_w)) > 1e-3  # a slope is seen where there is one

    for name, prior in (("prior_w", after.prior_w), ("prior_h", after.prior_h)):
        state[name] = prior
        assert slopes(lambda b, name=name: bound(**{name: b}), np.log(prior)) < 1e-7
    if learned:
        state["decrements"] = after.family.decrements
        assert slopes(lambda D: bound(decrements=D), np.log(state["decrements"])) < 1e-7
    for name, q in (("w", after.w), ("h", after.h)):
        state[name] = q
        assert slopes(lambda s, name=name, q=q: bound(**{name: oracle.Gamma(s, q.rate)}), np.log(q.shape)) < 1e-7
        assert slopes(lambda r, name=name, q=q: bound(**{name: oracle.Gamma(q.shape, r)}), np.log(q.rate)) < 1e-7
    state |= local(after.w, after.h, after.family.decrements)
    assert slopes(lambda r: bound(counts_rate=r), np.log(state["counts_rate"])) < 1e-7
    assert slopes(lambda phi: bound(split=phi / phi.sum(2, keepdims=True)), np.log(state["split"])) < 1e-7
    assert bound() == pytest.approx(after.elbo, rel=1e-13)


def test_the_slope_by_p_vanishes():
    Y = levels(5, top=6).astype(int)
    *_, before, after = oracle.dcpf(Y, *starts(Y.shape, 2), 6)
    counts = before.family.counts(Y, before.w.geometric @ before.h.geometric.T)

    def expected_log_likelihood(p):
        return (Y * np.log(p)).sum() - counts.sum() * np.log(-np.log1p(-p))

    p = after.family.p
    assert 0 < p < 1
    assert (1 - p) / p * -np.log(1 - p) == pytest.approx(counts.sum() / Y.sum(), rel=1e-12)
    assert expected_log_likelihood(p) > max(expected_log_likelihood(p * (1 + e)) for e in (-1e-3, 1e-3))


# --- the ELBO is a lower bound, and its constants are right ---------------------------------------------------------


def log_evidence(y, D, prior_w, prior_h, a=SHAPE):
    """log p(y) of an n x 1 matrix with K = 1, by quadrature over log w and log h."""
    t = np.linspace(-60, 12, 901)
    theta = np.append(np.cumsum(D[::-1])[::-1], 0.0)

    def weights(b):
        return np.exp(a * t + a * np.log(b) - b * np.exp(t) - special.gammaln(a)) * (t[1] - t[0])

    x = np.exp(t[:, None] + t[None, :])
    total = np.ones(len(t))
    for level, b in zip(y, prior_w, strict=True):
        low = np.exp(-x * theta[level])
        total *= weights(b) @ (low if level == 0 else low - np.exp(-x * theta[level - 1]))
    return np.log(weights(prior_h) @ total)


@pytest.mark.parametrize("y", [[0], [1], [2], [0, 2], [1, 2]])
def test_the_elbo_is_below_the_log_evidence(y):
    Y = np.array(y)[:, None]
    records = oracle.ordnmf(Y, *starts(Y.shape, 1), 200, thresholds=[0.8, 2.5])
    for at in (0, 3, -1):
        record = records[at]
        evidence = log_evidence(y, record.family.decrements, record.prior_w[:, 0], record.prior_h[0, 0])
        assert record.elbo < evidence < 0
    assert evidence - records[-1].elbo < 2.0  # and not far below


def test_evidence_by_quadrature_adds_up_to_one():
    D, prior = oracle.decrements_of([0.8, 2.5]), np.array([0.4, 1.3])
    total = sum(np.exp(log_evidence(y, D, prior, 0.7)) for y in itertools.product(range(3), repeat=2))
    assert total == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_the_elbo_by_sampling_q(unseen):
    """E_q[log p(y, n, c, w, h) - log q(n, c, w, h)], every density written out."""
    Y = np.array([[2, 0, np.nan if unseen == "missing" else 1], [1, 2, 3]])
    record = oracle.ordnmf(Y, *starts(Y.shape, 2), 5, unseen=unseen)[-1]
    Y, C = oracle.grid(Y, unseen)
    random, draws, D = np.random.default_rng(0), 50_000, record.family.decrements
    logs, factors = np.zeros(draws), []
    for q, prior in ((record.w, record.prior_w), (record.h, record.prior_h)):
        drawn = random.gamma(q.shape, 1 / q.rate, (draws, *q.shape.shape))
        logs += stats.gamma(SHAPE, scale=1 / prior).logpdf(drawn).sum((1, 2))
        logs -= stats.gamma(q.shape, scale=1 / q.rate).logpdf(drawn).sum((1, 2))
        factors.append(drawn)
    for u, i in zip(*np.nonzero(C), strict=True):
        parts, y = factors[0][:, u] * factors[1][:, i], Y[u, i]
        theta = D[max(y - 1, 0) :].sum()
        logs -= parts.sum(1) * theta
        if y > 0:
            products = record.w.geometric[u] * record.h.geometric[i]
            rate, phi = D[y - 1] * products.sum(), products / products.sum()
            n = stats.poisson.ppf(random.uniform(np.exp(-rate), 1, draws), rate).astype(int)
            c = random.multinomial(n, phi)
            logs += n * np.log(D[y - 1]) + (special.xlogy(c, parts) - special.gammaln(c + 1)).sum(1)
            logs -= stats.poisson.logpmf(n, rate) - np.log(-np.expm1(-rate)) + stats.multinomial.logpmf(c, n, phi)
    assert record.elbo == pytest.approx(logs.mean(), abs=4 * logs.std() / np.sqrt(draws))
    assert logs.std() / np.sqrt(draws) < 0.02


def test_the_elbo_is_below_the_log_evidence_by_sampling_the_prior():
    Y = np.array([[2, 0], [1, 3]])
    record = oracle.ordnmf(Y, *starts(Y.shape, 2), 60, thresholds=[0.5, 1.5, 4.0])[-1]
    random, theta = np.random.default_rng(0), np.append(record.family.theta, 0.0)
    w = random.gamma(SHAPE, 1 / record.prior_w, (200_000, 2, 2))
    h = random.gamma(SHAPE, 1 / record.prior_h, (200_000, 2, 2))
    x = np.einsum("suk,sik->sui", w, h)
    likelihood = (np.exp(-x * theta[Y]) - np.where(Y > 0, np.exp(-x * theta[np.maximum(Y - 1, 0)]), 0)).prod((1, 2))
    error = likelihood.std() / likelihood.mean() / np.sqrt(len(x))
    assert error < 0.05
    assert record.elbo < np.log(likelihood.mean()) - 4 * error


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
def test_compound_poisson_against_scipy(p):
    """With x known, the sum over n is the negative binomial, and E[n] the mean of n given y."""
    x, Y, s = 1.7, np.arange(1, 9), -np.log1p(-p)
    family, n = oracle.CompoundPoisson(s), np.arange(1, 9)
    evidence = family.evidence(Y, np.full(8, x)) - x
    np.testing.assert_allclose(evidence, stats.nbinom(x / s, 1 - p).logpmf(Y), rtol=1e-11)
    elements = stats.logser(p).pmf(np.arange(9))
    given = [np.eye(9)[0]]
    for _ in n:
        given.append(np.convolve(given[-1], elements)[:9])
    joint = np.array(given)[1:, 1:] * stats.poisson(x).pmf(n)[:, None]  # (n, y)
    np.testing.assert_allclose(family.counts(Y, np.full(8, x)), n @ joint / joint.sum(0), rtol=1e-12)
    r = x / s
    np.testing.assert_allclose(
        family.counts(Y, np.full(8, x)), r * (special.digamma(Y + r) - special.digamma(r)), rtol=1e-10
    )
    np.testing.assert_allclose(np.log(joint.sum(0)), evidence, rtol=1e-11)


# --- the relatives ----------------------------------------------------------------------------------------------------


def assert_same(records, others, rtol=1e-12, shift=0.0):
    for one, other in zip(records, others, strict=True):
        for mine, yours in zip([*one.w, *one.h], [*other.w, *other.h], strict=True):
            np.testing.assert_allclose(mine, yours, rtol=rtol)
        assert one.elbo == pytest.approx(other.elbo + shift, rel=max(rtol, 1e-12))


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_poisson_is_that_of_the_older_oracle(unseen):
    Y = levels(6, top=5, holes=0.3 if unseen == "missing" else 0.0)
    W0, H0 = starts(Y.shape, 3)
    records = oracle.pf(Y, W0, H0, 20, unseen=unseen)
    (Y, C), w, h = oracle.grid(Y, unseen), older.Start(W0), older.Start(H0)
    for record in records:
        w, h = older.gamma_step(Y, C, w, h, SHAPE)
        np.testing.assert_allclose(record.w.mean, w.mean, rtol=1e-12)
        np.testing.assert_allclose(record.h.mean, h.mean, rtol=1e-12)
        assert record.elbo == pytest.approx(older.elbo(Y, C, w, h, SHAPE), rel=1e-12)


def test_one_level_is_bernoulli_poisson_and_one_count_is_poisson():
    Y = levels(7, top=4)
    W0, H0 = starts(Y.shape, 3)
    assert_same(oracle.bepof(Y, W0, H0, 20), oracle.ordnmf(np.minimum(Y, 1), W0, H0, 20, thresholds=[1.0]))
    assert_same(oracle.pf_binary(Y, W0, H0, 20), oracle.pf(np.minimum(Y, 1), W0, H0, 20))


def test_small_rates_make_bernoulli_poisson_poisson():
    """Where z is small, E[n] = 1 + z / 2 + ... (section 4.2), so that the first iterations part by as little."""
    Y, (W0, H0) = levels(7, top=1), starts((7, 6), 2)
    ours, theirs = (model(Y, 1e-3 * W0, 1e-3 * H0, 1)[0] for model in (oracle.bepof, oracle.pf_binary))
    z = 1e-6 * (W0 @ H0.T).max()
    assert not np.array_equal(ours.w.shape, theirs.w.shape)
    np.testing.assert_allclose(ours.w.shape, theirs.w.shape, rtol=z / 2)
    np.testing.assert_allclose(ours.h.shape, theirs.h.shape, rtol=z / 2)


def test_the_limits_of_compound_poisson():
    Y = levels(8, top=4)
    starting = starts(Y.shape, 3)
    assert_same(oracle.dcpf(Y, *starting, 20, p=1e-11), oracle.pf(Y, *starting, 20), rtol=1e-8)
    s = 1e9  # 1 - p = e^-s is far below the smallest number, so p itself can't say it
    near = oracle.cavi(*oracle.grid(Y, "zero"), oracle.CompoundPoisson(s, learned=False), *starting, 20, SHAPE)
    constant = -((Y > 0).sum() * np.log(s) + np.log(Y[Y > 0]).sum())
    assert_same(near, oracle.pf_binary(Y, *starting, 20), rtol=1e-6, shift=constant)


def test_p_goes_to_zero_on_binary_data():
    Y = np.minimum(levels(9), 1)
    starting = starts(Y.shape, 2)
    records = oracle.dcpf(Y, *starting, 20)
    assert records[-1].family.p < 1e-11
    assert_same(records, oracle.pf(Y, *starting, 20), rtol=1e-8)


# --- unseen cells, thresholds, new rows ----------------------------------------------------------------------------


def test_nothing_missing_is_the_same_as_every_unseen_cell_a_zero():
    """But for the first thresholds, which the two count differently; so with fixed ones."""
    Y = levels(10)
    starting = starts(Y.shape, 3)
    both = [oracle.ordnmf(Y, *starting, 20, unseen=u, thresholds=[0.5, 2.0, 3.0]) for u in ("zero", "missing")]
    assert_same(*both)


def test_a_missing_cell_says_nothing():
    Y = levels(11, (4, 5))
    W0, H0 = starts((5, 5), 2)
    padded = np.vstack([Y, np.full(5, np.nan)])
    record = oracle.ordnmf(padded, W0, H0, 30, unseen="missing")[-1]
    alone = oracle.ordnmf(Y, W0[:4], H0, 30, unseen="missing")[-1]
    np.testing.assert_allclose(record.w.mean[:4], alone.w.mean, rtol=1e-12)
    np.testing.assert_allclose(record.h.mean, alone.h.mean, rtol=1e-12)
    np.testing.assert_allclose(record.w.mean[4:], W0[4:].mean() * np.ones((1, 2)), rtol=1e-12)  # its prior, as learned


def test_the_lowest_level_must_occur_where_unseen_is_missing():
    Y = levels(12, holes=0.3) + 1
    with pytest.raises(ValueError, match="lowest level"):
        oracle.ordnmf(Y, *starts(Y.shape, 2), 1, unseen="missing")


def test_a_lowest_level_without_cells_would_send_its_threshold_to_zero():
    """Why it is refused: with x given, Eq. 35 raises theta_0 without end, towards the model whose lowest level is 1."""
    Y, x = oracle.grid(levels(12, holes=0.3), "missing")[0] + 1, 1.3
    family = oracle.Ordinal(oracle.decrements_of([0.5, 2.0, 3.0, 4.0]))
    values, lowest = [], oracle.Ordinal(family.decrements[1:])
    for _ in range(400):
        family = family.refit(Y, np.ones(Y.shape), family.counts(Y, x), np.full(Y.shape, x))
        values.append((family.evidence(Y, x) - family.push(Y) * x).sum())
        lowest = lowest.refit(Y - 1, np.ones(Y.shape), lowest.counts(Y - 1, x), np.full(Y.shape, x))
    best = (lowest.evidence(Y - 1, x) - lowest.push(Y - 1) * x).sum()
    assert np.all(np.diff(values) > -1e-10)
    assert values[-1] < best
    assert values[-1] == pytest.approx(best, abs=1.0)
    assert family.thresholds[0] < 0.3 * family.thresholds[1]


def test_the_first_thresholds():
    np.testing.assert_allclose(oracle.first_decrements([90, 3, 6, 1], "zero"), [3 / 13, 6 / 19, 1 / 20])
    np.testing.assert_allclose(oracle.first_decrements([90, 3, 6, 1], "missing"), [3 / 93, 6 / 99, 1 / 100])


def test_thresholds_theta_and_decrements_are_one_thing():
    family = oracle.Ordinal(oracle.decrements_of([1, 5, 10, 20, 50]))
    np.testing.assert_allclose(family.theta, [1, 0.2, 0.1, 0.05, 0.02])
    np.testing.assert_allclose(family.push(np.arange(6)), [1, 1, 0.2, 0.1, 0.05, 0.02])  # Eq. 30


@pytest.mark.parametrize("seed", range(3))
def test_the_toy_example_gives_its_thresholds_back(seed):
    """Up to their common factor, which no data can tell."""
    Y, *_ = simulate(100, 200, 3, [1, 5, 10, 20, 50], seed)
    learned = oracle.ordnmf(Y, *starts(Y.shape, 3, seed), 150)[-1].family.thresholds
    np.testing.assert_allclose(learned / learned[0], [1, 5, 10, 20, 50], rtol=0.1)


def test_the_scale_of_the_thresholds_is_free():
    """W and b c times as large, the rates of the prior of W c times as small: the ELBO is the same."""
    Y, c = levels(16), 7.0
    Y, C = oracle.grid(Y, "zero")
    w, h, prior_w, prior_h, family, elbo = oracle.ordnmf(Y, *starts(Y.shape, 2), 10)[-1]
    scaled = oracle.Ordinal(family.decrements / c), oracle.Gamma(w.shape, w.rate / c), h, prior_w / c, prior_h
    assert oracle.elbo(Y, C, *scaled, SHAPE) == pytest.approx(elbo, rel=1e-13)


def test_a_learned_threshold_of_one_level_changes_nothing_in_the_end():
    Y = np.minimum(levels(17), 1)
    starting = starts(Y.shape, 1)
    fixed, learned = oracle.bepof(Y, *starting, 1500)[-1], oracle.ordnmf(Y, *starting, 1500)[-1]
    assert learned.family.thresholds[0] != pytest.approx(1, rel=0.01)
    assert fixed.elbo == pytest.approx(learned.elbo, rel=1e-6)


def test_new_rows_end_where_a_fit_with_those_columns_ends():
    """Rows of the fit itself, folded in from another start, come back to their distributions."""
    Y = levels(13, (12, 8))
    final = oracle.ordnmf(Y, *starts(Y.shape, 2), 2000)[-1]
    folded = oracle.fold_in(Y[:5], final, starts((5, 8), 2, seed=5)[0], 2000)
    assert oracle.falls(folded) < 1e-13
    np.testing.assert_allclose(folded[-1].w.mean, final.w.mean[:5], rtol=1e-4)


# --- over seen cells only ------------------------------------------------------------------------------------------


def test_cells_and_grid_give_the_same_numbers():
    Y = levels(14, (30, 20), top=5)
    Y[np.random.default_rng(0).random(Y.shape) < 0.6] = 0
    Y[3] = 0  # a row and a column of which nothing is seen
    Y[:, 4] = 0
    starting, (rows, columns) = starts(Y.shape, 4), np.nonzero(Y)
    mixed = np.random.default_rng(1).permutation(len(rows))
    rows, columns = rows[mixed], columns[mixed]
    cells = oracle.ordnmf_cells(rows, columns, Y[rows, columns].astype(int), Y.shape, *starting, 50)
    dense = oracle.ordnmf(Y, *starting, 50)
    for one, other in zip(cells, dense, strict=True):
        np.testing.assert_allclose(one.family.decrements, other.family.decrements, rtol=1e-12)
        assert_same([one], [other], rtol=1e-11)


def test_the_stop():
    Y = levels(15)
    rows, columns = np.nonzero(Y)
    cells = rows, columns, Y[rows, columns].astype(int), Y.shape
    kept = oracle.until_settled(oracle.ordnmf_cells(*cells, *starts(Y.shape, 2), 500), 1e-4)
    rises = [(b.elbo - a.elbo) / abs(a.elbo) for a, b in itertools.pairwise(kept)]
    assert 10 < len(kept) < 500
    assert rises[-1] < 1e-4 <= min(rises[:-1])


@pytest.mark.parametrize("z", [0.0, 1e-300, 1e-12, 1e-3, 1.0, 30.0, 1e3, 1e8])
def test_the_mean_count_and_its_logarithm_at_all_sizes(z):
    z = np.array(z)
    series = 1 + z / 2 + z**2 / 12 if z < 1e-2 else z / (1 - np.exp(-z))
    assert oracle.mean_count(z) == pytest.approx(series, rel=1e-10)
    if z > 0:
        expected = z if z > 500 else np.log(np.expm1(z))
        assert oracle.log_expm1(z) == pytest.approx(expected, rel=1e-13)

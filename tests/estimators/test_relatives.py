"""BernoulliPoisson and CompoundPoisson against the oracle, and the limits in which they are PoissonFactorization."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import halfseen
from halfseen import BernoulliPoisson, CompoundPoisson, OrdNMF, PoissonFactorization
from halfseen.errors import DataError, ParameterError
from tests.estimators.test_ordnmf import start, with_holes
from tests.ordinal import oracle


def counts(n=30, m=20, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.poisson(rng.gamma(1.0, 4.0, (n, m))) * (rng.random((n, m)) < 0.4)
    Y[4], Y[:, 7] = 0, 0
    return Y


def assert_like(model, record):
    assert_allclose(model.W_, record.w.mean, rtol=1e-9)
    assert_allclose(model.H_, record.h.mean, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-11)
    assert np.all(np.diff(model.trace_["objective"]) > -1e-9 * abs(model.trace_["objective"][-1]))


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_bernoulli_poisson_is_the_oracles(unseen):
    Y = counts() if unseen == "zero" else with_holes(counts())
    W, H = start(*Y.shape)
    model = BernoulliPoisson(4, init=(W, H), accelerate=False, max_iter=50, tol=0, unseen=unseen).fit(Y)
    *_, record = oracle.bepof(Y, W, H, 50, unseen=unseen)
    assert_like(model, record)
    x = model.W_ @ model.H_.T
    assert_allclose(model.predict([0, 1], [2, 3]), 1 - np.exp(-x[[0, 1], [2, 3]]), rtol=1e-12)


def test_bernoulli_poisson_is_ordnmf_with_one_level():
    Y = counts()
    W, H = start(*Y.shape)
    ask = {"init": (W, H), "max_iter": 20, "tol": 0}
    one = OrdNMF(4, thresholds=[1.0], **ask).fit(np.minimum(Y, 1))
    assert_array_equal(BernoulliPoisson(4, **ask).fit(Y).W_, one.W_)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
@pytest.mark.parametrize("p", [None, 0.3])
def test_compound_poisson_is_the_oracles(unseen, p):
    Y = counts() if unseen == "zero" else with_holes(counts())
    W, H = start(*Y.shape)
    model = CompoundPoisson(4, p=p, init=(W, H), accelerate=False, max_iter=50, tol=0, unseen=unseen).fit(Y)
    *_, record = oracle.dcpf(Y, W, H, 50, unseen=unseen, p=p)
    assert_like(model, record)
    assert model.p_ == pytest.approx(record.family.p, rel=1e-10)


def test_the_limits_of_p_are_poisson():
    Y = counts()
    W, H = start(*Y.shape)
    ask = {"init": (W, H), "max_iter": 30, "tol": 0}
    raw, binary = (PoissonFactorization(4, **ask).fit(data) for data in (Y, np.minimum(Y, 1)))
    assert_allclose(CompoundPoisson(4, p=1e-10, **ask).fit(Y).W_, raw.W_, rtol=1e-6)
    nearly_one = CompoundPoisson(4, p=1 - 1e-16 * 2, **ask).fit(Y)
    assert (
        np.abs(nearly_one.W_ - binary.W_).max() < np.abs(CompoundPoisson(4, p=0.9, **ask).fit(Y).W_ - binary.W_).max()
    )


def test_compound_poisson_is_negative_binomial():
    Y = counts()
    model = CompoundPoisson(3, random_state=0, max_iter=50, tol=0).fit(Y)
    x = model.W_ @ model.H_.T
    r = x / -np.log1p(-model.p_)
    likelihood = model.likelihood_
    assert_allclose(likelihood.log_prob(Y.astype(float), x), stats.nbinom.logpmf(Y, r, 1 - model.p_), rtol=1e-9)
    assert_allclose(model.predict([0, 3], [1, 2]), stats.nbinom.mean(r, 1 - model.p_)[[0, 3], [1, 2]], rtol=1e-10)
    pull, push = likelihood.pull_push(Y.astype(float), x)
    step = 1e-6 * x
    slope = (likelihood.log_prob(Y * 1.0, x + step) - likelihood.log_prob(Y * 1.0, x - step)) / (2 * step)
    assert_allclose(pull - push, slope, rtol=1e-5, atol=1e-6)


def test_saved_models_say_the_same(tmp_path):
    Y = counts()
    for kind in (BernoulliPoisson, CompoundPoisson):
        model = kind(3, random_state=0, max_iter=30, tol=0).fit(Y)
        model.save(tmp_path / "model.hs")
        again = halfseen.load(tmp_path / "model.hs")
        assert_array_equal(again.transform(Y[:4]), model.transform(Y[:4]))
        assert_array_equal(again.predict(0, 3), model.predict(0, 3))
    assert again.p_ == model.p_


def test_what_can_not_be_is_refused():
    with pytest.raises(DataError, match=r"Counts must be whole numbers.*Found 1\.5 at row 0, column 0.*Round"):
        CompoundPoisson(2).fit([[1.5, 2.0], [0.0, 1.0]])
    with pytest.raises(DataError, match="Negative values in data passed to BernoulliPoisson"):
        BernoulliPoisson(2).fit([[1.0, -2.0], [0.0, 1.0]])
    for p in (0.0, 1.0, "half"):
        with pytest.raises(ParameterError, match="p must be a number between 0 and 1, both excluded or None"):
            CompoundPoisson(2, p=p).fit(counts())

"""The methods that need no sampling: ordinary factorizations of values that tests/coupling holds to their formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import PoissonFactorization, Status, UncoupledNMF, WeightedNMF
from halfseen.coupling.decoding import decoded
from halfseen.coupling.pseudo import pseudo_observations
from halfseen.engines.threads import Threads
from tests.coupling import oracle
from tests.estimators.uncoupled_cases import collected, fitted, odd_lists, planted, three_lists

LOSSES = ("frobenius", "kullback-leibler", "itakura-saito", 1.5)


@pytest.fixture(scope="module")
def seen():
    return collected(odd_lists())


@pytest.fixture(scope="module")
def start():
    random = np.random.default_rng(3)
    return random.random((12, 2)) + 0.1, random.random((7, 2)) + 0.1


def pseudo(seen, balance="full"):
    with Threads(1) as threads:
        return pseudo_observations(seen, balance, threads)


def assert_same_fit(one, other):
    assert_array_equal(one.W_, other.W_)
    assert_array_equal(one.H_, other.H_)
    assert_array_equal(one.trace_["objective"], other.trace_["objective"])
    assert one.status_ is other.status_


@pytest.mark.parametrize("loss", LOSSES)
def test_unmf_is_a_weighted_factorization_of_the_pseudo_observations(seen, start, loss):
    how = {"loss": loss, "max_iter": 15, "tol": 0.0, "init": start}
    if loss == "itakura-saito":  # which has no place for a zero: no pseudo-observation may be clipped
        seen = collected(three_lists(planted(1, (12, 7), level=30.0)[1], 6))
    values = pseudo(seen).observed
    one = fitted(seen, "unmf", **how)
    assert_same_fit(one, WeightedNMF(2, unseen="missing", **how).fit(values))


def test_unmf_starts_where_a_weighted_factorization_starts(seen):
    one = fitted(seen, "unmf", max_iter=15, tol=0.0, random_state=4)
    other = WeightedNMF(2, loss="frobenius", max_iter=15, tol=0.0, random_state=4).fit(pseudo(seen).observed)
    assert_same_fit(one, other)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_decode_is_a_weighted_factorization_of_the_decoded_values(seen, start, loss):
    how = {"loss": loss, "max_iter": 15, "tol": 0.0, "init": start}
    one = fitted(seen, "decode", **how)
    assert_same_fit(one, WeightedNMF(2, unseen="missing", **how).fit(decoded(seen).observed))
    assert not hasattr(one, "w_")


@pytest.mark.parametrize(
    "priors", [{}, {"prior_shape": 0.3, "prior_rate": None}, {"prior_shape": 2.0, "prior_rate": 0.5}]
)
def test_bayes_is_poisson_factorization_of_the_pseudo_observations(seen, priors):
    how = {"max_iter": 15, "tol": 0.0, "random_state": 2}
    one = fitted(seen, "bayes", **priors, **how)
    priors = {"prior_shape": 1.0, "prior_rate": 1.0} | priors
    other = PoissonFactorization(2, unseen="missing", accelerate=False, **priors, **how).fit(pseudo(seen).observed)
    assert_same_fit(one, other)
    for mine, theirs in zip(one.factors_, other.factors_, strict=True):
        for name in mine._fields:
            assert_array_equal(getattr(mine, name), getattr(theirs, name))


@pytest.mark.parametrize("method", ["unmf", "bayes"])
@pytest.mark.parametrize("balance", ["zero", "half", "full", 0.7])
def test_w_and_lambda_are_kept(seen, method, balance):
    model = fitted(seen, method, balance=balance, max_iter=2)
    expected = pseudo(seen, balance)
    assert_array_equal(model.w_, expected.w)
    assert_array_equal(model.balance_, expected.balance)
    assert model.n_clipped_ == expected.clipped
    share = {"zero": 0.0, "half": 0.5, "full": 1.0}.get(balance)
    assert_allclose(model.balance_, 0.7 if share is None else share * model.w_.sum(axis=1), rtol=1e-13)


def test_a_lambda_for_each_question_and_a_new_fit_forgets_the_old(seen):
    numbers = np.linspace(1, 3, 12)
    model = fitted(seen, "unmf", balance=numbers, max_iter=2)
    assert_array_equal(model.balance_, numbers)
    model.set_params(method="decode", tol=0.0).fit(seen)
    assert not hasattr(model, "w_")
    assert not hasattr(model, "balance_")


def test_unmf_takes_the_paper_s_steps():
    """Eq. 5 in plain loops, from the same start, over lists of which nothing is odd; z of Eq. 4 may not be clipped."""
    X = planted(1, (4, 5), level=30.0, hidden=0.0)[0]
    asked, answers, compared = three_lists(X, 6)
    one = collected((asked, answers, compared))
    random = np.random.default_rng(0)
    A, B = random.random((4, 2)) + 0.5, random.random((5, 2)) + 0.5
    for loss, beta in (("frobenius", 2), ("kullback-leibler", 1)):
        model = fitted(one, "unmf", loss=loss, balance="half", max_iter=3, tol=0.0, init=(A, B))
        assert model.n_clipped_ == 0
        gamma, z = oracle.coefficients(asked, compared, X.shape, model.w_, model.balance_)
        mine, theirs = A, B
        for _ in range(3):
            mine, theirs = oracle.step(gamma, z, mine, theirs, beta)
        assert_allclose(model.W_, mine, rtol=1e-9)
        assert_allclose(model.H_, theirs, rtol=1e-9)


@pytest.mark.parametrize("method", ["unmf", "bayes", "decode"])
def test_the_loop_ends_when_the_objective_settles(seen, method):
    """Where it ends for an ordinary factorization."""
    how = {"random_state": 0, "max_iter": 5000, "tol": 1e-5, "n_jobs": 1}
    model = UncoupledNMF(2, method=method, **how).fit(seen)
    values = decoded(seen).observed if method == "decode" else pseudo(seen).observed
    if method == "bayes":
        other = PoissonFactorization(2, unseen="missing", accelerate=False, prior_shape=1.0, prior_rate=1.0, **how)
    else:
        other = WeightedNMF(2, loss="frobenius", **how)
    assert_same_fit(model, other.fit(values))
    assert model.status_ is Status.CONVERGED
    assert 1 < model.n_iter_ == len(model.trace_["objective"]) < 5000


def test_objectives_have_names():
    names = {method: UncoupledNMF(method=method).objective_name for method in ("gibbs", "unmf", "bayes", "decode")}
    assert names == {"gibbs": "Log-likelihood", "unmf": "Loss", "bayes": "Evidence bound", "decode": "Loss"}

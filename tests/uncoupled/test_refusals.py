"""UncoupledNMF told what it can't do, interrupted, and asked for its parameters."""

import io
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from halfseen import Status, Uncoupled, UncoupledNMF
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.sampling import coupling_chain, markov_chains
from halfseen.solvers import Momentum
from halfseen.uncoupled import estimator
from tests.uncoupled.cases import METHODS, SHORT, collected, fitted, labelled, odd_lists, planted, three_lists


@pytest.fixture(scope="module")
def seen():
    return collected(odd_lists())


@pytest.fixture(scope="module")
def negative():
    return Uncoupled.from_coupled(planted(5, (10, 6), hidden=0.1)[1], 8, random_state=0)


def refused(call, kind, parameter, *words):
    with pytest.raises(kind) as error:
        call()
    assert error.value.parameter == parameter
    for word in words:
        assert word in str(error.value)


WRONG = [
    {"method": "gibs"}, {"n_burn": 400}, {"n_burn": -1}, {"n_sweeps": 0, "n_burn": 0}, {"n_draws": 0}, {"trust": 0.0},
    {"scale": "questions"}, {"n_components": 0}, {"n_components": "most"}, {"n_components": "auto", "method": "unmf"},
    {"n_components": "auto", "method": "decode"}, {"n_chains": 0}, {"max_sweeps": 0},
    {"prior_shape": 0, "method": "bayes"}, {"engine": "gpuu"},
    *({"loss": loss, "method": method} for method in METHODS for loss in ("hinge", None)), {"random_state": -1},
    {"balance": "most", "method": "unmf"}, {"init": (np.ones((3, 2)), np.ones((7, 2))), "method": "unmf"},
    {"init": (np.ones((12, 2)), np.ones((3, 2))), "method": "unmf"},
]  # fmt: skip


@pytest.mark.parametrize("parameters", WRONG, ids=str)
def test_wrong_parameters_are_refused(seen, parameters):
    refused(lambda: UncoupledNMF(2).set_params(**parameters).fit(seen), ParameterError, next(iter(parameters)))


def test_few_comparisons_choose_nothing():
    few = Uncoupled.from_coupled(np.arange(12.0).reshape(3, 4) % 5, 6, random_state=0)
    refused(lambda: UncoupledNMF("auto").fit(few), ParameterError, "n_components", "50 pairs")


def asking(model):
    """What only several draws give, and what a refusal calls it."""
    return {
        "Intervals": lambda: model.predict_interval([0], [0]),
        "The coupling": model.coupling,
        "The disclosure risk": model.disclosure_risk,
    }


def test_calls_that_are_refused(seen, monkeypatch):
    for X in (np.ones((3, 3)), [[1.0, 2.0]], None):
        refused(lambda X=X: UncoupledNMF().fit(X), DataError, "X", type(X).__name__)
    model = fitted(seen, **SHORT["gibbs"])
    for level in (0.0, 1.0, 1.5, "0.9", None):
        refused(lambda level=level: model.predict_interval([0], [0], level), ParameterError, "level")
    for predict in (model.predict, model.predict_interval, fitted(seen, "unmf", max_iter=2).predict):
        for places, word in ((([99], [0]), "99"), (([0], ["x"]), "x"), (([0, 1], [0, 1, 2]), "2 rows and 3 columns")):
            refused(lambda places=places, predict=predict: predict(*places), DataError, None, word)
    for method in ("unmf", "bayes", "decode"):
        for what, ask in asking(fitted(seen, method, n_burn=400, max_iter=2)).items():  # burning is the sampler's alone
            refused(ask, ParameterError, "method", what, "gibbs")
    for method in METHODS:
        new = UncoupledNMF(method=method)
        for ask in (lambda: new.predict([0], [0]), lambda: new.complete(seen), *asking(new).values()):  # noqa: B023
            with pytest.raises(NotFittedError):
                ask()
    monkeypatch.setattr(estimator, "MAX_COMPLETED_CELLS", 83)
    refused(lambda: model.complete(seen), DataError, "X", "at most 83 cells", "12 x 7")


@pytest.mark.parametrize("how", [{"n_draws": 1}, {"n_sweeps": 11}, {"n_sweeps": 1, "n_burn": 0}], ids=str)
def test_what_takes_several_draws_is_refused_of_one(seen, how):
    """Means are well without; a risk of 1, or an interval without width, would be a lie."""
    model = fitted(seen, **{**SHORT["gibbs"], "n_chains": 1, "max_sweeps": 1, **how})
    assert model.status_ is (Status.TOO_SHORT if "n_sweeps" in how else model.status_)
    for what, ask in asking(model).items():
        refused(ask, ParameterError, "n_draws", what, f"Found {model.n_iter_} sweeps")
    draws = model.posterior_.draws
    centre, scale = draws.centre[:, None], draws.scale[:, None]
    expected = centre + scale * (draws.A[:, 0].astype(float) @ draws.B[:, 0].T.astype(float))
    unasked = np.ones(seen.shape, bool)
    unasked[model.asked_.rows(), model.asked_.respondents] = False
    assert unasked.any()
    assert_allclose(model.complete(seen)[unasked], expected[unasked], rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_only_what_was_fitted_can_be_completed(seen, method):
    asked, answers, compared = odd_lists()
    model = fitted(seen, method, **SHORT[method])
    others = (
        (asked, [*answers[1:], (answers[0][0], answers[0][1] + 1)], compared),
        (asked, answers, compared[1:]),
        (asked + asked[:1], answers, compared),
    )
    for X in (*map(collected, others), collected(odd_lists(), questions_are="columns"), np.ones((12, 7))):
        refused(lambda X=X: model.complete(X), DataError, "X")


def test_negative_answers_are_refused_by_losses_without_a_place_for_them(negative):
    question = int(np.argmax([negative.answers[a] < 0 for a in negative.answer_indptr[:-1]]))
    first = negative.answers[negative.answer_indptr[question]]
    losses = [{"method": m, "loss": loss} for m in ("unmf", "decode") for loss in ("kullback-leibler", 1.5, 0.5)]
    for how in ({"method": "bayes"}, {"method": "unmf", "loss": "frobenius"}, *losses):
        words = (f"Found {first:g} among the answers to question {question}.", 'method="gibbs"')
        refused(lambda how=how: UncoupledNMF(2, **how).fit(negative), DataError, "X", *words)
    asked, answers, compared = three_lists(planted(5, (4, 6), level=9.0)[1], 4)
    named = collected(labelled((asked, [*answers, (2, -3.0)], compared)))
    refused(lambda: UncoupledNMF(2, method="bayes").fit(named), DataError, "X", "Found -3 ", "'q2'")


def test_zeros_are_refused_where_their_logarithm_is_needed(seen):
    """Also pseudo-observations below 0 that count as 0: for the squared error that will do."""
    zero = collected(([(0, 0), (0, 1)], [(0, 0.0), (0, 2.0)], [(0, 1, 0)]))
    refused(lambda: UncoupledNMF(1, method="unmf", loss="itakura-saito").fit(zero), DataError, "X", "Found 0 ")
    assert fitted(seen, "unmf", balance=9.0, max_iter=2).n_clipped_ > 0
    model = UncoupledNMF(2, method="unmf", loss="itakura-saito", balance=9.0)
    refused(lambda: model.fit(seen), DataError, "loss", "balance")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("method", "steps"), [("gibbs", "30/30"), ("unmf", "20/20")])
def test_a_bar_is_shown_on_a_terminal_if_wished(seen, method, steps, monkeypatch):
    quiet = fitted(seen, method, **SHORT[method], tol=0.0)
    for stream, verbose, shown in ((Terminal(), 1, True), (Terminal(), 0, False), (io.StringIO(), 1, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        model = fitted(seen, method, verbose=verbose, **SHORT[method], tol=0.0)
        assert ("UncoupledNMF" in stream.getvalue()) == (steps in stream.getvalue()) == shown
        assert_array_equal(model.W_, quiet.W_)


PLAN = {"n_sweeps": 40, "n_burn": 10, "max_sweeps": 40, "n_draws": 15, "max_iter": 20}


def test_what_an_interrupted_sweep_left_unfinished_is_not_kept(seen, monkeypatch):
    """Ctrl-C while the factors are drawn, in the fifth sweep: what is kept are the last two of four whole ones."""
    draw_rows, calls = coupling_chain.draw_rows, []

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 2 * (coupling_chain.WARM_UP + 4) + 1:
            raise KeyboardInterrupt
        draw_rows(*arguments)

    monkeypatch.setattr(coupling_chain, "draw_rows", interrupted)
    model = UncoupledNMF(2, random_state=0, n_jobs=1, n_chains=1, **PLAN)
    with pytest.raises(KeyboardInterrupt):
        model.fit(seen)
    monkeypatch.undo()
    assert (model.status_, model.n_iter_, bool(model.diagnostics_)) == (Status.INTERRUPTED, 4, True)
    whole = fitted(seen, n_sweeps=4, n_burn=2, max_sweeps=4, n_draws=2, n_chains=1, max_iter=20)
    assert_array_equal(model.trace_["objective"], whole.trace_["objective"])
    assert_array_equal(model.complete(seen), whole.complete(seen))
    assert_array_equal(model.posterior_.draws.A, whole.posterior_.draws.A)
    assert_array_equal(model.posterior_.draws.coupling, whole.posterior_.draws.coupling)


def test_an_interrupt_while_the_mean_is_factorized_goes_on(seen, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Momentum, "epoch", interrupted)
    model = UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN)
    with pytest.raises(KeyboardInterrupt):
        model.fit(seen)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 40


def test_a_chain_that_has_not_mixed_warns(seen, monkeypatch):
    monkeypatch.setattr(markov_chains, "MAX_R_HAT", 0.5)
    with pytest.warns(ConvergenceWarning, match="split R-hat") as told:
        model = UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN).fit(seen)
    assert model.status_ is Status.UNMIXED
    assert told[0].filename == __file__
    monkeypatch.setattr(markov_chains, "MAX_R_HAT", np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN).fit(seen).status_ is Status.SAMPLED


def test_warnings_point_at_the_caller(seen):
    for category, model, X in (
        (ConvergenceWarning, UncoupledNMF(2, method="unmf", max_iter=1), seen),
        (DataWarning, UncoupledNMF(2), collected(odd_lists()[:2])),
    ):
        with pytest.warns(category) as told:
            model.fit(X)
        assert told[0].filename == __file__


def test_parameters_and_a_fitted_model_come_back_unchanged(seen):
    given = {"n_components": 3, "method": "bayes", "balance": "half", "trust": 4.0, "n_draws": 7, "prior_rate": None}
    parameters = UncoupledNMF(**given).get_params()
    assert parameters.items() >= given.items()
    assert clone(UncoupledNMF(**given)).get_params() == parameters
    assert UncoupledNMF().set_params(**parameters).get_params() == parameters
    for name, meant in (("k", "n_components"), ("n_sweep", "n_sweeps")):
        with pytest.raises(ParameterError, match=f"Did you mean '{meant}'"):
            UncoupledNMF().set_params(**{name: 3})
    model = fitted(seen, **SHORT["gibbs"])
    before = model.complete(seen)
    model.coupling(), model.predict_interval([0], [1]), model.disclosure_risk()
    model.complete(seen)[:] = 0.0
    assert_allclose(model.complete(seen), before, rtol=0)

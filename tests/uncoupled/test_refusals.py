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
from halfseen.solvers import Momentum
from halfseen.uncoupled import chain as chain_module
from halfseen.uncoupled import estimator, sampler
from halfseen.uncoupled.chain import Chain
from tests.uncoupled import sampling_oracle as oracle
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


@pytest.mark.parametrize("X", [np.ones((3, 3)), [[1.0, 2.0]], None])
def test_only_a_collection_can_be_fitted(X):
    refused(lambda: UncoupledNMF().fit(X), DataError, "X", type(X).__name__)


WRONG = [
    ({"method": "gibs"}, "method must be one of"),
    ({"n_burn": 400}, "Found n_burn=400 and n_sweeps=400"),
    ({"n_burn": 30, "n_sweeps": 20}, "n_burn must be below n_sweeps"),
    ({"n_burn": -1}, "n_burn must be a whole number of at least 0"),
    ({"n_sweeps": 0, "n_burn": 0}, "n_sweeps must be"),
    ({"n_draws": 0}, "n_draws must be"),
    ({"scale": "questions"}, "scale must be one of"),
    ({"trust": 0.0}, "trust must be a finite number above 0"),
    ({"n_components": 0}, "n_components must be"),
    ({"method": "bayes", "prior_shape": 0}, "prior_shape must be"),
    *(({"method": method, "loss": loss}, "loss") for method in METHODS for loss in ("hinge", None)),
    ({"method": "unmf", "balance": "most"}, "Found 'most'"),
    ({"method": "unmf", "balance": [1.0, 2.0]}, "(2,) for 12 questions"),
    ({"method": "bayes", "balance": np.nan}, "Found nan"),
    ({"method": "unmf", "balance": None}, "Found None."),
    ({"method": "unmf", "init": (np.ones((3, 2)), np.ones((7, 2)))}, "W0"),
    ({"method": "unmf", "init": (np.ones((12, 2)), np.ones((3, 2)))}, "H0"),
    ({"engine": "gpuu"}, "engine must be"),
    ({"random_state": -1}, "random_state must be"),
]


@pytest.mark.parametrize(("parameters", "words"), WRONG)
def test_wrong_parameters_are_refused(seen, parameters, words):
    with pytest.raises(ParameterError) as error:
        UncoupledNMF(2).set_params(**parameters).fit(seen)
    assert words in str(error.value)


def test_burning_matters_to_the_sampler_alone(seen):
    assert fitted(seen, "unmf", n_burn=400, max_iter=2).n_iter_ == 2


def asking(model):
    """What only several draws give, and what a refusal calls it."""
    return {
        "Intervals": lambda: model.predict_interval([0], [0]),
        "The coupling": model.coupling,
        "The disclosure risk": model.disclosure_risk,
    }


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, "0.9", None])
def test_a_level_lies_between_nothing_and_all(seen, level):
    model = fitted(seen, **SHORT["gibbs"])
    with pytest.raises(ParameterError, match="level must be a number between 0 and 1"):
        model.predict_interval([0], [0], level)


@pytest.mark.parametrize("method", ["unmf", "bayes", "decode"])
def test_what_only_sampling_gives_is_refused_by_the_others(seen, method):
    for what, ask in asking(fitted(seen, method, max_iter=2)).items():
        refused(ask, ParameterError, "method", what, repr(method))


@pytest.mark.parametrize("how", [{"n_draws": 1}, {"n_sweeps": 11}, {"n_sweeps": 1, "n_burn": 0}], ids=str)
def test_what_takes_several_draws_is_refused_of_one(seen, how):
    """Means are well without; a risk of 1, or an interval without width, would be a lie."""
    model = fitted(seen, **{**SHORT["gibbs"], **how})
    assert model.status_ is (Status.UNMIXED if "n_sweeps" in how else model.status_)
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
    other = [*map(collected, others), collected(odd_lists(), questions_are="columns"), np.ones((12, 7))]
    for X in other:
        refused(lambda X=X: model.complete(X), DataError, "X")


@pytest.mark.parametrize("method", ["gibbs", "unmf"])
def test_unknown_places_are_refused(seen, method):
    model = fitted(seen, method, **SHORT[method])
    asked = [(([99], [0]), "99"), (([0], ["x"]), "x"), (([0, 1], [0, 1, 2]), "equally long")]
    for predict in [model.predict] + [model.predict_interval] * (method == "gibbs"):
        for places, word in asked:
            with pytest.raises(DataError, match=word):
                predict(*places)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_said_before_a_fit(seen, method):
    model = UncoupledNMF(method=method)
    more = (lambda: model.predict([0], [0]), lambda: model.complete(seen), lambda: model.save("nowhere"))
    for ask in (*more, *asking(model).values()):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize(
    "how",
    [
        {"method": "bayes"},
        {"method": "unmf", "loss": "frobenius"},
        *({"method": m, "loss": loss} for m in ("unmf", "decode") for loss in ("kullback-leibler", 1.5, 0.5)),
    ],
    ids=str,
)
def test_negative_answers_are_refused_by_losses_without_a_place_for_them(negative, how):
    question = int(np.argmax([negative.answers[a] < 0 for a in negative.answer_indptr[:-1]]))
    first = negative.answers[negative.answer_indptr[question]]
    words = (f"Found {first:g} among the answers to question {question}.", 'method="gibbs"')
    refused(lambda: UncoupledNMF(2, **how).fit(negative), DataError, "X", *words)


def test_the_question_of_a_negative_answer_is_named():
    asked, answers, compared = three_lists(planted(5, (4, 6), level=9.0)[1], 4)
    seen = collected(labelled((asked, [*answers, (2, -3.0)], compared)))
    refused(lambda: UncoupledNMF(2, method="bayes").fit(seen), DataError, "X", "Found -3 ", "'q2'")


def test_zeros_are_refused_where_their_logarithm_is_needed(seen):
    """Also pseudo-observations below 0 that count as 0: for the squared error that will do."""
    zero = collected(([(0, 0), (0, 1)], [(0, 0.0), (0, 2.0)], [(0, 1, 0)]))
    refused(lambda: UncoupledNMF(1, method="unmf", loss="itakura-saito").fit(zero), DataError, "X", "Found 0 ")
    assert fitted(seen, "unmf", balance=9.0, max_iter=2).n_clipped_ > 0
    model = UncoupledNMF(2, method="unmf", loss="itakura-saito", balance=9.0)
    refused(lambda: model.fit(seen), DataError, "loss", "balance")


def test_a_matrix_too_large_to_be_completed_is_refused(seen, monkeypatch):
    monkeypatch.setattr(estimator, "MAX_COMPLETED_CELLS", 83)
    model = fitted(seen, **SHORT["gibbs"])
    refused(lambda: model.complete(seen), DataError, "X", "at most 83 cells", "12 x 7")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("method", "steps"), [("gibbs", "30/30"), ("unmf", "20/20")])
def test_a_bar_is_shown_on_a_terminal_if_wished(seen, method, steps, monkeypatch):
    quiet = fitted(seen, method, **SHORT[method], tol=0.0)
    for stream, verbose, shown in ((Terminal(), 1, True), (Terminal(), 0, False), (io.StringIO(), 1, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        model = fitted(seen, method, verbose=verbose, **SHORT[method], tol=0.0)
        assert ("UncoupledNMF" in stream.getvalue()) == shown
        assert (steps in stream.getvalue()) == shown
        assert_array_equal(model.W_, quiet.W_)


class Stopped(Chain):
    """A chain that is interrupted in the middle of a sweep, numbered from the first one that draws couplings."""

    at = 0

    def sweep(self, moves):
        self.count = getattr(self, "count", -sampler.WARM_UP) + 1
        if self.count == self.at:
            raise KeyboardInterrupt
        super().sweep(moves)


PLAN = {"n_sweeps": 40, "n_burn": 10, "n_draws": 15, "max_iter": 20}


@pytest.mark.parametrize("at", [1, 2, 3, 5, 14, 25, 40])
def test_an_interrupted_chain_is_kept_as_far_as_it_came_and_the_interrupt_goes_on(seen, monkeypatch, at):
    whole = fitted(seen, **{**PLAN, "n_burn": 0, "n_draws": 40})  # every sweep
    monkeypatch.setattr(Stopped, "at", at)
    monkeypatch.setattr(chain_module, "Chain", Stopped)
    model = UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN)
    with pytest.raises(KeyboardInterrupt):
        model.fit(seen)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == at - 1
    assert_array_equal(model.trace_["objective"], whole.trace_["objective"][: at - 1])
    mine, theirs = model.posterior_.draws, whole.posterior_.draws
    kept = np.array(oracle.sweeps_kept_when_stopped(at - 1, 40, 10, 15))
    assert mine.coupling.shape[0] == kept.size
    if at > 1:
        assert_array_equal(mine.coupling, theirs.coupling[kept - 1])
        assert_array_equal(mine.A, theirs.A[:, kept - 1])
        assert_array_equal(mine.unknown, theirs.unknown[kept - 1])
    assert model.complete(seen).shape == seen.shape
    if kept.size > 1:
        assert len(model.coupling().answer) == seen.n_asked
    else:
        refused(model.coupling, ParameterError, "n_draws")
    assert bool(model.diagnostics_) == (at > 1)


def test_what_an_interrupted_sweep_left_unfinished_is_not_kept(seen, monkeypatch):
    """Ctrl-C while the factors are drawn, in the fifth sweep: what is kept are the last two of four whole ones."""
    draw_rows, calls = chain_module.gibbs.draw_rows, []

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 2 * (sampler.WARM_UP + 4) + 1:
            raise KeyboardInterrupt
        draw_rows(*arguments)

    monkeypatch.setattr(chain_module.gibbs, "draw_rows", interrupted)
    model = UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN)
    with pytest.raises(KeyboardInterrupt):
        model.fit(seen)
    monkeypatch.undo()
    assert model.n_iter_ == 4
    whole = fitted(seen, n_sweeps=4, n_burn=2, n_draws=2, max_iter=20)
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
    monkeypatch.setattr(sampler, "MAX_R_HAT", 0.5)
    with pytest.warns(ConvergenceWarning, match="split R-hat") as told:
        model = UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN).fit(seen)
    assert model.status_ is Status.UNMIXED
    assert told[0].filename == __file__
    monkeypatch.setattr(sampler, "MAX_R_HAT", np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert UncoupledNMF(2, random_state=0, n_jobs=1, **PLAN).fit(seen).status_ is Status.SAMPLED


def test_warnings_point_at_the_caller(seen):
    with pytest.warns(ConvergenceWarning, match="max_iter") as told:
        UncoupledNMF(2, method="unmf", max_iter=1).fit(seen)
    assert told[0].filename == __file__
    with pytest.warns(DataWarning, match="Found none") as told:
        UncoupledNMF(2).fit(collected(odd_lists()[:2]))
    assert told[0].filename == __file__


def test_parameters_come_back():
    given = {"n_components": 3, "method": "bayes", "balance": "half", "trust": 4.0, "n_draws": 7, "prior_rate": None}
    parameters = UncoupledNMF(**given).get_params()
    assert parameters.items() >= given.items()
    assert clone(UncoupledNMF(**given)).get_params() == parameters
    assert UncoupledNMF().set_params(**parameters).get_params() == parameters
    for name, meant in (("k", "n_components"), ("n_sweep", "n_sweeps")):
        with pytest.raises(ParameterError, match=f"Did you mean '{meant}'"):
            UncoupledNMF().set_params(**{name: 3})


def test_a_fitted_model_is_not_changed_by_being_asked(seen):
    model = fitted(seen, **SHORT["gibbs"])
    before = model.complete(seen)
    model.coupling(), model.predict_interval([0], [1]), model.disclosure_risk()
    model.complete(seen)[:] = 0.0
    assert_allclose(model.complete(seen), before, rtol=0)

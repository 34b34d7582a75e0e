"""Laws of UncoupledNMF: what must not matter, what must be found, what must work; its methods against factorizations of
the values that test_pseudo_observations holds to their formulas."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from halfseen import PoissonFactorization, Status, Uncoupled, UncoupledNMF, WeightedNMF
from halfseen.engines.threads import Threads
from halfseen.errors import DataWarning
from halfseen.sampling import coupling_chain
from halfseen.sampling.coupling import Layout
from halfseen.uncoupled import sampler
from halfseen.uncoupled.pseudo_observations import decoded_answers, error_weights, pseudo_observations

from . import oracle
from .cases import METHODS, SHORT, assert_same, collected, fitted, labelled, odd_lists, planted, said, three_lists

every_method = pytest.mark.parametrize("method", METHODS)


@every_method
def test_the_order_of_answers_and_of_lines_does_not_matter(method):
    """The leak check: what is permuted within the rows can't come out again."""
    asked, answers, compared = odd_lists()
    random = np.random.default_rng(1)
    shuffled = (
        [answers[p] for p in random.permutation(len(answers))],
        [compared[p] for p in random.permutation(len(compared))],
    )
    one, other = collected((asked, answers, compared)), collected((asked, *shuffled))
    assert one.fingerprint() == other.fingerprint()
    assert_same(said(fitted(one, method, **SHORT[method]), one), said(fitted(other, method, **SHORT[method]), other))


def test_nothing_of_a_matrix_taken_apart_tells_whose_the_answers_were():
    """Answers swapped between two cells that nobody compared: the collection is the same."""
    X = planted(3, (6, 8), hidden=0.0)[0]
    seen = Uncoupled.from_coupled(X, 5, random_state=0)
    compared = set(np.concatenate([seen.higher, seen.lower]).tolist())
    free = [cell for cell in range(seen.n_asked) if cell not in compared]
    pairs = [(a, b) for a in free for b in free if a < b and a // 8 == b // 8]
    assert pairs
    for a, b in pairs:
        X.flat[a], X.flat[b] = X.flat[b], X.flat[a]
    other = Uncoupled.from_coupled(X, 5, random_state=0)
    assert_same(said(fitted(seen, **SHORT["gibbs"]), seen), said(fitted(other, **SHORT["gibbs"]), other))


@every_method
def test_the_number_of_threads_does_not_matter(method, monkeypatch):
    seen = collected(odd_lists())
    alone = said(fitted(seen, method, **SHORT[method]), seen)
    monkeypatch.setattr(coupling_chain, "MIN_CELLS", 8)  # many blocks, though the data are small
    for n_jobs in (1, 2, 3):
        assert_same(said(fitted(seen, method, n_jobs=n_jobs, **SHORT[method]), seen), alone)


@every_method
def test_a_seed_settles_everything_and_another_seed_does_not(method):
    seen = collected(odd_lists())
    one, again = (said(fitted(seen, method, **SHORT[method]), seen) for _ in range(2))
    assert_same(one, again)
    other = said(fitted(seen, method, random_state=1, **SHORT[method]), seen)
    assert (one["W"] != other["W"]).any()
    assert (one["predict"] != other["predict"]).any()
    state = np.random.RandomState(0)  # which moves on
    assert (
        fitted(seen, method, random_state=state, **SHORT[method]).complete(seen)
        != fitted(seen, method, random_state=state, **SHORT[method]).complete(seen)
    ).any()


@every_method
def test_questions_as_columns_are_the_same_turned_round(method):
    lists = odd_lists()
    upright, turned = collected(lists), collected(lists, questions_are="columns")
    one, other = fitted(upright, method, **SHORT[method]), fitted(turned, method, **SHORT[method])
    assert_array_equal(one.W_, other.H_)
    assert_array_equal(one.H_, other.W_)
    assert_array_equal(one.row_labels_, other.column_labels_)
    assert_array_equal(one.components_, other.W_.T)
    assert (one.n_features_in_, other.n_features_in_) == (7, 12)
    rows, columns = np.nonzero(np.ones((12, 7)))
    assert_array_equal(one.predict(rows, columns), other.predict(columns, rows))
    assert_allclose(one.complete(upright), other.complete(turned).T, rtol=1e-12)  # BLAS may add in another order
    assert_array_equal(one.trace_["objective"], other.trace_["objective"])
    if method == "gibbs":
        assert_array_equal(one.predict_interval(rows, columns), other.predict_interval(columns, rows))
        mine, theirs = one.coupling(), other.coupling()
        assert_array_equal(mine.row, theirs.column)
        assert_array_equal(mine.column, theirs.row)
        for name in ("answer", "probability", "mean"):
            assert_array_equal(getattr(mine, name), getattr(theirs, name))
    listed = [columns.tolist() for columns in np.split(other.seen_.indices, other.seen_.indptr[1:-1])]
    assert listed == [sorted({i for i, j in lists[0] if j == column}) for column in range(7)]


@pytest.mark.parametrize("scale", ["question", "auto"])
def test_units_do_not_matter(scale):
    """Each question's answers in units of its own: powers of two, so bit by bit. (All in one: test_statistics.)"""
    asked, answers, compared = odd_lists()
    factors = 2.0 ** np.random.default_rng(0).integers(-9, 9, 12)
    seen = collected((asked, answers, compared))
    other = collected((asked, [(i, factors[i] * x) for i, x in answers], compared))
    one, two = (said(fitted(X, **SHORT["gibbs"], scale=by), X) for X, by in ((seen, "question"), (other, scale)))
    rows = np.repeat(np.arange(12), 7)
    for name in ("predict", "low", "high"):
        assert_array_equal(two[name], factors[rows] * one[name], err_msg=name)
    for name in ("coupling answer", "coupling mean"):
        assert_array_equal(two[name], factors[one["coupling row"]] * one[name], err_msg=name)
    for name in ("risk", "trace objective", "trace noise", "trace violated", "diagnostics noise"):
        assert_array_equal(two[name], one[name], err_msg=name)


def test_a_start_is_given_as_the_matrix_lies():
    lists = odd_lists()
    random = np.random.default_rng(0)
    W, H = random.random((12, 2)), random.random((7, 2))
    one = fitted(collected(lists), "unmf", init=(W, H), max_iter=3)
    other = fitted(collected(lists, questions_are="columns"), "unmf", init=(H, W), max_iter=3)
    assert_array_equal(one.W_, other.H_)
    assert_array_equal(one.H_, other.W_)


@every_method
def test_labels_are_kept(method):
    named = labelled(odd_lists())
    bare, seen = collected(odd_lists()), collected(named)
    one, other = fitted(bare, method, **SHORT[method]), fitted(seen, method, **SHORT[method])
    assert one.row_labels_.tolist() == [int(label[1:]) for label in other.row_labels_]
    assert_same(said(one, bare), said(other, seen), but=("coupling row", "coupling column"))
    assert_array_equal(other.predict("q3", ["r1", "r2"]), one.predict(3, [1, 2]))
    if method == "gibbs":
        coupling = other.coupling()
        assert sorted(zip(coupling.row, coupling.column, strict=True)) == sorted(set(named[0]))


@every_method
def test_predictions_have_the_shape_of_what_was_asked_for_and_fill_the_whole_matrix(method):
    seen = collected(odd_lists())
    model = fitted(seen, method, **SHORT[method])
    whole = model.complete(seen)
    assert whole.shape == seen.shape
    for pair in ((3, 2), ([3, 4], 2), (3, [2, 0, 6]), np.nonzero(np.ones(seen.shape))):
        assert np.shape(model.predict(*pair)) == whole[pair].shape
        assert_allclose(model.predict(*pair), whole[pair], rtol=1e-10)
        if method == "gibbs":
            assert np.shape(model.predict_interval(*pair).low) == whole[pair].shape
        else:
            assert_allclose(whole[pair], np.sum(model.W_[pair[0]] * model.H_[pair[1]], axis=-1), rtol=1e-12)
    assert model.predict([], []).shape == (0,)


@pytest.mark.parametrize("at_once", [True, False], ids=["whole", "asked cells"])
def test_the_factors_of_sampled_couplings_are_an_ordinary_factorization(at_once, monkeypatch):
    """Of the model's mean everywhere, what is below 0 clipped; of a large matrix, of the asked cells' means."""
    X = planted(2, (15, 5), hidden=0.3)[1]
    seen = Uncoupled.from_coupled(X, 20, random_state=0)
    if not at_once:
        monkeypatch.setattr(sampler, "MAX_CELLS_AT_ONCE", 15 * 5 - 1)
    model = fitted(seen, **SHORT["gibbs"], tol=0.0)
    means = model.posterior_.means()
    if not at_once:
        coupling = model.coupling()
        means = np.full(X.shape, np.nan)
        means[coupling.row, coupling.column] = coupling.mean
    how = {"max_iter": 30, "tol": 0.0, "random_state": 0, "n_jobs": 1}
    other = WeightedNMF(2, loss="frobenius", accelerate=True, **how).fit(np.maximum(means, 0.0))
    assert_array_equal(model.W_, other.W_)
    assert_array_equal(model.H_, other.H_)
    assert min(model.W_.min(), model.H_.min()) >= 0
    assert model.n_clipped_ == (means < 0).sum() > 0


@pytest.mark.parametrize(
    ("questions_are", "how"),
    [
        ("rows", {"trust": 40.0, "n_sweeps": 60, "n_burn": 20}),
        ("columns", {"trust": 40.0, "n_sweeps": 60, "n_burn": 20}),
        ("rows", {"n_components": 5}),  # trust as it is by default: a violated comparison is exp(-12) times less likely
    ],
)
def test_with_every_pair_compared_the_coupling_is_found(questions_are, how):
    X = planted(4, (20, 6), hidden=0.15, level=3.0)[1]
    seen = Uncoupled.from_coupled(X, 999, random_state=0, questions_are=questions_are)
    model = fitted(seen, **how)
    coupling = model.coupling()
    assert_array_equal(coupling.answer, X[coupling.row, coupling.column])
    assert_allclose(coupling.mean, X[coupling.row, coupling.column], rtol=1e-14)
    assert_array_equal(model.disclosure_risk(), np.ones(seen.n_asked))
    assert_array_equal(coupling.probability, np.ones(seen.n_asked))
    asked = np.nonzero(~np.isnan(X))
    assert_allclose(model.complete(seen)[asked], X[asked], rtol=1e-14)
    assert_allclose(model.predict(*asked), X[asked], rtol=1e-14)
    for level in (0.01, 0.9):
        assert_array_equal(model.predict_interval(*asked, level), [X[asked]] * 2)
    assert (model.trace_["violated"][model.n_burn :] > 0).mean() < 0.01


def test_the_risk_without_comparisons_is_that_of_the_lists_without_them():
    asked, answers, compared = odd_lists()
    model = fitted(collected((asked, answers, compared)), **SHORT["gibbs"])
    bare = collected((asked, answers))
    with pytest.warns(DataWarning):
        alone = UncoupledNMF(2).fit(bare)
    assert_array_equal(model.disclosure_risk(comparisons=False), alone.disclosure_risk())
    assert_array_equal(alone.disclosure_risk(comparisons=False), alone.disclosure_risk(comparisons=True))
    assert (model.disclosure_risk() != alone.disclosure_risk()).any()


def test_without_comparisons_nothing_is_known_but_the_question():
    """What its intervals and risks are, test_posterior has."""
    asked, answers, _ = odd_lists()
    seen = collected((asked, answers))
    with pytest.warns(DataWarning, match="Comparisons should tell"):
        model = UncoupledNMF(3, random_state=0).fit(seen)
    means = np.array([np.mean([x for i, x in answers if i == question]) for question in range(12)])
    rows, columns = np.nonzero(np.ones((12, 7)))
    assert_allclose(model.predict(rows, columns), means[rows], rtol=1e-12)
    assert_allclose(model.complete(seen), np.tile(means, (7, 1)).T, rtol=1e-12)
    assert_allclose(model.W_ @ model.H_.T, model.complete(seen), rtol=1e-12)
    low, high = model.predict_interval(rows, columns, 0.999)
    was_asked = np.array([pair in set(asked) for pair in zip(rows.tolist(), columns.tolist(), strict=True)])
    assert np.isin([low[was_asked], high[was_asked]], [x for _, x in answers]).all()
    assert (low[~was_asked] < means[rows][~was_asked]).all()
    assert (model.diagnostics_, model.status_, model.n_iter_, model.n_clipped_) == ({}, Status.DIRECT, 0, 0)
    assert (model.W_.shape, model.H_.shape) == ((12, 3), (7, 3))
    X = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, 1.0], [-5.0, 1.0, 1.0]])
    seen = Uncoupled.from_coupled(X, 0)
    with pytest.warns(DataWarning):
        model = UncoupledNMF().fit(seen)
    assert_allclose(model.complete(seen), np.tile(X.mean(axis=1), (3, 1)).T, rtol=1e-12)
    assert_allclose(model.W_ @ model.H_.T, np.maximum(model.complete(seen), 0.0), rtol=1e-12)
    assert model.n_clipped_ == 6


def error(model, seen, X, hidden):
    return np.abs(model.complete(seen) - X)[hidden].mean()


@pytest.fixture(scope="module")
def survey():
    """A matrix, what was seen of it, three lists, and the errors of the row mean and the sampler at hidden cells."""
    X, seen_cells = planted(8, (80, 12), level=2.0)
    lists = three_lists(seen_cells, 14)
    hidden = np.isnan(seen_cells)
    of_row_mean = np.abs(np.nanmean(seen_cells, axis=1)[:, None] - X)[hidden].mean()
    seen = collected(lists)
    whole = error(fitted(seen, n_components=3), seen, X, hidden)
    assert whole < 0.5 * of_row_mean
    return X, hidden, lists, of_row_mean, whole


def test_lost_answers_lost_names_and_half_known_comparisons_cost_little(survey):
    """A tenth of either, or of both, in different rows: still less than a third of the way back to the row mean."""
    X, hidden, (asked, answers, compared), of_row_mean, whole = survey
    random = np.random.default_rng(0)
    kept = [answer for answer in answers if random.random() > 0.1]
    named = [cell for cell in asked if random.random() > 0.1]
    known = set(named)
    among = [(i, high, low) for i, high, low in compared if {(i, high), (i, low)} <= known]
    for lists in ((asked, kept, compared), (named, answers, among), (named, kept, among)):
        seen = collected(lists)
        assert error(fitted(seen, n_components=3), seen, X, hidden) < whole + (of_row_mean - whole) / 3
    # All comparisons with one side hidden: better than the row mean. Whole ones and as many halves: no worse.
    half = [(i, high, None) if place % 2 else (i, None, low) for place, (i, high, low) in enumerate(compared)]
    seen = collected((asked, answers, half))
    assert error(fitted(seen, n_components=3), seen, X, hidden) < of_row_mean
    seen = collected((asked, answers, compared + half))
    assert error(fitted(seen, n_components=3), seen, X, hidden) < 1.1 * whole


SQUARE = [(i, j) for i in range(3) for j in range(3)]
ODD = {
    "one question": ([(0, j) for j in range(5)], [(0, x) for x in (1, 2, 4, 8, 9)], [(0, 4, 0), (0, 3, 0), (0, 3, 1)]),
    "one respondent": ([(i, 0) for i in range(4)], [(i, 2.0 + i) for i in range(4)], [(1, 0, None), (2, None, 0)]),
    "one cell": ([(0, 0)], [(0, 3.0)], [(0, 0, None)]),
    "one value": (SQUARE, [(i, 0.1) for i, _ in SQUARE], [(0, 0, 1), (0, 1, 0)]),
    "rows of one answer": ([(0, 0), (1, 1), (2, 0), (2, 1)], [(0, 5), (1, 6), (2, 3), (2, 9)], [(2, 1, 0)]),
    "a question without answers": (SQUARE, [(i, i + j) for i, j in SQUARE if i != 1], [(0, 2, 1), (1, 0, 1)]),
    "all answers of one question": (SQUARE, [(0, 1), (0, 2), (0, 3)], [(0, 2, 1)]),
    "many more answers": ([(0, 0), (0, 1), (1, 0)], [(0, x) for x in range(9)] + [(1, 4)], [(0, 1, 0)]),
}  # fmt: skip


@every_method
@pytest.mark.parametrize("lists", ODD.values(), ids=ODD)
def test_small_and_odd_collections_stay_within_their_answers(lists, method):
    """A cell's answer is an answer of its question, where all are known; and all stays within reason."""
    seen = collected(lists)
    model = fitted(seen, method, n_components=1, **SHORT[method])
    everything = [x for _, x in lists[1]]
    width = (max(everything) - min(everything)) or 1.0
    if method in ("unmf", "bayes"):  # the comparisons of few may count as many times an answer
        steps = np.diff(model.trace_["objective"]) * (1 if method == "unmf" else -1)
        assert (steps <= 1e-9 * np.abs(model.trace_["objective"][1:]) + 1e-25).all()
    else:
        assert (np.abs(model.complete(seen) - np.mean(everything)) < 5 * width).all()
    if method == "gibbs":
        coupling = model.coupling()
        for row, _, answer, probability, mean in zip(*coupling, strict=True):
            own = [x for i, x in lists[1] if i == row]
            cells = [j for i, j in lists[0] if i == row]
            assert answer in own if own else np.isnan(answer)
            assert 0 <= probability <= 1
            if len(own) == len(cells) == 1:
                assert (probability, mean) == (1, own[0])
            if len(own) >= len(cells):
                assert min(own) - 1e-9 <= mean <= max(own) + 1e-9
        low, high = model.predict_interval(*np.nonzero(np.ones(seen.shape)))
        assert (low <= high).all()


def test_negative_answers_are_welcome_where_they_have_a_place():
    """Rank decoding by the squared error clips what it reads off; sampling has normal factors."""
    X = planted(5, (10, 6), hidden=0.1)[1]
    seen = Uncoupled.from_coupled(X, 8, random_state=0)
    assert fitted(seen, "decode", loss="frobenius", max_iter=10).n_clipped_ > 0
    sampled = fitted(seen, **SHORT["gibbs"])
    assert (sampled.complete(seen) < 0).any()
    assert np.isin(sampled.coupling().answer, X).all()


@pytest.fixture(scope="module")
def seen():
    return collected(odd_lists())


def pseudo(seen, balance="full"):
    with Threads(1) as threads:
        w, _ = error_weights(seen.answers, seen.answer_indptr, threads)
    return pseudo_observations(seen, w, balance)


LOSSES = ("frobenius", "kullback-leibler", "itakura-saito", 1.5)
PRIORS = ({}, {"prior_shape": 0.3, "prior_rate": None}, {"prior_shape": 2.0, "prior_rate": 0.5})


@pytest.mark.parametrize("how", [{"max_iter": 15, "tol": 0.0}, {"max_iter": 5000, "tol": 1e-5}], ids=["15", "settled"])
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        *(("unmf", {"loss": loss}) for loss in LOSSES),
        *(("decode", {"loss": loss}) for loss in LOSSES[:2]),
        *(("bayes", priors) for priors in PRIORS),
    ],
    ids=str,
)
def test_other_methods_are_factorizations_of_their_values(seen, method, settings, how):
    """Of pseudo-observations or decoded answers, from the same start, iteration by iteration, to the same end."""
    if settings.get("loss") == "itakura-saito":  # which has no place for a zero: no pseudo-observation may be clipped
        seen = collected(three_lists(planted(1, (12, 7), level=30.0)[1], 6))
    values = decoded_answers(seen)[0] if method == "decode" else pseudo(seen).observed
    one = fitted(seen, method, **settings, **how, random_state=2)
    how = {"unseen": "missing", "random_state": 2, **how}
    if method == "bayes":
        other = PoissonFactorization(2, accelerate=False, **{"prior_shape": 1.0, "prior_rate": 1.0} | settings, **how)
    else:
        other = WeightedNMF(2, **settings, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other.fit(values)
    for mine, theirs in ((one.model_.rows, other.model_.rows), (one.model_.columns, other.model_.columns)):
        for name in mine._fields:
            assert_array_equal(getattr(mine, name), getattr(theirs, name))
    assert_array_equal(one.trace_["objective"], other.trace_["objective"])
    assert one.status_ is other.status_
    assert one.n_iter_ == len(one.trace_["objective"])
    if how["tol"] and settings.get("loss") != "itakura-saito":
        assert one.status_ is Status.CONVERGED


@pytest.mark.parametrize("method", ["unmf", "bayes"])
@pytest.mark.parametrize("balance", ["zero", "half", "full", 0.7, np.linspace(1, 3, 12)], ids=str)
def test_w_and_lambda_are_kept_until_the_next_fit(seen, method, balance):
    model = fitted(seen, method, balance=balance, max_iter=2)
    expected = pseudo(seen, balance)
    assert_array_equal(model.w_, expected.w)
    assert_array_equal(model.balance_, expected.balance)
    assert model.n_clipped_ == expected.n_clipped
    share = {"zero": 0.0, "half": 0.5, "full": 1.0}.get(balance) if isinstance(balance, str) else None
    assert_allclose(model.balance_, balance if share is None else share * model.w_.sum(axis=1), rtol=1e-13)
    bounds = [oracle.deviation(seen.answers[slice(*seen.answer_indptr[i : i + 2])], w) for i, w in enumerate(model.w_)]
    assert_allclose(model.error_bounds_, bounds, rtol=1e-12, atol=1e-14)
    assert max(bounds) > 0
    model.set_params(method="decode", tol=0.0).fit(seen)
    for name in ("w_", "balance_", "error_bounds_"):
        assert not hasattr(model, name)


@every_method
def test_objectives_have_names_which_a_method_set_later_does_not_change(seen, method):
    names = {"gibbs": "Log-likelihood", "unmf": "Loss", "bayes": "Evidence bound", "decode": "Loss"}
    model = fitted(seen, method, **SHORT[method])
    for other in METHODS:
        assert model.set_params(method=other).objective_name == names[method]


def test_the_number_of_components_is_chosen_by_hidden_comparisons():
    """That of the planted matrix, or one more; the fit is then the one with this number."""
    cells = planted(1, (60, 12), rank=3, noise=0.3)[1]
    seen = Uncoupled.from_coupled(cells, 20, random_state=0)
    model = fitted(seen, n_components="auto", **SHORT["gibbs"])
    assert model.n_components == "auto"
    assert model.n_components_ == model.W_.shape[1] == model.H_.shape[1]
    assert model.n_components_ in (3, 4)
    same = fitted(seen, n_components=model.n_components_, **SHORT["gibbs"])
    assert_same(said(model, seen), said(same, seen))


def test_hidden_comparisons_take_no_part():
    """A layout without some comparisons is that of a collection that never had them."""
    lists = odd_lists()
    seen = Uncoupled(*lists)
    hidden = np.random.default_rng(0).random(seen.n_comparisons) < 0.3
    layout, full = Layout.from_collection(seen, hidden=hidden), Layout.from_collection(seen)
    assert_array_equal(Layout.from_collection(seen, hidden=~np.ones_like(hidden)).below.cells, full.below.cells)
    higher, lower = seen.higher[~hidden], seen.lower[~hidden]
    assert layout.below.cells.size == np.count_nonzero((higher >= 0) & (lower >= 0))
    assert layout.half_known.sum() == np.count_nonzero((higher < 0) != (lower < 0))
    for cell in range(layout.n_cells):
        beaten = layout.below.cells[layout.below.indptr[cell] : layout.below.indptr[cell + 1]]
        expected = layout.asked[lower[(higher >= 0) & (lower >= 0) & (layout.asked[higher] == cell)]]
        assert_array_equal(np.sort(beaten), np.sort(expected))


def test_one_cell_rows_and_rows_nobody_answered():
    """A question asked once holds its answer; one without answers has values with a wide interval."""
    _, cells = planted(2, (14, 6), hidden=0.0)
    cells[3, 1:] = np.nan
    asked, answers, compared = three_lists(cells, 8)
    asked += [(14, j) for j in range(3)]
    model = fitted(Uncoupled(asked, answers, compared), **SHORT["gibbs"])
    assert model.predict(3, 0) == pytest.approx(cells[3, 0])
    assert model.predict_interval(3, 0) == pytest.approx((cells[3, 0], cells[3, 0]))
    low, high = model.predict_interval([14] * 6, range(6))
    assert np.isfinite([low, high]).all()
    assert (high - low > 0.5 * np.nanstd(cells)).all()

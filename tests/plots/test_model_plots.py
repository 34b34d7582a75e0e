"""Plots of fits: the trace, the strongest columns of components, scores by number of components."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from halfseen import Quantizer, RankOneNMF, RankSearch, RoundMF, Search, Uncoupled, UncoupledNMF, WeightedNMF, plots
from halfseen.data import planted
from halfseen.errors import ParameterError
from tests.estimators.models import long_frame, seen_matrix
from tests.laws.cases import levels


def fitted(X=None, **parameters):
    X = seen_matrix() if X is None else X
    return WeightedNMF(2, max_iter=20, tol=0, random_state=0).set_params(**parameters).fit(X)


def sampled(**parameters):
    X = np.random.default_rng(0).random((4, 6))
    survey = Uncoupled.from_coupled(X, 5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return UncoupledNMF(1, n_sweeps=50, n_burn=20, random_state=0, **parameters).fit(survey)


def test_the_line_is_the_objective_of_every_iteration(ax):
    model = fitted()
    assert plots.trace(model, ax=ax) is ax
    (line,) = ax.lines
    assert_array_equal(line.get_xdata(), np.arange(1, 21))
    assert_array_equal(line.get_ydata(), model.trace_["objective"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "loss")
    timed = plots.trace(model, by="seconds", ax=Figure().add_subplot())
    assert_array_equal(timed.lines[0].get_xdata(), model.trace_["seconds"])
    short = plots.trace(fitted(max_iter=3), ax=Figure().add_subplot())
    assert all(place == round(place) for place in short.get_xticks())


def test_cells_held_out_have_an_axis_of_their_own(ax):
    model = RoundMF(1, early_stopping=True, random_state=0).fit(levels(30, 20, blanks=False))
    plots.trace(model, ax=ax)
    beside = ax.figure.axes[1]
    assert_array_equal(beside.lines[0].get_ydata(), model.trace_["held_out"])
    assert beside.get_ylabel() == "loss on held-out cells"


def test_sweeps_that_were_discarded_are_shaded(ax):
    model = sampled()
    plots.trace(model, ax=ax)
    (span,) = ax.patches
    assert (span.get_x(), span.get_width()) == (0, 20)
    assert "discarded" in [text.get_text() for text in ax.texts]
    beside = ax.figure.axes[1]
    assert_array_equal(beside.lines[0].get_ydata(), model.trace_["violated"])
    assert (ax.get_xlabel(), ax.get_ylabel(), beside.get_ylabel()) == (
        "sweep", "log-likelihood", "violated comparisons",
    )  # fmt: skip
    seconds = plots.trace(model, by="seconds", ax=Figure().add_subplot())
    assert_allclose(seconds.patches[0].get_width(), model.trace_["seconds"][19])
    model.trace_["violated"] = np.zeros_like(model.trace_["violated"])
    none = plots.trace(model, ax=Figure().add_subplot())
    assert none.figure.axes[1].get_ylim()[0] == 0  # no numbers below 0


def test_a_fit_without_iterations_says_so(ax):
    survey = Uncoupled([("a", "x"), ("a", "y")], [("a", 1.0), ("a", 2.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = UncoupledNMF(1).fit(survey)
    plots.trace(model, ax=ax)
    assert [text.get_text() for text in ax.texts] == ["There was nothing to iterate."]
    one = plots.trace(RankOneNMF("a1gm").fit(np.ones((3, 3))), ax=Figure().add_subplot())
    assert one.lines[0].get_marker() == "o"  # a line of one point would not be seen


def bars(ax):
    """Name and length of every bar, from the top down."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    return list(zip(names, [bar.get_width() for bar in ax.patches], strict=True))


def test_the_strongest_columns_of_a_component(ax):
    model = fitted(long_frame())
    assert plots.factors(model, top=3, component=1, ax=ax) is ax
    strength = {item: h * model.W_[:, 1].mean() for item, h in zip(model.column_labels_, model.H_[:, 1], strict=True)}
    best = sorted(strength, key=strength.get, reverse=True)[:3]
    assert [name for name, _ in bars(ax)] == best
    assert_allclose([length for _, length in bars(ax)], [strength[name] for name in best])
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("what the component adds for an average row", "column")
    # The strengths of a column over all components: the mean over rows of <w_u, h_i>.
    model = fitted(long_frame())
    added = dict.fromkeys(model.column_labels_, 0.0)
    for component in range(2):
        for name, length in bars(plots.factors(model, component=component, ax=Figure().add_subplot())):
            added[name] += length
    assert_allclose(list(added.values()), (model.W_ @ model.H_.T).mean(axis=0))


def test_all_components_below_each_other_relative_to_the_strongest(ax):
    model = fitted(long_frame())
    plots.factors(model, top=2, side="rows", ax=ax)
    drawn = bars(ax)
    for component in range(2):
        w = model.W_[:, component]
        best = np.argsort(-w)[:2]
        names, lengths = zip(*drawn[2 * component : 2 * component + 2], strict=True)
        assert list(names) == model.row_labels_[best].tolist()
        assert_allclose(lengths, w[best] / w.max())
    assert [text.get_text() for text in ax.texts] == ["component 0", "component 1"]
    assert ax.get_ylabel() == "row"


def test_factors_of_any_sign_go_both_ways_and_biases_are_no_component(ax):
    model = RoundMF(2, random_state=0).fit(levels(blanks=False))
    plots.factors(model, component=0, top=20, ax=ax)
    lengths = np.array([length for _, length in bars(ax)])
    assert_allclose(np.sort(lengths), np.sort(model.H_[:, 0] * np.sqrt(np.mean(model.W_[:, 0] ** 2))))
    assert np.all(np.diff(np.abs(lengths)) <= 0)
    colours = {bar.get_facecolor() for bar in ax.patches if bar.get_width() < 0}
    assert colours.isdisjoint(bar.get_facecolor() for bar in ax.patches if bar.get_width() > 0)


def test_names_are_no_formulas_and_not_too_long(ax):
    frame = long_frame().replace({"ale": "$a$ and $b$", "bun": "x" * 100, "cod": "two\nlines\x00"})
    plots.factors(fitted(frame), component=0, ax=ax)
    ax.figure.canvas.draw()
    labels = {label.get_text(): label for label in ax.get_yticklabels()}
    assert "x" * 31 + "…" in labels
    assert "two lines " in labels
    assert not labels["$a$ and $b$"].get_parse_math()


@pytest.fixture(scope="module")
def searched():
    X = planted(30, 20, 2, random_state=0)[0]
    return RankSearch(WeightedNMF(random_state=0), ranks=[1, 2, 4], n_folds=3, random_state=0, n_jobs=1).fit(X), X


@pytest.mark.parametrize(("rule", "words"), [("best", "the best"), ("one-standard-error", "by one standard error")])
def test_the_curve_of_ranks(ax, searched, rule, words):
    search = clone(searched[0]).set_params(rule=rule).fit(searched[1])
    assert plots.rank_curve(search, ax=ax) is ax
    ((line, _, (arms,)),) = ax.containers
    scores = search.results_["scores"]
    assert_array_equal(line.get_xydata(), np.column_stack([[1, 2, 4], scores.mean(axis=1)]))
    halves = [(arm[1, 1] - arm[0, 1]) / 2 for arm in arms.get_segments()]
    assert_allclose(halves, search.results_["standard_error"])
    assert_array_equal([line.get_ydata() for line in ax.lines[:3]], scores.T)
    (mark,) = (line for line in ax.lines if line.get_marker() == "s")
    best = search.best_n_components_
    assert_array_equal(mark.get_xydata(), [[best, scores[[1, 2, 4].index(best)].mean()]])
    assert mark.get_label() == f"chosen: {best}, {words}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of components", "minus divergence of held-out cells")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "4"]


def test_of_a_search_its_best_model_is_drawn(searched):
    search, X = searched
    best = search.best_estimator_
    drawn = plots.trace(search, ax=Figure().add_subplot())
    assert_array_equal(drawn.lines[0].get_ydata(), best.trace_["objective"])
    assert bars(plots.factors(search, component=0, ax=Figure().add_subplot())) == bars(
        plots.factors(best, component=0, ax=Figure().add_subplot())
    )
    one, other = (plots.completion(model, X, ax=Figure().add_subplot()).images[0] for model in (search, best))
    assert_array_equal(one.get_array(), other.get_array())


def test_what_cannot_be_drawn(searched):
    model, search = fitted(), clone(searched[0]).set_params(refit=False).fit(searched[1])
    wrong = [{"top": 0}, {"side": "diagonals"}, {"component": -1}, {"component": 2}]
    calls = [
        *((next(iter(one)), lambda one=one: plots.factors(model, **one)) for one in wrong),
        ("by", lambda: plots.trace(model, by="hours")),
        ("model", lambda: plots.trace(search)),
        ("model", lambda: plots.factors(Quantizer([1, 2]).fit([[1.0, 2.0]]))),
        ("model", lambda: plots.factors({"W_": 1})),
        ("search", lambda: plots.rank_curve(model)),
        ("search", lambda: plots.rank_curve(Search(WeightedNMF()))),
    ]
    for parameter, draw in calls:
        with pytest.raises(ParameterError, match=f"^{parameter} must be"):
            draw()
    for unfitted in (WeightedNMF(2), clone(search)):
        with pytest.raises(NotFittedError):
            plots.trace(unfitted)
    with pytest.raises(NotFittedError):
        plots.rank_curve(clone(search))

"""Pictures of fitted models: how the fit went, the strongest columns of components, where levels begin."""

import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from halfseen import (
    OrdinalMF,
    OrdNMF,
    Quantizer,
    RankOneNMF,
    RankSearch,
    RoundMF,
    Uncoupled,
    UncoupledNMF,
    WeightedNMF,
    plots,
)
from halfseen.data import planted
from halfseen.errors import HalfseenError, ParameterError
from tests.estimators.models import long_frame, seen_matrix
from tests.laws.cases import levels

mpl.use("Agg")


@pytest.fixture
def ax():
    return Figure().add_subplot()


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


def test_there_is_no_half_an_iteration(ax):
    plots.trace(fitted(max_iter=3), ax=ax)
    assert all(place == round(place) for place in ax.get_xticks())


def test_the_line_by_seconds(ax):
    model = fitted()
    plots.trace(model, by="seconds", ax=ax)
    assert_array_equal(ax.lines[0].get_xdata(), model.trace_["seconds"])
    assert ax.get_xlabel() == "seconds"


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


def test_what_components_add_up_to_is_the_mean_of_each_column(ax):
    """The strengths of a column over all components: the mean over rows of <w_u, h_i>."""
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
    with pytest.raises(ParameterError, match=r"component must be one of the model's, 0 to 1\. Found 2"):
        plots.factors(model, component=2, ax=ax)


def test_names_are_no_formulas_and_not_too_long(ax):
    frame = long_frame().replace({"ale": "$a$ and $b$", "bun": "x" * 100, "cod": "two\nlines\x00"})
    plots.factors(fitted(frame), component=0, ax=ax)
    ax.figure.canvas.draw()
    labels = {label.get_text(): label for label in ax.get_yticklabels()}
    assert "x" * 31 + "…" in labels
    assert "two lines " in labels
    assert not labels["$a$ and $b$"].get_parse_math()


def intervals(ax):
    """Where the bar of each level begins and ends."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    return dict(zip(names, ends, strict=True))


@pytest.mark.parametrize("model", [RoundMF(2, random_state=0), OrdinalMF(2, random_state=0)], ids=["round", "ordinal"])
def test_levels_lie_between_their_thresholds(ax, model):
    model.fit(levels(blanks=False))
    assert plots.thresholds(model, ax=ax) is ax
    found = intervals(ax)
    assert list(found) == ["0", "1", "2", "3", "4"]
    for level, low, high in zip(("1", "2", "3"), model.thresholds_[:-1], model.thresholds_[1:], strict=True):
        assert_allclose(found[level], (low, high))
    assert_allclose((found["0"][1], found["4"][0]), (model.thresholds_[0], model.thresholds_[-1]))
    assert_allclose(ax.get_xlim(), (found["0"][0], found["4"][1]))  # no end: to the edges of the picture
    middle = np.mean(found["2"])
    assert model.levels_[model.likelihood_.levels(np.array([middle]))[0]] == 2


def test_a_free_scale_is_left_out(ax):
    model = OrdNMF(2, random_state=0).fit(levels(blanks=False))
    plots.thresholds(model, ax=ax)
    found = intervals(ax)
    ratios = model.thresholds_ / model.thresholds_[0]
    assert_allclose(found["2"], ratios[1:3])
    assert ax.get_xscale() == "log"


def test_words_name_levels_and_nothing_is_unseen(ax):
    frame = long_frame().replace({"rating": {1.0: "lo", 2.0: "lo", 3.0: "hi", 4.0: "hi", 5.0: "hi"}})
    plots.thresholds(OrdNMF(1, levels=["lo", "hi"], random_state=0).fit(frame), ax=ax)
    assert list(intervals(ax)) == ["unseen", "lo", "hi"]


def test_whiskers_hold_nine_tenths_of_the_owners(ax):
    model = OrdinalMF(1, own_thresholds="rows", random_state=0).fit(levels(40, 20, blanks=False))
    plots.thresholds(model, ax=ax)
    _, _, (arms,) = ax.containers[1]
    ends = np.array([arm[:, 0] for arm in arms.get_segments()])
    inside = (model.own_thresholds_ >= ends[:, 0]) & (model.own_thresholds_ <= ends[:, 1])
    assert_array_equal(inside.sum(axis=0), [36] * 4)
    assert ax.get_legend().get_texts()[0].get_text() == "nine tenths of all rows"


class Search(BaseEstimator):
    """What `rank_curve` reads of a search."""

    def __init__(self, rule="best"):
        self.results_ = {
            "n_components": np.array([1, 2, 5, 10]), "mean": np.array([0.1, 0.4, 0.45, 0.42]),
            "standard_error": np.array([0.02, 0.03, 0.06, 0.05]),
            "scores": np.array([[0.1, 0.1], [0.3, 0.5], [0.4, 0.5], [0.4, 0.44]]), "seconds": np.ones(4),
        }  # fmt: skip
        self.metric, self.rule, self.best_n_components_ = "ndcg@10", rule, 2

    def fit(self):
        """A search is an estimator."""


def test_the_curve_of_a_real_search(ax):
    X = planted(30, 20, 2, random_state=0)[0]
    search = RankSearch(WeightedNMF(random_state=0), ranks=[1, 2, 4], n_folds=3, random_state=0, n_jobs=1).fit(X)
    plots.rank_curve(search, ax=ax)
    assert_array_equal(ax.containers[0].lines[0].get_ydata(), search.results_["scores"].mean(axis=1))
    assert ax.get_legend().get_texts()[0].get_text().startswith(f"chosen: {search.best_n_components_}, ")
    assert ax.get_ylabel() == "minus divergence of held-out cells"


@pytest.mark.parametrize(("rule", "words"), [("best", "the best"), ("one-standard-error", "by one standard error")])
def test_the_curve_of_ranks(ax, rule, words):
    search = Search(rule)
    assert plots.rank_curve(search, ax=ax) is ax
    (container,) = ax.containers
    line, _, (arms,) = container
    assert_array_equal(line.get_xydata(), np.column_stack([[1, 2, 5, 10], search.results_["mean"]]))
    halves = [(arm[1, 1] - arm[0, 1]) / 2 for arm in arms.get_segments()]
    assert_allclose(halves, search.results_["standard_error"])
    folds = [line.get_ydata() for line in ax.lines[:2]]
    assert_array_equal(folds, search.results_["scores"].T)
    (mark,) = (line for line in ax.lines if line.get_marker() == "s")
    assert_array_equal(mark.get_xydata(), [[2, 0.4]])
    assert mark.get_label() == f"chosen: 2, {words}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of components", "ndcg@10 of held-out cells")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "5", "10"]


def test_what_cannot_be_drawn(monkeypatch):
    with pytest.raises(NotFittedError):
        plots.trace(WeightedNMF(2))
    with pytest.raises(ParameterError, match=r"model must be one with thresholds between levels\. Found a WeightedNMF"):
        plots.thresholds(fitted())
    with pytest.raises(ParameterError, match="by must be"):
        plots.trace(fitted(), by="hours")
    for wrong in ({"top": 0}, {"side": "diagonals"}, {"component": -1}):
        with pytest.raises(ParameterError, match=f"{next(iter(wrong))} must be"):
            plots.factors(fitted(), **wrong)
    model = fitted()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(HalfseenError, match=r"the numbers alone are the attribute trace_'s\."):
        plots.trace(model)


@pytest.fixture(scope="module")
def searched():
    X = planted(30, 20, 2, random_state=0)[0]
    return RankSearch(WeightedNMF(random_state=0), ranks=[1, 2], n_folds=2, random_state=0, n_jobs=1).fit(X), X


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


def test_a_search_that_kept_no_model_and_what_is_none(searched):
    search = clone(searched[0]).set_params(refit=False).fit(searched[1])
    with pytest.raises(
        ParameterError, match=r"with factors\. Found a RankSearch without any\. Fit it with refit=True\."
    ):
        plots.trace(search)
    for nothing in (Quantizer([1, 2]).fit([[1.0, 2.0]]), {"W_": 1}):
        with pytest.raises(ParameterError, match=r"without any\. Fit a model, or load one\."):
            plots.factors(nothing)
    with pytest.raises(NotFittedError):
        plots.trace(clone(search))


def test_the_curve_of_what_is_no_search():
    with pytest.raises(ParameterError, match=r"search must be a fitted RankSearch\. Found a WeightedNMF\."):
        plots.rank_curve(fitted())
    with pytest.raises(NotFittedError):
        plots.rank_curve(RankSearch(WeightedNMF()))


def test_where_no_comparison_is_violated_no_number_is_below_zero(ax):
    model = sampled()
    model.trace_["violated"] = np.zeros_like(model.trace_["violated"])
    plots.trace(model, ax=ax)
    assert ax.figure.axes[1].get_ylim()[0] == 0


@pytest.mark.parametrize("draw", [plots.trace, plots.factors, lambda model: plots.completion(model, seen_matrix())])
def test_a_figure_is_made_where_none_is_given(draw):
    import matplotlib.pyplot as plt

    drawn = draw(fitted())
    drawn.figure.canvas.draw()
    plt.close(drawn.figure)
    assert drawn.get_xlabel()

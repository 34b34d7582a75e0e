"""Plots of uncoupled data against the draws of the sampler."""

import warnings
from itertools import product

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from halfseen import Uncoupled, UncoupledNMF, WeightedNMF, plots
from halfseen.errors import DataError, DataWarning, ParameterError

PEOPLE = ["ann", "bob", "cid", "dora", "eve"]
ANSWERS = {"age": [20, 30, 30, 40, 50], "rent": [1, 2, 3, 4, 4.5], "pets": [0, 0, 1, 2]}
#: For "age" all that can be known is known; for "rent" who is highest; nothing of "pets", where one answer was lost.
COMPARISONS = [
    *[("age", PEOPLE[high], PEOPLE[low]) for high in range(5) for low in range(high)],
    ("age", "bob", "cid"),
    *[("rent", "cid", other) for other in PEOPLE if other != "cid"],
]


def collected(comparisons=COMPARISONS, **roles):
    asked = [(question, person) for question in ANSWERS for person in PEOPLE]
    answers = [(question, value) for question, values in ANSWERS.items() for value in values]
    return Uncoupled(asked, answers, comparisons, **roles)


def fitted(seen, **parameters):
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, DataWarning):
            warnings.simplefilter("ignore", category)
        return UncoupledNMF(2, random_state=0, n_sweeps=80, n_burn=30, trust=100, **parameters).fit(seen)


@pytest.fixture(scope="module")
def model():
    return fitted(collected())


def heat(ax):
    """The numbers of a heat map by respondent and answer."""
    (image,) = ax.images
    people, answers = ([label.get_text() for label in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis))
    return dict(zip(product(people, answers), image.get_array().ravel().tolist(), strict=True))


def test_bars_are_the_risks_and_the_line_is_what_guessing_gives(model, ax):
    assert plots.disclosure(model, ax=ax) is ax
    bars, outline = ax.containers[0], ax.patches[-1]
    counts = [bar.get_height() for bar in bars]
    assert_array_equal(counts, np.histogram(model.disclosure_risk(), 20, (0, 1))[0])
    assert sum(counts) == 15
    # Without comparisons the most frequent answer is the best guess: 2 of 5, 1 of 5, and 2 of 5, one being lost.
    inside = [outline.get_path().contains_point((0.05 * bar + 0.025, 4.9)) for bar in range(20)]
    assert np.flatnonzero(inside).tolist() == [0.2 * 20, 0.4 * 20]
    assert max(outline.get_xy()[:, 1]) == 10
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    alone = (10 * 0.4 + 5 * 0.2) / 15
    assert texts == [f"with comparisons, mean {model.disclosure_risk().mean():.2f}", f"without, mean {alone:.2f}"]


def test_a_question_of_which_all_is_known(model, ax):
    """bob and cid are tied, and there are two equal answers for them."""
    assert plots.coupling(model, "age", ax=ax) is ax
    owned = {("ann", "20"), ("bob", "30"), ("cid", "30"), ("dora", "40"), ("eve", "50")}
    drawn = heat(ax)
    assert len(drawn) == 5 * 4
    for pair, share in drawn.items():
        assert share == (pair in owned), pair
    order = [label.get_text() for label in ax.yaxis.get_ticklabels()]
    assert (order[0], order[-2:]) == ("ann", ["dora", "eve"])
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("age", "answer", "respondent")


def test_probabilities_are_those_of_the_draws_and_a_lost_answer_has_a_column(model, ax):
    plots.coupling(model, "rent", ax=ax)
    drawn = heat(ax)
    assert drawn[("cid", "4.5")] == 1
    for person in PEOPLE:
        assert_allclose(sum(drawn[(person, f"{answer:g}")] for answer in ANSWERS["rent"]), 1)
        mean = sum(drawn[(person, f"{answer:g}")] * answer for answer in ANSWERS["rent"])
        assert_allclose(model.predict("rent", person), mean)
    for answer in ANSWERS["rent"]:
        assert_allclose(sum(drawn[(person, f"{answer:g}")] for person in PEOPLE), 1)
    drawn = heat(plots.coupling(model, "pets", ax=Figure().add_subplot()))
    totals = {name: sum(drawn[(person, name)] for person in PEOPLE) for _, name in drawn}
    assert totals == pytest.approx({"0": 2, "1": 1, "2": 1, "lost": 1})


def test_without_comparisons_all_respondents_are_alike(ax):
    model = fitted(collected(None))
    plots.coupling(model, "pets", ax=ax)
    drawn = heat(ax)
    for person in PEOPLE:
        assert_allclose([drawn[(person, answer)] for answer in ("0", "1", "2", "lost")], [0.4, 0.2, 0.2, 0.2])
    axes = plots.disclosure(model, ax=Figure().add_subplot())
    first, second = (text.get_text().partition("mean ")[2] for text in axes.get_legend().get_texts())
    assert first == second


def test_without_labels_there_are_positions(ax):
    X = np.array([[1.0, 2, 3], [3, 1, 2]])
    model = fitted(Uncoupled.from_coupled(X, 3, random_state=0))
    plots.coupling(model, 1, ax=ax)
    drawn = heat(ax)
    assert [pair for pair, share in drawn.items() if share == 1] == [("1", "1"), ("2", "2"), ("0", "3")]


def test_what_cannot_be_drawn(model):
    decoded = fitted(collected(), method="decode", max_iter=3)
    for draw in (plots.disclosure, lambda one: plots.coupling(one, "age")):
        with pytest.raises(ParameterError, match="sampled couplings"):
            draw(decoded)
        with pytest.raises(ParameterError) as caught:
            draw(WeightedNMF(1))
        assert (caught.value.parameter, caught.value.found) == ("model", "a WeightedNMF")
    with pytest.raises(DataError, match=r"Found 'rant'.*Did you mean 'rent'"):
        plots.coupling(model, "rant")

"""The units in which answers are sampled, and the layout of cells and tokens."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import Uncoupled
from halfseen.sampling.coupling import Layout, Units, noise_floor


def survey(answers):
    """Everybody was asked everything; a list of answers for each question."""
    asked = [(i, j) for i in range(len(answers)) for j in range(max(map(len, answers)))]
    return Uncoupled(asked, [(i, x) for i, own in enumerate(answers) for x in own], [(0, 1, 0)])


AGES, INCOMES, EVEN = [20, 31, 45, 52, 70], [20e3, 25e3, 40e3, 80e3, 31e3], [7.0] * 5


def test_units_are_means_and_deviations_of_all_answers_or_of_each_question():
    units = Units.from_answers(survey([AGES, INCOMES, []]), "all")
    everything = AGES + INCOMES
    assert_allclose(units.centre, [np.mean(everything)] * 3, rtol=1e-15)
    assert_allclose(units.scale, [np.std(everything)] * 3, rtol=1e-15)
    # Even answers go by their size, also if their mean is rounded; zeros and questions without answers by all.
    zeros, thirds = [0.0] * 5, [10 / 3] * 7
    assert np.std(thirds) > 0 or np.mean(thirds) != thirds[0]  # else there is nothing to be seen here
    units = Units.from_answers(survey([AGES, INCOMES, EVEN, thirds, [], zeros]), "question")
    everything = AGES + INCOMES + EVEN + thirds + zeros
    expected = [np.mean(AGES), np.mean(INCOMES), 7.0, 10 / 3, np.mean(everything), 0.0]
    assert_allclose(units.centre, expected, rtol=1e-14)
    assert_allclose(units.scale[:4], [np.std(AGES), np.std(INCOMES), 7.0, 10 / 3], rtol=1e-14)
    assert_allclose(units.scale[4:], [np.std(everything)] * 2, rtol=1e-14)
    assert_array_equal(Units.from_answers(survey([[0.1, 0.1]]), "all").scale, 1.0)  # of one value
    seen = survey([AGES, INCOMES, EVEN])
    layout = Layout.from_collection(seen, "question")
    assert_allclose(layout.in_answer_units(layout.tokens)[layout.is_answer], seen.answers, rtol=1e-14)
    assert_allclose(layout.in_answer_units(layout.tokens[6:8], np.arange(6, 8)), seen.answers[6:8], rtol=1e-14)


@pytest.mark.parametrize("scale", ["question", "all"])
def test_rows_of_equal_answers_are_left_out_of_the_columns(scale):
    thirds = [10 / 3] * 5
    seen = survey([EVEN, AGES, thirds, INCOMES, []])  # without answers, the values are unknown, and differ
    layout = Layout.from_collection(seen, scale)
    assert_array_equal(layout.is_informative, [False, True, False, True, True])
    assert_array_equal(layout.columns.indices, [1, 3, 4] * 5)
    assert_array_equal(layout.columns.indptr, 3 * np.arange(6))
    assert_array_equal(layout.rows.indices[layout.columns.order], np.repeat(np.arange(5), 3))
    assert layout.rows.indices.size == 25
    few = survey([EVEN, thirds[:4], AGES])  # equal by chance, where units are common
    assert_array_equal(Layout.from_collection(few, scale).is_informative, [False, scale == "all", True])
    one_of_ten = Layout.from_collection(survey([EVEN, *[AGES] * 9]), scale)
    assert one_of_ten.is_informative.all() == (scale == "all")
    for answers in ([EVEN, thirds], [AGES, INCOMES]):
        whole = Layout.from_collection(survey(answers), scale)
        assert whole.is_informative.all()
        assert whole.columns.indices.size == whole.n_cells


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([AGES, INCOMES], "question"),
        ([AGES, [2 * age for age in AGES], EVEN], "all"),
        ([AGES, [1e3, 2e5]], "all"),  # two answers tell too little
        ([EVEN, EVEN], "all"),
        ([AGES, [10 / 3] * 7], "all"),  # the same answer, but for rounding of its mean
        ([AGES, [2 * age for age in AGES], [1e9 / 3] * 7, [0.1] * 6, [-0.7e-30] * 6], "all"),
    ],
)
def test_auto_takes_a_unit_for_each_question_where_deviations_are_far_apart(answers, expected):
    seen = survey(answers)
    for found, wanted in zip(Units.from_answers(seen, "auto"), Units.from_answers(seen, expected), strict=True):
        assert_array_equal(found, wanted)


def smallest_step(row):
    """Between two different answers of a row."""
    return min((abs(x - y) for x in row for y in row if x != y), default=None)


@pytest.mark.parametrize(
    "answers",
    [
        [[1, 2, 2, 4, 5], [3, 3, 5], [2, 2, 2], [], [1, 1.5, 4]],
        [AGES, INCOMES, EVEN],
        [[1, 4], [7, 2, 9, 9], [0, 0.5]],
    ],
)
@pytest.mark.parametrize("scale", ["all", "question"])
def test_the_least_noise_is_that_of_rounding(answers, scale):
    """A twelfth of the squared step, the variance of what rounding leaves: by all pairs, the median of questions."""
    seen = survey(answers)
    units = Units.from_answers(seen, scale)
    steps = [(smallest_step(row), unit) for row, unit in zip(answers, units.scale, strict=True)]
    expected = np.median([step / unit for step, unit in steps if step is not None]) ** 2 / 12
    assert expected > 1e-4
    assert_allclose(noise_floor(seen, units), expected, rtol=1e-12)
    assert_allclose(Layout.from_collection(seen, scale).noise_floor, expected, rtol=1e-12)


@pytest.mark.parametrize("answers", [[EVEN, EVEN], [list(np.linspace(0, 1, 200))] * 2, [[2.0], [3.0, 3.0]]])
def test_the_least_noise_is_a_hundredth_of_the_unit_where_nothing_was_rounded(answers):
    seen = survey(answers)
    assert noise_floor(seen, Units.from_answers(seen, "all")) == 1e-4

"""Kinds of columns and their marginals."""

import datetime
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from halfseen.errors import DataError
from halfseen.imputation.columns import (
    Column,
    Marginal,
    choose_scale,
    find_order,
    missing_cells,
    recognise_choices,
    recognise_numbers,
)


def objects(*values):
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def test_the_scores_of_levels_are_means_between_their_thresholds():
    values = np.repeat([1.0, 2.0, 5.0], [20, 50, 30])
    marginal = Marginal.of(values)
    cuts = norm.ppf([0, 0.2, 0.7, 1])
    assert_allclose(marginal.cuts, cuts)
    between = [norm.expect(lambda z: z, lb=a, ub=b, conditional=True) for a, b in pairwise(cuts)]
    assert_allclose(marginal.to_latent(np.array([1.0, 2.0, 5.0])), between, atol=1e-6)
    assert np.isnan(marginal.to_latent(np.array([np.nan]))).all()


@pytest.mark.parametrize("values", [np.repeat([1.0, 2, 5], [20, 50, 30]), np.random.default_rng(0).gamma(1, 2, 3000)])
def test_moments_are_those_of_a_latent_normal_that_is_cut(values):
    marginal = Marginal.of(values)
    s2 = marginal.score_variance
    assert_allclose(s2, np.var(marginal.to_latent(values)), rtol=0.01)
    drawn = np.random.default_rng(1).normal(0.7, 0.6, 400_000)
    x = marginal.atoms[np.searchsorted(marginal.cuts, drawn) - 1]
    mean, variance = marginal.moments(np.array([0.7 * s2]), np.array([s2 - 0.64 * s2**2]))
    assert_allclose(mean, x.mean(), rtol=0.01)
    assert_allclose(variance, x.var(), rtol=0.02)


def test_shares_of_levels_have_the_mean_that_is_asked_for():
    marginal = Marginal.of(np.repeat([1.0, 2.0, 5.0], [20, 50, 30]))
    wanted, latent, variance = (
        np.array([1.2, 2.6, 4.9, 9.0]),
        np.array([0.5, -1.0, 0.0, 0.0]),
        np.array([0.2, 0.5, 1, 1]),
    )
    shares = marginal.shares_with_mean(wanted, latent, variance)
    assert_allclose(shares.sum(axis=0), 1)
    assert_allclose(marginal.atoms @ shares, [1.2, 2.6, 4.9, 5.0], atol=1e-5)
    own, _ = marginal.moments(latent, variance)
    assert_allclose(marginal.shares_with_mean(own, latent, variance), marginal.shares(latent, variance), atol=1e-6)


def test_nothing_known_gives_the_columns_own_mean_and_variance():
    values = np.random.default_rng(0).gamma(1, 2, 3000)
    mean, variance = Marginal.of(values).moments(np.zeros(1), np.ones(1))
    assert_allclose(mean, values.mean(), rtol=1e-6)
    assert 0.9 * values.var() < variance < values.var()  # parts of equal size stand for their means


def test_scores_of_many_values_follow_their_ranks():
    values = np.random.default_rng(0).gamma(1, 2, 3000)
    ranks = np.argsort(np.argsort(values))
    density = norm.pdf(norm.ppf(np.arange(3001) / 3000))
    assert_allclose(Marginal.of(values).to_latent(values), 3000 * -np.diff(density)[ranks], atol=0.05)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("age", [20, 31, np.nan], "count"),
        ("change", [-1, 3, 2.0], "continuous"),
        ("height", [1.75, 1.8, np.nan], "continuous"),
        ("flat", [7, 7, np.nan], "constant"),
        ("huge", [1e300, -1e300, 1.0], "continuous"),
        ("nothing", [np.nan, np.nan], "empty"),
        ("customer_id", [5, np.nan, 12], "id"),
        ("zip", [1013, 90210, np.nan], "code"),
        ("Zip Code", [1013, 90210, np.nan], "code"),
        ("PassengerId", [1, 2, np.nan], "id"),
        ("CustomerID", [7, 2, np.nan], "id"),
        ("id_customer", [7, 2, np.nan], "id"),
        ("Unnamed: 0", [0, 1, np.nan], "id"),
        ("ssn", [123456789, 987654321, np.nan], "id"),
        ("identity", [7, 2, np.nan], "count"),
        ("year", [1999, 2004, np.nan], "count"),
        ("valid", [1, 0, np.nan], "boolean"),
        ("cylinders", [4, 8, 6, 4, 8, 6, np.nan], "levels"),
        ("answer", [-1, 0, 1, -1, 0, 1], "levels"),
        ("children", [0, 1, 2, 3, np.nan], "count"),  # too few cells to tell
        ("score", np.arange(24) % 12, "count"),
        ("id", [0.5, 1.5, np.nan], "continuous"),
    ],
)
def test_kinds_of_numbers(name, values, kind):
    assert recognise_numbers(name, np.array(values, float), named=True).kind == kind


def test_a_name_decides_nothing_where_the_user_does_and_where_there_are_no_names():
    ids = np.array([5, np.nan, 12.0])
    assert recognise_numbers("customer_id", ids, named=True, amount=True).kind == "count"
    assert recognise_numbers("id", ids, named=False).kind == "count"
    few = np.array([0, 1.0] * 5)
    assert recognise_numbers("score", few, named=True, amount=True).kind == "count"
    assert recognise_choices("size", objects("low", "high"), category=True).kind == "category"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["red", "blue", "red", "blue", None], "category"),
        ([True, False, None], "boolean"),
        (["01013", "90210", None], "code"),
        (["1.5", "2", None], "number as text"),
        (["2024-01-31", "2024-02-01"], "date"),
        (["31.1.2024", None], "date"),
        (["x", None, "x"], "single text"),
        (["low", "high", "medium"], "levels"),
        (["Mon", "Tue", "Mon", "Tue"], "category"),
        (["yes", "no", "yes", "no"], "category"),
        ([datetime.date(2024, 1, 31), None], "date"),
        ([f"a remark, the {i}th" for i in range(30)], "text"),
        ([f"{i} Main Street" for i in range(30)], "text"),
        ([None, np.nan], "empty"),
    ],
)
def test_kinds_of_other_columns(values, kind):
    assert recognise_choices("c", objects(*values)).kind == kind


def test_levels_have_the_order_that_is_given():
    column = recognise_choices("q", objects("often", None, "never"), ["never", "rarely", "often"])
    assert (column.kind, column.values) == ("levels", ("never", "rarely", "often"))
    numbers, unknown = column.encode(objects("often", None, "sometimes"))
    assert_array_equal(numbers, [[2], [np.nan], [np.nan]])
    assert unknown.tolist() == [2]
    assert column.decode(np.array([[1.2], [-3], [9]])).tolist() == ["rarely", "never", "often"]
    with pytest.raises(DataError, match="'always'"):
        recognise_choices("q", objects("always"), ["never", "rarely", "often"])


ORDERED = [
    ["Small", "Medium", "High"],
    ["Tier 1", "Tier 2", "Tier 3"],
    ["low", "medium", "high"],
    ["LOW", "Medium", "very high"],
    ["S", "M", "L", "XXL"],
    ["never", "seldom", "sometimes", "often", "always"],
    ["Strongly disagree", "disagree", "neutral", "Agree", "strongly agree"],
    ["poor", "fair", "good", "excellent"],
    ["none", "mild", "moderate", "severe"],
    ["High School", "Bachelor's", "Master's", "PhD"],
    ["two", "four", "twelve"],
    ["1 - bad", "2 - fair", "3 - good"],
    [f"{number}: {'x' * (number + 1)}" for number in range(12)],
    ["0-10", "11-20", "21+"],
    ["<18", "18-25", "26\u201340", "41 and over"],
    ["<=50K", ">50K"],
    ["under 1 year", "1-5 years", "more than 5 years"],
    ["$0-$9,999", "$10,000-$99,999", "$100,000+"],
    ["1st class", "2nd class", "3rd class"],
    ["1 star", "2 stars", "10 stars"],
    ["Stage I", "Stage II", "Stage IV", "Stage IX"],
]


@pytest.mark.parametrize("words", ORDERED, ids=lambda words: words[0])
def test_the_order_of_words_is_found_however_they_are_shuffled(words):
    random = np.random.default_rng(0)
    for _ in range(5):
        assert find_order(random.permutation(words).tolist()) == tuple(words)
    assert find_order([*words, "unheard of"]) is None


@pytest.mark.parametrize(
    "words",
    [
        ["Mon", "Tue", "Wed"],
        ["January", "March", "May"],
        ["yes", "no"],
        ["M", "S"],  # married, single
        ["A", "B", "C"],
        ["A+", "A-", "B+", "B-"],
        ["bachelor", "bachelors", "phd"],  # the same twice
        ["low", "Low", "high"],
        ["OUT010", "OUT013", "OUT017"],
        ["Group 1", "Group 2", "Group 3"],
        ["11 - Agriculture", "21 - Mining", "44 - Trade"],
        ["0-10", "5-20", "21+"],  # they overlap
        ["20-10", "30-20"],
        ["500m", "1k"],
        ["100-500m", "1k-5k"],
        ["01 north", "02 north"],
        ["1 - bad", "fair"],
        ["small", "medium", "gold"],
        ["low"],
    ],
    ids=lambda words: words[0],
)
def test_words_that_show_no_order_have_none(words):
    assert find_order(words) is None


def test_a_list_of_levels_is_for_columns_that_share_most_of_its_words():
    scales = [["never", "rarely", "often"], ["bad", "good"]]
    assert choose_scale(objects("good", None, "bad"), scales) == scales[1]
    assert choose_scale(objects("often", "rarely", "oftn"), scales) == scales[0]  # and recognising refuses the word
    assert choose_scale(objects("never", "red", "blue"), scales) is None
    assert choose_scale(objects(None), scales) is None
    assert choose_scale(objects("never"), []) is None


def test_mixed_types_are_refused_with_the_column():
    with pytest.raises(DataError, match=r"one type.* Found 1 and 'two' in column 'c'"):
        recognise_choices("c", objects(1, "two", None))


def test_infinite_values_are_refused_with_their_place():
    with pytest.raises(DataError, match="inf at row 1, column 'a'"):
        recognise_numbers("a", np.array([1.0, np.inf]), named=True)


def test_categories_have_a_column_each():
    column = recognise_choices("c", objects(*"abcabcab", None))
    numbers, _ = column.encode(objects("b", None, "c"))
    assert_array_equal(numbers, [[0, 1, 0], [np.nan] * 3, [0, 0, 1]])
    assert column.decode(np.array([[0.2, 0.5, 0.3]])).tolist() == ["b"]
    assert Column("c", "category", ("a", "b")).width == 1
    assert_array_equal(missing_cells(objects("b", None, np.nan, "")), [False, True, True, False])


@pytest.mark.parametrize("width", [1, 3])
def test_categories_are_drawn_by_their_shares(width):
    column = Column("c", "category", ("a", "b", "c")[: 2 if width == 1 else 3])
    shares = np.tile([0.3] if width == 1 else [0.5, 0.2, 0.3], (100_000, 1))
    random = np.random.default_rng(0)
    scores = random.normal(size=(100_000, width))
    if width > 1:  # ranks of categories that exclude each other
        scores = (scores - scores.mean(axis=1, keepdims=True)) / np.sqrt(1 - 1 / width)
    drawn = column.draw(shares, norm.cdf(scores), random.normal(size=100_000))
    assert_allclose(drawn.mean(axis=0), shares[0], atol=0.01)
    for j in range(width):  # a high rank makes a category more likely
        assert np.corrcoef(drawn[:, j], scores[:, j])[0, 1] > 0.4

"""Validation of parameters."""

import numpy as np
import pytest

from halfseen import PoissonFactorization, WeightedNMF, validation
from halfseen.errors import ParameterError
from halfseen.validation import between, flag, number, one_of, rising, start, threads, whole


def complaint(rule, value):
    """What the error about a parameter p says that it must be, and its remedy."""
    with pytest.raises(ParameterError) as caught:
        validation.check_parameters({"p": value}, {"p": rule})
    assert (caught.value.parameter, caught.value.found) == ("p", repr(value))
    return caught.value.must, caught.value.remedy


@pytest.mark.parametrize(
    ("rule", "valid", "invalid", "must"),
    [
        (whole(1), [1, 7, np.int32(3)], [0, -1, 2.0, "3", None, True, np.nan], "a whole number of at least 1"),
        (whole(1, 5), [1, 5], [6], "a whole number of at most 5"),
        (
            number(0.0),
            [0, 1e300, np.float32(2)],
            [-1, np.nan, np.inf, "1", None, True, 1j],
            "a finite number of",
        ),
        (number(0.0, above=True, or_none=True), [None, 1e-300], [0], "a finite number above 0 or None."),
        (
            between(0.0, 1.0),
            [0.5, 1e-9],
            [0, 1, 1.5, np.nan, None, "0.5"],
            "a number between 0 and 1, both excl",
        ),
        (one_of("missing", "zero"), ["missing", "zero"], ["zeros", 7, None], "one of 'missing', 'zero'."),
        (
            start("random"),
            ["random", (1, 2), [1, 2]],
            ["nndsvd", (1,), (1, 2, 3), None, 5],
            "'random' or a pair",
        ),
        (threads(), [None, -1, 2], [0, 1.5, True], "None or a whole number other than 0."),
        (
            rising(0),
            [None, [1, 2]],
            [[], [2, 1], [0, 1], [1, np.inf], "x", 3],
            "None or rising numbers above 0.",
        ),
        (flag(), [True, np.bool_(False)], [1, None], "True or False."),
    ],
)
def test_rules(rule, valid, invalid, must):
    for value in valid:
        validation.check_parameters({"p": value}, {"p": rule})
    assert all(complaint(rule, value)[0].startswith(f"must be {must}") for value in invalid)


def test_remedies():
    assert complaint(whole(1), 0)[1] == "Use 1 or more."
    assert complaint(one_of("missing", "zero"), "zeros")[1] == "Did you mean 'zero'?"
    assert complaint(one_of("missing", "zero"), 7)[1] == "Choose one of these."


def test_the_first_broken_rule_is_reported():
    rules = {"a": whole(1), "b": whole(1), "c": whole(1)}
    with pytest.raises(ParameterError, match=r"^b must"):
        validation.check_parameters({"a": 1, "b": 0, "c": 0}, rules)


def test_other_libraries_words_and_near_spellings():
    for name in ("k", "rank", "factors", "n_factors", "n_component"):
        assert validation.did_you_mean(name, ["n_components", "max_iter"]) == "n_components"
    assert validation.did_you_mean("seed", ["n_components", "max_iter"]) is None  # which has no such parameter
    for name, remedy in (
        ("k", "Did you mean 'n_components'?"),
        ("seed", "Valid parameters are: max_iter, n_components."),
    ):
        with pytest.raises(ParameterError) as caught:
            validation.check_names([name], ["n_components", "max_iter"], "Model")
        assert (caught.value.parameter, caught.value.remedy) == (name, remedy)
    known = set(WeightedNMF().get_params()) | set(PoissonFactorization().get_params())
    assert set(validation.OTHER_WORDS.values()) <= known


@pytest.mark.parametrize("value", [-1, 2**32, 1.5, "0", True])
def test_seeds_that_are_none_are_refused_before_any_work(value):
    with pytest.raises(ParameterError, match=r"^random_state must be"):
        WeightedNMF(2, random_state=value).fit([[1.0, 2.0]])


def test_a_random_state_and_numpy_integers_are_seeds():
    X = np.arange(1.0, 13.0).reshape(4, 3)
    first, second = (WeightedNMF(2, random_state=seed).fit(X).W_ for seed in (np.int64(3), np.random.RandomState(3)))
    np.testing.assert_array_equal(first, second)

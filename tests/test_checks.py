"""Parameter checks and their sentences."""

import numpy as np
import pytest

from halfseen import WeightedNMF, checks
from halfseen.errors import ParameterError


def refused(rule, value):
    with pytest.raises(ParameterError) as caught:
        checks.check_parameters({"p": value}, {"p": rule})
    return str(caught.value)


def accepted(rule, *values):
    for value in values:
        checks.check_parameters({"p": value}, {"p": rule})


def test_whole_numbers():
    accepted(checks.whole(1, 5), 1, 5)
    assert refused(checks.whole(1, 5), 6) == "p must be a whole number of at most 5. Found 6. Use a smaller one."
    accepted(checks.whole(1), 1, 7, np.int32(3))
    for value in (0, -1, 2.0, "3", None, True, np.nan):
        assert (
            refused(checks.whole(1), value)
            == f"p must be a whole number of at least 1. Found {value!r}. Use 1 or more."
        )


def test_numbers():
    accepted(checks.number(0.0), 0, 0.0, 1e300, np.float32(2))
    accepted(checks.number(0.0, above=True, or_none=True), None, 1e-300)
    for value in (-1, np.nan, np.inf, "1", None, True, 1j):
        assert "p must be a finite number of at least 0. Found" in refused(checks.number(0.0), value)
    assert "above 0 or None. Found 0." in refused(checks.number(0.0, above=True, or_none=True), 0)


def test_between():
    accepted(checks.between(0.0, 1.0), 0.5, 1e-9)
    for value in (0, 1, 1.5, np.nan, None, "0.5"):
        assert "between 0 and 1, both excluded" in refused(checks.between(0.0, 1.0), value)


def test_one_of():
    accepted(checks.one_of("missing", "zero"), "missing", "zero")
    assert refused(checks.one_of("missing", "zero"), "zeros").endswith("Found 'zeros'. Did you mean 'zero'?")
    assert refused(checks.one_of("missing", "zero"), 7).endswith("Found 7. Choose one of these.")
    assert "one of 'missing', 'zero'" in refused(checks.one_of("missing", "zero"), None)


def test_start():
    accepted(checks.start("random"), "random", (1, 2), [1, 2])
    for value in ("nndsvd", (1,), (1, 2, 3), None, 5):
        assert "p must be 'random' or a pair of arrays (W0, H0)" in refused(checks.start("random"), value)


def test_the_first_broken_rule_is_reported():
    rules = {"a": checks.whole(1), "b": checks.whole(1), "c": checks.whole(1)}
    with pytest.raises(ParameterError, match=r"^b must"):
        checks.check_parameters({"a": 1, "b": 0, "c": 0}, rules)


@pytest.mark.parametrize("name", ["k", "rank", "factors", "n_factors", "n_component"])
def test_other_libraries_words(name):
    assert checks.did_you_mean(name, ["n_components", "max_iter"]) == "n_components"
    with pytest.raises(
        ParameterError, match=f"Invalid parameter '{name}' for estimator Model. Did you mean 'n_components'"
    ):
        checks.check_names([name], ["n_components", "max_iter"], "Model")


def test_a_word_is_only_translated_to_one_that_is_there():
    assert checks.did_you_mean("seed", ["n_components", "max_iter"]) is None
    with pytest.raises(ParameterError, match=r"Valid parameters are: max_iter, n_components\."):
        checks.check_names(["seed"], ["n_components", "max_iter"], "Model")


def test_every_translation_leads_to_a_parameter_of_some_estimator():
    from halfseen import PoissonFactorization, WeightedNMF

    known = set(WeightedNMF().get_params()) | set(PoissonFactorization().get_params())
    assert set(checks.OTHER_WORDS.values()) <= known


@pytest.mark.parametrize("value", [-1, 2**32, 1.5, "0", True])
def test_seeds_that_are_none_are_refused_before_any_work(value):
    with pytest.raises(ParameterError, match=r"random_state must be None, a whole number from 0 .* Found"):
        WeightedNMF(2, random_state=value).fit([[1.0, 2.0]])


def test_a_random_state_and_numpy_integers_are_seeds():
    X = np.arange(1.0, 13.0).reshape(4, 3)
    first, second = (WeightedNMF(2, random_state=seed).fit(X).W_ for seed in (np.int64(3), np.random.RandomState(3)))
    np.testing.assert_array_equal(first, second)

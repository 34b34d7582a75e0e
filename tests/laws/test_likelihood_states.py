"""Every likelihood and factor can be written to a file and read again, and broken ones are refused."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from halfseen.arrays import ArraySpec
from halfseen.likelihoods import LIKELIHOODS, Cumulative, Likelihood, OwnThresholds
from halfseen.solvers import FACTORS
from tests.laws.cases import OWNED, SMOOTHS, STORED

every_likelihood = pytest.mark.parametrize("likelihood", STORED.values(), ids=STORED)
X = np.array([0.05, 0.3, 1.0, 2.5])


def fields(likelihood):
    return {name: getattr(likelihood, name) for name in likelihood.state}


def assert_same(one, other):
    assert type(one) is type(other)
    for name, value in fields(one).items():
        if isinstance(value, Likelihood):
            assert_same(value, getattr(other, name))
        else:
            assert_array_equal(value, getattr(other, name), strict=isinstance(value, np.ndarray))


@every_likelihood
def test_a_round_trip_keeps_every_field_and_every_bit(likelihood):
    again = LIKELIHOODS[type(likelihood).__name__].from_state(likelihood.to_state())
    assert_same(again, likelihood)
    y = np.arange(9.0)[likelihood.legal(np.arange(9.0))]
    y, x = (grid.ravel() for grid in np.meshgrid(y, X))
    for one, other in zip(likelihood.pull_push_cost(y, x), again.pull_push_cost(y, x), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(likelihood.mean(x), again.mean(x))


@every_likelihood
def test_the_state_names_the_constructors_arguments_and_is_plain_data(likelihood):
    def is_plain(value):
        if isinstance(value, dict):
            return all(map(is_plain, value.values()))
        return type(value) in (np.ndarray, bool, int, float, str)

    assert is_plain(likelihood.to_state())
    assert list(likelihood.state) == list(inspect.signature(type(likelihood)).parameters)


@every_likelihood
def test_a_field_too_many_or_too_few_is_refused(likelihood):
    state = likelihood.to_state()
    with pytest.raises(ValueError, match="must hold"):
        type(likelihood).from_state(state | {"extra": 1})
    for name, spec in likelihood.state.items():
        if not (isinstance(spec, ArraySpec) and spec.optional):
            with pytest.raises(ValueError, match="must hold"):
                type(likelihood).from_state({key: value for key, value in state.items() if key != name})


@every_likelihood
def test_values_of_another_type_size_or_range_are_refused(likelihood):
    state = likelihood.to_state()
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            broken = [
                value.astype(str),
                value.tolist(),
                np.append(value, value[:1], axis=0) if name != "offsets" else value[:, 1:],
                value[None],
                np.where(np.arange(value.size).reshape(value.shape) == 0, np.nan, value),
            ]
            broken += [-value[::-1] - 1] if name in ("thresholds", "decrements") and value.min() > 0 else []
            broken += [value[::-1]] if name == "thresholds" and value.size > 1 else []
            if name in ("thresholds", "decrements", "values") and "values" not in state:
                del broken[2]  # nothing else tells how many levels there are
        else:
            broken = [None, [value], {"type": "Nothing"}, {}]
            broken += ["1"] if not isinstance(value, str) else ["other"]
            broken += [np.nan] if isinstance(value, float) else []
        for wrong in broken:
            with pytest.raises(ValueError, match=r"must|Found"):
                type(likelihood).from_state(state | {name: wrong})


def test_a_squared_likelihood_has_no_squared_one_inside():
    state = STORED["squared counts"].to_state()
    with pytest.raises(ValueError, match="inner must be"):
        LIKELIHOODS["Squared"].from_state({"inner": {"type": "Squared", **state}})


def test_sizes_must_agree_with_what_else_a_file_holds():
    state, sizes = OWNED.to_state(), {"levels": 5}
    OwnThresholds.from_state(state, sizes)
    assert sizes == {"levels": 5, "owners": 3}
    with pytest.raises(ValueError, match="size"):
        OwnThresholds.from_state(state, {"levels": 6})
    with pytest.raises(ValueError, match="link must be one of"):
        Cumulative.from_state(SMOOTHS["logit"].to_state() | {"link": "identity"})


@pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS)
def test_factors_name_their_arrays(factor):
    assert list(factor.state) == list(factor._fields)
    good, sizes = np.ones((4, 2), np.float32), {}
    for name, spec in factor.state.items():
        spec.check(name, good, sizes)
        for wrong in (good[0], good.astype(int), good[:, :1], np.full_like(good, np.nan)):
            with pytest.raises(ValueError, match=name):
                spec.check(name, wrong, dict(sizes))
    assert sizes == {"length": 4, "components": 2}

"""Specifications of arrays in files."""

import numpy as np
import pytest

from halfseen.arrays import ArraySpec


def test_symbols_are_bound_once_and_must_agree():
    sizes = {}
    ArraySpec("iu", ("rows+1",), low=0, sorted=True).check("indptr", np.array([0, 2, 2, 3]), sizes)
    ArraySpec("iu", ("cells",), low=0, high="columns").check("indices", np.array([1, 0, 1]), {**sizes, "columns": 2})
    ArraySpec("f", ("rows", 2)).check("W", np.ones((3, 2)), sizes)
    ArraySpec("f", ("levels-1",)).check("thresholds", np.ones(4), sizes)
    assert sizes == {"rows": 3, "levels": 5}


@pytest.mark.parametrize(
    ("spec", "array", "message"),
    [
        (ArraySpec("f", ("rows",)), [1.0], "kind 'f'. Found list"),
        (ArraySpec("f", ("rows",)), np.arange(3), "kind 'f'. Found int64"),
        (ArraySpec("f", ("rows",)), np.ones((3, 1)), "1 axes. Found 2"),
        (ArraySpec("f", ("rows",)), np.ones(4), r"size 3 \(rows\) .* Found 4"),
        (ArraySpec("f", ("rows+1",)), np.ones(3), r"size 4 \(rows\+1\) .* Found 3"),
        (ArraySpec("f", ("other+1",)), np.ones(0), "size 1"),
        (ArraySpec("f", (2,)), np.ones(3), "size 2"),
        (ArraySpec("f", ("rows",)), np.array([1, np.inf, 2]), "finite. Found inf"),
        (ArraySpec("f", ("rows",), low=0.0, finite=False), np.array([1, np.nan, 2]), "0 or larger. Found nan"),
        (ArraySpec("f", ("rows",), high=1.0), np.array([1, 2.0, 2]), "1 or smaller. Found 2.0"),
        (ArraySpec("i", ("rows",), high="rows"), np.array([0, 3, 2]), "2 or smaller. Found 3"),
        (ArraySpec("i", ("rows",), high="unknown"), np.array([0, 3, 2]), "-1 or smaller"),
        (ArraySpec("f", ("rows",), rising=True), np.array([0, 1.0, 1.0]), "increase"),
        (ArraySpec("f", ("rows",), sorted=True), np.array([0, 1.0, 0.5]), "not decrease"),
    ],
)  # fmt: skip
def test_what_is_not_as_specified_is_refused_and_binds_nothing(spec, array, message):
    sizes = {"rows": 3}
    with pytest.raises(ValueError, match=f"thing must .*{message}"):
        spec.check("thing", array, sizes)
    assert sizes == {"rows": 3}


def test_infinite_values_pass_where_they_are_allowed():
    ArraySpec("f", ("rows",), low=0.0, finite=False).check("shape", np.array([1.0, np.inf]), {})

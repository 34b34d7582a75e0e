"""Half-seen matrices as hypothesis draws them."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from halfseen.observed import Observed

CALM = settings(deadline=None, max_examples=50)

numbers = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@st.composite
def half_seen(draw, values=numbers, least=1):
    """A dense float64 array with NaN at unseen cells and at least `least` seen ones."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    dense = draw(hnp.arrays(np.float64, shape, elements=values))
    seen = draw(hnp.arrays(np.bool_, shape))
    seen.ravel()[:least] = True
    return np.where(seen, dense, np.nan)


@st.composite
def coordinate_cells(draw):
    """Cells in any order, some of them more than once: (shape, rows, columns, values, weights)."""
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    one = st.tuples(st.integers(0, n - 1), st.integers(0, m - 1), numbers, st.sampled_from([0.5, 1.0, 2.0]))
    rows, columns, values, weights = zip(*draw(st.lists(one, min_size=1, max_size=30)), strict=True)
    return (n, m), np.array(rows), np.array(columns), np.array(values), np.array(weights)


def assert_same(a: Observed, b: Observed) -> None:
    """The same matrix, to the last bit, whatever its labels."""
    assert a.shape == b.shape
    assert a.unseen == b.unseen
    for name in ("indptr", "indices", "values"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert getattr(a, name).dtype == getattr(b, name).dtype
    if a.weights is not None or b.weights is not None:
        np.testing.assert_array_equal(a.weights, b.weights)

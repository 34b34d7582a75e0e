"""The scale that the product leaves free: equal sums, as far as numbers allow; the average where nothing is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import RankOneNMF
from halfseen.errors import DataWarning
from halfseen.rank_one import scaling

from .cases import NAN, TABLES, factors, fitted, gammas, holed, product, relative_gap


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("method", ["exact", "em"])
def test_each_part_has_equal_sums(X, method):
    model = fitted(X, method, max_iter=50)
    w, h = factors(model)
    assert model.n_parts_ >= 1
    for part in range(model.n_parts_):
        assert_allclose(w[model.parts_[0] == part].sum(), h[model.parts_[1] == part].sum(), rtol=1e-12)


def test_empty_lines_get_the_average_of_the_others():
    X = holed(gammas((9, 7)), 0.2)
    X[[2, 8]], X[:, 5] = NAN, NAN
    with pytest.warns(DataWarning) as told:
        model = RankOneNMF().fit(X)
    assert [str(warning.message) for warning in told] == [
        "Every row should have a seen cell. Found none in row 2 and 1 more. Such a row gets the average factor of the "
        "others; drop it if that is not wanted.",
        "Every column should have a seen cell. Found none in column 5. Such a column gets the average factor of the "
        "others; drop it if that is not wanted.",
    ]
    assert {warning.filename for warning in told} == {__file__}
    rows, columns = ~np.isnan(X).all(1), ~np.isnan(X).all(0)
    small = fitted(X[rows][:, columns])
    assert_allclose(model.W_[rows], small.W_, rtol=1e-9)
    assert_allclose(model.H_[columns], small.H_, rtol=1e-9)
    assert_allclose(model.W_[~rows], small.W_.mean(), rtol=1e-9)
    assert_allclose(model.H_[~columns], small.H_.mean(), rtol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_empty_line_that_is_named_is_the_empty_one(order):
    """Also where most rows have no hole."""
    X = gammas((9, 7))
    X[1, 2], X[4], X[:, 5] = NAN, NAN, NAN
    X[8, 5] = 1.0 if order == "C" else NAN
    with pytest.warns(DataWarning) as told:
        RankOneNMF().fit(np.asarray(X, order=order))
    told = sorted(str(warning.message) for warning in told)
    assert ["Found none in row 4. " in told[-1], len(told)] == [True, 1 if order == "C" else 2]
    assert order == "C" or "Found none in column 5. " in told[0]


def test_an_empty_row_among_zeros_and_whole_rows():
    """Zeros are known: they count in the average."""
    X = gammas((6, 4))
    X[1], X[3] = 0.0, NAN
    model = fitted(X)
    assert model.W_[3] == pytest.approx(model.W_[[0, 1, 2, 4, 5]].mean(), rel=1e-12)
    assert model.W_[1] == 0


def test_labels_name_the_empty_lines():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(gammas((3, 3)), index=["ann", "bob", "cid"], columns=["x", "y", "z"])
    frame.loc["cid"], frame["y"] = NAN, NAN
    with pytest.warns(DataWarning) as told:
        RankOneNMF().fit(frame)
    assert "row 'cid'" in str(told[0].message)
    assert "column 'y'" in str(told[1].message)


# Numbers end somewhere


def test_single_precision_spans_what_it_can():
    """Rows over 70 of its 76 decades, as numbers above the smallest normal one: the fit is as good as its digits."""
    X = (np.logspace(-35, 35, 8)[:, None] * gammas((8, 5))).astype(np.float32)
    X[2, 3] = NAN
    model = fitted(X)
    assert model.W_.dtype == model.H_.dtype == np.float32
    assert model.W_.min() >= 1.17e-38
    assert relative_gap(X.astype(float), *factors(model)) < 1e-5


def test_single_precision_of_a_huge_column():
    X = (gammas((6, 5)) * [1e30, 1e-30, 1.0, 1.0, 1.0]).astype(np.float32)
    model = fitted(X)
    assert relative_gap(X.astype(float), *factors(model)) < 1e-5


def test_shifts_stay_within_their_bounds_and_sum_to_zero():
    rng = np.random.default_rng(0)
    for _ in range(200):
        axes = rng.integers(2, 5)
        shift = rng.normal(size=axes) * 300
        shift -= shift.mean()
        low, high = -rng.uniform(0, 400, axes), rng.uniform(0, 400, axes)
        found = scaling._within(shift, low, high)
        assert found.sum() == pytest.approx(0.0, abs=1e-9)
        # Bounds that hold 0 always leave room for shifts that sum to 0.
        assert (found >= low - 1e-9).all()
        assert (found <= high + 1e-9).all()
        inside = (shift >= low) & (shift <= high)
        if inside.all():
            assert_allclose(found, shift, atol=1e-9)


def test_bounds_that_leave_no_room_lose_no_product():
    found = scaling._within(np.array([5.0, -5.0]), np.array([10.0, 10.0]), np.array([20.0, 20.0]))
    assert found.sum() == pytest.approx(0.0, abs=1e-12)


def test_the_factors_of_a_fit_are_not_those_of_a_table():
    """What a fit returns is its own: changing it changes neither the data nor a second fit."""
    X = holed(gammas((6, 5)), 0.2)
    kept = X.copy()
    model = fitted(X)
    first = product(model)
    model.W_[:], model.H_[:] = 0.0, 0.0
    assert_array_equal(X, kept)
    assert_array_equal(product(fitted(X)), first)

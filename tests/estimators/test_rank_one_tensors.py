"""RankOneNMF of tensors: one factor an axis."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import halfseen
from halfseen import RankOneNMF, Status
from halfseen.errors import DataError, DataWarning, ParameterError
from tests.estimators.models import refused
from tests.estimators.test_rank_one_nmf import masked, table
from tests.rank_one import oracle
from tests.rank_one.cases import (
    NAN,
    TABLES,
    counts,
    fitted,
    holed,
    product,
    weights_for,
)


def cube(shape=(5, 4, 3), share=0.25, seed=0):
    return holed(counts(shape, seed, 4.0) + 1.0, share, seed)


TENSORS = {
    "few holes": cube(),
    "many holes": cube(share=0.6, seed=1),
    "whole": cube(share=0.0, seed=2),
    "four axes": cube((3, 4, 2, 3), 0.3, 3),
    "zeros": np.where(counts((5, 4, 3), 4, 1.0) < 1, 0.0, cube(seed=4)),
    "a slice of zeros": np.where(np.arange(5)[:, None, None] == 2, 0.0, cube(seed=5)),
    "long and thin": cube((30, 2, 2), 0.2, 6),
}
every_tensor = pytest.mark.parametrize("X", TENSORS.values(), ids=TENSORS)


@every_tensor
@pytest.mark.parametrize("weighted", [False, True])
def test_tensors_get_the_best_factors(X, weighted):
    C = weights_for(X) if weighted else None
    model = fitted(X, cell_weight=C)
    assert model.status_ is Status.CONVERGED
    for found, expected in zip(model.axis_factors_, oracle.best_tensor(X, C), strict=True):
        assert_allclose(found, expected, rtol=1e-8)
    assert_allclose(model.W_[:, 0], model.axis_factors_[0])
    assert_allclose(model.H_[:, 0], oracle.fit_tensor(model.axis_factors_[1:]).ravel(), rtol=1e-13)
    assert model.n_features_in_ == X[0].size
    assert np.all(np.diff(model.trace_["objective"]) <= 1e-12 * np.nansum(X) * 10)


@every_tensor
def test_no_direction_leads_down_for_a_tensor(X):
    best = [factor.astype(float) for factor in fitted(X).axis_factors_]
    lowest = oracle.cost_tensor(X, best)
    rng = np.random.default_rng(0)
    for length in (1e-4, 1e-2, 0.3):
        for _ in range(20):
            moved = [factor * np.exp(length * rng.normal(size=factor.size)) for factor in best]
            assert oracle.cost_tensor(X, moved) >= lowest - 1e-12 * np.nansum(X)
        for axis, factor in enumerate(best):
            for by in (*np.eye(factor.size), *-np.eye(factor.size)):
                moved = [*best[:axis], factor * np.exp(length * by), *best[axis + 1 :]]
                assert oracle.cost_tensor(X, moved) >= lowest - 1e-12 * np.nansum(X)


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_turned_tensors_have_the_turned_factors(axes, weighted):
    X = TENSORS["few holes"]
    C = weights_for(X) if weighted else None
    model = fitted(X, cell_weight=C)
    for turned in (X.transpose(axes), np.ascontiguousarray(X.transpose(axes))):
        other = fitted(turned, cell_weight=C.transpose(axes) if weighted else None)
        for axis, found in zip(axes, other.axis_factors_, strict=True):
            assert_allclose(found, model.axis_factors_[axis], rtol=1e-9)


@pytest.mark.parametrize("name", ["few holes", "half of it", "counts", "chain", "whole", "uneven"])
def test_axes_of_length_one_change_nothing(name):
    X = TABLES[name]
    matrix = fitted(X)
    for shape in ((*X.shape, 1), (X.shape[0], 1, X.shape[1]), (1, *X.shape), (*X.shape, 1, 1)):
        model = fitted(X.reshape(shape))
        fit = oracle.fit_tensor(model.axis_factors_).reshape(X.shape)
        assert_allclose(fit, product(matrix), rtol=1e-8)
        sums = [factor.sum() for factor in model.axis_factors_]
        assert_allclose(sums, sums[0], rtol=1e-12)


def test_a_limit_with_a_third_axis_of_length_one():
    X = np.array([[1.0, 0.0], [NAN, 2.0]])[:, :, None]
    model = fitted(X)
    assert oracle.cost_tensor(X, model.axis_factors_) <= 1e-8


TENSOR_WAYS = {
    "list of lists": lambda X: X.tolist(),
    "list of arrays": list,
    "single precision": lambda X: X.astype(np.float32),
    "column by column": np.asfortranarray,
    "masked": masked,
    "objects with None": lambda X: np.where(np.isnan(X), None, X.astype(object)),
    "turned": lambda X: np.ascontiguousarray(X.transpose(2, 1, 0)).transpose(2, 1, 0),
}


@pytest.mark.parametrize("way", TENSOR_WAYS.values(), ids=TENSOR_WAYS)
def test_every_form_of_a_tensor(way):
    X = TENSORS["few holes"]
    model = fitted(way(X))
    tolerance = 1e-6 if model.W_.dtype == np.float32 else 1e-9
    for found, expected in zip(model.axis_factors_, fitted(X).axis_factors_, strict=True):
        assert_allclose(found, expected, rtol=tolerance)
    assert_allclose(model.transform(way(X)), model.W_, rtol=tolerance)
    filled = model.complete(way(X))
    assert filled.shape == X.shape
    assert_allclose(filled, np.where(np.isnan(X), oracle.fit_tensor(model.axis_factors_), X), rtol=tolerance)


def test_whole_numbers_in_a_tensor_and_unseen_zeros():
    X = counts((5, 4, 3), 7, 1.5)
    expected = oracle.best_tensor(X)
    for data, unseen in ((X.astype(int), "missing"), (X, "zero"), (np.where(X > 0, X, NAN), "zero")):
        for found, best in zip(fitted(data, unseen=unseen).axis_factors_, expected, strict=True):
            assert_allclose(found, best, rtol=1e-9)


@every_tensor
def test_what_a_model_of_a_tensor_can_do(X, tmp_path):
    fit = oracle.fit_tensor(oracle.best_tensor(X))
    model = fitted(X)
    model.save(tmp_path / "model")
    seen = ~np.isnan(X)
    cost = oracle.cost_tensor(X, model.axis_factors_)
    rng = np.random.default_rng(0)
    places = tuple(rng.integers(0, size, 12) for size in X.shape)
    first, pairs = (0,) * (X.ndim - 1), (np.arange(2),) * (X.ndim - 1)
    for one in (model, halfseen.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert_allclose(one.predict(*places), fit[places], rtol=1e-8, atol=1e-12)
        assert one.predict(*(0 for _ in X.shape)) == pytest.approx(fit[(0,) * X.ndim], rel=1e-8)
        assert one.predict(0, *first).shape == ()
        assert_allclose(one.predict(np.arange(2), *first), fit[(np.arange(2), *first)], rtol=1e-8, atol=1e-12)
        assert_allclose(one.predict(1, *pairs), fit[(1, *pairs)], rtol=1e-8, atol=1e-12)
        assert_allclose(one.complete(X), np.where(seen, X, fit), rtol=1e-8, atol=1e-12)
        assert_allclose(one.transform(X), model.W_, rtol=1e-8, atol=1e-12)
        assert_allclose(one.transform(X[1:3]), model.W_[1:3], rtol=1e-8, atol=1e-12)
        assert_allclose(one.predict(X[1:3]), fit[1:3], rtol=1e-8, atol=1e-12)
        assert_allclose(one.inverse_transform(model.W_), fit, rtol=1e-8, atol=1e-12)
        assert one.score(X) == pytest.approx(-cost / seen.sum(), rel=1e-8)
        for mine, theirs in zip((*one.axis_factors_, *one.parts_), (*model.axis_factors_, *model.parts_), strict=True):
            assert_array_equal(mine, theirs)
        assert one.n_parts_ == 1
        ids, scores = one.recommend([0], n=3)
        holes = np.flatnonzero(~seen[0])
        best = holes[np.argsort(-model.H_[holes, 0], kind="stable")][:3]
        assert_array_equal(ids[0], best)
        assert_allclose(scores[0], (model.W_[0] * model.H_[best, 0]), rtol=1e-12)


def test_weights_of_a_tensor_reach_everything():
    X = TENSORS["few holes"]
    C = weights_for(X)
    model = fitted(X, cell_weight=C)
    assert_allclose(model.transform(X, cell_weight=C), model.W_, rtol=1e-9)
    assert_allclose(RankOneNMF().fit_transform(X, cell_weight=C), model.W_, rtol=1e-9)
    assert np.abs(model.transform(X) / model.W_ - 1).max() > 1e-3


def test_a_tensor_that_was_not_settled_is_completed_from_its_own_rows():
    X = TENSORS["many holes"]
    model = fitted(X, max_iter=1)
    expected = np.where(np.isnan(X), oracle.fit_tensor(model.axis_factors_), X)
    assert_allclose(model.complete(X), expected, rtol=1e-12)


def test_empty_slices_of_a_tensor():
    X = cube()
    X[:, 2] = NAN
    with pytest.warns(DataWarning, match="none in slice 2 along axis 1"):
        model = RankOneNMF().fit(X)
    rest = fitted(X[:, [0, 1, 3]])
    assert_allclose(model.axis_factors_[0], rest.axis_factors_[0], rtol=1e-9)
    assert_allclose(model.axis_factors_[1][[0, 1, 3]], rest.axis_factors_[1], rtol=1e-9)
    assert model.axis_factors_[1][2] == pytest.approx(rest.axis_factors_[1].mean(), rel=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tensors_of_any_scale(axis):
    sizes = [np.ones(size) for size in (5, 4, 3)]
    sizes[axis] = np.logspace(-90, 90, sizes[axis].size)
    X = oracle.fit_tensor(sizes) * cube()
    fit = oracle.fit_tensor(fitted(X).axis_factors_)
    for other in range(3):
        rest = tuple(one for one in range(3) if one != other)
        assert_allclose(np.where(np.isnan(X), 0.0, fit).sum(rest), np.nansum(X, rest), rtol=1e-8)


def test_invalid_tensors_are_refused():
    X = cube()
    for value, place in ((-1.0, (1, 2, 0)), (np.inf, (0, 3, 2)), (-np.inf, (4, 0, 0))):
        wrong = X.copy()
        wrong[place] = value
        with refused(DataError, found=f"{value:g}", where=f"at position {place}"):
            RankOneNMF().fit(wrong)
    ragged = [[[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0, 4.0]]]
    text = [[["a", "b"], ["c", "d"]]]
    for wrong in (
        np.full((2, 3, 4), NAN),
        np.empty((2, 0, 4)),
        np.empty((0, 2, 4)),
        ragged,
        text,
        np.full((3, 2, 2), 1e308),
    ):
        with refused(DataError):
            RankOneNMF().fit(wrong)
    for weights in (np.ones((5, 12)), -np.ones(X.shape)):
        with refused(DataError):
            RankOneNMF().fit(X, cell_weight=weights)


def test_rows_that_do_not_fit_a_model_of_a_tensor_are_refused():
    X = cube()
    model = fitted(X)
    for call in (model.transform, model.predict, model.complete, model.score):
        for wrong in (X[0], X[:, :, :2], X.reshape(5, 12), X[..., None], np.ones(3)):
            with refused(DataError, "X", found="shape"):
                call(wrong)
    for wrong in ((0, 0), (0, 0, 0, 0)):
        with refused(ParameterError, found=f"{len(wrong)}"):
            model.predict(*wrong)
    for wrong in ((0, 4, 0), (0, 0, 3), (0, -1, 0), (0, "a", 0), (0, 0.5, 0), (5, 0, 0), (-1, 0, 0)):
        with refused(DataError):
            model.predict(*wrong)
    with refused(DataError, "cell_weight"):
        model.transform(X, cell_weight=np.ones((5, 12)))
    matrix = fitted(table())
    with refused(ParameterError):
        matrix.predict(0, 0, 0)
    with refused(DataError):
        matrix.transform(X)


def test_a_model_can_be_fitted_to_a_matrix_again():
    model = RankOneNMF().fit(cube())
    model.fit(table())
    assert_allclose(product(model), product(fitted(table())), rtol=1e-12)
    assert model.predict(0, 1).shape == ()
    assert model.complete(table()).shape == (9, 7)

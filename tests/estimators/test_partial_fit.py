"""New cells without another fit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.engines import Side
from halfseen.errors import DataError

MODELS = [
    hs.SquaredOrdNMF(4, l2=2.0, tol=1e-8, max_iter=2000, random_state=0),
    hs.ImplicitMF(4, random_state=0),
    hs.OrdNMF(3, random_state=0),
    hs.OrdNMF(3, noise="exponential", random_state=0),
    hs.WeightedNMF(3, loss="frobenius", tol=1e-6, max_iter=5000, random_state=0),
    hs.OrdinalMF(3, random_state=0),
    hs.RoundMF(2, random_state=0),
    hs.PoissonFactorization(3, random_state=0),
    hs.CompoundPoisson(3, random_state=0),
    hs.BernoulliPoisson(3, random_state=0),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
NEW_ROWS, NEW_COLUMN = ("u38", "u39"), "i24"


def levels(seed=0, rows=40, columns=25):
    """Cells of levels 1 to 5 around a planted product."""
    random = np.random.default_rng(seed)
    x = random.gamma(2.0, 0.5, (rows, 2)) @ random.gamma(2.0, 0.5, (columns, 2)).T
    y = np.clip(np.round(x + 1 + 0.3 * random.normal(size=x.shape)), 1, 5)
    seen = random.random(x.shape) < 0.5
    return [(f"u{u}", f"i{i}", float(y[u, i])) for u, i in np.argwhere(seen)]


def is_new(cell):
    return cell[0] in NEW_ROWS or cell[1] == NEW_COLUMN


def updated(model):
    """Fitted to some cells, then given the others; with all cells, and the factors before."""
    cells = levels()
    model = type(model)(**model.get_params()).fit([cell for cell in cells if not is_new(cell)])
    before = dict(zip(model.row_labels_, model.W_.copy(), strict=True)), model.H_.copy()
    return model.partial_fit([cell for cell in cells if is_new(cell)]), cells, *before


@every_model
def test_what_has_no_new_cells_stays_to_the_last_bit(model):
    model, cells, W, H = updated(model)
    touched = {row for row, column, _ in cells if is_new((row, column))}
    for position, label in enumerate(model.row_labels_):
        if label not in touched:
            assert np.array_equal(model.W_[position], W[label])
    assert np.array_equal(model.H_[: len(H)], H)
    assert model.n_features_in_ == len(H) + 1
    assert list(model.column_labels_[len(H) :]) == [NEW_COLUMN]


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_models_of_a_blend_that_need_a_fit_get_one(axis, tmp_path):
    models = [hs.OrdinalMF(2, own_thresholds=axis, max_iter=5, tol=0, random_state=0), hs.Popularity()]
    cells = levels()
    blend = hs.Blend(models, random_state=0).fit([cell for cell in cells if not is_new(cell)])
    blend.partial_fit([cell for cell in cells if is_new(cell)]).save(tmp_path / "model.hs")
    ids = hs.load(tmp_path / "model.hs").recommend(NEW_ROWS, 3).ids
    assert np.array_equal(ids, blend.recommend(NEW_ROWS, 3).ids)


def test_a_new_column_has_its_name_also_in_a_file(tmp_path):
    names = ["a", "b", "c", "d"]
    model = hs.WeightedNMF(1, random_state=0).fit(pd.DataFrame(np.ones((4, 3)), columns=names[:3], index=list("vwxy")))
    model.partial_fit(pd.DataFrame(np.ones((1, 4)), columns=names, index=["z"])).save(tmp_path / "model.hs")
    for one in (model, hs.load(tmp_path / "model.hs")):
        assert (one.n_features_in_, one.feature_names_in_.tolist()) == (4, names)


@every_model
def test_rows_with_new_cells_are_solved_from_all_their_cells(model):
    model, cells, *_ = updated(model)
    folded = dict(zip(dict.fromkeys(row for row, *_ in cells), model.transform(cells), strict=True))
    for label in (*NEW_ROWS, next(row for row, column, _ in cells if column == NEW_COLUMN)):
        position = model.row_labels_.tolist().index(label)
        assert np.allclose(model.W_[position], folded[label], rtol=0.01, atol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        model for model in MODELS if not isinstance(model, hs.OrdinalMF | hs.RoundMF)
    ],  # whose ridge has a centre per side
    ids=repr,
)
def test_new_columns_are_solved_as_new_rows_of_the_transposed_matrix_are(model):
    record = model.fit(hs.observe(levels(), unseen=model.unseen)).model_
    new = hs.observe(levels(seed=1, columns=4), unseen=model.unseen)
    shape = len(record.W), new.shape[1]  # some rows may have no new cell
    new, turned = (
        hs.Observed.from_cells(*positions, new.values, size, unseen=new.unseen)
        for positions, size in (
            ((new.row_of_cell(), new.indices), shape),
            ((new.indices, new.row_of_cell()), shape[::-1]),
        )
    )
    swapped = replace(record, rows=record.columns, columns=record.rows)
    columns, rows = (
        one._folded(cells, side, "cpu", 1, "Model").mean
        for one, cells, side in ((record, new, Side.COLUMNS), (swapped, turned, Side.ROWS))
    )
    assert columns.shape == (4, record.H.shape[1])
    assert np.allclose(columns, rows, rtol=1e-4, atol=1e-6)


def test_a_new_column_is_the_best_with_the_rows_fixed():
    """Least squares with factors of 0 or more: by scipy, from the rows that the column was solved with."""
    from scipy.optimize import nnls

    cells = levels()
    model = hs.WeightedNMF(2, loss="frobenius", tol=1e-10, max_iter=20_000, random_state=0)
    model.fit([cell for cell in cells if cell[1] != NEW_COLUMN])
    rows = dict(zip(model.row_labels_, model.W_.copy(), strict=True))
    new = [cell for cell in cells if cell[1] == NEW_COLUMN]
    model.partial_fit(new)
    # rows are solved first, with an average column in the place of the new one
    average = model.H_[:-1].mean(axis=0)
    all_columns = np.vstack([model.H_[:-1], average])
    place = {label: at for at, label in enumerate(model.column_labels_)}
    A = []
    for row, _, _ in new:
        mine = [(place[column], value) for one, column, value in cells if one == row]
        far, y = all_columns[[at for at, _ in mine]], np.array([value for _, value in mine])
        A.append(nnls(far, y)[0])
    assert np.linalg.norm(np.array(A) - [rows[row] for row, *_ in new]) > 0
    expected = nnls(np.array(A), np.array([value for *_, value in new]))[0]
    assert np.allclose(model.H_[-1], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "model", [hs.OrdinalMF(2, random_state=0), hs.WeightedNMF(2, tol=1e-7, max_iter=5000, random_state=0)], ids=repr
)
def test_held_out_cells_of_new_rows_are_predicted_about_as_well_as_by_a_fit_to_all(model):
    cells = levels(rows=200)
    new = [cell for cell in cells if int(cell[0][1:]) >= 150]
    hidden, shown, old = new[::4], [cell for at, cell in enumerate(new) if at % 4], cells[: cells.index(new[0])]
    full = type(model)(**model.get_params()).fit(old + shown)
    model.fit(old).partial_fit(shown)
    u, i, y = map(list, zip(*hidden, strict=True))
    errors = [np.sqrt(np.mean((one.predict(u, i) - np.array(y)) ** 2)) for one in (model, full)]
    assert errors[0] < 1.1 * errors[1] < 0.9 * np.std(y)


def test_a_cell_that_was_seen_gets_its_new_value():
    cells = levels()
    model = hs.OrdinalMF(2, random_state=0).fit(cells)
    row, column, value = cells[0]
    model.partial_fit([(row, column, 6.0 - value if value != 3 else 5.0)])
    seen = model.seen_
    at = seen.indptr[0] + np.flatnonzero(seen.indices[: seen.indptr[1]] == 0)
    assert seen.values[at] == [6.0 - value if value != 3 else 5.0]
    assert seen.values.size == len(cells)


def test_the_first_call_fits_and_empty_news_change_nothing():
    cells = levels()
    model = hs.WeightedNMF(2, random_state=0).partial_fit(cells)
    W = model.W_.copy()
    assert np.array_equal(W, hs.WeightedNMF(2, random_state=0).fit(cells).W_)
    model.partial_fit(hs.observe(cells).select_cells(np.zeros(0, int)))
    assert np.array_equal(model.W_, W)


def test_rows_of_arrays_are_new_ones():
    X = np.random.default_rng(0).random((12, 5))
    model = hs.WeightedNMF(2, loss="frobenius", tol=1e-8, max_iter=10_000, random_state=0).fit(X)
    model.partial_fit(X[:3])
    assert model.W_.shape == (15, 2)
    assert np.allclose(model.W_[12:], model.transform(X[:3]), atol=1e-3)
    with pytest.raises(ValueError, match="X has 4 features"):
        model.partial_fit(X[:, :4])


def test_weights_of_cells_are_kept():
    cells, random = levels(), np.random.default_rng(3)
    weights = random.uniform(0.5, 2.0, len(cells))
    old = np.array([not is_new(cell) for cell in cells])
    model = hs.WeightedNMF(2, random_state=0)
    model.fit([cell for cell, one in zip(cells, old, strict=True) if one], cell_weight=weights[old])
    model.partial_fit([cell for cell, one in zip(cells, old, strict=True) if not one], cell_weight=weights[~old])
    assert model.seen_.weights.sum() == pytest.approx(weights.sum())


def test_files_keep_what_is_needed(tmp_path):
    cells = levels()
    model = hs.SquaredOrdNMF(3, l2=1.0, random_state=0).fit([cell for cell in cells if not is_new(cell)])
    model.save(tmp_path / "model.hs")
    again, new = hs.load(tmp_path / "model.hs"), [cell for cell in cells if is_new(cell)]
    assert np.array_equal(again.partial_fit(new).W_, model.partial_fit(new).W_)


def test_labels_of_two_kinds_become_text():
    cells = hs.Observed.from_cells(
        [0, 0, 1, 1], [0, 1, 0, 1], [3.0, 4.0, 2.0, 5.0], (2, 2), row_labels=[1, 2], column_labels=[10, 11]
    )
    model = hs.OrdinalMF(1, random_state=0).fit(cells)
    model.partial_fit([("bob", "10", 4.0)])
    assert model.row_labels_.tolist() == ["1", "2", "bob"]
    assert model.column_labels_.tolist() == [10, 11]


def test_refused_where_it_makes_no_sense():
    assert not hasattr(hs.OrdinalMF(1, own_thresholds="rows"), "partial_fit")
    assert not hasattr(hs.OrdinalMF(1, inference="gibbs"), "partial_fit")
    model = hs.WeightedNMF(1, random_state=0).fit(levels())
    with pytest.raises(DataError, match="must have labels of rows"):
        model.partial_fit(np.ones((2, 25)))


@pytest.mark.parametrize("model", [hs.Popularity(), hs.ItemGraph(l2=3.0), hs.ItemGraph(random_state=0)], ids=repr)
def test_what_is_found_at_once_is_found_from_all_cells(model):
    cells = levels()
    model.fit([cell for cell in cells if not is_new(cell)])
    found = {name: getattr(model, f"{name}_") for name in model.finds}
    model.partial_fit([cell for cell in cells if is_new(cell)])
    at_once = (
        type(model)(**model.get_params())
        .set_params(**found)
        .fit([cell for cell in cells if not is_new(cell)] + [cell for cell in cells if is_new(cell)])
    )
    rows = model.row_labels_
    assert np.array_equal(rows, at_once.row_labels_)
    for row in rows[[0, -1]]:
        assert np.allclose(model.predict(row, model.column_labels_), at_once.predict(row, model.column_labels_))


def test_a_blend_updates_its_models_and_keeps_their_weights(tmp_path):
    cells = levels()
    blend = hs.Blend([hs.ImplicitMF(3), hs.ItemGraph()], random_state=0)
    blend.fit([cell for cell in cells if not is_new(cell)])
    weights = blend.weights_.copy()
    blend.save(tmp_path / "blend.hs")
    new = [cell for cell in cells if is_new(cell)]
    blend.partial_fit(new)
    assert np.array_equal(blend.weights_, weights)
    assert blend.models_["implicitmf"].shape == blend.models_["itemgraph"].shape == blend.model_.shape == (40, 25)
    assert blend.recommend(["u39"], n=3).is_known.all()
    with pytest.raises(DataError, match="must know the parameters"):
        hs.load(tmp_path / "blend.hs").partial_fit(new)

"""Serving: what is unknown, similar rows and columns, explanations, values given that they are seen."""

import pickle

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import halfseen
from halfseen import OrdinalMF, OrdNMF, PoissonFactorization, SquaredOrdNMF, WeightedNMF
from halfseen.errors import DataError, DataWarning, ParameterError
from tests.estimators.models import ITEMS, USERS, counts, fitted, levels_matrix, long_frame, refused, seen_matrix
from tests.laws.estimators import ESTIMATORS, every_estimator, suited
from tests.laws.estimators import fitted as short_fit

X = seen_matrix()


# what is unknown


def test_unknown_rows_get_popular_columns_and_a_flag():
    model = fitted(long_frame())
    with pytest.warns(
        DataWarning, match=r"Rows should be among the 4 .* 2 of 4 that are not, the first 'eve'"
    ) as caught:
        found = model.recommend(["ann", "eve", "bob", "fay"], n=3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found.is_known.tolist() == [True, False, True, False]
    assert found.rows.tolist() == ["ann", "eve", "bob", "fay"]
    assert len(found.notes) == 1
    times = long_frame()["item"].value_counts().reindex(ITEMS)
    order = model.column_labels_.tolist()  # of equally popular ones the first comes first
    popular = sorted(order, key=lambda item: (-times[item], order.index(item)))[:3]
    assert found.ids[1].tolist() == found.ids[3].tolist() == popular
    assert found.scores[1].tolist() == times[popular].tolist()
    known = model.recommend(["ann", "bob"], n=3)
    width = known.ids.shape[1]
    assert_array_equal(found.ids[[0, 2], :width], known.ids)
    assert_array_equal(found.scores[[0, 2], :width], known.scores)
    assert known.is_known.all()
    assert known.notes == ()
    with pytest.warns(DataWarning, match="1 of 1"):
        assert model.recommend("eve", n=2, exclude=popular[:1]).ids.tolist() == [popular[1:3]]
    with refused(DataError, found="'eve' (2 unknown in all)"):
        model.recommend(["ann", "eve", "fay"], strict=True)


def test_unknown_positions_are_unknown_rows():
    with pytest.warns(DataWarning, match="2 of 3 that are not, the first 4"):
        found = fitted(X).recommend([0, 4, -1], n=1)
    assert found.is_known.tolist() == [True, False, False]


def test_unknown_columns_of_filters_are_left_out_and_counted():
    model = fitted(long_frame())
    with pytest.warns(DataWarning, match="filter_items should be among the 5 .* 2 of 3 that are not, the first 'gin'"):
        assert model.recommend("ann", filter_items=["gin", "cod", "rum"]).ids.tolist() == [["cod"]]
    with pytest.warns(DataWarning, match="exclude should be among the 5 .* 1 of 2 that are not, the first 'gin'"):
        assert model.recommend("ann", exclude=["cod", "gin"]).ids.tolist() == [["egg"]]
    with pytest.warns(DataWarning, match="1 of 1"):
        assert model.recommend("ann", filter_items=["gin"]).ids.shape == (1, 0)
    with refused(ParameterError, "filter_items"):
        model.recommend("ann", filter_items=["cod"], items=["cod"])


def frame_of(histories):
    lines = [(f"u{row}", item, value) for row, one in enumerate(histories) for item, value in one.items()]
    return pd.DataFrame(lines, columns=["user", "item", "rating"])


@pytest.mark.parametrize("kind", [list, frame_of], ids=["dicts", "frame"])
def test_unknown_columns_of_histories_are_left_out_and_counted(kind):
    model = fitted(long_frame())
    histories = [{"ale": 5.0, "gin": 3.0, "dip": 1.0}, {"bun": 2.0, "rum": 1.0, "gin": 4.0}]
    known = [{item: value for item, value in one.items() if item in ITEMS} for one in histories]
    data = kind(histories)
    with pytest.warns(DataWarning, match="histories should be among the 5 that were fitted") as caught:
        found = model.recommend(data)
    assert len(caught) == len(found.notes) == 1
    assert ("3 of 6" if kind is list else "3 in all") in str(caught[0].message)
    expected = model.recommend(known)
    assert_array_equal(found.ids, expected.ids)
    assert_allclose(found.scores, expected.scores, rtol=1e-12)
    with refused(DataError, found="'gin'"):
        model.recommend(data, strict=True)


def test_transform_still_refuses_unknown_columns():
    for data in ([{"gin": 3.0}], frame_of([{"gin": 3.0}])):
        with refused(DataError, found="'gin'"):
            fitted(long_frame()).transform(data)


def test_values_between_two_levels_are_taken_to_the_nearer_one():
    Y = levels_matrix() / 2.0  # 0.5, 1, ..., 2.5
    model = OrdNMF(2, max_iter=20, tol=0, random_state=0).fit(Y)
    given, near = {0: 0.6, 1: 2.2, 2: 1.25, 3: 0.1, 5: 2.5}, {0: 0.5, 1: 2.0, 2: 1.0, 3: 0.5, 5: 2.5}
    with pytest.warns(DataWarning, match="4 of 5 between two levels"):
        found = model.recommend(given)
    expected = model.recommend(near)
    assert_array_equal(found.ids, expected.ids)
    assert_array_equal(found.scores, expected.scores)
    with refused(DataError, "levels"):
        model.recommend(given, strict=True)
    for beyond in (3.0, -0.1):
        with pytest.raises(DataError):
            model.recommend({0: beyond})


# the answer


def test_recommendations_are_a_pair_that_knows_more():
    found = fitted(long_frame()).recommend(["ann", "bob"])
    ids, scores = found
    assert ids is found.ids
    assert scores is found.scores
    assert len(found) == 2
    again = pickle.loads(pickle.dumps(found))
    assert_array_equal(again.ids, found.ids)
    assert again.rows.tolist() == ["ann", "bob"]
    assert "ids=" in repr(found)


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow", None])
def test_frames_have_a_line_for_each_row_and_rank(backend):
    frame = long_frame()
    frame = pd.concat([frame, pd.DataFrame({"user": ["ann"], "item": ["cod"], "rating": [2.0]})])
    found = fitted(frame).recommend(["ann", "bob"])
    made = found.to_frame(backend)
    assert type(made).__module__.split(".")[0] == (backend or "polars")
    lines = (
        made.to_pylist()
        if backend == "pyarrow"
        else made.to_dict("records")
        if backend == "pandas"
        else made.to_dicts()
    )
    assert [(line["row"], line["rank"], line["item"]) for line in lines] == [
        ("ann", 1, "egg"), ("bob", 1, found.ids[1, 0]), ("bob", 2, found.ids[1, 1]),
    ]  # fmt: skip
    assert [line["score"] for line in lines] == [found.scores[0, 0], *found.scores[1]]
    assert all(line["known"] is True for line in lines)
    with refused(ParameterError, "backend"):
        found.to_frame("excel")


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_frames_of_nothing_and_of_ids_of_two_kinds_have_text(backend):
    model = fitted(long_frame())
    schema = nw.from_native(model.recommend("ann", filter_items=[]).to_frame(backend)).schema
    if backend != "pandas":  # whose empty columns of text may be objects
        assert schema["row"] == schema["item"] == nw.String
    with pytest.warns(DataWarning, match="the first 7"):
        mixed = nw.from_native(model.recommend(["ann", 7], n=1).to_frame(backend))
    assert mixed["row"].to_list() == ["ann", "7"]


# similar rows and columns


def by_hand(V, wanted, n):
    """Cosines as a matrix of all pairs."""
    unit = V / np.linalg.norm(V, axis=1)[:, None]
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines[wanted], axis=1, kind="stable")[:, :n]
    return order, np.take_along_axis(cosines[wanted], order, axis=1)


@every_estimator
def test_similar_rows_and_columns_are_those_of_the_largest_cosine(estimator):
    model = short_fit(estimator, suited(estimator, np.nan_to_num(counts(), nan=1.0)) + 0.0)
    bias = 2 * bool(getattr(estimator, "biases", False))
    for ask, factor in ((model.similar_users, model.W_), (model.similar_items, model.H_)):
        V = factor[:, : factor.shape[1] - bias]
        if V.shape[1] == 1 or not np.all(np.linalg.norm(V, axis=1) > 0):
            continue
        found = ask([3, 0], n=4)
        order, cosines = by_hand(V, [3, 0], 4)
        assert_allclose(found.scores, cosines, rtol=1e-9, atol=1e-12)
        assert found.rows.tolist() == [3, 0]
        gaps = np.abs(np.diff(cosines, axis=1)) > 1e-9
        if gaps.all():
            assert_array_equal(found.ids, order)


def test_unknown_ones_are_left_out_beside_known_ones_and_counted():
    model = fitted(long_frame())
    with pytest.warns(DataWarning, match="1 of 3 that are not, the first 'gin'") as caught:
        found = model.similar_items(["ale", "gin", "cod"], n=2)
    assert (len(caught), caught[0].filename) == (1, __file__)
    assert found.rows.tolist() == ["ale", "cod"]
    assert_array_equal(found.ids, model.similar_items(["ale", "cod"], n=2).ids)
    with pytest.warns(DataWarning, match="1 of 2"):
        assert model.similar_users(["eve", "ann"]).rows.tolist() == ["ann"]
    with refused(DataError, found="'gin'"):
        model.similar_items(["ale", "gin"], strict=True)


def test_similar_by_label():
    model = fitted(long_frame())
    found = model.similar_items("ale", n=2)
    assert found.rows.tolist() == ["ale"]
    assert "ale" not in found.ids[0].tolist()
    assert set(model.similar_users(["ann"], n=9).ids[0]) == set(USERS) - {"ann"}
    with refused(DataError, found="'gin'"):
        model.similar_items("gin")


# explanations


@pytest.mark.parametrize(
    "estimator",
    [
        PoissonFactorization(3), SquaredOrdNMF(3), OrdNMF(3, noise="gamma", noise_shape=2.0), WeightedNMF(3),
        OrdinalMF(3), OrdinalMF(2, inference="gibbs", n_sweeps=8, n_burn=2, n_draws=4), halfseen.RankOneNMF(),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_explanations_are_those_of_folding_in_without_each_cell(estimator, monkeypatch):
    Y = levels_matrix()
    cells = pd.DataFrame(np.argwhere(Y), columns=["row", "col"]).assign(value=Y[Y > 0])
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    model = estimator.fit(cells)
    history = {int(column): float(value) for row, column, value in cells.to_numpy() if row == 3}
    item = next(column for column in range(20) if column not in history and column != 7)

    def score(one):
        found = model.recommend(one, n=20, exclude_seen=False)
        return dict(zip(found.ids[0].tolist(), found.scores[0].tolist(), strict=True))[item]

    expected = {
        column: score(history) - score({other: value for other, value in history.items() if other != column})
        for column in history
    }
    for row in (3, history):
        for at_a_time in (1 << 20, 20):
            monkeypatch.setattr("halfseen.ranking.CELLS_EXPLAINED", at_a_time)
            found = model.explain(row, item, n=100)
            assert_allclose(found.score, score(history), rtol=1e-9)
            assert sorted(found.items.tolist()) == sorted(history)
            assert_allclose(found.contributions, [expected[column] for column in found.items], rtol=1e-7, atol=1e-9)
            assert np.all(np.diff(found.contributions) <= 0)
            assert found.values.tolist() == [history[column] for column in found.items]
    assert len(model.explain(3, item, n=2).items) == 2


@pytest.mark.filterwarnings("ignore:Every (row|column)")
def test_explanations_know_the_weights_of_cells():
    Y, weights = levels_matrix() * 1.0, np.random.default_rng(0).uniform(0.5, 2.0, (30, 20))
    model = PoissonFactorization(2, max_iter=30, tol=0, random_state=0, unseen="missing", prior_rate=1.0)
    model.fit(np.where(Y > 0, Y, np.nan), cell_weight=weights)
    seen = np.flatnonzero(Y[3] > 0)

    def score(columns):
        row = np.full((1, 20), np.nan)
        row[0, columns] = Y[3, columns]
        return float(model.transform(row, cell_weight=weights[[3]])[0] @ model.H_[0])

    found = model.explain(3, 0, n=20)
    expected = [score(seen) - score(seen[seen != item]) for item in found.items]
    assert_allclose(found.contributions, expected, rtol=1e-7, atol=1e-9)


def test_an_explanation_can_be_read():
    explained = fitted(long_frame()).explain("bob", "ale", n=2)
    lines = repr(explained).split("\n")
    assert lines[0].startswith("ale for bob: score ")
    assert len(lines) == 3
    assert explained.to_frame("pandas").columns.tolist() == ["item", "value", "contribution"]
    with refused(DataError, found="'eve'"):
        fitted(long_frame()).explain("eve", "ale")
    with refused(DataError, found="2 and 1"):
        fitted(long_frame()).explain(["ann", "bob"], "ale")


def test_without_the_values_of_training_cells_only_histories_are_explained():
    model = halfseen.RankOneNMF().fit(np.where(np.isnan(X), 1.0, X))
    assert model.seen_.values is None
    with refused(DataError, remedy="pass the history"):
        model.explain(0, 1)
    assert len(model.explain({0: 1.0, 2: 2.0}, 1).items) == 2


# values of seen cells


@every_estimator
def test_the_mean_of_what_is_seen(estimator):
    Y = counts()
    model = short_fit(estimator, suited(estimator, Y))
    if isinstance(model, halfseen.RankOneNMF):
        return
    columns = np.arange(20)
    mean = model.predict(3, columns)
    if model.unseen == "missing":
        assert_array_equal(model.predict(3, columns, given_seen=True), mean)
    elif "likelihood" not in model.offers:
        with refused(ParameterError, "given_seen"):
            model.predict(3, columns, given_seen=True)
    elif hasattr(model, "predict_proba"):
        given = model.predict(3, columns, given_seen=True)
        p, numbers = model.predict_proba(3, columns)[:, 1:], model.levels_[1:]
        is_enough = p.sum(axis=1) > 1e-6
        assert_allclose(given[is_enough], p[is_enough] @ numbers / p[is_enough].sum(axis=1), rtol=1e-6)
        assert np.all((given >= numbers[0] - 1e-9) & (given <= numbers[-1] + 1e-9))
    else:  # counts: P(y > 0) by draws
        given = model.predict(3, columns, given_seen=True)
        x = model.W_[3] @ model.H_.T
        likelihood = model.likelihood_
        draws = likelihood.sample(np.tile(x, (20000, 1)), np.random.default_rng(0))
        if likelihood.highest is not None:
            assert_array_equal(given, 1.0)
            return
        seen = draws > 0
        enough = seen.sum(axis=0) > 500
        sampled = draws.sum(axis=0)[enough] / seen.sum(axis=0)[enough]
        error = draws.std(axis=0)[enough] / np.sqrt(seen.sum(axis=0)[enough])
        assert np.all(np.abs(given[enough] - sampled) < 5 * error + 1e-3)


def test_the_mean_of_what_is_seen_has_its_limit_where_nothing_is_expected():
    """E[y | y > 0] of a count at a rate near 0 is 1, and the lowest level where levels are."""
    model = PoissonFactorization(1, max_iter=5, tol=0, random_state=0).fit(np.eye(6) * 3)
    model.model_.rows.mean[:] = 1e-200
    assert_allclose(model.predict(0, [0, 1], given_seen=True), 1.0)


def test_every_estimator_recommends():
    assert all(hasattr(estimator, "explain") for estimator in ESTIMATORS)

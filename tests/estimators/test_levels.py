"""Levels: numbers of any kind, or texts with an order; their weights; what is refused as a level."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import halfseen
from halfseen import BernoulliPoisson, OrdNMF, PoissonFactorization, SquaredOrdNMF, observe
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators import squared_models
from halfseen.metrics import predictive_check
from tests.estimators.models import counts, folding_until, levels_matrix, refused
from tests.ordinal import oracle
from tests.ordinal.test_cells_seen_oftener import K, draw, squared_steps

ORDER = ["bad", "fair", "good"]
ASK = {"random_state": 0, "max_iter": 20, "tol": 0}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def opinions(seed=0):
    """Users, items and words, each word seen."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((12, 9)) < 0.6)
    words = rng.choice(ORDER, rows.size)
    return pd.DataFrame({"user": [f"u{i}" for i in rows], "item": [f"i{j}" for j in columns], "rating": words})


def in_numbers(frame):
    return frame.assign(rating=[ORDER.index(word) + 1 for word in frame.rating])


def object_array(frame):
    """The same opinions as an array with None for unseen, rows and columns in the order of their first appearance."""
    rows, columns = (pd.unique(frame[side]).tolist() for side in ("user", "item"))
    array = np.full((len(rows), len(columns)), None, dtype=object)
    for user, item, word in frame.itertuples(index=False):
        array[rows.index(user), columns.index(item)] = word
    return array


def triples(frame):
    return [tuple(line) for line in frame.itertuples(index=False)]


def written(frame, tmp_path):
    frame.to_csv(tmp_path / "words.csv", index=False)
    return tmp_path / "words.csv"


# Texts.


@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
@pytest.mark.parametrize("form", ["pandas", "polars", "array", "nested lists", "triples", "file", "observed", "wide"])
def test_texts_are_levels_in_whatever_form_they_come(kind, form, tmp_path):
    frame = opinions()
    array = object_array(frame)
    data = {
        "pandas": frame,
        "polars": pl.DataFrame(frame.to_dict("list")),
        "array": array,
        "nested lists": array.tolist(),
        "triples": triples(frame),
        "file": written(frame, tmp_path),
        "observed": observe(frame, levels=ORDER, unseen="zero"),
        "wide": pd.DataFrame(array, index=[f"r{i}" for i in range(len(array))], columns=list("abcdefghi")),
    }[form]
    plain = kind(2, **ASK).fit(in_numbers(frame))
    model = kind(2, levels=ORDER, **ASK).fit(data)
    assert_array_equal(model.W_, plain.W_)
    assert_array_equal(model.thresholds_, plain.thresholds_)
    assert model.levels_.tolist() == [None, *ORDER]
    assert_allclose(model.transform(data), plain.transform(in_numbers(frame)), rtol=1e-12)
    assert model.log_likelihood(data) == pytest.approx(plain.log_likelihood(in_numbers(frame)), rel=1e-12)
    assert model.score(data) == pytest.approx(plain.score(in_numbers(frame)), rel=1e-12)


@pytest.mark.parametrize("categories", [ORDER, ["awful", "bad", "so-so", "fair", "good", "superb"]])
def test_the_order_of_ordered_categories_is_known(categories):
    """Those that nobody used are no levels."""
    frame = opinions()
    plain = OrdNMF(2, **ASK).fit(in_numbers(frame))
    for data in (
        frame.assign(rating=pd.Categorical(frame.rating, categories, ordered=True)),
        pl.DataFrame(frame.to_dict("list"), schema_overrides={"rating": pl.Enum(categories)}),
    ):
        model = OrdNMF(2, **ASK).fit(data)
        assert_array_equal(model.W_, plain.W_)
        assert model.levels_.tolist() == [None, *ORDER]
        assert model.log_likelihood(data) == pytest.approx(plain.log_likelihood(in_numbers(frame)), rel=1e-12)
        held = halfseen.data.split_cells(observe(data, levels="ordered", unseen="zero"), random_state=0)[1]
        assert model.log_likelihood(held) < 0  # cells that carry their own, longer list of levels
        assert held.level_names.tolist() == categories


def test_levels_come_out_as_the_texts_that_went_in(tmp_path):
    frame = opinions()
    plain, model = OrdNMF(2, **ASK).fit(in_numbers(frame)), OrdNMF(2, levels=ORDER, **ASK).fit(frame)
    users, items = frame.user.tolist(), frame.item.tolist()
    codes = plain.predict_level(users, items).astype(int)
    assert model.predict_level(users, items).tolist() == [[None, *ORDER][code] for code in codes]
    assert_array_equal(model.predict_proba(users, items), plain.predict_proba(users, items))
    assert_array_equal(model.predict(users, items), plain.predict(users, items))  # the mean number of the level
    low, high = model.predict_interval(users, items)
    plain_low, plain_high = plain.predict_interval(users, items)
    assert low.tolist() == [[None, *ORDER][int(code)] for code in plain_low]
    assert high.tolist() == [[None, *ORDER][int(code)] for code in plain_high]
    assert_array_equal(model.sample(1, 0)[0].toarray(), plain.sample(1, 0)[0].toarray())
    new = [{items[0]: "good", items[1]: "bad"}]
    numbers = [{items[0]: 3, items[1]: 1}]
    assert_array_equal(model.recommend(new, n=3).ids, plain.recommend(numbers, n=3).ids)
    ranking = {"k": 3, "relevant": [1, 3]}
    held = frame.iloc[::3]
    assert_array_equal(
        halfseen.metrics.ndcg_at_k(model, frame.drop(held.index), held, **ranking),
        halfseen.metrics.ndcg_at_k(plain, in_numbers(frame.drop(held.index)), in_numbers(held), **ranking),
    )
    model.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    assert again.levels == ORDER
    assert again.levels_.tolist() == [None, *ORDER]
    assert_array_equal(again.transform(frame), model.transform(frame))
    assert again.predict_level(users, items).tolist() == model.predict_level(users, items).tolist()


def test_where_unseen_cells_say_nothing_the_lowest_text_is_the_lowest_level(tmp_path):
    frame = opinions()
    ask = {"unseen": "missing", "prior_rate": 1.0, **ASK}
    plain, model = OrdNMF(2, **ask).fit(in_numbers(frame)), OrdNMF(2, levels=ORDER, **ask).fit(frame)
    assert_array_equal(model.W_, plain.W_)
    assert model.levels_.tolist() == ORDER
    assert set(model.predict_level(frame.user, frame.item)) <= set(ORDER)
    assert_allclose(model.predict(frame.user, frame.item), plain.predict(frame.user, frame.item) - 1, rtol=1e-12)
    assert_array_equal(model.sample(1, 0)[0].data, plain.sample(1, 0)[0].data)
    model.save(tmp_path / "model.hs")
    assert halfseen.load(tmp_path / "model.hs").levels_.tolist() == ORDER


def test_a_level_may_be_called_none_and_an_empty_field_is_unknown(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\na,x,none\na,y,some\nb,x, some \nb,y,\nc,x,none\nc,y,n/a\n")
    observed = observe(tmp_path / "t.csv", levels=["none", "some"], unseen="zero")
    assert_array_equal(observed.to_dense(), [[1, 2], [2, 0], [1, 0]])


def forms(frame, tmp_path):
    """The same texts in several forms, and where each has the text of line `at`."""
    array = object_array(frame)
    at = len(frame) - 1 if "god" not in set(frame.rating) else int(np.argmax(frame.rating == "god"))
    row, column = (pd.unique(frame[side]).tolist().index(frame[side][at]) for side in ("user", "item"))
    return {
        f"at position {at} of column 'rating'": frame,
        f"at row {row}, column {column}": array,
        f"on line {at + 2} of words.csv, column 'rating'": written(frame, tmp_path),
        f"in triple {at}, for row {frame.user[at]!r}, column {frame.item[at]!r}": triples(frame),
    }


def test_texts_that_are_no_levels_are_refused_with_their_place(tmp_path):
    frame = opinions()
    frame.loc[2, "rating"] = "god"
    for where, data in forms(frame, tmp_path).items():
        with refused(DataError, found="'god'", where=where):
            OrdNMF(2, levels=ORDER).fit(data)


def test_texts_without_an_order_are_refused_with_their_place(tmp_path):
    frame = opinions().iloc[:1]
    for where, data in forms(frame, tmp_path).items():
        for model in (OrdNMF(2), PoissonFactorization(2)):
            with refused(DataError, found=repr(frame.rating[0]), where=where):
                model.fit(data)


def test_texts_have_no_mean_to_fill_holes_with():
    with refused(DataError, found="'good'", remedy="predict_level"):
        OrdNMF(2, levels=ORDER, **ASK).fit(opinions()).complete(opinions())


def test_texts_that_the_model_lacks_are_refused_with_their_place():
    model = OrdNMF(2, levels=ORDER, **ASK).fit(opinions())
    frame = opinions()
    frame.loc[0, "rating"] = "superb"
    other = observe(frame, levels=["superb", *ORDER], unseen="zero")
    with refused(DataError, found="'superb'", where=f"row '{frame.user[0]}', column '{frame.item[0]}' (1 such cell)"):
        model.log_likelihood(other)
    fine = observe(opinions(), levels=["good", "fair", "bad"], unseen="zero")  # another order, the same words
    assert model.log_likelihood(fine) == model.log_likelihood(opinions())
    with refused(DataError, found="'great'", where="in history 1, column 'i7'"):
        model.recommend([{"i1": "good"}, {"i2": "fair", "i7": "great"}])


def test_texts_are_split_with_their_order():
    frame = opinions()
    train, test = halfseen.data.split_cells(frame, 0.3, random_state=0, levels=ORDER)
    assert_array_equal(train.level_names, ORDER)
    ordered = frame.assign(rating=pd.Categorical(frame.rating, ORDER, ordered=True))
    assert_array_equal(halfseen.data.split_cells(ordered, 0.3, random_state=0)[1].values, test.values)
    assert train.nnz + test.nnz == len(frame)


# Numbers.


def test_half_stars_are_levels_and_what_lies_between_given_ones_is_refused():
    halves = levels_matrix(highest=4) / 2
    assert OrdNMF(2, **ASK).fit(halves).levels_.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    row, column = np.argwhere(halves % 1 > 0)[0]
    where = f"row {row}, column {column} ({np.count_nonzero(halves % 1)} such cells)"
    with refused(DataError, "levels", found=f"{halves[row, column]:g}", where=where):
        OrdNMF(2, levels=[1, 2]).fit(halves)


def test_counts_are_no_levels():
    values = np.arange(101.0).reshape(1, -1).repeat(2, axis=0) + 1.0
    assert OrdNMF(1, unseen="missing", max_iter=2, random_state=0).fit(values[:, :100]).levels_.size == 100
    with refused(DataError, found="101 different values", remedy="Quantizer"):
        OrdNMF(1, unseen="missing").fit(values)
    levels = halfseen.Quantizer([1, 10, 100]).fit_transform(values)
    assert OrdNMF(1, unseen="missing", **ASK).fit(levels).levels_.tolist() == [1, 2, 3]


def test_one_level_only_is_refused():
    for data, levels, found in (
        (np.full((3, 4), 2.0), None, "only 2"),
        ([["good", None], ["good", "good"]], ["good"], "only 'good'"),
    ):
        with refused(DataError, found=found, remedy="OrdNMF"):
            OrdNMF(2, levels=levels, unseen="missing").fit(data)


def test_one_level_beside_unseen_cells_is_bernoulli_poisson():
    """At the same threshold to the last bit; where it is learned, with another split of the scale the same law."""
    Y = np.minimum(counts(), 1) * 3.0
    fixed = OrdNMF(3, thresholds=[1.0], **ASK).fit(Y)
    there = BernoulliPoisson(3, **ASK).fit(Y)
    assert fixed.levels_.tolist() == [0, 3]
    assert_array_equal(fixed.W_, there.W_)
    assert_allclose(fixed.predict_proba(0, [1, 2])[:, 1], there.predict(0, [1, 2]), rtol=1e-12)
    ask = {"random_state": 0, "tol": 1e-10, "max_iter": 20_000}
    learned, other = OrdNMF(1, **ask).fit(Y), BernoulliPoisson(1, **ask).fit(Y)
    assert learned.thresholds_.shape == (1,)
    assert_allclose(learned.predict_proba(*np.nonzero(Y))[:, 1], other.predict(*np.nonzero(Y)), rtol=1e-3)


def test_a_missing_level_is_an_unseen_cell():
    Y = levels_matrix(highest=3).astype(float)
    Y[3, 4] = np.nan
    known = OrdNMF(2, **ASK).fit(np.where(np.isnan(Y), 0.0, Y))
    assert_array_equal(OrdNMF(2, **ASK).fit(Y).W_, known.W_)


def test_rows_of_zeros_are_served():
    Y = levels_matrix()  # row 4 and column 7 have nothing
    model = OrdNMF(3, random_state=0).fit(Y)
    x = model.W_ @ model.H_.T
    assert x[4].max() < 0.05 * np.median(x[5])
    assert model.predict_level(4, np.arange(20)).tolist() == [0.0] * 20
    ids, scores = model.recommend([4], n=20)
    assert sorted(ids[0].tolist()) == list(range(20))
    assert np.all(np.diff(scores[0]) <= 0)
    Y[0, 7] = 1
    with pytest.warns(DataWarning, match="row 4"):
        blank = OrdNMF(3, unseen="missing", prior_rate=1.0, random_state=0).fit(np.where(Y > 0, Y, np.nan))
    others = np.delete(blank.W_, 4, axis=0)
    assert_allclose(blank.W_[4], others.mean(axis=0), rtol=1e-12)


def test_a_user_who_has_seen_everything_gets_nothing():
    Y = levels_matrix(highest=3)
    Y[3] = 1 + np.arange(20) % 3
    model = OrdNMF(2, **ASK).fit(Y)
    assert model.recommend([3], n=5).ids.shape == (1, 0)
    ids, scores = model.recommend([3, 0], n=2)
    assert ids[0].tolist() == [-1, -1]
    assert np.isnan(scores[0]).all()
    assert len(set(ids[1].tolist()) & set(np.flatnonzero(Y[0] == 0).tolist())) == 2
    named = OrdNMF(2, **ASK).fit(pd.DataFrame({"user": [7, 7, 8], "item": ["x", "y", "x"], "stars": [1, 2, 2]}))
    assert named.recommend([7, 8], n=1).ids.tolist() == [[None], ["y"]]
    assert model.recommend([3], n=20, exclude_seen=False).ids.shape == (1, 20)


def test_huge_ids_are_kept_to_the_last_digit():
    users = [2**63 + 5, 2**63 + 6, 2**63 + 5, 7]
    frame = pd.DataFrame({"user": users, "item": [-1, 2**40, 2**40, -1], "stars": [1, 2, 2, 1]})
    model = OrdNMF(2, **ASK).fit(frame)
    assert model.row_labels_.tolist() == [2**63 + 5, 2**63 + 6, 7]
    assert model.recommend([7], n=1).ids.tolist() == [[2**40]]
    assert model.log_likelihood(frame.iloc[[3]]) == model.log_likelihood(frame, each=True)[-1]
    with refused(DataError, found="9223372036854775815 (1 unknown in all)"):
        model.predict(2**63 + 7, -1)
    with refused(DataError, found=str(2**70)):
        OrdNMF(2).fit(frame.assign(user=[2**70, 1, 2, 3]))


def test_negative_levels_are_refused_where_unseen_cells_are_zeros():
    with refused(ParameterError, "levels", found="-1"):
        OrdNMF(2, levels=[-1, 1, 2]).fit(levels_matrix())


@pytest.mark.parametrize("fitted_in", [np.float32, np.float64])
def test_a_level_is_the_same_in_single_and_in_double_precision(fitted_in):
    Y = levels_matrix() / 10
    other = np.float64 if fitted_in is np.float32 else np.float32
    model = OrdNMF(2, **ASK).fit(Y.astype(fitted_in))
    same = model.log_likelihood(Y.astype(fitted_in))
    assert_allclose(model.log_likelihood(Y.astype(other)), same, rtol=1e-6)
    given = OrdNMF(2, levels=np.unique(Y[Y > 0]), **ASK).fit(Y.astype(fitted_in))
    assert_allclose(given.W_, model.W_, rtol=1e-12)


def test_levels_that_single_precision_would_merge_stay_apart():
    Y = np.array([[1.0, 1.0 + 1e-10], [2.0, 1.0]])
    assert_array_equal(OrdNMF(1, unseen="missing", **ASK).fit(Y).levels_, [1.0, 1.0 + 1e-10, 2.0])


def test_levels_and_thresholds_given_as_arrays_come_back_from_files(tmp_path):
    Y = levels_matrix()
    levels = np.unique(Y[Y > 0])
    model = OrdNMF(2, levels=levels, thresholds=np.arange(1.0, levels.size + 1), **ASK).fit(Y)
    model.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    assert again.levels == levels.tolist()
    assert_array_equal(again.fit(Y).thresholds_, model.thresholds_)


# Weights of cells and of levels.

STARS = {"zero": np.array([0.0, 0.5, 3.0, 3.5]), "missing": np.array([-1.0, 0.5, 3.0, 3.5])}
every_case = pytest.mark.parametrize("unseen", STARS)
each_seed = pytest.mark.parametrize("seed", [0, 1, 2])


def problem(seed, unseen, repeated):
    """The cells as a user has them; spelled out, each counted as often as its weight and its level say; a start."""
    observed, (u, i, y, c), start = draw(seed, unseen, True, repeated)
    stars = replace(observed, values=STARS[unseen][observed.values.astype(int)])
    mean = np.average(y[y > 0], weights=c[y > 0])
    first = oracle.first_decrements(np.bincount(y, c), unseen)
    return stars, (u, i, y, c * np.where(y > 0, y / mean, 1.0)), first / first.sum(), start, mean


@every_case
@each_seed
@pytest.mark.parametrize("repeated", [False, True])
def test_steps_are_those_of_all_cells_spelled_out(unseen, seed, repeated, monkeypatch):
    monkeypatch.setitem(squared_models.EAGER_EXPONENT, False, 0.5)
    stars, cells, D, (W, H), mean = problem(seed, unseen, repeated)
    ask = {"l2": 0.7, "init": (W, H), "accelerate": False, "max_iter": 12, "tol": 0, "unseen": unseen}
    model = SquaredOrdNMF(K, **ask).fit(stars)
    W, H, D, loss = squared_steps(cells, D, W, H, 0.7, 12)
    assert_allclose(model.level_weights_, [1.0, 1 / mean, 2 / mean, 3 / mean])
    assert_allclose(model.W_, W, rtol=1e-8, atol=1e-100)
    assert_allclose(model.H_, H, rtol=1e-8, atol=1e-100)
    assert_allclose(model.thresholds_, oracle.Ordinal(D).thresholds, rtol=1e-8)
    assert model.trace_["objective"][-1] == pytest.approx(loss, rel=1e-9)


@every_case
@each_seed
def test_the_start_has_the_share_of_cells_above_zero_as_rate(unseen, seed):
    stars, (_, _, y, c), *_ = problem(seed, unseen, False)
    n, m = stars.shape
    share = min(1.0, c[y > 0].sum() / (n * m if unseen == "zero" else c.sum()))
    random = np.random.RandomState(seed)
    W, H = (np.sqrt(np.sqrt(share) / K) * random.standard_gamma(1.0, (size, K)) for size in (n, m))
    ask = {"l2": 0.3, "max_iter": 2, "tol": 0, "unseen": unseen}
    drawn, given = (SquaredOrdNMF(K, **ask, init=init, random_state=seed).fit(stars) for init in ("random", (W, H)))
    assert_allclose(drawn.W_, given.W_, rtol=1e-10)
    assert_allclose(drawn.H_, given.H_, rtol=1e-10)


@every_case
def test_folded_rows_hear_the_weights_of_levels(unseen):
    """With H and thresholds held, a row rests where what pulls it equals what pushes it."""
    stars, (u, i, y, c), *_ = problem(0, unseen, False)
    model = SquaredOrdNMF(K, l2=0.3, max_iter=30, tol=0, random_state=0, unseen=unseen).fit(stars)
    W = folding_until(model, max_iter=5000, tol=1e-12).transform(stars)
    family = oracle.Ordinal(oracle.decrements_of(model.thresholds_))
    x = np.sum(W[u] * model.H_[i], axis=1)
    slope = 2 * c * (family.counts(y, x**2) / np.where(x > 0, x, 1.0) - family.push(y) * x)
    gradient = np.zeros_like(W)
    np.add.at(gradient, u, slope[:, None] * model.H_[i])
    gradient -= 0.3 * W
    assert np.abs(W * gradient).max() < 1e-6 * np.abs(W).max()


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_weights_of_levels_are_as_many_as_levels(unseen):
    stars, *_ = problem(0, unseen, False)
    for weights in ([1.0, 2.0], [1.0] * 5, {0.5: 1.0, 3.0: 1.0}):
        with refused(ParameterError, "level_weight"):
            SquaredOrdNMF(K, level_weight=weights, unseen=unseen).fit(stars)


@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
@every_case
def test_levels_of_which_no_cell_is_seen(kind, unseen):
    """Nothing tells where their thresholds are: of the lowest no less, unless it is that of unseen zeros."""
    stars, *_ = problem(0, unseen, False)
    lowest, *others = STARS[unseen].tolist()
    for levels, empty in (
        ([lowest, *others, 4.0], 4),
        ([lowest, 0.5, 2.0, 3.0, 3.5], 2),
        ([-3.0, lowest, *others], -3),
    ):
        if levels[0] < 0 and unseen == "zero":
            continue  # below unseen zeros nothing can be
        with refused(DataError, "levels", found=f"none at level {empty}"):
            kind(K, levels=levels, unseen=unseen).fit(stars)
    above = stars.select_cells(stars.values > lowest)
    given = kind(K, levels=STARS[unseen].tolist(), unseen=unseen, max_iter=2, random_state=0)
    if unseen == "zero":
        assert_allclose(given.fit(above).levels_, STARS[unseen])
    else:
        with refused(DataError, "levels", found="none at level -1"):
            given.fit(above)


def test_a_check_of_counts_that_are_there_or_not_asks_no_more():
    Y = counts()
    check = predictive_check(BernoulliPoisson(2, random_state=0, max_iter=5).fit(Y), Y, n=2)
    assert check.observed[:2].tolist() == [(Y == 0).sum(), (Y > 0).sum()]
    assert check.observed[2:].sum() == 0

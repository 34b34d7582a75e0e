"""What may be a level: numbers of any kind, texts with an order; and the sentences for what may not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import halfseen
from halfseen import BernoulliPoisson, OrdNMF, PoissonFactorization, SquaredOrdNMF, observe
from halfseen.errors import DataError, DataWarning, ParameterError
from tests.estimators.test_ordnmf import levels_matrix
from tests.estimators.test_relatives import counts

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


@pytest.mark.parametrize("form", ["pandas", "array", "file", "triples"])
def test_texts_that_are_no_levels_are_named_where_they_stand(form, tmp_path):
    frame = opinions()
    frame.loc[2, "rating"] = "god"
    row, column = frame.user[2], frame.item[2]
    array = object_array(frame)
    at = np.argwhere(array == "god")[0]
    data, place = {
        "pandas": (frame, "at position 2 of column 'rating'"),
        "array": (array, f"at row {at[0]}, column {at[1]}"),
        "file": (written(frame, tmp_path), "on line 4 of words.csv, column 'rating'"),
        "triples": (triples(frame), f"in triple 2, for row {row!r}, column {column!r}"),
    }[form]
    with pytest.raises(DataError) as caught:
        OrdNMF(2, levels=ORDER).fit(data)
    assert str(caught.value).startswith(
        f"Values must be among the levels 'bad', 'fair', 'good'. Found 'god' {place}. Correct it, or add it to levels. "
    )


@pytest.mark.parametrize("form", ["pandas", "array", "file", "triples"])
def test_texts_without_an_order_are_refused(form, tmp_path):
    frame = opinions()
    data, place = {
        "pandas": (frame, "at position 0 of column 'rating'"),
        "array": (object_array(frame), "at row 0, column 0"),
        "file": (written(frame, tmp_path), "on line 2 of words.csv, column 'rating'"),
        "triples": (triples(frame), f"in triple 0, for row {frame.user[0]!r}, column {frame.item[0]!r}"),
    }[form]
    with pytest.raises(DataError) as caught:
        OrdNMF(2).fit(data)
    assert str(caught.value).startswith(
        f"Values must be numbers, or texts whose order is given. Found {frame.rating[0]!r} {place}. "
        "List the texts from the lowest to the highest in levels."
    )
    with pytest.raises(DataError, match=rf"^Values must be numbers\. Found '{frame.rating[0]}' "):
        PoissonFactorization(2).fit(data)


def test_texts_have_no_mean_to_fill_holes_with():
    model = OrdNMF(2, levels=ORDER, **ASK).fit(opinions())
    with pytest.raises(DataError) as caught:
        model.complete(opinions())
    assert str(caught.value) == (
        "complete fills holes with expected values, so levels must be numbers. Found 'good'. Ask predict_level for the "
        "cells of interest, or fit on numbers."
    )


def test_cells_with_levels_of_their_own_that_the_model_lacks():
    model = OrdNMF(2, levels=ORDER, **ASK).fit(opinions())
    frame = opinions()
    frame.loc[0, "rating"] = "superb"
    other = observe(frame, levels=["superb", *ORDER], unseen="zero")
    with pytest.raises(DataError) as caught:
        model.log_likelihood(other)
    assert str(caught.value) == (
        f"Values must be among the levels 'bad', 'fair', 'good'. Found 'superb' at row '{frame.user[0]}', column "
        f"'{frame.item[0]}' (1 such cell). Leave them out, or add the level."
    )
    fine = observe(opinions(), levels=["good", "fair", "bad"], unseen="zero")  # another order, the same words
    assert model.log_likelihood(fine) == model.log_likelihood(opinions())


# Numbers.


def refusal(data, **ask):
    with pytest.raises(DataError) as caught:
        OrdNMF(2, **{**ASK, **ask}).fit(data)
    return str(caught.value)


def test_half_stars_are_levels_and_what_lies_between_given_ones_is_none():
    halves = levels_matrix(highest=4) / 2
    assert OrdNMF(2, **ASK).fit(halves).levels_.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    row, column = np.argwhere(halves % 1 > 0)[0]
    odd = np.count_nonzero(halves % 1)
    assert refusal(halves, levels=[1, 2]) == (
        f"Values must be among the levels that were given: 0, 1, 2. Found {halves[row, column]:g} at row {row}, column "
        f"{column} ({odd} such cells). Add it to levels, or round the value."
    )


def test_counts_are_no_levels():
    plays = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(0.5, 300.0, (40, 40)))
    kinds, highest = np.unique(plays[plays > 0]).size, plays.max()
    assert refusal(plays) == (
        f"OrdNMF must have at most 100 ordered levels. Found {kinds} different values, from 1 to {highest}. Make "
        "levels of counts with Quantizer, or use PoissonFactorization."
    )
    levels = halfseen.Quantizer([1, 10, 100]).fit_transform(plays)
    assert OrdNMF(2, **ASK).fit(levels).levels_.tolist() == [0, 1, 2, 3]


def test_one_level_only():
    assert refusal(np.full((3, 4), 2.0), unseen="missing") == (
        "Ordinal data must have two levels or more. Found only 2. Fit data with more, or OrdNMF with "
        'unseen="zero" if unseen cells are a level of their own.'
    )
    assert refusal([["good", None], ["good", "good"]], levels=["good"], unseen="missing") == (
        "Ordinal data must have two levels or more. Found only 'good'. Fit data with more, or OrdNMF with "
        'unseen="zero" if unseen cells are a level of their own.'
    )


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


def test_levels_that_are_not_finite_or_not_there():
    Y = levels_matrix(highest=3).astype(float)
    Y[3, 4] = np.inf
    assert refusal(Y) == "Values must be finite. Found inf at row 3, column 4. Replace it by NaN if it is unknown."
    Y[3, 4] = np.nan
    known = OrdNMF(2, **ASK).fit(np.where(np.isnan(Y), 0.0, Y))
    assert_array_equal(OrdNMF(2, **ASK).fit(Y).W_, known.W_)
    nothing = "At least one non-zero value must be observed. Found none in 3 rows and 2 columns. "
    for empty in (np.zeros((3, 2)), np.full((3, 2), np.nan)):
        assert refusal(empty) == f"{nothing}Check that the right file and columns were read."


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
    with pytest.warns(DataWarning, match=r"Found none in row 4\."):
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
    with pytest.raises(DataError) as caught:
        model.predict(2**63 + 7, -1)
    assert str(caught.value) == (
        "A row must be one of the 3 rows that were fitted. Found 9223372036854775815 (1 unknown in all). For a new "
        "row, fit again, or pass its history (a dict from columns to values)."
    )
    assert refusal(frame.assign(user=[2**70, 1, 2, 3])) == (
        f"Integer ids of rows must fit in 64 bits. Found {2**70}. Convert the ids to text."
    )


def test_an_error_in_a_history_names_history_and_column():
    model = OrdNMF(2, levels=ORDER, **ASK).fit(opinions())
    with pytest.raises(DataError) as caught:
        model.recommend([{"i1": "good"}, {"i2": "fair", "i7": "great"}])
    assert str(caught.value).startswith(
        "Values must be among the levels 'bad', 'fair', 'good'. Found 'great' in history 1, column 'i7'."
    )


def test_negative_levels_are_refused_where_unseen_cells_are_zeros():
    with pytest.raises(ParameterError) as caught:
        OrdNMF(2, levels=[-1, 1, 2]).fit(levels_matrix())
    assert str(caught.value) == (
        "levels must be 0 or larger where unseen cells are zeros, which are the lowest. Found -1. Shift the levels, or "
        'use unseen="missing".'
    )


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


def test_words_keep_their_meaning_whatever_unseen_is_set_to_afterwards():
    model = OrdNMF(2, levels=ORDER, **ASK).fit(opinions())
    coded = model.model_.encoder.codes(observe(opinions(), levels=ORDER, unseen="zero")).values
    model.set_params(unseen="missing")
    assert_array_equal(model.model_.encoder.codes(observe(opinions(), levels=ORDER, unseen="zero")).values, coded)


def test_a_refused_fit_leaves_the_levels_of_the_last_one():
    Y = levels_matrix()
    model = OrdNMF(2, **ASK).fit(Y)
    levels = model.levels_
    with pytest.raises(ParameterError, match="thresholds must stand between"):
        model.set_params(thresholds=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).fit(np.minimum(Y, 2))
    assert model.levels_ is levels


def test_levels_and_thresholds_given_as_arrays_come_back_from_files(tmp_path):
    Y = levels_matrix()
    levels = np.unique(Y[Y > 0])
    model = OrdNMF(2, levels=levels, thresholds=np.arange(1.0, levels.size + 1), **ASK).fit(Y)
    model.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    assert again.levels == levels.tolist()
    assert_array_equal(again.fit(Y).thresholds_, model.thresholds_)


def test_words_are_split_with_their_order():
    frame = opinions()
    train, test = halfseen.data.split_cells(frame, 0.3, random_state=0, levels=ORDER)
    assert_array_equal(train.level_names, ORDER)
    ordered = frame.assign(rating=pd.Categorical(frame.rating, ORDER, ordered=True))
    assert_array_equal(halfseen.data.split_cells(ordered, 0.3, random_state=0)[1].values, test.values)
    assert train.nnz + test.nnz == len(frame)

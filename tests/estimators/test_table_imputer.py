"""TableImputer: tables of mixed columns in and out, edge cases, intervals and draws."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen import TableImputer
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.table_imputer import ratio_error
from halfseen.imputation.columns import CHOICES, LEFT_OUT
from tests.imputation.cases import correlated

ANSWERS = ["never", "rarely", "often"]
COLOURS = ["blue", "green", "red"]
QUICK = TableImputer(trees=False, random_state=0)


def imputer(**parameters):
    return clone(QUICK).set_params(**parameters)


def people(n=200, seed=0):
    """A frame of which most columns follow from one number a person."""
    random = np.random.default_rng(seed)
    z = random.normal(size=n)

    def noisy(size=0.3):
        return z + size * random.normal(size=n)

    return pd.DataFrame(
        {
            "customer_id": np.arange(n),
            "age": np.round(40 + 10 * noisy()),
            "pay": np.exp(noisy()),
            "change": noisy(),
            "member": pd.array(noisy(0.1) > 0, dtype="boolean"),
            "answer": np.array(ANSWERS, object)[np.digitize(noisy(), [-0.5, 0.5])],
            "colour": np.array(COLOURS, object)[np.digitize(noisy(0.1), [-0.5, 0.5])],
            "visits": pd.array(np.round(5 + 2 * noisy()), dtype="Int64"),
            "zip": [f"{one:05d}" for one in random.integers(0, 9999, n)],
            "day": pd.date_range("2024-01-01", periods=n),
        }
    )


def with_holes(frame, share=0.1, seed=1):
    random, holey = np.random.default_rng(seed), frame.copy()
    for name in holey.columns[1:]:
        holey.loc[random.random(len(frame)) < share, name] = None
    return holey


def fitted(X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return imputer(**parameters).fit(X)


FILLED = ["age", "pay", "change", "member", "answer", "colour", "visits"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_back_filled_and_of_their_types(library):
    truth = people()
    holey = with_holes(truth)
    X = holey if library == "pandas" else pl.from_pandas(holey)
    found = fitted(X, levels=ANSWERS).transform(X)
    assert type(found) is type(X)
    if library == "pandas":
        assert_array_equal(found.index, X.index)
        assert found.dtypes.equals(X.dtypes)
    else:
        assert found.schema == X.schema
        found = found.to_pandas()
    for name in truth.columns:
        seen = holey[name].notna()
        assert (found[name][seen] == truth[name][seen]).all()
        assert found[name].notna().all() == (name in [*FILLED, "customer_id"])
    for name in ("member", "answer", "colour"):
        holes = holey[name].isna()
        assert (found[name][holes] == truth[name][holes]).mean() > 0.65
    assert set(found["answer"]) <= set(ANSWERS)


def test_ordered_categories_of_frames_are_levels():
    truth = people()
    holey = with_holes(truth)[["age", "pay", "answer"]]
    ordered = holey.assign(answer=pd.Categorical(holey["answer"], ANSWERS, ordered=True))
    enum = pl.from_pandas(holey).with_columns(pl.col("answer").cast(pl.Enum(ANSWERS)))
    by_name = fitted(holey, levels={"answer": ANSWERS}).transform(holey)["answer"]
    for X in (ordered, enum):
        model = fitted(X)
        assert model.columns_[2].values == tuple(ANSWERS)
        assert model.quality_["kind"].tolist() == ["count", "continuous", "levels"]
        found = model.transform(X)
        assert found["answer"].dtype == X["answer"].dtype
        assert found["answer"].to_list() == by_name.to_list()


def test_categories_of_polars_stay_categories():
    X = pl.from_pandas(with_holes(people())[["age", "pay", "colour"]]).with_columns(
        pl.col("colour").cast(pl.Categorical)
    )
    found = fitted(X).transform(X)
    assert found.schema == X.schema
    assert found["colour"].null_count() == 0


def test_set_output_gives_what_it_says():
    holey = with_holes(people())[FILLED]
    ours = imputer(levels=ANSWERS).set_output(transform="polars").fit_transform(holey)
    assert isinstance(ours, pl.DataFrame)
    back = imputer(levels=ANSWERS).set_output(transform="pandas").fit_transform(pl.from_pandas(holey))
    assert isinstance(back, pd.DataFrame)
    assert back["pay"].to_list() == ours["pay"].to_list()
    named = imputer().set_output(transform="pandas").fit_transform(correlated(30)[0])
    assert named.columns.tolist() == [f"x{j}" for j in range(6)]
    assert imputer().fit(holey[["age", "pay"]]).get_feature_names_out().tolist() == ["age", "pay"]


def test_a_wide_survey_is_filled_with_levels_more_often_right_than_the_most_frequent():
    random = np.random.default_rng(0)
    latent = random.normal(size=(300, 3)) @ random.normal(size=(3, 60)) + random.normal(size=(300, 60))
    codes = np.stack([np.digitize(one, np.quantile(one, np.sort(random.uniform(size=2)))) for one in latent.T], axis=1)
    hidden = random.random(codes.shape) < 0.1
    truth = pd.DataFrame(np.array(ANSWERS, object)[codes], columns=[f"q{j}" for j in range(60)])
    X = truth.mask(hidden, None)
    found = fitted(X, levels=ANSWERS).transform(X)
    right = (found == truth).to_numpy()[hidden].mean()
    assert right > 0.1 + (truth == X.mode().iloc[0]).to_numpy()[hidden].mean()


def test_quality_says_what_was_found_of_each_column():
    holey = with_holes(people())
    with pytest.warns(DataWarning, match=r"Found 'zip' \(codes are not amounts\), 'day' \(dates are not filled\)"):
        model = imputer(levels=ANSWERS).fit(holey)
    table = pd.DataFrame(model.quality_).set_index("column")
    assert table.index.tolist() == holey.columns.tolist()
    kinds = ["id", "count", "continuous", "continuous", "boolean", "levels", "category", "levels", "code", "date"]
    assert table["kind"].tolist() == kinds
    assert (table["error"][FILLED] < 0.8 * table["mean_error"][FILLED]).all()
    assert table["error"][["customer_id", "zip", "day"]].isna().all()
    assert [note.must.split("'")[1] for note in model.notes_] == ["customer_id", "zip", "day", "answer"]
    assert "in the order given: never < rarely < often." in str(model.notes_[-1])
    assert "neighbours" in table["used"]["age"]


def test_parameters_say_what_a_column_is():
    holey = with_holes(people())[["customer_id", "age", "pay", "visits"]].assign(zip=[10.0, 20.0, 30.0, np.nan] * 50)
    model = fitted(holey, skip=["pay"], categories=["zip"], numbers=["customer_id"], levels={"visits": range(-10, 20)})
    assert model.quality_["kind"].tolist() == ["count", "count", "skipped", "levels", "category"]
    found = model.transform(holey)
    assert set(found["zip"]) == {10.0, 20.0, 30.0}
    assert found["pay"].isna().equals(holey["pay"].isna())
    assert found["visits"].dtype == "Int64"


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"skip": "age"}, "skip"),
        ({"levels": ["one"]}, "levels"),
        ({"levels": {"age": ["a", "a"]}}, "levels"),
        ({"levels": {"age": 5}}, "levels"),
        ({"levels": 5}, "levels"),
        ({"levels": True}, "levels"),
        ({"decimals": 2}, "decimals"),
        ({"trees": "yes"}, "trees"),
        ({"max_rows": 1}, "max_rows"),
        ({"random_state": "today"}, "random_state"),
    ],
)
def test_wrong_parameters_are_refused(parameters, word):
    with pytest.raises(ParameterError) as error:
        imputer(**parameters).fit(people()[FILLED])
    assert error.value.parameter == word


def column(values, dtype=None):
    """A frame of a number and a column that goes with it, a fifth of whose cells are holes."""
    z = np.linspace(-2, 2, 40)
    holey = [None if place % 5 == 0 else value for place, value in enumerate(values)]
    return pd.DataFrame({"z": np.where(np.arange(40) % 7 == 0, np.nan, z), "c": pd.Series(holey, dtype=dtype)})


LOW_HIGH = ["low"] * 20 + ["high"] * 20
HALVES = ["u"] * 20 + ["v"] * 20
DAYS = [datetime.date(2024, 1, 1 + place % 28) for place in range(40)]
ARROW_WORDS = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
#: Tables that are as they may be, and the kind of the last column.
TABLES = {
    "constant": (column([7.0] * 40), "constant"),
    "one text": (column(["x"] * 40), "single text"),
    "nothing": (column([None] * 40, object), "empty"),
    "huge": (column(np.linspace(-1e300, 1e300, 40)), "continuous"),
    "numbers as text": (column(["1.5", "2"] * 20), "number as text"),
    "dates": (column(pd.to_datetime(DAYS)), "date"),
    "periods": (column(pd.PeriodIndex(DAYS, freq="D")), "date"),
    "objects that are dates": (column(DAYS, object), "date"),
    "Int64": (column([3] * 20 + [8] * 20, "Int64"), "levels"),
    "UInt8": (column(range(40), "UInt8"), "count"),
    "Float32": (column(np.linspace(0, 1, 40), "Float32"), "continuous"),
    "float32": (column(np.linspace(0, 1, 40), "float32"), "continuous"),
    "float16": (column(np.linspace(0, 1, 40), "float16"), "continuous"),
    "Decimal of Arrow": (pa.table({"c": pa.array([*map(Decimal, range(20)), None], pa.decimal128(9, 2))}), "count"),
    "dictionary of Arrow in pandas": (column(HALVES, ARROW_WORDS), "category"),
    "boolean": (column([False] * 20 + [True] * 20, "boolean"), "boolean"),
    "booleans as objects": (column([False] * 20 + [True] * 20, object), "boolean"),
    "0 and 1": (column([0.0] * 20 + [1.0] * 20), "boolean"),
    "string": (column(HALVES, "string"), "category"),
    "words in order": (column(LOW_HIGH, "string"), "levels"),
    "category": (column(HALVES, "category"), "category"),
    "category of words in order": (column(LOW_HIGH, "category"), "levels"),
    "category of numbers": (column([3] * 20 + [5] * 20, "category"), "category"),
    "ordered": (column(HALVES, pd.CategoricalDtype(["v", "u", "w"], ordered=True)), "levels"),
    "ordered numbers": (column([3] * 20 + [5] * 20, pd.CategoricalDtype([5, 4, 3], ordered=True)), "levels"),
    "columns without names": (column(LOW_HIGH).set_axis([0, 1], axis=1), "levels"),
    "two rows of names": (column(HALVES).set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]), axis=1), "category"),
    "polars Enum": (pl.from_pandas(column(HALVES)).cast({"c": pl.Enum(["v", "u"])}), "levels"),
    "polars Categorical": (pl.from_pandas(column(HALVES)).cast({"c": pl.Categorical}), "category"),
    "polars Boolean": (pl.from_pandas(column([False] * 20 + [True] * 20, "boolean")), "boolean"),
    "polars Date": (pl.from_pandas(column(pd.to_datetime(DAYS))).cast({"c": pl.Date}), "date"),
    "polars Int8": (pl.from_pandas(column(range(40), "Int64")).cast({"c": pl.Int8}), "count"),
    "polars NaN": (pl.DataFrame({"z": [1.0, 2.0] * 10, "c": [np.nan, 3.5, 4.5, 5.5] * 5}), "continuous"),
    "Arrow": (pa.Table.from_pandas(column(LOW_HIGH)), "levels"),
    "Arrow dictionary": (pa.table({"c": pa.array(column(HALVES)["c"]).dictionary_encode()}), "category"),
    "objects with None": (np.array([["a", None], ["b", 3], [None, 4]] * 8, object), "levels"),
    "numbers with None": (np.array([[1, None], [2, 3.5], [4, 5]] * 8, object), "continuous"),
    "integers": (np.arange(40).reshape(20, 2), "count"),
    "booleans": (np.arange(40).reshape(20, 2) % 3 == 0, "boolean"),
    "row of holes": (np.vstack([np.full(2, np.nan), np.column_stack([np.arange(9.0), np.arange(9.0) ** 2])]), "count"),
    "one row": (pd.DataFrame({"a": [1.0], "c": [2.5]}), "constant"),
}  # fmt: skip


def as_pandas(table):
    return table.to_pandas() if hasattr(table, "to_pandas") else pd.DataFrame(table)


@pytest.mark.parametrize(("X", "kind"), TABLES.values(), ids=TABLES)
def test_tables_of_all_kinds_keep_their_types_and_what_was_seen_and_lose_the_holes_that_can_be_filled(X, kind):
    model = fitted(X)
    assert model.columns_[-1].kind == kind
    before = as_pandas(X)
    for found in (model.transform(X), *model.sample(X, 2, random_state=0)):
        assert type(found) is type(X)
        after = as_pandas(found)
        if isinstance(X, np.ndarray):
            assert found.dtype == (object if any(isinstance(cell, str) for cell in X.ravel()) else float)
        else:
            assert after.dtypes.equals(before.dtypes) if isinstance(X, pd.DataFrame) else found.schema == X.schema
        for column, name in zip(model.columns_, before.columns, strict=True):
            seen = before[name].notna().to_numpy()
            assert (after[name][seen] == before[name][seen]).all()
            assert after[name][~seen].isna().all() if column.kind in LEFT_OUT else after[name].notna().all()
            is_expected_value = column.is_numeric and after[name].dtype.kind in "fO"
            if column.kind in CHOICES and not is_expected_value:
                assert set(after[name]) <= set(column.values)
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else {}
    assert list(probabilities) == [one.name for one in model.columns_ if one.kind in CHOICES]
    for shares in probabilities.values():
        assert_allclose(shares.sum(axis=1), 1)
        assert (shares >= 0).all()


def test_decimals_of_python_are_numbers_and_filled_with_such():
    prices = pd.DataFrame({"a": range(20), "c": [Decimal(i) / 4 if i % 5 else None for i in range(20)]})
    filled = fitted(prices, decimals="auto").transform(prices)["c"]
    assert all(isinstance(one, Decimal) and one == round(one, 2) for one in filled)
    assert fitted(prices.to_numpy()).columns_[1].kind == "continuous"


@pytest.mark.parametrize(
    "dates",
    [
        np.array([["2024-01-31"], ["2024-02-01"], ["NaT"]] * 9, dtype="datetime64[D]"),
        np.array([[20240131], [20240201], [np.nan]] * 9),
        pd.DataFrame({"day": [20240131, 20240201, None] * 9}),
    ],
    ids=["datetime64", "whole numbers", "frame"],
)
def test_dates_are_not_invented_however_they_are_written(dates):
    with pytest.warns(DataWarning, match="dates are not filled"):
        model = imputer().fit(dates)
    assert pd.isna(pd.DataFrame(model.transform(dates)).iloc[2, 0])
    numbers = pd.DataFrame({"day": [20240131, 20240201, 20241301, None] * 9})
    assert imputer().fit(numbers).columns_[0].kind == "levels"
    assert imputer(numbers=["day"]).fit(numbers[:2]).columns_[0].kind == "count"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("phone_number", "code"),
        ("barcode", "code"),
        ("ISBN", "code"),
        ("orderNo", "id"),
        ("customer number", "id"),
        ("number of rooms", "count"),
        ("number", "count"),
        ("no", "count"),
    ],
)
def test_numbers_of_orders_and_phones_are_no_amounts(name, kind):
    numbers = pd.DataFrame({name: [1007 + 37 * place if place % 6 else None for place in range(40)]})
    assert fitted(numbers).columns_[0].kind == kind


def test_the_cell_that_is_no_number_is_named():
    with pytest.raises(DataError, match=r"must hold numbers\. Found True in column 'member'"):
        imputer(numbers=["member"]).fit(with_holes(people()))


def test_sparse_columns_of_pandas_come_back_dense_where_they_had_holes():
    sparse = pd.DataFrame({"z": np.arange(8.0), "c": pd.arrays.SparseArray([1.5, 2.5, 4.5, np.nan] * 2)})
    filled = fitted(sparse).transform(sparse)
    assert filled["c"].dtype == float
    assert filled["c"].between(1.5, 4.5).all()


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "Found inf at row 0, column 1"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), "Found -inf at row 1, column 'a'"),
        (pd.DataFrame({"a": [1, "x", None]}), "Found 1 and 'x' in column 'a'"),
        (pd.DataFrame({"a": [True, "x", None]}), "Found True and 'x' in column 'a'"),
        (pd.DataFrame({"a": [True, 2, None]}), "Found True and 2 in column 'a'"),
        (pd.DataFrame({"a": [[1], [2]]}), r"Found \[1\], of type list, in column 'a'"),
        (pd.DataFrame({"a": [1j, 2]}), "of type complex, in column 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "must have its own name. Found 'a' 2 times"),
        (pd.DataFrame({"a": []}), "must have a row"),
        (pd.DataFrame(index=range(3)), "must have a row and a column. Found 3 rows and 0 columns"),
        (np.empty((0, 3)), "0 sample"),
        (np.arange(3.0), "2D array"),
        (csr_array(np.eye(3)), "Sparse data"),
    ],
)
def test_what_cannot_be_filled_is_refused_in_one_sentence(X, match):
    with pytest.raises((ValueError, TypeError), match=match):
        imputer().fit(X)


@pytest.mark.parametrize(
    ("new", "match"),
    [
        (column(HALVES)[["c", "z"]], "same order"),
        (column(HALVES)[["c"]], "missing:\n- z"),
        (column(HALVES).assign(z="text"), "must hold numbers. Found 'text' in column 'z'"),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_new_rows_must_have_the_columns_of_the_fit(library, new, match):
    old = column(HALVES)
    old, new = (pl.from_pandas(one) for one in (old, new)) if library == "polars" else (old, new)
    with pytest.raises(ValueError, match=match):
        imputer().fit(old).transform(new)


def test_columns_that_are_named_must_be_there():
    for wish in ({"skip": ["pya"]}, {"levels": {"pya": ["a", "b"]}}, {"categories": ["pya"]}):
        with pytest.raises(DataError, match="no 'pya'"):
            imputer(**wish).fit(people()[["age", "pay"]])


def test_nothing_to_fill_changes_nothing():
    cells = correlated(40)[1]
    assert_array_equal(imputer().fit_transform(cells), cells)
    frame = people()[FILLED]
    pd.testing.assert_frame_equal(imputer().fit_transform(frame), frame)
    ids = pd.DataFrame({"id": [1, 2, 3]})
    pd.testing.assert_frame_equal(imputer().fit_transform(ids), ids)
    assert imputer().fit(ids).model_ is None


def test_constant_and_empty_columns_and_rows():
    X = correlated(60)[0]
    X[:, 0], X[5, 0] = 7.0, np.nan
    X[:, 1] = np.nan
    X[3] = np.nan
    with pytest.warns(DataWarning, match="nothing in it is seen"):
        model = imputer().fit(X)
    found = model.transform(X)
    assert (found[:, 0] == 7).all()
    assert np.isnan(found[:, 1]).all()
    assert_allclose(found[3, 2:], np.nanmean(X[:, 2:], axis=0), atol=0.5)
    assert not np.isnan(found[:, 2:]).any()
    assert model.quality_["kind"][:2].tolist() == ["constant", "empty"]


def test_one_row():
    with pytest.warns(DataWarning, match="nothing in it is seen.* Drop such columns, or name them in skip"):
        found = imputer().fit_transform([[1.0, np.nan, 3.0]])
    assert_array_equal(found, [[1, np.nan, 3]])


@pytest.mark.parametrize(("dtype", "size"), [("f8", 1e300), ("f4", 1e37), ("f4", 1.0), ("f8", 1e-300)])
def test_numbers_of_any_size_and_precision(dtype, size):
    X, cells, *_ = correlated(80)
    X, cells = ((one * size / 10).astype(dtype) for one in (X, cells))
    found = imputer().fit_transform(X)
    assert found.dtype == dtype
    assert np.isfinite(found).all()
    holes = np.isnan(X)
    plain = imputer().fit_transform(correlated(80)[0])
    assert_allclose(found[holes] / (size / 10), plain[holes], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("n_rows", [1, 9])
@pytest.mark.parametrize("value", [1e30, 1e100, -1e300, 1.7e308])
def test_new_rows_may_show_numbers_of_any_size(value, n_rows, trees):
    X = np.random.default_rng(0).normal(size=(80, 1)) * [1, 2, 3] + np.random.default_rng(1).normal(size=(80, 3)) / 5
    model = fitted(X, trees=trees)
    new = X[:n_rows].copy()
    new[0, :2] = value, np.nan
    with warnings.catch_warnings(action="error"):
        low, high = model.predict_interval(new)
        for found in (model.transform(new), low, high, *model.sample(new, 2, random_state=0)):
            assert found[0, 0] == value
            assert X[:, 1].min() - 1e-9 <= found[0, 1] <= X[:, 1].max() + 1e-9


@pytest.mark.parametrize("size", [1e4, 1e12, 1e100, 1e300])
@pytest.mark.parametrize("seed", range(4))
def test_one_strange_cell_does_not_decide_about_other_columns(size, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(300, 1)) + random.normal(size=(300, 4)) / 3
    X[random.random(X.shape) < 0.1] = np.nan
    X[3, 3] = size
    with pytest.warns(DataWarning, match="at row 3"):
        model = imputer().fit(X)
    assert (model.quality_["ratio"][:3] < 0.7).all()
    assert "column 3" in str(model.notes_[-1])


def test_columns_that_are_never_seen_together_are_filled():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 1)) + random.normal(size=(200, 4)) / 5
    X[:100, 1] = X[100:, 2] = np.nan  # two questionnaires
    filled = fitted(X, trees=True).transform(X)
    assert np.isfinite(filled).all()
    assert np.corrcoef(filled[:, 1], filled[:, 2])[0, 1] > 0.8


def test_constant_columns_alone_are_filled_without_a_warning():
    X = np.where(np.random.default_rng(0).random((30, 3)) < 0.1, np.nan, 1.0)
    with warnings.catch_warnings(action="error"):
        model = imputer().fit(X)
        assert_array_equal(model.transform(X), np.ones((30, 3)))
        assert_array_equal(model.predict_interval(X)[0], np.ones((30, 3)))


def test_arrays_of_objects_are_filled_column_by_column():
    rows = [["a", 1.0], ["b", 2.0], ["a", None], ["b", 2.0], [None, 1.0]] * 6
    found = imputer().fit_transform(np.array(rows, dtype=object))
    assert found.dtype == object
    assert set(found[:, 0]) == {"a", "b"}
    assert found[2, 1] < 1.5
    with pytest.raises(DataError, match=r"of numbers must hold numbers. Found 'x' in column 1"):
        imputer().fit(np.array(rows, dtype=object)).transform(np.array([["a", "x"]], dtype=object))


def test_nan_that_numpy_turned_into_text_is_a_hole():
    cells = np.array([["red", "u"], [np.nan, "u"], ["blue", "v"], ["blue", np.nan]] * 9)
    assert cells.dtype.kind == "U"
    model = fitted(cells)
    assert [one.values for one in model.columns_] == [("blue", "red"), ("u", "v")]
    filled = model.transform(cells)
    assert not pd.isna(filled).any()
    assert "nan" not in filled


def test_an_unknown_category_stays_and_says_nothing():
    frame = with_holes(people())[["age", "pay", "colour"]]
    model = fitted(frame)
    new = pd.DataFrame({"age": [np.nan, np.nan], "pay": [1.0, 1.0], "colour": ["violet", None]}).astype(
        {"colour": object}
    )
    with pytest.warns(DataWarning, match="'violet' at row 0"):
        found = model.transform(new)
    with pytest.warns(DataWarning, match="'violet' at row 0"):
        shares = model.predict_proba(new)["colour"]
    assert np.isnan(shares[0]).all()
    assert_allclose(shares[1].sum(), 1)
    assert found["colour"][0] == "violet"
    assert found["colour"][1] in COLOURS
    assert found["age"][0] == found["age"][1]


def test_numbers_that_are_no_level_of_the_fit_are_named_and_enter_as_they_are():
    stars = np.digitize(people()["change"], [-1, 0, 1]) + 1.0
    model = fitted(np.column_stack([people()["age"], stars]))
    new = np.array([[np.nan, 4.0], [np.nan, 7.0], [np.nan, 7.0]])
    with pytest.warns(
        DataWarning, match="Column 1 should hold what it held in the fit. Found 7.0 at row 1, and 1 more"
    ):
        found = model.transform(new)
    assert_array_equal(found[:, 1], new[:, 1])
    assert found[1, 0] > found[0, 0]


def test_levels_that_the_most_frequent_value_hits_more_often_are_noted():
    """Names written as numbers, the first and the last of which are the most frequent; an order is not noted."""
    random = np.random.default_rng(0)
    codes = random.choice([1.0, 2.0, 3.0, 4.0, 5.0], 800, p=[0.55, 0.05, 0.0, 0.0, 0.4])
    names = random.choice([1.0, 2.0, 3.0, 4.0], 800, p=[0.35, 0.1, 0.1, 0.45])
    z = random.normal(size=(800, 1)) + 0.5 * random.normal(size=(800, 2))
    frame = pd.DataFrame(
        {"domain": names, "ends": codes, "x": z[:, 0], "stars": np.digitize(z[:, 1], [-1, 0, 1]) + 1.0}
    )
    (note,) = fitted(frame).notes_
    assert "held-out cells of 'domain'" in note.found
    assert "'stars'" not in str(note)
    assert "categories=['domain'" in note.remedy
    assert fitted(frame, categories=["domain", "ends"]).notes_ == ()


def test_decimals_are_those_of_the_column():
    truth = people()[["visits", "age", "pay", "change"]].round({"pay": 2, "change": 1})
    found = fitted(with_holes(truth), decimals="auto").transform(with_holes(truth))
    assert_array_equal(found["age"], np.round(found["age"]))
    assert_array_equal(found["pay"], np.round(found["pay"], 2))
    assert_array_equal(found["change"], np.round(found["change"], 1))
    plain = fitted(with_holes(truth)).transform(with_holes(truth))
    assert (plain["age"] != np.round(plain["age"])).any()


@pytest.mark.filterwarnings("ignore:Column 3 should hold what it held in the fit")  # a rare level
@pytest.mark.parametrize("levels", [False, True])
def test_new_rows_are_filled_one_by_one_as_together(levels):
    X = np.round(correlated(200)[0]) if levels else correlated(200)[0]
    model = TableImputer(random_state=0).fit(X[:150])
    together = model.transform(X[150:])
    alone = np.vstack([model.transform(row[None]) for row in X[150:]])
    assert_allclose(alone, together, rtol=1e-6, atol=1e-8)
    assert np.isfinite(together).all()
    assert hasattr(model, "predict_proba") == levels  # there where a column has probabilities
    for name, shares in model.predict_proba(X[:149:-1]).items() if levels else ():
        rows = [model.predict_proba(row[None])[name][0] for row in X[150:]]
        assert_allclose(shares[::-1], rows, rtol=1e-6, atol=1e-6)


def test_the_same_seed_gives_the_same_table_and_pickles_and_clones_work():
    X = correlated(100)[0]
    assert_array_equal(imputer().fit_transform(X), imputer().fit_transform(X))
    assert (imputer(random_state=1).fit_transform(X) != imputer().fit_transform(X)).any()


def test_a_pipeline_loses_no_more_than_the_lost_cells_do():
    """A label that is the sign of a column, in 1,000 new rows: beside the same pipeline on the complete table.

    Where the cell is lost, the best guess is the sign of its conditional mean, right with 1/2 + arcsin(R) / pi for
    normals with the multiple correlation R; elsewhere nothing is lost. Four standard errors are allowed for chance.
    """
    X, cells, mean, covariance = correlated(1300)
    y = cells[:, 0] > mean[0]
    train, new = slice(0, 300), slice(300, None)
    complete = make_pipeline(StandardScaler(), LogisticRegression()).fit(cells[train], y[train])
    pipeline = make_pipeline(imputer(), StandardScaler(), LogisticRegression()).fit(X[train], y[train])
    explained = covariance[0, 1:] @ np.linalg.solve(covariance[1:, 1:], covariance[1:, 0]) / covariance[0, 0]
    lost = np.isnan(X[new, 0]).mean()
    best = 1 - lost * (0.5 - np.arcsin(np.sqrt(explained)) / np.pi)
    expected = complete.score(cells[new], y[new]) - (1 - best)
    assert pipeline.score(X[new], y[new]) > expected - 4 * np.sqrt(expected * (1 - expected) / 1000)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_intervals_are_around_what_is_filled_and_cover(library):
    X, cells, *_ = correlated(600, holes=0.15)
    names = list("abcdef")
    data = {
        "numpy": X,
        "pandas": pd.DataFrame(X, columns=names),
        "polars": pl.DataFrame(X, schema=names, nan_to_null=True),
    }
    model = imputer().fit(data[library])
    narrow, wide = (model.predict_interval(data[library], level) for level in (0.5, 0.9))
    assert type(wide[0]) is type(data[library])
    (low, high), (lower, higher) = ([np.asarray(end) for end in ends] for ends in (narrow, wide))
    holes = np.isnan(X)
    assert_array_equal(low[~holes], X[~holes])
    assert ((lower <= low) & (low <= high) & (high <= higher)).all()
    assert abs(np.mean(((lower <= cells) & (cells <= higher))[holes]) - 0.9) < 0.05
    with pytest.raises(ParameterError, match="level"):
        model.predict_interval(X, 1.0)


def test_intervals_of_levels_are_levels_and_those_of_categories_stay_open():
    holey = with_holes(people())
    low, high = fitted(holey, levels=ANSWERS).predict_interval(holey, 0.8)
    places = [one["answer"].map(ANSWERS.index) for one in (low, high)]
    assert (places[0] <= places[1]).all()
    assert low["colour"].isna().equals(holey["colour"].isna())
    assert low["visits"].dtype == "Float64"


def test_draws_are_complete_tables_that_differ_where_holes_were():
    truth = people(400)
    holey = with_holes(truth, 0.2)[FILLED]
    model = fitted(holey, levels=ANSWERS)
    tables = model.sample(holey, 20, random_state=0)
    assert len(tables) == 20
    for name in FILLED:
        seen = holey[name].notna()
        drawn = pd.DataFrame([one[name] for one in tables])
        assert drawn.notna().all(axis=None)
        assert (drawn.loc[:, seen].nunique() == 1).all()
        assert (drawn.loc[:, ~seen].nunique() > 1).mean() > 0.2
    again = model.sample(holey, 2, random_state=0)
    pd.testing.assert_frame_equal(again[1], tables[1])
    holes = holey["change"].isna()
    assert abs(np.mean([np.std(one["change"][holes]) for one in tables]) / np.std(truth["change"]) - 1) < 0.15


def test_draws_vary_between_tables_by_the_uncertainty_of_the_regression():
    """Means and slopes of y, half of which is lost, over drawn tables: their variances beside those of a regression.

        Var mean = s^2 (m / n^2 + (m / n)^2 (1 / (n - m) + (difference of means of x)^2 / S_xx)),    m holes of n rows

    and s^2 (sum of (x - mean)^2 over the holes / S^2 + (the same, as a share of S)^2 S / S_xx) for the slope, S over
    all rows, S_xx over the seen ones. Without the second terms, which are the uncertainty of the parameters, they are
    about half as large. 400 draws give variances within 4 sqrt(2 / 400) = 28 %; the rest is for the estimate of s.
    """
    random, n, m = np.random.default_rng(200), 400, 200
    x = random.normal(size=n)
    X = np.column_stack([x, x + random.normal(size=n)])
    X[:m, 1] = np.nan
    tables = imputer().fit(X).sample(X, 400, random_state=0)
    found = np.array([[one[:, 1].mean(), np.polyfit(x, one[:, 1], 1)[0]] for one in tables]).var(axis=0)
    far = (x - x.mean()) ** 2
    S, S_xx, share = far.sum(), ((x[m:] - x[m:].mean()) ** 2).sum(), far[:m].sum() / far.sum()
    difference = (x[:m].mean() - x[m:].mean()) ** 2 / S_xx
    expected = m / n**2 + (m / n) ** 2 * (1 / (n - m) + difference), share / S + share**2 / S_xx
    assert_allclose(found / expected, 1, atol=0.4)


def test_rubins_rules_cover_the_mean_of_a_column():
    """The mean of a column with a third of its cells hidden, by multiple imputation, over simulated tables.

    95 % intervals may cover a little less, as bootstraps of rows are approximate: 93 %, give or take what chance does
    to so many tables once in a thousand times.
    """
    covered, n_tables = 0, 50
    for seed in range(n_tables):
        X, _, mean, _ = correlated(150, p=3, holes=0.33, seed=seed)
        tables = imputer().fit(X).sample(X, 10, random_state=seed)
        estimates = np.array([one[:, 0].mean() for one in tables])
        within = np.mean([one[:, 0].var(ddof=1) / len(one) for one in tables])
        total = within + (1 + 1 / 10) * estimates.var(ddof=1)
        covered += abs(estimates.mean() - mean[0]) < 1.96 * np.sqrt(total)
    assert covered >= binom.ppf(0.001, n_tables, 0.93)


def test_draws_are_as_often_a_value_as_its_probability_says():
    truth = people(60)
    holey = with_holes(truth, 0.3)[["age", "pay", "member", "answer", "colour", "visits"]]
    model = fitted(holey)
    probabilities, n = model.predict_proba(holey), 400
    drawn = model.sample(holey, n, random_state=0)
    for column in model.columns_:
        if column.kind not in CHOICES:
            continue
        holes, shares = holey[column.name].isna().to_numpy(), probabilities[column.name]
        assert len(column.values) > 1
        for place, value in enumerate(column.values):
            counts = sum((one[column.name] == value).to_numpy().astype(int) for one in drawn)
            assert_array_equal(counts[~holes], n * shares[~holes, place])
            p = shares[holes, place]
            assert (np.abs(counts[holes] / n - p) < 5 * np.sqrt(p * (1 - p) / n) + 2 / n).all()


def test_what_is_filled_follows_from_the_probabilities():
    truth = people(150)
    holey = with_holes(truth, 0.3)[["age", "pay", "member", "answer", "colour", "visits"]]
    holey["stars"] = np.digitize(truth["change"], [-1, 0, 1]) + np.where(np.arange(150) % 6 == 0, np.nan, 1.0)
    model = fitted(holey)
    probabilities, filled = model.predict_proba(holey), model.transform(holey)
    for name in ("member", "colour"):  # the most likely
        values = next(column.values for column in model.columns_ if column.name == name)
        assert [values[place] for place in probabilities[name].argmax(axis=1)] == filled[name].to_list()
    for name in ("answer", "visits"):  # the median, as both are no floats
        values = next(column.values for column in model.columns_ if column.name == name)
        below = np.cumsum(probabilities[name], axis=1)
        assert [values[place] for place in (below < 0.5).sum(axis=1)] == filled[name].to_list()
    assert_allclose(probabilities["stars"] @ [1, 2, 3, 4], filled["stars"], atol=1e-5)  # the expected value
    whole = fitted(holey, decimals="auto").transform(holey)["stars"]
    assert [
        [1, 2, 3, 4][place] for place in (np.cumsum(probabilities["stars"], axis=1) < 0.5).sum(axis=1)
    ] == whole.to_list()


def test_probabilities_are_calibrated():
    """Among holes whose value has about the same probability, as many have it: in five groups, within 4 errors.

    And they say more than the shares of the column: their Brier score is smaller.
    """
    random, n = np.random.default_rng(0), 1500
    z = random.normal(size=(n, 2))

    def noisy():
        return z @ random.normal(size=2) + 0.7 * random.normal(size=n)

    choice = np.argmax([noisy(), noisy(), noisy()], axis=0)
    truth = pd.DataFrame(
        {
            "x": noisy(),
            "y": noisy(),
            "flag": noisy() > 0.5,
            "colour": np.array(COLOURS)[choice],
            "answer": np.array(ANSWERS)[np.digitize(noisy(), [-1, 0.5])],
            "stars": np.digitize(noisy(), [-1.5, -0.5, 0.5, 1.5]) + 1.0,
        }
    ).astype({"flag": object, "colour": object, "answer": object})
    holes = random.random(truth.shape) < 0.2
    model = fitted(truth.mask(holes, None))
    probabilities = model.predict_proba(truth.mask(holes, None))
    for place, column in enumerate(model.columns_[2:], start=2):
        shares = probabilities[column.name][holes[:, place]]
        hit = np.array([truth[column.name] == value for value in column.values]).T[holes[:, place]].astype(float)
        for group in np.array_split(np.argsort(shares.ravel()), 5):
            p = shares.ravel()[group]
            error = np.sqrt((p * (1 - p)).sum()) / p.size
            assert abs(hit.ravel()[group].mean() - p.mean()) < 4 * error + 0.02
        assert ((shares - hit) ** 2).sum() < 0.9 * ((hit.mean(axis=0) - hit) ** 2).sum()


@pytest.mark.parametrize("ratio", [0.2, 0.7, 0.95])
def test_the_standard_error_of_a_ratio_is_how_much_it_varies(ratio):
    """Residuals of a prediction that can't be scaled better, and values; the ratio of their sizes over many tables."""
    random, n = np.random.default_rng(0), 80
    residuals = ratio * random.normal(size=(4000, n))
    values = residuals + np.sqrt(1 - ratio**2) * random.normal(size=(4000, n))
    found = np.sqrt((residuals**2).mean(axis=1) / (values**2).mean(axis=1))
    assert_allclose(ratio_error(np.array([ratio]), np.array([n])), found.std(), rtol=0.05)
    noise = 1 / found  # a prediction that is noise: the mean is the better one
    assert_allclose(ratio_error(np.array([1 / ratio]), np.array([n])), noise.std(), rtol=0.1)


def test_quality_is_as_sure_as_it_says():
    """Over tables from one distribution, the ratio varies as its standard error says, give or take a third."""
    random = np.random.default_rng(0)
    X = random.normal(size=(30 * 120, 1)) + 0.6 * random.normal(size=(30 * 120, 4))  # all columns are predicted
    X[random.random(X.shape) < 0.2] = np.nan
    found = [imputer().fit(one).quality_ for one in np.split(X, 30)]
    varies = np.std([one["ratio"] for one in found], axis=0).mean()
    assert_allclose(np.mean([one["standard_error"] for one in found]), varies, rtol=0.35)


def test_orders_that_are_found_are_noted_and_categories_override_them():
    frame = with_holes(people())[["age", "answer", "colour"]]
    model = fitted(frame)
    assert model.columns_[1].values == tuple(ANSWERS)
    (note,) = model.notes_
    assert "'answer' holds levels, in the order found: never < rarely < often." in str(note)
    assert "categories=['answer']" in str(note)
    assert fitted(frame, categories=["answer"]).columns_[1].kind == "category"
    ordered = frame.assign(answer=pd.Categorical(frame["answer"], ANSWERS, ordered=True))
    assert fitted(ordered, categories=["answer"]).columns_[1].kind == "category"


def test_lists_of_levels_find_their_columns_and_name_the_word_that_they_lack():
    frame = with_holes(people())[["age", "answer", "colour"]]
    model = fitted(frame, levels=[COLOURS[::-1], ANSWERS])
    assert [column.values for column in model.columns_[1:]] == [tuple(ANSWERS), tuple(COLOURS[::-1])]
    assert [column.order for column in model.columns_[1:]] == ["given", "given"]
    n_rare = (frame["answer"] == "rarely").sum()
    found = rf"'answer' must be all of its values: 'never', 'often'. Found 'rarely' in {n_rare} of"
    with pytest.raises(DataError, match=found):
        imputer(levels=["never", "often"]).fit(frame)
    slip = frame.replace({"answer": {"often": "offen"}})
    with pytest.raises(DataError, match=r"Found 'offen' .* correct it to 'often'"):
        imputer(levels=ANSWERS).fit(slip)
    with pytest.warns(
        DataWarning, match="no column of: never, often, daily, weekly; column 'answer' also holds 'rarely'"
    ):
        imputer(levels=["never", "often", "daily", "weekly"]).fit(frame.replace({"answer": {"often": "always"}}))
    with pytest.warns(DataWarning, match="Found no column of: up, down"):
        model = imputer(levels=["up", "down"]).fit(frame)
    assert model.columns_[1].order == "found"


@pytest.mark.parametrize(
    ("scale", "categories", "found"),
    [
        (["never", "rarely", "often"], ["answer"], "holds categories already"),
        (["no", "low", "mid", "high"], [], "holds levels already in the order low < mid < high"),
        ([0, 1], [], "no column of: 0, 1. Check"),
    ],
)
def test_a_list_of_levels_that_is_not_used_says_why(scale, categories, found):
    order = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    words = pd.DataFrame({"answer": ANSWERS * 9, "grade": pd.Series(["low", "mid", "high"] * 9, dtype=order)})
    with pytest.warns(DataWarning, match=found):
        imputer(levels=scale, categories=categories).fit(words.assign(member=[True, False, True] * 9))


@pytest.mark.parametrize("first", ["a", "z"])
def test_draws_of_a_category_vary_with_the_cells_drawn_beside_it(first):
    """Whatever the order of the names: rows of the first category have a high x, also where both are missing."""
    random = np.random.default_rng(0)
    x = random.normal(size=2000)
    other = np.where(random.random(2000) < 0.5, "m", "n")
    table = pd.DataFrame(
        {"x": x, "c": np.where(x + 0.3 * random.normal(size=2000) > 0.5, first, other), "y": random.normal(size=2000)}
    )
    lost = random.random(2000) < 0.3
    seen = table.copy()
    seen.loc[lost, ["x", "c"]] = None
    drawn = imputer().fit(seen).sample(seen, random_state=0)[0][lost]
    means = [one.groupby(one["c"] == first)["x"].mean() for one in (table[lost], drawn)]
    assert means[1][True] - means[1][False] > 0.5 * (means[0][True] - means[0][False])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_new_rows_that_show_nothing_of_a_column_are_filled(library):
    random = np.random.default_rng(0)
    x = random.normal(size=100)
    table = pd.DataFrame(
        {"x": x, "count": np.round(x * 5 + 20).astype(int), "word": np.where(x > 0, "red", "blue"), "flag": x > 0.1}
    )
    table["kind"] = pd.Categorical(table["word"])
    new = pd.DataFrame([{"x": 1.5, "count": np.nan, "word": np.nan, "flag": np.nan, "kind": np.nan}])
    if library == "polars":
        polars = pytest.importorskip("polars")
        table = polars.from_pandas(table)
        new = polars.DataFrame({"x": [1.5], "count": [None], "word": [None], "flag": [None], "kind": [None]})
    else:
        new["kind"] = pd.Categorical(["blue", None][1:], categories=["blue"])
    model = imputer().fit(table)
    for filled in (model.transform(new), model.sample(new, random_state=0)[0]):
        row = filled.iloc[0].tolist() if library == "pandas" else list(filled.row(0))
        assert row[0] == 1.5
        assert 15 < row[1] < 40
    filled = model.transform(new)
    row = filled.iloc[0].tolist() if library == "pandas" else list(filled.row(0))
    assert row[2:] == ["red", True, "red"]
    model.predict_interval(new)


def test_what_is_left_out_may_be_infinite():
    table = pd.DataFrame({"a": [1.0, np.inf, 2.0, np.nan], "b": [1.0, 2.0, np.nan, 4.0]})
    filled = imputer(skip=["a"]).fit_transform(table)
    assert filled["a"].tolist()[1] == np.inf
    with pytest.raises(DataError, match="finite"):
        imputer().fit(table)
    with pytest.raises(DataError, match="finite"):
        imputer().fit(table.replace(np.inf, 5.0)).transform(table)

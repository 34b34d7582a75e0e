"""halfseen fit: from a file to a model file."""

import gzip
import os
import re

import numpy as np
import pytest

import halfseen
from halfseen import PoissonFactorization, WeightedNMF
from halfseen.estimators import base
from tests.cli.conftest import ITEMS, USERS, long_lines, write_long
from tests.cli.program import check_refusal, done, misused, names_in, program, refused, refused_for_room, remarked
from tests.cli.program import halfseen as run
from tests.rank_one import oracle


def fitted(tmp_path, *words):
    """The model that a fit with these words saves."""
    done("fit", *words, "-o", tmp_path / "model.hs")
    return halfseen.load(tmp_path / "model.hs")


def assert_same(model, other):
    assert type(model) is type(other)
    np.testing.assert_array_equal(model.W_, other.W_)
    np.testing.assert_array_equal(model.H_, other.H_)
    np.testing.assert_array_equal(model.trace_["objective"], other.trace_["objective"])
    assert model.status_ is other.status_


def matrix(model):
    """The model's mean of every cell, rows and columns in the order of their names."""
    rows, columns = np.argsort(model.row_labels_), np.argsort(model.column_labels_)
    return (model.W_ @ model.H_.T)[np.ix_(rows, columns)]


# Methods.


@pytest.mark.parametrize(
    ("method", "kind"),
    [("ordnmf", halfseen.OrdNMF), ("bernoulli", halfseen.BernoulliPoisson), ("compound", halfseen.CompoundPoisson)],
)
def test_relatives_of_poisson_are_those_of_the_library(method, kind, ratings, tmp_path):
    model = fitted(tmp_path, ratings.path, "--method", method, "-k", 2, "--max-iter", 2000)
    assert_same(model, kind(2, random_state=0, max_iter=2000).fit(halfseen.observe(ratings.path, unseen="zero")))


@pytest.mark.parametrize(
    ("method", "kind"), [("squared-ordnmf", halfseen.SquaredOrdNMF), ("squared-poisson", halfseen.SquaredPoisson)]
)
def test_squared_methods_have_their_own_number_of_components(method, kind, ratings, tmp_path):
    model = fitted(tmp_path, ratings.path, "--method", method, "--max-iter", 5000)
    assert model.W_.shape == (len(USERS), 50)
    assert_same(model, kind(random_state=0, max_iter=5000).fit(halfseen.observe(ratings.path, unseen="zero")))


def test_every_model_can_be_fitted(ratings, tmp_path):
    from halfseen.cli.fit import METHODS

    kinds = {name for name in halfseen.__all__ if hasattr(getattr(halfseen, name), "fit")}
    kinds -= {"Quantizer", "UncoupledNMF", "RankSearch"}  # the last two are reached by uncouple and by -k auto
    assert set(METHODS.values()) == kinds
    for method in METHODS:
        assert type(fitted(tmp_path, ratings.path, "--method", method, "--max-iter", 5000)).__name__ == METHODS[method]


def test_levels_may_be_words(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,fair\nbob,y,bad\ncid,y,good\n")
    words = ("--method", "ordnmf", "-k", 2, "--max-iter", 2000)
    model = fitted(tmp_path, tmp_path / "t.csv", *words, "--levels", "bad, fair,good")
    assert model.levels_.tolist() == [None, "bad", "fair", "good"]
    same = halfseen.OrdNMF(2, levels=["bad", "fair", "good"], max_iter=2000, random_state=0).fit(tmp_path / "t.csv")
    np.testing.assert_array_equal(model.W_, same.W_)
    sentence = refused("fit", tmp_path / "t.csv", *words, "-o", tmp_path / "model.hs")
    assert "Values must be numbers, or texts whose order is told. Found 'bad' on line 2 of t.csv" in sentence


def test_levels_may_be_numbers(ratings, tmp_path):
    found = np.unique(ratings.values[~np.isnan(ratings.values)])
    words = (ratings.path, "--method", "ordnmf", "-k", 2, "--max-iter", 2000)
    model = fitted(tmp_path, *words, "--levels", ",".join(f"{level:g}" for level in found))
    assert_same(model, fitted(tmp_path, *words))


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ([], {}),
        (["--loss", "linear"], {"loss": "linear"}),
        (["--loss", "round", "-k", 1], {"loss": "round", "n_components": 1}),
        (["--l2", 2.5, "--early-stopping"], {"l2": 2.5, "early_stopping": True}),
    ],
)
def test_rounding_is_that_of_the_library(ratings, tmp_path, words, parameters):
    model = fitted(tmp_path, ratings.path, "--method", "round", "--max-iter", 2000, *words)
    same = halfseen.RoundMF(random_state=0, max_iter=2000).set_params(**parameters).fit(ratings.path)
    assert_same(model, same)
    np.testing.assert_array_equal(model.thresholds_, same.thresholds_)
    assert model.unseen == "missing"


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_cumulative_links_are_those_of_the_library(ratings, tmp_path, link):
    model = fitted(tmp_path, ratings.path, "--method", "ordinal", "-k", 2, "--link", link, "--max-iter", 2000)
    same = halfseen.OrdinalMF(2, link=link, random_state=0, max_iter=2000).fit(ratings.path)
    assert_same(model, same)
    np.testing.assert_array_equal(model.predict_proba("ann", "rum"), same.predict_proba("ann", "rum"))


def test_rows_may_have_thresholds_of_their_own(ratings, tmp_path):
    words = ("--method", "ordinal", "-k", 1, "--own-thresholds", "rows", "--max-iter", 2000)
    model = fitted(tmp_path, ratings.path, *words)
    same = halfseen.OrdinalMF(1, own_thresholds="rows", random_state=0, max_iter=2000).fit(ratings.path)
    assert model.own_thresholds_.shape[0] == len(USERS)
    np.testing.assert_array_equal(model.own_thresholds_, same.own_thresholds_)


@pytest.mark.parametrize(("method", "kind"), [("round", halfseen.RoundMF), ("ordinal", halfseen.OrdinalMF)])
def test_words_are_levels_of_thresholds_too(tmp_path, method, kind):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,fair\nbob,y,bad\ncid,y,good\n")
    words = ("--method", method, "-k", 1, "--levels", "bad,fair,good", "--max-iter", 5000)
    model = fitted(tmp_path, tmp_path / "t.csv", *words)
    assert model.levels_.tolist() == ["bad", "fair", "good"]
    same = kind(1, levels=["bad", "fair", "good"], random_state=0, max_iter=5000).fit(tmp_path / "t.csv")
    cells = (["ann", "ann", "bob", "cid"], ["x", "y", "x", "x"])
    assert model.predict_level(*cells).tolist() == same.predict_level(*cells).tolist()


def test_the_account_tells_the_link(ratings, tmp_path):
    lines = done("fit", ratings.path, "--method", "ordinal", "-k", 2, "--link", "probit", "-o", tmp_path / "m.hs")
    assert lines[1] == "OrdinalMF: 2 components, link probit, unseen cells are missing."


# One component.


def test_rank_one_is_the_best_there_is(tmp_path):
    X = np.array([[1.0, 2, 4], [3, np.nan, 7], [2, 2.5, np.nan]])
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,4\n3,,7\n2,2.5,\n")
    model = fitted(tmp_path, tmp_path / "t.csv", "--method", "rank-one")
    assert type(model) is halfseen.RankOneNMF
    np.testing.assert_allclose(model.W_ @ model.H_.T, np.outer(*oracle.best(X)), rtol=1e-9)
    assert_same(fitted(tmp_path, tmp_path / "t.csv", "--method", "rank-one", "-k", 1), model)


def test_rank_one_has_one_component(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    sentence = misused("fit", tmp_path / "t.csv", "--method", "rank-one", "-k", 3, "-o", tmp_path / "model.hs")
    assert "--method rank-one has 1 component, not 3. Use --method nmf." in sentence


# The account, and the same numbers as from the library.


def test_the_account_has_five_lines_with_the_numbers_of_the_fit(ratings, tmp_path):
    path = tmp_path / "model.hs"
    lines = done("fit", ratings.path, "--method", "nmf", "-k", 3, "-o", path)
    model, seen = halfseen.load(path), ratings.values[~np.isnan(ratings.values)]
    first, last = model.trace_["objective"][[0, -1]]
    n, m = ratings.values.shape
    assert lines[0] == (
        f"Read {ratings.path}: {n} x {m}, {seen.size} cells seen ({seen.size / (n * m):.3g} of all), "
        f"values {seen.min():g} to {seen.max():g}. "
        "Rows are from column 'user', columns from column 'item', values from column 'rating'."
    )
    assert lines[1] == "WeightedNMF: 3 components, loss kullback-leibler, unseen cells are missing."
    assert re.fullmatch(
        rf"{model.status_.name} after {model.n_iter_} iterations in [\d.]+ s\. {re.escape(model.status_.value)}",
        lines[2],
    )
    assert lines[3] == f"Loss {last:,.6g} (after the first iteration {first:,.6g})."
    assert lines[4] == f"Saved {path} ({path.stat().st_size / 1000:.3g} KB)."
    assert len(lines) == 5


def test_the_account_of_a_bayesian_fit_tells_the_evidence_bound(ratings, tmp_path):
    lines = done("fit", ratings.path, "-k", 3, "-o", tmp_path / "model.hs")
    objective = halfseen.load(tmp_path / "model.hs").trace_["objective"]
    assert lines[1] == "PoissonFactorization: 3 components, unseen cells are zero."
    assert lines[3] == f"Evidence bound {objective[-1]:,.6g} (after the first iteration {objective[0]:,.6g})."
    assert len(lines) == 5


def test_large_numbers_have_commas(tmp_path):
    lines = [f"{i},{j},{1 + (i + j) % 3}" for i in range(1200) for j in range(2)]
    (tmp_path / "many.csv").write_text("user,item,rating\n" + "\n".join(lines))
    account = done("fit", tmp_path / "many.csv", "-k", 1, "-o", tmp_path / "model.hs")
    assert ": 1,200 x 2, 2,400 cells seen (1 of all), values 1 to 3." in account[0]


@pytest.mark.parametrize(("method", "estimator"), [("nmf", WeightedNMF), ("poisson", PoissonFactorization)])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_model_is_that_of_the_library(ratings, tmp_path, method, estimator, seed):
    model = fitted(tmp_path, ratings.path, "--method", method, "-k", 3, "--seed", seed)
    assert_same(model, estimator(3, random_state=seed).fit(ratings.path))
    assert model.row_labels_.tolist() == list(USERS)
    assert sorted(model.column_labels_) == sorted(ITEMS)


def test_the_seed_is_0_and_other_seeds_give_other_numbers(ratings, tmp_path):
    plain, zero, one = (fitted(tmp_path, ratings.path, "-k", 3, *seed) for seed in ([], ["--seed", 0], ["--seed", 1]))
    assert_same(plain, zero)
    assert not np.allclose(plain.W_, one.W_)


def test_the_number_of_threads_changes_nothing(ratings, tmp_path):
    one, two = (fitted(tmp_path, ratings.path, "-k", 3, "--n-jobs", jobs) for jobs in (1, 2))
    assert_same(one, two)


@pytest.mark.parametrize(("word", "loss"), [("frobenius", "frobenius"), ("0.5", 0.5), ("0", 0.0), ("1e0", 1.0)])
def test_the_loss_by_name_or_number(ratings, tmp_path, word, loss):
    model = fitted(tmp_path, ratings.path, "--method", "nmf", "-k", 2, "--loss", word)
    assert model.loss == loss
    assert_same(model, WeightedNMF(2, loss=loss, random_state=0).fit(ratings.path))


@pytest.mark.parametrize(
    ("method", "unseen", "estimator"),
    [("nmf", "zero", WeightedNMF), ("poisson", "missing", PoissonFactorization)],
)
def test_what_unseen_means(ratings, tmp_path, method, unseen, estimator):
    words = (ratings.path, "--method", method, "-k", 2)
    model = fitted(tmp_path, *words, "--unseen", unseen)
    assert_same(model, estimator(2, unseen=unseen, random_state=0).fit(ratings.path))
    assert not np.allclose(model.W_, fitted(tmp_path, *words).W_)


def test_how_long_to_go_on(ratings, tmp_path):
    words = (ratings.path, "--method", "nmf", "-k", 2)
    exact = fitted(tmp_path, *words, "--max-iter", 3, "--tol", 0)
    assert (exact.n_iter_, exact.status_.name) == (3, "MAX_ITER")
    hasty, patient = (fitted(tmp_path, *words, "--tol", tol, "--max-iter", 5000) for tol in (1e-2, 1e-6))
    assert hasty.n_iter_ < patient.n_iter_
    assert hasty.trace_["objective"][-1] > patient.trace_["objective"][-1]


# Ways to give the data.


def test_named_columns(ratings, tmp_path):
    header = ("who", "what", "how much")
    path = write_long(tmp_path / "odd.csv", ratings.values, header=header)
    model = fitted(tmp_path, path, "-k", 2, "--columns", "who, what,how much")
    assert_same(model, PoissonFactorization(2, random_state=0).fit(ratings.path))


def test_two_named_columns_count_pairs_as_1(ratings, tmp_path):
    lines = done("fit", ratings.path, "-k", 2, "--columns", "user,item", "-o", tmp_path / "model.hs")
    assert lines[0].endswith(
        "values 1 to 1. Rows are from column 'user', columns from column 'item'; no column of values: every pair "
        "counts 1; column 'rating' is not used."
    )


def test_a_wide_table(ratings, tmp_path):
    path = tmp_path / "wide.csv"
    rows = [",".join("" if value != value else f"{value:g}" for value in row) for row in ratings.values]
    path.write_text("\n".join([",".join(ITEMS), *rows]) + "\n")
    model = fitted(tmp_path, path, "--method", "nmf", "-k", 2, "--layout", "wide")
    assert_same(model, WeightedNMF(2, random_state=0).fit(ratings.values))
    assert model.column_labels_.tolist() == list(ITEMS)


def test_the_layout_decides_how_three_columns_of_numbers_are_read(tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("1,2,3\n4,5,6\n7,8,9\n10,11,12\n")
    long, wide = (
        done("fit", path, "-k", 1, "--layout", how, "-o", tmp_path / "model.hs")[0] for how in ("long", "wide")
    )
    assert ": 4 x 4, 4 cells seen" in long
    assert ": 4 x 3, 12 cells seen" in wide


@pytest.mark.parametrize(("how", "value"), [("mean", 3), ("sum", 6), ("max", 5), ("first", 5), ("last", 1)])
def test_duplicates_are_merged_as_told(tmp_path, how, value):
    twice, once = tmp_path / "twice.csv", tmp_path / "once.csv"
    twice.write_text("user,item,rating\nann,x,5\nann,y,2\nbob,y,4\nann,x,1\n")
    once.write_text(f"user,item,rating\nann,x,{value}\nann,y,2\nbob,y,4\n")
    assert_same(
        fitted(tmp_path, twice, "-k", 1, "--duplicates", how), PoissonFactorization(1, random_state=0).fit(once)
    )


def test_duplicates_are_refused_where_nothing_is_told(tmp_path):
    (tmp_path / "twice.csv").write_text("user,item,rating\nann,x,5\nann,y,2\nann,x,1\n")
    sentence = refused("fit", tmp_path / "twice.csv", "-o", tmp_path / "model.hs")
    assert "Found 2 values for row 'ann', column 'x'" in sentence
    assert names_in(tmp_path) == ["twice.csv"]


def gzipped(folder, values):
    path = folder / "ratings.csv.gz"
    path.write_bytes(gzip.compress(write_long(folder / "plain.csv", values).read_bytes()))
    return path


def tabbed(folder, values):
    return write_long(folder / "ratings.tsv", values, delimiter="\t")


def parquet(folder, values):
    pyarrow, written = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    users, items, amounts = zip(*(line.split(",") for line in long_lines(values)), strict=True)
    table = {"user": users, "item": items, "rating": list(map(float, amounts))}
    written.write_table(pyarrow.table(table), folder / "ratings.parquet")
    return folder / "ratings.parquet"


def without_header(folder, values):
    path = folder / "bare.csv"
    path.write_text("\n".join(long_lines(values)))
    return path


@pytest.mark.parametrize("written", [gzipped, tabbed, parquet, without_header])
def test_every_kind_of_file_gives_the_same_model(ratings, tmp_path, written):
    model = fitted(tmp_path, written(tmp_path, ratings.values), "-k", 2)
    assert_same(model, PoissonFactorization(2, random_state=0).fit(ratings.path))


# Silence and notes.


def test_quiet_prints_nothing(ratings, tmp_path):
    assert done("fit", ratings.path, "-k", 2, "-q", "-o", tmp_path / "quiet.hs") == []
    assert_same(halfseen.load(tmp_path / "quiet.hs"), fitted(tmp_path, ratings.path, "-k", 2))


def test_a_fit_that_is_cut_short_is_noted_and_saved(ratings, tmp_path):
    note = remarked("fit", ratings.path, "-k", 2, "--max-iter", 2, "-o", tmp_path / "model.hs")
    assert note.startswith("note: PoissonFactorization: Stopped at --max-iter before the objective settled.")
    assert halfseen.load(tmp_path / "model.hs").n_iter_ == 2


@pytest.mark.parametrize(
    ("text", "row"),
    [("a,b,c\n1,2,3\n,,\n4,5,6\n", "1"), (",a,b\nann,1,2\nbob,,\n", "'bob'"), (",a,b\n7,1,2\n8,,\n9,4,6\n", "8")],
    ids=["unnamed", "text", "integers"],
)
def test_a_row_without_a_seen_cell_is_noted_by_its_name(tmp_path, text, row):
    (tmp_path / "wide.csv").write_text(text)
    words = ("fit", tmp_path / "wide.csv", "--layout", "wide", "--method", "nmf", "-k", 1)
    note = remarked(*words, "-o", tmp_path / "model.hs")
    assert re.match(rf"note: Every row should have a seen cell\. Found none in row {row}[ .]", note)


def test_both_notes_on_two_lines_of_the_real_program(tmp_path):
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,3\n,,\n4,5,7\n")
    words = ("--layout", "wide", "--method", "nmf", "-k", 1, "--max-iter", 1, "-o", tmp_path / "model.hs")
    result = program("fit", tmp_path / "wide.csv", *words)
    assert result.returncode == 0
    blank, short = result.stderr.splitlines()
    assert blank.startswith("note: Every row should have a seen cell.")
    assert short.startswith("note: WeightedNMF: Stopped at --max-iter")
    assert len(result.stdout.splitlines()) == 5


# Refusals of the output, before any work.


@pytest.mark.usefixtures("no_fit")
def test_a_folder_that_is_not_there_is_refused_before_the_work(ratings, tmp_path):
    sentence = refused("fit", ratings.path, "-o", tmp_path / "nowhere" / "model.hs")
    assert f"{str(tmp_path / 'nowhere')!r} does not exist" in sentence
    assert names_in(tmp_path) == []


@pytest.mark.usefixtures("no_fit")
def test_a_folder_that_is_not_writable_is_refused_before_the_work(ratings, tmp_path, monkeypatch):
    genuine = os.access  # the tests may run as root, who may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and genuine(path, mode))
    assert f"{str(tmp_path)!r} is not writable" in refused("fit", ratings.path, "-o", tmp_path / "model.hs")
    assert names_in(tmp_path) == []


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("place", ["folder", "."])
def test_a_folder_in_place_of_the_file_is_refused_before_the_work(ratings, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert re.search("folder|directory", refused("fit", ratings.path, "-o", place))
    assert names_in(tmp_path) == ["folder"]
    assert names_in(tmp_path / "folder") == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_what_is_not_a_plain_file_is_never_replaced(ratings, tmp_path):
    """A model moved onto /dev/null by root would take its place, for all programs."""
    place = tmp_path / "pipe"
    os.mkfifo(place)
    refused("fit", ratings.path, "-k", 1, "-o", place)
    assert place.is_fifo()


def test_an_old_model_is_replaced(ratings, model, tmp_path):
    place = tmp_path / "model.hs"
    place.write_bytes(model.read_bytes())
    done("fit", ratings.path, "--method", "nmf", "-k", 2, "-o", place)
    assert isinstance(halfseen.load(place), WeightedNMF)
    assert names_in(tmp_path) == ["model.hs"]


@pytest.mark.usefixtures("model")  # so that kernels which are compiled now find room
def test_a_full_disk_leaves_the_old_model_and_nothing_else(ratings, tmp_path, full_disk):
    place = tmp_path / "model.hs"
    place.write_bytes(b"old")
    refused_for_room(full_disk, "fit", ratings.path, "-k", 3, "-o", place)
    assert names_in(tmp_path) == ["model.hs"]
    assert place.read_bytes() == b"old"


# Refusals of the data.


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("user,item,rating\nann,x,5\n\nbob,y\n", [], r"Line 4 of data\.csv must have 3 fields.* Found 2: 'bob,y'"),
        ("user,item,rating\nann,x,5\nbob,y,many\n", [], r"Found 'many' on line 3 of data\.csv, column 'rating'"),
        ("user,item,rating\nann,x,5\n,y,3\n", [], r"Found no row id on line 3 of data\.csv"),
        ("user,item,rating\nann,x,5\nann,y,-2\n", [], r"must be 0 or larger\. Found -2 at row 'ann', column 'y'"),
        ("user,item,rating\nann,x,5\nann,y,-2\n", ["--method", "nmf", "--loss", "frobenius"], r"Found -2 at row 'ann'"),
        ("user,item,rating\nann,x,5\n", ["--columns", "user,item,stars"], r"no 'stars'.* has: user, item, rating\."),
        (
            "user,item,rating\nann,x,5\n",
            ["--columns", "user"],
            r"--columns must name different headers.* Found 'user'\. Name them: --columns user,item,rating\.$",
        ),
        ("user,item,price\nann,x,5\n", [], r"must say which column holds the values\. .*'price'"),
        ("user,item,rating\nann,x,0\n", [], r"At least one non-zero value must be seen"),
        ("", [], r"must have a line at least\. Found none in data\.csv"),
    ],
)
def test_data_that_cannot_be_used(tmp_path, text, words, sentence):
    (tmp_path / "data.csv").write_text(text)
    assert re.search(sentence, refused("fit", tmp_path / "data.csv", *words, "-o", tmp_path / "model.hs"))
    assert names_in(tmp_path) == ["data.csv"]


def test_a_missing_file(tmp_path):
    path = tmp_path / "nothing.csv"
    assert f"The file {path} must exist." in refused("fit", path, "-o", tmp_path / "model.hs")


def test_a_refusal_of_the_real_program_is_one_line(tmp_path):
    (tmp_path / "data.csv").write_text("user,item,rating\nann,x,5\nbob,y\n")
    result = program("fit", tmp_path / "data.csv", "-o", tmp_path / "model.hs")
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert "Line 3 of data.csv" in result.stderr


# Refusals of options.


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--loss", "kl"], "Did you mean 'kullback-leibler'?"),
        (["--loss", "frobenus"], "Did you mean 'frobenius'?"),
        (["--loss", "nan"], "Found nan."),
        (["--loss", "inf"], "Found inf."),
        (["-k", "0"], "-k must be a whole number of at least 1. Found 0."),
        (["--max-iter", "0"], "--max-iter must be a whole number of at least 1. Found 0."),
        (["--tol", "-1"], "tol must be a finite number of at least 0. Found -1.0."),
        (["--n-jobs", "0"], "--n-jobs must be a whole number other than 0. Found 0. Leave it out for all processors"),
        (["--loss", "itakura-saito", "--unseen", "zero"], "closed form"),
    ],
)
def test_values_that_cannot_be(ratings, tmp_path, words, sentence):
    assert sentence in refused("fit", ratings.path, "--method", "nmf", *words, "-o", tmp_path / "model.hs")
    assert names_in(tmp_path) == []


def test_a_negative_seed_is_refused(ratings, tmp_path):
    result = run("fit", ratings.path, "--seed", -1, "-o", tmp_path / "model.hs")
    assert result.exit_code == 2
    assert "seed" in result.stderr
    assert "-1" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--loss", "frobenius"], "--loss belongs to --method nmf and round; poisson has no such option."),
        (["--link", "probit"], "--link belongs to --method ordinal; poisson has no such option."),
        (
            ["--levels", "1,2"],
            "--levels belongs to --method ordnmf, squared-ordnmf, round and ordinal; poisson has no such option.",
        ),
        (["--method", "nmf", "--early-stopping"], "--early-stopping belongs to --method round and ordinal; nmf has"),
        (
            ["--method", "ordnmf", "--l2", "1"],
            "--l2 belongs to --method nmf, squared-ordnmf, squared-poisson, round and ordinal; ordnmf has",
        ),
    ],
)
def test_an_option_of_another_method_is_answered_with_the_methods_that_have_it(ratings, tmp_path, words, sentence):
    assert sentence in misused("fit", ratings.path, *words, "-o", tmp_path / "model.hs")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--method", "round", "--loss", "sigmoid"], "loss must be one of 'multi-sigmoid', 'round', 'linear'. Found"),
        (["--method", "ordinal", "--link", "logits"], "Did you mean 'logit'?"),
        (["--method", "ordinal", "--l2", "-1"], "l2 must be"),
        (["--method", "ordinal", "--unseen", "zero"], "--unseen missing"),
        (["--method", "round", "--levels", "1,2"], "Values must be among the levels that were given: 1, 2. Found "),
    ],
)
def test_values_that_levels_cannot_have(ratings, tmp_path, words, sentence):
    assert sentence in refused("fit", ratings.path, *words, "-o", tmp_path / "model.hs")
    assert names_in(tmp_path) == []


def test_too_few_cells_to_stop_early_by(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,1\nbob,y,2\n")
    words = ("--method", "ordinal", "-k", 1, "--early-stopping")
    sentence = refused("fit", tmp_path / "t.csv", *words, "-o", tmp_path / "model.hs")
    assert sentence.endswith("Found none that could be, among 2 cells. Leave out --early-stopping.")


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--factors", "--n-components"),
        ("--rank", "--n-components"),
        ("--n-factors", "--n-components"),
        ("--n_components", "--n-components"),
        ("--n-epochs", "--max-iter"),
        ("--epochs", "--max-iter"),
        ("--iterations", "--max-iter"),
        ("--max_iter", "--max-iter"),
        ("--random-state", "--seed"),
        ("--random_state", "--seed"),
        ("--beta-loss", "--loss"),
        ("--num-threads", "--n-jobs"),
        ("--metod", "--method"),
    ],
)
def test_words_of_other_libraries_are_answered_with_ours(ratings, tmp_path, option, meant):
    message = misused("fit", ratings.path, option, "5", "-o", tmp_path / "model.hs")
    assert message == f"No such option {option!r}. Did you mean {meant!r}?"


def test_the_seed_of_other_libraries(ratings, tmp_path):
    message = misused("fit", ratings.path, "--random-seed", "5", "-o", tmp_path / "model.hs")
    assert message == "No such option '--random-seed'. Did you mean '--seed'?"


def test_a_word_that_means_nothing(ratings, tmp_path):
    message = misused("fit", ratings.path, "--xyzzy", "-o", tmp_path / "model.hs")
    assert message == "No such option '--xyzzy'."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "model.hs"], "Missing argument 'DATA'."),
        (
            ["data.csv", "-o", "model.hs", "--method", "svd"],
            "'svd' is not one of 'nmf', 'rank-one', 'poisson', 'ordnmf', 'bernoulli', 'compound', 'squared-ordnmf', "
            "'squared-poisson', 'round', 'ordinal'.",
        ),
        (["data.csv", "-o", "model.hs", "-k", "few"], "'few' is neither a whole number nor auto"),
    ],
)
def test_misuse(words, sentence):
    assert sentence in misused("fit", *words)


# Interrupted; how it goes on a terminal is told in test_terminal.py.


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupt_before_the_first_iteration_saves_nothing(ratings, tmp_path, monkeypatch):
    (tmp_path / "model.hs").write_bytes(b"old")
    monkeypatch.setattr(base, "run", interrupted)
    result = run("fit", ratings.path, "-o", tmp_path / "model.hs")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Interrupted before the first iteration; nothing was saved.\n"
    assert (tmp_path / "model.hs").read_bytes() == b"old"
    assert names_in(tmp_path) == ["model.hs"]


def test_an_interrupt_while_reading_saves_nothing(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(halfseen, "observe", interrupted)
    result = run("fit", ratings.path, "-o", tmp_path / "model.hs")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("Interrupted before the first iteration; nothing was saved.")
    assert names_in(tmp_path) == []


def test_an_interrupt_keeps_the_iterations_that_are_whole(ratings, tmp_path, monkeypatch):
    genuine, count = base.run, 4

    def run_some(*args, **options):
        def watch(iteration, _):
            if iteration == count:
                raise KeyboardInterrupt

        return genuine(*args, **{**options, "watch": watch})

    monkeypatch.setattr(base, "run", run_some)
    place = tmp_path / "model.hs"
    result = run("fit", ratings.path, "--method", "nmf", "-k", 2, "-o", place)
    assert result.exit_code == 130
    assert result.stderr == f"Interrupted after {count} iterations; the fit so far is in {place}.\n"
    monkeypatch.undo()
    kept, whole = halfseen.load(place), WeightedNMF(2, max_iter=count, tol=0.0, random_state=0).fit(ratings.path)
    np.testing.assert_array_equal(kept.W_, whole.W_)
    assert (kept.n_iter_, kept.status_.name) == (count, "INTERRUPTED")


# The models are good ones.


def test_the_model_explains_what_was_seen(ratings, tmp_path):
    model = fitted(tmp_path, ratings.path, "--method", "nmf", "--loss", "frobenius", "-k", 3, "--tol", 1e-7,
                   "--max-iter", 20000)  # fmt: skip
    columns = np.argsort(ITEMS)
    seen = ~np.isnan(ratings.values[:, columns])
    values = ratings.values[:, columns]
    left = np.nanstd(values - matrix(model))
    assert left < 0.5 * np.nanstd(values - np.nanmean(values, axis=0))
    assert seen.sum() == model.seen_.indices.size


def test_advice_names_the_options_of_this_program(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,warmth\nann,x,3\n")
    sentence = refused("fit", tmp_path / "t.csv", "-o", tmp_path / "m.hs")
    assert "Say --columns user,item,warmth, or --columns user,item to count pairs as 1; or --layout wide" in sentence
    for columns, cells in (("user,item,warmth", "values 3 to 3"), ("user,item", "values 1 to 1")):
        assert cells in done("fit", tmp_path / "t.csv", "--columns", columns, "-o", tmp_path / "m.hs")[0]


def test_without_an_output_the_model_is_called_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = write_long(tmp_path / "ratings.csv", np.array([[1, 2, np.nan], [3, np.nan, 1], [np.nan, 2, 3]]))
    done("fit", data, "--method", "ordnmf", "-k", "2")
    assert type(halfseen.load(tmp_path / "model.hs")).__name__ == "OrdNMF"


def test_a_seed_that_changes_nothing_is_remarked(ratings, tmp_path):
    fit = ("fit", ratings.path, "--method", "rank-one", "-o", tmp_path / "model.hs")
    assert remarked(*fit, "--seed", 3) == "note: --seed changes nothing: --method rank-one has no random start."
    done(*fit)


def test_the_account_of_a_fit_that_is_cut_short_names_options(ratings, tmp_path):
    lines = run("fit", ratings.path, "--max-iter", 1, "-o", tmp_path / "model.hs").stdout.splitlines()
    (end,) = (line for line in lines if line.startswith("MAX_ITER"))
    assert end.endswith("Stopped at --max-iter before the objective settled. Raise --max-iter, or --tol.")

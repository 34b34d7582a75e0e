"""halfseen fit: from a file to a model file. How files are read is tested in tests/io."""

import os
import re

import numpy as np
import pytest

import halfseen
from halfseen.cli.fit import METHODS
from halfseen.estimators import base
from tests.cli.program import done, misused, names_in, program, refused, refused_for_room, remarked
from tests.cli.program import halfseen as run


def fitted(tmp_path, *words):
    """The model that a fit with these words saves."""
    done("fit", *words, "-o", tmp_path / "model.hs")
    return halfseen.load(tmp_path / "model.hs")


# Methods and their options.


@pytest.mark.parametrize(("method", "kind"), METHODS.items())
def test_the_model_is_that_of_the_library(ratings, tmp_path, method, kind):
    """With the library's defaults, and the seed 0."""
    model = fitted(tmp_path, ratings.path, "--method", method, "--max-iter", 5000)
    seed = {} if method == "rank-one" else {"random_state": 0}
    same = getattr(halfseen, kind)().set_params(max_iter=5000, **seed).fit(ratings.path)
    assert {**model.get_params(), "verbose": 0} == same.get_params()
    np.testing.assert_array_equal(model.W_, same.W_)
    np.testing.assert_array_equal(model.trace_["objective"], same.trace_["objective"])


def test_every_model_can_be_fitted():
    kinds = {name for name in halfseen.__all__ if hasattr(getattr(halfseen, name), "fit")}
    kinds -= {"Quantizer", "UncoupledNMF", "RankSearch"}  # the last two are reached by uncouple and by -k auto
    assert set(METHODS.values()) == kinds


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("nmf --loss frobenius -k 2 --unseen zero", {"loss": "frobenius", "n_components": 2, "unseen": "zero"}),
        ("nmf --loss 1e0 --l2 2.5 --seed 7", {"loss": 1.0, "l2": 2.5, "random_state": 7}),
        ("poisson --unseen missing --tol 0.01 --n-jobs 1", {"unseen": "missing", "tol": 0.01, "n_jobs": 1}),
        ("round --loss linear --early-stopping", {"loss": "linear", "early_stopping": True}),
        ("ordinal --link cloglog --own-thresholds rows", {"link": "cloglog", "own_thresholds": "rows"}),
    ],
)
def test_options_are_parameters(ratings, tmp_path, words, parameters):
    model = fitted(tmp_path, ratings.path, "--max-iter", 4000, "--method", *words.split())
    assert (parameters | {"max_iter": 4000}).items() <= model.get_params().items()


def test_levels_may_be_words_or_numbers(ratings, tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,fair\nbob,y,bad\ncid,y,good\n")
    words = ("--method", "ordnmf", "-k", 2, "--max-iter", 2000)
    model = fitted(tmp_path, tmp_path / "t.csv", *words, "--levels", "bad, fair,good")
    assert model.levels_.tolist() == [None, "bad", "fair", "good"]
    found = np.unique(ratings.values[~np.isnan(ratings.values)])
    model = fitted(tmp_path, ratings.path, *words, "--levels", ",".join(f"{level:g}" for level in found))
    assert model.levels_.tolist() == [0, *found]


# The account.


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


@pytest.mark.parametrize(
    ("words", "model", "objective"),
    [
        (["-k", 3], "PoissonFactorization: 3 components, unseen cells are zero.", "Evidence bound "),
        (["--method", "ordinal", "-k", 2, "--link", "probit"], "OrdinalMF: 2 components, link probit, unseen", "Loss "),
    ],
)
def test_the_account_of_other_models(ratings, tmp_path, words, model, objective):
    lines = done("fit", ratings.path, *words, "-o", tmp_path / "model.hs")
    assert lines[1].startswith(model)
    assert lines[3].startswith(objective)


THREE = "1,2,3\n4,5,6\n7,8,9\n10,11,12\n"
MANY = "user,item,rating\n" + "".join(f"{row},0,1\n{row},1,2\n" for row in range(1200))


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("who,what,how much\na,x,5\nb,x,2\n", ["--columns", "who, what,how much"], "values 2 to 5. Rows are from col"),
        ("user,item,rating\na,x,5\nb,x,2\n", ["--columns", "user,item"], "values 1 to 1. Rows are from column 'user'"),
        (THREE, ["--layout", "long"], ": 4 x 4, 4 cells seen"),
        (THREE, ["--layout", "wide"], ": 4 x 3, 12 cells seen"),
        ("user,item,rating\na,x,5\na,y,2\na,x,1\n", ["--duplicates", "sum"], "values 2 to 6"),
        ("kunde,artikel,note\n1,7,5\n1,8,4\n2,7,3\n3,8,1\n", [], "value, pass --columns kunde,artikel,note."),
        ("user;item;rating\na;x;1,5\nb;x;2\n", [], " Numbers have decimal commas."),
        (MANY, [], ": 1,200 x 2, 2,400 cells seen (1 of all), values 1 to 2."),
    ],
)
def test_how_the_data_were_read_is_told(tmp_path, text, words, told):
    (tmp_path / "t.csv").write_text(text)
    assert told in done("fit", tmp_path / "t.csv", "-k", 1, *words, "-o", tmp_path / "model.hs")[0]


def test_quietly_a_model_of_the_usual_name_is_saved(ratings, elsewhere):
    assert done("fit", ratings.path, "-k", 2, "-q") == []
    assert type(halfseen.load(elsewhere / "model.hs")).__name__ == "PoissonFactorization"


# Notes.


def test_a_fit_that_is_cut_short_is_noted_and_saved(ratings, tmp_path):
    words = ("fit", ratings.path, "-k", 2, "--max-iter", 2, "-o", tmp_path / "model.hs")
    note = remarked(*words)
    assert note.startswith("note: PoissonFactorization: Stopped at --max-iter before the objective settled.")
    assert halfseen.load(tmp_path / "model.hs").n_iter_ == 2
    (end,) = (line for line in run(*words).stdout.splitlines() if line.startswith("MAX_ITER"))
    assert end.endswith("Raise --max-iter, or --tol.")


def test_two_notes_are_two_lines_of_the_real_program(tmp_path):
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,3\n,,\n4,5,7\n")
    words = ("--layout", "wide", "--method", "nmf", "-k", 1, "--max-iter", 1, "-o", tmp_path / "model.hs")
    result = program("fit", tmp_path / "wide.csv", *words)
    assert result.returncode == 0
    blank, short = result.stderr.splitlines()
    assert re.match(r"note: Every row should have a seen cell\. Found none in row 1[ .]", blank)
    assert short.startswith("note: WeightedNMF: Stopped at --max-iter")
    assert len(result.stdout.splitlines()) == 5


def test_a_seed_that_changes_nothing_is_remarked(ratings, tmp_path):
    fit = ("fit", ratings.path, "--method", "rank-one", "-o", tmp_path / "model.hs")
    assert remarked(*fit, "--seed", 3) == "note: --seed changes nothing: --method rank-one has no random start."
    done(*fit)


# Refusals of the output, before any work.


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(
    ("place", "reason"), [("nowhere/model.hs", "does not exist"), ("folder", "folder|directory"), (".", "folder|direc")]
)
def test_a_place_that_cannot_be_is_refused_before_the_work(ratings, elsewhere, place, reason):
    (elsewhere / "folder").mkdir()
    assert re.search(reason, refused("fit", ratings.path, "-o", place))
    assert names_in(elsewhere) == ["folder"]
    assert names_in(elsewhere / "folder") == []


@pytest.mark.usefixtures("no_fit")
def test_a_folder_that_is_not_writable_is_refused_before_the_work(ratings, tmp_path, monkeypatch):
    genuine = os.access  # the tests may run as root, who may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and genuine(path, mode))
    assert f"{str(tmp_path)!r} is not writable" in refused("fit", ratings.path, "-o", tmp_path / "model.hs")
    assert names_in(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this platform")
def test_what_is_not_a_plain_file_is_never_replaced(ratings, tmp_path):
    """A model moved onto /dev/null by root would take its place, for all programs."""
    place = tmp_path / "pipe"
    os.mkfifo(place)
    refused("fit", ratings.path, "-k", 1, "-o", place)
    assert place.is_fifo()


@pytest.mark.usefixtures("model")  # so that kernels which are compiled now find room
def test_a_full_disk_leaves_the_old_model_and_nothing_else(ratings, tmp_path, full_disk):
    place = tmp_path / "model.hs"
    place.write_bytes(b"old")
    refused_for_room(full_disk, "fit", ratings.path, "-k", 3, "-o", place)
    assert names_in(tmp_path) == ["model.hs"]
    assert place.read_bytes() == b"old"


# Refusals of data and options; more of them in test_refusals.py and test_advice.py.


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("user,item,rating\nann,x,5\n\nbob,y\n", r"Line 4 of data\.csv must have 3 fields.* Found 2: 'bob,y'"),
        ("user,item,rating\nann,x,5\nann,y,-2\n", r"must be 0 or larger\. Found -2 at row 'ann', column 'y'"),
        ("user,item,warmth\nann,x,5\n", "--columns user,item,warmth, or --columns user,item to count.* --layout wide"),
    ],
)
def test_data_that_cannot_be_used(tmp_path, text, sentence):
    (tmp_path / "data.csv").write_text(text)
    assert re.search(sentence, refused("fit", tmp_path / "data.csv", "-o", tmp_path / "model.hs"))
    assert names_in(tmp_path) == ["data.csv"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--method nmf --loss kl", "Did you mean 'kullback-leibler'?"),
        ("--method ordinal --link logits", "Did you mean 'logit'?"),
        ("--method ordinal --unseen zero", "--unseen missing"),
        ("--method nmf --loss itakura-saito --unseen zero", "closed form"),
    ],
)
def test_values_that_cannot_be(ratings, tmp_path, words, sentence):
    assert sentence in refused("fit", ratings.path, *words.split(), "-o", tmp_path / "model.hs")
    assert names_in(tmp_path) == []


def test_too_few_cells_to_stop_early_by(tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,1\nbob,y,2\n")
    words = ("--method", "ordinal", "-k", 1, "--early-stopping")
    sentence = refused("fit", tmp_path / "t.csv", *words, "-o", tmp_path / "model.hs")
    assert sentence.endswith("Found none that could be, among 2 cells. Leave out --early-stopping.")


MEANT = {
    "--n-components": ["--factors", "--rank", "--n-factors", "--n_components"],
    "--max-iter": ["--n-epochs", "--epochs", "--iterations", "--max_iter"],
    "--seed": ["--random-state", "--random_state", "--random-seed"],
    "--loss": ["--beta-loss"],
    "--n-jobs": ["--num-threads"],
    "--method": ["--metod"],
}


@pytest.mark.parametrize(("option", "meant"), [(word, meant) for meant, words in MEANT.items() for word in words])
def test_words_of_other_libraries_are_answered_with_ours(ratings, option, meant):
    assert misused("fit", ratings.path, option, "5") == f"No such option {option!r}. Did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--loss frobenius", "--loss belongs to --method nmf and round; poisson has no such option."),
        ("--method nmf --early-stopping", "--early-stopping belongs to --method round and ordinal; nmf has"),
        ("--method rank-one -k 3", "--method rank-one has 1 component, not 3. Use --method nmf."),
        ("--xyzzy", "No such option '--xyzzy'."),
        ("-k few", "'few' is neither a whole number nor auto"),
        ("--seed -1", "-1"),
    ],
)
def test_misuse(ratings, elsewhere, words, sentence):
    assert sentence in misused("fit", ratings.path, *words.split())
    assert names_in(elsewhere) == []


def test_an_interrupt_before_the_first_iteration_saves_nothing(ratings, tmp_path, monkeypatch):
    """Later ones are told in test_terminal.py."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "model.hs").write_bytes(b"old")
    monkeypatch.setattr(base, "run", interrupted)
    result = run("fit", ratings.path, "-o", tmp_path / "model.hs")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Interrupted before the first iteration; nothing was saved.\n"
    assert (tmp_path / "model.hs").read_bytes() == b"old"
    assert names_in(tmp_path) == ["model.hs"]

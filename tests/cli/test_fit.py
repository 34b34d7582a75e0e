"""halfseen fit: from a file to a model file. How files are read is tested in tests/io."""

import json
import os
import re
import signal

import numpy as np
import pytest

import halfseen
from halfseen.cli import options
from halfseen.cli.fit import METHODS
from halfseen.engines import ENGINES
from halfseen.estimators import base
from tests.cli.program import done, misused, names_in, program, refused, refused_for_room, remarked
from tests.cli.program import halfseen as run
from tests.cli.test_terminal import OnTerminal, listening, plain  # noqa: F401  (a fixture for Ctrl-C)


def fitted(tmp_path, *words):
    """The model that a fit with these words saves."""
    done("fit", *words, "-o", tmp_path / "model.hs")
    return halfseen.load(tmp_path / "model.hs")


def test_the_model_is_that_of_the_library_and_the_summary_has_its_numbers(ratings, tmp_path):
    path = tmp_path / "model.hs"
    lines = done("fit", ratings.path, "--method", "nmf", "-k", 3, "-o", path)
    model, seen = halfseen.load(path), ratings.values[~np.isnan(ratings.values)]
    same = halfseen.WeightedNMF(3, random_state=0).fit(ratings.path)
    np.testing.assert_array_equal(model.W_, same.W_)
    first, last = model.trace_["objective"][[0, -1]]
    n, m = ratings.values.shape
    assert lines[0] == (
        f"Read {ratings.path}: {n} x {m}, {seen.size} cells seen ({seen.size / (n * m):.3g} of all), "
        f"values {seen.min():g} to {seen.max():g}. "
        "Rows are from column 'user', columns from column 'item', values from column 'rating'."
    )
    assert lines[1] == "WeightedNMF: 3 components, loss kullback-leibler, unseen cells are missing."
    assert lines[2].startswith(f"{model.status_.name} after {model.n_iter_} iterations in ")
    assert lines[3] == f"Loss {last:,.6g} (after the first iteration {first:,.6g})."
    assert lines[4:] == [f"Saved {path} ({path.stat().st_size / 1000:.3g} KB)."]


def test_every_engine_can_be_chosen():
    offered = {one.name: one for one in options.CLUSTER(lambda: None).__click_params__}
    assert list(offered["engine"].type.choices) == list(ENGINES)


def test_every_model_can_be_fitted():
    kinds = {name for name in halfseen.__all__ if hasattr(getattr(halfseen, name), "fit")}
    kinds -= {"Quantizer", "UncoupledNMF", "RankSearch", "Search", "TableImputer"}  # uncouple, -k auto, tune, impute
    assert set(METHODS.values()) == kinds


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("nmf --loss frobenius -k 2 --unseen zero", {"loss": "frobenius", "n_components": 2, "unseen": "zero"}),
        ("nmf --loss 1e0 --l2 2.5 --seed 7", {"loss": 1.0, "l2": 2.5, "random_state": 7}),
        ("poisson --unseen missing --tol 0.01 --n-jobs 1", {"unseen": "missing", "tol": 0.01, "n_jobs": 1}),
        ("round --loss linear --early-stopping", {"loss": "linear", "early_stopping": True}),
        ("ordinal --link cloglog --own-thresholds rows", {"link": "cloglog", "own_thresholds": "rows"}),
        ("squared-ordnmf -k 2 --engine cpu", {"n_components": 2, "engine": "cpu"}),
        ("implicit-mf -k 2 --l2 0.1", {"n_components": 2, "l2": 0.1, "unseen": "zero"}),
        ("rank-one", {}),
    ],
)
def test_options_are_parameters(ratings, tmp_path, words, parameters):
    model = fitted(tmp_path, ratings.path, "--max-iter", 4000, "--method", *words.split())
    assert type(model).__name__ == METHODS[words.split()[0]]
    assert (parameters | {"max_iter": 4000}).items() <= model.get_params().items()


@pytest.mark.parametrize("method", ["item-graph", "popularity", "blend"])
def test_rankers_are_found_without_iterating(ratings, tmp_path, method):
    path = tmp_path / "model.hs"
    lines = done("fit", ratings.path, "--method", method, "--seed", 3, "-o", path)
    model = halfseen.load(path)
    assert type(model).__name__ == METHODS[method]
    assert lines[1].startswith(f"{METHODS[method]}: ")
    assert lines[1].lower().endswith("unseen cells are zero.")
    assert lines[2].startswith("DIRECT after ")
    assert lines[3:] == [lines[-1]]
    facts = json.loads(run("fit", ratings.path, "--method", method, "--json", "-q", "-o", path).output)
    assert facts["model"] == METHODS[method]
    assert ("models" in facts) == (method == "blend")
    model, row, column = halfseen.load(path), model.row_labels_[0], model.column_labels_[1]
    (line,) = done("predict", path, "--row", row, "--col", column, "-q")
    assert float(line.split()[-1]) == pytest.approx(model.predict(row, column), rel=1e-4)
    assert "scores by which" in run("predict", path, "--row", row, "--col", column).output
    assert "likelihood" in refused("predict", path, "--row", row, "--col", column, "--given-seen")
    for option in ("--max-iter", "-k"):
        assert f"--method {method} has no" in misused("fit", ratings.path, "--method", method, option, 3, "-o", path)


def test_chains_have_sweeps_in_the_place_of_iterations(ratings, tmp_path):
    words = ("--method", "ordinal", "--inference", "gibbs", "-k", 2)
    model = fitted(tmp_path, ratings.path, *words, "--sweeps", 60, "--burn", 10)
    assert {"inference": "gibbs", "n_sweeps": 60, "n_burn": 10}.items() <= model.get_params().items()
    for wrong, sentence in (
        ((*words, "--max-iter", 9), "--max-iter belongs to --inference map; gibbs has no such option."),
        ((*words, "--tol", 0.1), "--tol belongs to --inference map; gibbs has no such option."),
        (("--method", "ordinal", "--sweeps", 9), "--sweeps belongs to --inference gibbs; map has no such option."),
        (("--method", "poisson", "--burn", 9), "--burn belongs to --method ordinal; poisson has no such option."),
    ):
        assert sentence in misused("fit", ratings.path, *wrong)


def test_levels_may_be_words_or_numbers(ratings, tmp_path):
    (tmp_path / "t.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,fair\nbob,y,bad\ncid,y,good\n")
    words = ("--method", "ordnmf", "-k", 2, "--max-iter", 2000)
    model = fitted(tmp_path, tmp_path / "t.csv", *words, "--levels", "bad, fair,good")
    assert model.levels_.tolist() == [None, "bad", "fair", "good"]
    found = np.unique(ratings.values[~np.isnan(ratings.values)])
    model = fitted(tmp_path, ratings.path, *words, "--levels", ",".join(f"{level:g}" for level in found))
    assert model.levels_.tolist() == [0, *found]


@pytest.mark.parametrize(
    ("text", "words", "summary"),
    [
        ("who,what,how much\na,x,5\nb,x,2\n", ["--columns", "who, what,how much"], "values 2 to 5. Rows are from col"),
        ("1,2,3\n4,5,6\n7,8,9\n", ["--layout", "wide"], ": 3 x 3, 9 cells seen"),
        ("user,item,rating\na,x,5\na,y,2\na,x,1\n", ["--duplicates", "sum"], "values 2 to 6"),
        ("kunde,artikel,note\n1,7,5\n1,8,4\n2,7,3\n3,8,1\n", [], "--columns kunde,artikel,note."),
        ("user;item;rating\na;x;1,5\nb;x;2\n", [], " Numbers have decimal commas."),
    ],
)
def test_the_summary_says_how_the_data_were_read(tmp_path, text, words, summary):
    (tmp_path / "t.csv").write_text(text)
    assert summary in done("fit", tmp_path / "t.csv", "-k", 1, *words, "-o", tmp_path / "model.hs")[0]


def test_quietly_a_model_of_the_usual_name_is_saved(ratings, elsewhere):
    assert done("fit", ratings.path, "-k", 2, "-q") == []
    assert type(halfseen.load(elsewhere / "model.hs")).__name__ == "PoissonFactorization"


def test_notes(ratings, tmp_path):
    """Of a fit that stopped early, which is saved; of a seed without an effect; two of them in two lines."""
    words = ("fit", ratings.path, "-k", 2, "--max-iter", 2, "-o", tmp_path / "model.hs")
    assert "--max-iter" in remarked(*words)
    assert halfseen.load(tmp_path / "model.hs").n_iter_ == 2
    rank_one = ("fit", ratings.path, "--method", "rank-one", "-o", tmp_path / "model.hs")
    assert "--seed" in remarked(*rank_one, "--seed", 3)
    done(*rank_one)
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,3\n,,\n4,5,7\n")
    words = ("--layout", "wide", "--method", "nmf", "-k", 1, "--max-iter", 1, "-o", tmp_path / "model.hs")
    result = program("fit", tmp_path / "wide.csv", *words)
    assert result.returncode == 0
    empty, short = result.stderr.splitlines()
    assert re.match(r"note: .* row 1[ .]", empty)
    assert re.match(r"note: .*--max-iter", short)


# The number of components by held-out cells.


def test_auto_is_a_search_and_a_fit(ratings, tmp_path):
    words = ("--method", "ordnmf", "-k", "auto:1,2,3", "--seed", 3, "--max-iter", 3000)
    lines = done("fit", ratings.path, *words, "-o", tmp_path / "model.hs")
    model = halfseen.OrdNMF(random_state=3, max_iter=3000)
    search = halfseen.RankSearch(model, [1, 2, 3], random_state=3).fit(halfseen.observe(ratings.path, unseen="zero"))
    np.testing.assert_array_equal(halfseen.load(tmp_path / "model.hs").W_, search.best_estimator_.W_)
    (head,) = (number for number, line in enumerate(lines) if line.split()[:1] == ["n_components"])
    table = [line.split() for line in lines[head + 1 : head + 4]]
    assert [line[0] for line in table] == ["1", "2", "3"]
    assert [line[1] for line in table] == [f"{mean:.5g}" for mean in search.results_["mean"]]
    assert [line[2] for line in table] == [f"{error:.2g}" for error in search.results_["standard_error"]]
    assert [line[0] for line in table if line[-1] == "*"] == [str(search.best_n_components_)]
    assert lines[head + 4].startswith(f"Chose {search.best_n_components_} component")
    is_last = search.results_["mean"].argmax() == 2
    assert ("auto:3,6,12" in lines[head + 5]) == is_last


@pytest.mark.parametrize("word", ["auto:", "auto:2,x", "many", "auto:1.5", "Auto", "auto:2,2", "auto:0,2"])
def test_numbers_that_cannot_be_tried(word, ratings, elsewhere):
    assert repr(word) in misused("fit", ratings.path, "-k", word)
    assert names_in(elsewhere) == []


def test_a_bar_counts_the_fits_and_ctrl_c_saves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    cells = zip(*np.nonzero(rng.random((300, 200)) < 0.5), strict=True)
    path = tmp_path / "many.csv"
    path.write_text("user,item,rating\n" + "".join(f"u{u},i{i},{1 + (u + i) % 5}\n" for u, i in cells))
    long = ("--method", "nmf", "-k", "auto:1,8,16", "--tol", 0, "--max-iter", 3000)
    with OnTerminal("fit", path, *long, "-o", tmp_path / "model.hs") as running:
        running.wait_for(re.compile(r"RankSearch.*\b[1-9]\d*/15\b"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
    assert "Interrupted" in plain(running.shown)
    assert "Traceback" not in plain(running.shown)
    assert names_in(tmp_path) == ["many.csv"]


# Refusals; more of them in test_refusals.py and test_messages.py.


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("place", ["nowhere/model.hs", "folder", "."])
def test_a_place_that_cannot_be_is_refused_before_the_work(ratings, elsewhere, place):
    (elsewhere / "folder").mkdir()
    refused("fit", ratings.path, "-o", place)
    assert names_in(elsewhere) == ["folder"]
    assert names_in(elsewhere / "folder") == []


@pytest.mark.usefixtures("no_fit")
def test_a_folder_that_is_not_writable_is_refused_before_the_work(ratings, tmp_path, monkeypatch):
    genuine = os.access  # the tests may run as root, who may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and genuine(path, mode))
    assert repr(str(tmp_path)) in refused("fit", ratings.path, "-o", tmp_path / "model.hs")
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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--loss frobenius", "--loss belongs to --method nmf and round;"),
        ("--method nmf --early-stopping", "--early-stopping belongs to --method round and ordinal;"),
        ("--method rank-one -k 3", "--method nmf"),
        ("--method rank-one -k auto", "--method nmf"),
        ("--seed -1", "--seed"),
    ],
)
def test_options_that_do_not_go_together(ratings, elsewhere, words, named):
    assert named in misused("fit", ratings.path, *words.split())
    assert names_in(elsewhere) == []


def test_an_interrupt_before_the_first_iteration_saves_nothing(ratings, tmp_path, monkeypatch):
    """Later ones are in test_terminal.py."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    (tmp_path / "model.hs").write_bytes(b"old")
    monkeypatch.setattr(base, "run", interrupted)
    result = run("fit", ratings.path, "-o", tmp_path / "model.hs")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("Interrupted before the first iteration")
    assert (tmp_path / "model.hs").read_bytes() == b"old"
    assert names_in(tmp_path) == ["model.hs"]

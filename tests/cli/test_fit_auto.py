"""halfseen fit -k auto: the number of components by held-out cells."""

import re
import signal

import numpy as np
import pytest

import halfseen
from halfseen import OrdNMF, RankSearch, WeightedNMF
from tests.cli.program import done, misused, names_in, program, refused
from tests.cli.test_terminal import OnTerminal, listening, plain  # noqa: F401
from tests.selection.data import counts, stars


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    observed = stars(2, 0, n=60, m=40)
    path = tmp_path_factory.mktemp("auto") / "ratings.csv"
    cells = zip(observed.row_of_cell(), observed.indices, observed.values, strict=True)
    path.write_text("user,item,rating\n" + "".join(f"u{row},i{column},{value:g}\n" for row, column, value in cells))
    return path


def test_the_model_is_that_of_a_search_and_a_fit(ratings, tmp_path):
    account = done("fit", ratings, "--method", "ordnmf", "-k", "auto:1,2,3,4", "--seed", 3, "-o", tmp_path / "model.hs")
    observed = halfseen.observe(ratings, unseen="zero")
    search = RankSearch(OrdNMF(random_state=3), [1, 2, 3, 4], random_state=3).fit(observed)
    model = halfseen.load(tmp_path / "model.hs")
    np.testing.assert_array_equal(model.W_, search.best_estimator_.W_)
    start = account.index("Tried 4 numbers of components on 5 folds by ndcg@100:")
    assert "std. error of distance to best" in account[start + 1]
    table = [line.split() for line in account[start + 2 : start + 6]]
    best = search.results_["mean"].argmax()
    assert table[best][2] == "0"  # of the distance to itself
    assert [line[0] for line in table] == ["1", "2", "3", "4"]
    assert [line[1] for line in table] == [f"{mean:.5g}" for mean in search.results_["mean"]]
    assert [line[0] for line in table if line[-1] == "*"] == [str(search.best_n_components_)]
    assert account[start + 6].startswith(
        f"Chose {search.best_n_components_} components, the fewest within one standard"
    )


def test_auto_alone_tries_the_usual_numbers(ratings, tmp_path):
    """As far as there are rows and columns; under another method, with its options."""
    words = ("--method", "nmf", "--unseen", "zero", "--tol", "1e-3", "--max-iter", 2000)
    account = done("fit", ratings, *words, "-k", "auto", "-o", tmp_path / "model.hs")
    start = account.index("Tried 8 numbers of components on 5 folds by ndcg@100:")
    assert [line.split()[0] for line in account[start + 2 : start + 10]] == list(map(str, (1, 2, 3, 5, 8, 12, 20, 30)))
    same = WeightedNMF(unseen="zero", tol=1e-3, max_iter=2000, random_state=0)
    search = RankSearch(same, random_state=0).fit(halfseen.observe(ratings, unseen="zero"))
    np.testing.assert_array_equal(halfseen.load(tmp_path / "model.hs").H_, search.best_estimator_.H_)


def test_it_is_said_when_more_components_may_be_better(tmp_path):
    observed = counts(5, 0)
    cells = zip(observed.row_of_cell(), observed.indices, observed.values, strict=True)
    (tmp_path / "c.csv").write_text("user,item,count\n" + "".join(f"u{u},i{i},{y:g}\n" for u, i, y in cells))
    account = done("fit", tmp_path / "c.csv", "-k", "auto:1,3", "-o", tmp_path / "model.hs")
    sentence = "The most components did best, so more may do better: try -k auto:3,6,12."
    assert [line for line in account if "may do better" in line] == [sentence]
    account = done("fit", tmp_path / "c.csv", "-k", "auto:1,5,30", "-o", tmp_path / "model.hs")
    assert not [line for line in account if "may do better" in line]


def test_quiet_is_quiet(ratings, tmp_path):
    words = ("fit", ratings, "--method", "ordnmf", "-k", "auto:1,2", "-q", "-o", tmp_path / "model.hs")
    result = program(*words)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("word", ["auto:", "auto:2,x", "many", "auto:1.5", "Auto"])
def test_a_number_that_is_none_is_refused(word, ratings, tmp_path):
    sentence = misused("fit", ratings, "-k", word, "-o", tmp_path / "model.hs")
    assert f"{word!r} is neither a whole number nor auto, nor a list such as auto:5,10,20." in sentence
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("word", "found"), [("auto:2,2", "Found 2 twice"), ("auto:0,2", "Found 0")])
def test_numbers_that_can_not_be_tried_are_refused(word, found, ratings, tmp_path):
    sentence = refused("fit", ratings, "-k", word, "-o", tmp_path / "model.hs")
    assert "The numbers after -k auto: must be different whole numbers of at least 1" in sentence
    assert found in sentence
    assert names_in(tmp_path) == []


def test_rank_one_has_nothing_to_choose(ratings, tmp_path):
    sentence = misused("fit", ratings, "--method", "rank-one", "-k", "auto", "-o", tmp_path / "model.hs")
    assert sentence == "--method rank-one has 1 component, not auto. Use --method nmf."


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
    assert "Interrupted while choosing the number of components; nothing was saved." in plain(running.shown)
    assert "Traceback" not in plain(running.shown)
    assert names_in(tmp_path) == ["many.csv"]

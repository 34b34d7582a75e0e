"""halfseen tune: the search of the library, and the model that it finds."""

import json
import re
import signal

import numpy as np
import pytest
from scipy.stats import loguniform

import halfseen
from tests.cli.conftest import write_long
from tests.cli.program import done, misused, names_in, refused
from tests.cli.program import halfseen as run
from tests.cli.test_terminal import OnTerminal, listening, plain  # noqa: F401  (a fixture for Ctrl-C)
from tests.selection.data import stars


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """A long file of stars."""
    observed = stars(2, 0, n=40, m=30)
    values = np.where(observed.to_dense() > 0, observed.to_dense(), np.nan)
    names = {"rows": [f"u{row}" for row in range(40)], "columns": [f"i{column}" for column in range(30)]}
    return write_long(tmp_path_factory.mktemp("tune") / "stars.csv", values, **names)


WORDS = ("--method", "squared-ordnmf", "-k", "1:8", "--param", "l2=2:50", "--candidates", 7, "--seed", 3, "--folds", 3)


def test_it_is_a_search_and_a_fit(lines, tmp_path):
    shown = done("tune", lines, *WORDS, "-o", tmp_path / "best.hs")
    model = halfseen.SquaredOrdNMF(random_state=3)
    ranges = {"n_components": loguniform(1, 8), "l2": loguniform(2, 50)}
    search = halfseen.Search(model, ranges, n_candidates=7, n_folds=3, random_state=3)
    search.fit(halfseen.observe(lines, unseen="zero"))
    np.testing.assert_array_equal(halfseen.load(tmp_path / "best.hs").W_, search.best_estimator_.W_)
    head = next(number for number, line in enumerate(shown) if line.split()[:1] == ["n_components"])
    assert shown[head - 1].startswith("Tried 7 candidates on up to 3 folds by ndcg@100 in ")
    table = [line.split() for line in shown[head + 1 : head + 8]]
    assert [int(line[0]) for line in table] == [one["n_components"] for one in search.results_["parameters"]]
    assert [line[2] for line in table] == [f"{mean:.5g}" for mean in search.results_["mean"]]
    assert [line[5] for line in table] == [str(folds) for folds in search.results_["resource"]]
    assert table[0][-1] == "*"
    for name, edge in search.at_edge_.items():
        assert any(line.startswith(f"The best {name} is the {edge} of those tried") for line in shown)
    assert shown[-1].startswith("Saved ")


def test_json(lines, tmp_path):
    result = run("tune", lines, *WORDS, "-o", tmp_path / "best.hs", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["n_components"] == found["search"]["best"]["n_components"]
    assert (found["method"], found["model"], found["file"]) == (
        "squared-ordnmf",
        "SquaredOrdNMF",
        str(tmp_path / "best.hs"),
    )
    tried = found["search"]["tried"]
    assert len(tried) == 7
    assert tried[0]["parameters"] == found["search"]["best"]
    assert tried[0]["mean"] == found["search"]["best_score"]
    assert (found["search"]["metric"], found["search"]["folds"]) == ("ndcg@100", 3)


def test_what_is_not_given_has_ranges_and_one_value_leaves_no_choice(lines, tmp_path):
    words = ("--method", "ordnmf", "-k", 2, "--param", "noise=inverse-gamma", "--candidates", 3, "--folds", 2)
    found = json.loads(run("tune", lines, *words, "-o", tmp_path / "best.hs", "--json").stdout)
    tried = [one["parameters"] for one in found["search"]["tried"]]
    assert {(one["n_components"], one["noise"]) for one in tried} == {(2, "inverse-gamma")}
    assert len({one["prior_shape"] for one in tried}) == 3


def test_quiet_prints_nothing(lines, tmp_path):
    assert done("tune", lines, *WORDS, "-q", "-o", tmp_path / "best.hs") == []


def test_an_edge_is_told_with_what_to_try(lines, tmp_path):
    words = ("--method", "squared-ordnmf", "-k", 2, "--param", "l2=1000,2000", "--folds", 2)
    shown = done("tune", lines, *words, "-o", tmp_path / "best.hs")
    (sentence,) = (line for line in shown if line.startswith("The best l2"))
    found = re.search(r"the (smallest|largest) .* try --param l2=([\d.e+]+):([\d.e+]+)\.$", sentence)
    best = halfseen.load(tmp_path / "best.hs").l2_
    low, high = (0.25 * best, 2 * best) if found[1] == "smallest" else (0.5 * best, 4 * best)
    assert (float(found[2]), float(found[3])) == pytest.approx((low, high), rel=1e-2)


def test_ctrl_c_keeps_the_journal_and_the_same_command_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    cells = zip(*np.nonzero(rng.random((300, 200)) < 0.3), strict=True)
    path, journal = tmp_path / "many.csv", tmp_path / "tune.jsonl"
    path.write_text("user,item,rating\n" + "".join(f"u{u},i{i},{1 + (u + i) % 5}\n" for u, i in cells))
    long = ("--method", "squared-ordnmf", "-k", "5,10", "--param", "l2=20,40", "--tol", 0, "--max-iter", 300)
    words = ("tune", path, *long, "--folds", 2, "--journal", journal, "-o", tmp_path / "best.hs")
    with OnTerminal(*words) as running:
        running.wait_for(re.compile(r"Search.*m[2-6]/8"))
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 130
    assert "goes on from it" in plain(running.shown).replace("\n", " ")
    assert "Traceback" not in plain(running.shown)
    assert names_in(tmp_path) == ["many.csv", "tune.jsonl"]
    before = journal.read_bytes()
    assert before.count(b"\n") >= 3
    done(*words, "-q")
    after = journal.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 9


@pytest.mark.parametrize("word", ["l2", "=1,2", "l2=", "l2=5:1", "l2=0:1", "l2=a:b", "l2=1:2:3", "l2=1,,2"])
def test_values_that_are_none(word, lines, elsewhere):
    assert repr(word.partition("=")[2] if ":" in word else word) in misused("tune", lines, "--param", word)
    assert names_in(elsewhere) == []


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--param l3=1,2", "l3"),
        ("--method ordnmf --param l2=1,2", "l2"),
        ("--param unseen=zero,missing", "--param must"),
        ("--metric ndgc@10", "--metric must"),
        ("--factor 0", "--factor must"),
        ("--resource loss", "--resource must"),
        ("-k 0", "-k must"),
        ("-k 5 --param prior_shape=-1,1", "prior_shape"),
        ("--method rank-one", "--param"),
        ("--journal nowhere/tune.jsonl", "nowhere"),
        ("-o nowhere/best.hs", "nowhere"),
    ],
)
def test_refusals(words, named, lines, elsewhere):
    assert named in refused("tune", lines, *words.split())
    assert names_in(elsewhere) == []


def test_a_journal_of_other_settings_is_refused(lines, tmp_path):
    words = ("--method", "squared-ordnmf", "-k", 2, "--param", "l2=10,20", "--journal", tmp_path / "tune.jsonl")
    done("tune", lines, *words, "-q", "--folds", 2, "-o", tmp_path / "best.hs")
    assert "n_folds=2 where 3" in refused("tune", lines, *words, "--folds", 3, "-o", tmp_path / "best.hs")

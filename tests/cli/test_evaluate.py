"""halfseen evaluate: how well a model ranks and predicts cells that it has not seen."""

import re

import numpy as np
import pytest

import halfseen
from tests.cli.program import halfseen as run
from tests.cli.program import refused

STARS = "user,item,rating\nann,x,1\nann,y,2\nann,z,4\nbob,x,2\nbob,y,1\nbob,w,4\ncid,z,2\ncid,w,2\ncid,x,4\n"
HELD = {("ann", "w"): 4, ("bob", "z"): 1, ("cid", "y"): 2}
WORDS = {"1": "bad", "2": "fair", "4": "good"}


@pytest.fixture
def stars(tmp_path):
    """Files of stars 1, 2 and 4 to learn from and to test by; dan is known to no model."""
    (tmp_path / "train.csv").write_text(STARS)
    held = "".join(f"{user},{item},{rating}\n" for (user, item), rating in HELD.items())
    (tmp_path / "test.csv").write_text(f"user,item,rating\n{held}dan,x,4\n")
    return tmp_path


@pytest.fixture
def words(stars):
    """The same in words."""
    for name in ("train.csv", "test.csv"):
        (stars / name).write_text(re.sub(r"\d", lambda found: WORDS[found[0]], (stars / name).read_text()))
    return stars


def evaluated(folder, model, *options):
    """What is told of a model that is fitted now."""
    model.set_params(random_state=0).fit(folder / "train.csv").save(folder / "model.hs")
    result = run("evaluate", folder / "model.hs", "--test", folder / "test.csv", *options)
    assert result.exit_code == 0
    return result


def values_of(result):
    """The line of values, and the numbers in it."""
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("Values of "))
    return line, [float(number) for number in re.findall(r"\d+\.\d{4}", line)]


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_ranking_and_likelihood_are_those_of_the_library(stars):
    model = halfseen.PoissonFactorization(2, max_iter=1000)
    ask = ("-k", 2, "--relevant", 1, "--relevant", 4)
    result = evaluated(stars, model, *ask)
    assert result.stderr.count("1 of 4") == 1  # dan is not known
    _, heads, *lines, likelihood = result.stdout.splitlines()
    assert heads.split() == ["relevant", "from", "rows", "NDCG@2", "precision@2", "recall@2", "MAP@2"]
    test = halfseen.observe(stars / "test.csv", unseen="zero")
    scores = halfseen.metrics.ranking_scores(model, None, test, k=2, relevant=[1, 4])
    for place, (line, threshold, rows) in enumerate(zip(lines, (1, 4), (3, 1), strict=True)):
        expected = [threshold, rows, *(np.nanmean(metric[place]) for metric in scores)]
        np.testing.assert_allclose(list(map(float, line.split())), expected, atol=5.1e-5)
    logs = model.log_likelihood(stars / "test.csv", each=True)
    assert likelihood == (
        f"Log-likelihood of 3 cells, given that they are above 0: {logs.sum():,.6g} ({logs.mean():.4f} per cell)."
    )
    first, told, *others = evaluated(stars, model, *ask, "--train", stars / "train.csv").stdout.splitlines()
    assert told.startswith(f"Read {stars / 'train.csv'}: ")
    assert [first, *others] == result.stdout.splitlines()  # what is known may be said, and is that of the fit


@pytest.mark.parametrize("model", [halfseen.OrdinalMF(2, l2=0.5), halfseen.WeightedNMF(2, max_iter=1000)], ids=str)
def test_values_are_told_where_unseen_cells_are_missing(stars, model):
    line, found = values_of(evaluated(stars, model))
    users, items = zip(*HELD, strict=True)
    seen = np.array(list(HELD.values()))
    errors = model.predict(list(users), list(items)) - seen
    expected = [np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors) <= 0.5)]
    if hasattr(model, "predict_proba"):
        up_to = np.cumsum(model.predict_proba(list(users), list(items)), axis=1)  # of levels 1, 2 and 4
        expected.append(np.mean((up_to[:, 0] - (seen <= 1)) ** 2 + (up_to[:, 1] - (seen <= 2)) ** 2))
    assert line.startswith("Values of 3 cells: root mean squared error ")
    np.testing.assert_allclose(found, expected, atol=5.1e-5)


def test_values_are_not_told_where_unseen_cells_are_zeros_nor_likelihoods_where_there_are_none(stars):
    told = evaluated(stars, halfseen.OrdNMF(1, max_iter=5000)).stdout
    assert "Values of" not in told
    assert "Log-likelihood of 3 cells" in told
    assert "ikelihood" not in evaluated(stars, halfseen.WeightedNMF(1, unseen="zero", max_iter=1000)).stdout


def test_cells_of_the_fit_do_not_judge_values(stars):
    """The same numbers with cells of the fit among those held out, and a note that these were left out."""
    model = halfseen.OrdinalMF(2, l2=0.5)
    alone = values_of(evaluated(stars, model))
    with (stars / "test.csv").open("a") as file:
        file.write(STARS.splitlines()[1] + "\n")
    result = evaluated(stars, model)
    _, note = result.stderr.splitlines()  # the other is of dan
    assert note == "note: Test cells should not be among those of training. Found 1 of 4 that are. They were left out."
    assert values_of(result) == alone
    assert "Log-likelihood of 3 cells" in result.stdout


def test_a_level_that_training_did_not_have_leaves_the_ranking(stars):
    (stars / "test.csv").write_text("user,item,rating\nann,w,3\nbob,z,1\n")
    result = evaluated(stars, halfseen.OrdinalMF(1), "-k", 1)
    assert result.stdout.splitlines()[-1].split() == ["1", "2", *["1.0000"] * 4]  # one candidate each
    assert re.match(r"note: .* levels that were fitted: 1, 2, 4\. Found 3 at row 'ann', column 'w'", result.stderr)


@pytest.mark.parametrize(
    ("model", "default"), [(halfseen.OrdNMF(1), ["bad", "3"]), (halfseen.OrdinalMF(1, l2=0.5), ["fair", "2"])], ids=str
)
def test_words_are_ranked_by_their_place(words, model, default):
    """The lowest is above the zeros of unseen cells; where these are missing every cell reaches it, and the second
    is relevant by default."""
    model.set_params(levels=list(WORDS.values()))
    result = evaluated(words, model)
    assert "4 cells seen (0.25 of all), levels 'bad' to 'good'." in result.stdout.splitlines()[0]
    assert result.stdout.splitlines()[2].split()[:2] == default
    told = evaluated(words, model, "--relevant", "bad", "--relevant", "good").stdout.splitlines()[2:4]
    assert [line.split()[:2] for line in told] == [["bad", "3"], ["good", "1"]]
    for word, hint in (("god", "Did you mean 'good'?"), ("2", "Name the lowest")):
        sentence = refused("evaluate", words / "model.hs", "--test", words / "test.csv", "--relevant", word)
        assert f"one of the model's levels 'bad', 'fair', 'good'. Found {word!r}. {hint}" in sentence
    (words / "test.csv").write_text("user,item,rating\nbob,z,bad\n")
    sentence = refused("evaluate", words / "model.hs", "--test", words / "test.csv", "--relevant", "good")
    assert "Found none of 'good' or more among 1 cells; the highest has 'bad'." in sentence


def test_values_of_words_count_levels(words):
    model = halfseen.OrdinalMF(2, l2=0.5, levels=list(WORDS.values()))
    line, found = values_of(evaluated(words, model))
    errors = model.predict_proba(["ann", "bob", "cid"], ["w", "z", "y"]) @ [0, 1, 2] - [2, 0, 1]
    assert line.startswith("Values of 3 cells, levels counted 0, 1, ... from 'bad': ")
    assert found[:2] == pytest.approx([np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors) <= 0.5)], abs=5.1e-5)


def test_refusals_are_one_line_without_a_note(stars):
    evaluated(stars, halfseen.OrdinalMF(1))
    ask = ("evaluate", stars / "model.hs", "--test", stars / "test.csv")
    assert "--relevant must be a number, as the values of the model are. Found 'good'." in refused(
        *ask, "--relevant", "good"
    )
    (stars / "test.csv").write_text("user,item,rating\nnobody,nothing,3\n")
    assert "check that test is of the rows and columns of the model" in refused(*ask)

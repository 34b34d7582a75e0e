"""halfseen evaluate: how well a model ranks cells that it has not seen."""

import re

import numpy as np
import pytest

import halfseen
from tests.cli.program import done, misused, refused, remarked
from tests.cli.program import halfseen as run


@pytest.fixture(scope="module")
def held_out(tmp_path_factory):
    """A model of film ratings, beside files of what it was fitted on and of what was held out."""
    folder = tmp_path_factory.mktemp("held")
    films = halfseen.data.load_movietweetings().select_rows(np.arange(300))
    train, test = halfseen.data.split_cells(films, test_size=0.2, random_state=0)
    for name, cells in (("train", train), ("test", test)):
        rows = cells.row_labels[cells.row_of_cell()]
        columns = cells.column_labels[cells.indices]
        halfseen.data.write_table(
            folder / f"{name}.csv", ["user", "item", "rating"], [rows.tolist(), columns.tolist(), cells.values]
        )
    model = halfseen.PoissonFactorization(4, random_state=0, max_iter=30, tol=0).fit(folder / "train.csv")
    model.save(folder / "model.hs")
    return folder, model


def numbers(line):
    return [float(field.replace(",", "")) for field in line.split()]


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_the_means_are_those_of_the_library(held_out):
    folder, model = held_out
    result = [*map(str, ("evaluate", folder / "model.hs", "--test", folder / "test.csv", "-k", 20))]
    note = remarked(*result, "--relevant", 1, "--relevant", 8)
    assert "test" in note  # films that nobody rated in training
    lines = run(*result, "--relevant", 1, "--relevant", 8).stdout.splitlines()
    assert lines[1].split() == ["relevant", "from", "rows", "NDCG@20", "precision@20", "recall@20", "MAP@20"]
    test = halfseen.observe(folder / "test.csv", unseen="zero")
    scores = halfseen.metrics.ranking_scores(model, None, test, k=20, relevant=[1, 8])
    for place, (line, threshold) in enumerate(zip(lines[2:4], (1, 8), strict=True)):
        means = [np.nanmean(metric[place]) for metric in scores]
        expected = [threshold, np.sum(~np.isnan(scores.ndcg[place])), *means]
        np.testing.assert_allclose(numbers(line), expected, atol=5.1e-5)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_the_likelihood_is_that_of_the_library(held_out):
    folder, model = held_out
    lines = run("evaluate", folder / "model.hs", "--test", folder / "test.csv").stdout.splitlines()
    logs = model.log_likelihood(folder / "test.csv", each=True)
    assert lines[-1] == (
        f"Log-likelihood of {logs.size:,} cells, given that they are above 0: {logs.sum():,.6g} "
        f"({logs.mean():.4f} a cell)."
    )
    halfseen.WeightedNMF(2, unseen="zero", random_state=0, max_iter=5, tol=0).fit(folder / "train.csv").save(
        folder / "nmf.hs"
    )
    assert "ikelihood" not in run("evaluate", folder / "nmf.hs", "--test", folder / "test.csv").stdout


def test_a_level_that_training_did_not_have_leaves_the_ranking(tmp_path):
    (tmp_path / "train.csv").write_text("user,item,rating\nann,x,1\nann,y,2\nbob,x,2\nbob,z,1\n")
    (tmp_path / "test.csv").write_text("user,item,rating\nann,z,5\nbob,y,1\n")
    halfseen.OrdNMF(1, random_state=0).fit(tmp_path / "train.csv").save(tmp_path / "model.hs")
    result = run("evaluate", tmp_path / "model.hs", "--test", tmp_path / "test.csv")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].split() == ["1", "2", *["1.0000", "0.0100", "1.0000", "1.0000"]]
    assert result.stderr == (
        "note: Values must be among the levels that were fitted: 0, 1, 2. Found 5 at row 'ann', column 'z' (1 such "
        "cell). Fit with data that have this level, or round the value.\n"
    )


def test_words_are_ranked_by_their_place(tmp_path):
    (tmp_path / "train.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,good\nbob,z,bad\n")
    (tmp_path / "test.csv").write_text("user,item,rating\nann,z,good\nbob,y,bad\n")
    model = halfseen.OrdNMF(1, levels=["bad", "good"], random_state=0).fit(tmp_path / "train.csv")
    model.save(tmp_path / "model.hs")
    ask = ("evaluate", tmp_path / "model.hs", "--test", tmp_path / "test.csv")
    lines = done(*ask, "--relevant", "good")
    assert lines[2].split()[:3] == ["good", "1", "1.0000"]
    assert lines[3].startswith("Log-likelihood of 2 cells, given that they are above 0: ")
    assert done(*ask)[2].split()[:2] == ["bad", "2"]  # the lowest level is above the zeros of unseen cells


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("god", "'bad', 'good'. Found 'god'. Did you mean 'good'?"),
        ("2", "'bad', 'good'. Found '2'. Name the lowest that makes a column relevant."),
    ],
)
def test_what_is_relevant_is_a_level_by_its_name(tmp_path, word, sentence):
    (tmp_path / "train.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,good\nbob,z,bad\n")
    halfseen.OrdNMF(1, levels=["bad", "good"], random_state=0).fit(tmp_path / "train.csv").save(tmp_path / "model.hs")
    ask = ("evaluate", tmp_path / "model.hs", "--test", tmp_path / "train.csv")
    assert refused(*ask, "--relevant", word) == f"halfseen: --relevant must be one of the model's levels {sentence}"


def test_what_is_relevant_is_a_number_where_values_are(held_out):
    folder, _ = held_out
    sentence = refused("evaluate", folder / "model.hs", "--test", folder / "test.csv", "--relevant", "good")
    assert sentence.startswith("halfseen: --relevant must be a number, as the values of the model are. Found 'good'.")


STARS = "user,item,rating\nann,x,1\nann,y,2\nann,z,4\nbob,x,2\nbob,y,1\nbob,w,4\ncid,z,2\ncid,w,2\ncid,x,4\n"
HELD = {("ann", "w"): 4, ("bob", "z"): 1, ("cid", "y"): 2}


@pytest.fixture
def stars(tmp_path):
    """Files of stars 1, 2 and 4 to learn from and to test by."""
    (tmp_path / "train.csv").write_text(STARS)
    held = "".join(f"{user},{item},{rating}\n" for (user, item), rating in HELD.items())
    (tmp_path / "test.csv").write_text(f"user,item,rating\n{held}dan,x,4\n")
    return tmp_path


def told_of_values(folder, model):
    """The numbers in the line of values."""
    model.save(folder / "model.hs")
    result = run("evaluate", folder / "model.hs", "--test", folder / "test.csv")
    assert result.exit_code == 0
    assert result.stderr.count("1 of 4") == 1  # dan is not known
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("Values of "))
    return line, [float(number) for number in re.findall(r"\d+\.\d{4}", line)]


@pytest.mark.parametrize(
    "model",
    [
        halfseen.RoundMF(2, l2=0.5, random_state=0),
        halfseen.OrdinalMF(2, l2=0.5, random_state=0),
        halfseen.WeightedNMF(2, random_state=0, max_iter=1000),
        halfseen.OrdNMF(1, unseen="missing", random_state=0, max_iter=5000),
    ],
    ids=lambda model: type(model).__name__,
)
def test_values_are_told_where_unseen_cells_are_missing(stars, model):
    model.fit(stars / "train.csv")
    users, items = zip(*HELD, strict=True)
    errors = model.predict(list(users), list(items)) - np.array(list(HELD.values()))
    expected = [np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors) <= 0.5)]
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(list(users), list(items))  # of levels 1, 2 and 4
        up_to_1, up_to_2 = p[:, 0], p[:, 0] + p[:, 1]
        seen = np.array(list(HELD.values()))
        expected.append(np.mean((up_to_1 - (seen <= 1)) ** 2 + (up_to_2 - (seen <= 2)) ** 2))
    line, found = told_of_values(stars, model)
    assert line.startswith("Values of 3 cells: root mean squared error ")
    np.testing.assert_allclose(found, expected, atol=5.1e-5)


def test_cells_of_the_fit_do_not_judge_values(stars):
    """The same numbers with cells of the fit among those held out, and a note that these were left out."""
    model = halfseen.OrdinalMF(2, l2=0.5, random_state=0).fit(stars / "train.csv")
    _, alone = told_of_values(stars, model)
    first = (stars / "train.csv").read_text().splitlines()[1]
    with (stars / "test.csv").open("a") as file:
        file.write(f"{first}\n")
    result = run("evaluate", stars / "model.hs", "--test", stars / "test.csv")
    _, note = result.stderr.splitlines()  # the other is of dan, who is not known
    assert note == "note: Test cells should not be among those of training. Found 1 of 4 that are. They were left out."
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("Values of 3 cells")]
    assert [float(number) for number in re.findall(r"\d+\.\d{4}", line)] == alone
    assert "Log-likelihood of 3 cells" in result.stdout


def test_values_of_words_count_levels(tmp_path):
    words = {"1": "bad", "2": "fair", "4": "good"}
    train = re.sub(r"\d", lambda found: words[found[0]], STARS)
    (tmp_path / "train.csv").write_text(train)
    (tmp_path / "test.csv").write_text("user,item,rating\nann,w,good\nbob,z,bad\ncid,y,fair\ndan,x,good\n")
    model = halfseen.OrdinalMF(2, l2=0.5, levels=list(words.values()), random_state=0).fit(tmp_path / "train.csv")
    p = model.predict_proba(["ann", "bob", "cid"], ["w", "z", "y"])
    errors = p @ [0, 1, 2] - [2, 0, 1]
    line, found = told_of_values(tmp_path, model)
    assert line.startswith("Values of 3 cells, levels counted 0, 1, ... from 'bad': ")
    assert found[:2] == pytest.approx([np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors) <= 0.5)], abs=5.1e-5)


def test_by_default_the_second_word_is_relevant_where_every_cell_reaches_the_first(stars):
    """Of the cells held out, one is at the lowest level: relevant from there on it would count too."""
    words = {"1": "bad", "2": "fair", "4": "good"}
    for name in ("train.csv", "test.csv"):
        text = (stars / name).read_text()
        (stars / name).write_text(re.sub(r"\d", lambda found: words[found[0]], text))
    model = halfseen.OrdinalMF(1, l2=0.5, levels=list(words.values()), random_state=0).fit(stars / "train.csv")
    model.save(stars / "model.hs")
    ask = ("evaluate", stars / "model.hs", "--test", stars / "test.csv")
    assert run(*ask).stdout.splitlines()[2].split()[:2] == ["fair", "2"]
    told = run(*ask, "--relevant", "bad", "--relevant", "good").stdout.splitlines()[2:4]
    assert [line.split()[:2] for line in told] == [["bad", "3"], ["good", "1"]]


def test_values_are_not_told_where_unseen_cells_are_zeros(stars):
    halfseen.OrdNMF(1, random_state=0, max_iter=5000).fit(stars / "train.csv").save(stars / "model.hs")
    lines = run("evaluate", stars / "model.hs", "--test", stars / "test.csv").stdout.splitlines()
    assert len(lines) == 4  # of the data, the heads of the ranking, the ranking, the likelihood
    assert not any(line.startswith("Values of ") for line in lines)


def test_a_level_unknown_to_a_model_of_thresholds_leaves_the_ranking(stars):
    halfseen.OrdinalMF(1, random_state=0).fit(stars / "train.csv").save(stars / "model.hs")
    (stars / "test.csv").write_text("user,item,rating\nann,w,3\nbob,z,1\n")
    result = run("evaluate", stars / "model.hs", "--test", stars / "test.csv", "-k", 1)
    assert result.stdout.splitlines()[-1].split() == ["1", "2", *["1.0000"] * 4]  # one candidate each
    assert result.stderr == (
        "note: Values must be among the levels that were fitted: 1, 2, 4. Found 3 at row 'ann', column 'w' (1 such "
        "cell). Fit with data that have this level, or round the value.\n"
    )


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_what_is_known_may_be_said(held_out):
    folder, _ = held_out
    ask = ("evaluate", folder / "model.hs", "--test", folder / "test.csv")
    first, told, *others = run(*ask, "--train", folder / "train.csv").stdout.splitlines()
    assert told.startswith(f"Read {folder / 'train.csv'}: ")
    assert [first, *others] == run(*ask).stdout.splitlines()


def test_bad_files_get_a_sentence(held_out, tmp_path):
    folder, _ = held_out
    assert "nowhere.csv" in refused("evaluate", folder / "model.hs", "--test", tmp_path / "nowhere.csv")
    assert "Missing option '--test'" in misused("evaluate", folder / "model.hs")
    (tmp_path / "other.csv").write_text("user,item,rating\n99999999,nothing,3\n")
    sentence = refused("evaluate", folder / "model.hs", "--test", tmp_path / "other.csv")  # one line, without a note
    assert "check that test is of the rows and columns of the model" in sentence


def test_the_help_has_examples():
    assert any("halfseen evaluate model.hs --test held_out.csv" in line for line in done("evaluate", "--help"))


def test_words_are_not_told_as_numbers(tmp_path):
    (tmp_path / "train.csv").write_text("user,item,rating\nann,x,bad\nann,y,good\nbob,x,good\nbob,z,bad\n")
    (tmp_path / "test.csv").write_text("user,item,rating\nbob,y,bad\n")
    fit = ("--method", "ordnmf", "-k", 1, "--levels", "bad,good", "-o", tmp_path / "m.hs")
    account, *_ = done("fit", tmp_path / "train.csv", *fit)
    assert "4 cells seen (0.667 of all), levels 'bad' to 'good'." in account
    ask = ("evaluate", tmp_path / "m.hs", "--test", tmp_path / "test.csv")
    assert "1 cell seen (1 of all), levels 'bad' to 'bad'." in done(*ask)[0]
    assert "Found none of 'good' or more among 1 cells; the highest has 'bad'." in refused(*ask, "--relevant", "good")

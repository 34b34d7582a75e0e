"""What the library advises, in terms of the command that runs: options it has, and nothing of Python."""

import re

import pytest
from halfseen.cli.advice import in_options

from tests.cli.conftest import planted_counts, write_long
from tests.cli.program import done, refused

LISTS = "uncouple --asked asked.csv --answers answers.csv -o out.csv"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Good files, a model, and data that no method of levels can have."""
    folder = tmp_path_factory.mktemp("advice")
    write_long(folder / "ratings.csv", planted_counts())
    done("fit", folder / "ratings.csv", "-k", 2, "-q", "-o", folder / "model.hs")
    (folder / "held.csv").write_text("user,item,rating\nann,ale,3\nbob,wine,2\n")
    (folder / "words.csv").write_text("user,item,rating\nann,ale,bad\nbob,wine,good\nbob,ale,bad\n")
    (folder / "ones.csv").write_text("user,item,rating\nann,ale,1\nbob,wine,1\nbob,ale,1\n")
    (folder / "parts.csv").write_text("user,item,rating\nann,ale,1.5\nbob,wine,1\nbob,ale,1\n")
    counts = "".join(f"u{number % 7},i{number},{number}\n" for number in range(150))
    (folder / "counts.csv").write_text(f"user,item,plays\n{counts}")
    (folder / "asked.csv").write_text("question,respondent\nq,ann\nq,bob\np,ann\np,bob\n")
    (folder / "answers.csv").write_text("question,value\nq,1\nq,2\np,3\np,5\n")
    return folder


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        # Parameters are options.
        ("fit ratings.csv -k 0", "-k must be a whole number of at least 1. Found 0. Use 1 or more."),
        ("fit ratings.csv --max-iter 0", "--max-iter must be a whole number of at least 1. Found 0. Use 1 or more."),
        ("fit ratings.csv --tol -1", "--tol must be a finite number of at least 0. Found -1.0. Choose such a number."),
        ("fit ratings.csv --method ordinal --l2 -1", "--l2 must be a finite number of at least 0. Found -1.0."),
        ("fit ratings.csv --method ordinal --link x", "--link must be one of 'logit',"),
        ("fit ratings.csv --method nmf --loss x", "--loss must be one of "),
        ("evaluate model.hs --test held.csv -k 0", "-k must be a whole number"),
        ("report model.hs --top 0", "--top must be a whole number"),
        ("recommend model.hs -u ann -n 0", "-n must be a whole number"),
        (f"{LISTS} --trust 0", "--trust must be a finite number above 0."),
        (f"{LISTS} --burn 500", "--burn must be below --sweeps, so that some sweeps are kept. Found --burn 500 and"),
        (f"{LISTS} --sweeps 0", "--sweeps must be a whole number"),
        # None is an option left out.
        (
            "fit ratings.csv --n-jobs 0",
            "--n-jobs must be a whole number other than 0. Found 0. Leave it out for all processors, or use 1 for one "
            "thread.",
        ),
        # Lists are parted by commas.
        ("fit ratings.csv --columns user", "Found 'user'. Name them: --columns user,item,rating."),
        ("fit ratings.csv --method ordinal --levels ,", "Give such a list: --levels bad,fair,good."),
        ("fit words.csv --method ordinal", "from the lowest to the highest: --levels LOWEST,...,HIGHEST."),
        ("fit words.csv --method ordinal --levels bad", "add it to --levels when fitting."),
        ("fit ratings.csv --method ordinal --levels 1,2", "Add it to --levels when fitting, or round the value."),
        ("fit ratings.csv -k auto:0,1", "The numbers after -k auto: must be different whole numbers of at least 1,"),
        # Estimators are methods.
        ("fit ones.csv --method ordinal", "or --method ordnmf with --unseen zero if unseen cells are a level"),
        ("fit parts.csv --method compound", "Round the values, or use --method poisson."),
        ("fit counts.csv --method ordinal", "Make a few levels of the counts, or use --method poisson."),
        # What another command or another option does.
        ("predict model.hs --row nobody --col ale", "For a new row, fit again."),
        ("recommend model.hs -u nobody", "For a new row, fit again, or pass its history, --history FILE."),
        (
            "evaluate model.hs --test held.csv --relevant 9",
            "Lower --relevant, or check that test is of the rows and columns of the model.",
        ),
        ("evaluate model.hs --test ratings.csv", "Hold some out before the fit (halfseen split), or test on others."),
    ],
)
def test_advice_can_be_followed(files, monkeypatch, words, advice):
    monkeypatch.chdir(files)
    sentence = refused(*words.split())
    assert advice in sentence
    assert not re.search(r"""\w=["'\[(]|\bNone\b|`|\b[a-z]+_[a-z]+\b""", sentence), sentence


def test_a_column_is_called_as_it_is(files, tmp_path):
    """A name in a user's data is no parameter, though it be spelled like one."""
    path = tmp_path / "max_iter.csv"
    path.write_text("max_iter,item,rating\nann,ale,3\n")
    sentence = refused("fit", path, "--columns", "n_jobs,item", "-o", tmp_path / "out.hs")
    assert "Found no 'n_jobs'." in sentence
    assert "The table has: max_iter, item, rating." in sentence


def test_outside_of_a_command_parameters_keep_their_names():
    assert in_options("n_jobs must be None or a whole number.") == "n_jobs must be a whole number."

"""What the library advises, in terms of the command that runs: options that it has, and no Python."""

import re

import pytest

from halfseen.cli.messages import as_option, render
from halfseen.errors import ParameterError
from tests.cli.conftest import planted_counts, write_long
from tests.cli.program import done, refused

LISTS = "uncouple --asked asked.csv --answers answers.csv -o out.csv"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Good files, a model, and data that some method cannot have."""
    folder = tmp_path_factory.mktemp("messages")
    write_long(folder / "ratings.csv", planted_counts())
    done("fit", folder / "ratings.csv", "-k", 2, "-q", "-o", folder / "model.hs")
    texts = {
        "held": "ann,ale,3\nbob,wine,2\n",
        "words": "ann,ale,bad\nbob,wine,good\nbob,ale,bad\n",
        "ones": "ann,ale,1\nbob,wine,1\nbob,ale,1\n",
        "parts": "ann,ale,1.5\nbob,wine,1\nbob,ale,1\n",
        "negative": "ann,ale,-1\nbob,wine,1\n",
        "counts": "".join(f"u{number % 7},i{number},{number}\n" for number in range(150)),
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(f"user,item,rating\n{text}")
    (folder / "asked.csv").write_text("question,respondent\nq,ann\nq,bob\np,ann\np,bob\n")
    (folder / "answers.csv").write_text("question,value\nq,1\nq,2\np,3\np,5\n")
    (folder / "table.csv").write_text("name,a,b\nx,1,8\ny,3,-2\nz,4,\n")
    return folder


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        # parameters are options
        ("fit ratings.csv -k 0", "-k "),
        ("fit ratings.csv --max-iter 0", "--max-iter "),
        ("fit ratings.csv --method ordinal --link logits", "--link "),
        ("evaluate model.hs --test held.csv -k 0", "-k "),
        ("recommend model.hs -u ann -n 0", "-n "),
        ("report model.hs --train held.csv --top 0", "--top "),
        ("split ratings.csv --folds 1 -o t.csv --held-out h.csv", "--folds "),
        (f"{LISTS} --burn 500", "--burn must be below --sweeps"),
        # None is an option left out
        ("fit ratings.csv --n-jobs 0", "--n-jobs must be a whole number"),
        # values are arguments
        ("fit ratings.csv --columns user", "--columns user,item,rating"),
        ("fit ratings.csv --method ordinal --levels ,", "--levels must be rising numbers"),
        ("fit words.csv --method ordinal", "--levels"),
        ("fit ratings.csv --method ordinal --levels 1,2", "--levels when fitting"),
        ("fit ratings.csv --method ordinal --unseen zero", "--unseen missing, or --method ordnmf"),
        # estimators are methods
        ("fit ones.csv --method ordinal", "--method ordnmf with --unseen zero"),
        ("fit parts.csv --method compound", "--method poisson"),
        ("fit counts.csv --method ordinal", "--method poisson"),
        # other commands and options
        ("fit ones.csv -k auto", "-k 5"),
        ("fit held.csv --method ordinal -k 1 --early-stopping", "Leave out --early-stopping"),
        ("predict model.hs --row nobody --col ale", "halfseen recommend --history FILE"),
        ("predict model.hs --row ann --col ale --level", "--level"),
        ("evaluate model.hs --test held.csv --relevant 9", "Lower --relevant"),
        ("evaluate model.hs --test held.csv --relevant good", "--relevant "),
        ("evaluate model.hs --test ratings.csv", "(halfseen split)"),
        ("impute table.csv --method nmf -o filled.csv", "--skip"),
        ("fit negative.csv", "mark them as missing"),
    ],
)
def test_advice_can_be_followed(files, monkeypatch, words, advice):
    monkeypatch.chdir(files)
    line = refused(*words.split())
    assert advice in line
    assert not re.search(r"""\w=["'\[(]|\bNone\b|`|\b[a-z]+_[a-z]+\b""", line), line


def test_a_name_in_the_data_is_no_parameter(tmp_path):
    path = tmp_path / "max_iter.csv"
    path.write_text("max_iter,item,rating\nann,ale,3\n")
    line = refused("fit", path, "--columns", "n_jobs,item", "-o", tmp_path / "out.hs")
    assert "'n_jobs'" in line
    assert "max_iter, item, rating" in line


def test_outside_of_a_command_parameters_keep_their_names():
    error = ParameterError("must be None or a whole number.", parameter="n_jobs", remedy='Set `by="row"`, or `tol`.')
    assert render(error) == "n_jobs must be a whole number. Set --by row, or tol."
    assert as_option('columns=("a b", 1)') == "--columns 'a b,1'"
    assert as_option("biases=True") == "--biases"
    assert as_option('halfseen.datasets.fetch("x")') == "halfseen datasets x --fetch"

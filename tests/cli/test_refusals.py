"""Every command of the real program, given something wrong: one line, exit code 2, and all files as they were."""

import hashlib
import os
import shutil
import sys

import pytest

import halfseen
from tests.cli.conftest import planted_counts, write_long
from tests.cli.program import check_refusal, done, refused, warm_program

TABLE = "name,a,b,c\nx,1,2,\ny,2,,6\nz,3,6,9\n"
LISTS = {
    "asked.csv": "question,respondent\nq,ann\nq,bob\np,ann\np,bob\n",
    "answers.csv": "question,value\nq,1\nq,2\np,3\np,5\n",
    "comparisons.csv": "question,higher,lower\nq,bob,ann\n",
}

#: Commands that can't be done, in a folder of good files, and what the line names.
CASES = [
    # files that are not there, or hold no data
    ("fit nowhere.csv -o out.hs", "nowhere.csv"),
    ("fit folder -o out.hs", "folder"),
    ("fit cut.csv.gz -o out.hs", "cut.csv.gz"),
    ("fit - -o out.hs < binary.csv", "standard input"),
    ("tune nowhere.csv -o out.hs", "nowhere.csv"),
    ("recommend model.hs --history nowhere.csv -o out.csv", "nowhere.csv"),
    ("serve nowhere.hs --port 0", "nowhere.hs"),
    ("serve model.hs --port 0 --names nowhere.csv", "nowhere.csv"),
    ("evaluate model.hs --test held.csv --train nowhere.csv", "nowhere.csv"),
    ("impute binary.csv --force -o out.csv", "binary.csv"),
    ("uncouple --asked nowhere.csv --answers answers.csv -o out.csv", "nowhere.csv"),
    ("split nowhere.csv -o out.csv --held-out held_out.csv", "nowhere.csv"),
    ("report model.hs --test binary.csv -o out.html", "binary.csv"),
    # models that are none
    ("predict cut.hs --row ann --col ale", "cut.hs"),
    ("recommend table.csv --user ann", "table.csv"),
    ("serve table.csv --port 0", "table.csv"),
    ("report folder -o out.html", "folder"),
    # columns, rows, studies and datasets that are not there
    ("fit ratings.csv --columns ²,1,2 -o out.hs", "²"),
    ("tune ratings.csv --param nothing=1,2 -o out.hs", "nothing"),
    ("tune ratings.csv --journal table.csv -k 1,2 -o out.hs", "table.csv"),
    ("tune ratings.csv --journal out.hs -k 1,2 -o out.hs", "out.hs"),
    ("predict model.hs --row nobody --col ale", "nobody"),
    ("recommend model.hs --user ann --exclude nothing --strict", "nothing"),
    ("recommend model.hs --users nowhere.csv", "nowhere.csv"),
    ("similar model.hs --item nothing", "nothing"),
    ("similar model.hs --item ale -n 0", "-n"),
    ("impute table.csv --skip nothing --force -o out.csv", "nothing"),
    ("uncouple --asked asked.csv --answers answers.csv --value nothing -o out.csv", "nothing"),
    ("reproduce --list all nonsense", "nonsense"),
    ("reproduce A1GM/Table1", "auto-mpg.data"),
    ("datasets movielens-100k --path", "--fetch"),
    # standard streams on lines that are wrong
    ("evaluate model.hs --test - --train - < held.csv", "--train"),
    ("fit - --seed x -o out.hs < ratings.csv", "--seed"),
    ("impute - --method nmf --loss nonsense -o - < table.csv", "nonsense"),
    # options that are none, or that mean nothing
    ("fit ratings.csv -o out.hs --method nonsense", "nonsense"),
    ("predict model.hs --row ann --col ale --json -o out.csv", "--json"),
    ("recommend model.hs --nonsense", "--nonsense"),
    ("evaluate model.hs", "--test"),
    ("uncouple --asked asked.csv --answers answers.csv -o out.csv --level 2", "--level"),
    ("report", "MODEL"),
    ("reproduce", "--list"),
    ("datasets --path", "--path"),
    ("doctor --nonsense", "--nonsense"),
    ("completion nonsense", "nonsense"),
    ("--nonsense", "--nonsense"),
    # more than any memory holds
    ("fit ratings.csv -k 2147483647 -o out.hs", "memory"),
    # places that can't be written to
    ("fit ratings.csv -o -", "'-'"),
    ("predict model.hs --row ann --col ale -o out.xlsx", "out.xlsx"),
    ("recommend model.hs --user ann -o nowhere/out.csv", "nowhere"),
    ("uncouple --asked asked.csv --answers answers.csv -o out.html", "out.html"),
    ("report model.hs -o folder", "folder"),
    ("reproduce a1gm/figure5 --quick -o out.csv", "out.csv"),
    ("demo -o out.csv", "out.csv"),
    ("demo -o nowhere/out", "nowhere"),
    # outputs that are inputs, or each other
    ("fit ratings.csv -k 2 -o ./link.csv", "link.csv"),
    ("recommend model.hs --history held.csv -o held.csv", "held.csv"),
    ("report model.hs -o model.hs", "model.hs"),
    ("split ratings.csv -o out.csv --held-out out.csv", "out.csv"),
    ("uncouple --asked asked.csv --answers answers.csv -o asked.csv", "asked.csv"),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder of good files, some that are no data, and results of an earlier day."""
    folder = tmp_path_factory.mktemp("good")
    write_long(folder / "ratings.csv", planted_counts())
    done("fit", folder / "ratings.csv", "-k", 2, "-q", "-o", folder / "model.hs")
    (folder / "held.csv").write_text("user,item,rating\nann,ale,3\nbob,wine,2\n")  # cells that training lacks
    (folder / "table.csv").write_text(TABLE)
    for name, text in LISTS.items():
        (folder / name).write_text(text)
    (folder / "folder").mkdir()
    (folder / "link.csv").symlink_to("ratings.csv")
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 4)
    (folder / "cut.csv.gz").write_bytes(b"\x1f\x8b\x08\x00cut")
    (folder / "cut.parquet").write_bytes(b"PAR1cut")
    (folder / "cut.hs").write_bytes((folder / "model.hs").read_bytes()[:500])
    for name in ("out.hs", "out.csv", "out.html"):
        (folder / name).write_text("of an earlier day")
    return folder


def state_of(folder):
    """Everything in a folder, to the last byte."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


@pytest.fixture
def here(good, tmp_path, monkeypatch):
    """A copy of it to work in, without any public data at hand; nothing may be left of what was kept on the way."""
    folder, passing = tmp_path / "here", tmp_path / "passing"
    shutil.copytree(good, folder, symlinks=True)
    passing.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(passing))
    yield folder
    assert not list(passing.glob("halfseen-*"))


@pytest.mark.parametrize(("words", "named"), CASES, ids=[words for words, _ in CASES])
def test_one_line_exit_code_2_and_nothing_is_touched(here, words, named):
    before = state_of(here)
    words, _, source = words.partition(" < ")
    result = warm_program(here.parent, *words.split(), stdin=source or os.devnull)
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert named in result.stderr
    assert state_of(here) == before
    assert not (here.parent / "data").exists()


def test_an_engine_that_cannot_run_here_is_refused(here, monkeypatch):
    """A model that was fitted on a GPU, on a machine without PyTorch."""
    halfseen.load("model.hs").set_params(engine="cuda").save("of_gpu.hs")
    monkeypatch.setitem(sys.modules, "torch", None)
    for words in (
        "recommend of_gpu.hs --history held.csv -q",
        "recommend of_gpu.hs --user ann",
        "evaluate of_gpu.hs --test held.csv",
        "report of_gpu.hs -o page.html",
        "fit ratings.csv --engine cuda -o new.hs",
        "impute table.csv --method nmf --engine cuda -o new.csv",
        "recommend model.hs --user ann --engine cuda",
    ):
        sentence = refused(*words.split())
        assert sentence.startswith("halfseen: --engine cuda needs PyTorch. Found none. Install it:")
        assert "halfseen[cuda]" in sentence
        assert sentence.endswith("Or use --engine cpu.")
    known = done("recommend", "model.hs", "--user", "ann")
    assert done("recommend", "of_gpu.hs", "--user", "ann", "--engine", "cpu") == known
    assert done("predict", "of_gpu.hs", "--row", "ann", "--col", "ale", "-q")  # products need no engine
    assert "RankOneNMF runs on the cpu only" in refused(
        "fit", "ratings.csv", "--method", "rank-one", "--engine", "cuda"
    )


def test_every_command_is_among_them():
    from halfseen.cli.app import COMMANDS

    assert {words.split()[0] for words, _ in CASES} >= set(COMMANDS)


def test_the_good_files_are_good(here):
    """The refusals above are not for another reason."""
    for words in (
        "fit ratings.csv -k 2 -o out.hs",
        "predict model.hs --row ann --col ale",
        "recommend model.hs --user ann -o out.csv",
        "evaluate model.hs --test held.csv --train ratings.csv",
        "impute table.csv -k 1 --force -o out.csv",
        "uncouple --asked asked.csv --answers answers.csv --comparisons comparisons.csv -q -o out.csv",
        "report model.hs --train ratings.csv -o out.html",
    ):
        result = warm_program(here.parent, *words.split())
        assert result.returncode == 0, f"{words}: {result.stderr}"

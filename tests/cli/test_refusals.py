"""Every command of the real program, given something wrong: one line, exit code 2, and all files as they were."""

import hashlib
import os
import shutil

import pytest

from tests.cli.conftest import planted_counts, write_long
from tests.cli.program import check_refusal, done, warm_program

TABLE = "name,a,b,c\nx,1,2,\ny,2,,6\nz,3,6,9\n"
LISTS = {
    "asked.csv": "question,respondent\nq,ann\nq,bob\np,ann\np,bob\n",
    "answers.csv": "question,value\nq,1\nq,2\np,3\np,5\n",
    "comparisons.csv": "question,higher,lower\nq,bob,ann\n",
}

#: Commands that can't be done, in a folder of good files, and a word of what is said.
CASES = [
    # Files that are not there, or are no data.
    ("fit nowhere.csv -o out.hs", "nowhere.csv"),
    ("fit folder -o out.hs", "must be a file"),
    ("fit binary.csv -o out.hs", "binary"),
    ("fit empty.csv -o out.hs", "line"),
    ("fit cut.csv.gz -o out.hs", "damaged"),
    ("fit cut.parquet -o out.hs", "Parquet"),
    ("predict model.hs --cells nowhere.csv -o out.csv", "nowhere.csv"),
    ("recommend model.hs --history nowhere.csv -o out.csv", "nowhere.csv"),
    ("evaluate model.hs --test nowhere.csv", "nowhere.csv"),
    ("evaluate model.hs --test held.csv --train nowhere.csv", "nowhere.csv"),
    ("impute nowhere.csv -o out.csv", "nowhere.csv"),
    ("impute binary.csv -o out.csv", "binary"),
    ("uncouple --asked nowhere.csv --answers answers.csv -o out.csv", "nowhere.csv"),
    ("report model.hs --train nowhere.csv -o out.html", "nowhere.csv"),
    ("report model.hs --test binary.csv -o out.html", "binary"),
    # Columns, rows and cells that are not there.
    ("fit ratings.csv --columns user,nothing,rating -o out.hs", "nothing"),
    ("predict model.hs --cells ratings.csv --columns user,nothing -o out.csv", "nothing"),
    ("predict model.hs --row nobody --col ale", "nobody"),
    ("predict model.hs --row ann --col nothing", "nothing"),
    ("recommend model.hs --user nobody -o out.csv", "nobody"),
    ("recommend model.hs --user ann --exclude nothing", "nothing"),
    ("evaluate model.hs --test held.csv --columns user,nothing,rating", "nothing"),
    ("impute table.csv --skip nothing -o out.csv", "nothing"),
    ("uncouple --asked asked.csv --answers answers.csv --value nothing -o out.csv", "nothing"),
    ("report model.hs --train ratings.csv --columns user,nothing,rating -o out.html", "nothing"),
    ("fit ratings.csv --columns ²,1,2 -o out.hs", "²"),
    ("uncouple --asked asked.csv --answers answers.csv --question ² -o out.csv", "²"),
    # Standard input and output, on command lines that are wrong.
    ("evaluate model.hs --test - --train - < held.csv", "can be read once"),
    ("fit - --seed x -o out.hs < ratings.csv", "--seed"),
    ("fit - -o out.hs < binary.csv", "standard input"),
    ("impute - --loss nonsense -o - < table.csv", "nonsense"),
    ("impute table.csv -o - --seed x", "--seed"),
    # Models that are none.
    ("predict nowhere.hs --row ann --col ale", "nowhere.hs"),
    ("predict ratings.csv --row ann --col ale", "ratings.csv"),
    ("predict cut.hs --row ann --col ale", "cut.hs"),
    ("recommend table.csv --user ann", "table.csv"),
    ("evaluate binary.csv --test held.csv", "binary.csv"),
    ("report ratings.csv -o out.html", "ratings.csv"),
    ("split nowhere.csv -o out.csv --held-out held_out.csv", "nowhere.csv"),
    ("report folder -o out.html", "folder"),
    # Options that are none, or that mean nothing.
    ("fit ratings.csv -o out.hs --nonsense", "--nonsense"),
    ("fit ratings.csv -o out.hs --method nonsense", "nonsense"),
    ("fit ratings.csv -o out.hs --seed x", "--seed"),
    ("fit ratings.csv -o out.hs -k 0", "-k must be"),
    ("fit ratings.csv -o out.hs --link probit", "--link"),
    ("predict model.hs --nonsense", "--nonsense"),
    ("predict model.hs", "--cells"),
    ("predict model.hs --row ann --col ale --json -o out.csv", "--json"),
    ("recommend model.hs --nonsense", "--nonsense"),
    ("recommend model.hs", "--user"),
    ("recommend model.hs --user ann -n 0 -o out.csv", "n must be"),
    ("evaluate model.hs", "--test"),
    ("evaluate model.hs --test held.csv -k 0", "k must be"),
    ("impute table.csv", "--output"),
    ("impute table.csv -o out.csv --loss nonsense", "nonsense"),
    ("uncouple --asked asked.csv --answers answers.csv -o out.csv --level 2", "--level"),
    ("uncouple --asked asked.csv --answers answers.csv -o out.csv --nonsense", "--nonsense"),
    ("report model.hs --top 0 -o out.html", "top must be"),
    ("report", "MODEL"),
    ("reproduce nonsense", "nonsense"),
    ("reproduce --list all nonsense", "nonsense"),
    ("reproduce A1GM/Table1", "auto-mpg.data"),
    ("reproduce a1gm/figure5 --seed -1", "--seed"),
    ("reproduce", "--list"),
    ("datasets nonsense", "nonsense"),
    ("datasets movielens-100k --path", "--fetch"),
    ("datasets big_mart --fetch", "kaggle"),
    ("datasets --path", "--path"),
    ("doctor --nonsense", "--nonsense"),
    ("demo --seed x", "--seed"),
    ("completion nonsense", "nonsense"),
    ("nonsense", "nonsense"),
    ("--nonsense", "--nonsense"),
    # More than any memory holds.
    ("fit ratings.csv -k 2147483647 -o out.hs", "memory"),
    ("impute table.csv -k 100000000000000 -o out.csv", "at most 2,147,483,647"),
    # Places that can't be written to.
    ("fit ratings.csv -o nowhere/out.hs", "nowhere"),
    ("fit ratings.csv -o folder", "folder"),
    ("fit ratings.csv -o -", "must be a file"),
    ("predict model.hs --row ann --col ale -o out.xlsx", "out.xlsx"),
    ("recommend model.hs --user ann -o nowhere/out.csv", "nowhere"),
    ("impute table.csv -o out.html", "out.html"),
    ("uncouple --asked asked.csv --answers answers.csv -o out.html", "out.html"),
    ("uncouple --asked asked.csv --answers answers.csv -o asked.csv", "asked.csv"),
    ("report model.hs -o folder", "folder"),
    ("report model.hs -o model.hs", "model.hs"),
    ("reproduce a1gm/figure5 --quick -o out.csv", "out.csv"),
    ("demo -o out.csv", "out.csv"),
    ("demo -o nowhere/out", "nowhere"),
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
    shutil.copytree(good, folder)
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
        "impute table.csv -k 1 -o out.csv",
        "uncouple --asked asked.csv --answers answers.csv --comparisons comparisons.csv -q -o out.csv",
        "report model.hs --train ratings.csv -o out.html",
    ):
        result = warm_program(here.parent, *words.split())
        assert result.returncode == 0, f"{words}: {result.stderr}"

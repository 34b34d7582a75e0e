"""halfseen report: one page in one file."""

import sys

import numpy as np
import pytest

import halfseen
from halfseen.report import Report
from tests.cli.conftest import ITEMS, USERS, planted_counts, write_long
from tests.cli.program import done, misused, names_in, program, refused, refused_for_room, remarked
from tests.cli.program import halfseen as run
from tests.report.pages import Page


@pytest.fixture
def held_out(tmp_path):
    """A file of what the ratings do not have."""
    values = np.where(np.isnan(planted_counts()), 2.0, np.nan)
    return write_long(tmp_path / "held_out.csv", values)


def page_at(path):
    return Page(path.read_text(encoding="utf-8"))


def test_a_report_of_everything(ratings, model, held_out, tmp_path):
    lines = done("report", model, "--train", ratings.path, "--test", held_out, "-o", tmp_path / "report.html")
    assert lines[0].startswith(f"Read {ratings.path}: {len(USERS)} x {len(ITEMS)}, ")
    assert lines[1].startswith(f"Read {held_out}: ")
    assert lines[2].startswith(f"Saved {tmp_path / 'report.html'} (")
    page = page_at(tmp_path / "report.html")
    fitted = halfseen.load(model)
    assert page.headings[0][1] == f"{type(fitted).__name__} of {len(USERS)} rows and {len(ITEMS)} columns"
    assert "How good it is" in [title for _, title in page.headings]
    assert page.facts["Cells seen"].startswith(f"{np.count_nonzero(~np.isnan(ratings.values))} of ")


def test_a_report_of_a_model_alone_has_its_usual_place(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert done("report", model, "-q", "--title", "Drinks <2>", "--top", 2) == []
    page = page_at(tmp_path / "report.html")
    assert page.headings[0][1] == "Drinks <2>"
    assert len(page.tables["Strongest columns of component 0"]) == 3
    assert names_in(tmp_path) == ["report.html"]


def test_the_ranking_may_have_another_length(ratings, held_out, tmp_path):
    done("fit", ratings.path, "--method", "poisson", "-k", 2, "-q", "-o", tmp_path / "model.hs")
    ask = ("report", tmp_path / "model.hs", "--test", held_out, "-q", "-o", tmp_path / "report.html")
    done(*ask, "-k", 3, "--relevant", 2)
    (table,) = (rows for caption, rows in page_at(tmp_path / "report.html").tables.items() if "Rankings" in caption)
    assert table[0] == ["Ranked by", "NDCG@3", "Precision@3", "Recall@3", "MAP@3"]


def test_files_are_read_as_they_are_told_to_be(model, ratings, tmp_path):
    lines = ratings.path.read_text().splitlines()[1:]
    (tmp_path / "bare.csv").write_text("\n".join([*lines, lines[0]]) + "\n")
    ask = ("report", model, "--train", tmp_path / "bare.csv", "--no-header", "-q", "-o", tmp_path / "report.html")
    assert "Every cell may appear once. Found 2 values for row 'ann'" in refused(*ask)
    done(*ask, "--duplicates", "first")
    assert page_at(tmp_path / "report.html").facts["Rows"] == str(len(USERS))


def test_a_survey(tmp_path):
    X = np.array([[1.0, 2, 3, 4], [4, 3, 1, 2], [2, 4, 1, 3]])
    seen = halfseen.Uncoupled.from_coupled(X, 6, random_state=0)
    halfseen.UncoupledNMF(1, n_sweeps=300, n_burn=50, random_state=0).fit(seen).save(tmp_path / "model.hs")
    done("report", tmp_path / "model.hs", "-q", "-o", tmp_path / "report.html")
    page = page_at(tmp_path / "report.html")
    assert "Whose answers" in [title for _, title in page.headings]
    assert page.facts["A guess of an answer is right"] == "100% of the time in the mean"
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    sentence = refused("report", tmp_path / "model.hs", "--train", tmp_path / "table.csv", "-o", tmp_path / "r.html")
    assert sentence.startswith("halfseen: --train must be left out for UncoupledNMF")


@pytest.fixture
def kept(tmp_path):
    """A report that was there before, and must be there after a refusal."""
    path = tmp_path / "report.html"
    path.write_text("an older report")
    yield path
    assert path.read_text() == "an older report"
    assert [name for name in names_in(tmp_path) if name.endswith(".part")] == []


def test_what_is_refused_leaves_the_older_report(model, ratings, kept, tmp_path):
    def sentence(*words):
        return refused("report", *words, "-o", kept)

    damaged = tmp_path / "damaged.hs"
    damaged.write_bytes(model.read_bytes()[:500])
    assert "is cut off or damaged" in sentence(damaged)
    assert "A model file must have been written by a model's save method." in sentence(ratings.path)
    assert "Could not read" in sentence(tmp_path / "nothing.hs")
    assert "nothing.csv" in sentence(model, "--train", tmp_path / "nothing.csv")
    other = tmp_path / "other.csv"
    other.write_text("user,item,rating\nzoe,zip,3\n")
    for name in ("train", "test"):
        found = sentence(model, f"--{name}", other)
        assert found.startswith(f"halfseen: --{name} must have cells in the rows and columns of the model. Found none")
    other.write_text("user,item,rating\nann,ale,many\n")
    assert "'many'" in sentence(model, "--test", other)
    assert "top must be" in sentence(model, "--top", 0)


def test_places_that_a_report_cannot_have(model, ratings, tmp_path):
    assert "does not exist" in refused("report", model, "-o", tmp_path / "nowhere" / "report.html")
    assert "Found a folder" in refused("report", model, "-o", tmp_path)
    before = model.read_bytes()
    assert "must be different files" in refused("report", model, "-o", model)
    sentence = refused("report", model, "--train", ratings.path, "-o", ratings.path)
    assert "must be different files" in sentence
    assert model.read_bytes() == before
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
def test_without_what_pages_are_made_with(model, kept, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert refused("report", model, "-o", kept) == (
        f"halfseen: A report needs {name}. It is not installed. Install it: pip install {name}."
    )


def test_a_full_disk(model, kept, full_disk):
    refused_for_room(full_disk, "report", model, "-o", kept)


def test_ctrl_c_leaves_the_older_report(model, kept, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Report, "save", interrupt)
    result = run("report", model, "-o", kept)
    assert (result.exit_code, result.stderr) == (130, "Interrupted; nothing was saved.\n")


def test_the_real_program(model, ratings, tmp_path):
    result = program("report", model, "--train", ratings.path, "-o", tmp_path / "report.html")
    assert (result.returncode, result.stderr) == (0, "")
    assert page_at(tmp_path / "report.html").facts["Rows"] == str(len(USERS))


def test_options_that_are_not_there(model):
    assert misused("report", model, "--output-file", "x.html").startswith("No such option")
    assert misused("report").startswith("Missing argument")


def test_an_empty_title_is_none(model, tmp_path):
    done("report", model, "-q", "--title", "", "-o", tmp_path / "report.html")
    fitted = halfseen.load(model)
    title = f"{type(fitted).__name__} of {len(USERS)} rows and {len(ITEMS)} columns"
    assert page_at(tmp_path / "report.html").headings[0] == ("h1", title)


def test_cells_that_were_fitted_do_not_judge_the_model(model, ratings, held_out, tmp_path):
    lines = held_out.read_text().splitlines()
    (tmp_path / "both.csv").write_text("\n".join([*lines, *ratings.path.read_text().splitlines()[1:4]]) + "\n")
    ask = ("report", model, "-q", "-o", tmp_path / "report.html")
    note = remarked(*ask, "--test", tmp_path / "both.csv")
    assert note.endswith(f"Found 3 of {len(lines) + 2} that are. They were left out.")
    page = page_at(tmp_path / "report.html")
    assert note.removeprefix("note: ") in page.notes
    assert f"{len(lines) - 1} cells held out, in rows and columns of the model." in page.notes
    sentence = refused(*ask, "--test", ratings.path)
    assert sentence.startswith("halfseen: Test must have cells that training has not seen. Found none among ")


@pytest.mark.parametrize("option", ["--train", "--test"])
def test_standard_input_is_called_so_where_it_is_wrong(model, tmp_path, option):
    result = program("report", model, option, "-", "-o", tmp_path / "report.html", input="")
    assert result.returncode == 2
    assert "Found none in standard input. " in result.stderr
    assert names_in(tmp_path) == []


def test_cells_that_the_model_does_not_know_are_told_of(model, ratings, tmp_path):
    with ratings.path.open() as file:
        (tmp_path / "more.csv").write_text(f"{file.read()}zoe,ale,3\n")
    note = remarked("report", model, "--train", tmp_path / "more.csv", "-q", "-o", tmp_path / "report.html")
    assert "1 of 33 that are not, the first at row 'zoe', column 'ale'. They were left out." in note
    assert note.removeprefix("note: ") in page_at(tmp_path / "report.html").notes

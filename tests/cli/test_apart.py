"""What a command reads is never what it writes: data are not lost to a slip of the keyboard."""

import pytest

from tests.cli.program import refused


@pytest.fixture
def here(ratings, model, tmp_path, monkeypatch):
    """A folder with ratings, a model of them, and a history of somebody new, as files of one's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.csv").write_bytes(ratings.path.read_bytes())
    (tmp_path / "model.hs").write_bytes(model.read_bytes())
    (tmp_path / "history.csv").write_text("user,item,rating\nzoe,ale,3\nzoe,gin,2\n")
    (tmp_path / "link.csv").symlink_to("ratings.csv")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "fit ratings.csv -k 2 -o ratings.csv",
        "fit ratings.csv -k 2 -o ./link.csv",
        "recommend model.hs --history history.csv -o history.csv",
        "report model.hs --train ratings.csv -o ratings.csv",
        "report model.hs -o model.hs",
        "split ratings.csv -o link.csv --held-out held.csv",
        "split ratings.csv -o same.csv --held-out same.csv",
    ],
)
def test_what_would_be_lost_is_kept(here, words):
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    assert "What is read and what is written must be different files." in refused(*words.split())
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before

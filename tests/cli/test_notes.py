"""What the program remarks beside its results: what is for users, and nothing of the code inside."""

import pytest

from tests.cli.program import warm_program

HUGE = "user,item,rating\na,x,1\na,y,2\nb,x,3\nb,y,1e308\nc,y,2\nc,x,1e308\n"


@pytest.mark.parametrize("method", ["nmf", "poisson", "ordinal"])
def test_numpy_s_words_about_numbers_too_large_are_not_ours(tmp_path, method):
    """A fit that comes to nothing is told in our words, once; of one that succeeds there is nothing to tell."""
    (tmp_path / "huge.csv").write_text(HUGE)
    words = ("fit", tmp_path / "huge.csv", "--method", method, "-k", 1, "-q", "-o", tmp_path / "model.hs")
    result = warm_program(tmp_path, *words)
    assert (result.returncode, result.stdout) == (0, "")
    notes = result.stderr.splitlines()
    assert not [note for note in notes if "encountered" in note]
    if method != "ordinal":
        (note,) = notes
        assert note.startswith("note: ")
        assert "The next iteration was not finite" in note

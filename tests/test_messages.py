"""Messages: the golden file of all of them, and what errors carry."""

import importlib.util
import pickle
from pathlib import Path

import pytest

from halfseen import errors

ROOT = Path(__file__).parents[1]


def test_all_messages_are_in_the_golden_file():
    """After a change of a message: python docs/building/messages.py > tests/messages.txt, and read the difference."""
    spec = importlib.util.spec_from_file_location("messages", ROOT / "docs" / "building" / "messages.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.all_messages() == (ROOT / "tests" / "messages.txt").read_text(encoding="utf-8")


def example(kind):
    return kind(
        "must be one of the levels.", parameter="levels", found="3.5", where="at row 17, column 4",
        remedy='Pass `duplicates="mean"`, or `OrdNMF`.', remedy_cli="Leave it out.",
    )  # fmt: skip


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.Described)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_is_made_of_its_fields_and_they_survive_pickling(kind):
    error = example(kind)
    text = 'levels must be one of the levels. Found 3.5 at row 17, column 4. Pass duplicates="mean", or OrdNMF.'
    assert str(error) == text
    assert text in repr(error)
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), vars(back), str(back)) == (kind, vars(error), text)


def test_a_renderer_sees_code_and_the_parameter():
    seen = []
    text = example(errors.DataError).render(lambda code: seen.append(code) or f"<{code}>")
    assert seen == ["levels", 'duplicates="mean"', "OrdNMF"]
    assert text.startswith("<levels> must")
    assert text.endswith('Pass <duplicates="mean">, or <OrdNMF>.')
    assert example(errors.DataError).render(cli=True).endswith("column 4. Leave it out.")
    assert str(errors.DataError("A plain sentence.")) == "A plain sentence."

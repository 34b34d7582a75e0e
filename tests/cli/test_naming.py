"""From texts to labels of a model."""

import numpy as np
import pytest

from halfseen.cli.models import as_labels
from tests.cli.program import refused

WHOLE = np.array([7, 10, -3])


@pytest.mark.parametrize(("text", "label"), [("10", 10), (" 10 ", 10), ("-3", -3), ("x", "x")])
def test_whole_numbers_where_the_model_has_those(text, label):
    assert as_labels([text], WHOLE) == [label]
    assert as_labels([text], None) == [label]  # positions


@pytest.mark.parametrize("text", ["1_0", "007", "+7", "1e1", "²", ""])
def test_what_python_would_read_as_another_number_stays_text(text):
    """It is looked up as it is, and refused as unknown."""
    assert as_labels([text], WHOLE) == [text]


def test_numbers_with_decimals():
    assert as_labels(["1.5", "1_0.5", "x"], np.array([1.5, 10.5])) == [1.5, "1_0.5", "x"]


def test_names_stay_names():
    assert as_labels(["1_0", 10], np.array(["1_0", "10"], dtype=object)) == ["1_0", "10"]


def test_the_program_does_not_take_one_row_for_another(numbered_model):
    assert "1_1" in refused("predict", numbered_model, "--row", "1_1", "--col", "100")

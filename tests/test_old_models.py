"""Model files of released versions, which every later version reads, with the same answers.

`docs/building/make_fixtures.py` wrote them, run with the code of the release.
"""

import gzip
import json
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import halfseen

FOLDERS = sorted((Path(__file__).parent / "fixtures").glob("models-*"))
#: By path, questions (an attribute, or a method with its arguments) and the answers of the release.
EXPECTED = {
    folder / f"{name}.hs": questions
    for folder in FOLDERS
    for name, questions in json.loads(gzip.decompress((folder / "expected.json.gz").read_bytes())).items()
}


def assert_same(answer, expected, rtol, what):
    """Numbers within `rtol` and of the same dtype, anything else equal; of a dict, what is expected of it."""
    if hasattr(answer, "toarray"):
        answer = answer.toarray()
    if isinstance(expected, dict) and "dtype" in expected:
        array = np.asarray(answer)
        if np.dtype(expected["dtype"]).kind not in "biuf":
            assert array.tolist() == expected["values"], what
            return
        assert array.dtype == expected["dtype"], what
        rtol = max(rtol, 1e-6) if rtol and array.dtype == np.float32 else rtol
        np.testing.assert_allclose(array, np.array(expected["values"], array.dtype), rtol=rtol, atol=0, err_msg=what)
    elif isinstance(expected, dict):
        for name in expected:
            assert_same(answer[name], expected[name], rtol, f"{what} {name}")
    elif isinstance(expected, list):
        assert len(answer) == len(expected), what
        for place, (one, other) in enumerate(zip(answer, expected, strict=True)):
            assert_same(one, other, rtol, f"{what} {place}")
    elif isinstance(expected, float):
        np.testing.assert_allclose(answer, expected, rtol=rtol, atol=0, err_msg=what)
    else:
        assert (answer.name if isinstance(answer, Enum) else answer) == expected, what


def test_every_file_has_answers():
    assert FOLDERS
    assert set(EXPECTED) == {path for folder in FOLDERS for path in folder.glob("*.hs")}


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_model_file_of_a_release_gives_the_same_answers(path):
    """What is read from the file is the same to the last bit; what is computed from it, within rounding."""
    model = halfseen.load(path)
    for question in EXPECTED[path]:
        answer, rtol = getattr(model, question["ask"]), 0.0
        if "args" in question:
            answer, rtol = answer(*question["args"], **question["kwargs"]), 1e-12
        assert_same(answer, question["answer"], rtol, question["ask"])

"""UncoupledNMF to a file and back, and arrays of hostile files."""

import io
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from halfseen import UncoupledNMF, load
from halfseen.errors import DataWarning, ModelFileError
from tests.uncoupled.cases import METHODS, SHORT, assert_same, collected, fitted, labelled, odd_lists, said


def assert_comes_back(model, seen, path):
    model.save(path)
    back = load(path)
    assert_same(said(model, seen), said(back, seen))
    assert_array_equal(model.trace_["seconds"], back.trace_["seconds"])
    for name in ("status_", "n_features_in_", "questions_are_"):
        assert getattr(back, name) == getattr(model, name)
    assert back.get_params() == model.get_params()
    assert_array_equal(back.seen_.indptr, model.seen_.indptr)
    assert_array_equal(back.seen_.indices, model.seen_.indices)
    assert type(back.model_.rows) is type(model.model_.rows)
    assert back.model_.fingerprint == model.model_.fingerprint
    if model.method == "gibbs":
        assert back.diagnostics_ == model.diagnostics_
    back.save(path)
    assert_same(said(model, seen), said(load(path), seen))


@pytest.mark.parametrize(("before", "after"), [("bayes", "unmf"), ("gibbs", "bayes"), ("bayes", "gibbs")])
def test_a_model_with_another_method_set_for_its_next_fit_comes_back(before, after, tmp_path):
    seen = collected(odd_lists())
    model = fitted(seen, before, **SHORT[before]).set_params(method=after)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert back.method == after
    assert_array_equal(back.complete(seen), model.complete(seen))


def uncompared():
    """A model of a collection without comparisons, and the collection."""
    seen = collected(odd_lists()[:2])
    with pytest.warns(DataWarning):
        return UncoupledNMF(2, random_state=0, n_jobs=1).fit(seen), seen


@pytest.mark.parametrize("questions_are", ["rows", "columns"])
@pytest.mark.parametrize("method", [*METHODS, "none"])
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_every_method_comes_back_bit_by_bit(method, questions_are, tmp_path):
    """With labels, units and a lambda for each question where questions are columns."""
    more = {} if questions_are == "rows" else {"gibbs": {"scale": "question"}, "unmf": {"balance": [1.0, 2.0] * 6}}
    lists = odd_lists() if questions_are == "rows" else labelled(odd_lists())
    seen = collected(lists if method != "none" else lists[:2], questions_are=questions_are)
    how = {**SHORT[method], **more.get(method, {})} if method != "none" else {}
    assert_comes_back(fitted(seen, "gibbs" if method == "none" else method, **how), seen, tmp_path / "model")


def test_the_unknown_error_bound_of_a_question_without_answers_comes_back(tmp_path):
    """Of 1, 3, 4, 5 the flattest best line, from 1 to 5, is off by 1 at the 1; of 2 and 3, by nothing."""
    asked = [(question, who) for question in "abc" for who in "wxyz"]
    answers = [("a", x) for x in (1, 3, 4, 5)] + [("c", x) for x in (2, 3)]
    seen = collected((asked, answers, [("a", "x", "w"), ("b", "y", "z")]))
    fitted(seen, "unmf", max_iter=2).save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model").error_bounds_, [0.25, np.nan, 0], atol=1e-15)


# Hostile files.


@pytest.fixture(scope="module")
def models():
    seen = collected(odd_lists())
    sampled, by_loop = (fitted(seen, method, **SHORT[method]) for method in ("gibbs", "unmf"))
    return {"gibbs": sampled, "unmf": by_loop, "uncompared": uncompared()[0]}


def restored(model, arrays):
    """A model with the factors of this one, given these arrays."""
    other = UncoupledNMF(**model.get_params())
    other._set_state(model.model_, model.trace_, arrays)
    return other


def put(place, value):
    """A change of one entry."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def swapped(array):
    """The first two entries exchanged."""
    return array[[1, 0, *range(2, len(array))]]


SIZES = {"short": lambda a: a[:-1], "long": lambda a: np.append(a, a[-1:], axis=0), "flat": lambda a: a.reshape(-1, 1)}
KINDS = {"text": lambda a: a.astype(str), "complex": lambda a: a.astype(complex)}
FLOATS = {"NaN": put(0, np.nan), "infinite": put(-1, np.inf)}
NUMBERS = {"turned": 2, "n_clipped": 0.5, "posterior": 3}
INDPTR = {
    "not from 0": put(0, 1), "falling": put(2, 0), "far": put(1, 2**62), "negative": put(1, -5),
    "too far": put(-1, 2**40), "floats": lambda a: a.astype(float), "unsigned": lambda a: a.astype(np.uint64),
}  # fmt: skip
CORRUPTED = {
    "indptr": SIZES | KINDS | INDPTR,
    "respondents": SIZES | KINDS | {"far": put(0, 2**31 - 1), "negative": put(3, -1), "not ascending": swapped},
    "askings": SIZES | KINDS | {"fewer than cells": put(0, 0)},
    "answers": SIZES | KINDS | FLOATS | {"falling": put(0, 1e9), "none": lambda a: a[:0]},
    "answer_indptr": SIZES | KINDS | INDPTR,
    "draws_A": SIZES | KINDS | FLOATS | {"no draw": lambda a: a[:, :0]},
    "draws_B": SIZES | KINDS | FLOATS,
    "draws_row_noise": SIZES | KINDS | FLOATS | {"negative": put(0, -1.0)},
    "draws_column_noise": SIZES | KINDS | FLOATS | {"zero": put(0, 0.0)},
    "draws_coupling": SIZES | KINDS | {"beyond the row": put((0, 0), 200), "signed": lambda a: a.astype(np.int8)},
    "draws_unknown": SIZES | KINDS | FLOATS,
    "draws_unknown_indptr": SIZES | KINDS | INDPTR,
    "draws_centre": SIZES | KINDS | FLOATS,
    "draws_scale": SIZES | KINDS | FLOATS | {"zero": put(0, 0.0)},
    "diagnosed": {"short": SIZES["short"], "numbers": lambda a: np.arange(len(a))},
    "diagnostics": SIZES | KINDS,
}
CASES = [("gibbs", name, *change) for name, changes in CORRUPTED.items() for change in changes.items()]
OF_QUESTIONS = ("w_", "balance_", "error_bounds_")
CASES += [("unmf", name, *change) for name in OF_QUESTIONS for change in (SIZES | KINDS | FLOATS).items()]
CASES += [("uncompared", name, *one) for name in ("askings", "answers", "indptr") for one in CORRUPTED[name].items()]
CASES += [("unmf", name, "another", lambda a, value=value: np.array(value)) for name, value in NUMBERS.items()]


@pytest.mark.parametrize(("model", "name", "how", "change"), CASES, ids=lambda one: one if isinstance(one, str) else "")
def test_an_array_that_is_not_as_it_was_saved_is_refused(models, model, name, how, change):
    """With a ValueError of a sentence, before anything uses it; of a file, `load` makes a ModelFileError of it."""
    arrays = models[model]._more_state()
    restored(models[model], arrays)
    with pytest.raises(ValueError, match=" must "):
        restored(models[model], arrays | {name: change(arrays[name])})


@pytest.mark.parametrize("model", ["gibbs", "unmf", "uncompared"])
def test_an_array_that_is_missing_is_refused(models, model):
    arrays = models[model]._more_state()
    for name in arrays.keys() - set(OF_QUESTIONS):
        with pytest.raises(KeyError, match=name):
            restored(models[model], {one: array for one, array in arrays.items() if one != name})


@pytest.mark.parametrize("change", [None, put(0, 2**62)], ids=["missing", "far"])
def test_a_hostile_file_is_refused(models, change, tmp_path):
    path = tmp_path / "model"
    models["gibbs"].save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {item: archive.read(item) for item in archive.namelist()}
    header, name = json.loads(parts["header.json"]), "more/respondents"
    if change is None:
        header["arrays"].remove(name)
    else:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, change(np.lib.format.read_array(io.BytesIO(parts[f"{name}.npy"]))))
        parts[f"{name}.npy"] = buffer.getvalue()
    parts["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for item, content in parts.items():
            archive.writestr(item, content)
    with pytest.raises(ModelFileError):
        load(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelFileError, match="cut off"):
        load(path)

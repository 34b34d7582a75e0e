"""UncoupledNMF to a file and back, and files whose parts do not belong together."""

import io
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from halfseen import UncoupledNMF, load
from halfseen.errors import DataWarning, ModelFileError
from tests.estimators.uncoupled_cases import METHODS, SHORT, assert_same, collected, fitted, odd_lists, said


def uncompared():
    """A model of a collection without comparisons, and the collection."""
    seen = collected(odd_lists()[:2])
    with pytest.warns(DataWarning):
        return UncoupledNMF(2, random_state=0, n_jobs=1).fit(seen), seen


def assert_comes_back(model, seen, path):
    model.save(path)
    back = load(path)
    assert_same(said(model, seen), said(back, seen))
    assert_array_equal(model.trace_["seconds"], back.trace_["seconds"])
    assert back.status_ is model.status_
    assert back.get_params() == model.get_params()
    assert back.n_features_in_ == model.n_features_in_
    assert back.fingerprint_ == model.fingerprint_
    assert_array_equal(back.seen_.indptr, model.seen_.indptr)
    assert_array_equal(back.seen_.indices, model.seen_.indices)
    assert type(back.factors_[0]) is type(model.factors_[0])
    if model.method == "gibbs":
        assert back.diagnostics_ == model.diagnostics_
    back.save(path)
    assert_same(said(model, seen), said(load(path), seen))


@pytest.mark.parametrize("questions_are", ["rows", "columns"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_comes_back_bit_by_bit(method, questions_are, tmp_path):
    seen = collected(odd_lists(), questions_are=questions_are)
    assert_comes_back(fitted(seen, method, **SHORT[method]), seen, tmp_path / "model")


def test_units_of_single_questions_come_back(tmp_path):
    seen = collected(odd_lists())
    assert_comes_back(fitted(seen, scale="question", **SHORT["gibbs"]), seen, tmp_path / "model")


def test_labels_come_back(tmp_path):
    asked, answers, compared = odd_lists()
    name = lambda j: None if j is None else f"r{j}"  # noqa: E731
    seen = collected((
        [(f"q{i}", name(j)) for i, j in asked], [(f"q{i}", x) for i, x in answers],
        [(f"q{i}", name(high), name(low)) for i, high, low in compared],
    ))  # fmt: skip
    assert_comes_back(fitted(seen, **SHORT["gibbs"]), seen, tmp_path / "model")


def test_a_model_without_comparisons_comes_back(tmp_path):
    assert_comes_back(*uncompared(), tmp_path / "model")


def test_a_lambda_for_each_question_comes_back(tmp_path):
    seen = collected(odd_lists())
    model = fitted(seen, "unmf", balance=np.linspace(1, 2, 12).tolist(), max_iter=3)
    assert_comes_back(model, seen, tmp_path / "model")


@pytest.mark.parametrize(
    ("before", "after"), [("bayes", "unmf"), ("unmf", "bayes"), ("gibbs", "bayes"), ("bayes", "gibbs")]
)
def test_a_model_with_another_method_set_for_its_next_fit_comes_back(before, after, tmp_path):
    seen = collected(odd_lists())
    model = fitted(seen, before, **SHORT[before]).set_params(method=after)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert back.method == after
    assert_array_equal(back.complete(seen), model.complete(seen))


def changed(path, name, change):
    """Write the file anew with one array changed, or left out."""
    with zipfile.ZipFile(path) as archive:
        parts = {item: archive.read(item) for item in archive.namelist()}
    header = json.loads(parts["header.json"])
    if change is None:
        header["arrays"].remove(name)
        del parts[f"{name}.npy"]
    else:
        array, buffer = np.lib.format.read_array(io.BytesIO(parts[f"{name}.npy"])), io.BytesIO()
        np.lib.format.write_array(buffer, change(array))
        parts[f"{name}.npy"] = buffer.getvalue()
    parts["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for item, content in parts.items():
            archive.writestr(item, content)


#: Parts that are single numbers.
NUMBERS = ("n_clipped", "turned", "posterior")


def further_parts(method):
    """The names of what this method keeps beside the factors."""
    draws = [f"draws_{name}" for name in (
        "A", "B", "row_noise", "column_noise", "coupling", "unknown", "unknown_indptr", "centre", "scale"
    )]  # fmt: skip
    own = {"gibbs": ["answers", "answer_indptr", *draws, "diagnosed", "diagnostics"], "unmf": ["w_", "balance_"]}
    return ["indptr", "respondents", "askings", "n_clipped", "turned", "posterior", *own[method]]


@pytest.mark.parametrize("part", further_parts("gibbs"))
def test_a_file_without_one_of_its_parts_is_refused(part, tmp_path):
    path = tmp_path / "model"
    fitted(collected(odd_lists()), **SHORT["gibbs"]).save(path)
    changed(path, f"further/{part}", None)
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize("part", sorted(set(further_parts("gibbs")) - set(NUMBERS)))
@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: np.append(a, a[-1:], axis=0)], ids=["short", "long"])
def test_a_part_of_another_size_is_refused(part, change, tmp_path):
    path = tmp_path / "model"
    fitted(collected(odd_lists()), **SHORT["gibbs"]).save(path)
    changed(path, f"further/{part}", change)
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize("part", sorted(set(further_parts("unmf")) - set(NUMBERS)))
def test_a_part_of_another_size_is_refused_where_nothing_was_sampled(part, tmp_path):
    path = tmp_path / "model"
    fitted(collected(odd_lists()), "unmf", **SHORT["unmf"]).save(path)
    changed(path, f"further/{part}", lambda array: array[:-1])
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize("part", ["indptr", "respondents", "askings", "answers", "answer_indptr"])
def test_a_part_of_another_size_is_refused_where_nothing_was_compared(part, tmp_path):
    path = tmp_path / "model"
    uncompared()[0].save(path)
    changed(path, f"further/{part}", lambda array: array[:-1])
    with pytest.raises(ModelFileError):
        load(path)


def test_a_file_cut_off_is_refused(tmp_path):
    path = tmp_path / "model"
    fitted(collected(odd_lists()), **SHORT["gibbs"]).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelFileError, match="cut off"):
        load(path)

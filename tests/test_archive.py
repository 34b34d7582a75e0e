"""Model files: whole or refused, and nothing left behind."""

import errno
import io
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import WeightedNMF, archive, load, observe
from halfseen.archive import read_archive, write_archive
from halfseen.errors import ModelFileError
from halfseen.observed import Observed

HEADER = {"halfseen": "0.1.0", "estimator": "WeightedNMF"}


def small_model(**labels):
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((5, 4)) < 0.8)
    observed = Observed.from_cells(rows, columns, rng.gamma(2.0, 1.0, rows.size), (5, 4), **labels)
    return WeightedNMF(2, max_iter=3, tol=0, random_state=0).fit(observed)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.halfseen"
    small_model(row_labels=list("abcde"), column_labels=list("wxyz")).save(path)
    return path


LABELS = {
    "text": ["a", "b c", "", "ä€😀", "line\nbreak\r\n"],
    "quotes": ['"', "'", "\\", "\x00", "\t"],
    "integers": [3, -1, 7, 2**62, 0],
    "large integers": [2**64 - 1, 0, 2**63, 5, 6],
    "dates": np.array(["2020-01-01", "1969-07-20", "2100-12-31", "2020-02-29", "2021-01-01"], dtype="datetime64[D]"),
    "moments": pd.date_range("2020-01-01", periods=5, freq="h").to_numpy(),
    "floats": [0.1, 2.5, -3.0, 1e300, 4.0],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_back_as_they_were(labels, tmp_path):
    model = small_model(row_labels=labels, column_labels=labels[:4])
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    for mine, theirs in ((model.row_labels_, back.row_labels_), (model.column_labels_, back.column_labels_)):
        assert mine.dtype == theirs.dtype
        assert_array_equal(mine, theirs)
    assert_allclose(back.predict(labels, [labels[0]] * 5), model.W_ @ model.H_[0], rtol=1e-14)
    assert_array_equal(back.recommend(labels[:2]).ids, model.recommend(labels[:2]).ids)


def test_names_of_features_come_back(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).random((6, 3)), columns=["x", "y\n", "ü"])
    model = WeightedNMF(2, max_iter=3, tol=0).fit(frame)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert list(back.feature_names_in_) == list(frame.columns)
    assert_array_equal(back.transform(frame), model.transform(frame))


@pytest.mark.parametrize(
    "parameters",
    [
        {"random_state": np.random.RandomState(0)},
        {"random_state": np.int64(3)},
        {"init": (np.ones((5, 2)), np.ones((4, 2)))},
        {"init": [[[1.0, 1.0]] * 5, [[1.0, 1.0]] * 4]},
        {"n_components": np.int32(2), "tol": np.float32(0)},
        {"loss": 1.5, "l1": 0.1, "l2": 3},
        {"unseen": "zero", "n_jobs": 1},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_parameters_that_json_can_not_hold_are_no_trouble(parameters, tmp_path):
    X = np.random.default_rng(0).random((5, 4))
    model = WeightedNMF(2, max_iter=3, tol=0).set_params(**parameters).fit(X)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    assert_array_equal(back.transform(X), model.transform(X))
    plain = {name: value for name, value in model.get_params().items() if isinstance(value, int | float | str)}
    assert {name: back.get_params()[name] for name in plain} == plain


def test_a_start_of_many_numbers_is_not_written_into_the_header(tmp_path):
    start = [np.ones((9000, 8)).tolist(), np.ones((3, 8)).tolist()]
    WeightedNMF(8, init=start, max_iter=1, tol=0).fit(np.ones((9000, 3))).save(tmp_path / "model")
    assert load(tmp_path / "model").init == "random"


def test_saving_again_replaces_the_file_and_leaves_nothing_beside_it(saved):
    assert os.listdir(saved.parent) == [saved.name]
    small_model().save(str(saved))
    assert load(saved).row_labels_ is None
    assert os.listdir(saved.parent) == [saved.name]
    with zipfile.ZipFile(saved) as file:
        for name in file.namelist():
            if name.endswith(".npy"):
                np.load(io.BytesIO(file.read(name)), allow_pickle=False)


# Damaged files


def test_a_file_cut_off_anywhere_is_refused(saved):
    """In every place near the ends, where the directory and the header are, and in many between."""
    whole = saved.read_bytes()
    cuts = {*range(0, 60), *range(60, len(whole), 23), *range(len(whole) - 60, len(whole))}
    for cut in sorted(cuts):
        saved.write_bytes(whole[:cut])
        with pytest.raises(ModelFileError, match=r"whole|save method"):
            load(saved)


def test_a_file_with_a_wrong_byte_is_refused_or_read_right(saved):
    """No other exception, and never other numbers than were saved."""
    whole = saved.read_bytes()
    model = load(saved)
    for place in [*range(0, len(whole), 7), *range(len(whole) - 900, len(whole))]:
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        saved.write_bytes(damaged)
        try:
            back = load(saved)
        except ModelFileError:
            continue
        assert_array_equal(back.W_, model.W_)
        assert_array_equal(back.H_, model.H_)
        assert_array_equal(back.row_labels_, model.row_labels_)


# Foreign files


def zip_of(name, content):
    def write(path):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name, content)

    return write


def an_npz(path):
    with path.open("wb") as file:
        np.savez(file, W=np.ones(3))


FOREIGN = {
    "zip": zip_of("readme.txt", "hello"),
    "zip with another header": zip_of("header.json", '{"title": "something else"}'),
    "zip with a list as header": zip_of("header.json", "[1, 2, 3]"),
    "npz": an_npz,
    "text": lambda path: path.write_text("user,item,rating\na,b,1\n"),
    "nothing": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files_are_refused(make, tmp_path):
    path = tmp_path / "foreign"
    make(path)
    with pytest.raises(ModelFileError, match="written by a model's save method"):
        load(path)


def test_missing_files_and_folders_are_refused(tmp_path):
    for path, why in ((tmp_path / "nowhere", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ModelFileError, match=why):
            load(path)


# Places that can't be written to


def test_places_that_can_not_be_written_to_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for path, why in (
        ("nowhere/model", "No such file"),
        ("folder", "Is a directory"),
        ("file/model", "Not a directory"),
        ("m" * 300, "too long"),
    ):
        with pytest.raises(ModelFileError, match=why):
            small_model().save(tmp_path / path)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_no_name_at_all(path):
    with pytest.raises(ModelFileError):
        small_model().save(path)


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(ModelFileError, match="Permission denied"):
        small_model().save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "culprit", ["os.fsync", "os.replace", "zipfile.ZipFile.writestr", "numpy.lib.format.write_array"]
)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved, culprit, monkeypatch):
    before = saved.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    model = small_model()
    monkeypatch.setattr(culprit, full)
    with pytest.raises(ModelFileError, match="No space left on device"):
        model.save(saved)
    assert os.listdir(saved.parent) == [saved.name]
    assert saved.read_bytes() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_whatever_stops_a_save_leaves_nothing(tmp_path, error, monkeypatch):
    def stop(*_, **__):
        raise error

    model = small_model()
    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(error):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_the_archive_itself_keeps_arrays_and_text(tmp_path):
    text = np.array(["a\nb", "", '"'], dtype=object)
    arrays = {"x/y": np.arange(3), "empty": np.empty((0, 2)), "text": text, "no text": np.array([], dtype=object)}
    write_archive(tmp_path / "file", HEADER, arrays)
    header, back = read_archive(tmp_path / "file")
    assert header["format"] == archive.FORMAT
    assert header["version"] == archive.VERSION
    assert header["halfseen"] == HEADER["halfseen"]
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert_array_equal(back[name], array)


def test_an_observed_may_be_served_from_a_loaded_model(saved):
    back = load(saved)
    frame = pd.DataFrame({"user": ["new"], "item": ["x"], "rating": [2.0]})
    assert_array_equal(back.transform(observe(frame, column_labels=back.column_labels_)), back.transform(frame))

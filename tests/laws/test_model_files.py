"""Hostile model files: whatever was changed in one, it is refused as such, without a crash and without much memory."""

import io
import json
import threading
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

import halfseen
from halfseen import WeightedNMF, archive
from halfseen.errors import ModelFileError
from tests.laws.cases import counts
from tests.laws.estimators import RANKERS, RECORDED, fitted, suited
from tests.uncoupled import cases

every_record = pytest.mark.parametrize("record", [*RECORDED, *RANKERS, *cases.METHODS], ids=str)


def labelled(estimator):
    """Counts of people, by name, and things, by number; no row or column is empty."""
    X = suited(estimator, np.nan_to_num(counts(), nan=1.0))
    rows, columns = np.nonzero(np.random.default_rng(0).random(X.shape) < 0.8)
    return pd.DataFrame({"user": [f"u{row}" for row in rows], "item": columns, "rating": X[rows, columns]})


def save(record, path):
    """Write the file of an estimator or, by the name of a method, of `UncoupledNMF`."""
    if isinstance(record, str):
        model = cases.fitted(cases.collected(cases.labelled(cases.odd_lists())), record, **cases.SHORT[record])
    else:
        model = fitted(record, labelled(record))
    model.save(path)


@pytest.fixture
def saved(tmp_path):
    """A file of a small model."""
    path = tmp_path / "model.hs"
    save(WeightedNMF(), path)
    return path


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    """A list of pairs may repeat a name."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items() if isinstance(members, dict) else members:
            file.writestr(name, content)


def content_of(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def refusal(path):
    """What `load` says of a file: None if it reads it, an exception of any kind if it fails."""
    try:
        halfseen.load(path)
    except ModelFileError:
        return ModelFileError
    except Exception as error:  # what must not happen
        return error
    return None


def with_entry(array, place, value):
    changed = array.copy()
    changed.flat[place] = value
    return changed


def changes(name, array):
    """Arrays that can't be in the place of an array, by what is wrong with them."""
    yield "complex", array.astype(complex)
    yield "bytes", array.astype("S")
    yield "one more axis", array[None]
    if array.size == 0 or array.ndim == 0:  # nothing was tried: a trace of nothing
        return
    yield "a scalar", array.reshape(-1)[0]
    yield "one row more", np.concatenate([array, array[-1:]])
    yield "one row less", array[:-1]
    yield "none", array[:0]
    if array.ndim == 2:
        yield "turned", np.vstack([array.T, array.T])
        yield "one column less", array[:, :-1]
    if array.dtype.kind == "f" and not name.startswith(("trace/", "more/diagnostics")):  # which are only shown
        yield "NaN", with_entry(array, 0, np.nan)
        yield "NaN at the end", with_entry(array, -1, np.nan)
    if ("seen" in name and not name.endswith("values")) or "more/1" in name:  # indices, row pointers, parts of rank one
        yield "numbers that are not whole", array.astype(float)
        yield "negative", with_entry(array.astype(np.int64), -1, -2)
        yield "too large", with_entry(array.astype(np.int64), -1, 2**31 - 1)
        yield "far too large", with_entry(array.astype(np.int64), 0, 10**12)
    if name.endswith("indptr"):
        yield "not from 0", array + 1
        yield "first not 0", with_entry(array, 0, 1)
        yield "falling", with_entry(array, 1, array[-1])
        yield "far too long", with_entry(array.astype(np.int64), 1, 2**31 - 1)


@every_record
def test_no_array_of_a_file_can_be_replaced_by_another_kind(record, tmp_path):
    path = tmp_path / "model.hs"
    save(record, path)
    members, wrong = members_of(path), []
    assert refusal(path) is None
    for member, content in members.items():
        if member == "header.json":
            continue
        array = np.lib.format.read_array(io.BytesIO(content))
        for what, changed in changes(member.removesuffix(".npy"), array):
            write_members(path, {**members, member: content_of(np.asarray(changed))})
            if refusal(path) is not ModelFileError:
                wrong.append((member, what, refusal(path)))
        rest = {name: content for name, content in members.items() if name != member}
        write_members(path, rest)
        assert refusal(path) is ModelFileError
    assert wrong == []


def header_of(members):
    return json.loads(members["header.json"])


def fields_in(packed, path=()):
    """Paths of all entries of a header, outer ones first."""
    entries = packed.items() if isinstance(packed, dict) else enumerate(packed) if isinstance(packed, list) else ()
    for name, field in entries:
        yield (*path, name)
        yield from fields_in(field, (*path, name))


def replaced(packed, path, value):
    """The same header with another entry."""
    packed = json.loads(json.dumps(packed))
    inner = packed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return packed


@every_record
def test_no_entry_of_a_header_makes_anything_but_a_refusal(record, tmp_path):
    """Other types, numbers and names: refused, or, where they may be, read."""
    path = tmp_path / "model.hs"
    save(record, path)
    members = members_of(path)
    header, wrong = header_of(members), []
    values = (None, "x", -1, 10**30, [[]], {"type": "OSError"})
    for number, place in enumerate(fields_in(header)):
        for value in (values[(number + step) % len(values)] for step in (0, 1, 3)):  # half of them, in turn
            changed = replaced(header, place, value)
            write_members(path, {**members, "header.json": json.dumps(changed)})
            if isinstance(error := refusal(path), Exception):
                wrong.append((place, value, error))
    assert wrong == []


HEADERS = {
    "repeated arrays": lambda header: header | {"arrays": header["arrays"] * 2},
    "fewer arrays": lambda header: header | {"arrays": header["arrays"][1:]},
    "paths outside": lambda header: header | {"arrays": ["../../etc/passwd"]},
    "an unknown record": lambda header: replaced(header, ("model", "seen", "type"), "Popen"),
    "an abstract record": lambda header: replaced(header, ("model", "likelihood", "type"), "Likelihood"),
    "a record of another kind": lambda header: replaced(header, ("model", "seen", "type"), "Folding"),
    "another model": lambda header: replaced(header, ("model", "type"), "Encoder"),
    "an unknown parameter": lambda header: replaced(header, ("parameters", "magic"), 1),
    "no parameters": lambda header: header | {"parameters": None},
    "a parameter out of range": lambda header: replaced(header, ("parameters", "max_iter"), 0),
    "an unknown status": lambda header: header | {"status": "HAPPY"},
    "an unknown trace": lambda header: replaced(header, ("trace", "tea"), {"array": header["arrays"][0]}),
    "no trace": lambda header: header | {"trace": {}},
    "other columns": lambda header: header | {"n_features_in": 3},
    "an unknown field": lambda header: replaced(header, ("model", "magic"), 1),
    "one array twice": lambda header: replaced(header, ("model", "columns", "mean"), header["model"]["rows"]["mean"]),
    "endless folding in": lambda header: replaced(header, ("model", "folding", "max_iter"), -1),
    "an unknown estimator": lambda header: header | {"estimator": "OrdNMF2"},
    "no estimator": lambda header: header | {"estimator": "load"},
    "no name of an estimator": lambda header: header | {"estimator": ["OrdNMF"]},
    "a newer version": lambda header: header | {"version": 99},
    "a version in words": lambda header: header | {"version": "2"},
    "numbers read as text": lambda header: header | {"text": header["arrays"]},
    "text that is not there": lambda header: header | {"text": ["x"]},
    "a long header": lambda header: header | {"halfseen": " " * archive.MAX_HEADER},
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_headers_that_no_model_writes_are_refused(change, saved):
    members = members_of(saved)
    write_members(saved, {**members, "header.json": json.dumps(change(header_of(members)))})
    with pytest.raises(ModelFileError):
        halfseen.load(saved)


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_a_record_alone_is_read_or_refused(change, saved):
    """What only the estimator has may be wrong."""
    members = members_of(saved)
    write_members(saved, {**members, "header.json": json.dumps(change(header_of(members)))})
    try:
        record, *_ = archive.load_record(saved)
    except ModelFileError:
        return
    assert record.recommend(record.labels.row_labels[:1]).ids.shape[0] == 1


@pytest.mark.parametrize("depth", [100, 900, 100_000])
def test_nested_headers_are_refused(depth, saved):
    members = members_of(saved)
    text = members["header.json"].decode()
    deep = text.replace('"likelihood": {', f'"likelihood": {{"deep": {"[" * depth}{"]" * depth},', 1)
    for nested in (deep, deep.replace("[", '{"a":').replace('{"a":]', "{}").replace("]", "}"), "[" * depth):
        write_members(saved, {**members, "header.json": nested})
        with pytest.raises(ModelFileError):
            halfseen.load(saved)


def test_members_that_no_model_writes_are_refused(saved):
    members = members_of(saved)
    cases = [
        {**members, "extra.npy": content_of(np.zeros(3))},
        {**members, "folder/": b""},
        {**members, "readme.txt": b"hello"},
        {name: content for name, content in members.items() if name != "header.json"},
        {**members, "model/rows/mean.npy": b""},
        {**members, "model/rows/mean.npy": members["model/rows/mean.npy"][:-1]},
        {**members, "model/rows/mean.npy": b"\x93NUMPY\x09\x00" + members["model/rows/mean.npy"][8:]},
    ]
    for case in cases:
        write_members(saved, case)
        assert refusal(saved) is ModelFileError
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_members(saved, [*members.items(), ("model/rows/mean.npy", content_of(np.ones((9, 3))))])
    assert refusal(saved) is ModelFileError
    write_members(saved, members, zipfile.ZIP_DEFLATED)
    assert refusal(saved) is ModelFileError
    write_members(saved, members)
    assert refusal(saved) is None


# Memory


def declared(shape, descr="<f8", size=1 << 20):
    """A member of `size` bytes whose header declares another shape."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    padded = header + b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(size)


def bombs(members):
    """Files of about a megabyte, or less, that ask for a hundred times as much and more."""
    header, mean = members["header.json"], "model/rows/mean.npy"
    yield "inflated array", {**members, mean: declared((1 << 24, 1), size=1 << 27)}, zipfile.ZIP_DEFLATED
    yield "inflated header", {**members, "header.json": header + b" " * (1 << 26)}, zipfile.ZIP_DEFLATED
    yield "inflated extra", {**members, "extra.npy": bytes(1 << 26)}, zipfile.ZIP_DEFLATED
    yield "declared rows", {**members, mean: declared((1 << 27, 1))}, zipfile.ZIP_STORED
    yield "declared by a negative", {**members, mean: declared((-1, -(1 << 27)))}, zipfile.ZIP_STORED
    yield "declared text", {**members, mean: declared((1,), "<U250000000")}, zipfile.ZIP_STORED
    yield "declared records", {**members, mean: declared((1,), [("a", "<f8", (1 << 27,))])}, zipfile.ZIP_STORED


def test_a_small_file_takes_little_memory(saved):
    members = members_of(saved)
    for what, hostile, compression in bombs(members):
        write_members(saved, hostile, compression)
        size = saved.stat().st_size
        assert size < 3 << 20
        del hostile
        tracemalloc.start()
        try:
            assert refusal(saved) is ModelFileError, what
            assert tracemalloc.get_traced_memory()[1] < 4 * size + (1 << 20), what
        finally:
            tracemalloc.stop()


def test_one_member_named_often_is_read_once(saved):
    """A zip directory may name the same bytes again and again."""
    members = members_of(saved)
    header = header_of(members)
    name = header["arrays"][0]
    header["arrays"] += [f"more{number}" for number in range(200)]
    write_members(saved, {**members, "header.json": json.dumps(header)})
    with zipfile.ZipFile(saved, "a") as file:
        there = file.getinfo(f"{name}.npy")
        for number in range(200):
            again = zipfile.ZipInfo(f"more{number}.npy")
            for field in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(again, field, getattr(there, field))
            file.filelist.append(again)
            file.NameToInfo[again.filename] = again
        file._didModify = True
    assert refusal(saved) is ModelFileError


# Threads


def test_threads_that_save_to_one_path_never_leave_half_a_file(tmp_path):
    path = tmp_path / "model.hs"
    models = [fitted(WeightedNMF(), n_components=k) for k in (2, 5)]
    models[0].save(path)
    done, loaded, failed = threading.Event(), [], []

    def save(model):
        try:
            for _ in range(40):
                model.save(path)
        except BaseException as error:
            failed.append(error)

    def load():
        while not done.is_set() or not loaded:
            try:
                loaded.append(halfseen.load(path).W_)
            except BaseException as error:
                failed.append(error)
                return

    savers = [threading.Thread(target=save, args=(model,)) for model in models]
    loaders = [threading.Thread(target=load) for _ in range(2)]
    for thread in (*savers, *loaders):
        thread.start()
    for thread in savers:
        thread.join()
    done.set()
    for thread in loaders:
        thread.join()
    assert failed == []
    assert len(loaded) > 2
    by_shape = {model.W_.shape: model.W_ for model in models}
    for W in loaded:
        np.testing.assert_array_equal(W, by_shape[W.shape])
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.hs"]

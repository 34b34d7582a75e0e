"""Matrices in pickled files, which are read without running anything in them."""

import gzip
import os
import pickle
import pickletools
import struct

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from halfseen.datasets import load_ratings
from halfseen.datasets.pickled import MAX_BYTES, MAX_OPCODES, StackMachine, read_pickled_csr
from halfseen.errors import DataError
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies import study

PATHS = {
    "ordnmf-movielens": "ordnmf/ml_145_U2.00e+04_I1.19e+04_min_uc20_sc20",
    "ordnmf-taste-profile": "ordnmf/tps_12345_U1.63e+04_I1.21e+04_min_uc20_sc20",
}


# What Python 2 wrote, opcode by opcode: str is bytes, a new-style object is NEWOBJ and BUILD.


def text(value):
    return b"U" + bytes([len(value)]) + value.encode()


def number(value):
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def vector(values, code="i4", order="<", length=None, code_opcodes=None):
    """numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), 'b') and its state, with the bytes as a str."""
    raw = np.asarray(values, f"{order}{code}").tobytes()
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + number(0) + b"\x85" + text("b") + b"tR"
    dtype = (
        b"cnumpy\ndtype\n(" + (code_opcodes or text(code)) + number(0) + number(1) + b"tR(" + number(3) + text(order)
    )
    dtype += b"NNN" + number(-1) * 2 + number(0) + b"tb"
    size = number(len(values) if length is None else length) + b"\x85"
    return made + b"(" + number(1) + size + dtype + b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"


def python_2(indptr=(0, 2, 2, 3), indices=(0, 3, 1), data=(7, 10, 2), shape=(3, 4), data_code="i8", **others):
    """{'Y_listen': csr_matrix, 'user': a table of pandas, 'input': numbers}, as the authors' script dumps it."""
    state = text("_shape") + b"(" + b"".join(map(number, shape)) + b"t" + text("maxprint") + number(50)
    state += text("indptr") + others.get("indptr_opcodes", vector(indptr)) + text("indices") + vector(indices)
    state += text("data") + others.get("data_opcodes", vector(data, data_code))
    matrix = b"cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81}q\x02(" + state + b"ub"
    table = b"cpandas.core.frame\nDataFrame\n)\x81}" + text("_data") + b"](" + number(1) + number(2) + b"esb"
    inputs = b"}(" + text("seed") + number(145) + text("U") + b"Nu"
    items = text("user") + table + text("Y_listen") + others.get("matrix", matrix) + text("input") + inputs
    return b"\x80\x02}q\x00(" + items + b"u."


def write(path, contents):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return path


def cells(observed):
    rows, values = observed.row_of_cell().tolist(), observed.values.tolist()
    return list(zip(rows, observed.indices.tolist(), values, strict=True)), observed.shape


def dense(observed):
    return sparse.csr_matrix((observed.values, observed.indices, observed.indptr), observed.shape).toarray()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", PATHS)
def test_the_authors_layout(name, packed, tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    write(tmp_path / PATHS[name], gzip.compress(python_2()) if packed else python_2())
    assert cells(load_ratings(name)) == ([(0, 0, 7.0), (0, 3, 10.0), (2, 1, 2.0)], (3, 4))
    one = study("ordnmf/table2" if name == "ordnmf-movielens" else "ordnmf/table3")
    assert one.datasets()[0].name == name
    assert one.datasets()[0].load(seed=0).nnz == 3


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("code", ["i4", "i8", "f8"])
def test_what_python_3_writes_of_scipy_and_pandas(protocol, code, tmp_path):
    random = np.random.default_rng(0)
    X = sparse.csr_matrix(random.integers(0, 4, (20, 30)).astype(code))
    users = pd.DataFrame([[f"user {i}", i] for i in range(20)], columns=pd.Index(["uid", "index"], dtype=object))
    users = users.astype(object)  # as pandas had texts when the authors wrote theirs
    contents = pickle.dumps({"song": users, "Y_listen": X, "input": {1: 2.5, "a": (True, None)}}, protocol)
    ours = read_pickled_csr(write(tmp_path / "file", contents), "Y_listen")
    back = sparse.csr_matrix((ours.values, ours.indices, ours.indptr), ours.shape)
    assert (back != X).nnz == 0


class Payload:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def nested(depth):
    """A key of so many nested tuples: to hash it in Python overflows the stack."""
    return b"\x80\x02}(N" + b"\x85" * depth + b"Nu."


HOSTILE = {
    "a command": pickle.dumps({"Y_listen": Payload(os.system, "touch HACKED")}, 2),
    "a command in protocol 4": pickle.dumps({"Y_listen": Payload(os.system, "touch HACKED")}, 4),
    "a command in a table": python_2(matrix=pickle.dumps([Payload(eval, "open('HACKED', 'w')")], 2)[2:-1]),
    "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x14testing.os.system.xx\x93\x8c\x04true\x85R.",
    "a module that only begins alike": b"cnumpyx\nsystem\n(S'true'\ntR.",
    "builtins": b"c__builtin__\neval\n(S'1'\ntR.",
    "an old-style instance": b"(S'touch HACKED'\nios\nsystem\n.",
    "a registered extension": b"\x80\x02\x82\x01.",
    "a persistent id": b"Pwhat\n.",
    "a deep key": nested(300_000),
    "a huge memo": b"\x80\x02Nr\xff\xff\xff\xff0.",
    "a huge text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
    "a huge number": b"L" + b"9" * 100_000 + b"L\n.",
    "no mark": b"\x80\x02t.",
    "an empty stack": b"\x80\x02}s.",
    "an unknown object": b"\x80\x02h\x07.",
    "a call of a number": b"\x80\x02K\x01)R.",
    "cut short": python_2()[:-40],
    "without an end": python_2()[:-1],
    "empty": b"",
    "text": b"userId,movieId,rating\n1,2,3\n",
    "a damaged archive": gzip.compress(python_2())[:-20],
    "no dict": pickle.dumps([1, 2], 2),
    "another key": pickle.dumps({"Y": 1}, 2),
    "no matrix": pickle.dumps({"Y_listen": np.arange(3)}, 2),
    "another matrix": pickle.dumps({"Y_listen": sparse.csc_matrix(np.eye(3))}, 2),
    "objects": pickle.dumps({"Y_listen": Payload(sparse.csr_matrix)}, 2),
    "a column beyond": python_2(indices=(0, 4, 1)),
    "a negative column": python_2(indices=(0, -1, 1)),
    "rows that end early": python_2(indptr=(0, 2, 2, 2)),
    "rows that begin late": python_2(indptr=(1, 2, 2, 3)),
    "rows that fall": python_2(indptr=(0, 2, 1, 3)),
    "rows that wrap around": python_2(indptr=(0, 2**31 - 1, -(2**31), -1, 3), shape=(4, 4)),
    "rows of 8 bytes that wrap around": python_2(
        indptr_opcodes=vector((0, 2**63 - 1, -(2**63), -1, 3), "i8"), shape=(4, 4)
    ),
    "rows beyond the cells": python_2(indptr=(0, 2**31 - 1, 2, 3)),
    "rows below 0": python_2(indptr=(0, -2, 2, 3)),
    "too few rows": python_2(indptr=(0, 2, 3)),
    "too few values": python_2(data=(7, 10)),
    "values of another type": python_2(data_code="c16"),
    "a list as the type": python_2(data_opcodes=vector((7, 10, 2), "i8", code_opcodes=b"]")),
    "a list as the byte order": python_2().replace(text("<"), b"]"),
    "text as values": python_2(data_opcodes=text("abc")),
    "a shape that is not that of the bytes": python_2(data_opcodes=vector((7, 10, 2), "i8", length=1 << 30)),
    "fractions as pointers": python_2(indptr_opcodes=vector((0, 2, 2, 3), "f8")),
    "zeros": python_2(data=(0, 1, 2)),
    "fractions": python_2(data=(0.5, 1, 2), data_code="f8"),
    "not a number": python_2(data=(np.nan, 1, 2), data_code="f8"),
    "infinity": python_2(data=(np.inf, 1, 2), data_code="f8"),
    "a matrix of nothing": python_2(shape=(0, 4), indptr=(0,), indices=(), data=()),
    "a cell twice": python_2(indices=(3, 3, 1)),
    "columns that fall": python_2(indices=(3, 0, 1)),
    "a matrix beyond any memory": python_2(shape=(3, 10**30)),
    "a matrix of too many columns": python_2(shape=(3, 2**31)),
    "a key without a value": b"\x80\x02}(Nu.",
    "a negative text": b"\x80\x02T\xff\xff\xff\xff.",
    "half a number": python_2(data_opcodes=vector((7, 10, 2), "i8")[:-2] + b"tb").replace(
        b"T" + struct.pack("<i", 24), b"T" + struct.pack("<i", 23), 1
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_and_damaged_files_are_refused_with_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as refused:
        read_pickled_csr(write(tmp_path / "file", HOSTILE[name]), "Y_listen")
    assert not (tmp_path / "HACKED").exists()
    assert len(str(refused.value)) < 600
    assert refused.value.found.startswith("otherwise: ")
    assert not any(
        word in refused.value.found for word in ("zip()", "codec", "opcode b", "unpack", "argument", "end-of")
    )


def test_the_sentence_names_what_was_found(tmp_path):
    path = write(tmp_path / "file", HOSTILE["a command"])
    with pytest.raises(DataError, match=rf"otherwise: the name '{os.system.__module__}\.system'"):
        read_pickled_csr(path, "Y_listen")


def test_large_files_and_long_programs_are_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "file", python_2())
    monkeypatch.setattr("halfseen.datasets.pickled.MAX_BYTES", 100)
    with pytest.raises(DataError, match="more than 100 bytes"):
        read_pickled_csr(path, "Y_listen")
    monkeypatch.setattr("halfseen.datasets.pickled.MAX_OPCODES", 10)
    with pytest.raises(ValueError, match="more than 10 opcodes"):
        StackMachine().run(python_2())


def test_quick_runs_use_the_authors_matrix_and_split(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    X = sparse.csr_matrix(random.integers(1, 11, (70, 60)) * (random.random((70, 60)) < 0.5))
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    write(tmp_path / PATHS["ordnmf-movielens"], pickle.dumps({"Y_listen": X}, 2))
    parts = []
    split = ordnmf.split
    monkeypatch.setattr(ordnmf, "split", lambda *args: parts.append(split(*args)) or parts[-1])
    result = study("ordnmf/figure4").run(quick=True)
    # The authors' `divide_train_test`, on a copy each.
    Y_train, Y_test = X.copy(), X.copy()
    np.random.seed(1001)  # noqa: NPY002
    mask = np.random.choice(X.nnz, size=int(X.nnz * 0.2), replace=False)  # noqa: NPY002
    Y_train.data[mask] = 0
    Y_test.data[np.setdiff1d(np.arange(X.nnz), mask)] = 0
    for ours, theirs in ((parts[0].train.raw, Y_train), (parts[0].test.raw, Y_test)):
        np.testing.assert_array_equal(dense(ours), theirs.toarray())
    assert result.tables[0].column("cells truth")[-1] == X.nnz - int(0.2 * X.nnz)


def test_a_file_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    def exhausted(machine, contents):
        raise MemoryError

    monkeypatch.setattr(StackMachine, "run", exhausted)
    with pytest.raises(DataError, match="more than fits into memory"):
        read_pickled_csr(write(tmp_path / "file", python_2()), "Y_listen")


def test_columns_must_ascend_and_the_message_says_where_and_what_to_do(tmp_path):
    X = sparse.csr_matrix(np.ones((3, 4)))
    X.indices[4:8] = [0, 2, 1, 3]
    with pytest.raises(DataError, match=r"column 1 after column 2 in row 1\..*sort_indices\(\)"):
        read_pickled_csr(write(tmp_path / "file", pickle.dumps({"Y_listen": X}, 2)), "Y_listen")


def test_what_is_wrong_with_the_cells_is_said_in_their_own_words(tmp_path, monkeypatch):
    def refuse(*args):
        raise DataError("Cells must be others.")

    monkeypatch.setattr("halfseen.datasets.pickled.Observed.from_cells", refuse)
    with pytest.raises(DataError, match=r"^Cells must be others\.$"):
        read_pickled_csr(write(tmp_path / "file", python_2()), "Y_listen")


def test_there_is_room_for_the_authors_matrices():
    """3 million cells of 20,000 x 12,000, in the widest numbers and as Python 3 writes for Python 2; their names."""
    assert MAX_BYTES > 2 * (2 * 3_000_000 * (8 + 8))  # in UTF-8 every byte has one or two
    names = pd.DataFrame({"uid": [f"user {i}" for i in range(1000)], "count": range(1000)}).astype(object)
    assert 32 * sum(1 for _ in pickletools.genops(pickle.dumps(names, 2))) < MAX_OPCODES / 4


def test_numbers_of_either_byte_order(tmp_path):
    swapped = python_2(data_opcodes=vector((7, 10, 2), "i8", order=">"))
    assert cells(read_pickled_csr(write(tmp_path / "file", swapped), "Y_listen"))[0][1] == (0, 3, 10.0)

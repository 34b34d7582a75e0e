"""Model files: a zip archive of plain arrays and a JSON header, written whole or not at all; it holds no pickle.

A fitted model is a record of records of arrays. Each class that may occur in a file declares its fields in `state`: an
`ArraySpec` for an array, a type for a number or a text, a class for a record, `... | None` where None is allowed. One
writer and one reader serve all: the header names classes and fields, arrays lie beside it under the path of their
field. The reader checks the name, dtype, shape and range of every array before anything uses it.
"""

import json
import math
import os
import zipfile
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np

from halfseen.archive_v1 import upgrade
from halfseen.arrays import Array, ArraySpec
from halfseen.encoders import ENCODERS
from halfseen.engines import RULES
from halfseen.errors import ModelFileError
from halfseen.likelihoods import LIKELIHOODS, Likelihood
from halfseen.model import RECORDS, Status
from halfseen.ranking import Ranker
from halfseen.solvers import FACTORS, SOLVERS
from halfseen.validation import check_parameters

FORMAT = "halfseen-model"
VERSION = 2
HEADER = "header.json"
#: Bytes of a header at most.
MAX_HEADER = 1 << 20

#: Parameters that may be arrays, which a fitted model does not need.
ARRAYS = ("init", "row_features", "column_features")
#: Parameters of one fit, which no other one may share.
OF_A_FIT = ("checkpoint",)
#: Arrays of a trace.
TRACES = ("objective", "seconds", "l2", "held_out", "violated", "noise", "spread")
#: Sizes that all models of a file share.
SHARED_SIZES = ("rows", "columns")
#: Registries of the classes that may occur in a model file, by name.
REGISTRIES: tuple[Any, ...] = (LIKELIHOODS, FACTORS, SOLVERS, ENCODERS, RECORDS)
#: Classes whose modules take long to import, by name, with their modules.
LATER = {
    **dict.fromkeys(("SampledModel", "FactorDraws"), "halfseen.sampling.sampled_model"),
    **dict.fromkeys(("ItemGraphModel", "PopularityModel", "DenseWeights", "SparseWeights"), "halfseen.graphs"),
    "BlendModel": "halfseen.blending",
}


def pack(value: Any, path: str, arrays: dict[str, Array]) -> Any:
    """A value as JSON has it; arrays are put into `arrays` under their paths."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"array": path}
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (tuple, list):
        return [pack(item, f"{path}/{position}", arrays) for position, item in enumerate(value)]
    if isinstance(value, dict):
        return {name: pack(field, f"{path}/{name}", arrays) for name, field in value.items()}
    fields = value.to_state() if hasattr(value, "to_state") else {name: getattr(value, name) for name in value.state}
    return {"type": type(value).__name__, **pack(fields, path, arrays)}


def unpack(packed: Any, expected: Any, path: str, arrays: dict[str, Array], sizes: dict[str, int]) -> Any:
    """The value that `pack` wrote, checked; arrays are taken out of `arrays`."""
    if isinstance(expected, UnionType):
        return None if packed is None else unpack(packed, expected.__args__[0], path, arrays, sizes)
    if isinstance(expected, ArraySpec):
        if packed is None and expected.optional:
            return None
        if not isinstance(packed, dict) or packed.keys() != {"array"} or packed["array"] not in arrays:
            raise ValueError(f"{path} must be an array of the file")
        array = arrays.pop(packed["array"])
        expected.check(path, array, sizes)
        return array
    if isinstance(expected, tuple | list):
        count = len(expected) if isinstance(expected, tuple) else None
        if not isinstance(packed, list) or count not in (None, len(packed)):
            raise ValueError(f"{path} must be a list{'' if count is None else f' of {count} entries'}")
        items = zip(packed, expected if isinstance(expected, tuple) else expected * len(packed), strict=True)
        return tuple(unpack(*item, f"{path}/{place}", arrays, sizes) for place, item in enumerate(items))
    if expected is dict:  # arrays by name, which their owner checks
        return _with_arrays(packed, arrays)
    if expected in (bool, int, float, str):
        is_number = expected is float and type(packed) is int
        if (type(packed) is not expected and not is_number) or (expected is float and not np.isfinite(packed)):
            raise ValueError(f"{path} must be of type {expected.__name__}")
        return expected(packed)
    name = packed.get("type") if isinstance(packed, dict) else None
    types: Any = ChainMap({expected.__name__: expected}, *REGISTRIES)
    kind = types.get(name) if isinstance(name, str) else None
    if kind is None and isinstance(name, str) and name in LATER:
        kind = getattr(import_module(LATER[name]), name)
    if kind is None or not issubclass(kind, expected):
        raise ValueError(f"{path} must be a record of a known type")
    if issubclass(kind, Likelihood):
        fields = {name: _with_arrays(field, arrays) for name, field in packed.items() if name != "type"}
        return kind.from_state(fields, sizes)
    state = kind.state
    later = {name: None for name, field in state.items() if may_be_none(field)}  # which older files lack
    packed = later | packed
    if packed.keys() != {"type", *state}:
        raise ValueError(f"{path} must have the fields {', '.join(state)}")
    if kind in FACTORS.values():  # whose length is the number of rows, or of columns
        side = path.rpartition("/")[2]
        state = {name: replace(spec, shape=(side, *spec.shape[1:])) for name, spec in state.items()}
    own = sizes
    if issubclass(kind, Ranker) and path != "model":  # one of several, of ranks and levels of its own
        own = {name: size for name, size in sizes.items() if name in SHARED_SIZES}
    fields = {name: unpack(packed[name], one, f"{path}/{name}", arrays, own) for name, one in state.items()}
    sizes.update({name: size for name, size in own.items() if name in SHARED_SIZES})
    value = kind(**fields)
    if hasattr(value, "check_state"):
        value.check_state(path)
    return value


def may_be_none(expected: Any) -> bool:
    """Whether a declared field may be None."""
    return isinstance(expected, UnionType) or (isinstance(expected, ArraySpec) and expected.optional)


def _with_arrays(packed: Any, arrays: dict[str, Array]) -> Any:
    """What was packed, with its arrays."""
    if not isinstance(packed, dict):
        return packed
    if packed.keys() == {"array"}:
        return arrays.pop(packed["array"])
    return {name: _with_arrays(field, arrays) for name, field in packed.items()}


# ---------------------------------------------------------------------------------------------------------------------
# estimators


def save_model(estimator: Any, path: Any) -> None:
    """Write all that predicting, folding in and recommending need.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    path : str or path-like
        Where to write.
    """
    import halfseen

    name = type(estimator).__name__
    if getattr(halfseen, name, None) is not type(estimator):
        raise ModelFileError(
            "A model file must hold an estimator of halfseen, which any halfseen can load.",
            found=f"{name} of {type(estimator).__module__}",
            remedy="Keep it with joblib, or add it to halfseen.",
        )
    arrays: dict[str, Array] = {}
    header = {
        "halfseen": halfseen.__version__,
        "estimator": name,
        "parameters": {
            name: None if name in ARRAYS and not isinstance(value, str) else _plain(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in OF_A_FIT
        },
        "status": estimator.status_.name,
        "n_features_in": estimator.n_features_in_,
        "trace": {name: pack(array, f"trace/{name}", arrays) for name, array in estimator.trace_.items()},
        "feature_names": pack(getattr(estimator, "feature_names_in_", None), "feature_names", arrays),
        "model": pack(estimator.model_, "model", arrays),
        "more": pack(estimator._more_state(), "more", arrays),
    }
    write_archive(path, header, arrays)


def load(path: Any) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path-like
        Of the model file.

    Returns
    -------
    estimator
        Fitted, ready to predict.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.RankOneNMF().fit([[1.0, 2.0], [2.0, 4.0]]).save("model.hs")
    >>> round(float(hs.load("model.hs").predict(1, 1)), 6)
    4.0
    """
    import halfseen

    header, arrays = read_archive(path)
    name = header.get("estimator")
    kind = getattr(halfseen, name, None) if isinstance(name, str) and name in halfseen.__all__ else None
    if not hasattr(kind, "_more_state"):
        raise ModelFileError(
            "A model file must hold an estimator of this version of halfseen.",
            found=repr(name),
            where=f"in {str(path)!r}",
            remedy="Update halfseen to read it.",
        )
    with misfits(path):
        if header["version"] == 1:
            header, arrays = upgrade(kind, header, arrays)
        return _restore(kind, header, arrays)


def load_record(path: Any) -> tuple[Any, str, Mapping[str, Any]]:
    """Read the record of a fitted model alone, as far as that is enough to recommend: without scikit-learn.

    Parameters
    ----------
    path : str or path-like
        Of the model file.

    Returns
    -------
    tuple
        The record (None for an estimator that does not recommend), the class of the estimator, and its parameters.
    """
    import halfseen

    header, arrays = read_archive(path)
    name: Any = header.get("estimator")
    packed, known = header.get("model"), ChainMap[str, Any](LATER, *REGISTRIES)
    is_alone = isinstance(packed, dict) and isinstance(packed.get("type"), str) and packed["type"] in known
    recommends = isinstance(name, str) and halfseen._MODULE_OF.get(name) == "estimators"
    if header["version"] == 1 or not is_alone or not recommends:
        estimator = load(path)
        record = estimator.model_ if hasattr(estimator, "recommend") else None
        return record, type(estimator).__name__, estimator.get_params(deep=False)
    with misfits(path):
        record, parameters = unpack(packed, Ranker, "model", arrays, {}), header["parameters"]
        check_parameters({"engine": parameters["engine"], "n_jobs": parameters["n_jobs"]}, RULES)
    return record, name, parameters


@contextmanager
def misfits(path: Any) -> Iterator[None]:
    """Turn what goes wrong with contents that do not fit together into a `ModelFileError`."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"The arrays of a model file must fit together. Those of {str(path)!r} do not ({error}).",
            remedy="It was changed after it was written, or by a newer halfseen: fit again, or update.",
        ) from error


def _restore(kind: Any, header: dict[str, Any], arrays: dict[str, Array]) -> Any:
    parameters = {
        name: dict(value["dict"]) if isinstance(value, dict) else value for name, value in header["parameters"].items()
    }
    if "init" in parameters and parameters["init"] is None:  # arrays, which are not needed any more
        parameters["init"] = "random"
    estimator = kind(**parameters)
    check_parameters(estimator.get_params(deep=False), estimator.parameter_rules)
    sizes: dict[str, int] = {}
    model = unpack(header["model"], kind.record, "model", arrays, sizes)
    trace = {}
    for name, packed in header["trace"].items():
        if name not in TRACES:
            raise ValueError(f"trace/{name} is not known")
        trace[name] = unpack(packed, ArraySpec("f", ("iterations",), finite=False), f"trace/{name}", arrays, sizes)
    names = unpack(header["feature_names"], ArraySpec("O", ("columns",), optional=True), "feature_names", arrays, sizes)
    more = unpack(header["more"], kind.more_state, "more", arrays, sizes)
    if arrays:
        raise ValueError(f"{next(iter(arrays))} does not belong to it")
    if header["n_features_in"] != model.shape[1]:
        raise ValueError(f"{model.shape[1]} columns, but n_features_in is {header['n_features_in']}")
    estimator.status_ = Status[header["status"]]
    estimator.n_features_in_ = model.shape[1]
    estimator.n_iter_ = len(trace["objective"])
    if names is not None:
        estimator.feature_names_in_ = names
    estimator._set_state(model, trace, more)
    return estimator


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a start or a random state that is an object is not needed any more."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:  # levels, thresholds, weights
        value = value.tolist()
    if isinstance(value, dict):  # pairs, because JSON would turn its keys into text
        value = {"dict": [[_plain(key), _plain(one)] for key, one in value.items()]}
    try:
        json.dumps(value)
    except TypeError:
        return None
    return value


# ---------------------------------------------------------------------------------------------------------------------
# the container


def write_archive(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write header and arrays; `path` is never half a file."""
    from halfseen.io.write import atomic_write

    path = Path(path)
    text = [name for name, array in arrays.items() if array.dtype.kind == "O"]
    head = {"format": FORMAT, "version": VERSION, "arrays": list(arrays), "text": text, **header}
    try:
        with atomic_write(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(HEADER, json.dumps(head, indent=1))
            for name, array in arrays.items():
                buffer = BytesIO()
                np.lib.format.write_array(buffer, _to_bytes(array) if name in text else array, allow_pickle=False)
                archive.writestr(f"{name}.npy", buffer.getbuffer())
    except OSError as error:
        raise ModelFileError(
            "The folder of a model file must exist and be writable, with room enough. Could not write "
            f"{str(path)!r}: {error.strerror or error}.",
            remedy="Choose another place; nothing was left there.",
        ) from error


def read_archive(path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays; a missing, foreign, damaged, inflated or newer file is refused.

    Members are stored, not compressed, so that a small file cannot become a large one.
    """
    path = Path(path)
    foreign = ModelFileError(
        f"A model file must have been written by a model's save method. {str(path)!r} was not.",
        remedy="Check the path; to read data, pass the file to fit.",
    )
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if HEADER not in members:
                raise foreign
            if (
                len(members) != len(archive.infolist())
                or any(member.compress_type != zipfile.ZIP_STORED for member in members.values())
                or sum(member.file_size for member in members.values()) > os.path.getsize(path)
                or members[HEADER].file_size > MAX_HEADER
            ):
                raise ValueError("its members are repeated, compressed or too large")
            header: Any = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise foreign
            version = header.get("version")
            if type(version) is not int or not 1 <= version <= VERSION:
                raise ModelFileError(
                    f"A model file must have format version {VERSION} or older. {str(path)!r} has version {version}, "
                    f"written by halfseen {header.get('halfseen')}.",
                    remedy="Update halfseen to read it.",
                )
            names = header["arrays"]
            if len(set(names)) != len(names) or {HEADER, *(f"{name}.npy" for name in names)} != set(members):
                raise ValueError("its members are not those that its header names")
            arrays = {name: _read_array(archive.read(f"{name}.npy")) for name in names}
            texts = {name: _to_text(arrays[name]) for name in header["text"]}
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(
            f"A model file must be readable. Could not read {str(path)!r}: {error.strerror}.", remedy="Check the path."
        ) from error
    except Exception as error:  # whatever damaged or foreign bytes bring about
        with path.open("rb") as file:
            is_archive = file.read(4) == b"PK\x03\x04"
        if not is_archive:
            raise foreign from error
        raise ModelFileError(
            f"A model file must be whole. {str(path)!r} is cut off or damaged ({error}).",
            remedy="Copy it again from where it was saved, or fit again.",
        ) from error
    return header, arrays | texts


def _read_array(content: bytes) -> Array:
    """The array of a member, unless its header declares more than the member holds: no memory is taken for it."""
    file = BytesIO(content)
    read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    shape, _, dtype = read_header[np.lib.format.read_magic(file)[0]](file)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > len(content):
        raise ValueError("its arrays are longer than the file")
    file.seek(0)
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _to_bytes(texts: Array) -> Array:
    """Text, or None, as one array of bytes: UTF-8, a line of JSON each, which escapes line breaks."""
    lines = (json.dumps(None if text is None else str(text)) for text in texts)
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def _to_text(packed: Array) -> Array:
    if packed.dtype != np.uint8 or packed.ndim != 1:
        raise ValueError("its labels are not text")
    lines = packed.tobytes().decode()
    texts = [json.loads(line) for line in lines.split("\n")] if lines else []
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("its labels are not text")
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array

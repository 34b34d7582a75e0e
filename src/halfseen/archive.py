"""Model files: a zip archive of plain arrays and a JSON header, written whole or not at all, and no pickle in it."""

import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import ModelFileError
from halfseen.io.write import atomic_write

FORMAT = "halfseen-model"
VERSION = 1
_HEADER = "header.json"


def write_archive(path: Any, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write the archive; `path` is never half a file."""
    path = Path(path)
    try:
        with atomic_write(path) as draft:
            _write(draft, header, arrays)
    except OSError as error:
        raise ModelFileError(
            f"The folder of a model file must exist and be writable, with room enough. Could not write {str(path)!r}: "
            f"{error.strerror or error}. Choose another place; nothing was left there."
        ) from error


def _write(draft: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        text = {name: array for name, array in arrays.items() if array.dtype.kind == "O"}
        head = {"format": FORMAT, "version": VERSION, "arrays": list(arrays), "text": list(text), **header}
        archive.writestr(_HEADER, json.dumps(head, indent=1))
        for name, array in arrays.items():
            buffer = BytesIO()
            np.lib.format.write_array(buffer, _as_bytes(array) if name in text else array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getbuffer())


def read_archive(path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays; a missing, foreign, damaged or newer file is refused."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            header = _checked_header(archive, path)
            arrays = {name: _read_array(archive, name) for name in header["arrays"]}
            texts = {name: _as_text(arrays[name]) for name in header["text"]}
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(
            f"A model file must be readable. Could not read {str(path)!r}: {error.strerror}. Check the path."
        ) from error
    except Exception as error:  # whatever damaged or foreign bytes bring about
        if _begins_as_archive(path):
            raise ModelFileError(
                f"A model file must be whole. {str(path)!r} is cut off or damaged ({error}). "
                "Copy it again from where it was saved, or fit again."
            ) from error
        raise _foreign(path) from error
    return header, arrays | texts


def _checked_header(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if _HEADER not in archive.namelist():
        raise _foreign(path)
    header: Any = json.loads(archive.read(_HEADER))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _foreign(path)
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise ModelFileError(
            f"A model file must have format version {VERSION} or older. {str(path)!r} has version "
            f"{header.get('version')}, written by halfseen {header.get('halfseen')}. Update halfseen to read it."
        )
    checked: dict[str, Any] = header
    return checked


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    array: Array = np.lib.format.read_array(BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
    return array


def _foreign(path: Path) -> ModelFileError:
    return ModelFileError(
        f"A model file must have been written by a model's save method. {str(path)!r} was not. "
        "Check the path; to read data, pass the file to fit."
    )


def _begins_as_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _as_bytes(texts: Array) -> Array:
    """Texts as one array of bytes: UTF-8, each ended by a newline of its own kind (JSON escapes any inside)."""
    return np.frombuffer("\n".join(json.dumps(str(text)) for text in texts).encode(), dtype=np.uint8)


def _as_text(packed: Array) -> Array:
    lines = packed.tobytes().decode()
    texts = [json.loads(line) for line in lines.split("\n")] if lines else []
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array

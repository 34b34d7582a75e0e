"""From the text of an option or a file to a label of the model."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.data.labels import is_plain_integer


def as_labels(texts: Iterable[Any], labels: Array | None) -> list[Any]:
    """Texts as labels of the model's kind: whole numbers where the model has those, or no labels at all."""
    kind = "i" if labels is None else labels.dtype.kind
    return [_as_kind(text, kind, labels) for text in texts]


def _as_kind(text: Any, kind: str, labels: Array | None) -> Any:
    if kind == "O" or not isinstance(text, str):
        return str(text) if kind == "O" else text
    if kind in "iu":
        return int(text) if is_plain_integer(text.strip()) else text  # looked up as it is, and refused as unknown
    if kind == "f" and "_" in text:
        return text  # Python would read 1_0 as 10, which is another id
    try:
        return np.array([text]).astype(labels.dtype if labels is not None else float)[0]
    except ValueError:
        return text

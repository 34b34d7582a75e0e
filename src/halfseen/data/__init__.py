"""Data: the half-seen matrix, what reads and splits one, tables in files, and answers collected without names."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfseen.datasets import load_movietweetings, planted
    from halfseen.io import k_folds, observe, read_table, read_wide_table, split_cells, split_rows, write_table
    from halfseen.observed import Observed
    from halfseen.uncoupled import Uncoupled

_MODULES = {
    "Observed": "observed",
    "Uncoupled": "uncoupled",
    "k_folds": "io",
    "load_movietweetings": "datasets",
    "observe": "io",
    "planted": "datasets",
    "read_table": "io",
    "read_wide_table": "io",
    "split_cells": "io",
    "split_rows": "io",
    "write_table": "io",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"halfseen.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'halfseen.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

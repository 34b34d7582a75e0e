"""Everything that can be had by name: what it is, how large, on which terms, and whether it is there."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

from halfseen.data.catalogue import AVERAGES, RATINGS, SOURCES, TABULAR
from halfseen.data.shelf import Source, StoredFile, data_folder, paths_of
from halfseen.errors import DataError, DataWarning

THERE, OTHERWISE, TO_FETCH, BY_HAND = "there", "there, with other contents", "to fetch", "by hand"
#: No sha256 is known to compare with.
UNCHECKED = "there, not checked"


class Entry(NamedTuple):
    """A line of the list; `kind` is built in, generated or public, `call` says how it is had in Python."""

    name: str
    """What it is asked for by."""
    kind: str
    """"built in", "generated" or "public"."""
    title: str
    """What it is."""
    size: str
    """How large it is, in words."""
    terms: str
    """On which terms it may be used."""
    state: str
    """Whether it is there, can be fetched, or must be fetched by hand."""
    call: str
    """How it is had in Python, after `halfseen.`; empty if only by its files."""


OURS = (
    Entry(
        "movietweetings", "built in", "Film ratings 0 to 10: the active part of MovieTweetings 100K",
        "2,728 x 1,478, 53,368 ratings", "MIT licence", THERE, "datasets.load_movietweetings()",
    ),
    Entry(
        "planted", "generated", "A table with holes, of factors that are known", "as you like", "none", THERE,
        "data.planted(n, m, k)",
    ),
    Entry(
        "planted-levels", "generated", "Levels of factors and thresholds that are known", "as you like", "none", THERE,
        "data.synthetic.planted_levels(n, m, k, thresholds)",
    ),
    Entry(
        "survey", "generated", "A survey that keeps names and answers apart, and the truth", "as you like", "none",
        THERE, "datasets.make_survey()",
    ),
    Entry(
        "unmf-synthetic", "generated", "The synthetic matrix of Kohjima (2022)", "10 x 10", "none", THERE,
        "data.synthetic.unmf_synthetic()",
    ),
)  # fmt: skip


def listing() -> list[Entry]:
    """Every set that has a name: first our own, then the public ones, in the order of their loaders."""
    public = [
        Entry(name, "public", source.title, source.size, source.terms, state_of(source), _call(name))
        for name, source in SOURCES.items()
    ]
    return [*OURS, *public]


def state_of(source: Source) -> str:
    """Whether public data are there, and were compared with what is known; can be fetched, or must be by hand."""
    try:
        with warnings.catch_warnings(action="error", category=DataWarning):
            paths = paths_of(source)
    except DataWarning:
        return OTHERWISE
    except DataError:
        return TO_FETCH if source.downloads else BY_HAND
    return THERE if all(map(_is_known, source.files, paths)) else UNCHECKED


def _is_known(file: StoredFile, path: Path) -> bool:
    """Whether the contents of a file at this place are known."""
    return None not in file.digests(path.relative_to(data_folder()).as_posix())


def _call(name: str) -> str:
    if name in TABULAR:
        return f'datasets.load_tabular("{name}")'
    if name in RATINGS:
        return f'datasets.load_ratings("{name}")'
    return f"datasets.load_{name.replace('-', '_')}()" if name in (*AVERAGES, "smallnetflix") else ""

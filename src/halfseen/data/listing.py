"""Everything that can be had by name: what it is, how large, on which terms, and whether it is there."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from halfseen.data.catalogue import AVERAGES, RATINGS, SOURCES, TABULAR
from halfseen.data.shelf import Source, paths_of
from halfseen.errors import DataError, DataWarning

THERE, OTHERWISE, TO_FETCH, BY_HAND = "there", "there, with other contents", "to fetch", "by hand"


class Entry(NamedTuple):
    """A line of the list; `kind` is built in, generated or public, `call` says how it is had in Python."""

    name: str
    kind: str
    title: str
    size: str
    terms: str
    state: str
    call: str


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
    """Whether public data are there, can be fetched, or must be fetched by hand."""
    try:
        with warnings.catch_warnings(action="error", category=DataWarning):
            paths_of(source)
    except DataWarning:
        return OTHERWISE
    except DataError:
        return TO_FETCH if source.downloads else BY_HAND
    return THERE


def _call(name: str) -> str:
    if name in TABULAR:
        return f'datasets.load_tabular("{name}")'
    if name in RATINGS:
        return f'datasets.load_ratings("{name}")'
    return f"datasets.load_{name.replace('-', '_')}()" if name in (*AVERAGES, "smallnetflix") else ""

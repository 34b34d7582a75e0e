"""The section on the parts that were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.plots.parts import is_signed, strengths, strongest
from halfseen.report.blocks import Block, Component, Components, Note, Section, Table, percent
from halfseen.report.known import Known

#: Of more components, the largest are listed.
_MOST = 40
_NAMES_IN_OVERVIEW = 3
_COUNTED = "Components are counted from 0, as the columns of W_ and H_ are."


def what_was_found(known: Known, top: int) -> Section:
    """All components with their strongest columns and rows; biases, where there are any."""
    strength = {side: strengths(known.model, side) for side in ("columns", "rows")}
    shares = _shares(known.model, strength)
    listed = np.argsort(-shares, kind="stable")[:_MOST]
    blocks: list[Block] = [Note(_explained(known.model, listed.size, shares.size))]
    if listed.size > 1:
        blocks.append(_overview(known, strength, shares, listed))
    blocks.append(Components([_component(known, strength, shares, int(one), top) for one in listed]))
    blocks += _biases(known, top)
    return Section("parts", "What was found", blocks)


def _shares(model: Any, strength: dict[str, Array]) -> Array:
    """How much of the whole each component is: its sum over all cells; of any sign, the root of its sum of squares."""
    columns = strength["columns"]
    sizes = np.sqrt((columns**2).mean(axis=0)) if is_signed(model) else columns.sum(axis=0)
    shares: Array = sizes / max(sizes.sum(), np.finfo(float).tiny)
    return shares


def _explained(model: Any, listed: int, count: int) -> str:
    some = f" The {listed} largest of {count} are listed." if listed < count else ""
    if is_signed(model):
        return (
            "The product of a cell is a sum over components. A component's strength in a column is what it adds there "
            "for a typical row (root mean square); row and column of the same sign raise each other. Its size is its "
            f"share of the root mean squares of all. {_COUNTED}{some}"
        )
    unit = ", the lowest threshold being the unit" if isinstance(model, OrdinalMixin) else ""
    return (
        "The product of a cell is a sum over components. A component's strength in a column is what it adds there for "
        f"an average row, and in a row what it adds for an average column{unit}. Its size is its share of all. "
        f"{_COUNTED}{some}"
    )


def _overview(known: Known, strength: dict[str, Array], shares: Array, listed: Array) -> Table:
    rows = []
    for one in listed:
        best = [strongest(strength[side][:, one], _NAMES_IN_OVERVIEW) for side in ("columns", "rows")]
        named = ["; ".join(known.names(places, side)) for places, side in zip(best, ("column", "row"), strict=True)]
        rows.append([int(one), float(shares[one]), *named])
    return Table("All components", ["Component", "Size", "Strongest columns", "Strongest rows"], rows, bar=1)


def _component(known: Known, strength: dict[str, Array], shares: Array, one: int, top: int) -> Component:
    tables = [_strongest(known, strength[side][:, one], side, f"component {one}", top) for side in ("columns", "rows")]
    return Component(f"Component {one}", f"{percent(shares[one])} of all", tables)


def _strongest(known: Known, strength: Array, side: str, of: str, top: int) -> Table:
    side_name = side.removesuffix("s")
    best = strongest(strength, top)
    rows = [[name, float(strength[place])] for name, place in zip(known.names(best, side_name), best, strict=True)]
    return Table(f"Strongest {side} of {of}", [side_name.capitalize(), "Strength"], rows, bar=1)


def _biases(known: Known, top: int) -> list[Block]:
    model = known.model
    if getattr(model, "row_biases_", None) is None:
        return []
    sides = {"columns": model.column_biases_, "rows": model.row_biases_}
    tables = []
    for side, biases in sides.items():
        best = strongest(np.asarray(biases, dtype=np.float64), top)
        names = known.names(best, side.removesuffix("s"))
        rows = [[name, float(biases[place])] for name, place in zip(names, best, strict=True)]
        tables.append(Table(f"Largest biases of {side}", [side.removesuffix("s").capitalize(), "Bias"], rows, bar=1))
    return [Components([Component("Biases", "what a row or a column adds by itself", tables)])]

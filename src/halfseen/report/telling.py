"""What the points and bars of a picture say: where each stands in the data of its Axes, and its values in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.plots.axes import told_apart

#: Points that tell their values: of longer lines, so many of them.
_MOST_POINTS = 60
#: The x and the y of something drawn, and what it says.
Told = tuple[float, float, str]


def told_of(axes: Any) -> Iterator[Told]:
    """All that has values on these Axes: bars first, then lines and the points of error bars."""
    for container in axes.containers:
        direction = getattr(container, "orientation", None)  # error bars have none
        if direction == "vertical":
            yield from _columns(axes, container)
        elif direction == "horizontal":
            yield from _intervals(axes, container)
    for line, owner in _lines(axes):
        yield from _points(axes, line, owner)


def _lines(axes: Any) -> Iterator[tuple[Any, Any]]:
    """Lines that mean something, each with who has its name."""
    yield from ((line, line) for line in axes.lines if not line.get_label().startswith("_"))
    for container in axes.containers:
        line = container[0] if hasattr(container, "has_yerr") else None
        if line is not None:
            yield line, container


def _points(axes: Any, line: Any, owner: Any) -> Iterator[Told]:
    data = np.asarray(line.get_xydata(), dtype=float)
    data = data[np.unique(np.linspace(0, len(data) - 1, _MOST_POINTS).astype(int))] if len(data) else data
    data = data[np.isfinite(data).all(axis=1)]
    along, up = _said(axes.xaxis, data[:, 0]), _said(axes.yaxis, data[:, 1])
    for (x, y), one, other in zip(data.tolist(), along, up, strict=True):
        yield x, y, f"{_name(axes, owner)}{one}: {other}"


def _columns(axes: Any, container: Any) -> Iterator[Told]:
    """Bars that stand: the name below each, or from where to where it goes; and its height."""
    middles = np.array([bar.get_x() + bar.get_width() / 2 for bar in container])
    heights = np.array([bar.get_height() for bar in container])
    ends = np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in container])
    along = _said(axes.xaxis, middles) if _has_names(axes.xaxis) else _spans(axes.xaxis, ends)
    for x, y, one, other in zip(middles.tolist(), heights.tolist(), along, _said(axes.yaxis, heights), strict=True):
        yield x, y, f"{_name(axes, container)}{one}: {other}"


def _intervals(axes: Any, container: Any) -> Iterator[Told]:
    """Bars that lie: the name of each, and from where to where it goes; to the edge of the picture, it has no end."""
    ends = np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in container])
    heights = np.array([bar.get_y() + bar.get_height() / 2 for bar in container])
    names, spans = _said(axes.yaxis, heights), _spans(axes.xaxis, ends, axes.get_xlim())
    to_picture, to_data = axes.transData, axes.transData.inverted()
    for y, (left, right), name, span in zip(heights.tolist(), ends.tolist(), names, spans, strict=True):
        middle = to_picture.transform([(left, y), (right, y)]).mean(axis=0)  # also of logarithms
        yield float(to_data.transform(middle)[0]), y, f"{_name(axes, container)}{name}: {span}"


def _name(axes: Any, owner: Any) -> str:
    """Whose value it is, where a legend tells several apart."""
    label = str(owner.get_label())
    return "" if axes.get_legend() is None or label.startswith("_") else f"{label.partition(',')[0]}, "


def _said(axis: Any, values: Array) -> list[str]:
    """Values in the words of their axis: the name that stands there, where places have names, else the number."""
    if not _has_names(axis):
        return [f"{axis.get_label_text()} {text}" for text in _numbers(values.tolist())]
    texts = [label.get_text() for label in axis.get_ticklabels()]
    places = np.abs(np.asarray(axis.get_ticklocs())[:, None] - values).argmin(axis=0)
    return [f"{axis.get_label_text()} {texts[place]}" for place in places]


def _spans(axis: Any, ends: Array, limits: tuple[float, float] = (-np.inf, np.inf)) -> list[str]:
    """Intervals in the words of their axis; what reaches a limit goes on."""
    low, high = limits
    told = []
    texts = np.array(_numbers(ends.reshape(-1).tolist(), 4)).reshape(-1, 2)
    for (left, right), (from_, to) in zip(ends.tolist(), texts.tolist(), strict=True):
        span = f"below {to}" if left <= low else f"{from_} and above" if right >= high else f"{from_} to {to}"
        told.append(f"{axis.get_label_text()} {span}")
    return told


def _numbers(values: Sequence[float], digits: int = 6) -> list[str]:
    texts = told_apart(values, digits)
    return [f"{int(text):,}" if text.removeprefix("-").isdigit() else text for text in texts]


def _has_names(axis: Any) -> bool:
    from matplotlib.ticker import FixedLocator

    return isinstance(axis.get_major_locator(), FixedLocator)

"""Figures of a page: SVG in the colours of the page, with points that show their values."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from halfseen.arrays import Array
from halfseen.plots.axes import BLUE, GREY, ORANGE, format_distinct

_SVG = "http://www.w3.org/2000/svg"
#: Inches; narrow, so that letters are large enough on a phone.
_SIZE = (4.3, 3.0)
#: Colours as matplotlib writes them, and the variables of the page's style that replace them.
_COLOURS = {"#000000": "--ink", BLUE: "--blue", ORANGE: "--orange", GREY: "--bar", "#009e73": "--green"}
_STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "halfseen", "font.size": 9, "lines.linewidth": 1.8, "figure.dpi": 72,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "figure.facecolor": "none",
    "axes.facecolor": "none", "axes.prop_cycle": f"cycler('color', ['{BLUE}', '{ORANGE}', '#009e73'])",
}  # fmt: skip
#: Radius of points with a tooltip, and how many a line has at most.
_RADIUS, _MAX_POINTS = 5, 60
#: The x and y of a point, and its tooltip.
Point = tuple[float, float, str]


def draw_svg(draw: Callable[[Any], Any], *, height: float = _SIZE[1]) -> str:
    """Draw on an Axes, and return it as SVG for the inside of a page."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser has other fonts
        figure = Figure(figsize=(_SIZE[0], height), layout="constrained")
        draw(figure.add_subplot())
        for axes in figure.axes:
            axes.spines["right"].set_visible(axes.yaxis.get_ticks_position() == "right")
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})  # savefig would draw twice
        points = _merged_points(figure)
    svg = buffer.getvalue()
    return _for_page(svg, points, f"p{hashlib.blake2b(svg.encode(), digest_size=4).hexdigest()}-")


def _merged_points(figure: Any) -> list[Point]:
    """Points in the figure's units, by Axes from left to right; those that would hide each other become one."""
    merged: list[Point] = []
    for axes in figure.axes:
        points = []
        for x, y, text in _axes_points(axes):
            left, up = axes.transData.transform((x, y))
            points.append((float(left), float(figure.bbox.height - up), text))
        first = len(merged)
        for left, down, text in sorted(points, key=lambda point: round(point[0], 1)):
            last = merged[-1] if len(merged) > first else None
            if last and abs(last[0] - left) < 1 and abs(last[1] - down) < _RADIUS:
                merged[-1] = (*last[:2], f"{last[2]}; {text}")
            else:
                merged.append((left, down, text))
    return merged


def _for_page(svg: str, points: list[Point], prefix: str) -> str:
    """Drop what is for files only, make ids unique by a prefix, use the page's colours, and add the points."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    for unwanted in ("metadata", "defs"):
        for element in root.findall(f"{{{_SVG}}}{unwanted}"):
            if unwanted == "metadata" or element.find(f"{{{_SVG}}}style") is not None:
                root.remove(element)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                value = prefix + value
            elif name.endswith("href"):
                value = value.replace("#", f"#{prefix}", 1) if value.startswith("#") else value
            else:
                value = value.replace("url(#", f"url(#{prefix}")
            if name in ("style", "fill", "stroke"):
                for colour, variable in _COLOURS.items():
                    value = value.replace(colour, f"var({variable})")
            element.set(name, value)
    for left, down, text in points:
        point = ElementTree.SubElement(
            root, f"{{{_SVG}}}circle", {"class": "point", "cx": f"{left:.1f}", "cy": f"{down:.1f}", "r": f"{_RADIUS}"}
        )
        ElementTree.SubElement(point, f"{{{_SVG}}}title").text = text
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")  # the figure around it has the words
    return ElementTree.tostring(root, encoding="unicode")


def _axes_points(axes: Any) -> Iterator[Point]:
    """The points of an Axes in its data's units: of bars first, then of lines and error bars."""
    for bars in axes.containers:
        orientation = getattr(bars, "orientation", None)  # error bars have none
        if orientation is None:
            continue
        ends = np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars])
        if orientation == "vertical":  # at the top of each bar: the name below it, or its interval; and its height
            x = np.array([bar.get_x() + bar.get_width() / 2 for bar in bars])
            y = np.array([bar.get_height() for bar in bars])
            names = _value_texts(axes.xaxis, x) if _has_names(axes.xaxis) else _interval_texts(axes.xaxis, ends)
            values = _value_texts(axes.yaxis, y)
        else:  # in the middle of each bar: its name, and its interval, which is open at the edge of the figure
            y = np.array([bar.get_y() + bar.get_height() / 2 for bar in bars])
            on_screen = [axes.transData.transform(np.column_stack([ends[:, side], y])) for side in (0, 1)]
            x = axes.transData.inverted().transform(np.mean(on_screen, axis=0))[:, 0]  # also on logarithmic axes
            names, values = _value_texts(axes.yaxis, y), _interval_texts(axes.xaxis, ends, axes.get_xlim())
        for left, up, name, value in zip(x.tolist(), y.tolist(), names, values, strict=True):
            yield left, up, f"{_legend_name(axes, bars)}{name}: {value}"
    lines = [(line, line) for line in axes.lines if not line.get_label().startswith("_")]
    lines += [(container[0], container) for container in axes.containers if hasattr(container, "has_yerr")]
    for line, owner in lines:
        if line is None:
            continue
        data = np.asarray(line.get_xydata(), dtype=float)
        data = data[np.unique(np.linspace(0, len(data) - 1, _MAX_POINTS).astype(int))] if len(data) else data
        data = data[np.isfinite(data).all(axis=1)]
        texts = zip(_value_texts(axes.xaxis, data[:, 0]), _value_texts(axes.yaxis, data[:, 1]), strict=True)
        for (left, up), (name, value) in zip(data.tolist(), texts, strict=True):
            yield left, up, f"{_legend_name(axes, owner)}{name}: {value}"


def _legend_name(axes: Any, owner: Any) -> str:
    """Beginning of a tooltip: the name in the legend, if there is one."""
    label = str(owner.get_label())
    return "" if axes.get_legend() is None or label.startswith("_") else f"{label.partition(',')[0]}, "


def _value_texts(axis: Any, values: Array) -> list[str]:
    """The axis' label and each value: the name of its tick, where ticks have names, else the number."""
    if not _has_names(axis):
        return [f"{axis.get_label_text()} {text}" for text in _number_texts(values.tolist())]
    texts = [label.get_text() for label in axis.get_ticklabels()]
    ticks = np.abs(np.asarray(axis.get_ticklocs())[:, None] - values).argmin(axis=0)
    return [f"{axis.get_label_text()} {texts[tick]}" for tick in ticks]


def _interval_texts(axis: Any, ends: Array, limits: tuple[float, float] = (-np.inf, np.inf)) -> list[str]:
    """The axis' label and each interval, which is open where it reaches a limit."""
    intervals = []
    texts = np.array(_number_texts(ends.reshape(-1).tolist(), 4)).reshape(-1, 2)
    for (left, right), (low, high) in zip(ends.tolist(), texts.tolist(), strict=True):
        is_last = right >= limits[1] or np.isclose(right, limits[1], rtol=1e-9, atol=0.0)  # the end of a bar is rounded
        text = f"{low} and above" if is_last else f"{low} to {high}"
        intervals.append(f"{axis.get_label_text()} {f'below {high}' if left <= limits[0] else text}")
    return intervals


def _number_texts(values: Sequence[float], digits: int = 6) -> list[str]:
    texts = format_distinct(values, digits)
    return [f"{int(text):,}" if text.removeprefix("-").isdigit() else text for text in texts]


def _has_names(axis: Any) -> bool:
    from matplotlib.ticker import FixedLocator

    return isinstance(axis.get_major_locator(), FixedLocator)

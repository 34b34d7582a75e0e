"""Pictures drawn for a page: as text in it, in the colours of the page, with points that tell their values."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np

from halfseen.plots.axes import BLUE, GREY, ORANGE

_SVG = "http://www.w3.org/2000/svg"
#: Inches; narrow, so that letters are large enough on a phone.
_SIZE = (4.3, 3.0)
#: Colours as matplotlib writes them, and the variables of the page's style that stand for them, in light and in dark.
_COLOURS = {"#000000": "--ink", BLUE: "--blue", ORANGE: "--orange", GREY: "--bar", "#009e73": "--green"}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "halfseen",
    "font.size": 9,
    "axes.prop_cycle": f"cycler('color', ['{BLUE}', '{ORANGE}', '#009e73'])",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": 72,
    "lines.linewidth": 1.8,
}
#: Points that tell their values: of longer lines, so many of them.
_MOST_POINTS = 60


def drawn(draw: Callable[[Any], Any], *, height: float = _SIZE[1]) -> str:
    """What `draw` draws on an Axes, as SVG for the inside of a page."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser has other fonts
        figure = Figure(figsize=(_SIZE[0], height), layout="constrained")
        draw(figure.add_subplot())
        for axes in figure.axes:
            axes.spines["right"].set_visible(axes.yaxis.get_ticks_position() == "right")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        points = list(_points(figure))
    svg = buffer.getvalue()
    return _for_page(svg, points, f"p{hashlib.blake2b(svg.encode(), digest_size=4).hexdigest()}-")


def _points(figure: Any) -> Iterator[tuple[float, float, str]]:
    """Where lines and bars have values, in the picture's units, and what they say."""
    height = figure.bbox.height
    for axes in figure.axes:
        for artist_x, artist_y, x, y in (*_of_lines(axes), *_of_bars(axes)):
            left, up = axes.transData.transform((artist_x, artist_y))
            yield float(left), float(height - up), f"{_said(axes.xaxis, x)}: {_said(axes.yaxis, y)}"


def _of_lines(axes: Any) -> Iterator[tuple[float, float, float, float]]:
    for line in axes.lines:
        data = np.asarray(line.get_xydata(), dtype=float)
        shown = np.unique(np.linspace(0, len(data) - 1, _MOST_POINTS).astype(int))
        for x, y in data[shown] if len(data) and line.get_label()[:1] != "_" else []:
            if np.isfinite([x, y]).all():
                yield x, y, x, y


def _of_bars(axes: Any) -> Iterator[tuple[float, float, float, float]]:
    for container in axes.containers:
        if getattr(container, "orientation", None) == "vertical":
            for bar in container:
                middle = bar.get_x() + bar.get_width() / 2
                yield middle, bar.get_height(), middle, bar.get_height()


def _said(axis: Any, value: float) -> str:
    """A value in the words of its axis: the name that stands there, where places have names, else the number."""
    from matplotlib.ticker import FixedLocator

    words = axis.get_label_text()
    if isinstance(axis.get_major_locator(), FixedLocator):
        nearest = int(np.argmin(np.abs(np.asarray(axis.get_ticklocs()) - value)))
        return f"{words} {axis.get_ticklabels()[nearest].get_text()}"
    number = f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return f"{words} {number}"


def _for_page(svg: str, points: list[tuple[float, float, str]], prefix: str) -> str:
    """The picture without what concerns files alone, its ids apart from those of others, its colours the page's."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    for unwanted in ("metadata", "defs"):
        for element in root.findall(f"{{{_SVG}}}{unwanted}"):
            if unwanted == "metadata" or element.find(f"{{{_SVG}}}style") is not None:
                root.remove(element)
    for element in root.iter():
        for name, value in element.attrib.items():
            element.set(name, _attribute(name, value, prefix))
    for left, down, text in points:
        point = ElementTree.SubElement(
            root, f"{{{_SVG}}}circle", {"class": "point", "cx": f"{left:.1f}", "cy": f"{down:.1f}", "r": "5"}
        )
        ElementTree.SubElement(point, f"{{{_SVG}}}title").text = text
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")  # the figure around it has the words
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name.endswith("href"):
        return value.replace("#", f"#{prefix}", 1) if value.startswith("#") else value
    value = value.replace("url(#", f"url(#{prefix}")
    if name == "style" or name in ("fill", "stroke"):
        for colour, variable in _COLOURS.items():
            value = value.replace(colour, f"var({variable})")
    return value

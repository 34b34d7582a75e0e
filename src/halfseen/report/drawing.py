"""Pictures drawn for a page: as text in it, in the colours of the page, with points that tell their values."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

from halfseen.plots.axes import BLUE, GREY, ORANGE
from halfseen.report.telling import Told, told_of

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
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "lines.linewidth": 1.8,
}
#: Of the points that tell their values.
_RADIUS = 5


def drawn(draw: Callable[[Any], Any], *, height: float = _SIZE[1]) -> str:
    """What `draw` draws on an Axes, as SVG for the inside of a page."""
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
        points = list(_points(figure))
    svg = buffer.getvalue()
    return _for_page(svg, points, f"p{hashlib.blake2b(svg.encode(), digest_size=4).hexdigest()}-")


def _points(figure: Any) -> Iterator[Told]:
    """Where things have values, in the picture's units, from left to right, and what they say."""
    height = figure.bbox.height
    for axes in figure.axes:
        found = []
        for x, y, words in told_of(axes):
            left, up = axes.transData.transform((x, y))
            found.append((float(left), float(height - up), words))
        yield from _together(sorted(found, key=lambda point: round(point[0], 1)))


def _together(points: list[Told]) -> list[Told]:
    """Points above each other that would hide each other become one, which tells what all tell."""
    apart: list[Told] = []
    for left, down, words in points:
        if apart and abs(apart[-1][0] - left) < 1 and abs(apart[-1][1] - down) < _RADIUS:
            apart[-1] = (*apart[-1][:2], f"{apart[-1][2]}; {words}")
        else:
            apart.append((left, down, words))
    return apart


def _for_page(svg: str, points: list[Told], prefix: str) -> str:
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
            root, f"{{{_SVG}}}circle", {"class": "point", "cx": f"{left:.1f}", "cy": f"{down:.1f}", "r": f"{_RADIUS}"}
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

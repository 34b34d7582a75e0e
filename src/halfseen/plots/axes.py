"""Shared by all plots: new Axes, colours, scales, labels and ticks."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import HalfseenError, ParameterError

#: Colours of Okabe and Ito (2008), distinguishable with any kind of colour vision.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#cccccc"
#: Near-black and light grey that a dark page leaves alone; it replaces pure black by its own text colour.
BLACK, PALE = "#010101", "#ececec"
#: Characters of a label beside a plot.
MAX_LABEL_LENGTH = 32
#: Tick labels beside a heat map; where there would be more, the axis keeps its numbers.
MAX_TICK_LABELS = 40
#: Points per inch; line height by font size; the smallest font size, in points.
_POINTS_PER_INCH, _LINE_HEIGHT, _MIN_FONT_SIZE = 72, 1.15, 6.0
#: Numbers that agree in this many digits differ by rounding alone; below `_MAX_INTEGER` integers are exact.
_MAX_DIGITS, _MAX_INTEGER = 12, 1e15
#: Total characters of tick labels that fit side by side below an Axes.
_MAX_ROW_LENGTH = 40
#: Counts whose ratio exceeds this are drawn on a logarithmic scale: the largest would hide the smallest.
_LOG_SCALE_RATIO = 50.0


def new_axes(numbers: str, **figure: Any) -> Any:
    """Return the Axes of a new figure; without matplotlib, name where the `numbers` alone can be had."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise HalfseenError(
            "Pictures need matplotlib. It is not installed.",
            remedy=f"Install it: pip install matplotlib; the numbers alone are {numbers}'s.",
        ) from None
    return plt.subplots(layout="constrained", **figure)[1]


def wrong_type(parameter: str, value: Any, must: str, remedy: str) -> ParameterError:
    """Error about a model of a type that cannot be drawn."""
    return ParameterError(must, found=f"a {type(value).__name__}", remedy=remedy, parameter=parameter)


def blue_colormap() -> Any:
    """Colour map from transparent to blue."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list("from nothing to blue", [(*to_rgba(BLUE)[:3], 0.0), to_rgba(BLUE)])


def needs_log_scale(counts: Array) -> bool:
    """Whether the largest count would hide the smallest on a linear scale."""
    positive = counts[counts > 0]
    return bool(positive.size and positive.max() > _LOG_SCALE_RATIO * positive.min())


def display_label(label: Any, max_length: int = MAX_LABEL_LENGTH) -> str:
    """A label as one printable line of at most `max_length` characters."""
    is_float = isinstance(label, float | np.floating)
    text = format_number(label, np.finfo(type(label)).precision) if is_float else str(label)
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= max_length else f"{text[: max_length - 1].rstrip()}…"


def format_number(number: Any, digits: int) -> str:
    """Format an integer, such as an id, with all digits; another number with `digits`, or all before the point."""
    if not abs(number) < _MAX_INTEGER:
        return f"{number:.{digits}g}"
    if float(number).is_integer():
        return str(int(number))
    return f"{number:.{max(digits, len(str(int(abs(number)))))}g}"


def format_distinct(numbers: Sequence[float], digits: int = 6) -> list[str]:
    """Format numbers with `digits`, or as many more (up to 12) as keep different numbers different."""
    n_distinct = len({format_number(number, _MAX_DIGITS) for number in numbers})
    texts: list[str] = []
    for count in range(digits, _MAX_DIGITS + 1):
        texts = [format_number(number, count) for number in numbers]
        if len(set(texts)) == n_distinct:
            break
    return texts


def label_ticks(axis: Any, positions: Any, labels: Any, **text: Any) -> None:
    """Set tick labels literally: a dollar sign starts no formula.

    On a y axis the font shrinks until labels do not touch; below the smallest size, only every second, third, ...
    label is shown.
    """
    step = 1
    if axis.axis_name == "y" and len(labels):
        height = axis.axes.get_window_extent().height / axis.figure.dpi * _POINTS_PER_INCH
        room = height / (len(labels) * _LINE_HEIGHT)
        step = max(math.ceil(_MIN_FONT_SIZE / room), 1)
        usual: float = axis.get_major_ticks(1)[0].label1.get_size()
        text = {"size": min(usual, room * step), **text}
    axis.set_ticks(positions[::step], [display_label(label) for label in labels[::step]], parse_math=False, **text)


def slant_if_long(labels: list[str]) -> dict[str, Any]:
    """Text options of tick labels on an x axis: slanted where they don't fit side by side."""
    return {"rotation": 30, "ha": "right"} if sum(map(len, labels)) > _MAX_ROW_LENGTH else {}

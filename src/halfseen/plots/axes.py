"""The Axes that a picture is drawn on, if none was given; its colours; and names as they can be drawn."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfseen.errors import HalfseenError

#: Colours that people with any kind of colour vision can tell apart (Okabe and Ito, 2008).
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#cccccc"
#: Black and light grey that stay so on a dark page, which turns the black of text and lines into its own ink.
BLACK, PALE = "#010101", "#ececec"
#: Letters of a name that have room beside a picture.
LETTERS = 32
#: Points in an inch; the height of a line of text by that of its letters; the smallest letters, in points.
_POINTS, _LINE, _SMALLEST = 72, 1.15, 6.0
#: Numbers that agree in so many digits differ by rounding alone; below this, all digits of whole numbers are known.
_DIGITS, _WHOLE = 12, 1e15


def blues() -> Any:
    """Colours from nothing at all, whatever the page behind it, to blue."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list("from nothing to blue", [(*to_rgba(BLUE)[:3], 0.0), to_rgba(BLUE)])


def new_axes(numbers: str, **figure: Any) -> Any:
    """The Axes of a new figure; without matplotlib, who has the numbers is told instead."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise HalfseenError(
            "Pictures need matplotlib. It is not installed. Install it: pip install matplotlib; the numbers "
            f"alone are {numbers}'s."
        ) from None
    return plt.subplots(layout="constrained", **figure)[1]


def shown(label: Any, letters: int = LETTERS) -> str:
    """A label as text that any picture or page can hold: of one line, not too long, nothing that can't be printed."""
    is_number = isinstance(label, float | np.floating)
    text = numeral(label, np.finfo(type(label)).precision) if is_number else str(label)
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"


def numeral(number: Any, digits: int) -> str:
    """A number as text: a whole one to its last digit, such as an id; others with so many, or all before the point."""
    if not abs(number) < _WHOLE:
        return f"{number:.{digits}g}"
    if float(number).is_integer():
        return str(int(number))
    return f"{number:.{max(digits, len(str(int(abs(number)))))}g}"


def told_apart(numbers: Sequence[float], digits: int = 6) -> list[str]:
    """Numbers as texts with so many digits, or with as many as different ones need to look different, up to 12."""
    different = len({numeral(number, _DIGITS) for number in numbers})
    texts: list[str] = []
    for count in range(digits, _DIGITS + 1):
        texts = [numeral(number, count) for number in numbers]
        if len(set(texts)) == different:
            break
    return texts


def name_ticks(axis: Any, places: Any, names: Any, **how: Any) -> None:
    """Names along an axis as they are: a dollar in them begins no formula.

    Up the side of a picture they are as small as they must be not to touch; if they can't be read then, some are left
    out.
    """
    step = 1
    if axis.axis_name == "y" and len(names):
        step, size = _fitting(axis, len(names))
        how = {"size": size, **how}
    axis.set_ticks(places[::step], [shown(name) for name in names[::step]], parse_math=False, **how)


def _fitting(axis: Any, count: int) -> tuple[int, float]:
    """Which of so many names have room (1: each, 2: every second, ...), and the size of their letters in points."""
    room = axis.axes.get_window_extent().height / axis.figure.dpi * _POINTS / (count * _LINE)
    step = max(math.ceil(_SMALLEST / room), 1)
    usual: float = axis.get_major_ticks(1)[0].label1.get_size()
    return step, min(usual, room * step)

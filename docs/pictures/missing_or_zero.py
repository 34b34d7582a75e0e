"""Draws stars_seen.svg, stars_missing.svg and stars_zero.svg: the same seen cells, as they are, and factorized with
unseen cells missing and with unseen cells zero. Three pictures, so that they can stand below each other.

python docs/pictures/missing_or_zero.py
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import halfseen as hs

PEOPLE = ["ann", "bob", "cy", "dora", "eve", "fay"]
FILMS = ["Alien", "Brazil", "Clue", "Dune", "Emma", "Fargo"]
NAN = np.nan
STARS = np.array(
    [
        [5, 4, 5, NAN, NAN, NAN],
        [4, NAN, 4, 3, NAN, NAN],
        [NAN, 2, 3, NAN, NAN, NAN],
        [NAN, NAN, NAN, 4, 5, 4],
        [NAN, NAN, NAN, 2, NAN, 2],
        [NAN, NAN, 2, NAN, 3, 3],
    ]
)
#: From little to much, told apart by everybody; white is nothing known.
COLOURS = "Blues"


def filled(unseen: str) -> np.ndarray:
    """Every cell as the model has it, two components."""
    model = hs.WeightedNMF(2, unseen=unseen, l2=0.1, max_iter=2000, tol=1e-8, random_state=0).fit(STARS)
    return model.W_ @ model.H_.T


def main() -> None:
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "halfseen", "svg.fonttype": "none", "font.family": "sans-serif"})
    import matplotlib.pyplot as plt

    panels = {
        "seen": ("what was seen\n", STARS),
        "missing": ('unseen="missing"\nwhat would they say of it?', filled("missing")),
        "zero": ('unseen="zero"\nwill they look at it at all?', filled("zero")),
    }
    for name, (title, values) in panels.items():
        figure, axis = plt.subplots(figsize=(3.5, 4.0), layout="constrained")
        draw(axis, title, values)
        figure.savefig(Path(__file__).with_name(f"stars_{name}.svg"), metadata={"Date": None})


def draw(axis: Any, title: str, values: np.ndarray) -> None:
    """Numbers on colours; a frame around what was seen."""
    axis.pcolormesh(range(len(FILMS)), range(len(PEOPLE)), np.nan_to_num(values), cmap=COLOURS, vmin=0, vmax=6)
    axis.set_aspect("equal")
    axis.invert_yaxis()
    for (row, column), value in np.ndenumerate(values):
        seen = not np.isnan(STARS[row, column])
        text = "?" if np.isnan(value) else f"{value:.0f}" if values is STARS else f"{value:.1f}"
        colour = "white" if value > 3.5 else "black"
        axis.text(column, row, text, ha="center", va="center", color=colour, weight="bold" if seen else "normal")
        if seen:
            corner = (column - 0.46, row - 0.46)
            axis.add_patch(mpl.patches.Rectangle(corner, 0.92, 0.92, fill=False, edgecolor="#d95f02", linewidth=1.6))
    axis.set_title(title, fontsize=11)
    axis.set_xticks(range(len(FILMS)), FILMS, fontsize=8)
    axis.set_yticks(range(len(PEOPLE)), PEOPLE, fontsize=9)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)


if __name__ == "__main__":
    main()

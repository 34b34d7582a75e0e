"""The data of section 5: a synthetic matrix, and mean ratings by genre of film and by group of sushi."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from halfseen.data import Observed, observe
from halfseen.data.datasets import draw_active, load_movielens_genres, load_sushi_groups
from halfseen.data.synthetic import unmf_synthetic


@dataclass(frozen=True)
class DataSet:
    """A panel of Figure 1: its letter and title, the paper's k and the range of its random guesses.

    `read` gives the matrix by the number of a draw; the real sets have one, and take no notice of the number. `source`
    is the name of what must be in the data folder.
    """

    letter: str
    title: str
    k: int
    guesses: tuple[float, float]
    read: Callable[[int], Observed]
    draws: int = 1
    source: str | None = None

    def load(self, draw: int, rows: int | None = None) -> Observed:
        """The matrix without labels: cells go by their positions. `rows`: so many of its rows, drawn (None: all)."""
        whole = replace(self.read(draw), row_labels=None, column_labels=None)
        return whole if rows is None else draw_active(whole, rows, random_state=draw)


SYNTHETIC = DataSet("a", "SYNTH", 2, (0.5, 6.5), lambda draw: observe(unmf_synthetic(draw)), draws=5)
MOVIELENS = DataSet(
    "b", "MovieLens genres", 3, (1.0, 5.0), lambda draw: load_movielens_genres(), source="movielens-genres"
)
SUSHI = DataSet("c", "SUSHI groups", 3, (0.0, 4.0), lambda draw: load_sushi_groups(), source="sushi-groups")
SETS = (SYNTHETIC, MOVIELENS, SUSHI)

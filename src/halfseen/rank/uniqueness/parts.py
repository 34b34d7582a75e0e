"""The signs of an outer product of which only intervals are known."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from halfseen.arrays import Array
from halfseen.rank.uniqueness.intervals import Intervals


@dataclass(frozen=True)
class Parts:
    """Rows and columns, as nodes, linked by cells that can't be 0. Inside a part all signs follow from one.

    Every node is there twice, as it is and turned around; a negative cell links one to the other. So `names` holds two
    names of parts for each node, and two nodes have the same sign if their first names are the same, opposite signs if
    the first name of one is the second of the other.
    """

    names: Array

    @classmethod
    def of(cls, rows: Array, columns: Array, known: Intervals, nodes: int) -> "Parts":
        """From cells between row nodes and column nodes."""
        above, below = _sure_signs(rows, columns, known, nodes)
        u = np.concatenate([rows[above], rows[above] + nodes, rows[below], rows[below] + nodes])
        i = np.concatenate([columns[above], columns[above] + nodes, columns[below] + nodes, columns[below]])
        links = coo_array((np.ones(u.size), (u, i)), shape=(2 * nodes, 2 * nodes))
        return cls(connected_components(links, directed=False)[1].reshape(2, nodes))

    @property
    def contradict(self) -> bool:
        """Whether some node would have to be positive and negative."""
        return bool(np.any(self.names[0] == self.names[1]))

    def signs(self, rows: Array, columns: Array) -> Array:
        """The sign of x at cells, 0 where it is not known."""
        same = self.names[0, rows] == self.names[0, columns]
        opposite = self.names[0, rows] == self.names[1, columns]
        return same.astype(np.intp) - opposite

    def joined(self, row: int, column: int, sign: int) -> "Parts":
        """As if the cell of these nodes, of two parts, had this sign."""
        renamed = self.names.copy()
        for turned in (0, 1):
            renamed[self.names == self.names[turned, column]] = self.names[turned if sign > 0 else 1 - turned, row]
        return Parts(renamed)


def _sure_signs(rows: Array, columns: Array, known: Intervals, nodes: int) -> tuple[Array, Array]:
    """Where cells are positive, and where negative. Cells of 0 or less are negative between nodes that can't be 0."""
    live = np.zeros(nodes, bool)
    live[rows[known.without_zero]] = live[columns[known.without_zero]] = True
    not_zero = known.without_zero | (live[rows] & live[columns])
    return not_zero & (known.lower >= 0), not_zero & (known.upper <= 0)

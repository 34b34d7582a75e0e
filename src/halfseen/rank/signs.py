"""The signs of an outer product that rounds to given levels: at most one choice is left, up to turning all around.

Let z be the level of 0, a the first threshold from 0 on and b the size of the last below it. Where levels are above z,
u_i v_j > a >= 0; where they are below, u_i v_j <= -b < 0; where they are z, -b < u_i v_j <= a. So a cell above z asks
its row and column for one sign, a cell below for two; rows and columns that ask for nothing can be 0. Rows and columns
that are linked by such cells, directly or through others, are a part, and the signs of a part follow from one.

Between two parts all cells are at level z. Take a cell (i, j) of one and (k, l) of the other, neither at z. From

    (u_i v_j) (u_k v_l) = (u_i v_l) (u_k v_j)

follows that both are above z, or both below: else the left is larger than a b in size, and the right, one factor of
which is positive and one negative, smaller. If both are above, the left is larger than a^2, so that the factors on the
right can't both be positive: u_i and u_k have opposite signs. If both are below, the left is at least b^2, and the
factors on the right can't both be negative: again u_i and u_k have opposite signs. So there are two parts at most,
both wholly above or both wholly below, of opposite signs; three would need three signs.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from halfseen.arrays import Array


def signs_of_factors(levels: Array, level_of_zero: int) -> tuple[Array, Array] | None:
    """The signs -1, 0, 1 of the rows and the columns of an outer product, or None if no signs will do."""
    asked = np.sign(levels - level_of_zero)
    n_rows = len(levels)
    rows, columns = np.nonzero(asked)
    nodes = sum(levels.shape)
    graph = coo_array((np.ones(rows.size), (rows, n_rows + columns)), shape=(nodes, nodes)).tocsr()
    _, part_of = connected_components(graph, directed=False)
    parts = np.unique(part_of[rows])
    if len(parts) > 2 or (len(parts) == 2 and np.unique(asked[rows, columns]).size > 1):
        return None
    signs = np.zeros(nodes, dtype=np.intp)
    for part, first_sign in zip(parts, (1, -1), strict=False):
        _follow(graph, asked, int(rows[part_of[rows] == part][0]), first_sign, signs)
    u, v = signs[:n_rows], signs[n_rows:]
    return (u, v) if np.all((u[rows] * v[columns]) == asked[rows, columns]) else None


def _follow(graph: coo_array, asked: Array, first_row: int, first_sign: int, signs: Array) -> None:
    """From a first row on, give every node of its part the sign that the node before it asks for."""
    order, before = breadth_first_order(graph, first_row, directed=False)
    signs[first_row] = first_sign
    for node in order[1:]:
        row, column = sorted((node, before[node]))
        signs[node] = signs[before[node]] * asked[row, column - len(asked)]

"""Signs of products in the plane: is Y = [x > 0] for some X of rank 2? Decided by a search that is exact where it ends.

*Lines.* Let x_ij = u_i' v_j in the plane. Rows and columns that are 0 everywhere can have the factor 0; all other
factors are not 0. Columns that differ have no common direction. So the v_j lie on lines through 0, one to a line, or
two opposite ones. Number the lines by their angles 0 <= theta_0 < ... < theta_{p-1} < pi, and let v_j = s_j times the
direction of its line, s_j = 1 or -1.

*Rows.* Turn u by half a circle. While it is between the normals of the lines t - 1 and t, x_j has the sign s_j from
line t on, and -s_j before: p patterns, and their opposites for the other half of the circle. On the normal of line t,
x_j = 0 there. That counts as level 0. With one column on the line, the pattern is that of one of the sides; with two
opposite ones, both are 0, which neither side has. So the rows that an arrangement allows are known.

*Search.* Columns are placed one after another: on a new line between two others, with either sign, or opposite to a
column that is alone on its line. An arrangement is given up when it does not allow the rows that have been seen of the
columns placed so far. Any arrangement of all columns is reached this way, up to rotation and reflection. Where x must
not be 0 (`strict`), there are no opposite columns and no normals.
"""

from collections.abc import Iterator

import numpy as np

from halfseen.arrays import Array
from halfseen.roundrank.exact_rounding import Certificate, RoundingProblem

#: Arrangements that are examined before the search is given up.
_MAX_ARRANGEMENTS = 5_000
#: Columns that are chosen so that arrangements are given up early.
_N_CHOSEN = 8

#: Line and sign of each column, in the order in which they were placed.
Arrangement = tuple[tuple[int, int], ...]


def decide_plane(problem: RoundingProblem) -> tuple[Certificate | None, bool]:
    """A certificate that a product of two columns rounds to the levels, and whether that is proved impossible.

    Levels are 0 and 1 and repeat no rows or columns; the threshold is 0. There is neither if the search was given up.
    """
    if problem.levels.shape[0] < problem.levels.shape[1]:  # the more rows, the sooner arrangements are given up
        certificate, impossible = decide_plane(problem.transposed)
        return certificate and certificate.transposed, impossible
    rows, columns = (
        np.arange(size) if problem.strict else np.flatnonzero(problem.levels.any(axis=axis))
        for size, axis in zip(problem.levels.shape, (1, 0), strict=True)
    )
    if not columns.size:
        return None, False
    ones = problem.levels[np.ix_(rows, columns)].astype(bool)
    # first come columns in which the rows differ much
    order = [int(ones.sum(axis=0).argmax())]
    rest = [column for column in range(columns.size) if column != order[0]]
    for _ in range(min(_N_CHOSEN, len(rest))):
        order.append(max(rest, key=lambda column: len(np.unique(ones[:, [*order, column]], axis=0))))
        rest.remove(order[-1])
    order += rest
    needed = [{row.tobytes() for row in ones[:, order[: count + 1]]} for count in range(columns.size)]

    stack: list[Arrangement] = [((0, 1),)]
    for _ in range(_MAX_ARRANGEMENTS):
        if not stack:
            return None, True
        arrangement = stack.pop()
        allowed, normals = allowed_rows(arrangement, problem.strict)
        number_of = {row.tobytes(): number for number, row in enumerate(allowed)}
        if not needed[len(arrangement) - 1] <= number_of.keys():
            continue
        if len(arrangement) < columns.size:
            stack.extend(with_one_more(arrangement, problem.strict))
            continue
        lines, signs = np.array(arrangement).T
        n_lines = int(lines.max()) + 1
        angles = np.pi * (np.arange(n_lines) + 0.5) / n_lines
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        W, H = np.zeros((len(problem.levels), 2)), np.zeros((problem.levels.shape[1], 2))
        H[columns[order]] = signs[:, None] * directions[lines]
        W[rows] = normals[[number_of[row.tobytes()] for row in ones[:, order]]]
        return problem.certify(W, H, "Signs of products in the plane are those of Y."), False
    return None, False


def allowed_rows(arrangement: Arrangement, strict: bool) -> tuple[Array, Array]:
    """The rows of levels that vectors u in the plane have, and such a u for each of them."""
    lines, signs = np.array(arrangement).T
    n_lines = int(lines.max()) + 1
    t = np.arange(n_lines)
    beside = np.where(lines >= t[:, None], 1, -1)
    u = np.pi / 2 + np.pi * t / n_lines
    products, normals = [beside * signs], [np.column_stack([np.cos(u), np.sin(u)])]
    if not strict:
        angles = np.pi * (t + 0.5) / n_lines
        products.append(np.sign(lines - t[:, None]) * signs)
        normals.append(np.column_stack([-np.sin(angles), np.cos(angles)]))
    x, w = np.vstack(products), np.vstack(normals)
    return np.vstack([x > 0, x < 0]), np.vstack([w, -w])


def with_one_more(arrangement: Arrangement, strict: bool) -> Iterator[Arrangement]:
    """All arrangements of one column more; between the last line and the first there is one gap."""
    lines = [line for line, _ in arrangement]
    for place in range(max(lines) + 1):
        moved = tuple((line + (line >= place), sign) for line, sign in arrangement)
        yield from ((*moved, (place, sign)) for sign in (1, -1))
        if not strict and lines.count(place) == 1:
            yield (*arrangement, (place, -arrangement[lines.index(place)][1]))

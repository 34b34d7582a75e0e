"""Metropolis moves among the orders of the rows and columns of a known matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]


@kernel
def swap_rows(T: Array, Y: Array, a: Array, b: Array, chance: Array) -> None:
    """Swap the places a of two rows, if T[a_i, b_j] = Y_ij still holds where it is seen (Y_ij >= 0).

    One proposal for each row of `chance`, which has two random numbers from [0, 1).
    """
    for pair in range(chance.shape[0]):
        i, k = int(chance[pair, 0] * a.size), int(chance[pair, 1] * a.size)
        agree = True
        for j in range(b.size):
            if (Y[i, j] >= 0 and T[a[k], b[j]] != Y[i, j]) or (Y[k, j] >= 0 and T[a[i], b[j]] != Y[k, j]):
                agree = False
                break
        if agree:
            a[i], a[k] = a[k], a[i]


@kernel
def move_row_and_column(T: Array, Y: Array, a: Array, b: Array, chance: Array) -> None:
    """Move a row and a column by some places, or none, those between making room, if all cells then still agree.

    Small and large distances are equally likely in order. One proposal for each entry of `chance`, which has three
    random numbers for the row and three for the column.
    """
    rows, columns = np.empty_like(a), np.empty_like(b)
    for move in range(chance.shape[0]):
        for side in range(2):
            old, new = (a, rows) if side == 0 else (b, columns)
            apart = int(np.exp(chance[move, side, 0] * np.log(old.size + 1.0))) - 1
            start = int(chance[move, side, 1] * (old.size - apart))
            step = 1 if chance[move, side, 2] < 0.5 else apart  # by one, forwards or back
            for i in range(old.size):
                place = old[i] - start
                new[i] = start + (place + step) % (apart + 1) if 0 <= place <= apart else old[i]
        agree = True
        for i in range(a.size):
            for j in range(b.size):
                if Y[i, j] >= 0 and T[rows[i], columns[j]] != Y[i, j]:
                    agree = False
                    break
            if not agree:
                break
        if agree:
            a[:] = rows
            b[:] = columns

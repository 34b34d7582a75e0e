"""From ids to sorted cells: parse integers, number them, stable counting sorts; all linear in the number of cells."""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]


@kernel
def count_starts(codes: Array, starts: Array) -> None:
    """Fill `starts` (zeros, one longer than there are codes) with where each code begins once the codes are sorted."""
    for code in codes:
        starts[code + 1] += 1
    for code in range(starts.size - 1):
        starts[code + 1] += starts[code]


@kernel
def scatter(first: int, last: int, codes: Array, free: Array, order: Array) -> None:
    """order[place] = position, for the positions whose code is in first..last-1; `free` holds the next free places."""
    for position in range(codes.size):
        code = codes[position]
        if first <= code < last:
            order[free[code]] = position
            free[code] += 1


@kernel
def scatter_cells(
    first: int, last: int, codes: Array, others: Array, values: Array, free: Array, to_others: Array, to_values: Array
) -> None:
    """The cells (code, other, value) whose code is in first..last-1 to their places, in the order they come."""
    for position in range(codes.size):
        code = codes[position]
        if first <= code < last:
            place = free[code]
            free[code] = place + 1
            to_others[place] = others[position]
            to_values[place] = values[position]


@kernel
def scatter_columns(
    first: int, last: int, starts: Array, rows: Array, values: Array, free: Array, to_columns: Array, to_values: Array
) -> None:
    """As `scatter_cells`, by rows, of cells in column order: those of column c are at starts[c] : starts[c + 1]."""
    for column in range(starts.size - 1):
        for position in range(starts[column], starts[column + 1]):
            row = rows[position]
            if first <= row < last:
                place = free[row]
                free[row] = place + 1
                to_columns[place] = column
                to_values[place] = values[position]


@kernel
def parse_integers(text: Array, offsets: Array, values: Array) -> bool:
    """values[i] = the integer text[offsets[i]:offsets[i + 1]]; False if one is not written as Python writes it.

    007, +7, -0 and everything of more than 18 digits are not.
    """
    zero, nine, minus = 48, 57, 45
    for i in range(values.size):
        start, stop = offsets[i], offsets[i + 1]
        if start == stop:
            return False
        is_negative = text[start] == minus
        start += is_negative
        digits = stop - start
        if digits < 1 or digits > 18 or (text[start] == zero and (digits > 1 or is_negative)):
            return False
        value = np.int64(0)
        for place in range(start, stop):
            digit = text[place]
            if digit < zero or digit > nine:
                return False
            value = 10 * value + (digit - zero)
        values[i] = -value if is_negative else value
    return True


@kernel
def number_integers(values: Array, lowest: int, code_of: Array, codes: Array, labels: Array) -> int:
    """Codes in the order of first appearance, and the label of each; `code_of` (all -1) has a place for every integer
    from `lowest` on. Returns the number of labels."""
    count = 0
    for i in range(values.size):
        place = values[i] - lowest
        code = code_of[place]
        if code < 0:
            code = count
            code_of[place] = code
            labels[code] = values[i]
            count += 1
        codes[i] = code
    return count

"""Lines of least absolute deviations through sorted answers, row by row, exactly.

A row's distinct answers are points (R, x), R the number of answers up to x: integers, so that everything compared but
the residuals is exact. The best line passes through two points, one of which may be the origin: there the line's value
at R = 0 is at its bound. From vertex to vertex the line is rotated about a point on it, until no rotation lowers the
cost. As answers ascend with R, no best line falls: its value at R = 0 is the only bound that matters.

Several lines may be best. Of these the flattest is taken. There is only one: (value at 0, slope) of the best lines form
a convex polygon, each side of which belongs to the rotations about a point, and none of these keeps the slope.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]

#: A point lies on a line if it is off by no more than this part of the largest answer.
_ROUNDING = 64 * np.finfo(np.float64).eps
_NONE, _ORIGIN = -2, -1


@kernel
def fit_lines(indptr: Array, answers: Array, ends: Array, errors: Array) -> None:
    """ends[i] = the values at F = 0 and at F = 1, none below 0, of the best line in F = R / n through the answers of
    row i, answers[indptr[i]:indptr[i + 1]], ascending, and of all best lines the flattest; errors[i] = their mean
    deviation. NaN for rows without any."""
    longest = 0
    for i in range(errors.size):
        longest = max(longest, indptr[i + 1] - indptr[i])
    values, ranks, slopes, weights = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    sides = np.empty(longest, np.int8)
    for i in range(errors.size):
        row = answers[indptr[i] : indptr[i + 1]]
        if row.size == 0:
            ends[i, 0], ends[i, 1], errors[i] = np.nan, np.nan, np.nan
            continue
        count = _distinct(row, values, ranks)
        low, high = _best_line(values[:count], ranks[:count], slopes, weights, sides)
        ends[i, 0], ends[i, 1] = low, high
        errors[i] = _mean_deviation(values[:count], ranks[:count], low, high)


@kernel
def _distinct(row: Array, values: Array, ranks: Array) -> int:
    """Distinct answers, and the number of answers up to each; returns how many are distinct."""
    count = 0
    for m in range(row.size):
        if m + 1 == row.size or row[m + 1] != row[m]:
            values[count], ranks[count] = row[m], m + 1
            count += 1
    return count


@kernel
def _best_line(values: Array, ranks: Array, slopes: Array, weights: Array, sides: Array) -> tuple[float, float]:
    """Values at R = 0 and at R = n of the flattest best line; of the many through a single point, the flat one."""
    last = values.size - 1
    if last == 0:
        level = max(values[0], 0.0)
        return level, level
    n = ranks[last]
    close = _ROUNDING * max(abs(values[0]), abs(values[last]))
    # The best of the flat lines passes through the median, or is 0: nothing that costs less is flat.
    middle = 0
    while 2.0 * ranks[middle] < n:
        middle += 1
    rank, value = (ranks[middle], values[middle]) if values[middle] > 0 else (0.0, 0.0)
    slope = _best_slope(rank, value, values, ranks, slopes, weights)
    cost = _sides_and_cost(rank, value, slope, values, ranks, close, sides)
    while True:
        pivot, gain = _pivot(value - slope * rank <= close, ranks, sides)
        if pivot == _NONE:
            break
        new_rank, new_value = (0.0, 0.0) if pivot == _ORIGIN else (ranks[pivot], values[pivot])
        new_slope = _best_slope(new_rank, new_value, values, ranks, slopes, weights)
        new_cost = _sides_and_cost(new_rank, new_value, new_slope, values, ranks, close, sides)
        # Where the cost cannot fall, the slope does. Otherwise only by rounding.
        if not (new_cost < cost if gain > 0 else new_slope < slope and new_cost <= cost + n * close):
            break
        rank, value, slope, cost = new_rank, new_value, new_slope, new_cost
    low = value - slope * rank
    return (low if low > close else 0.0), max(value + slope * (n - rank), 0.0)


@kernel
def _best_slope(rank: float, value: float, values: Array, ranks: Array, slopes: Array, weights: Array) -> float:
    """Best slope of the lines through one point: sum of c |x - line| = sum of c |R - rank| |slope to x - slope|, so it
    is a weighted median of the slopes to the others, as far as the line stays at 0 or above."""
    count, before = 0, 0.0
    for m in range(values.size):
        away = ranks[m] - rank
        if away != 0:
            slopes[count] = (values[m] - value) / away
            weights[count] = (ranks[m] - before) * abs(away)
            count += 1
        before = ranks[m]
    slope = _weighted_median(slopes, weights, count)
    return min(slope, value / rank) if rank > 0 else max(slope, 0.0)


@kernel
def _weighted_median(x: Array, weights: Array, count: int) -> float:
    """First x in order up to which there is half of the weight, by partitions around random pivots."""
    half = 0.0
    for m in range(count):
        half += 0.5 * weights[m]
    start, stop, below = 0, count, 0.0
    state = np.uint64(1)
    while stop - start > 1:
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        pivot = x[start + np.int64((state >> np.uint64(33)) % np.uint64(stop - start))]
        # x[start:less] < pivot, x[less:here] == pivot, x[more:stop] > pivot
        less, here, more = start, start, stop
        lighter, equal = 0.0, 0.0
        while here < more:
            if x[here] < pivot:
                lighter += weights[here]
                x[here], x[less] = x[less], x[here]
                weights[here], weights[less] = weights[less], weights[here]
                less += 1
                here += 1
            elif x[here] > pivot:
                more -= 1
                x[here], x[more] = x[more], x[here]
                weights[here], weights[more] = weights[more], weights[here]
            else:
                equal += weights[here]
                here += 1
        if below + lighter >= half:
            stop = less
        elif below + lighter + equal >= half:
            return float(pivot)
        else:
            below += lighter + equal
            start = more
    return float(x[start])


@kernel
def _sides_and_cost(
    rank: float, value: float, slope: float, values: Array, ranks: Array, close: float, sides: Array
) -> float:
    """Whether answers lie above the line (1), on it (0) or below (-1); returns the sum of all deviations."""
    cost, before = 0.0, 0.0
    for m in range(values.size):
        off = values[m] - (value + slope * (ranks[m] - rank))
        sides[m] = 0 if abs(off) <= close else 1 if off > 0 else -1
        cost += (ranks[m] - before) * abs(off)
        before = ranks[m]
    return cost


@kernel
def _pivot(at_origin: bool, ranks: Array, sides: Array) -> tuple[int, float]:
    """Point on the line about which a rotation lowers the cost fastest, and how fast; if none does, one about which the
    line becomes flatter at the same cost.

    Rotated up about R, the line gains  turn = sum of c side (R_m - R)  over the answers off the line and loses
    on = sum of c |R_m - R|  over those on it; rotated down, it gains -turn. All of these are integers.
    """
    side, moment, count, total, before = 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(ranks.size):
        c = ranks[m] - before
        side += c * sides[m]
        moment += c * sides[m] * ranks[m]
        if sides[m] == 0:
            count += c
            total += c * ranks[m]
        before = ranks[m]
    best, gain, flatter = _NONE, 0.0, _NONE
    if at_origin:
        if abs(moment) - total > gain:
            best, gain = _ORIGIN, abs(moment) - total
        if -moment - total == 0.0:
            flatter = _ORIGIN
    before, count_left, total_left = 0.0, 0.0, 0.0
    for m in range(ranks.size):
        if sides[m] == 0:
            c = ranks[m] - before
            on = (total - 2.0 * total_left) - ranks[m] * (count - 2.0 * count_left)
            turn = moment - ranks[m] * side
            here = (-turn if at_origin else abs(turn)) - on  # at its bound the line can only be rotated down
            if here > gain:
                best, gain = m, here
            if -turn - on == 0.0:
                flatter = m
            count_left += c
            total_left += c * ranks[m]
        before = ranks[m]
    return (flatter, 0.0) if best == _NONE else (best, gain)


@kernel
def _mean_deviation(values: Array, ranks: Array, low: float, high: float) -> float:
    """Mean of |x - line|."""
    n = ranks[values.size - 1]
    cost, before = 0.0, 0.0
    for m in range(values.size):
        share = ranks[m] / n
        cost += (ranks[m] - before) * abs(values[m] - low * (1.0 - share) - high * share)
        before = ranks[m]
    return float(cost / n)

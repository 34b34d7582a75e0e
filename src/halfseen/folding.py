"""Folding in: the factor of new rows, with the columns' factor fixed."""

from typing import Any

import numpy as np

from halfseen.arrays import Array, floored, namespace
from halfseen.engines import Side
from halfseen.solvers import Factor, Problem, Solver


def fold_in(task: Problem, solver: Solver[Any], far: Factor, average: Array, *, max_iter: int, tol: float) -> Any:
    """New rows' factor; each row depends on nothing but its own cells.

    Every row starts at the average row and stops by itself, when no entry moves by more than `tol` of its largest.
    A row without a seen cell keeps what is known of any row: the average.
    """
    observed = task.cells.observed
    average = average.astype(observed.dtype)
    place = task.engine.asarray
    far = far._make(place(array) for array in far)
    folded = solver.default_factor(average, observed.shape[0], Side.ROWS)
    moving = np.flatnonzero(has_data(observed.seen_per_row(), observed.unseen))
    task = _of_rows(task, moving)
    near = solver.init_factor(place(np.repeat(average[None], moving.size, axis=0)))
    settled = np.zeros(moving.size, dtype=bool)
    for _ in range(max_iter):
        if settled.all():
            break
        x = task.engine.sddmm(task.cells, near.plug_in, far.plug_in)
        new = where(settled, near, solver.half_step(task, near, far, Side.ROWS, x))
        settled |= _largest_change(task, near.mean, new.mean) <= tol
        near = new
        if settled.size / 2 < settled.sum() < settled.size:  # most are done: go on with the others alone
            _put(task, near, folded, moving)
            left = np.flatnonzero(~settled)
            moving, near, task = moving[left], _taken(near, left), _of_rows(task, left)
            settled = np.zeros(left.size, dtype=bool)
    _put(task, near, folded, moving)
    return folded


def has_data(seen: Array, unseen: str) -> Array:
    """Mask of rows (or columns) with a cell that counts: all where zeros count, else those with an observed cell."""
    return (seen > 0) | (unseen == "zero")


def where(mask: Array, yes: Any, no: Any) -> Any:
    """The rows of one factor where the mask holds, of the other elsewhere."""
    if not mask.any():
        return no
    xp = namespace(yes.mean)
    return yes._make(xp.where(xp.asarray(mask[:, None]), a, b) for a, b in zip(yes, no, strict=True))


def _taken(factor: Any, rows: Array) -> Any:
    xp = namespace(factor.mean)
    return factor._make(xp.take(array, xp.asarray(rows), axis=0) for array in factor)


def _of_rows(task: Problem, rows: Array) -> Problem:
    """The same task for some of its rows."""
    observed = task.cells.observed
    if rows.size == observed.shape[0]:
        return task
    return Problem(task.engine, task.engine.place(observed.select_rows(rows), Side.ROWS), task.likelihood)


def _put(task: Problem, near: Any, folded: Any, rows: Array) -> None:
    for target, array in zip(folded, near, strict=True):
        target[rows] = task.engine.to_numpy(array)


def _largest_change(task: Problem, old: Any, new: Any) -> Array:
    """By how much each row's entries moved at most, as a part of its largest entry."""

    def rule(old: Any, new: Any) -> Any:
        xp = namespace(new)
        return xp.max(xp.abs(new - old), axis=1) / floored(xp.max(new, axis=1), 1.0)

    return task.engine.to_numpy(task.engine.map(rule, old, new))

"""Folding in: the factor of new rows with the factor of the columns fixed, or of new columns with that of the rows."""

from functools import partial
from typing import Any

import numpy as np

from halfseen.arrays import Array, floored, namespace
from halfseen.engines import DeviceCells, Engine, Side
from halfseen.likelihoods import Likelihood
from halfseen.likelihoods.rules import Terms
from halfseen.solvers import Factor, Problem, Solver
from halfseen.solvers.problem import has_data, where


def fold_in(
    problem: Problem,
    solver: Solver[Any],
    far: Factor,
    average: Array,
    *,
    max_iter: int,
    tol: float,
    side: Side = Side.ROWS,
) -> Any:
    """Factor of new rows (or columns, by `side`); each depends on its own cells alone.

    Every row starts at the average row and stops by itself, when no entry moves by more than `tol` of its largest.
    A row without an observed cell keeps the average.

    Parameters
    ----------
    problem : Problem
        Cells of the new rows, likelihood and engine.
    solver : Solver
        How the factor moves.
    far : Factor
        Factor of the columns.
    average : ndarray of shape (k,)
        Mean of the rows of the fit.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Largest relative change of a row that has settled.
    side : Side, default=Side.ROWS
        Whose factor is sought. For columns, read "column" for "row" and "row" for "column" above.

    Returns
    -------
    Factor
    """
    average = average.astype(problem.cells.observed.dtype)
    work = partial(_fold_in_shard, problem.likelihood, solver, type(far), average, max_iter, tol, side)
    if side is Side.COLUMNS:
        return work(problem.engine, problem.cells, *far)
    parts = problem.engine.by_shard(work, problem.cells, *far)
    return parts[0]._make(map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]


def _fold_in_shard(
    likelihood: Likelihood, solver: Solver[Any], kind: Any, average: Array, max_iter: int, tol: float, side: Side,
    engine: Engine[Any], cells: DeviceCells, *arrays: Array,
) -> Any:  # fmt: skip
    """`fold_in` for the rows of a shard; the arrays are those of the columns' factor, which is of this kind."""
    place, problem, observed = engine.asarray, Problem(engine, cells, likelihood), cells.observed
    far = kind._make(place(array, side.other) for array in arrays)
    counts = observed.seen_per_row() if side is Side.ROWS else observed.seen_per_column()
    folded = solver.default_factor(average, counts.size, side)
    moving = np.flatnonzero(has_data(counts, observed.unseen))
    problem = _part_of(problem, moving, side)
    near = solver.init_factor(place(np.repeat(average[None], moving.size, axis=0), side))
    settled = np.zeros(moving.size, dtype=bool)
    for _ in range(max_iter):
        if settled.all():
            break
        new = where(settled, near, solver.half_step(problem, near, far, side))
        (changes,), *_ = problem.engine.map(relative_changes, None, near.mean, new.mean)
        settled |= problem.engine.to_numpy(changes) <= tol
        near = new
        if settled.size / 2 < settled.sum() < settled.size:  # most are done: go on with the others alone
            _put(problem, near, folded, moving)
            left = np.flatnonzero(~settled)
            near = near._make(place(problem.engine.to_numpy(array)[left], side) for array in near)
            moving, problem = moving[left], _part_of(problem, left, side)
            settled = np.zeros(left.size, dtype=bool)
    _put(problem, near, folded, moving)
    return folded


def _part_of(problem: Problem, chosen: Array, side: Side) -> Problem:
    """The same problem for some of its rows (or columns, by `side`)."""
    observed = problem.cells.observed
    if chosen.size == observed.shape[0 if side is Side.ROWS else 1]:
        return problem
    part = observed.select_rows(chosen) if side is Side.ROWS else observed.select_columns(chosen)
    shards = [slice(0, part.shape[0])] if side is Side.ROWS else problem.cells.row_shards
    return Problem(problem.engine, problem.engine.place(part, side, shards=shards), problem.likelihood)


def _put(problem: Problem, near: Any, folded: Any, rows: Array) -> None:
    for target, array in zip(folded, near, strict=True):
        target[rows] = problem.engine.to_numpy(array)


def relative_changes(_: None, old: Any, new: Any) -> Terms:
    """The largest change of a row's entries, relative to its largest entry."""
    xp = namespace(new)
    return Terms((xp.max(xp.abs(new - old), axis=1) / floored(xp.max(new, axis=1), 1.0),))

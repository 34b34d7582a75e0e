"""The em-algorithm of section 2.2.2: fill the holes, take the best rank-one matrix of what is then full, fill again.

    e-step:  the holes become w_i h_j
    m-step:  w = row sums / sqrt(total),  h = column sums / sqrt(total)

The filled matrix is never made: its row sums are those of the seen cells plus w_i times the h of the row's holes.
"""

from collections.abc import Iterator

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.rank_one.exact import Step, largest_change, objective, settling, unbounded
from halfseen.rank_one.marginals import Marginals


def em(marginals: Marginals, threads: Threads, tol: float) -> Iterator[Step]:
    """Ever better factors, until their distance from the best is at most `tol`; the holes start at the mean."""
    (r, c), exposure = marginals.sums, marginals.exposure
    # Rows that sum to 0 take no part: a seen zero makes them 0, and without one they would stay as they start.
    w, h = ((sums > 0).astype(np.float64) for sums in marginals.sums)
    size = np.sqrt(marginals.total / max(int(marginals.counts[0].sum()), 1))
    w, h = w * size, h * size
    if marginals.merged is not None:
        w = w * np.bincount(marginals.merged.group, minlength=w.size)
    distance_after = settling()
    seen_by_rows = exposure.of_rows(h, threads)
    while True:
        with unbounded():
            full_rows = r + w * (h.sum() - seen_by_rows)
            full_columns = c + h * (w.sum() - exposure.of_columns(w, threads))
            total = full_rows.sum()
            new = _over_root(full_rows, total), _over_root(full_columns, total)
            distance, _ = distance_after(largest_change((w, h), new))
            w, h = new
            seen_by_rows = exposure.of_rows(h, threads)
            step = Step(new, objective(new, marginals, float((w * seen_by_rows).sum())), distance)
        yield step
        if distance <= tol:
            return


def _over_root(sums: Array, total: float) -> Array:
    return sums / np.sqrt(total) if total > 0 else np.zeros_like(sums)

"""Starts that know the data."""

from itertools import islice

import numpy as np

from halfseen import rank_one
from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.observed import Observed

#: Good enough for a start.
_TOL = 1e-3
_MOST_SWEEPS = 100


def around_rank_one(
    observed: Observed, n_components: int, random: np.random.RandomState, n_jobs: int | None
) -> tuple[Array, Array]:
    """The best rank-one factors, shared out among the components, every entry times its own number in 0.5 .. 1.5.

    Rows and columns have their sizes from the first iteration on, whatever is missing of them. Narrower numbers take
    long to let the components part, wider ones throw the sizes away.
    """
    with Threads(n_jobs) as threads:
        table = rank_one.ListedTable(observed)
        components = rank_one.find_components(table, table.marginals)
        *_, last = islice(rank_one.exact(components, threads, _TOL), _MOST_SWEEPS)
    w, h = rank_one.rescale(last.factors, components, _TOL, np.dtype(np.float64))
    W, H = (
        factor[:, None] * random.uniform(0.5, 1.5, (factor.size, n_components)) / np.sqrt(n_components)
        for factor in (w, h)
    )
    return W, H

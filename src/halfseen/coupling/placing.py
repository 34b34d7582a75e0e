"""Values laid out at the cells that were asked for."""

import numpy as np

from halfseen.arrays import Array
from halfseen.data.uncoupled import Uncoupled
from halfseen.labels import index_dtype
from halfseen.observed import Observed


def at_cells(seen: Uncoupled, values: Array) -> tuple[Observed, int]:
    """The half-seen matrix, questions as rows, with `values` at its cells, each weighing as often as it was asked for.

    Factors are never negative: values below 0 become 0. Returns how many did. The values are used up.
    """
    shape = (seen.n_questions, seen.n_respondents)
    dtype = index_dtype(shape, values.size)
    clipped = int(np.count_nonzero(values < 0))
    observed = Observed(
        seen.indptr.astype(dtype, copy=False),
        seen.respondents.astype(dtype, copy=False),
        np.maximum(values, 0.0, out=values),
        shape,
        weights=seen.times,
        row_labels=seen.question_labels,
        column_labels=seen.respondent_labels,
    )
    return observed, clipped

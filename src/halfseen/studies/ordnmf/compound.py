"""What dcPF says of ordered levels of counts, beside OrdNMF."""

import numpy as np
from scipy.special import betainc

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.estimators import CompoundPoisson

#: Below this a probability is as good as none, and its logarithm is not taken.
TINY = 1e-300


def log_likelihood_of_levels(model: CompoundPoisson, levels: Observed, edges: tuple[int, ...]) -> float:
    """Eq. 39:  sum over the cells of log P(edge_l <= count < edge_{l+1} | count > 0),  l the level of the cell.

    Rows and columns of the cells are those of the fit, in their order.
    """
    x = np.einsum("ck,ck->c", model.W_[levels.row_of_cell()], model.H_[levels.indices])
    starts, ends = np.array(edges), np.append(edges[1:], np.inf)
    level = levels.values.astype(int) - 1
    reaching = survival(x, model.p_, starts[level])
    beyond = survival(x, model.p_, ends[level])
    share = (reaching - beyond) / np.maximum(survival(x, model.p_, np.ones_like(x)), TINY)
    return float(np.log(np.maximum(share, TINY)).sum())


def survival(x: Array, p: float, count: Array) -> Array:
    """P(count or more): a Poisson(x) number of logarithmic draws is negative binomial, with r = x / -log(1 - p)."""
    finite = np.where(np.isinf(count), 1.0, count)
    tail: Array = np.where(np.isinf(count), 0.0, betainc(finite, x / -np.log1p(-p), p))
    return tail

"""KL-WNMF at rank one in plain NumPy: what the paper compares with (Blondel, Ho and Van Dooren, 2007)."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div

from halfseen.arrays import Array


class Holed(NamedTuple):
    """A matrix as KL-WNMF takes it: 0 in its holes, and the weights Phi: 1 where a cell is seen, 0 where it is not."""

    X: Array
    Phi: Array


class RankOne(NamedTuple):
    """The matrix w h^T, and after how many iterations it was found."""

    w: Array
    h: Array
    n_iter: int


def with_weights(X: Array) -> Holed:
    """A matrix with NaN in its holes, ready for `kl_wnmf`."""
    seen = ~np.isnan(X)
    return Holed(np.where(seen, X, 0.0), seen.astype(X.dtype))


def divergence(X: Array, w: Array, h: Array) -> float:
    """D_Phi(X, w h^T) of Eq. 2: sum of x log(x / y) - x + y over the cells of X that are not NaN."""
    row, column = np.nonzero(~np.isnan(X))
    return float(kl_div(X[row, column], w[row] * h[column]).sum())


def kl_wnmf(holed: Holed, seed: int, tol: float = 1e-4, max_iter: int = 200) -> RankOne:
    """Minimise D_Phi(X, w h^T), Eq. 2, by multiplicative updates from a start uniform in (0, 1):

        w <- w * ((X / w h^T) h) / (Phi h)       with X = 0 in the holes
        h <- h * ((X / w h^T)^T w) / (Phi^T w)   with the new w

    until (previous error - error) / error at the start < tol, looked at after every iteration: the rule of
    scikit-learn's NMF, where it is looked at after every tenth.
    """
    X, Phi = holed
    random = np.random.default_rng(seed)
    w, h = (1.0 - random.random((length,)) for length in X.shape)
    product, ratio = np.multiply.outer(w, h), np.empty_like(X)
    x_log_x = _x_log_x(X)
    first = error = _divergence(X, x_log_x, product, w @ Phi @ h, ratio)
    n_iter, gain = 0, np.inf
    while gain >= tol and n_iter < max_iter:
        w *= (np.divide(X, product, out=ratio) @ h) / (Phi @ h)
        np.multiply.outer(w, h, out=product)
        push = w @ Phi
        h *= (w @ np.divide(X, product, out=ratio)) / push
        np.multiply.outer(w, h, out=product)
        previous, error = error, _divergence(X, x_log_x, product, push @ h, ratio)
        n_iter, gain = n_iter + 1, (previous - error) / first
    return RankOne(w, h, n_iter)


def _divergence(X: Array, x_log_x: float, product: Array, total: Any, work: Array) -> float:
    """sum_seen x log x - x log y - x + y; what does not depend on y is known beforehand, and a hole has x = 0."""
    return float(x_log_x - np.vdot(X, np.log(product, out=work)) + total)


def _x_log_x(X: Array) -> float:
    """sum x log x - x, where 0 log 0 = 0."""
    seen = X[X > 0]
    return float(seen @ np.log(seen) - seen.sum())

"""The library in dense NumPy, written from the papers: the truth that everything else is compared with.

A half-seen matrix is two dense arrays here: Y, the values, and C, how much each cell counts. A missing cell counts 0;
an unseen cell that stands for a zero is a 0 that counts 1. Nothing else is ever said about holes, weights or repeats.
"""

from typing import NamedTuple

import numpy as np
from scipy import special, stats


def grid(observed):
    """(Y, C) of an `Observed`; a cell measured several times (with one value) counts several times."""
    rows, columns = observed.row_of_cell(), observed.indices
    Y, times, C = np.zeros(observed.shape), np.zeros(observed.shape), np.zeros(observed.shape)
    Y[rows, columns] = observed.values
    np.add.at(times, (rows, columns), 1.0)
    np.add.at(C, (rows, columns), 1.0 if observed.weights is None else observed.weights)
    return Y, np.where((times == 0) & (observed.unseen == "zero"), 1.0, C)


def divergence(Y, X, beta):
    """The beta divergence, cell by cell (Févotte & Idier 2011, Eq. 1)."""
    if beta == 1:
        return special.kl_div(Y, X)
    if beta == 0:
        return Y / X - np.log(Y / X) - 1
    cross = Y * (X if beta > 1 else np.where(X > 0, X, 1.0)) ** (beta - 1)  # below, an x of 0 only meets a y of 0
    return (Y**beta + (beta - 1) * X**beta - beta * cross) / (beta * (beta - 1))


def loss(Y, C, W, H, beta, l1=0.0, l2=0.0):
    X = np.where(C > 0, W @ H.T, 1.0)
    cost = np.where(C > 0, divergence(np.where(C > 0, Y, 1.0), X, beta), 0.0)
    return (C * cost).sum() + sum(l1 * F.sum() + l2 / 2 * (F**2).sum() for F in (W, H))


def exponent(beta, l2=0.0):
    """The largest exponent that is proven to keep the loss from rising."""
    if l2:  # the penalty is quadratic in F
        return 1 / (3 - beta) if beta <= 2 else 1 / (beta - 1)
    return 1 / (2 - beta) if beta < 1 else 1.0 if beta <= 2 else 1 / (beta - 1)


def multiplicative_half(Y, C, F, G, beta, l1=0.0, l2=0.0):
    X = F @ G.T
    X = np.where(X > 1e-100, X, 1.0)  # where x is 0, every product that could speak of it is 0 too
    P, Q = (C * Y * X ** (beta - 2)) @ G, (C * X ** (beta - 1)) @ G + l1 + l2 * F
    return F * np.divide(P, Q, out=np.ones_like(P), where=Q > 0) ** exponent(beta, l2)


def multiplicative_step(Y, C, W, H, beta, l1=0.0, l2=0.0):
    """Alternating: H moves with the new W."""
    W = multiplicative_half(Y, C, W, H, beta, l1, l2)
    return W, multiplicative_half(Y.T, C.T, H, W, beta, l1, l2)


class Posterior(NamedTuple):
    """Gamma(shape, rate) for every entry of a factor, and the prior rate that was in force."""

    shape: np.ndarray
    rate: np.ndarray
    prior: np.ndarray

    mean = property(lambda self: self.shape / self.rate)
    log_mean = property(lambda self: special.digamma(self.shape) - np.log(self.rate))
    geometric = property(lambda self: np.exp(self.log_mean))


class Start(NamedTuple):
    """A factor without spread: its geometric means are its means."""

    mean: np.ndarray
    geometric = property(lambda self: self.mean)


def gamma_step(Y, C, w, h, a, rate=None):
    """Joint: both shapes from the same x~; prior rates from the current means; the columns' rates from the new E[W]."""
    prior_w, prior_h = (np.full((len(q.mean), 1), rate) if rate else a / q.mean.mean(1)[:, None] for q in (w, h))
    ratio = C * Y / (w.geometric @ h.geometric.T)
    shape_w, shape_h = a + w.geometric * (ratio @ h.geometric), a + h.geometric * (ratio.T @ w.geometric)
    new_w = Posterior(shape_w, prior_w + C @ h.mean, prior_w)
    return new_w, Posterior(shape_h, prior_h + C.T @ new_w.mean, prior_h)


def elbo(Y, C, w, h, a):
    """E[log p(y, n | w, h)] + H[n] + E[log p(w, h)] + H[w, h], where n splits each y among the components."""
    seen = C * (special.xlogy(Y, w.geometric @ h.geometric.T) - special.gammaln(Y + 1) - w.mean @ h.mean.T)
    return seen.sum() + sum(_prior_and_entropy(q, a) for q in (w, h))


def _prior_and_entropy(q, a):
    expected_log_prior = a * np.log(q.prior) - special.gammaln(a) + (a - 1) * q.log_mean - q.prior * q.mean
    return (expected_log_prior + stats.gamma(q.shape, scale=1 / q.rate).entropy()).sum()

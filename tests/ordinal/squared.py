"""The squared model in dense NumPy: OrdNMF's levels at the rate x^2, x = <w, h>, half-normal priors on W and H.

S says how much each cell weighs: 1 for an unseen cell that stands for level 0, s_y for a seen one, 0 for a missing one.
The decrements add up to 1 (theta_0 = 1), so that l2 has a scale to act on.

    objective  =  sum S log P(y | x^2)  -  l2 / 2 (|W|^2 + |H|^2)
    log P(y | lambda)  =  log(e^{D_y lambda} - 1) - theta_{y-1} lambda,  and -theta_0 lambda for y = 0   (Eq. 26)
"""

import numpy as np

from .oracle import Ordinal, first_decrements


def level_weights(Y):
    """s_y = y / mean level of the seen cells; 1 where y = 0."""
    return np.where(Y > 0, Y / Y[Y > 0].mean(), 1.0)


def start(Y, K, random):
    """(W, H, D): Gamma(1, 1) sqrt(sqrt(density) / K), so that x^2 is about the density of the seen cells. The
    decrements begin as OrdNMF's do, divided by their sum (a choice of ours).
    """
    scale = np.sqrt(np.sqrt((Y > 0).mean()) / K)
    D = first_decrements(np.bincount(Y.ravel()), "zero")
    return *(scale * random.gamma(1.0, 1.0, (size, K)) for size in Y.shape), D / D.sum()


def objective(Y, S, W, H, D, l2):
    rate, family = (W @ H.T) ** 2, Ordinal(D)
    rate = np.where(S > 0, rate, 1.0)
    logs = family.evidence(Y, rate) - family.push(Y) * rate
    return (S * logs).sum() - l2 / 2 * ((W**2).sum() + (H**2).sum())


def half_step(Y, S, F, G, D, l2, exponent=0.5):
    """F (P / Q)^g with P = sum 2 s (n / x) h and Q = sum 2 s T_y x h + l2 f.

    g = 1 / 2 maximises a minorant: with phi_k = f'_k h_k / x' at the old f' and x', the pulls are worth at least
    2 n sum_k phi_k log f_k + const, and x^2 <= sum_k phi_k (f_k / f'_k)^2 x'^2. Where unseen cells weigh 1, Q is
    2 F (G' G) + sum over the seen cells of 2 (s T_y - 1) x h + l2 F.
    """
    x, family = F @ G.T, Ordinal(D)
    counts = family.counts(Y, x**2)
    P = (2 * S * counts / np.where(x > 0, x, 1.0)) @ G  # x is 0 only where nothing but zeros is left to be said
    Q = (2 * S * family.push(Y) * x) @ G + l2 * F
    return F * np.divide(P, Q, out=np.ones_like(P), where=Q > 0) ** exponent


def pinned_decrements(Y, S, W, H, D):
    """D_l = N_l / (R_l + mu) with sum D = 1: the maximiser of sum_l N_l log D_l - R_l D_l on the simplex, where
    N_l = sum 1[y = l] s E[n] and R_l = sum 1[y <= l] s x^2 (Eq. 35, weighted); mu by bisection.
    """
    rate, levels = (W @ H.T) ** 2, range(1, len(D) + 1)
    counts = S * Ordinal(D).counts(Y, rate)
    N = np.array([counts[v == Y].sum() for v in levels])
    R = np.array([(S * rate)[v >= Y].sum() for v in levels])
    low, high = -R[N > 0].min(), N.sum()  # sum D is infinite at the one, at most 1 at the other
    for _ in range(200):
        mu = (low + high) / 2
        low, high = (mu, high) if (N / np.where(N > 0, R + mu, 1.0)).sum() > 1 else (low, mu)
    return N / np.where(N > 0, R + high, 1.0)


def squared_ordnmf_step(Y, S, W, H, D, l2, exponent=0.5):
    """W, then H with the new W, then the thresholds at the new x (the order is ours)."""
    W = half_step(Y, S, W, H, D, l2, exponent)
    H = half_step(Y.T, S.T, H, W, D, l2, exponent)
    return W, H, pinned_decrements(Y, S, W, H, D)


def squared_ordnmf(Y, S, W, H, D, l2, iterations, exponent=0.5):
    """A list of (W, H, D, objective), one an iteration."""
    records = []
    for _ in range(iterations):
        W, H, D = squared_ordnmf_step(Y, S, W, H, D, l2, exponent)
        records.append((W, H, D, objective(Y, S, W, H, D, l2)))
    return records

"""OrdNMF and its relatives in dense NumPy, written from Gouvert, Oberlin & Févotte (2020): the truth to compare with.

Y is a dense matrix of levels (or counts). With unseen="zero" its zeros are the unseen cells, each an observation of
level 0. With unseen="missing" its NaNs are the unseen cells and say nothing; 0 is then a level like the others, the
lowest of those seen: the class [0, b_0) of Eq. 1, open below. It must occur when thresholds are learned. If it did not,
the lowest level that does occur would have a threshold below it that no cell holds up: as theta_{-1} = +inf says, the
likelihood is highest when that threshold is 0. So stars 1..5 with missing cells are the levels 0..4, four thresholds.

Thresholds b_0 < ... < b_{V-1}; theta_v = 1 / b_v; decrements D_l = theta_{l-1} - theta_l, l = 1..V, kept as D[l - 1].
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

SHAPE = 0.3  # of the priors of W and H (section 5.1)


class Gamma(NamedTuple):
    """q(w_uk) = Gamma(shape, rate), for every entry of a factor (Table 1)."""

    shape: np.ndarray
    rate: np.ndarray

    mean = property(lambda self: self.shape / self.rate)
    log_mean = property(lambda self: special.digamma(self.shape) - np.log(self.rate))
    geometric = property(lambda self: np.exp(self.log_mean))


class Start(NamedTuple):
    """A factor without spread: its geometric means are its means."""

    mean: np.ndarray
    geometric = property(lambda self: self.mean)


class Record(NamedTuple):
    """What one iteration left behind."""

    w: Gamma
    h: Gamma
    prior_w: np.ndarray  # (n, 1), the rates of the priors that were in force
    prior_h: np.ndarray
    family: Any  # the likelihood with its parameters: decrements, or p
    elbo: float


# --- what the counts n are, given y: one class a likelihood -------------------------------------------------------


def decrements_of(thresholds):
    """D_l = 1 / b_{l-1} - 1 / b_l, the last threshold b_V being infinite."""
    return -np.diff(1 / np.asarray(thresholds, float), append=0.0)


def mean_count(z):
    """E[n] = z / (1 - exp(-z)) for n ~ ZTP(z); 1 at z = 0."""
    return np.where(z > 0, z, 1.0) / np.where(z > 0, -np.expm1(-z), 1.0)


def log_expm1(z):
    """log(e^z - 1) = log sum_{n >= 1} z^n / n!."""
    return z + np.log(-np.expm1(-z))


class Ordinal(NamedTuple):
    """P(y <= v | x) = exp(-theta_v x) (Eq. 23), with n ~ ZTP(D_y x) where y > 0 (Eq. 28)."""

    decrements: np.ndarray
    learned: bool = True

    theta = property(lambda self: np.cumsum(self.decrements[::-1])[::-1])  # Eq. 36, v = 0..V-1
    thresholds = property(lambda self: 1 / self.theta)

    def push(self, Y):
        """T_y: theta_{y-1}, and theta_0 for y = 0 (Eq. 30)."""
        return self.theta[np.maximum(Y - 1, 0)]

    def counts(self, Y, x):
        """E[n] under q(n) = ZTP(x~ D_y) (Table 1)."""
        return np.where(Y > 0, mean_count(self._z(Y, x)), 0.0)

    def evidence(self, Y, x):
        """log sum_{n, c} exp E[log p(y, n, c | x) + T_y x]: Eq. 29 summed over n >= 1 and the c that add up to n."""
        z = np.where(Y > 0, self._z(Y, x), 1.0)
        return np.where(Y > 0, log_expm1(z), 0.0)

    def refit(self, Y, C, counts, x, geometric=None):
        """D_l = sum 1[y = l] E[n] / sum 1[y <= l] E[lambda] (Eq. 35)."""
        if not self.learned:
            return self
        levels = range(1, len(self.decrements) + 1)
        return self._replace(decrements=np.array([(C * counts)[v == Y].sum() / (C * x)[v >= Y].sum() for v in levels]))

    def _z(self, Y, x):
        return self.decrements[np.maximum(Y - 1, 0)] * x


class SingleCount(Ordinal):
    """Section 4.2: q(n) = delta_1 where y > 0, so that the sum over n of Eq. 29 has one term."""

    def counts(self, Y, x):
        return np.where(Y > 0, 1.0, 0.0)

    def evidence(self, Y, x):
        return np.where(Y > 0, np.log(self._z(Y, x)), 0.0)


class InverseGamma(NamedTuple):
    """P(y <= v | x) = Q(alpha, theta_v x) for a whole alpha: fewer than alpha points of a Poisson process of rate x
    fall into (0, theta_v). So level v has m < alpha points in (0, theta_v), of which D_l / theta_v in each decrement
    l > v on average, and n in its own decrement, m + n >= alpha; level 0 has m < alpha points, and no n.
    """

    decrements: np.ndarray
    alpha: int
    learned: bool = True

    theta, thresholds, push = Ordinal.theta, Ordinal.thresholds, Ordinal.push

    def _sums(self, Y, x, most=300):
        """Sums over m and n of exp(theta_{y-1} x) p(y, m, n), times 1, m, n."""
        m, n = np.arange(self.alpha)[:, None], np.arange(most)
        total, of_m, of_n = (np.zeros(Y.shape) for _ in range(3))
        for place in np.ndindex(Y.shape):
            y = Y[place]
            low, own = (*self.theta, 0.0)[y] * x[place], self.decrements[y - 1] * x[place]
            terms = special.xlogy(m, low) - special.gammaln(m + 1)
            if y:
                terms = terms + special.xlogy(n, own) - special.gammaln(n + 1)
                terms = np.where(m + n >= self.alpha, terms, -np.inf)
            p = np.exp(terms)
            total[place], of_m[place], of_n[place] = p.sum(), (p * m).sum(), (p * n).sum() if y else 0.0
        return total, of_m / total, of_n / total

    def counts(self, Y, x):
        _, m, n = self._sums(Y, x)
        return m + n

    def evidence(self, Y, x):
        return np.log(self._sums(Y, x)[0])

    def refit(self, Y, C, counts, x, geometric):
        """D_l = sum of E[points in decrement l] / sum 1[y <= l] E[lambda]."""
        if not self.learned:
            return self
        _, m, n = self._sums(Y, geometric)
        D, theta = self.decrements, np.append(self.theta, np.inf)
        points = [(C * n)[v == Y].sum() + D[v - 1] * (C * m / theta[Y])[v > Y].sum() for v in range(1, D.size + 1)]
        return self._replace(decrements=np.array(points) / [(C * x)[v >= Y].sum() for v in range(1, D.size + 1)])


class CompoundPoisson(NamedTuple):
    """n ~ Poisson(x), y the sum of n variables of P(k) = p^k / (k s), s = -log(1 - p): negative binomial, r = x / s.

    p(y | n) = (n! / y!) |S(y, n)| p^y s^-n with Stirling numbers of the first kind, and sum_n |S(y, n)| r^n is the
    rising factorial r (r + 1) ... (r + y - 1). So q(n) is proportional to |S(y, n)| r~^n with r~ = x~ / s, and

        E[n] = sum_{j < y} r~ / (r~ + j)  =  r~ (psi(y + r~) - psi(r~)),
        the cell's part of the ELBO is  sum_{j < y} log(p (r~ + j)) - log y! - E[lambda].

    p -> 0: r~ -> inf, E[n] = y, Poisson on Y. p -> 1: r~ -> 0, E[n] = 1, Poisson on Y > 0 (but for a constant).
    s is kept in place of p: it does not round to 0 or 1.
    """

    s: float
    learned: bool = True

    p = property(lambda self: -np.expm1(-self.s))

    def push(self, Y):
        return np.ones(Y.shape)

    def counts(self, Y, x):
        return self._sum(Y, lambda j: x / (x + j * self.s))

    def evidence(self, Y, x):
        return self._sum(Y, lambda j: np.log(self.p * (x / self.s + j))) - special.gammaln(Y + 1)

    def refit(self, Y, C, counts, x, geometric=None):
        """max of sum y log p - sum E[n] log s:  (1 - p) / p * s = s / (e^s - 1) = sum E[n] / sum y."""
        return CompoundPoisson(rate_of_ratio((C * counts).sum() / (C * Y).sum())) if self.learned else self

    def _sum(self, Y, term):
        return sum((np.where(j < Y, term(j), 0.0) for j in range(int(Y.max()))), np.zeros(Y.shape))


def rate_of_ratio(ratio):
    """The s > 0 of s / (e^s - 1) = ratio, for a ratio in (0, 1); kept in [1e-12, 700] beyond."""
    low, high = 1e-12, 700.0
    if ratio >= low / np.expm1(low):
        return low
    return optimize.brentq(lambda s: np.log(s / np.expm1(s)) - np.log(ratio), low, high, xtol=1e-15)


# --- the models ----------------------------------------------------------------------------------------------------


def ordnmf(Y, W0, H0, iterations, shape=SHAPE, unseen="zero", thresholds=None, kind=Ordinal):
    """Algorithm 1: a list of Records. `thresholds` b_0..b_{V-1}, if given, stay as they are."""
    Y, C = grid(Y, unseen)
    if thresholds is not None:
        family = kind(decrements_of(thresholds), learned=False)
    else:
        family = kind(first_decrements(np.bincount(Y[C > 0]), unseen))
    return cavi(Y, C, family, W0, H0, iterations, shape)


def inverse_gamma(Y, W0, H0, iterations, alpha, shape=SHAPE, unseen="zero", thresholds=None):
    """The same under inverse-gamma noise of a whole shape alpha; the start suits the histogram at x = K."""
    Y, C = grid(Y, unseen)
    shares = (np.cumsum(np.bincount(Y[C > 0]))[:-1] + 0.5) / (C.sum() + 1)
    first = W0.shape[1] / special.gammainccinv(alpha, shares) if thresholds is None else thresholds
    family = InverseGamma(decrements_of(first), alpha, learned=thresholds is None)
    return cavi(Y, C, family, W0, H0, iterations, shape)


def bepof(Y, W0, H0, iterations, shape=SHAPE, unseen="zero"):
    """Bernoulli-Poisson: one level, theta_0 = 1 (section 3.2); whatever is above 0 is a 1."""
    Y, C = grid(Y, unseen)
    return cavi(np.minimum(Y, 1), C, Ordinal(np.ones(1), learned=False), W0, H0, iterations, shape)


def dcpf(Y, W0, H0, iterations, shape=SHAPE, unseen="zero", p=None, start=0.5):
    """Compound Poisson, logarithmic elements. A given `p` stays as it is; learned, it begins at `start`."""
    family = CompoundPoisson(-np.log1p(-(start if p is None else p)), learned=p is None)
    return cavi(*grid(Y, unseen), family, W0, H0, iterations, shape)


def grid(Y, unseen):
    """(levels, how much each cell counts): a missing cell counts 0."""
    seen = ~np.isnan(Y)
    if unseen == "zero" and not seen.all():
        raise ValueError("with unseen='zero', unseen cells are 0, not NaN")
    return np.where(seen, Y, 0).astype(int), seen.astype(float)


def first_decrements(histogram, unseen):
    """D_l = N_l / (N_0 + ... + N_l): Eq. 35 with E[n] = E[lambda] = 1.

    With unseen="zero", N_0 is put at the number of seen cells, not at that of the unseen ones. With unseen="missing",
    N_0 is the number of cells seen at level 0.
    """
    N = np.array(histogram, float)
    if unseen == "zero":
        N[0] = N[1:].sum()
    elif N[0] == 0:
        raise ValueError("with unseen='missing', the lowest level is 0 and must occur")
    return (N / np.cumsum(N))[1:]


# --- coordinate ascent -------------------------------------------------------------------------------------------


def cavi(Y, C, family, W0, H0, iterations, a, fixed=None):
    """Prior rates, the likelihood's parameters, q(W), q(H) from the new q(W), then q(N, C): each maximises the ELBO
    with the others held. `fixed`, if given, is a q(H) that does not move; then no family should be learned either.
    """
    w, h = Start(W0), fixed or Start(H0)
    counts, records = family.counts(Y, w.geometric @ h.geometric.T), []
    for _ in range(iterations):
        prior_w, prior_h = prior_rates(w, a), prior_rates(h, a)
        family = family.refit(Y, C, counts, w.mean @ h.mean.T, w.geometric @ h.geometric.T)
        shares, push = C * counts / (w.geometric @ h.geometric.T), C * family.push(Y)
        old_w, w = w, factor(prior_w, w, h, shares, push, a)
        h = fixed or factor(prior_h, h, old_w, shares.T, push.T, a, rates_from=w)
        counts = family.counts(Y, w.geometric @ h.geometric.T)
        records.append(Record(w, h, prior_w, prior_h, family, elbo(Y, C, family, w, h, prior_w, prior_h, a)))
    return records


def fold_in(Y, record, W0, iterations, shape=SHAPE, unseen="zero"):
    """New rows: coordinate ascent with q(H) and the likelihood of a record held. A list of Records."""
    family = record.family._replace(learned=False)
    return cavi(*grid(Y, unseen), family, W0, None, iterations, shape, fixed=record.h)


def prior_rates(q, a):
    """beta_u = a / mean_k E[w_uk]: the best rate of the prior Gamma(a, beta_u) of row u."""
    return a / q.mean.mean(1, keepdims=True)


def factor(prior, near, far, shares, push, a, rates_from=None):
    """shape = a + sum_i E[c_uik],  rate = beta_u + sum_i T_{y_ui} E[h_ik];  E[c_uik] = E[n_ui] w~_uk h~_ik / x~_ui.

    The shapes are those of the last local step, so `far` is the factor that was in force there; the rates take the
    newest means.
    """
    shape = a + near.geometric * (shares @ far.geometric)
    return Gamma(shape, prior + push @ (rates_from or far).mean)


def elbo(Y, C, family, w, h, prior_w, prior_h, a):
    """The ELBO where q(N, C) is at its best:

    sum over cells of log sum_{n, c} exp E[log p(y, n, c | lambda)]  -  KL(q(W) | prior)  -  KL(q(H) | prior)

    The first is log(e^{x~ D_y} - 1) - E[lambda] T_y for OrdNMF (and -E[lambda] theta_0 where y = 0), because
    E[log p] = n log(D_y) + sum_k c_k E[log lambda_k] - log c_k! - E[lambda] T_y by Eq. 29.
    """
    local = C * (family.evidence(Y, w.geometric @ h.geometric.T) - family.push(Y) * (w.mean @ h.mean.T))
    return local.sum() - divergence(w, a, prior_w).sum() - divergence(h, a, prior_h).sum()


def divergence(q, a, b):
    """KL(Gamma(shape, rate) | Gamma(a, b)), entry by entry."""
    return (
        (q.shape - a) * special.digamma(q.shape)
        - special.gammaln(q.shape)
        + special.gammaln(a)
        + a * (np.log(q.rate) - np.log(b))
        + q.mean * (b - q.rate)
    )


def ordinal_bound(Y, C, decrements, w, h, prior_w, prior_h, a, counts_rate, split):
    """The ELBO of OrdNMF at ANY q, to differentiate: q(n_ui, c_ui) = ZTP(n; r_ui) Mult(c; n, phi_ui), phi (n, m, k).

    E[n] (log D_y - log r) + sum_k E[n] phi_k (E[log lambda_k] - log phi_k) + log(e^r - 1) - E[lambda] T_y, less the
    divergences from the priors: log n! and log c! are in p and in q alike.
    """
    family, r = Ordinal(decrements), np.where(Y > 0, counts_rate, 1.0)
    logs = w.log_mean[:, None, :] + h.log_mean[None, :, :] - np.log(split)
    gains = np.log(decrements[np.maximum(Y - 1, 0)]) - np.log(r) + (split * logs).sum(2)
    local = np.where(Y > 0, mean_count(r) * gains + log_expm1(r), 0.0) - family.push(Y) * (w.mean @ h.mean.T)
    return (C * local).sum() - divergence(w, a, prior_w).sum() - divergence(h, a, prior_h).sum()


# --- the same over the seen cells only, the way one would write it with NumPy and SciPy --------------------------

"""UNMF (Kohjima 2022) from its three lists, in plain loops: the truth that the library is compared with.

`asked` lists (i, j), `comparisons` lists (i, higher, lower), None for an unknown side; `X` and the factors A (a row an
i) and B (a row a j) are dense; `w` has a pair and `balance` (lambda) a number for each i.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy import optimize

#: phi and its derivative psi (Table 1), and the beta divergence as a third.
SE = (lambda x: x * x / 2, lambda x: x)
KL = (lambda x: x * math.log(x), lambda x: math.log(x) + 1)
BETAS = {2.0: SE, 1.0: KL, 1.5: (lambda x: x**1.5 / 0.75, lambda x: x**0.5 / 0.5)}


def bregman(y, x, phi, psi):
    """d_phi(y, x), section 3."""
    return phi(y) - phi(x) - (y - x) * psi(x)


def telling(comparisons, i):
    """Of the comparisons on question i: how many there are, how many tell their higher side, how many their lower."""
    own = [sides for one, *sides in comparisons if one == i]
    return len(own), sum(high is not None for high, _ in own), sum(low is not None for _, low in own)


def weighed(comparisons):
    """(i, higher, its weight, lower, its weight): 1 / n_C each where both sides are told, the paper's average.

    A side that is not told leaves its weight to those of the same question that are, in equal parts: E[psi(x_J+)] is
    estimated question by question, and a question's part of it is how often it was compared.
    """
    for i, high, low in comparisons:
        n, n_high, n_low = telling(comparisons, i)
        share = n / len(comparisons)
        yield i, high, 0.0 if high is None else share / n_high, low, 0.0 if low is None else share / n_low


def loss(asked, comparisons, w, balance, X, phi, psi):
    """Eq. 4, its first form: averages over the lists, each question's over what is known."""
    total = 0.0
    for i, j in asked:
        total -= (phi(X[i, j]) - (X[i, j] - balance[i]) * psi(X[i, j])) / len(asked)
    for i, high, of_high, low, of_low in weighed(comparisons):
        if high is not None:
            total -= (w[i][0] - balance[i] / 2) * psi(X[i, high]) * of_high
        if low is not None:
            total -= (w[i][1] - balance[i] / 2) * psi(X[i, low]) * of_low
    return total


def coefficients(asked, comparisons, shape, w, balance):
    """gamma and z of Eq. 4's second form."""
    gamma, up, down = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for i, j in asked:
        gamma[i, j] += 1 / len(asked)
    for i, high, of_high, low, of_low in weighed(comparisons):
        if high is not None:
            up[i, high] += of_high
        if low is not None:
            down[i, low] += of_low
    z = np.zeros(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            z[i, j] = up[i, j] * w[i][0] + down[i, j] * w[i][1]
            z[i, j] += (gamma[i, j] - (up[i, j] + down[i, j]) / 2) * balance[i]
    return gamma, z


def step(gamma, z, A, B, beta):
    """Algorithm 1, lines 4 and 5: A by Eq. 5 (beta 2) or Eq. 6 (beta 1), then B by the new A."""
    A = _half_step(gamma, z, A, B, beta)
    return A, _half_step(gamma.T, z.T, B, A, beta)


def _half_step(gamma, z, near, far, beta):
    new = near.copy()
    for i in range(near.shape[0]):
        for r in range(near.shape[1]):
            above, below = 0.0, 0.0
            for j in range(far.shape[0]):
                x = sum(near[i, q] * far[j, q] for q in range(near.shape[1]))
                above += (z[i, j] if beta == 2 else z[i, j] / x) * far[j, r]
                below += (gamma[i, j] * x if beta == 2 else gamma[i, j]) * far[j, r]
            new[i, r] = near[i, r] * above / below
    return new


def every_pair(row, i):
    """Who is higher in every pair of two independent draws of a cell, (j, x) and (j', x'): n^2 comparisons.

    Of two different values the higher one, in both orders of the pair; of two equal ones, also of a cell drawn twice,
    the first, so that of all ties each side has half.
    """
    return [(i, a, b) if row[a] >= row[b] else (i, b, a) for a in range(len(row)) for b in range(len(row))]


def distribution(row, *, ties):
    """F(x) at every value of a row, counting this part of the equal ones."""
    return np.array([(sum(y < x for y in row) + ties * sum(y == x for y in row)) / len(row) for x in row])


def deviation(row, w):
    """The estimated error bound of section 4.3."""
    F = distribution(row, ties=1)
    return sum(abs(x - 2 * w[0] * f - 2 * w[1] * (1 - f)) for x, f in zip(row, F, strict=True)) / len(row)


def least_deviation(row):
    """Its minimum over w >= 0, and of the w that have it the one with the lowest w1 - w2 >= 0, by two linear programs.

    Both are over (w1, w2, deviations); the second has a price on w1 - w2 that is too low to pay for any deviation:
    about an answer or the origin, the mean deviation changes by multiples of (2 / n^2) (w1 - w2).
    """
    scale = max(abs(x) for x in row) or 1.0
    row = np.array(row) / scale
    F, one = distribution(row, ties=1), np.eye(len(row))
    lines = np.column_stack([2 * F, 2 * (1 - F)])
    cost = np.concatenate([[0, 0], np.full(len(row), 1 / len(row))])
    bounds, limits = np.block([[lines, -one], [-lines, -one]]), np.concatenate([row, -row])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    least = optimize.linprog(cost, bounds, limits, method="highs", options=options).fun
    cost[:2] = np.array([0.1, -0.1]) / len(row) ** 2
    bounds, limits = np.vstack([bounds, [-1, 1, *np.zeros(len(row))]]), np.append(limits, 0)
    flattest = optimize.linprog(cost, bounds, limits, method="highs", options=options).x
    return scale * least, scale * flattest[:2]


def flattest_line(row):
    """The same in fractions, w and the minimum, by trial of every line through two of the points, or the origin.

    A row of equal answers has lines through one point only: the flat one.
    """
    row = [Fraction(float(x)) for x in row]
    points = [(sum(y <= x for y in row), x) for x in sorted(set(row))]
    lines = [
        (Fraction(0), max(points[0][1], Fraction(0)) if len(points) == 1 else Fraction(0))
    ]  # slope, value at R = 0
    for (R, x), (other, y) in combinations([(0, Fraction(0)), *points], 2):
        slope = (y - x) / (other - R)
        lines.append((slope, x - slope * R))
    costs = {
        (sum(abs(x - low - slope * sum(y <= x for y in row)) for x in row), slope, low)
        for slope, low in lines
        if low >= 0 and low + slope * len(row) >= 0
    }
    cost, slope, low = min(costs)
    return ((low + slope * len(row)) / 2, low / 2), cost / len(row)


def decoded(asked, answers, comparisons):
    """The quantile of each asked cell's share of comparisons won, shrunk by one win and one loss."""
    values = {}
    for i, j in asked:
        won = sum((i, j) == (one, high) for one, high, _ in comparisons)
        lost = sum((i, j) == (one, low) for one, _, low in comparisons)
        of_question = [x for one, x in answers if one == i]
        everything = [x for _, x in answers]
        values[i, j] = np.quantile(of_question, (won + 1) / (won + lost + 2)) if of_question else np.mean(everything)
    return values

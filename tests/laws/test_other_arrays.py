"""Solvers and likelihoods know no device: on an engine whose arrays are not NumPy's they agree with the cpu."""

import array_api_strict as xp
import numpy as np
import pytest
from scipy.special import digamma, gammaln

from halfseen.data import planted
from halfseen.engines import Engine, Side, open_engine
from halfseen.fitting import run
from halfseen.folding import fold_in
from halfseen.io import observe
from halfseen.likelihoods import likelihood_for
from halfseen.solvers import SGD, Gamma, Multiplicative, Newton, Penalty, Problem, Ridge
from tests.laws.cases import SMOOTHS, levels, signed_start, weights_for


class StrictCells:
    def __init__(self, observed):
        self.observed = observed
        self.y = xp.asarray(observed.values)
        self.weights = None if observed.weights is None else xp.asarray(observed.weights)
        self.is_first_at_cell = None


class StrictEngine(Engine):
    """Every verb as plainly as can be, on arrays that refuse whatever is not in the array API standard."""

    name = "strict"

    def place(self, observed, *sides):
        return StrictCells(observed)

    def asarray(self, factor):
        return xp.asarray(factor)

    def to_numpy(self, array):
        return np.asarray(array) if isinstance(array, np.ndarray) else np.from_dlpack(array).copy()

    def sddmm(self, cells, W, H, into=None):
        u, i = cells.observed.row_of_cell(), cells.observed.indices
        return xp.asarray(np.einsum("ck,ck->c", self.to_numpy(W)[u], self.to_numpy(H)[i]))

    def map(self, rule, *arrays, into=()):
        return rule(*arrays)

    def sum(self, rule, *arrays):
        return float(xp.sum(rule(*arrays)))

    def map_reduce(self, rule, *arrays, into=()):
        return rule(*arrays)

    def spmm(self, cells, c, far, side):
        if isinstance(c, float) and c == 0:
            return 0.0
        near, other = cells.observed.row_of_cell(), cells.observed.indices
        if side is Side.COLUMNS:
            near, other = other, near
        c = np.full(near.size, c) if isinstance(c, float) else self.to_numpy(c)
        sums = np.zeros((cells.observed.shape[side is Side.COLUMNS], far.shape[1]))
        np.add.at(sums, near, c[:, None] * self.to_numpy(far)[other])
        return xp.asarray(sums)

    def newton_step(self, cells, slope, curvature, near, far, penalty, side):
        rows, others = cells.observed.row_of_cell(), cells.observed.indices
        if side is Side.COLUMNS:
            rows, others = others, rows
        s, c, F, G = (self.to_numpy(array) for array in (slope, curvature, near, far))
        free = penalty.fixed == 0
        moved = F.copy()
        for u in range(len(F)):
            mine = rows == u
            g = G[others[mine]]
            down = g.T @ s[mine] + penalty.l2 * (F[u] - penalty.centre)
            bent = (g.T * c[mine]) @ g + np.diag(penalty.l2)
            moved[u, free] -= np.linalg.solve(bent[np.ix_(free, free)], down[free])
        return xp.asarray(moved)

    def sddmm_at(self, cells, which, W, H):
        u, i = cells.observed.row_of_cell()[which], cells.observed.indices[which]
        return xp.asarray(np.einsum("ck,ck->c", self.to_numpy(W)[u], self.to_numpy(H)[i]))

    def adagrad_step(self, cells, which, slope, W, H, state, counts, penalties):
        s = self.to_numpy(slope)
        for p, (u, i) in enumerate(
            zip(cells.observed.row_of_cell()[which], cells.observed.indices[which], strict=True)
        ):
            steps = []
            sides = ((W, int(u), self.to_numpy(H)[i]), (H, int(i), self.to_numpy(W)[u]))
            for (F, a, far), sums, count, penalty in zip(sides, state[1:3], counts, penalties, strict=True):
                f = self.to_numpy(F)[a]
                g = (s[p] * far + penalty.l2 * (f - penalty.centre) / count[a]) * (1 - penalty.fixed)
                sums[a] += np.mean(g**2)
                steps.append((F, a, f - state.learning_rate * g / np.sqrt(sums[a])))
            for F, a, moved in steps:
                F[a, :] = xp.asarray(moved)

    def column_sums(self, factor):
        return xp.sum(factor, axis=0)

    @staticmethod
    def digamma_and_log_gamma(a):
        a = np.from_dlpack(a)
        return xp.asarray(digamma(a)), xp.asarray(gammaln(a))


def strict_problem(observed, likelihood):
    engine = StrictEngine()
    return Problem(engine, engine.place(observed), likelihood)


CASES = [
    (Multiplicative(), 1.0, "missing"),
    (Multiplicative(), 1.0, "zero"),
    (Multiplicative(), 2.0, "zero"),
    (Multiplicative(Penalty(0.1, 0.2)), 0.5, "missing"),
    (Gamma(), 1.0, "missing"),
    (Gamma(), 1.0, "zero"),
]


def assert_fits_agree(make_solver, likelihood, observed, start, max_iter=20, rtol=1e-9):
    """The same fit on strict arrays and on the cpu, and rows folded in on both."""
    strict = run(strict_problem(observed, likelihood), make_solver(), lambda: start, max_iter=max_iter, tol=0.0)
    solver = make_solver()
    with open_engine("cpu", 1) as engine:
        problem = Problem(engine, engine.place(observed, Side.ROWS, Side.COLUMNS), likelihood)
        here = run(problem, solver, lambda: start, max_iter=max_iter, tol=0.0)
        folded = fold_in(problem, solver, here.columns, here.rows.mean.mean(axis=0), max_iter=20, tol=1e-3)
    np.testing.assert_allclose(strict.trace["objective"], here.trace["objective"], rtol=1e-10)
    np.testing.assert_allclose(strict.rows.mean, here.rows.mean, rtol=rtol, atol=1e-3 * rtol)
    np.testing.assert_allclose(strict.columns.mean, here.columns.mean, rtol=rtol, atol=1e-3 * rtol)
    elsewhere = fold_in(
        strict_problem(observed, likelihood), solver, here.columns, here.rows.mean.mean(axis=0), max_iter=20, tol=1e-3
    )
    np.testing.assert_allclose(elsewhere.mean, folded.mean, rtol=rtol, atol=1e-3 * rtol)


@pytest.mark.parametrize(("solver", "beta", "unseen"), CASES)
def test_a_fit_on_other_arrays_equals_the_cpu(solver, beta, unseen):
    observed = observe(planted(12, 9, 2, random_state=0)[0], unseen=unseen)
    random = np.random.default_rng(1)
    start = random.random((12, 2)) + 0.1, random.random((9, 2)) + 0.1
    assert_fits_agree(lambda: solver, likelihood_for(beta), observed, start)


@pytest.mark.parametrize("likelihood", SMOOTHS.values(), ids=SMOOTHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["newton", "stochastic"])
def test_a_fit_down_slopes_on_other_arrays_equals_the_cpu(solver, weighted, likelihood):
    Y = levels(12, 9, blanks=False)
    observed = observe(Y, cell_weight=weights_for(Y) if weighted else None)
    ridge = Ridge(0.5, biases=True)
    start = [ridge.initialize(F, side) for F, side in zip(signed_start(12, 9, 2), Side, strict=True)]

    def make_solver():
        return Newton(ridge) if solver == "newton" else SGD(ridge, 0.1, 17, np.random.RandomState(0))

    # A few epochs: what rounding makes different grows, where hinges have corners and a row nearly gets worse.
    assert_fits_agree(make_solver, likelihood, observed, start, max_iter=5, rtol=1e-7)

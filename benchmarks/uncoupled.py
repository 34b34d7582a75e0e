"""Uncoupled data: two chains of 300 sweeps on SUSHI, cost by size, w of a million rows, "unmf" at ten million cells

SUSHI's 5,000 users by 12 groups where the data folder has them; else as many random cells. CPU seconds add up the
threads, and hardly depend on what else a machine is doing. Memory is the peak over the input, counted by tracemalloc;
the times of the same fits are taken without it. The programs beside ours do the same work: HiGHS the linear program of
w, L-BFGS the minimisation of which the paper speaks, NumPy and SciPy the updates of Eq. 5 over sparse matrices,
scikit-learn those of a dense matrix of as many cells.
"""

import warnings
from typing import Any

import numpy as np
from scipy import optimize, sparse
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import peak_of, seconds_of, table
from halfseen import Observed, Uncoupled, UncoupledNMF
from halfseen.datasets import load_sushi_groups
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.uncoupled.pseudo_observations import error_weights, pseudo_observations

K, ITERATIONS = 10, 20


def run() -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [*_sushi(), "", *_sizes(), "", *_weights(), "", *_ten_million()]


def _sushi() -> list[str]:
    """The whole fit, from the lists to W, H and the draws that are kept; the shortest of three."""
    name, X = _preferences()
    seen = Uncoupled.from_coupled(X, 12, random_state=0)
    rows = []
    for threads in (1, 2):
        model = UncoupledNMF(max_sweeps=300, random_state=0, n_jobs=threads)
        model.fit(seen)  # compiled
        clocks, sampling, cpus = [], [], []
        for _ in range(3):
            clock, cpu = seconds_of(lambda model=model: model.fit(seen))
            clocks.append(clock)
            cpus.append(cpu)
            sampling.append(model.trace_["seconds"][-1])
        held = peak_of(lambda model=model: model.fit(seen)) / 1e6
        rows.append((
            f"{threads} thread{'s' * (threads > 1)}", f"**{min(clocks):.2f}**", "4" if threads == 2 else "",
            f"{min(sampling):.2f}", f"{min(cpus):.2f}", f"{held:.0f}",
        ))  # fmt: skip
    first = f"{name}, {seen.n_answers:,} answers, {seen.n_comparisons:,} comparisons"
    return table((first, "fit, s", "goal", "sweeps of it, s", "CPU s", "peak, MB"), rows)


def _preferences() -> tuple[str, Any]:
    try:
        return "SUSHI", load_sushi_groups()
    except DataError:
        random = np.random.default_rng(0)
        X = np.round(2.7 + random.normal(size=(5000, 3)) @ random.normal(size=(3, 12)) / 2, 1)
        X[random.random(X.shape) < 0.43] = np.nan
        return "Random scores", X


def _sizes(questions: int = 5_000, n_cells: int = 12) -> list[str]:
    """Once, twice, ... as many questions, with their answers and comparisons: what 40 sweeps more take one thread."""
    rows, first = [], 0.0
    for times in (1, 2, 4, 8):
        seen = _planted(times * questions, 40, n_cells, 12)
        length = {"n_burn": 10, "n_draws": 10, "n_chains": 1}
        one, other = (UncoupledNMF(n_sweeps=n, max_sweeps=n, **length, random_state=0, n_jobs=1) for n in (20, 60))
        one.fit(seen)
        sweep = min(_cpu_of(other, seen) - _cpu_of(one, seen) for _ in range(3)) / 40
        first = first or sweep
        held = peak_of(lambda model=one, seen=seen: model.fit(seen)) / seen.n_asked
        rows.append((
            f"{seen.n_answers:,}", f"{seen.n_comparisons:,}", f"{1e3 * sweep:.1f}", f"**{sweep / first / times:.2f}**",
            f"{1e9 * sweep / seen.n_answers:.0f}", f"{held:.0f}",
        ))  # fmt: skip
    heads = ("answers", "comparisons", "CPU ms a sweep", "of 1, 2, 4, 8 times the first", "ns an answer",
             "peak, bytes a cell, 10 draws kept")  # fmt: skip
    return table(heads, rows)


def _cpu_of(model: UncoupledNMF, seen: Uncoupled) -> float:
    return seconds_of(lambda: model.fit(seen)).cpu


def _planted(questions: int, respondents: int, n_cells: int, n_comparisons: int) -> Uncoupled:
    """Positive values of rank 3, with noise; every question is asked of others."""
    random = np.random.default_rng(0)
    shifts = random.integers(0, respondents, questions)[:, None]
    columns = np.sort((shifts + 7 * np.arange(n_cells)) % respondents, axis=1)  # 7 has no divisor in common
    W, H = random.gamma(2.0, 1.0, (questions, 3)), random.gamma(2.0, 1.0, (respondents, 3))
    values = np.concatenate([
        np.einsum("rk,rck->rc", W[part], H[columns[part]]) + random.random((len(columns[part]), n_cells))
        for part in np.array_split(np.arange(questions), max(1, questions // 10_000))
    ])  # fmt: skip
    cells = Observed(
        np.arange(0, values.size + 1, n_cells), columns.reshape(-1), values.reshape(-1), (questions, respondents)
    )
    return Uncoupled.from_coupled(cells, n_comparisons, random_state=0)


def _weights(n: int = 1_000_000, size: int = 20, sample: int = 200) -> list[str]:
    """w of every row, beside programs that take one row after another: those of a sample."""
    random = np.random.default_rng(0)
    answers = np.sort(random.gamma(2.0, 1.0, (n, size)), axis=1)
    indptr = np.arange(0, n * size + 1, size)
    with Threads(2) as threads:
        error_weights(answers[:9].reshape(-1), indptr[:10], threads)
        ours = seconds_of(lambda: error_weights(answers.reshape(-1), indptr, threads))
        found = error_weights(answers[:sample].reshape(-1), indptr[: sample + 1], threads)[1]
    rows = [(f"ours, {n:,} rows of {size} answers", f"**{ours.clock:.2f}**", "10", f"{ours.cpu:.2f}", "", "")]
    for name, solve in (("HiGHS, by scipy.optimize.linprog", _by_highs), ("L-BFGS, by scipy.optimize", _by_lbfgs)):
        errors: list[float] = []
        cpu = seconds_of(lambda solve=solve, errors=errors: errors.extend(map(solve, answers[:sample]))).cpu
        above = float(np.mean(np.array(errors) / found) - 1)
        estimate = cpu / sample * n
        ratio = f"**{estimate / ours.cpu:,.0f}**"
        rows.append((f"{name}: from {sample} rows", "", "", f"{estimate:,.0f}", ratio, f"{above:.1%}"))
    return table(("w of Eq. 3", "s", "goal", "CPU s", "times as much", "error bound above ours"), rows)


def _by_highs(x: np.ndarray) -> float:
    """min sum of t,  -t <= x - 2 w_1 F - 2 w_2 (1 - F) <= t,  w >= 0."""
    F = np.arange(1, x.size + 1) / x.size
    A = 2 * np.column_stack([F, 1 - F])
    slack = np.eye(x.size)
    program = optimize.linprog(
        np.append(np.zeros(2), np.ones(x.size)), np.block([[-A, -slack], [A, -slack]]), np.append(-x, x)
    )
    return float(program.fun) / x.size


def _by_lbfgs(x: np.ndarray) -> float:
    F = np.arange(1, x.size + 1) / x.size
    A = 2 * np.column_stack([F, 1 - F])

    def error(w: np.ndarray) -> tuple[float, np.ndarray]:
        off = x - A @ w
        return float(np.abs(off).mean()), -A.T @ np.sign(off) / x.size

    start = np.full(2, x.mean() / 2)
    return float(optimize.minimize(error, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2).fun)


def _ten_million() -> list[str]:
    """100 cells a question, 1,000 respondents; 2 threads. Other programs are given the pseudo-observations."""
    rows = []
    for questions in (25_000, 50_000, 100_000):
        seen = _planted(questions, 1_000, 100, 12)
        model = UncoupledNMF(K, method="unmf", max_iter=ITERATIONS, tol=0.0, random_state=0, n_jobs=2)
        times = [seconds_of(lambda model=model, seen=seen: model.fit(seen)) for _ in range(2)]
        clock, cpu = min(one.clock for one in times), min(one.cpu for one in times)
        held = peak_of(lambda model=model, seen=seen: model.fit(seen))
        each = f"{1e9 * cpu / seen.n_asked / ITERATIONS:.0f}"
        rows.append((
            '"unmf"', f"{seen.n_asked:,}", f"**{clock:.1f}**", f"{cpu:.1f}", each, "",
            f"{held / 1e6:.0f}", f"**{held / seen.n_asked:.1f}**",
        ))  # fmt: skip
    heads = ("k = 10, 20 iterations", "cells", "s", "CPU s", "CPU ns a cell and iteration", "times as much", "peak, MB",
             "bytes a cell")  # fmt: skip
    return table(heads, [*rows, *_plain(seen, cpu)])


def _plain(seen: Uncoupled, ours: float) -> list[tuple[str, ...]]:
    """Eq. 5 in NumPy and SciPy on the same pseudo-observations, and scikit-learn on a dense matrix."""
    with Threads(2) as threads:
        w, _ = error_weights(seen.answers, seen.answer_indptr, threads)
    values = pseudo_observations(seen, w, "full").observed
    Z = sparse.csr_array((values.values, values.indices, values.indptr), shape=values.shape)
    random = np.random.default_rng(0)
    A, B = random.random((Z.shape[0], K)), random.random((Z.shape[1], K))
    fitted = sparse.csr_array((np.empty_like(Z.data), Z.indices, Z.indptr), shape=Z.shape)
    row_of_cell = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))

    def find() -> None:
        """x at the cells, in parts that fit the memory."""
        for part in np.array_split(np.arange(Z.nnz), 100):
            cells = slice(part[0], part[-1] + 1)
            fitted.data[cells] = np.einsum("ck,ck->c", A[row_of_cell[cells]], B[Z.indices[cells]])

    def iterate() -> None:
        find()
        A[:] *= (Z @ B) / (fitted @ B)
        find()
        B[:] *= (Z.T @ A) / (fitted.T @ A)

    one = seconds_of(iterate)
    dense = random.random((Z.nnz // Z.shape[1], Z.shape[1]))
    sklearn = NMF(K, solver="mu", max_iter=ITERATIONS, tol=0.0, init="random", random_state=0)
    whole = seconds_of(lambda: sklearn.fit_transform(dense))
    others = (
        ("Eq. 5 in NumPy and SciPy: from one", one.clock * ITERATIONS, one.cpu * ITERATIONS),
        ("scikit-learn, dense, no holes", *whole),
    )
    return [
        (name, f"{Z.nnz:,}", f"{clock:.1f}", f"{cpu:.1f}", f"{1e9 * cpu / Z.nnz / ITERATIONS:.0f}",
         f"**{cpu / ours:.2f}**", "", "") for name, clock, cpu in others
    ]  # fmt: skip

"""Laws of every engine: the numbers of plain NumPy, and the same bits in every run and on any number of threads."""

import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln

from halfseen.arrays import namespace
from halfseen.datasets.synthetic import skewed_cells
from halfseen.engines import AdagradState, RidgePenalty, Side, cpu, open_engine
from halfseen.io import observe
from halfseen.likelihoods import CompoundPoisson, Ordinal, Poisson, Squared, rules
from halfseen.likelihoods.rules import CellParams, Terms
from halfseen.observed import Observed
from halfseen.solvers import Penalty
from halfseen.solvers.base import Extrapolation, extrapolated
from halfseen.solvers.gamma import gamma_posterior
from halfseen.solvers.multiplicative import multiplied
from tests.engines.devices import torch_device
from tests.graded import oracle as graded
from tests.laws.cases import DECREMENTS, LIKELIHOODS, OWNED, SMOOTHS, half_seen, matrix, names, signed_start, start

RTOL = {np.float32: 3e-6, np.float64: 1e-13}
#: The same where a rule and its sums are computed in another order and precision.
RULE_RTOL = {np.float32: 2e-5, np.float64: 1e-11}
#: Below this, numbers may be rounded to 0.
TINY = float(np.finfo(np.float32).tiny)

#: Those with compiled passes, of levels and of values.
FUSED = [Ordinal(DECREMENTS), Poisson(), Squared(Ordinal(DECREMENTS)), Squared(Poisson())]
SWEPT = [*FUSED, *LIKELIHOODS, Ordinal(DECREMENTS, learned=False)]

each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_index = pytest.mark.parametrize("index", [np.int32, np.int64])
every_side = pytest.mark.parametrize("side", list(Side))

#: The parameters for which laws are checked in Triton's interpreter: it is slow.
INTERPRETED = {
    "engine": [("cuda", True)],
    "case": ["with empty rows and columns", "none"],
    "index": [np.int64],
    "likelihood": FUSED,
    "kind": ["plain"],
    "k": [5],
}


#: Without PyTorch one test says so, and not every law.
NAMES = ("cpu", "cuda") if find_spec("torch") else ("cpu",)


def test_there_is_a_gpu_or_an_interpreter():
    assert torch_device() in ("cuda", "cpu")


@pytest.fixture(
    params=[(name, in_pieces) for name in NAMES for in_pieces in (False, True)],
    ids=lambda param: f"{param[0]} {'in pieces' if param[1] else 'whole'}",
)
def engine(request, monkeypatch):
    """Every engine, which does everything in one piece, or in very many."""
    name, in_pieces = request.param
    if in_pieces:
        monkeypatch.setattr(cpu, "CELLS_PER_BLOCK", 5)
        monkeypatch.setattr(cpu, "BYTES_PER_CHUNK", 8 * 7)
        monkeypatch.setattr(cpu, "ENTRIES_PER_PRODUCT", 9)
    if name == "cpu":
        opened = open_engine("cpu", 2)
    else:
        given = request.node.callspec.params
        device = torch_device()
        if device == "cpu" and any(given.get(key, quick[0]) not in quick for key, quick in INTERPRETED.items()):
            pytest.skip("slow in Triton's interpreter")
        from halfseen.engines.cuda import CudaEngine

        opened = CudaEngine(device)
        if in_pieces:
            kernels = sys.modules["halfseen.engines.triton_kernels"]
            monkeypatch.setattr(kernels, "plan_rows", partial(kernels.plan_rows, cells_per_chunk=5))
            monkeypatch.setattr(kernels, "CHUNKS_PER_LAUNCH", 20)
            monkeypatch.setattr(kernels, "LEVELS_PER_PASS", 4)
            monkeypatch.setattr(kernels, "BYTES_PER_BATCH", 1000)
            monkeypatch.setattr(sys.modules["halfseen.engines.cuda"], "LEVELS_BY_MASK", 3)
    with opened as engine:
        yield engine


def one_seen():
    return Observed.from_cells([2], [1], [3.5], (4, 3))


def crowded():
    """One row with far more cells than all others, some rows with none."""
    rows, columns = skewed_cells(40, 300, 400, random_state=0)
    rows, columns = np.append(rows[rows != 7], np.full(300, 7)), np.append(columns[rows != 7], np.arange(300))
    return Observed.from_cells(rows, columns, np.arange(1.0, rows.size + 1), (45, 300))


CASES = {
    "with empty rows and columns": lambda: observe(half_seen()),
    "full": lambda: observe(half_seen(holes=0, blanks=False)),
    "one row": lambda: observe(half_seen(1, 30, zeros=False, blanks=False)),
    "one column": lambda: observe(half_seen(30, 1, zeros=False, blanks=False)),
    "one cell": one_seen,
    "none": lambda: Observed.from_cells([], [], [], (4, 3), allow_empty=True),
    "crowded": crowded,
}
every_case = pytest.mark.parametrize("case", CASES)


def cast(observed, dtype, index=np.int32):
    arrays = {"values": dtype, "indices": index, "indptr": index}
    return replace(observed, **{name: getattr(observed, name).astype(kind) for name, kind in arrays.items()})


def on(engine, *arrays):
    return [None if array is None else engine.asarray(array) for array in arrays]


def grid(observed, c):
    """A cell array as a matrix in double precision, 0 where no cell is."""
    return sparse.coo_array((c.astype(float), (observed.row_of_cell(), observed.indices)), observed.shape)


def products(observed, W, H):
    return (W.astype(float) @ H.T.astype(float))[observed.row_of_cell(), observed.indices]


def random_cells(observed, count=1, dtype=np.float64):
    return np.random.default_rng(3).uniform(0.5, 2, (count, observed.nnz)).astype(dtype)


def assert_close(found, expected, size, rtol):
    """Within `rtol` of a size, such as the sum of the magnitudes of the terms of each sum."""
    assert found.shape == np.shape(expected)
    error, largest = np.abs(found - expected), rtol * size + TINY
    assert np.all(error <= largest), np.max(error / largest)


# ---------------------------------------------------------------------------------------------------------------------
# products and sums


@every_case
@each_float
@each_index
def test_sddmm(engine, case, dtype, index):
    observed = cast(CASES[case](), dtype, index)
    W, H = start(*observed.shape, 5, dtype=dtype)
    x = engine.to_numpy(engine.sddmm(engine.place(observed), *on(engine, W, H)))
    assert x.dtype == dtype
    assert_allclose(x, products(observed, W, H), rtol=RTOL[dtype])


@every_case
@each_float
@each_index
@every_side
def test_spmm(engine, case, dtype, index, side):
    observed = cast(CASES[case](), dtype, index)
    (c,) = random_cells(observed, dtype=dtype)
    far = start(*observed.shape, 5, dtype=dtype)[1 if side is Side.ROWS else 0]
    sums = engine.to_numpy(engine.spmm(engine.place(observed, *Side), *on(engine, c, far), side))
    assert sums.dtype == dtype
    assert_allclose(sums, (grid(observed, c) if side is Side.ROWS else grid(observed, c).T) @ far, rtol=RTOL[dtype])


@every_case
@each_float
@each_index
@every_side
@pytest.mark.parametrize("k", [5])
def test_conjugate_gradients(engine, case, dtype, index, side, k):
    """As many steps as components lead to the solution of the normal equations of each row; one lowers the loss."""
    observed = cast(CASES[case](), dtype, index)
    curvature, pull = random_cells(observed, 2, dtype=dtype)
    near, far = signed_start(*observed.shape, k, dtype=dtype)[:: 1 if side is Side.ROWS else -1]
    gram, l2 = far.T @ far, np.linspace(0.5, 2.0, len(near)).astype(dtype)
    on_device = on(engine, curvature, pull, near, far, gram, l2)
    cells = engine.place(observed, *Side)
    c, s = (grid(observed, one).toarray() for one in (curvature, pull))
    c, s = (c, s) if side is Side.ROWS else (c.T, s.T)
    A = gram.astype(float) + np.einsum("ui,ia,ib->uab", c, far, far) + l2[:, None, None] * np.eye(k)
    b = np.einsum("ui,ia->ua", s, far)
    truth = np.linalg.solve(A, b[:, :, None])[:, :, 0]

    def loss(F):
        F = F.astype(float)
        return 0.5 * np.einsum("ua,uab,ub->u", F, A, F) - np.sum(F * b, axis=1)

    start_at = np.where(b.any(axis=1)[:, None], near, 0)
    for n_steps in (1, 3 * k):
        rows, total = engine.conjugate_gradients(cells, *on_device, side, n_steps)
        rows, (total,) = engine.to_numpy(rows), engine.fetch(total)
        assert rows.dtype == dtype
        assert_close(total, [loss(rows).sum()], np.abs(loss(near)).sum() + np.abs(loss(truth)).sum(), RULE_RTOL[dtype])
        assert np.all(loss(rows) <= loss(start_at) + RULE_RTOL[dtype] * (1 + np.abs(loss(start_at))))
    assert_close(rows, truth, np.abs(truth).max(initial=0) + 1e-3, 50 * RULE_RTOL[dtype])


def test_conjugate_gradients_of_a_row_that_is_too_long_for_the_cache():
    rng, m = np.random.default_rng(0), 30_000
    observed = Observed.from_cells(np.zeros(m, int), np.arange(m), np.ones(m), (1, m))
    c, s = rng.uniform(0.5, 2, (2, m))
    near, far = rng.normal(size=(1, 5)), rng.normal(size=(m, 5))
    with open_engine("cpu", 1) as engine:
        cells = engine.place(observed, Side.ROWS)
        rows, _ = engine.conjugate_gradients(cells, c, s, near, far, np.eye(5), np.ones(1), Side.ROWS, 20)
    assert_allclose(rows[0], np.linalg.solve(2 * np.eye(5) + (far.T * c) @ far, far.T @ s), rtol=1e-10)


@each_float
@pytest.mark.parametrize("entries", [0, 1, 31])
def test_column_sums_and_gram(engine, dtype, entries):
    F = np.random.default_rng(0).uniform(0, 1, (entries, 3)).astype(dtype)
    for verb, truth in ((engine.column_sums, F.sum(axis=0, dtype=float)), (engine.gram, F.T.astype(float) @ F)):
        found = engine.to_numpy(verb(engine.asarray(F)))
        assert found.dtype == dtype
        assert_allclose(found, truth, rtol=RTOL[dtype])


# ---------------------------------------------------------------------------------------------------------------------
# rules on arrays


def two_and_sums(factor, a, b):
    return Terms((a * b, factor * a - b), (a, b))


@each_float
@pytest.mark.parametrize("shape", [(0,), (1,), (23,), (23, 3), (2, 50)])
def test_map(engine, dtype, shape):
    a, b = (np.random.default_rng(seed).uniform(1, 2, shape).astype(dtype) for seed in (0, 1))
    arrays, totals = engine.map(two_and_sums, 4.0, *on(engine, a, b))
    for found, expected in zip(arrays, two_and_sums(4.0, a, b).arrays, strict=True):
        assert engine.to_numpy(found).dtype == dtype
        assert_array_equal(engine.to_numpy(found), expected)
    (totals,) = engine.fetch(totals)
    assert totals.dtype == np.float64
    assert_allclose(totals, [a.sum(dtype=float), b.sum(dtype=float)], rtol=1e-13)


def test_map_of_rows_into_numbers_without_totals(engine):
    a = np.random.default_rng(0).normal(size=(31, 3))
    rule = lambda _, a, b: Terms((namespace(a).max(a, axis=1),))  # noqa: E731
    (highest,), totals = engine.map(rule, None, engine.asarray(a), None)
    assert_array_equal(engine.to_numpy(highest), a.max(axis=1))
    assert totals is None


@pytest.mark.parametrize("n_levels", [1, 3, 40])
def test_sums_by_level(engine, n_levels):
    """After the totals; a level that no cell has is 0."""
    levels = np.random.default_rng(0).integers(0, max(1, n_levels - 1), 200).astype(float)
    a, b = np.random.default_rng(1).uniform(1, 2, (2, 200))
    _, totals = engine.map(
        lambda _, y, a, b: Terms((), (a,), (a, b)), None, *on(engine, levels, a, b), n_levels=n_levels
    )
    by_level = [np.bincount(levels.astype(int), values, n_levels) for values in (a, b)]
    assert_allclose(engine.fetch(totals)[0], np.concatenate([[a.sum()], *by_level]), rtol=1e-13)


def test_sums_are_in_double_precision(engine):
    """2^24 + 1 is no float32: a single-precision sum would forget every one of these ones."""
    ones = np.ones(1001, np.float32)
    ones[0] = 2**24
    levels, values = on(engine, np.zeros(1001, np.float32), ones)
    _, totals = engine.map(lambda _, y, a: Terms((), (a,), (a,)), None, levels, values, n_levels=1)
    assert_array_equal(engine.fetch(totals)[0], [2**24 + 1000] * 2)
    sums = engine.to_numpy(engine.column_sums(engine.asarray(np.column_stack([ones, 2 * ones]))))
    assert sums.dtype == np.float32
    assert_array_equal(sums, [2**24 + 1000, 2**25 + 2000])


def test_fetch(engine):
    vectors = [np.arange(size, dtype=float) for size in (3, 1, 0, 4)]
    for found, expected in zip(engine.fetch(*on(engine, *vectors)), vectors, strict=True):
        assert_array_equal(found, expected)
    assert_array_equal(engine.fetch(*on(engine, vectors[0]))[0], vectors[0])


@each_float
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*SMOOTHS, "own thresholds"])
def test_rules_of_smooth_likelihoods(engine, name, weighted, dtype):
    likelihood = SMOOTHS.get(name, OWNED)
    rng = np.random.default_rng(0)
    y, x = np.arange(200, dtype=dtype) % likelihood.n_codes, rng.uniform(-3, 3, 200).astype(dtype)
    rtol = 50 * RULE_RTOL[dtype]  # second derivatives are differences
    weight = rng.choice([0.5, 1.0, 3.0], 200).astype(dtype) if weighted else None
    for rule in (rules.quadratics, rules.divergences, rules.parameter_terms):
        arrays, totals = engine.map(rule, likelihood, *on(engine, y, x, weight), n_levels=likelihood.n_codes)
        terms = rule(likelihood, y, x, weight)
        for found, expected in zip(arrays, terms.arrays, strict=True):
            assert_close(engine.to_numpy(found), expected, np.abs(expected).max(), rtol)
        if totals is not None:
            assert_close(engine.fetch(totals)[0], *sums_and_sizes(y, terms, likelihood.n_codes), rtol)


def sums_and_sizes(levels, terms, n_levels):
    """The totals of a rule, those by level after them; and the same of the magnitudes of all terms."""
    return [
        np.concatenate(
            [[np.sum(of(total), dtype=float)] for total in terms.totals]
            + [np.bincount(levels.astype(int), of(values), n_levels) for values in terms.by_level]
        )
        for of in (np.asarray, np.abs)
    ]


@each_float
@pytest.mark.parametrize("one_row", [False, True])
def test_gamma_posterior(engine, one_row, dtype):
    """Compiled or not, it is the rule of its name; small entries become 0."""
    rng = np.random.default_rng(5)
    P, geometric = 10 ** rng.uniform(-3, 3, (2, 13, 5)).astype(dtype)
    geometric[::3, 0], P[1] = 0.0, 0.0
    Q = 10 ** rng.uniform(-2, 2, (13, 5)).astype(dtype)
    b = (rng.gamma(1.0, size=(13, 1)) + 0.1).astype(dtype)
    for a in (0.3, 0.002):
        full, row = (None, Q[0]) if one_row else (Q, None)
        params = a, float(gammaln(a))
        arrays, totals = engine.map(gamma_posterior, (*params, *on(engine, row)), *on(engine, P, full, geometric, b))
        in_double = (None if array is None else array.astype(float) for array in (row, P, full, geometric, b))
        terms = gamma_posterior((*params, next(in_double)), *in_double)
        for found, expected in zip(map(engine.to_numpy, arrays), terms.arrays, strict=True):
            assert found.dtype == dtype
            assert_allclose(found, flushed(expected, dtype), rtol=RULE_RTOL[dtype])
        assert (engine.to_numpy(arrays[3]) == 0).any() == (a < 0.01)
        assert_close(engine.fetch(totals)[0], *sums_and_sizes(P, terms, 0), RULE_RTOL[dtype])


@each_float
@pytest.mark.parametrize("one_row", [False, True])
@pytest.mark.parametrize("exponent", [1.0, 0.5, 0.7])
@pytest.mark.parametrize("penalty", [Penalty(), Penalty(0.1, 0.2)], ids=str)
def test_multiplied(engine, one_row, exponent, penalty, dtype):
    """The same. Without a push, entries stay where they are."""
    F, P, Q = np.random.default_rng(0).gamma(1.0, 1.0, (3, 17, 5)).astype(dtype)
    P[3], Q[5], F[:, 2] = 0.0, 0.0, 0.0
    F[1, 1], F[7] = np.finfo(dtype).tiny, 2 * np.finfo(dtype).tiny ** 0.5
    full, row = (None, Q[5] if not penalty else Q[7]) if one_row else (Q, None)
    (found,), _ = engine.map(multiplied, (penalty, exponent, *on(engine, row)), *on(engine, F, P, full))
    in_double = (None if array is None else array.astype(float) for array in (row, F, P, full))
    (expected,) = multiplied((penalty, exponent, next(in_double)), *in_double).arrays
    assert engine.to_numpy(found).dtype == dtype
    assert_allclose(engine.to_numpy(found), flushed(expected, dtype), rtol=RULE_RTOL[dtype])


@each_float
@pytest.mark.parametrize("multiplies", [False, True])
def test_extrapolated(engine, multiplies, dtype):
    """The same, of two arrays: entries that were 0, or are, and those on their way there."""
    now, before = np.random.default_rng(0).gamma(1.0, 1.0, (2, 2, 17, 5)).astype(dtype)
    now[0, 3], before[0, 5], now[1, :, 2], before[1, :, 2] = 0.0, 0.0, 0.0, 0.0
    now[1, 7], before[1, 8] = np.finfo(dtype).tiny, np.finfo(dtype).tiny
    params = Extrapolation(0.7, multiplies, 10.0)
    found, _ = engine.map(extrapolated, params, *on(engine, *now, *before))
    expected = extrapolated(params, *now.astype(float), *before.astype(float)).arrays
    for one, truth in zip(map(engine.to_numpy, found), expected, strict=True):
        assert one.dtype == dtype
        assert_close(one, flushed(truth, dtype) if multiplies else truth, np.abs(truth) + 1, RULE_RTOL[dtype])


def flushed(factor, dtype):
    return np.where(factor < float(np.finfo(dtype).tiny) ** 0.5, 0.0, factor)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of NumPy, with which Triton's interpreter computes
def test_steps_hide_no_number_that_is_not_finite(engine, bad):
    F, P, Q, b = np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 1))
    P[1, 1] = bad
    for exponent in (1.0, 0.5, 0.7):
        (found,), _ = engine.map(multiplied, (Penalty(), exponent, None), *on(engine, F, P, Q))
        assert_array_equal(engine.to_numpy(found)[1], [1.0, bad])
    (*_, geometric), totals = engine.map(gamma_posterior, (1.0, 0.0, None), *on(engine, P, Q, F, b))
    assert not np.isfinite(engine.to_numpy(geometric)[1, 1])
    assert not np.isfinite(engine.fetch(totals)[0][0])


# ---------------------------------------------------------------------------------------------------------------------
# passes over the cells

#: Each rule, and whether it has a meaning for a likelihood.
RULES = {
    rules.pulls: lambda likelihood: likelihood.push_is_constant,
    rules.pushes: lambda likelihood: likelihood.push_is_constant,
    rules.pulls_and_pushes: lambda likelihood: True,
    rules.costs: lambda likelihood: True,
    rules.counts: lambda likelihood: likelihood.learns,
    rules.means: lambda likelihood: likelihood.learns,
    rules.counts_and_means: lambda likelihood: likelihood.learns,
}
SIDES = [(), (Side.ROWS,), (Side.COLUMNS,), (Side.ROWS, Side.COLUMNS)]


def assert_swept(engine, observed, likelihood, W, H):
    """Passes with every rule along any sides are the rule at x, and sums of its terms."""
    rtol = RULE_RTOL[W.dtype.type]
    cells, placed = engine.place(observed, *Side), on(engine, W, H)
    params = CellParams(likelihood, likelihood.unseen if observed.unseen == "zero" else None)
    n_levels = 0 if likelihood.highest is None else likelihood.highest + 1
    first = observed.is_first_at_cell if observed.unseen == "zero" else None
    x = products(observed, W, H).astype(W.dtype)
    for rule in (rule for rule, has_meaning in RULES.items() if has_meaning(likelihood)):
        terms = rule(params, observed.values, x, observed.weights, first)
        for sides in SIDES:
            near_is_none = rule is rules.pushes and len(sides) == 1
            factors = [None if near_is_none and side in sides else F for side, F in zip(Side, placed, strict=True)]
            sums = engine.sweep(cells, rule, params, *factors, *sides, n_levels=n_levels)
            for side, found, far in ((Side.ROWS, sums.rows, H), (Side.COLUMNS, sums.columns, W)):
                assert len(found) == len(terms.arrays) * (side in sides)
                for one, c in zip(map(engine.to_numpy, found), terms.arrays, strict=False):
                    of, size = (grid(observed, a) if side is Side.ROWS else grid(observed, a).T for a in (c, abs(c)))
                    assert one.dtype == W.dtype
                    assert_close(one, of @ far, size @ far, rtol)
            if not terms.totals or (sides == (Side.COLUMNS,) and sums.totals is None):
                assert sums.totals is None
                continue
            (totals,), (truth, size) = engine.fetch(sums.totals), sums_and_sizes(observed.values, terms, n_levels)
            # the sum over unseen zeros comes first, and has no meaning where they are missing
            begin = int(params.zeros is None and rule in (rules.means, rules.counts_and_means))
            assert_close(totals[begin:], truth[begin:], size[begin:], rtol)


@each_float
@pytest.mark.parametrize("kind", ["plain", "weighted", "repeated"])
@pytest.mark.parametrize("unseen", ["missing", "zero"])
@pytest.mark.parametrize("likelihood", SWEPT, ids=names)
def test_sweep(engine, likelihood, unseen, kind, dtype):
    if likelihood.needs - engine.offers or (unseen == "zero" and likelihood.unseen is None):
        pytest.skip("not of this engine, or without zeros")
    observed = matrix(likelihood, unseen, kind, dtype)
    W, H = start(*observed.shape, 5, dtype=dtype)
    W[::2] *= np.geomspace(1e-30, 1, len(W[::2]), dtype=dtype)[:, None]
    assert_swept(engine, observed, likelihood, W, H)


@pytest.mark.parametrize("likelihood", FUSED, ids=names)
@every_case
@each_index
def test_sweep_of_any_cells(engine, likelihood, case, index):
    observed = cast(CASES[case](), np.float64, index)
    observed = replace(observed, values=np.floor(observed.values) % 6)
    assert_swept(engine, observed, likelihood, *start(*observed.shape, 5))


@pytest.mark.parametrize("k", [1, 2, 7, 16, 33, 70])
def test_any_number_of_components(engine, k):
    """With many, rows of cells are processed in several groups."""
    observed = replace(crowded(), values=np.floor(crowded().values) % 6)
    W, H = start(*observed.shape, k)
    for likelihood in FUSED:
        assert_swept(engine, observed, likelihood, W, H)
    cells, (W_, H_, c) = engine.place(observed, *Side), on(engine, W, H, observed.values)
    assert_allclose(engine.to_numpy(engine.sddmm(cells, W_, H_)), products(observed, W, H), rtol=1e-13)
    dense = grid(observed, observed.values)
    assert_allclose(engine.to_numpy(engine.spmm(cells, c, H_, Side.ROWS)), dense @ H, rtol=1e-13)
    assert_allclose(engine.to_numpy(engine.spmm(cells, c, W_, Side.COLUMNS)), dense.T @ W, rtol=1e-13)


# ---------------------------------------------------------------------------------------------------------------------
# steps of solvers


def ridge(k, side=Side.ROWS):
    """A penalty on every component, centres off 0, and one component that is fixed."""
    fixed = np.zeros(k)
    fixed[-1 if side is Side.ROWS else -2] = 1.0
    return RidgePenalty(np.linspace(0.5, 1.5, k), np.linspace(-0.3, 0.4, k), fixed)


NO_PENALTY = RidgePenalty(np.zeros(2), np.zeros(2), np.zeros(2))


@every_case
@each_float
@each_index
@every_side
@pytest.mark.parametrize("k", [2, 5])
def test_newton_step(engine, case, dtype, index, side, k):
    observed = cast(CASES[case](), dtype, index)
    slope, curvature = random_cells(observed, 2, dtype)
    slope, curvature[::5] = slope - 1, 0
    W, H = signed_start(*observed.shape, k, dtype=dtype)
    near, far = (W, H) if side is Side.ROWS else (H, W)
    cells, penalty = engine.place(observed, *Side), ridge(k, side)
    moved = engine.to_numpy(engine.newton_step(cells, *on(engine, slope, curvature, near, far), penalty, side))
    dense = [grid(observed, c).toarray() for c in (slope, curvature)]
    dense = dense if side is Side.ROWS else [c.T for c in dense]
    truth = graded.newton_half(*dense, near.astype(float), far.astype(float), *penalty)
    assert moved.dtype == dtype
    assert_allclose(moved, truth, rtol=300 * RTOL[dtype], atol=300 * RTOL[dtype])
    assert_array_equal(moved[:, penalty.fixed == 1], near[:, penalty.fixed == 1])


@each_float
@every_side
def test_newton_step_of_what_is_not_determined(engine, dtype, side):
    """Without a penalty, a row without cells stays where it is; so do components that its cells do not depend on."""
    W, H = signed_start(4, 3, 2, dtype=dtype)
    near, far = (W, H.copy()) if side is Side.ROWS else (H, W.copy())
    far[:, 1] = 0
    cells = engine.place(cast(one_seen(), dtype), *Side)
    slope, curvature = np.ones(1, dtype), np.full(1, 2.0, dtype)
    moved = engine.to_numpy(engine.newton_step(cells, *on(engine, slope, curvature, near, far), NO_PENALTY, side))
    mine, other = (2, 1) if side is Side.ROWS else (1, 2)
    expected = near.copy()
    expected[mine, 0] -= 0.5 / far[other, 0]
    assert_allclose(moved, expected, rtol=10 * RTOL[dtype])


@pytest.fixture
def sgd(engine):
    if "sgd" not in engine.offers:
        pytest.skip("not offered")


@every_case
@each_float
@each_index
@pytest.mark.usefixtures("sgd")
def test_sddmm_at_and_adagrad_step(engine, case, dtype, index):
    observed = cast(CASES[case](), dtype, index)
    rng = np.random.default_rng(1)
    W, H = signed_start(*observed.shape, 4, dtype=dtype)
    which, slope = rng.permutation(observed.nnz), rng.normal(size=observed.nnz).astype(dtype)
    cells, half = engine.place(observed, *Side), which[: observed.nnz // 2 + 1]
    x = engine.sddmm_at(cells, half, W, H)
    assert x.dtype == dtype
    assert_allclose(x, products(observed, W, H)[half], rtol=10 * RTOL[dtype], atol=10 * RTOL[dtype])
    past = tuple(rng.uniform(0, 0.5, size) for size in observed.shape)
    counts = observed.seen_per_row(), observed.seen_per_column()
    penalties = tuple(ridge(4, side) for side in Side)
    at = list(zip(observed.row_of_cell()[which], observed.indices[which], strict=True))
    truth = graded.descended(at, slope, W, H, 0.1, past, counts, penalties)
    engine.adagrad_step(cells, which, slope, W, H, AdagradState(0.1, *past, np.empty(0)), counts, penalties)
    for found, expected in zip((W, H, *past), (*truth[:2], *truth[2]), strict=True):
        assert_allclose(found, expected, rtol=1000 * RTOL[dtype], atol=1000 * RTOL[dtype])
    assert W.dtype == H.dtype == dtype


@pytest.mark.usefixtures("sgd")
def test_adagrad_step_without_any_slope_stays(engine):
    """0 / sqrt(0) is no step."""
    observed = one_seen()
    W, H = signed_start(4, 3, 2)
    before, state = (W.copy(), H.copy()), AdagradState(0.1, np.zeros(4), np.zeros(3), np.empty(0))
    counts = observed.seen_per_row(), observed.seen_per_column()
    engine.adagrad_step(engine.place(observed), np.array([0]), np.zeros(1), W, H, state, counts, (NO_PENALTY,) * 2)
    assert_array_equal(W, before[0])
    assert_array_equal(H, before[1])


# ---------------------------------------------------------------------------------------------------------------------
# bits


def everything(engine, observed, W, H):
    """The results of all operations."""
    cells, (W, H) = engine.place(observed, *Side), on(engine, W, H)
    x = engine.sddmm(cells, W, H)
    results = [x, engine.spmm(cells, cells.y, H, Side.ROWS), engine.spmm(cells, cells.y, W, Side.COLUMNS)]
    results += [engine.column_sums(W), engine.gram(W)]
    for likelihood in (*FUSED, CompoundPoisson(0.7)):
        for rule in (rule for rule, has_meaning in RULES.items() if has_meaning(likelihood)):
            for sides in SIDES:
                sums = engine.sweep(cells, rule, CellParams(likelihood, None), W, H, *sides, n_levels=6)
                results += [*sums.rows, *sums.columns, *([] if sums.totals is None else [sums.totals])]
    for side, near, far in ((Side.ROWS, W, H), (Side.COLUMNS, H, W)):
        results.append(engine.newton_step(cells, x, cells.y, near, far, ridge(5, side), side))
    for rule, params, arrays in (
        (gamma_posterior, (0.3, 1.0, None), (W, W, W, W[:, :1])),
        (multiplied, (Penalty(), 0.7, None), (W, W, W)),
        (two_and_sums, 2.0, (cells.y, x)),
    ):
        found, totals = engine.map(rule, params, *arrays)
        results += [*found, *([] if totals is None else [totals])]
    return [engine.to_numpy(array) for array in results]


@each_float
@pytest.mark.parametrize("case", ["crowded"])
def test_the_same_bits_again_and_on_any_number_of_threads(engine, case, dtype):
    observed = CASES[case]()
    observed = cast(replace(observed, values=np.floor(observed.values) % 6), dtype)
    W, H = start(*observed.shape, 5, dtype=dtype)
    first = everything(engine, observed, W, H)
    for n_jobs in (1, 2, 3):
        with open_engine("cpu", n_jobs) if engine.name == "cpu" else engine as again:
            for one, other in zip(everything(again, observed, W, H), first, strict=True):
                assert_array_equal(one, other)


@pytest.mark.parametrize("likelihood", [Poisson(), Ordinal(DECREMENTS)], ids=["poisson", "ordinal"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_totals_of_a_pass_hide_no_x_that_is_not_finite(likelihood, bad):
    observed = observe(np.array([[1.0, 2.0], [3.0, 1.0]]))
    W, H = np.ones((2, 2)), np.ones((2, 2))
    W[0, 0] = bad
    with open_engine("cpu", 1) as engine:
        for rule in (rules.pulls, rules.costs, rules.pulls_and_pushes):
            sums = engine.sweep(
                engine.place(observed, *Side), rule, rules.CellParams(likelihood, None), W, H, n_levels=6
            )
            assert not np.isfinite(sums.totals[0]), rule

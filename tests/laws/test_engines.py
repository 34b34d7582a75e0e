"""What every engine's verbs must give: the oracle's numbers, and the same bits however many threads there are."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from halfseen.datasets.synthetic import skewed_cells
from halfseen.engines import ENGINES, AdagradState, RidgePenalty, Side, cpu, open_engine
from halfseen.io import observe
from halfseen.observed import Observed
from tests.graded import oracle as graded
from tests.laws.cases import half_seen, signed_start, start

RTOL = {np.float32: 3e-6, np.float64: 1e-13}

each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_index = pytest.mark.parametrize("index", [np.int32, np.int64])
every_side = pytest.mark.parametrize("side", list(Side))


@pytest.fixture(params=ENGINES)
def engine(request):
    with open_engine(request.param, 2) as engine:
        yield engine


@pytest.fixture(params=[False, True], ids=["whole", "in pieces"])
def pieces(request, monkeypatch):
    """Everything in one piece, or in very many."""
    if request.param:
        monkeypatch.setattr(cpu, "CELLS_PER_BLOCK", 5)
        monkeypatch.setattr(cpu, "BYTES_PER_CHUNK", 8 * 7)


def none_seen():
    return Observed.from_cells([], [], [], (4, 3), allow_empty=True)


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
    "none": none_seen,
    "crowded": crowded,
}
every_case = pytest.mark.parametrize("case", CASES)


def cast(observed, dtype, index):
    return replace(
        observed,
        values=observed.values.astype(dtype),
        indices=observed.indices.astype(index),
        indptr=observed.indptr.astype(index),
    )


def factors(observed, dtype, k=5):
    return start(*observed.shape, k, dtype=dtype)


@every_case
@each_float
@each_index
@pytest.mark.usefixtures("pieces")
def test_dots(engine, case, dtype, index):
    observed = cast(CASES[case](), dtype, index)
    W, H = factors(observed, dtype)
    x = engine.to_numpy(engine.sddmm(engine.place(observed, *Side), engine.asarray(W), engine.asarray(H)))
    assert x.dtype == dtype
    assert_allclose(x, (W @ H.T)[observed.row_of_cell(), observed.indices], rtol=RTOL[dtype])


@every_case
@each_float
@each_index
@every_side
@pytest.mark.usefixtures("pieces")
def test_spread(engine, case, dtype, index, side):
    observed = cast(CASES[case](), dtype, index)
    c = np.random.default_rng(3).uniform(0.5, 2, observed.nnz).astype(dtype)
    dense = np.zeros(observed.shape)
    dense[observed.row_of_cell(), observed.indices] = c
    far = factors(observed, dtype)[1 if side is Side.ROWS else 0]
    sums = engine.to_numpy(engine.spmm(engine.place(observed, *Side), c, engine.asarray(far), side))
    assert sums.dtype == dtype
    assert_allclose(sums, (dense if side is Side.ROWS else dense.T) @ far, rtol=RTOL[dtype])


@every_case
@each_float
@every_side
@pytest.mark.parametrize("c", [1.0, 2.5])
@pytest.mark.usefixtures("pieces")
def test_spread_of_one_number_for_all_cells(engine, case, dtype, side, c):
    observed = cast(CASES[case](), dtype, np.int32)
    cells = engine.place(observed, *Side)
    far = engine.asarray(factors(observed, dtype)[1 if side is Side.ROWS else 0])
    everywhere = engine.spmm(cells, np.full(observed.nnz, c, dtype), far, side)
    sums = engine.to_numpy(engine.spmm(cells, c, far, side))
    assert sums.dtype == dtype
    assert_array_equal(sums, engine.to_numpy(everywhere))


@every_case
@each_float
@each_index
@every_side
@pytest.mark.usefixtures("pieces")
def test_spread_of_two_at_once(engine, case, dtype, index, side):
    observed = cast(CASES[case](), dtype, index)
    cells = engine.place(observed, *Side)
    c, d = np.random.default_rng(3).uniform(0.5, 2, (2, observed.nnz)).astype(dtype)
    far = engine.asarray(factors(observed, dtype, 9)[1 if side is Side.ROWS else 0])
    for pair in ((c, d), (c, 2.0), (c, 0.0), (1.0, d)):
        for one, found in zip(pair, engine.spmm_both(cells, *pair, far, side), strict=True):
            assert_allclose(
                engine.to_numpy(found), engine.to_numpy(engine.spmm(cells, one, far, side)), rtol=RTOL[dtype]
            )


def test_spread_of_nothing_is_the_number_zero(engine):
    observed = one_seen()
    assert engine.spmm(engine.place(observed, *Side), 0.0, factors(observed, np.float64)[1], Side.ROWS) == 0


def test_dots_may_be_written_over_something_else(engine):
    observed = crowded()
    W, H = factors(observed, np.float64)
    cells, old = engine.place(observed, Side.ROWS), np.full(observed.nnz, np.nan)
    assert engine.sddmm(cells, W, H, into=old) is old
    assert_array_equal(old, engine.sddmm(cells, W, H))


@pytest.mark.parametrize("k", [1, 2, 7, 16, 33])
@pytest.mark.usefixtures("pieces")
def test_any_number_of_components(engine, k):
    observed = crowded()
    W, H = factors(observed, np.float64, k)
    cells = engine.place(observed, *Side)
    dense = np.nan_to_num(observed.to_dense())
    assert_allclose(engine.sddmm(cells, W, H), (W @ H.T)[observed.row_of_cell(), observed.indices], rtol=1e-13)
    assert_allclose(engine.spmm(cells, cells.y, H, Side.ROWS), dense @ H, rtol=1e-13)
    assert_allclose(engine.spmm(cells, cells.y, W, Side.COLUMNS), dense.T @ W, rtol=1e-13)


@each_float
@pytest.mark.parametrize("shape", [(0,), (1,), (23,), (23, 3), (2, 50)])
@pytest.mark.usefixtures("pieces")
def test_each(engine, dtype, shape):
    a, b = (np.random.default_rng(seed).uniform(1, 2, shape).astype(dtype) for seed in (0, 1))
    product, root, four = engine.map(lambda a, b: (a * b, np.sqrt(a), 4.0), a, b)
    assert_array_equal(product, a * b)
    assert_array_equal(root, np.sqrt(a))
    assert four == 4.0
    assert product.dtype == dtype
    assert_array_equal(engine.map(np.subtract, a, b), a - b)


@pytest.mark.usefixtures("pieces")
def test_each_may_write_over_what_it_reads(engine):
    a, b = np.arange(1.0, 40.0), np.full(39, 2.0)
    expected = a * b, a + b
    result = engine.map(lambda a, b: (a * b, a + b), a, b, into=(None, a))
    assert result[1] is a
    for found, wanted in zip(result, expected, strict=True):
        assert_array_equal(found, wanted)


@each_float
@pytest.mark.parametrize("size", [0, 1, 23, 1000])
@pytest.mark.usefixtures("pieces")
def test_tally(engine, dtype, size):
    """The vectors of all pieces are added up, the other results are put together."""
    a, b = np.random.default_rng(0).uniform(1, 2, (2, size)).astype(dtype)
    sums, product = engine.map_reduce(lambda a, b: (np.array([a.sum(), b.sum(), a.size]), a * b), a, b, into=(None,))
    assert_allclose(sums, [a.sum(dtype=float), b.sum(dtype=float), size], rtol=RTOL[dtype])
    assert sums.dtype == np.float64
    assert_array_equal(product, a * b)
    (alone,) = engine.map_reduce(lambda a: (np.array([a.sum()]),), a)
    assert_allclose(alone, [a.sum(dtype=float)], rtol=RTOL[dtype])


@pytest.mark.usefixtures("pieces")
def test_each_may_turn_rows_into_numbers(engine):
    a = np.random.default_rng(0).normal(size=(31, 3))
    assert_array_equal(engine.map(lambda a: a.max(axis=1), a), a.max(axis=1))


@pytest.mark.usefixtures("pieces")
def test_sums_are_taken_in_double_precision(engine):
    """2^24 + 1 is no float32: a single-precision sum would forget every one of these ones."""
    ones = np.ones(1001, np.float32)
    ones[0] = 2**24
    assert engine.sum(lambda a: a, ones) == 2**24 + 1000
    sums = engine.to_numpy(engine.column_sums(np.column_stack([ones, 2 * ones])))
    assert sums.dtype == np.float32
    assert_array_equal(sums, [2**24 + 1000, 2**25 + 2000])


@each_float
def test_total_of_a_rule(engine, dtype, pieces):
    a, b = np.random.default_rng(0).uniform(1, 2, (2, 1000)).astype(dtype)
    assert_allclose(engine.sum(np.multiply, a, b), (a.astype(float) * b).sum(), rtol=RTOL[dtype])
    assert engine.sum(np.multiply, a[:0], b[:0]) == 0


@each_float
@pytest.mark.parametrize("entries", [1, 9, 1 << 18])
def test_gram(engine, dtype, entries, monkeypatch):
    """Also where the products of several pieces are added up."""
    monkeypatch.setattr(cpu, "ENTRIES_PER_PRODUCT", entries)
    F = np.random.default_rng(0).uniform(0, 1, (31, 3)).astype(dtype)
    gram = engine.to_numpy(engine.gram(engine.asarray(F)))
    assert gram.dtype == dtype
    assert_allclose(gram, F.astype(float).T @ F.astype(float), rtol=RTOL[dtype])


def on_a_grid(observed, cells):
    """A cell array as a dense matrix, 0 where no cell is."""
    dense = np.zeros(observed.shape)
    dense[observed.row_of_cell(), observed.indices] = cells
    return dense


def penalty_of(k, side=Side.ROWS, dtype=np.float64):
    """A penalty on every component, a centre off 0, and one component that is held."""
    held = np.zeros(k)
    held[-1 if side is Side.ROWS else -2] = 1.0
    return RidgePenalty(np.linspace(0.5, 1.5, k), np.linspace(-0.3, 0.4, k), held)


@every_case
@each_float
@each_index
@every_side
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.usefixtures("pieces")
def test_newton(engine, case, dtype, index, side, k):
    observed = cast(CASES[case](), dtype, index)
    rng = np.random.default_rng(3)
    slope, curvature = rng.normal(size=observed.nnz).astype(dtype), rng.uniform(0, 2, observed.nnz).astype(dtype)
    curvature[::5] = 0
    W, H = signed_start(*observed.shape, k, dtype=dtype)
    near, far = (W, H) if side is Side.ROWS else (H, W)
    penalty = penalty_of(k, side)
    cells = engine.place(observed, *Side)
    moved = engine.to_numpy(engine.newton_step(cells, slope, curvature, near, far, penalty, side))
    dense = [on_a_grid(observed, c) for c in (slope, curvature)]
    dense = dense if side is Side.ROWS else [c.T for c in dense]
    truth = graded.newton_half(*dense, near.astype(float), far.astype(float), *penalty)
    assert moved.dtype == dtype
    assert_allclose(moved, truth, rtol=300 * RTOL[dtype], atol=300 * RTOL[dtype])
    held = penalty.fixed == 1
    assert_array_equal(moved[:, held], near[:, held])


@each_float
@every_side
def test_newton_leaves_alone_what_nothing_is_known_of(engine, dtype, side):
    """Without a penalty, a row without cells stays where it is; so do directions that no cell speaks of."""
    observed = cast(one_seen(), dtype, np.int32)
    W, H = signed_start(4, 3, 2, dtype=dtype)
    near, far = (W, H.copy()) if side is Side.ROWS else (H, W.copy())
    far[:, 1] = 0
    nothing = RidgePenalty(np.zeros(2), np.zeros(2), np.zeros(2))
    slope, curvature = np.ones(1, dtype), np.full(1, 2.0, dtype)
    moved = engine.to_numpy(
        engine.newton_step(engine.place(observed, *Side), slope, curvature, near, far, nothing, side)
    )
    mine, other = (2, 1) if side is Side.ROWS else (1, 2)
    others = np.arange(len(near)) != mine
    assert_array_equal(moved[others], near[others])
    assert_array_equal(moved[:, 1], near[:, 1])
    assert_allclose(moved[mine, 0], near[mine, 0] - 0.5 / far[other, 0], rtol=10 * RTOL[dtype])


@every_case
@each_float
@each_index
def test_dots_at_some_cells(engine, case, dtype, index):
    observed = cast(CASES[case](), dtype, index)
    W, H = signed_start(*observed.shape, 5, dtype=dtype)
    which = np.random.default_rng(1).permutation(observed.nnz)[: observed.nnz // 2 + 1]
    x = engine.to_numpy(engine.sddmm_at(engine.place(observed, *Side), which, W, H))
    assert x.dtype == dtype
    truth = (W.astype(float) @ H.T.astype(float))[observed.row_of_cell(), observed.indices][which]
    assert_allclose(x, truth, rtol=10 * RTOL[dtype], atol=10 * RTOL[dtype])


@every_case
@each_float
@each_index
def test_descend(engine, case, dtype, index):
    observed = cast(CASES[case](), dtype, index)
    rng = np.random.default_rng(1)
    W, H = signed_start(*observed.shape, 4, dtype=dtype)
    which = rng.permutation(observed.nnz)
    slope = rng.normal(size=which.size).astype(dtype)
    past = tuple(rng.uniform(0, 0.5, size) for size in observed.shape)
    seen = observed.seen_per_row(), observed.seen_per_column()
    pulls = tuple(penalty_of(4, side) for side in Side)
    cells = list(zip(observed.row_of_cell()[which], observed.indices[which], strict=True))
    truth = graded.descended(cells, slope, W, H, 0.1, past, seen, pulls)
    state = AdagradState(0.1, *past, np.empty(0))
    engine.adagrad_step(engine.place(observed, *Side), which, slope, W, H, state, seen, pulls)
    for found, wanted in zip((W, H, *past), (*truth[:2], *truth[2]), strict=True):
        assert_allclose(found, wanted, rtol=1000 * RTOL[dtype], atol=1000 * RTOL[dtype])
    assert W.dtype == H.dtype == dtype


def test_descend_without_any_slope_stays(engine):
    """0 / sqrt(0) is no step."""
    observed = one_seen()
    W, H = signed_start(4, 3, 2)
    before = W.copy(), H.copy()
    none = RidgePenalty(np.zeros(2), np.zeros(2), np.zeros(2))
    past, seen = (np.zeros(4), np.zeros(3)), (observed.seen_per_row(), observed.seen_per_column())
    engine.adagrad_step(
        engine.place(observed, *Side),
        np.array([0]),
        np.zeros(1),
        W,
        H,
        AdagradState(0.1, *past, np.empty(0)),
        seen,
        (none,) * 2,
    )
    assert_array_equal(W, before[0])
    assert_array_equal(H, before[1])


@each_float
def test_special_functions(engine, dtype):
    a = np.geomspace(1e-3, 1e5, 60, dtype=dtype).reshape(12, 5)
    digamma, log_gamma = engine.digamma_and_log_gamma(a)
    assert_allclose(digamma, special.digamma(a.astype(float)), rtol=10 * RTOL[dtype], atol=10 * RTOL[dtype])
    assert_allclose(log_gamma, special.gammaln(a.astype(float)), rtol=10 * RTOL[dtype], atol=10 * RTOL[dtype])


@each_float
@pytest.mark.parametrize("name", ENGINES)
def test_the_same_bits_on_any_number_of_threads(name, dtype, monkeypatch):
    monkeypatch.setattr(cpu, "CELLS_PER_BLOCK", 11)
    monkeypatch.setattr(cpu, "BYTES_PER_CHUNK", 8 * 13)
    observed = cast(crowded(), dtype, np.int32)
    W, H = factors(observed, dtype)
    results = []
    for threads in (1, 2, 3):
        with open_engine(name, threads) as engine:
            cells = engine.place(observed, *Side)
            x = engine.sddmm(cells, W, H)
            results.append([
                x,
                engine.spmm(cells, cells.y, H, Side.ROWS),
                engine.spmm(cells, cells.y, W, Side.COLUMNS),
                engine.map(np.divide, cells.y, x),
                engine.sum(np.divide, cells.y, x),
                engine.column_sums(W),
                *(engine.newton_step(cells, x, cells.y, *near_far, penalty_of(5, side), side)
                  for side, near_far in ((Side.ROWS, (W, H)), (Side.COLUMNS, (H, W)))),
            ])  # fmt: skip
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            assert_array_equal(one, other)

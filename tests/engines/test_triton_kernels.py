"""The Triton kernels against plain loops in double precision, on a GPU if there is one, else in the interpreter.

Only what the laws of engines do not ask: other sizes, launches in parts, half precision, tighter bounds.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import digamma

from tests.engines.devices import torch_device

DEVICE = torch_device()

import torch  # noqa: E402

from halfseen.engines import triton_kernels as kernels  # noqa: E402

DTYPES = ["float32", "float64"]
#: Relative accuracy of a sum of some tens of terms.
RTOL = {"float32": 2e-5, "float64": 1e-12}
COMPONENTS = [1, 33, 128]


class Case(NamedTuple):
    """Cells in an order, with indices into near (rows) and far, and for each its position in row order."""

    indptr: np.ndarray
    rows: np.ndarray
    indices: np.ndarray
    order: np.ndarray
    near: np.ndarray
    far: np.ndarray

    def plan(self, cells_per_chunk=40):
        return kernels.plan_rows(self.indptr, DEVICE, cells_per_chunk)

    @property
    def x(self):
        """The product at every cell, in the order of this case."""
        return np.array([self.near[u] @ self.far[i] for u, i in zip(self.rows, self.indices, strict=True)])

    def sums(self, c):
        """The sum of c * far along each row; c in the order of this case."""
        out = np.zeros(self.near.shape)
        for p, (u, i) in enumerate(zip(self.rows, self.indices, strict=True)):
            out[u] += c[p] * self.far[i]
        return out


def make_case(k, dtype, order="rows", scale=1.0):
    """6 rows, two of them empty and one of 88 cells, which is cut; or the columns of the transposed matrix."""
    random = np.random.default_rng(k)
    is_seen = random.random((6, 90)) < 0.04
    is_seen[2], is_seen[[1, 4]], is_seen[:, [3, 4]] = True, False, False
    rows, indices = np.nonzero(is_seen)
    near, far = (scale * random.gamma(1.0, size=(n, k)).astype(dtype).astype(float) / k**0.5 for n in (6, 90))
    near, far = near.astype(dtype).astype(float), far.astype(dtype).astype(float)
    position = np.arange(rows.size)
    if order == "columns":  # where the cells of the columns are in row order
        position[np.lexsort((rows, indices))] = np.arange(rows.size)
    return Case(np.append(0, np.cumsum(is_seen.sum(1))), rows, indices, position, near, far)


def to_device(array, dtype=None):
    return torch.from_numpy(np.array(array, dtype)).to(DEVICE)


def indices_of(case):
    return to_device(case.indices, np.int32)


def factors(case, dtype):
    return to_device(case.near, dtype), to_device(case.far, dtype)


def flat(result):
    if isinstance(result, tuple):
        return [array for part in result for array in flat(part)]
    return [result]


def twice(function, *args, **options):
    """The result as NumPy arrays, after checking that a second run gives the same bits."""
    first, second = ([array.cpu().numpy() for array in flat(function(*args, **options))] for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))
    return first


def assert_close(actual, expected, dtype, rtol=None):
    """Within `rtol` of the largest entry of each row: sums over many terms."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    tolerance = (rtol or RTOL[dtype]) * np.abs(expected).max(axis=-1, keepdims=True, initial=0.0) + floor(dtype, 1)
    assert np.all(np.abs(actual - expected) <= tolerance), np.abs((actual - expected) / tolerance).max()


everywhere = pytest.mark.parametrize("order", ["rows", "columns"])
both_dtypes = pytest.mark.parametrize("dtype", DTYPES)
all_k = pytest.mark.parametrize("k", COMPONENTS)


def test_chunks_cover_every_cell_once_longest_first():
    indptr = np.array([5, 5, 38, 41, 57, 74])
    plan = kernels.plan_rows(indptr, DEVICE, 16)
    first, count, row, target = (getattr(plan, name).cpu().numpy() for name in ("first", "count", "row", "target"))
    assert np.all(np.diff(count) <= 0)
    assert count.max() == 16
    cells = [(p, u) for b, c, u in zip(first, count, row, strict=True) for p in range(b, b + c)]
    assert sorted(cells) == [(p, u) for u in range(5) for p in range(indptr[u], indptr[u + 1])]
    assert row[count == 0].tolist() == [0]
    # a cut row's parts lie in consecutive slots, in the order of their cells
    assert plan.cut_row.tolist() == [1, 4]
    assert plan.cut_count.tolist() == [3, 2]
    assert plan.n_slots == 5
    for u, slot, parts in zip(plan.cut_row.tolist(), plan.cut_slot.tolist(), plan.cut_count.tolist(), strict=True):
        by_slot = [first[target == plan.n_rows + slot + part].item() for part in range(parts)]
        assert by_slot == sorted(first[row == u])
    is_whole = ~np.isin(row, plan.cut_row.cpu().numpy())
    np.testing.assert_array_equal(target[is_whole], row[is_whole])


@everywhere
@both_dtypes
@all_k
def test_products_and_sums(k, dtype, order):
    case = make_case(k, dtype, order)
    near, far = factors(case, dtype)
    plan, indices = case.plan(), indices_of(case)
    (x,) = twice(kernels.sddmm, plan, indices, near, far)
    np.testing.assert_allclose(x, case.x, rtol=RTOL[dtype])
    c, d = np.random.default_rng(0).normal(size=(2, case.rows.size)).astype(dtype)  # in row order
    permutation = to_device(case.order, np.int64 if k == 33 else np.int32)
    expected = case.sums(c[case.order])
    (sums,) = twice(kernels.spmm, plan, indices, to_device(c), far, permutation)
    assert_close(sums, expected, dtype, 10 * RTOL[dtype])
    assert not sums[np.diff(case.indptr) == 0].any()
    (sums,) = twice(kernels.spmm, plan, indices, to_device(c[case.order]), far)
    assert_close(sums, expected, dtype, 10 * RTOL[dtype])
    of_c, of_d = twice(kernels.spmm, plan, indices, (to_device(c), to_device(d)), far, permutation)
    assert_close(of_c, expected, dtype, 10 * RTOL[dtype])
    assert_close(of_d, case.sums(d[case.order]), dtype, 10 * RTOL[dtype])
    (sums,) = twice(kernels.spmm, plan, indices, None, far)
    assert_close(sums, case.sums(np.ones(c.size)), dtype)
    levels, table_row = np.arange(c.size) % 5, np.array([0.3, 0.0, 2.5, 1.0, 7.0])
    (sums,) = twice(kernels.level_sums, plan, indices, to_device(levels, np.uint8), to_device(table_row), far)
    assert_close(sums, case.sums(table_row[levels]), dtype)


def floor(dtype, root):
    return float(np.finfo(dtype).smallest_normal) ** (1 / root)


def poisson(y, x, dtype, table):
    above = max(x, floor(dtype, 2))
    log_ratio = np.log(max(y, floor(dtype, 2)) / above)
    return y / above, 1.0, y * np.log(above), y * log_ratio - y + x


def ordinal(y, x, dtype, table):
    decrement, steep, theta, push = table[:, int(y)]
    risen = -np.expm1(-steep * max(x, floor(dtype, 2)))
    cost = theta * x - np.log(risen)
    return decrement / risen, push, push * x - cost, cost


def swept(case, y, kind, table, dtype, unseen, n_levels):
    """Sums and statistics of `sweep`, cell by cell."""
    rule = ordinal if kind.endswith("ordinal") else poisson
    is_squared = kind.startswith("squared")
    pulls, pushes, totals = [], [], np.zeros(3)
    by_level = np.zeros((2, n_levels))
    for value, x in zip(y, case.x, strict=True):
        pull, push, gain, cost = rule(value, x * x if is_squared else x, dtype, table)
        if is_squared:
            pull, push = 2 * max(x, floor(dtype, 4)) * pull, 2 * x * push
        power = is_squared
        if unseen is not None:
            power, scale = unseen
            push -= scale * x if power else scale
            cost -= scale * x * x / 2 if power else scale * x
        totals += gain, cost, x * x if power else x
        by_level[:, int(value)] += pull * x / (2 if is_squared else 1), x * x if is_squared else x
        pulls.append(pull)
        pushes.append(push)
    return case.sums(pulls), case.sums(pushes), totals, by_level


def ordinal_table(n_levels):
    """Decrement, steepness, theta and push of each level, as `Ordinal._by_level`."""
    decrements = np.random.default_rng(n_levels).gamma(1.0, size=n_levels - 1)
    theta = np.append(np.cumsum(decrements[::-1])[::-1], 0.0)
    return np.array([np.append(0.0, decrements), np.append(np.inf, decrements), theta, np.append(theta[0], theta[:-1])])


@pytest.mark.parametrize("kind", kernels.KINDS)
@everywhere
@both_dtypes
@all_k
def test_sweep(k, dtype, order, kind):
    case = make_case(k, dtype, order)
    near, far = factors(case, dtype)
    y = np.random.default_rng(1).integers(0, 5, case.rows.size)
    table = ordinal_table(5).astype(dtype)
    unseen = {0: None, 1: (1, 2.0 * table[2, 0]) if kind.startswith("squared") else (0, table[2, 0])}[k % 2]
    arguments = case.plan(), indices_of(case), to_device(y, np.int8), kind, to_device(table), near, far
    pulls, pushes, totals, by_level = swept(case, y, kind, table.astype(float), dtype, unseen, 5)
    everything = kernels.TOTALS + kernels.BY_LEVEL
    of_pull, of_push, statistics = twice(
        kernels.sweep, *arguments, sums=("pull", "push"), statistics=everything, unseen=unseen
    )
    assert_close(of_pull, pulls, dtype)
    assert_close(of_push, pushes, dtype)
    assert statistics.dtype == np.float64
    np.testing.assert_allclose(statistics[:3], totals, rtol=RTOL[dtype], atol=RTOL[dtype] * y.size)
    np.testing.assert_allclose(statistics[3:].reshape(2, 5), by_level, rtol=RTOL[dtype])
    # fewer results, other sizes of a tile
    (alone, few) = twice(kernels.sweep, *arguments, statistics=("counts", "cost"), unseen=unseen, cells=8)
    assert_close(alone, pulls, dtype)
    np.testing.assert_allclose(few, statistics[[1, 3, 4, 5, 6, 7]], rtol=RTOL[dtype], atol=RTOL[dtype] * y.size)
    (only,) = twice(kernels.sweep, *arguments, sums=(), statistics=("x",), unseen=unseen)
    np.testing.assert_allclose(only, totals[2:], rtol=RTOL[dtype])


@both_dtypes
@pytest.mark.parametrize("kind", kernels.KINDS)
@pytest.mark.parametrize("scale", [1e-12, 0.3])
def test_sweep_near_zero(scale, kind, dtype):
    """1 - exp(-z) keeps its relative accuracy for the smallest z, and floors are those of the likelihoods."""
    case = make_case(1, dtype, scale=scale)
    case.near[0] = 0.0
    y = np.arange(case.rows.size) % 4
    table = ordinal_table(4).astype(dtype)
    near, far = factors(case, dtype)
    arguments = case.plan(), indices_of(case), to_device(y, np.int16), kind, to_device(table), near, far
    *sums, statistics = twice(kernels.sweep, *arguments, sums=("push", "pull"), statistics=("gain", "cost", "counts"))
    pulls, pushes, totals, by_level = swept(case, y, kind, table.astype(float), dtype, None, 4)
    rtol = {"float32": 3e-6, "float64": 1e-13}[dtype]
    assert_close(sums[0], pushes, dtype, rtol)
    np.testing.assert_allclose(sums[1], pulls, rtol=rtol, atol=1e-300)
    np.testing.assert_allclose(statistics[:2], totals[:2], rtol=rtol, atol=rtol * y.size * 5)
    np.testing.assert_allclose(statistics[2:], by_level[0], rtol=rtol, atol=1e-30)


def test_sweep_of_real_values_without_a_table():
    case = make_case(5, "float64")
    y = np.random.default_rng(2).gamma(1.0, size=case.rows.size)
    y[::7] = 0.0
    near, far = factors(case, "float64")
    of_pull, statistics = twice(
        kernels.sweep, case.plan(), indices_of(case), to_device(y), "poisson", None, near, far, statistics=("gain",)
    )
    pulls, _, totals, _ = swept(case, np.array(y), "poisson", None, "float64", None, 99)
    assert_close(of_pull, pulls, "float64")
    np.testing.assert_allclose(statistics, totals[:1], rtol=1e-12)


def test_more_levels_and_chunks_than_one_launch(monkeypatch):
    monkeypatch.setattr(kernels, "LEVELS_PER_PASS", 4)
    monkeypatch.setattr(kernels, "CHUNKS_PER_LAUNCH", 3)
    case = make_case(5, "float64")
    y, table = np.arange(case.rows.size) % 11, ordinal_table(11)
    near, far = factors(case, "float64")
    arguments = case.plan(), indices_of(case), to_device(y, np.int8), "ordinal", to_device(table), near, far
    of_pull, statistics = twice(kernels.sweep, *arguments, statistics=("gain", "counts", "means"))
    pulls, _, totals, by_level = swept(case, y, "ordinal", table, "float64", None, 11)
    assert_close(of_pull, pulls, "float64")
    np.testing.assert_allclose(statistics, np.append(totals[0], by_level), rtol=1e-12)


def test_far_factor_in_half_precision():
    case = make_case(33, "float32")
    far = to_device(case.far, np.float32).to(torch.bfloat16)
    case = case._replace(far=far.cpu().to(torch.float64).numpy())
    y, table = np.arange(case.rows.size) % 5, ordinal_table(5)
    near = to_device(case.near, np.float32)
    of_pull, _ = kernels.sweep(
        case.plan(), indices_of(case), to_device(y, np.int8), "ordinal", to_device(table), near, far
    )
    pulls, *_ = swept(case, y, "ordinal", table, "float32", None, 5)
    assert_close(of_pull[0].cpu().numpy(), pulls, "float32")


def test_no_rows():
    plan, nothing, far = (
        kernels.plan_rows(np.zeros(1, int), DEVICE),
        to_device([], np.int32),
        to_device(np.ones((2, 3))),
    )
    assert kernels.spmm(plan, nothing, None, far).shape == (0, 3)
    table = to_device(ordinal_table(4))
    assert kernels.sweep(plan, nothing, nothing, "ordinal", table, far[:0], far, statistics=("x",))[1].tolist() == [0.0]


def solve(A, g, fixed):
    """As `kernels.steps._solve`: components that are fixed or not determined are left out, one after another."""
    k = len(g)
    lowest = np.diag(A).max() * np.finfo(A.dtype).eps * k
    kept: list[int] = []
    for a in range(k):
        pivot = A[a, a] - (A[a, kept] @ np.linalg.solve(A[np.ix_(kept, kept)], A[kept, a]) if kept else 0.0)
        if not fixed[a] and pivot > lowest:
            kept.append(a)
    out = np.zeros(k)
    out[kept] = np.linalg.solve(A[np.ix_(kept, kept)], g[kept])
    return out


@everywhere
@both_dtypes
@pytest.mark.parametrize("k", [1, 5, 33, *[128] * (DEVICE == "cuda")])  # minutes in the interpreter
def test_newton_step(k, dtype, order):
    case = make_case(k, dtype, order)
    near, far = factors(case, dtype)
    random = np.random.default_rng(3)
    slope, curvature = random.normal(size=(2, case.rows.size)).astype(dtype)
    curvature = curvature**2
    arrays = to_device(slope), to_device(curvature)
    order_array = to_device(case.order)
    g, A = case.sums(slope[case.order]), np.zeros((len(case.near), k, k))
    for p, (u, i) in enumerate(zip(case.rows, case.indices, strict=True)):
        A[u] += curvature[case.order[p]] * np.outer(case.far[i], case.far[i])
    got_g, got_A = twice(kernels.normal_equations, case.plan(), indices_of(case), *arrays, far, order_array)
    assert_close(got_g, g, dtype, 10 * RTOL[dtype])
    assert_close(got_A, A, dtype)
    part = slice(1, 4)
    of_part = kernels.normal_equations(case.indptr, indices_of(case), *arrays, far, order_array, part)[1]
    assert_close(of_part.cpu().numpy(), A[part], dtype)
    # the first component is fixed
    l2, centre, fixed = np.full(k, 0.7), random.normal(size=k), np.zeros(k)
    if k > 1:
        fixed[0] = 1.0
    expected = [
        case.near[u] - solve(A[u] + np.diag(l2), g[u] + l2 * (case.near[u] - centre), fixed)
        for u in range(len(case.near))
    ]
    batches = kernels.plan_batches(case.indptr, k, torch.float64, DEVICE, size=3 * k * k * 8)
    assert len(batches) > 1
    penalty = [to_device(array) for array in (l2, centre, fixed)]
    (moved,) = twice(kernels.newton_step, batches, indices_of(case), *arrays, near, far, *penalty, order_array)
    assert_close(moved, expected, dtype, {"float32": 2e-4, "float64": 1e-11}[dtype])
    if k > 1:
        np.testing.assert_array_equal(moved[:, 0], case.near[:, 0].astype(dtype))


def test_newton_step_of_components_that_are_not_determined():
    """Without a penalty, a row moves the components that its cells determine; an empty one does not move."""
    # 0 and 1 in pairs: a pivot is at least 1, or 0 but for the last bits
    pairs = np.eye(5)[np.arange(90) % 5] + np.eye(5)[(np.arange(90) // 5 + 1) % 5]
    case = make_case(5, "float64")._replace(far=pairs)
    near, far = factors(case, "float64")
    ones = np.ones(case.rows.size)
    batches = kernels.plan_batches(case.indptr, 5, torch.float64, DEVICE)
    zeros = to_device(np.zeros(5))
    arrays = indices_of(case), to_device(ones), to_device(ones), near, far, zeros, zeros, zeros
    (moved,) = twice(kernels.newton_step, batches, *arrays)
    g = case.sums(ones)
    for u in range(6):
        rows = case.far[case.indices[case.rows == u]]
        step = solve(rows.T @ rows, g[u], np.zeros(5)) if len(rows) else np.zeros(5)
        np.testing.assert_allclose(moved[u], case.near[u] - step, rtol=1e-12, atol=1e-12)


def test_normal_equations_of_128_components_and_not_more():
    case = make_case(128, "float32")
    c = to_device(np.ones(case.rows.size), np.float32)
    (g, A) = twice(kernels.normal_equations, case.plan(), indices_of(case), c, c, factors(case, "float32")[1])
    rows = case.far[case.indices[case.rows == 2]]
    assert_close(A[2], rows.T @ rows, "float32")
    assert_close(g[2], rows.sum(axis=0), "float32")
    with pytest.raises(ValueError, match="at most 128"):
        kernels.normal_equations(case.plan(), indices_of(case), c, c, torch.ones((90, 129), device=DEVICE))


@both_dtypes
@pytest.mark.parametrize("tile_rows", [1, 4, None])
def test_top_k(tile_rows, dtype):
    random = np.random.default_rng(4)
    W, H = random.integers(-1, 3, size=(6, 3)).astype(dtype), random.integers(-1, 2, size=(40, 3)).astype(dtype)  # ties
    W[1] = -0.0
    H[5], H[7] = np.nan, -np.inf
    W[0], H[:, 1] = [0, 1, 0], np.where(np.isfinite(H[:, 1]), np.abs(H[:, 1]), H[:, 1])
    hidden = [[], [0, 39, 5], list(range(38)), list(range(40)), [1], []]
    indptr, columns = np.append(0, np.cumsum([len(part) for part in hidden])), np.concatenate(hidden)
    with np.errstate(invalid="ignore"):
        x = W.astype(float) @ H.T.astype(float)
    device_arrays = to_device(W), to_device(H), 9, to_device(indptr), to_device(columns, np.int32)
    best, scores = twice(kernels.top_k, *device_arrays, tile_rows)
    assert best.shape == (6, 9)
    for u in range(6):
        left = [i for i in range(40) if i not in hidden[u] and x[u, i] > -np.inf]
        expected = sorted(left, key=lambda i: (-x[u, i], i))[:9]
        missing = 9 - len(expected)
        assert best[u].tolist() == expected + [-1] * missing
        np.testing.assert_array_equal(scores[u], [*x[u, expected], *[np.nan] * missing])
    assert kernels.top_k(*device_arrays[:2], 50)[0].shape == (6, 40)


@both_dtypes
def test_gamma_posterior_of_extreme_shapes(dtype):
    """Geometric means keep their accuracy until they are flushed to 0, and large shapes do not overflow."""
    shapes = np.append(np.geomspace(0.004, 5.0, 300), np.geomspace(5.0, 1e15, 100)).astype(dtype)[None, :]
    zeros = np.zeros_like(shapes)
    arguments = to_device(shapes), to_device(zeros), to_device(np.ones_like(shapes)), to_device(np.ones(1, dtype)), 1e-9
    shape, _, _, new, gain, _ = twice(kernels.gamma_posterior, *arguments)
    expected = np.exp(digamma(shape.astype(float)))
    is_flushed = expected < floor(dtype, 2)
    assert is_flushed.any() == (dtype == "float32")
    assert not new[is_flushed].any()
    np.testing.assert_allclose(new[~is_flushed], expected[~is_flushed], rtol=2e-6 if dtype == "float32" else 3e-14)
    assert np.isfinite(gain).all()

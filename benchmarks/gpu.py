"""On a GPU: data of the size of MovieLens 20M, beside all processors of the same machine

138,493 x 26,744 with twenty million skewed cells of ten levels, which come from 16 components, in float32, k = 128.
Times of kernels are by CUDA events, those of iterations the median of differences in the trace, without acceleration;
compiling is not counted. Needs a GPU and PyTorch, and nothing beside what halfseen needs.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import halfseen as hs
from benchmarks.measuring import table
from halfseen import Observed
from halfseen.engines import Side, open_engine
from halfseen.errors import DataWarning, EngineError
from halfseen.estimators.base import prepare
from halfseen.likelihoods import rules
from halfseen.solvers import Problem

#: Rows, columns, cells and components.
RATINGS, K = (138_493, 26_744, 20_000_000), 128
#: Of the table with missing cells, and of the comparison of both engines.
HOLES, K_OF_HOLES = (200_948, 84_432, 33_000_000), 20
SMALL, K_OF_SMALL = (2_000, 800, 80_000), 16
#: Of the fit to convergence.
MAX_ITER = 1000
#: Fits that must have the same bits, of a hundred after which no memory may be held.
N_SAME = 10
#: Iterations before both engines are compared.
N_COMPARED = 50
#: Where the data are made.
DEVICE = "cuda"
#: Iterations on the GPU and on the processors.
ITERATIONS = {"cuda": 20, "cpu": 4}
#: Rows ranked on the processors.
RANKED_ON_CPU = 1 << 14


def run() -> Iterator[str]:
    try:
        engine: Any = open_engine("cuda")
    except EngineError as error:
        yield f"No GPU was measured. {error}"
        return
    import torch

    with warnings.catch_warnings():
        for category in (ConvergenceWarning, DataWarning):
            warnings.simplefilter("ignore", category)
        started = perf_counter()
        yield f"{engine.describe()}; {cpu_count()} processors; PyTorch {torch.__version__}."
        yield ""
        ratings = skewed_levels(*RATINGS)
        passes = _sweeps(engine, ratings)
        yield from _table((f"a pass over the cells, k = {K}", "along rows, ms", "along columns, ms", "both"), passes)
        yield from _table((f"an iteration, k = {K}", "cuda, ms", "cpu, ms", "times as fast"), _iterations(ratings))
        yield from _table(("from end to end", "found", "more"), _convergence(ratings))
        del ratings, passes
        holes = skewed_levels(*HOLES, unseen="missing")
        yield from _table(("an iteration with missing cells", "cuda, ms", "cpu, ms", "times as fast"), _missing(holes))
        del holes
        yield from _table(("memory and bits", "found", "at most"), _repeated())
        yield from _table((f"difference after {N_COMPARED} iterations", "float64", "float32"), _differences())
        yield f"All of it took {perf_counter() - started:.0f} s."


def _table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """A table whose rows are shown as they come."""
    yield from table(header, ())
    for row in rows:
        yield from table((), [row])[2:]
    yield ""


def skewed_levels(n: int, m: int, nnz: int, unseen: str = "zero", dtype: Any = np.float32) -> Observed:
    """Levels 1 to 10 at skewed cells, made on the GPU: the same in every run on one kind of GPU."""
    import torch

    random = torch.Generator(DEVICE).manual_seed(0)

    def uniform(*size: int) -> Any:
        return torch.rand(*size, device=DEVICE, generator=random)

    def draw(size: int, power: float, count: int) -> Any:
        """Positions by a power law of their ranks."""
        bounds = torch.cumsum((torch.arange(size, device=DEVICE, dtype=torch.float64) + 20.0) ** -power, 0)
        drawn = torch.searchsorted(bounds, uniform(count).to(torch.float64) * bounds[-1])
        return torch.randperm(size, device=DEVICE, generator=_seeded(size))[drawn.clamp(max=size - 1)]

    cells = torch.empty(0, dtype=torch.int64, device=DEVICE)
    while len(cells) < nnz:
        cells = torch.unique(torch.cat([cells, draw(n, 0.6, nnz // 2) * m + draw(m, 0.9, nnz // 2)]))
    cells = cells[torch.randperm(len(cells), device=DEVICE, generator=random)[:nnz].sort().values]
    rows, columns = cells // m, cells % m
    W, H = uniform(n, 16) ** 4, uniform(m, 16) ** 4
    x = torch.cat([(W[rows[p]] * H[columns[p]]).sum(1) for p in torch.arange(nnz, device=DEVICE).split(1 << 22)])
    x = x + 0.3 * x.std() * torch.randn(nnz, device=DEVICE, generator=random)
    steps = torch.quantile(x[:: max(1, nnz // 1_000_000)], torch.linspace(0.1, 0.9, 9, device=DEVICE))
    values = 1 + torch.bucketize(x, steps)
    indptr = np.append(0, np.cumsum(torch.bincount(rows, minlength=n).cpu().numpy()))
    host = columns.to(torch.int32).cpu().numpy(), values.cpu().numpy().astype(dtype)
    del cells, rows, columns, x, values, W, H
    torch.cuda.empty_cache()
    return Observed(indptr.astype(np.int32), *host, (n, m), unseen=unseen)


def _seeded(seed: int) -> Any:
    import torch

    return torch.Generator(DEVICE).manual_seed(seed)


def _event_ms(work: Callable[[], Any], repeats: int = 20) -> float:
    """The median time on the GPU, after three runs to warm up."""
    import torch

    times = []
    for _ in range(3 + repeats):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        work()
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after))
    return float(np.median(times[3:]))


def _sweeps(engine: Any, ratings: Observed) -> Iterator[tuple[str, ...]]:
    """Passes over the cells, and no more."""
    random = np.random.default_rng(0)
    W, H = (engine.asarray(random.gamma(1.0, 1.0, (size, K)).astype(np.float32)) for size in ratings.shape)
    for estimator, what, rule in (
        (hs.OrdNMF(K), "ordinal: pulls and statistics; along columns pulls", rules.pulls),
        (hs.OrdNMF(K), "ordinal: sums of E[x] by level", rules.means),
        (hs.PoissonFactorization(K), "Poisson: pulls and statistics; along columns pulls", rules.pulls),
        (hs.SquaredOrdNMF(K, level_weight=None), "squared ordinal: pulls, pushes and cost", rules.pulls_and_pushes),
    ):
        prepared = prepare(estimator, ratings)
        problem = Problem(engine, engine.place(prepared.cells, *Side), prepared.likelihood)

        def ms(*sides: Side, problem: Problem = problem, rule: Any = rule) -> float:
            return _event_ms(lambda: problem.sweep(rule, W, H, *sides))

        if rule is rules.means:
            yield what, f"{ms():.2f}", "", ""
            continue
        along_rows = ms(Side.ROWS)
        # of pulls the statistics are made along rows only; pulls and pushes are those of a half-step
        along_columns = ms(*Side) - along_rows if rule is rules.pulls else ms(Side.COLUMNS)
        yield what, f"{along_rows:.2f}", f"{along_columns:.2f}", f"**{along_rows + along_columns:.2f}**"


def _seconds_per_iteration(make: Callable[..., Any], observed: Observed, engine: str) -> float:
    """The median, after a first iteration, which compiles."""
    model = make(engine=engine, max_iter=1 + ITERATIONS[engine], tol=0.0, random_state=0, accelerate=False)
    return float(np.median(np.diff(model.fit(observed).trace_["seconds"])))


def _row_of_both(what: str, make: Callable[..., Any], observed: Observed) -> tuple[str, ...]:
    cuda, cpu = (1e3 * _seconds_per_iteration(make, observed, engine) for engine in ("cuda", "cpu"))
    return what, f"**{cuda:.2f}**", f"{cpu:.0f}", f"{cpu / cuda:.0f}"


def _iterations(ratings: Observed) -> Iterator[tuple[str, ...]]:
    yield _row_of_both("OrdNMF", partial(hs.OrdNMF, K), ratings)
    yield _row_of_both("PoissonFactorization", partial(hs.PoissonFactorization, K), ratings)
    yield _row_of_both("SquaredOrdNMF", partial(hs.SquaredOrdNMF, K), ratings)
    yield _row_of_both("SquaredOrdNMF, level_weight=None", partial(hs.SquaredOrdNMF, K, level_weight=None), ratings)


def _missing(holes: Observed) -> Iterator[tuple[str, ...]]:
    yield _row_of_both(
        f"WeightedNMF, Kullback-Leibler, {holes.nnz:,} cells, k = {K_OF_HOLES}",
        partial(hs.WeightedNMF, K_OF_HOLES),
        holes,
    )


def _convergence(ratings: Observed) -> Iterator[tuple[str, ...]]:
    """From a file of the parts of a CSR matrix to factors on the host; the memory of it; recommendations."""
    import torch

    n, m = ratings.shape
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.npz"
        np.savez(path, indptr=ratings.indptr, indices=ratings.indices, data=ratings.values)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        started = perf_counter()
        with np.load(path) as parts:
            X = sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=(n, m))
        read = perf_counter()
        model = hs.OrdNMF(K, tol=1e-5, max_iter=MAX_ITER, engine="cuda", random_state=0).fit(X)
        done = perf_counter()
        peak = torch.cuda.max_memory_allocated() - held
    iterating = model.trace_["seconds"][-1]
    more = f"{model.status_}, {model.n_iter_} iterations in {iterating:.2f} s; reading took {read - started:.2f} s"
    yield "OrdNMF to tol 1e-5, .npz to factors on the host", f"**{done - started:.2f} s**", more
    bound = 16 * ratings.nnz + 12 * (n + m) * K * 4
    more = f"{peak / bound:.2f} of cells x 16 bytes + 12 factors, which are {bound / 1e9:.2f} GB"
    yield "peak of device memory in it", f"**{peak / 1e9:.2f} GB**", more
    model.recommend([0], n=100)
    for engine, count in (("cuda", n), ("cpu", min(n, RANKED_ON_CPU))):
        model.set_params(engine=engine)
        started = perf_counter()
        model.recommend(np.arange(count), n=100)
        seconds = perf_counter() - started
        more = "" if count == n else f"{seconds * n / count:.1f} s for all at this rate"
        yield f"recommend 100 to {count:,} rows, {engine}", f"**{seconds:.2f} s**", more


def _repeated() -> Iterator[tuple[str, str, str]]:
    """Ten fits with the same bits, a hundred without growth."""
    import torch

    small = skewed_levels(*SMALL)

    def bits(engine: str = "cuda") -> str:
        fitted = hs.OrdNMF(K, max_iter=20, tol=0.0, engine=engine, random_state=0).fit(small)
        return sha256(fitted.W_.tobytes() + fitted.H_.tobytes() + fitted.trace_["objective"].tobytes()).hexdigest()

    yield f"different results of {N_SAME} fits (OrdNMF, k = {K})", str(len({bits() for _ in range(N_SAME)})), "1"
    held = torch.cuda.memory_allocated()
    for _ in range(100 - N_SAME):
        bits()
    yield f"bytes of device memory held after {100 - N_SAME} more", f"{torch.cuda.memory_allocated() - held:,}", "0"


def _differences() -> Iterator[tuple[str, str, str]]:
    """|F_cuda - F_cpu| / |F_cpu| of the factor that differs more."""
    zeros = {dtype: skewed_levels(*SMALL, dtype=dtype) for dtype in (np.float64, np.float32)}
    holes = {dtype: skewed_levels(*SMALL, unseen="missing", dtype=dtype) for dtype in zeros}
    cases: tuple[tuple[str, Callable[..., Any], Any], ...] = (
        ("WeightedNMF, kullback-leibler, missing cells", hs.WeightedNMF, holes),
        ("WeightedNMF, frobenius, zeros", partial(hs.WeightedNMF, loss="frobenius", unseen="zero"), zeros),
        ("PoissonFactorization", hs.PoissonFactorization, zeros),
        ("BernoulliPoisson", hs.BernoulliPoisson, zeros),
        ("CompoundPoisson", hs.CompoundPoisson, zeros),
        ("OrdNMF", hs.OrdNMF, zeros),
        ("SquaredOrdNMF", hs.SquaredOrdNMF, zeros),
        ("SquaredPoisson", hs.SquaredPoisson, zeros),
        ("OrdinalMF", hs.OrdinalMF, holes),
        ("RoundMF", hs.RoundMF, holes),
    )
    for name, kind, data in cases:
        found = []
        for observed in data.values():
            models = [
                kind(K_OF_SMALL, max_iter=N_COMPARED, tol=0.0, random_state=0, engine=engine).fit(observed)
                for engine in ("cuda", "cpu")
            ]
            pairs = zip(*((model.W_, model.H_) for model in models), strict=True)
            found.append(max(np.linalg.norm(mine - theirs) / np.linalg.norm(theirs) for mine, theirs in pairs))
        yield name, *(f"{difference:.1e}" for difference in found)

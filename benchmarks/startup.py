"""Starting up, with a warm kernel cache

Each in a process of its own, the best of five; the goals are upper bounds in seconds.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.measuring import table

IMPORT = "import time; t = time.perf_counter(); import halfseen; print(time.perf_counter() - t)"
SKLEARN = "import time; t = time.perf_counter(); import sklearn.base; print(time.perf_counter() - t)"
EVERYTHING = (
    "import time; t = time.perf_counter(); import halfseen; halfseen.WeightedNMF, halfseen.PoissonFactorization; "
    "print(time.perf_counter() - t)"
)
FIT = """
import time; t = time.perf_counter()
import numpy, warnings, halfseen
warnings.simplefilter("ignore")
X = numpy.array([[5, 3, numpy.nan], [4, numpy.nan, 1], [1, 1, 5.0]])
halfseen.{model}(2, random_state=0).fit(X)
print(time.perf_counter() - t)
"""
MODEL = """
import numpy, halfseen, warnings
from scipy import sparse
warnings.simplefilter("ignore")
X = sparse.random(6040, 3706, density=0.045, random_state=0, format="csr")
X.data = numpy.ceil(5 * X.data)
halfseen.SquaredOrdNMF(100, max_iter=2, tol=0, random_state=0).fit(X).save({path!r})
print(0)
"""
RECOMMEND = """
import time; t = time.perf_counter()
import io, contextlib
from halfseen.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["recommend", {path!r}, "--user", "17"], standalone_mode=False)
print(time.perf_counter() - t)
"""
LIVE = """
import time, warnings
import numpy
import halfseen
from halfseen.encoders import Encoder
from halfseen.likelihoods import Poisson
from halfseen.model import FittedModel
from halfseen.ranking import Seen
from halfseen.solvers import PointFactor
random = numpy.random.default_rng(0)
W, H = (random.gamma(0.3, 1.0, (size, 128)).astype("{dtype}") for size in (500, 100_000))
seen = numpy.sort(random.integers(0, 100_000, (500, 100)), axis=1).reshape(-1)
model = halfseen.PoissonFactorization(128)
record = FittedModel(PointFactor(W), PointFactor(H), Poisson(), Encoder(), (None, None),
                     Seen(numpy.arange(501) * 100, seen, 100_000), "zero", None)
model.model_, model.n_features_in_ = record, 100_000
import halfseen.kernels
first = model.recommend(0)
seconds = []
for user in range(500):
    t = time.perf_counter(); model.recommend(user); seconds.append(time.perf_counter() - t)
print(numpy.{what}(seconds))
"""


def run() -> list[str]:
    with TemporaryDirectory() as folder:
        path = f"{folder}/model.hs"
        _told(MODEL.format(path=path))
        recommend = _best(RECOMMEND.format(path=path))
    live = {(dtype, what): 1e3 * _told(LIVE.format(dtype=dtype, what=what))
            for dtype in ("float32", "float64") for what in ("min", "median")}  # fmt: skip
    return table(
        ("what", "goal", "s"),
        [
            ("import halfseen", "1", f"{_best(IMPORT):.2f}"),
            ("import halfseen, all estimators touched", "", f"{_best(EVERYTHING):.2f}"),
            ("of which scikit-learn's own `import sklearn.base`", "", f"{_best(SKLEARN):.2f}"),
            ("import and first small fit of WeightedNMF", "2", f"{_best(FIT.format(model='WeightedNMF')):.2f}"),
            ("import and first small fit of PoissonFactorization", "2",
             f"{_best(FIT.format(model='PoissonFactorization')):.2f}"),
            ("`halfseen recommend model.hs --user 17`, 6,040 x 3,706, 100 components", "1.2", f"{recommend:.2f}"),
            *((f"ten of 100,000 items for a user in a live process, 128 components, {dtype}, {what} of 500", "0.001",
               f"{value / 1e3:.5f}") for (dtype, what), value in live.items()),
        ],
    )  # fmt: skip


def _best(code: str, repeats: int = 5) -> float:
    """Seconds told by the best of several fresh processes, after one that warms the caches."""
    return min([_told(code) for _ in range(repeats + 1)][1:])


def _told(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)

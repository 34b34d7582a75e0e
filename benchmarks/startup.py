"""Starting up, with a warm kernel cache

Each in a process of its own, the best of five; the goals are upper bounds in seconds.
"""

import subprocess
import sys

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


def run() -> list[str]:
    return table(
        ("what", "goal", "s"),
        [
            ("import halfseen", "1", f"{_best(IMPORT):.2f}"),
            ("import halfseen, all estimators touched", "", f"{_best(EVERYTHING):.2f}"),
            ("of which scikit-learn's own `import sklearn.base`", "", f"{_best(SKLEARN):.2f}"),
            ("import and first small fit of WeightedNMF", "2", f"{_best(FIT.format(model='WeightedNMF')):.2f}"),
            ("import and first small fit of PoissonFactorization", "2",
             f"{_best(FIT.format(model='PoissonFactorization')):.2f}"),
        ],
    )  # fmt: skip


def _best(code: str, repeats: int = 5) -> float:
    """Seconds told by the best of several fresh processes, after one that warms the caches."""
    return min([_told(code) for _ in range(repeats + 1)][1:])


def _told(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)

"""Base of all studies: a study runs and returns tables and pictures. It prints nothing and writes no files."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.datasets import source
from halfseen.datasets.registry import local_paths
from halfseen.engines.threads import one_blas_thread
from halfseen.errors import DataError, DataWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = Any  # matplotlib is loaded when something is drawn

PAPERS = {
    "a1gm": "Ghalamkari and Sugiyama, Fast Rank-1 NMF for Missing Data with KL Divergence, AISTATS 2022",
    "grr": "Pezeshkpour, Compact Factorization of Matrices Using Generalized Round-Rank, MSc thesis, UC Irvine 2018",
    "ordnmf": ("Gouvert, Oberlin and Févotte, Ordinal Non-negative Matrix Factorization for Recommendation, ICML 2020"),
    "unmf": "Kohjima, Uncoupled Nonnegative Matrix Factorization with Pairwise Comparison Data, ICTIR 2022",
}
#: Colours of Okabe and Ito, distinguishable with any kind of colour vision.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = OKABE_ITO

#: Called with a message before each piece of work.
Progress = Callable[[str], None]
#: Hyper-parameters by name.
Setting = Mapping[str, Any]


def no_progress(message: str) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Column:
    """Column of a table: its name, the group it belongs to, and the format of its numbers."""

    name: str
    group: str = ""
    form: str = ""

    @property
    def full_name(self) -> str:
        """Group and name."""
        return f"{self.group} {self.name}".strip()

    def text(self, value: Any) -> str:
        """Format a value: None as a dash, text as it is, numbers in the column's format."""
        if value is None:
            return "-"
        return value if isinstance(value, str) else format(value, self.form)


@dataclass(frozen=True)
class Table:
    """Rows of values under columns, and footnotes. `name` distinguishes the tables of one study."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    footnotes: Sequence[str] = ()
    name: str = ""

    def texts(self) -> list[list[str]]:
        """Cells as formatted text."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def column(self, full_name: str) -> list[Any]:
        """Values of the column with this group and name."""
        place = [column.full_name for column in self.columns].index(full_name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Picture:
    """A drawing on a matplotlib figure. `name` distinguishes the pictures of one study."""

    name: str
    title: str
    draw: Callable[[Figure], None]


PASS, WITHIN, SHORT = "pass", "within the draws", "short"


class Goal(NamedTuple):
    """What the paper prints or says, in words, and the state: `PASS`, `WITHIN` or `SHORT`.

    Goals come from the paper alone, never from earlier results of ours.
    """

    words: str
    state: str

    @classmethod
    def claim(cls, words: str, holds: bool) -> Goal:
        """A statement of the paper, which holds or not."""
        return cls(words, PASS if holds else SHORT)

    @classmethod
    def printed(cls, words: str, printed: str, draws: Array, better: str = "") -> Goal:
        """A number of the paper, compared with draws (seeds, starts or splits) of ours.

        It passes if the mean of the draws, in the printed digits, is the printed number, or better than it where
        `better` is "lower" or "higher". Otherwise the printed number is within the draws if it lies between the
        smallest and the largest of at least `MIN_DRAWS`, give or take half a unit of its last digit: it may be one such
        draw itself.
        """
        draws = np.asarray(draws, dtype=np.float64)
        decimals, target, mean = len(printed.partition(".")[2]), float(printed), float(draws.mean())
        rounded = float(f"{mean:.{decimals}f}")
        is_better = {"lower": rounded < target, "higher": rounded > target}.get(better, False)
        half = 0.5 * 10.0**-decimals  # half a unit of the last printed digit
        is_within = draws.size >= MIN_DRAWS and draws.min() - half <= target <= draws.max() + half
        state = PASS if rounded == target or is_better else WITHIN if is_within else SHORT
        ours = f"{mean:.0f}" if draws.size == 1 and mean.is_integer() else f"{mean:.{decimals + 1}f}"
        if draws.size > 1:
            low, high, std = (f"{x:.{decimals + 1}f}" for x in (draws.min(), draws.max(), draws.std(ddof=1)))
            ours += f" (mean of {draws.size}, S.D. {std}, {low} to {high})"
        return cls(f"{words}: printed {printed}, ours {ours}", state)


#: Draws needed before a printed number can be said to lie within them.
MIN_DRAWS = 10


@dataclass(frozen=True)
class Result:
    """Outcome of a run: a summary of a sentence or two, tables, pictures, and goals.

    `substitute` names the data that were used because the paper's can't be had, `absent` those of the paper's that are
    left out.
    """

    summary: str
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    goals: Sequence[Goal] = ()
    substitute: str = ""
    absent: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """The state of the goals together; empty without goals, as for a quick run."""
        states = [goal.state for goal in self.goals]
        if not states:
            return ""
        short = states.count(SHORT)
        verdict = f"{SHORT} of {short} of {len(states)}" if short else WITHIN if WITHIN in states else PASS
        if self.substitute:
            return f"data not to be had; on {self.substitute}: {verdict}"
        return f"{verdict}; data not to be had: {', '.join(self.absent)}" if self.absent else verdict


class RunSettings(NamedTuple):
    """How a study is run: quickly or whole, the seed, the processes at once, and the engine of large fits."""

    quick: bool = False
    seed: int = 0
    n_jobs: int = 1
    engine: str = "cpu"


class Study(ABC):
    """One table or figure of a paper: its data, methods and seeds, and the paper's numbers.

    Its `name` is the paper's key in `PAPERS`, a slash, and the table or figure.
    """

    name: str
    title: str

    @property
    def paper(self) -> str:
        """Citation of the paper."""
        return PAPERS[self.name.partition("/")[0]]

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the datasets that it reads."""
        return ()

    def absent(self) -> list[str]:
        """Names of the needed datasets that are not in the data folder."""

        def is_present(name: str) -> bool:
            try:
                return bool(local_paths(source(name)))
            except DataError:
                return False

        return [name for name in self.needs if not is_present(name)]

    def run(
        self, *, quick: bool = False, seed: int = 0, n_jobs: int = 1, engine: str = "cpu",
        progress: Progress = no_progress,
    ) -> Result:  # fmt: skip
        """Run the study, or with `quick` a small part of it, to see that it runs; that is never judged.

        Where some data are absent, the rest is done and the table says so; where all are, the loader's `DataError` is
        raised. `progress` is called with a message before each piece of work; up to `n_jobs` pieces run at once, each
        in a process of its own. Results do not depend on `n_jobs`. Fits to large data use `engine`.
        """
        result = self.compute(RunSettings(quick, seed, n_jobs, engine), progress)
        return replace(result, goals=()) if quick else result

    @abstractmethod
    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        """Do the work of `run`."""


def parallel_map(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    n_jobs: int,
    progress: Progress,
    name: Callable[[Any], str] = str,
) -> list[Any]:
    """Results of a module-level function for all items, in their order, `n_jobs` at once in processes of one thread."""
    items = list(items)
    if n_jobs == 1 or len(items) < 2:
        results = []
        for item in items:
            progress(name(item))
            results.append(function(item))
        return results
    results = []
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        for result in joblib.Parallel(n_jobs=n_jobs, return_as="generator")(map(joblib.delayed(function), items)):
            results.append(result)
            progress(f"{len(results)} of {len(items)} done")
    return results


def mean_and_std(values: Array) -> tuple[float, float | None]:
    """Mean and standard deviation; None instead of the latter for a single value."""
    return float(values.mean()), float(np.std(values, ddof=1)) if len(values) > 1 else None


def mean_and_std_columns(groups: Iterable[str], form: str) -> list[Column]:
    """Two columns per group, for `mean_and_std`."""
    return [Column(name, group, form) for group in groups for name in ("mean", "S.D.")]


def mean_and_std_rows(keys: Iterable[Any], values: Iterable[Array]) -> list[list[Any]]:
    """One row per key: the key, then `mean_and_std` of each of the arrays (keys, runs)."""
    return [
        [key, *(number for runs in each for number in mean_and_std(runs))]
        for key, *each in zip(keys, *values, strict=True)
    ]


def describe(setting: Setting, empty: str = "") -> str:
    """Hyper-parameters as text."""
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in setting.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items()) or empty


@contextmanager
def ignore_fit_warnings() -> Iterator[None]:
    """Ignore warnings about few cells, empty rows and early stops, where these are intended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def median_seconds(functions: Sequence[Callable[[], Any]], at_least: int = 5, until: float = 0.5) -> list[float]:
    """Median run time of each function, over rounds in which each runs once.

    Functions take turns, so that other load on the machine slows all of them. An uncounted first round compiles.
    Rounds repeat until there are `at_least` this many and `until` this many seconds have passed. BLAS has one thread:
    on a machine that is not idle, its own threads made NumPy up to 40 times slower.
    """

    def seconds(function: Callable[[], Any]) -> float:
        started = perf_counter()
        function()
        return perf_counter() - started

    with one_blas_thread():
        for function in functions:
            function()
        rounds: list[list[float]] = []
        started = perf_counter()
        while len(rounds) < at_least or perf_counter() - started < until:
            rounds.append([seconds(function) for function in functions])
    return [median(times) for times in zip(*rounds, strict=True)]

"""What a library is to `benchmarks/libraries.py`: how it takes cells, how it is fitted, and what it may choose from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from halfseen import Observed

SEED = 0
THREADS = 2

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Contender:
    """A model of a library. Rows and columns are numbers, so that nobody pays for labels."""

    name: str
    package: str
    fit: Callable[[Any, Setting], Any]
    """From prepared cells and a setting to a fitted model; this is what is timed."""
    answer: Callable[..., Any]
    """Of a model, rows and columns."""
    grid: Sequence[Setting]
    """What may be chosen; for ratings the library's own defaults come first."""
    prepare: Callable[[Observed], Any] = lambda cells: cells
    """Cells in the library's own form; not timed."""

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None


def grid(**choices: Sequence[Any]) -> list[Setting]:
    """Every combination."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def words(setting: Setting) -> str:
    """As one would write it in Python."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items()) or "defaults"


def coo(cells: Observed) -> sparse.coo_matrix:
    return sparse.coo_matrix((cells.values, (cells.row_of_cell(), cells.indices)), shape=cells.shape)


def frame(cells: Observed) -> pd.DataFrame:
    return pd.DataFrame({"user_id": cells.row_of_cell(), "item_id": cells.indices, "rating": cells.values})


def ones(cells: Observed) -> Observed:
    """That something was seen, not what."""
    return replace(cells, values=np.ones_like(cells.values))


def lenskit_dataset(cells: Observed) -> Any:
    from lenskit.data import from_interactions_df

    return from_interactions_df(frame(cells))


def lenskit_trained(scorer: Any, dataset: Any) -> Any:
    """Threads come from LK_NUM_THREADS, which `benchmarks/libraries.py` sets."""
    from lenskit.training import TrainingOptions

    scorer.train(dataset, TrainingOptions(rng=SEED))
    return scorer

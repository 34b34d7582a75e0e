"""How methods are measured: settings chosen by cells held out of training, never by those for test."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.errors import DataWarning
from halfseen.studies.base import Tell

#: What is chosen, by name.
Setting = Mapping[str, Any]
#: Cells to fit, and cells to judge by.
Parts = Sequence[tuple[Observed, Observed]]


@dataclass(frozen=True)
class Method:
    """A row of a table: an unfitted estimator by setting and seed, and the settings to choose from."""

    name: str
    make: Callable[..., Any]
    grid: Sequence[Setting] = ({},)

    def fit(self, cells: Observed, setting: Setting, seed: int) -> Any:
        """The fitted model. With few cells, rows without any and runs cut short are part of the game."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.make(**setting, random_state=seed).fit(cells)


class Choice(NamedTuple):
    """A setting, and its RMSE at the cells held out of the training cells."""

    setting: Setting
    rmse: float


def chosen(method: Method, parts: Parts, seed: int, tell: Tell) -> Choice:
    """The setting with the lowest squared error at the cells held out of the training cells, over all parts."""
    choices = []
    for setting in method.grid:
        tell(f"{method.name}, choosing: {words(setting)}")
        models = ((method.fit(fitted, setting, seed), judges) for fitted, judges in parts)
        errors = np.concatenate([squared_errors(model, judges) for model, judges in models])
        choices.append(Choice(setting, rmse(errors)))
    return min(choices, key=lambda choice: choice.rmse)


def predicted(model: Any, cells: Observed) -> Array:
    """The model's mean at the cells, which are in the rows and columns of its fit."""
    return np.asarray(model.predict(*named(model, cells)), dtype=np.float64)


def named(model: Any, cells: Observed) -> tuple[Array, Array]:
    """Rows and columns of the cells as the model calls them: by their labels, if it knows any."""
    rows, columns = cells.row_of_cell(), cells.indices
    if model.row_labels_ is None:
        return rows, columns
    return model.row_labels_[rows], model.column_labels_[columns]


def squared_errors(model: Any, cells: Observed) -> Array:
    """(prediction - truth)^2, cell by cell."""
    errors: Array = (predicted(model, cells) - cells.values) ** 2
    return errors


def rmse(errors: Array) -> float:
    """sqrt of the mean of squared errors."""
    return float(np.sqrt(errors.mean()))


def accuracy(errors: Array) -> float:
    """The share of predictions within 0.5 of the truth  (section 4.3), by their squared errors."""
    return float((errors <= 0.25).mean())


def spread(values: Array) -> float | None:
    """The standard deviation, if there is one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def words(setting: Setting) -> str:
    """A setting as it is told."""
    told = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in setting.items()}
    return ", ".join(f"{name} {value}" for name, value in told.items()) or "-"

"""How methods are measured: settings chosen by cells held out of training, never by those for test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.observed import Observed
from halfseen.studies import base
from halfseen.studies.base import Tell

#: What is chosen, by name.
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """A row of a table: an unfitted estimator by setting and seed, and the settings to choose from."""

    name: str
    make: Callable[..., Any]
    grid: Sequence[Setting] = ({},)

    def fit(self, cells: Observed, setting: Setting, seed: int) -> Any:
        """The fitted model, without warnings: with few cells, empty rows and runs cut short are intended."""
        with base.quietly():
            return self.make(**setting, random_state=seed).fit(cells)


class Choice(NamedTuple):
    """A setting, and its RMSE at the cells held out of the training cells."""

    setting: Setting
    rmse: float


def chosen(method: Method, parts: Sequence[tuple[Observed, Observed]], seed: int, tell: Tell) -> Choice:
    """The setting with the lowest squared error at held-out cells, over all parts: cells to fit and cells held out."""
    choices = []
    for setting in method.grid:
        tell(f"{method.name}, choosing: {words(setting)}")
        models = ((method.fit(fitted, setting, seed), held_out) for fitted, held_out in parts)
        errors = np.concatenate([squared_errors(model, held_out) for model, held_out in models])
        choices.append(Choice(setting, rmse(errors)))
    return min(choices, key=lambda choice: choice.rmse)


def named(model: Any, cells: Observed) -> tuple[Array, Array]:
    """Rows and columns of the cells, which are those of the fit, as the model calls them: by its labels, if any."""
    rows, columns = cells.row_of_cell(), cells.indices
    if model.row_labels_ is None:
        return rows, columns
    return model.row_labels_[rows], model.column_labels_[columns]


def squared_errors(model: Any, cells: Observed) -> Array:
    """(prediction - truth)^2, cell by cell."""
    predicted = np.asarray(model.predict(*named(model, cells)), dtype=np.float64)
    return np.asarray((predicted - cells.values) ** 2)


def rmse(errors: Array) -> float:
    """sqrt of the mean of squared errors."""
    return float(np.sqrt(errors.mean()))


def accuracy(errors: Array) -> float:
    """The share of predictions within 0.5 of the truth  (section 4.3), by their squared errors."""
    return float((errors <= 0.25).mean())


def words(setting: Setting) -> str:
    """A setting in words, "-" if there is nothing to set."""
    return base.words(setting) or "-"

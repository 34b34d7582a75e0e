"""What a user should hear of a fit."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.data.labels import quoted
from halfseen.errors import DataWarning
from halfseen.result import Status


def warn_of_blanks(what: str, blank: Array, labels: Array | None, stacklevel: int) -> None:
    """Tell of rows or columns (`what`) that nothing was seen of."""
    places = np.flatnonzero(blank)
    if places.size:
        first = places[0] if labels is None else quoted(labels[places[0]])
        others = f" and {places.size - 1} more" if places.size > 1 else ""
        warnings.warn(
            f"Every {what} should have a seen cell. Found none in {what} {first}{others}. "
            f"Such a {what} gets the average factor of the others; drop it if that is not wanted.",
            DataWarning,
            stacklevel=stacklevel,
        )


def tell_the_end(model: Any, stacklevel: int) -> None:
    """A warning for an end that the user should know of; Ctrl-C goes on, now that the fit is kept."""
    status = model.status_
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    unsettled = status is Status.MAX_ITER and model.tol > 0
    if unsettled or status in (Status.NOT_FINITE, Status.WORSENED):
        warnings.warn(f"{type(model).__name__}: {status.value}", ConvergenceWarning, stacklevel=stacklevel)

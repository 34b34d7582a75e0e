"""What a user should hear of a fit."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.errors import DataWarning
from halfseen.labels import quoted
from halfseen.result import Status


def warn_of_blanks(what: str, blank: Array, labels: Array | None, stacklevel: int, along: str = "") -> None:
    """Tell of rows or columns (`what`), or slices along an axis, that nothing was seen of."""
    places = np.flatnonzero(blank)
    if places.size:
        first = places[0] if labels is None else quoted(labels[places[0]])
        others = f" and {places.size - 1} more" if places.size > 1 else ""
        warnings.warn(
            f"Every {what}{along} should have a seen cell. Found none in {what} {first}{along}{others}. "
            f"Such a {what} gets the average factor of the others; drop it if that is not wanted.",
            DataWarning,
            stacklevel=stacklevel,
        )


def warn_of_parts(parts: Array, by_zeros: bool, labels: Array | None, stacklevel: int) -> None:
    """Tell of parts that are not connected, or by seen zeros alone; `parts` are those of the rows."""
    count = int(parts.max()) + 1
    first = int(np.argmax(parts == min(1, count - 1)))
    name = first if labels is None else quoted(labels[first])
    if by_zeros:
        sentence = (
            f"Seen zeros should not be all that connects rows and columns. Found {count} parts held together by "
            f"nothing else, the second one with row {name}. The best fit is a limit that no factors reach: they come "
            "as near as the tolerance asks and numbers allow, and holes between parts run away."
        )
    else:
        sentence = (
            f"Seen cells should connect all rows and columns. Found {count} parts without a connection, the second "
            f"one with row {name}. Each has a scale of its own, fixed by equal sums; what the model says of cells "
            "between parts means nothing."
        )
    warnings.warn(sentence, DataWarning, stacklevel=stacklevel)


def tell_the_end(model: Any, stacklevel: int) -> None:
    """A warning for an end that the user should know of; Ctrl-C goes on, now that the fit is kept."""
    status = model.status_
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    unsettled = status is Status.MAX_ITER and model.tol > 0
    if unsettled or status in (Status.NOT_FINITE, Status.WORSENED, Status.UNMIXED):
        warnings.warn(f"{type(model).__name__}: {status.value}", ConvergenceWarning, stacklevel=stacklevel)

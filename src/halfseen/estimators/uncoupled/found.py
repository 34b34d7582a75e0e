"""What a method for uncoupled data leaves."""

from typing import Any, NamedTuple

from halfseen.arrays import Array
from halfseen.model import Status


class Found(NamedTuple):
    """Questions are rows here, respondents are columns. `posterior` is None for methods that do not sample."""

    questions: Any
    respondents: Any
    trace: dict[str, Array]
    status: Status
    n_clipped: int
    posterior: Any
    further: dict[str, Any]

"""How a fit ended, and what it left."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from halfseen.arrays import Array


class Status(Enum):
    """The end of a run, as a value that carries its message. Whatever it is, the fit so far is kept."""

    CONVERGED = "The objective hardly changes any more."
    MAX_ITER = "Stopped at max_iter before the objective settled. Raise max_iter, or tol."
    STOPPED = "A callback asked to stop."
    HELD_OUT = "The loss on held-out cells no longer fell; the iteration where it was lowest is kept."
    DIRECT = "Found without iterating."
    SAMPLED = "All sweeps were drawn, and what they predict has settled."
    UNMIXED = (
        "All sweeps were drawn, but what the second half predicts differs from the first (a split R-hat above 1.1, see "
        "diagnostics_). Raise n_sweeps and n_burn."
    )
    INTERRUPTED = "Interrupted from the keyboard; the last whole iteration is kept."
    NOT_FINITE = (
        "The next iteration was not finite; the last finite one, or the start, is kept. Scale the data to moderate "
        "numbers, or use float64."
    )
    WORSENED = "The next iteration was worse than rounding explains; the one before is kept. Please report this."

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Fit:
    """The result of a run: both factors as the solver holds them, the likelihood as it ended, the trace and the status.

    `trace["objective"]` and `trace["seconds"]` have one entry an iteration, the seconds counted from the start.
    """

    rows: Any
    """The factor of the rows; `rows.mean` is (n, k)."""
    columns: Any
    """The factor of the columns; `columns.mean` is (m, k)."""
    likelihood: Any
    """With the parameters that it has learned."""
    trace: Mapping[str, Array]
    """Arrays with an entry an iteration."""
    status: Status
    """Why it ended."""

    @property
    def n_iter(self) -> int:
        """How many iterations there were."""
        return len(self.trace["objective"])

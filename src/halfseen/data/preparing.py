"""What papers do to their data before they factorize them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from halfseen.data.observed import Observed
from halfseen.errors import DataError


def as_in_a1gm(observed: Observed) -> Observed:
    """Every seen value made positive, as Ghalamkari and Sugiyama (2022), section 3.2, prepare their tables.

        x -> |x|,    and then    0 -> (sum of all seen |x| + number of holes) / (number of cells)

    That is: zeros become the mean of the matrix, this mean being taken after every hole was set to 1. The paper says
    only "the average value of the matrix"; with the holes at 1 its numbers come out to the printed digits. `observed`
    stays as it is.
    """
    _check_unseen(observed)
    values = np.abs(observed.values)
    zeros = values == 0
    if zeros.all() and observed.unseen_places == 0:
        raise DataError(
            "There must be a value other than 0 to take a mean of. Found only zeros. Leave the matrix as it is."
        )
    values[zeros] = _mean_with_holes_at_one(values, observed.unseen_places)
    return replace(observed, values=values)


def _mean_with_holes_at_one(values: np.ndarray, holes: int) -> float:
    return float((values.sum(dtype=np.float64) + holes) / (values.size + holes))


def _check_unseen(observed: Observed) -> None:
    if observed.unseen != "missing":
        raise DataError(
            f'Unseen cells must be missing here. Found unseen={observed.unseen!r}. Read the data with unseen="missing".'
        )

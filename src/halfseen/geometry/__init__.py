"""The information geometry of rank one (Ghalamkari & Sugiyama 2022, section 2.1), as functions."""

from halfseen.geometry.conservation import SumsOfRowsAndColumns, conservation_gap, marginals
from halfseen.geometry.parameters import (
    expectation_parameters,
    from_expectation_parameters,
    from_natural_parameters,
    natural_parameters,
    one_body,
    two_body,
)
from halfseen.geometry.rank_one import expectations_factorize, is_simultaneously_rank_one
from halfseen.geometry.triples import Triple

__all__ = [
    "SumsOfRowsAndColumns",
    "Triple",
    "conservation_gap",
    "expectation_parameters",
    "expectations_factorize",
    "from_expectation_parameters",
    "from_natural_parameters",
    "is_simultaneously_rank_one",
    "marginals",
    "natural_parameters",
    "one_body",
    "two_body",
]

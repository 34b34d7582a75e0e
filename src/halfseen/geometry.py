"""Information geometry of rank one (Ghalamkari & Sugiyama 2022, section 2.1): `rankone.information_geometry`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfseen.rankone.information_geometry import (
        SumsOfRowsAndColumns,
        Triple,
        conservation_gap,
        expectation_parameters,
        expectations_factorize,
        from_expectation_parameters,
        from_natural_parameters,
        is_simultaneously_rank_one,
        marginals,
        natural_parameters,
        one_body,
        two_body,
    )

__all__ = [
    "SumsOfRowsAndColumns", "Triple", "conservation_gap", "expectation_parameters", "expectations_factorize",
    "from_expectation_parameters", "from_natural_parameters", "is_simultaneously_rank_one", "marginals",
    "natural_parameters", "one_body", "two_body",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("halfseen.rankone.information_geometry"), name)
    raise AttributeError(f"module 'halfseen.geometry' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

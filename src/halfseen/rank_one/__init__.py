"""Rank one: closed forms and the convex problem next to them, as functions of a table's sums.

They need no likelihood, no solver and no engine; their compiled loops run on the processor's threads.
"""

from halfseen.rank_one.a1gm import a1gm
from halfseen.rank_one.em import em
from halfseen.rank_one.exact import Step, exact, rows_given
from halfseen.rank_one.marginals import Marginals, unfolded
from halfseen.rank_one.nmmf import SharedFactors, rank_one_nmmf
from halfseen.rank_one.parts import Parts, in_order, one_part, parts_of
from halfseen.rank_one.scaling import scaled
from halfseen.rank_one.tables import DenseTable, ListedTable, Table

__all__ = [
    "DenseTable",
    "ListedTable",
    "Marginals",
    "Parts",
    "SharedFactors",
    "Step",
    "Table",
    "a1gm",
    "em",
    "exact",
    "in_order",
    "one_part",
    "parts_of",
    "rank_one_nmmf",
    "rows_given",
    "scaled",
    "unfolded",
]

"""Rank one: the best factorization w h' of an incomplete table under the Kullback-Leibler divergence.

In statistics this is the quasi-independence model of incomplete contingency tables. It depends on the data only through
the sums along each axis and the weights of the cells, so the data are read once:

    incomplete_tables     DenseTable, ListedTable: one pass over a dense array or an `Observed`  ->  Marginals
    marginals             Marginals: sums and counts along each axis; WeightMatrix: products with the cell weights
    components            find_components: which rows and columns observed cells connect, and which zeros can be fitted
                          only in the limit; rescale: the scale of the factors, free in each component
    exact_solution        exact: iterative proportional fitting, then Newton's method where that is slow
    closed_forms          a1gm, em, rank_one_nmmf: the methods of Ghalamkari & Sugiyama (AISTATS 2022); rank_one_nmtf
    information_geometry  natural and expectation parameters, conditions for rank one, conservation of the marginals
                          (public as `halfseen.geometry`)

A fit: table = DenseTable(X, threads); components = find_components(table, table.merged_marginals); the last step of
exact(components, threads, tol); rescale(step.factors, components, tol, dtype). The first axis is that of rows; further
axes of a tensor are unfolded into columns. No likelihood, solver or engine is involved; the compiled loops
(`table_sums.py`) run on threads in blocks that depend on the data alone, so that results do not depend on their number.
"""

from halfseen.rankone.closed_forms import SharedFactors, TensorFactors, a1gm, em, rank_one_nmmf, rank_one_nmtf
from halfseen.rankone.components import Components, find_components, rescale, single_component, sort_labels
from halfseen.rankone.exact_solution import Step, exact, solve_rows
from halfseen.rankone.incomplete_tables import DenseTable, ListedTable, Table
from halfseen.rankone.marginals import Marginals, kron

__all__ = [
    "Components", "DenseTable", "ListedTable", "Marginals", "SharedFactors", "Step", "Table", "TensorFactors",
    "a1gm", "em", "exact", "find_components", "kron", "rank_one_nmmf", "rank_one_nmtf", "rescale", "single_component",
    "solve_rows", "sort_labels",
]  # fmt: skip

"""Filling tables of mixed columns: a Gaussian with holes, neighbours of its residuals, and a blend by held-out cells.

`columns` says what a column holds and puts it on a standard scale; `gaussian` fits by EM; `neighbours` finds rows
alike; `blend` weighs these and others by cells held out, and gives intervals by their residuals.
"""

from halfseen.imputation.blend import TableModel, fit_table
from halfseen.imputation.columns import Column, Marginal

__all__ = ["Column", "Marginal", "TableModel", "fit_table"]

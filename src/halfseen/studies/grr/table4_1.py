"""Table 4.1: completion of upper triangular matrices (k = 1)."""

from halfseen.studies.grr.completion import CompletionTable
from halfseen.studies.grr.matrices import UPPER_TRIANGLE
from halfseen.studies.grr.printed import TABLE4_1


class Table4_1(CompletionTable):
    name = "grr/table4.1"
    title = "Completion of upper triangular matrices (k = 1): RMSE by the share of cells seen"
    family = UPPER_TRIANGLE
    printed = TABLE4_1


STUDY = Table4_1()

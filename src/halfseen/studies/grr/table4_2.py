"""Table 4.2: completion of band diagonal matrices (k = 2)."""

from halfseen.studies.grr.completion import CompletionTable
from halfseen.studies.grr.matrices import BAND
from halfseen.studies.grr.printed import TABLE4_2


class Table4_2(CompletionTable):
    name = "grr/table4.2"
    title = "Completion of band diagonal matrices (k = 2): RMSE by the share of cells seen"
    family = BAND
    printed = TABLE4_2


STUDY = Table4_2()

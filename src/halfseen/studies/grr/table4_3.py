"""Table 4.3: completion of random matrices of generalized round-rank 2."""

from halfseen.studies.grr.completion import CompletionTable
from halfseen.studies.grr.matrices import RANDOM
from halfseen.studies.grr.printed import TABLE4_3


class Table4_3(CompletionTable):
    name = "grr/table4.3"
    title = "Completion of random matrices of generalized round-rank 2: RMSE by the share of cells seen"
    family = RANDOM
    printed = TABLE4_3


STUDY = Table4_3()

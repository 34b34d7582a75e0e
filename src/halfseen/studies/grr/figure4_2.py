"""Figure 4.2: recovery of random matrices of generalized round-rank 2."""

from halfseen.studies.grr.matrices import RANDOM
from halfseen.studies.grr.recovery import RecoveryFigure


class Figure4_2(RecoveryFigure):
    name = "grr/figure4.2"
    title = "Recovery of random matrices of generalized round-rank 2: RMSE against iterations"
    family = RANDOM


STUDY = Figure4_2()

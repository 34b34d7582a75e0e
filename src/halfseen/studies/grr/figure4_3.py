"""Figure 4.3: recovery of an upper triangular matrix."""

from halfseen.studies.grr.matrices import UPPER_TRIANGLE
from halfseen.studies.grr.recovery import RecoveryFigure


class Figure4_3(RecoveryFigure):
    name = "grr/figure4.3"
    title = "Recovery of an upper triangular matrix: RMSE against iterations"
    family = UPPER_TRIANGLE


STUDY = Figure4_3()

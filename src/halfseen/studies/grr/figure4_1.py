"""Figure 4.1: recovery of a band diagonal matrix."""

from halfseen.studies.grr.matrices import BAND
from halfseen.studies.grr.recovery import RecoveryFigure


class Figure4_1(RecoveryFigure):
    name = "grr/figure4.1"
    title = "Recovery of a band diagonal matrix: RMSE against iterations"
    family = BAND


STUDY = Figure4_1()

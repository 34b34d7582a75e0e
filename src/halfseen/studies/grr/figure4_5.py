"""Figure 4.5: RMSE on smallnetflix against the number of components."""

from halfseen.studies.grr.rating_curves import RMSE, RatingCurves
from halfseen.studies.grr.rating_sets import MOVIELENS_1M, SMALLNETFLIX


class Figure4_5(RatingCurves):
    name = "grr/figure4.5"
    title = "RMSE on smallnetflix against the number of components (without it MovieLens 1M)"
    sets = (SMALLNETFLIX, MOVIELENS_1M)
    needs = tuple(one.name for one in sets)
    measure = RMSE


STUDY = Figure4_5()

"""Figure 4.4: accuracy on smallnetflix against the number of components."""

from halfseen.studies.grr.rating_curves import ACCURACY, RatingCurves
from halfseen.studies.grr.rating_sets import MOVIELENS_1M, SMALLNETFLIX


class Figure4_4(RatingCurves):
    name = "grr/figure4.4"
    title = "Accuracy on smallnetflix against the number of components (without it MovieLens 1M)"
    sets = (SMALLNETFLIX, MOVIELENS_1M)
    needs = tuple(one.name for one in sets)
    measure = ACCURACY


STUDY = Figure4_4()

"""Figure 4.6: accuracy on MovieLens 100K against the number of components."""

from halfseen.studies.grr.rating_curves import ACCURACY, RatingCurves
from halfseen.studies.grr.rating_sets import MOVIELENS_100K


class Figure4_6(RatingCurves):
    name = "grr/figure4.6"
    title = "Accuracy on MovieLens 100K against the number of components"
    sets = (MOVIELENS_100K,)
    needs = tuple(one.name for one in sets)
    measure = ACCURACY


STUDY = Figure4_6()

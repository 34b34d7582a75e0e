"""The public data that can be loaded by name: where each comes from, its terms, whom to cite, its files."""

from halfseen.data.catalogue.ratings import AVERAGES, MOVIELENS_SPLITS, RATINGS, SMALLNETFLIX
from halfseen.data.catalogue.tables import TABULAR

#: Everything that has a name.
SOURCES = TABULAR | RATINGS | AVERAGES | {"smallnetflix": SMALLNETFLIX}

__all__ = ["AVERAGES", "MOVIELENS_SPLITS", "RATINGS", "SMALLNETFLIX", "SOURCES", "TABULAR"]

"""Choice of parameters, and of the number of components, by held-out cells."""

from halfseen.selection.rank_search import RankSearch
from halfseen.selection.search import Search

__all__ = ["RankSearch", "Search"]

"""Choice of the number of components by held-out cells."""

from halfseen.selection.rank_search import RankSearch

__all__ = ["RankSearch"]

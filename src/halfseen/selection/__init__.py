"""How many components a model should have, by cells that were held out."""

from halfseen.selection.rank_search import RankSearch

__all__ = ["RankSearch"]

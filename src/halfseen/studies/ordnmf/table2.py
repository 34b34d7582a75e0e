"""Table 2: how OrdNMF ranks films, beside BePoF and PF of binary ratings, and beside recommenders of other kinds."""

from collections.abc import Sequence

from halfseen.data import Observed
from halfseen.studies.ordnmf.methods import Effort, of_table2
from halfseen.studies.ordnmf.printed import TABLE2, TABLE2_THRESHOLDS
from halfseen.studies.ordnmf.protocol import Method
from halfseen.studies.ordnmf.ranking_table import RankingTable
from halfseen.studies.ordnmf.sets import FILMS, MOVIELENS_20M


class Table2(RankingTable):
    name = "ordnmf/table2"
    title = "Ranking films by their ratings: NDCG@100 of OrdNMF, of BePoF and PF of binary ratings, and of others"
    needs = (MOVIELENS_20M.name, *(one.name for one in FILMS))
    set_of_the_paper = MOVIELENS_20M
    sets_instead = FILMS
    printed = TABLE2
    thresholds = TABLE2_THRESHOLDS
    choosing_at = 8
    has_log_likelihood = False

    def methods(self, effort: Effort) -> Sequence[Method]:
        return of_table2(effort)

    def levels(self, raw: Observed) -> Observed:
        return raw


STUDY = Table2()

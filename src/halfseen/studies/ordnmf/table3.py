"""Table 3: how OrdNMF ranks by quantised play counts, beside dcPF of the counts, BePoF and PF, and others."""

from collections.abc import Sequence

from halfseen.data import Observed
from halfseen.studies.ordnmf.methods import Effort, of_table3
from halfseen.studies.ordnmf.printed import TABLE3, TABLE3_THRESHOLDS
from halfseen.studies.ordnmf.protocol import Method
from halfseen.studies.ordnmf.ranking_table import RankingTable
from halfseen.studies.ordnmf.sets import PLAYS, TASTE_PROFILE, quantized


class Table3(RankingTable):
    name = "ordnmf/table3"
    title = "Ranking by play counts: NDCG@100 and log-likelihood of OrdNMF, dcPF, BePoF and PF, and of others"
    needs = (TASTE_PROFILE.name, *(one.name for one in PLAYS))
    set_of_the_paper = TASTE_PROFILE
    sets_instead = PLAYS
    printed = TABLE3
    thresholds = TABLE3_THRESHOLDS
    choosing_at = 1
    has_log_likelihood = True

    def methods(self, effort: Effort) -> Sequence[Method]:
        return of_table3(effort)

    def levels(self, raw: Observed) -> Observed:
        return quantized(raw)


STUDY = Table3()

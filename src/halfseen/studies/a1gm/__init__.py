"""Ghalamkari and Sugiyama, Fast Rank-1 NMF for Missing Data with KL Divergence, AISTATS 2022."""

PAPER = "Ghalamkari and Sugiyama, Fast Rank-1 NMF for Missing Data with KL Divergence, AISTATS 2022"

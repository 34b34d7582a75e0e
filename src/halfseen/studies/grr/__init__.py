"""Pezeshkpour, Compact Factorization of Matrices Using Generalized Round-Rank, UC Irvine 2018."""

PAPER = "Pezeshkpour, Compact Factorization of Matrices Using Generalized Round-Rank, MSc thesis, UC Irvine 2018"

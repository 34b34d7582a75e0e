"""Kohjima, Uncoupled Nonnegative Matrix Factorization with Pairwise Comparison Data, ICTIR 2022."""

PAPER = "Kohjima, Uncoupled Nonnegative Matrix Factorization with Pairwise Comparison Data, ICTIR 2022"

"""Gouvert, Oberlin and Févotte, Ordinal Non-negative Matrix Factorization for Recommendation, ICML 2020."""

PAPER = "Gouvert, Oberlin and Févotte, Ordinal Non-negative Matrix Factorization for Recommendation, ICML 2020"

"""When three matrices are of rank one with shared factors: Propositions 1 and 2."""

from typing import Any

import numpy as np

from halfseen.checks import check_parameters, number
from halfseen.errors import DataError
from halfseen.geometry.parameters import ROUNDING, expectation_parameters, natural_parameters, two_body
from halfseen.geometry.triples import Triple


def is_simultaneously_rank_one(X: Any, Y: Any = None, Z: Any = None, *, tol: float = ROUNDING) -> bool:
    """Whether X = w h', Y = a h', Z = w b' for some w, h, a, b: all two-body theta are 0, up to tol  (Proposition 1).

    A two-body theta is the logarithm of the odds ratio of four neighbouring cells: tol is a relative error of cells.
    """
    check_parameters({"tol": tol}, {"tol": number(0.0)})
    return bool((np.abs(two_body(natural_parameters(X, Y, Z))) <= tol).all())


def expectations_factorize(X: Any, Y: Any = None, Z: Any = None, *, tol: float = ROUNDING) -> bool:
    """The same by expectation parameters, which allow zeros: e_ij = e_i1 e_1j, up to a relative tol  (Proposition 2),

    where e is the eta of the full table [X Z; Y U] with U_nm = (sum of row n of Y) (sum of column m of Z) / S(X), the
    only block that rank one allows. Without a missing block (N = 0 or M = 0) e is eta, as the paper prints it.
    With one, eta_ij = eta_i1 eta_1j as printed holds for no positive triple of rank one, save those with I = J = 1:
    its proof splits a sum over Omega into a product of two sums, and an L-shaped Omega has no such split.
    """
    check_parameters({"tol": tol}, {"tol": number(0.0)})
    triple = Triple.read(X, Y, Z)
    p = Triple.split(triple.joined() / triple.total(), triple.X.shape)
    if not p.X.any():
        raise DataError("X must have a cell above 0, because U divides by its sum. Found only 0. Judge Y and Z alone.")
    block = np.outer(p.Y.sum(axis=1), p.Z.sum(axis=0)) / p.X.sum()
    e = expectation_parameters(p.joined(block))
    product = np.outer(e[:, 0], e[0])
    return bool((np.abs(e - product) <= tol * np.maximum(e, product)).all())

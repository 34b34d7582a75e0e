"""What comments beside examples claim, and whether it is so.

fit.status                  # CONVERGED: so is a word that the result is printed as
m.W_.shape, m.H_.shape      # (3, 2), (2, 2)
bounds.lower, bounds.why    # 2, ...: what is left out may be anything
missing, zero               # 4.2 and 0.0: numbers, to the digits shown
diagnostics.r_hat           # near 1: within a tenth
"""

import ast
import math
import re
from enum import Enum
from typing import Any, NamedTuple

import numpy as np


class Near(NamedTuple):
    """A number that something is near to."""

    number: float


class Word(NamedTuple):
    """What something is printed as."""

    text: str


def claim_in(comment: str) -> Any:
    """What the beginning of a comment claims, up to a colon or semicolon; None if it only explains."""
    said = comment.strip().removeprefix("#").strip()
    for head in (said, *(said[: stop.start()] for stop in re.finditer(r"[:;](?: |$)", said))):
        claim = _claim(head.strip())
        if claim is not None:
            return claim
    return None


def _claim(head: str) -> Any:
    if near := re.fullmatch(r"near (-?[\d.]+)", head):
        return Near(float(near[1]))
    if re.fullmatch(r"[A-Z]{5,}|[A-Z][a-z]+[A-Z]\w+", head):
        return Word(head)
    if not re.match(r"[-\d(\[{'\"]|True$|False$", head):
        return None
    try:
        return ast.literal_eval(head.replace(" and ", ", "))
    except (SyntaxError, ValueError):
        return None


def holds(value: Any, claim: Any) -> bool:
    """Whether a result is what is claimed of it."""
    if claim is Ellipsis:
        return True
    if isinstance(claim, Near):
        return bool(abs(value - claim.number) <= 0.1)
    if isinstance(claim, Word):
        return str(value) == claim.text
    if isinstance(claim, dict):
        return set(value) == set(claim) and all(holds(value[key], claim[key]) for key in claim)
    if isinstance(claim, tuple | list):
        found = value.tolist() if isinstance(value, np.ndarray) else value
        return len(found) == len(claim) and all(map(holds, found, claim))
    if isinstance(claim, bool | str):
        return bool(value == claim)
    return _rounds_to(float(value), claim)


def _rounds_to(value: float, claim: float) -> bool:
    """To the digits shown; a plain 0 is 0 but for rounding."""
    decimals = len(repr(claim).partition(".")[2]) if isinstance(claim, float) else 0
    return abs(value - claim) <= (1e-6 if claim == 0 and not decimals else 0.5 * 10.0**-decimals)


def has_nan(value: Any) -> bool:
    """Whether there is a NaN in a result that is shown."""
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    if isinstance(value, Enum | str) or not hasattr(value, "__array__"):
        return False
    array = np.asarray(value)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())

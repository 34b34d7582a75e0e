"""Surveys that keep names and answers apart, whose truth is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from halfseen.checks import check_parameters, whole
from halfseen.data.labels import text_array
from halfseen.data.observed import Observed
from halfseen.data.uncoupled import Uncoupled

PATTERNS = 2
#: The part of what respondents answer that is theirs alone, in the units of what follows the patterns.
NOISE = 0.3


class Survey(NamedTuple):
    """What was collected, and what everybody answered: a matrix of questions by respondents."""

    collected: Uncoupled
    """What was collected: who was asked what, answers without names, comparisons."""
    truth: np.ndarray
    """What everybody answered, questions by respondents."""


def make_survey(
    n_questions: int = 40, n_respondents: int = 25, n_comparisons: int = 40, *, random_state: Any = None
) -> Survey:
    """A survey in which everybody answers every question with an amount, and some pairs are compared at each question.

    Amounts follow two patterns that the respondents share to different degrees, and a part of their own:
    x = (W H^T) e^noise with W and H from gamma distributions, rounded to a tenth.

    Parameters
    ----------
    n_questions, n_respondents : how many there are, two at least.
    n_comparisons : how many pairs of respondents are compared at each question.
    random_state : None, or a whole number: the same one makes the same survey.
    """
    checked = {"n_questions": n_questions, "n_respondents": n_respondents}
    check_parameters(checked, dict.fromkeys(checked, whole(2)))
    rng = np.random.default_rng(random_state)
    W, H = rng.gamma(2.0, 4.0, (n_questions, PATTERNS)), rng.gamma(2.0, 0.5, (n_respondents, PATTERNS))
    truth = np.round(W @ H.T * np.exp(rng.normal(scale=NOISE, size=(n_questions, n_respondents))), 1)
    rows, columns = np.indices(truth.shape).reshape(2, -1)
    named = Observed.from_cells(
        rows,
        columns,
        truth.reshape(-1),
        truth.shape,
        row_labels=text_array(f"question {number + 1}" for number in range(n_questions)),
        column_labels=text_array(f"respondent {number + 1}" for number in range(n_respondents)),
    )
    return Survey(Uncoupled.from_coupled(named, n_comparisons, random_state=int(rng.integers(2**32))), truth)

"""Pictures of uncoupled data: who may have given which answer, and how far answers are disclosed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.errors import ParameterError
from halfseen.estimators.labelling import positions
from halfseen.plots.axes import blues, name_ticks, new_axes, shown, told_apart
from halfseen.uncoupled.estimator import UncoupledNMF, sampled_posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bars in the histogram of risks.
_BARS = 20
#: More names than this can't be read beside a heat map.
_MOST_NAMES = 40


def disclosure(model: Any, *, ax: Axes | None = None) -> Axes:
    """How far a collection discloses its answers: a histogram of `model.disclosure_risk()`, of all asked cells.

    Beside it, as a line, the same if there were no comparisons: then the best guess is a question's most frequent
    answer. The legend has both means.

    Parameters
    ----------
    model : a fitted `UncoupledNMF` with method="gibbs".
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    risk = _checked(model).disclosure_risk()
    alone = model.disclosure_risk(comparisons=False)
    ax = new_axes("UncoupledNMF.disclosure_risk") if ax is None else ax
    edges = np.linspace(0.0, 1.0, _BARS + 1).tolist()
    ax.hist(risk, edges, color="C0", alpha=0.7, label=f"with comparisons, mean {risk.mean():.2f}")
    ax.hist(alone, edges, histtype="step", color="black", label=f"without, mean {alone.mean():.2f}")
    ax.set(xlim=(0, 1), xlabel="probability that a guess of the answer is right", ylabel="asked cells")
    ax.legend()
    return ax


def coupling(model: Any, question: Any, *, ax: Axes | None = None) -> Axes:
    """Who may have given which answer to a question: a heat map of probabilities, respondents by answers.

    Respondents are ordered by their mean answer, the highest on top. Equal answers are one column; a last column,
    "lost", is there if a respondent's answer may be missing.

    Parameters
    ----------
    model : a fitted `UncoupledNMF` with method="gibbs".
    question : its label, or its number if the fit had no labels.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    posterior = sampled_posterior(_checked(model), "A picture of the coupling")
    are_rows = model.questions_are_ == "rows"
    row = int(positions(model, question, "row" if are_rows else "column")[0])
    answers, shares = posterior.answer_probabilities(row)
    of_answers = shares[:, : answers.size]
    means = of_answers @ answers / np.maximum(of_answers.sum(axis=1), np.finfo(float).tiny)
    order = np.argsort(means, kind="stable")
    names = model.column_labels_ if are_rows else model.row_labels_
    respondents = model.asked_.respondents[slice(*model.asked_.indptr[row : row + 2])][order]
    ax = new_axes("UncoupledNMF.coupling") if ax is None else ax
    image = ax.imshow(shares[order], origin="lower", aspect="auto", vmin=0, vmax=1, cmap=blues())
    ax.figure.colorbar(image, ax=ax, label="probability")
    _name(ax.yaxis, respondents if names is None else names[respondents])
    _name(ax.xaxis, [*told_apart(answers.tolist(), 3), "lost"][: shares.shape[1]], rotation=90)
    ax.set_title(shown(question), parse_math=False)
    ax.set(xlabel="answer", ylabel="respondent")
    return ax


def _checked(model: Any) -> UncoupledNMF:
    if isinstance(model, UncoupledNMF):
        return model
    raise ParameterError(
        f"model must be an UncoupledNMF, which tells whose an answer may be. Found a {type(model).__name__}. "
        "Draw plots.completion for the holes of a table."
    )


def _name(axis: Any, names: Any, **how: Any) -> None:
    """Names along an axis; numbers stay where there are too many of them."""
    if len(names) <= _MOST_NAMES:
        name_ticks(axis, range(len(names)), names, **how)

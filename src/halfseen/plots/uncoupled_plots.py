"""Plots of uncoupled data: who may have given which answer, and how far answers are disclosed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from halfseen.plots import axes
from halfseen.uncoupled import UncoupledNMF
from halfseen.uncoupled.estimator import sampled_posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bins of the histogram of risks.
_BINS = 20


def disclosure(model: BaseEstimator, *, ax: Axes | None = None) -> Axes:
    """Histogram of `model.disclosure_risk()` over all asked cells.

    A line shows the same without comparisons, where the best guess is the most frequent answer to a question. The
    legend has both means.

    Parameters
    ----------
    model : UncoupledNMF
        Fitted with method="gibbs".
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    risk = _check_uncoupled(model).disclosure_risk()
    alone = model.disclosure_risk(comparisons=False)
    ax = axes.new_axes("UncoupledNMF.disclosure_risk") if ax is None else ax
    edges = np.linspace(0.0, 1.0, _BINS + 1).tolist()
    ax.hist(risk, edges, color="C0", alpha=0.7, label=f"with comparisons, mean {risk.mean():.2f}")
    ax.hist(alone, edges, histtype="step", color="black", label=f"without, mean {alone.mean():.2f}")
    ax.set(xlim=(0, 1), xlabel="probability that a guess of the answer is right", ylabel="asked cells")
    ax.legend()
    return ax


def coupling(model: BaseEstimator, question: Hashable, *, ax: Axes | None = None) -> Axes:
    """Heat map of the probability that a respondent gave an answer to a question: respondents by answers.

    Respondents are ordered by their mean answer, the highest on top. Equal answers share a column; a last column,
    "lost", is shown if a respondent's answer may be missing.

    Parameters
    ----------
    model : UncoupledNMF
        Fitted with method="gibbs".
    question : label or int
        Label of the question, or its position if the fit had no labels.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    posterior = sampled_posterior(_check_uncoupled(model), "A picture of the coupling")
    are_rows = model.questions_are_ == "rows"
    row = int(model.model_.positions(question, "row" if are_rows else "column")[0])
    answers, probabilities = posterior.answer_probabilities(row)
    known = probabilities[:, : answers.size]
    means = known @ answers / np.maximum(known.sum(axis=1), np.finfo(float).tiny)
    order = np.argsort(means, kind="stable")
    labels = model.column_labels_ if are_rows else model.row_labels_
    respondents = model.asked_.respondents[slice(*model.asked_.indptr[row : row + 2])][order]
    ax = axes.new_axes("UncoupledNMF.coupling") if ax is None else ax
    image = ax.imshow(probabilities[order], origin="lower", aspect="auto", vmin=0, vmax=1, cmap=axes.blue_colormap())
    ax.figure.colorbar(image, ax=ax, label="probability")
    if respondents.size <= axes.MAX_TICK_LABELS:
        axes.label_ticks(ax.yaxis, range(respondents.size), respondents if labels is None else labels[respondents])
    n_columns = probabilities.shape[1]
    if n_columns <= axes.MAX_TICK_LABELS:
        answer_texts = [*axes.format_distinct(answers.tolist(), 3), "lost"][:n_columns]
        axes.label_ticks(ax.xaxis, range(n_columns), answer_texts, rotation=90)
    ax.set_title(axes.display_label(question), parse_math=False)
    ax.set(xlabel="answer", ylabel="respondent")
    return ax


def _check_uncoupled(model: BaseEstimator) -> Any:
    if isinstance(model, UncoupledNMF):
        return model
    must, remedy = (
        "must be an UncoupledNMF, which tells whose an answer may be.",
        "Draw `plots.completion` for the holes of a table.",
    )
    raise axes.wrong_type("model", model, must, remedy)

"""Summaries of data and fits: facts for --json, and the same as sentences."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from halfseen.cli.messages import as_option, render
from halfseen.cli.streams import OUTPUT, display_name, table_lines
from halfseen.observed import Observed

#: From this probability on an answer counts as one that can be guessed.
CERTAIN = 0.9


def count(number: int, noun: str) -> str:
    """A number and its noun: "1 cell", "4,950 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def data_facts(path: str, observed: Observed) -> dict[str, Any]:
    """Size and range of the data; levels that are words by their names, None for the value of unseen cells."""
    low, high = (observed.values.min(), observed.values.max()) if observed.nnz else (None, None)
    if observed.level_names is not None:
        low, high = (observed.level_names[int(value) - 1] if value else None for value in (low, high))
    size = dict(zip(("rows", "columns"), observed.shape, strict=True))
    return {"file": display_name(path), **size, "cells": observed.nnz, "lowest": low, "highest": high}


def describe_data(path: str, observed: Observed) -> str:
    """Size and range of the data, and which columns were read as what."""
    facts = data_facts(path, observed)
    low, high = facts["lowest"], facts["highest"]
    if isinstance(low, str):
        values = f", levels {low!r} to {high!r}"
    else:
        values = f", values {observed.values.min():g} to {observed.values.max():g}" if observed.nnz else ""
    share = observed.nnz / max(facts["rows"] * facts["columns"], 1)
    columns = "" if observed.summary is None else f" {observed.summary.render(as_option)}"
    cells = f"{count(observed.nnz, 'cell')} seen ({share:.3g} of all)"
    return f"Read {facts['file']}: {facts['rows']:,} x {facts['columns']:,}, {cells}{values}.{columns}"


def fit_facts(model: Any) -> dict[str, Any]:
    """The model, and how its fit ended."""
    facts: dict[str, Any] = {"model": type(model).__name__, "n_components": model.n_components}
    facts |= {name: getattr(model, name) for name in ("loss", "link", "unseen") if hasattr(model, name)}
    facts |= {"status": model.status_.name, "iterations": model.n_iter_}
    facts |= {
        name: values[-1] for name, values in model.trace_.items() if name in ("objective", "seconds") and len(values)
    }
    return facts | ({"objective_name": model.objective_name} if "objective" in facts else {})


def describe_model(model: Any) -> str:
    """The model and its main parameters."""
    chosen = "".join(f", {name} {getattr(model, name)}" for name in ("loss", "link") if hasattr(model, name))
    return f"{type(model).__name__}: {count(model.n_components, 'component')}{chosen}, unseen cells are {model.unseen}."


def describe_end(model: Any, step: str = "iteration") -> str:
    """Why the fit ended, after how many iterations and seconds."""
    seconds = f"{model.trace_['seconds'][-1]:.2f} s" if model.n_iter_ else "no time"
    return f"{model.status_.name} after {count(model.n_iter_, step)} in {seconds}. {render(model.status_.value)}"


def describe_objective(model: Any) -> str:
    """The objective after the last and after the first iteration."""
    values = model.trace_["objective"]
    if not model.n_iter_:
        return ""
    return f"{model.objective_name} {values[-1]:,.6g} (after the first iteration {values[0]:,.6g})."


def describe_file(path: str) -> str:
    """Where something was saved, and its size; nothing for standard output."""
    if display_name(path) == OUTPUT:
        return ""
    size, units = float(os.path.getsize(path)), ["bytes", "KB", "MB", "GB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"Saved {path} ({size:.3g} {units[0]})."


def uncoupled_facts(model: Any, collected: Any) -> dict[str, Any]:
    """The lists, the fit, how well the chain mixed, and the disclosure risk."""
    facts = {"data": asdict(collected.summary), "method": model.method, **fit_facts(model)}
    if model.method not in ("unmf", "decode"):
        del facts["loss"]  # not used by the method
    if model.method == "gibbs":
        risk = model.disclosure_risk()
        facts["diagnostics"] = {name: one._asdict() for name, one in model.diagnostics_.items()}
        certain = {"certain_from": CERTAIN, "certain": (risk >= CERTAIN).sum()}
        facts["disclosure"] = {"answers": risk.size, "mean_probability": risk.mean(), **certain}
    return facts


def step_name(model: Any) -> str:
    """What an iteration of the method is called."""
    return "sweep" if model.method == "gibbs" else "iteration"


def describe_uncoupled(model: Any) -> Iterator[str]:
    """The model, how its fit ended, how well the chain mixed, and the disclosure risk."""
    parameters = {"gibbs": ("trust", "scale"), "unmf": ("loss", "balance"), "bayes": ("balance",), "decode": ("loss",)}
    chosen = ", ".join(f"{name} {getattr(model, name)}" for name in ("method", *parameters[model.method]))
    yield f"UncoupledNMF: {count(model.n_components, 'component')}, {chosen}."
    if model.n_iter_:
        clipped = f" {count(model.n_clipped_, 'value')} below 0 counted as 0 in W and H." if model.n_clipped_ else ""
        yield describe_end(model, step_name(model)) + clipped
    else:
        yield "Nothing was drawn: without comparisons, a question's answers are all that is known of its cells."
    diagnostics = getattr(model, "diagnostics_", {})
    if diagnostics:
        rows = [
            (name, f"{mean:.5g}", f"{r_hat:.3f}", f"{effective:,.0f}")
            for name, (mean, r_hat, effective) in diagnostics.items()
        ]
        yield from table_lines(rows, ("", "mean", "R-hat", "effective draws"), left=1)
    if model.method == "gibbs":
        risk = model.disclosure_risk()
        yield (
            f"Of {count(risk.size, 'answer')} asked for, {int((risk >= CERTAIN).sum()):,} can be guessed with at least "
            f"{CERTAIN:.0%} certainty; on average a guess is right {risk.mean():.0%} of the time."
        ).replace("%", " %")


def describe_counting(model: Any) -> str:
    """How text levels count where a model predicts numbers; "" for other models."""
    encoder = model.model_.encoder
    if not encoder.is_text:
        return ""
    start = "1, 2" if model.model_.unseen == "zero" else "0, 1"
    return f"levels counted {start}, ... from {encoder.levels_to_read[0]!r}"

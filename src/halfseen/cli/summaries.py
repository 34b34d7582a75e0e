"""Summaries of data and fits: facts for --json, and the same as sentences."""

import os
from typing import Any

from halfseen.cli.messages import as_option, render
from halfseen.cli.streams import OUTPUT, display_name
from halfseen.observed import Observed


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
    values = f", values {observed.values.min():g} to {observed.values.max():g}" if observed.nnz else ""
    if isinstance(facts["lowest"], str):
        values = f", levels {facts['lowest']!r} to {facts['highest']!r}"
    share = observed.nnz / max(facts["rows"] * facts["columns"], 1)
    columns = "" if observed.summary is None else f" {observed.summary.render(as_option)}"
    cells = f"{count(observed.nnz, 'cell')} seen ({share:.3g} of all)"
    return f"Read {facts['file']}: {facts['rows']:,} x {facts['columns']:,}, {cells}{values}.{columns}"


def fit_facts(model: Any) -> dict[str, Any]:
    """The model, and how its fit ended."""
    facts: dict[str, Any] = {"model": type(model).__name__}
    if hasattr(model, "n_components"):
        facts["n_components"] = getattr(model, "n_components_", model.n_components)
    facts |= {name: getattr(model, name) for name in (*defining_parameters(model), "unseen") if hasattr(model, name)}
    facts |= {"status": model.status_.name, "iterations": model.n_iter_}
    traced = [(name, model.trace_[name]) for name in model.trace_ if name in ("objective", "seconds")]
    facts |= {name: values[-1] for name, values in traced if len(values)}
    facts |= {"objective_name": model.objective_name} if "objective" in facts else {}
    if hasattr(model, "quality_"):  # of a blend
        lines = zip(*model.quality_.values(), strict=True)
        facts["models"] = [dict(zip(model.quality_, line, strict=True)) for line in lines]
    return facts


def defining_parameters(model: Any) -> list[str]:
    """Parameters that say what a model is: a loss, or a link; sampling has one link only."""
    is_sampled = getattr(model, "inference", "map") == "gibbs"
    return [name for name in ("loss", "inference" if is_sampled else "link") if hasattr(model, name)]


def describe_model(model: Any) -> str:
    """The model and its main parameters."""
    chosen = "".join(f", {name} {getattr(model, name)}" for name in defining_parameters(model))
    size = ""
    if hasattr(model, "n_components"):
        size = f"{count(getattr(model, 'n_components_', model.n_components), 'component')}{chosen}, "
    if hasattr(model, "quality_"):
        lines = list(zip(*model.quality_.values(), strict=True))
        size = ", ".join(f"{name} x {weight:.2f} ({ndcg:.4f} alone)" for name, weight, ndcg, _ in lines[:-1])
        size += f"; together {lines[-1][2]:.4f}. NDCG@100 of held-out cells. "
    elif hasattr(model, "l2_") and not hasattr(model, "n_components"):
        size = f"mean l2 {model.l2_:.4g}, cells as {model.values_}, "
    words = f"unseen cells are {model.unseen}."
    return f"{type(model).__name__}: {size}{words[0].upper() if size.endswith('. ') else words[0]}{words[1:]}"


def describe_end(model: Any, step: str = "iteration") -> str:
    """Why the fit ended, after how many iterations and seconds."""
    seconds = f"{model.trace_['seconds'][-1]:.2f} s" if model.n_iter_ else "no time"
    return f"{model.status_.name} after {count(model.n_iter_, step)} in {seconds}. {render(model.status_.value)}"


def describe_objective(model: Any) -> str:
    """The objective after the last and after the first iteration."""
    values = model.trace_["objective"]
    if not model.n_iter_ or model.status_.name == "DIRECT":
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


def describe_counting(model: Any) -> str:
    """How text levels count where a model predicts numbers; "" for other models."""
    encoder = getattr(model.model_, "encoder", None)  # scores of rankers without factors count nothing
    if encoder is None or not encoder.is_text:
        return ""
    start = "1, 2" if model.model_.unseen == "zero" else "0, 1"
    return f"levels counted {start}, ... from {encoder.levels_to_read[0]!r}"

"""What the commands tell after their work, as values for programs: --json."""

from dataclasses import asdict
from typing import Any

from halfseen.cli.streams import said
from halfseen.cli.uncoupled_accounts import CERTAIN
from halfseen.data import Observed


def of_data(path: str, observed: Observed) -> dict[str, Any]:
    """How much was read, and between which values."""
    rows, columns = observed.shape
    ends = (observed.values.min(), observed.values.max()) if observed.nnz else (None, None)
    low, high = (_called(value, observed) for value in ends)
    return {"file": said(path), "rows": rows, "columns": columns, "cells": observed.nnz, "lowest": low, "highest": high}


def of_fit(model: Any) -> dict[str, Any]:
    """The model, and how its fit ended."""
    told: dict[str, Any] = {"model": type(model).__name__, "n_components": model.n_components}
    told |= {name: getattr(model, name) for name in ("loss", "link", "unseen") if hasattr(model, name)}
    told |= {"status": model.status_.name, "iterations": model.n_iter_}
    told |= {name: trace[-1] for name, trace in model.trace_.items() if name in ("objective", "seconds") and len(trace)}
    return told | ({"objective_name": model.objective_name} if "objective" in told else {})


def of_uncoupled(model: Any, collected: Any) -> dict[str, Any]:
    """What three lists held, the fit, how well it has mixed, and what is disclosed."""
    told = {"data": asdict(collected.account), "method": model.method, **of_fit(model)}
    if model.method not in ("unmf", "decode"):
        del told["loss"]  # which plays no part
    if model.method == "gibbs":
        risk = model.disclosure_risk()
        told["diagnostics"] = {name: one._asdict() for name, one in model.diagnostics_.items()}
        certain = {"certain_from": CERTAIN, "certain": (risk >= CERTAIN).sum()}
        told["disclosure"] = {"answers": risk.size, "mean_probability": risk.mean(), **certain}
    return told


def of_file(path: str | None) -> str | None:
    """Where something was written."""
    return None if path is None else said(path)


def _called(value: Any, observed: Observed) -> Any:
    """A value as users call it: the name of a level that is a word, nothing for what unseen cells are."""
    if value is None or observed.level_names is None:
        return value
    return observed.level_names[int(value) - 1] if value else None

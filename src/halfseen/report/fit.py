"""The section on how the fit went."""

from __future__ import annotations

from typing import Any

from halfseen import plots
from halfseen.plots.fits import discarded
from halfseen.report.blocks import Block, Facts, Fold, Note, Picture, Section, Table, counted, text_of
from halfseen.report.drawing import drawn
from halfseen.report.known import Known

#: What is told of a model beside its end, where it has it.
_FURTHER = {
    "l2_": "Strength of the ridge",
    "increase_rate_": "Cells treated as missing, over holes",
    "n_parts_": "Parts that no seen cell connects",
    "n_clipped_": "Values below 0 that counted as 0",
}


def how_it_went(known: Known) -> Section:
    """Status, trace, diagnostics and parameters."""
    model = known.model
    blocks: list[Block] = [Facts(_facts(model)), Note(model.status_.value)]
    if model.n_iter_:
        blocks.append(_trace(model))
    if getattr(model, "diagnostics_", None):
        rows = [
            [name, float(one.mean), float(one.r_hat), float(one.effective)] for name, one in model.diagnostics_.items()
        ]
        heads = ["Quantity", "Mean", "Split R-hat", "Effective draws"]
        blocks.append(
            Table("Whether the chain has drawn enough: a split R-hat near 1 is good", heads, rows, is_wide=False)
        )
    parameters = [[name, text_of(value)] for name, value in sorted(model.get_params(deep=False).items())]
    blocks.append(Fold("All parameters", Table("Parameters of the model", ["Parameter", "Value"], parameters)))
    return Section("fit", "How the fit went", blocks)


def _facts(model: Any) -> list[tuple[str, Any]]:
    objective, seconds = model.trace_["objective"], model.trace_["seconds"]
    step = "sweep" if getattr(model, "method", None) == "gibbs" else "iteration"
    pairs: list[tuple[str, Any]] = [("Status", model.status_.name), (f"{step.capitalize()}s", int(model.n_iter_))]
    if model.n_iter_:
        pairs += [
            ("Seconds", float(seconds[-1])),
            (f"{model.objective_name} at the end", float(objective[-1])),
            (f"After the first {step}", float(objective[0])),
        ]
    pairs += [(words, getattr(model, name)) for name, words in _FURTHER.items() if hasattr(model, name)]
    return pairs


def _trace(model: Any) -> Picture:
    objective = model.trace_["objective"]
    burned = discarded(model)
    step = "sweep" if burned else "iteration"
    alt = (
        f"Line of the {model.objective_name.lower()} after each {step}: {objective[0]:,.6g} at first, "
        f"{objective[-1]:,.6g} after {counted(objective.size, step)}."
    )
    if burned:
        alt += f" The first {burned} were discarded and are shaded; violated comparisons are a second line."
    caption = f"{model.objective_name} after each {step}{'; what is shaded was discarded' if burned else ''}."
    return Picture(drawn(lambda ax: plots.trace(model, ax=ax)), alt, caption)

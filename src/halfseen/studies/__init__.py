"""The tables and figures of the papers, reproduced, with the paper's numbers beside ours.

The study `grr/table4.1` is one of the `STUDIES` of `grr_tables.py`, which is imported when it is first needed.
"""

from importlib import import_module

from halfseen.errors import ParameterError
from halfseen.studies.framework import Column, Goal, Picture, Result, Study, Table
from halfseen.validation import did_you_mean

#: All studies, in the order in which they are listed and run.
NAMES = (
    *("a1gm/table1", "a1gm/table2", "a1gm/figure4", "a1gm/figure5"),
    *("ordnmf/table2", "ordnmf/table3", "ordnmf/figure3", "ordnmf/figure4"),
    *("grr/figure2.2", "grr/figure4.1", "grr/figure4.2", "grr/figure4.3"),
    *("grr/table4.1", "grr/table4.2", "grr/table4.3"),
    *("grr/figure4.4", "grr/figure4.5", "grr/figure4.6", "grr/table4.4"),
    *("unmf/figure1", "unmf/figure2"),
)

__all__ = ["NAMES", "Column", "Goal", "Picture", "Result", "Study", "Table", "select", "study"]


def study(name: str) -> Study:
    """Return the study of this name: one of a paper's tables or figures."""
    paper, _, item = name.partition("/")
    module = import_module(f"halfseen.studies.{paper}_{'tables' if item.startswith('table') else 'figures'}")
    return {one.name: one for one in module.STUDIES}[name]


def select(name: str) -> tuple[str, ...]:
    """Return the names of the studies meant by a study's name, a paper (all its studies), or "all"."""
    name = name.lower()
    papers = list(dict.fromkeys(one.partition("/")[0] for one in NAMES))
    if name == "all":
        return NAMES
    if name in papers:
        return tuple(one for one in NAMES if one.startswith(f"{name}/"))
    if name in NAMES:
        return (name,)
    known = [*NAMES, *papers, "all"]
    near = did_you_mean(name, known)
    remedy = f"Did you mean {near!r}?" if near else "Choose one of these."
    raise ParameterError(f"A study must be one of {', '.join(known)}.", found=repr(name), remedy=remedy)

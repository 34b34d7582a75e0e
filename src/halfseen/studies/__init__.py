"""The tables and figures of the papers, reproduced: one folder per paper, the paper's numbers beside ours.

The study `grr/table4.1` is one of the `STUDIES` of `grr/tables.py`, imported when it is first needed.
"""

from importlib import import_module

from halfseen.checks import did_you_mean
from halfseen.errors import ParameterError
from halfseen.studies.base import Column, Goal, Picture, Result, Study, Table

#: Every study, in the order in which they are listed and run.
NAMES = (
    *("a1gm/table1", "a1gm/figure5"),
    *("ordnmf/table2", "ordnmf/table3", "ordnmf/figure4"),
    *("grr/figure2.2", "grr/figure4.1", "grr/figure4.2", "grr/figure4.3"),
    *("grr/table4.1", "grr/table4.2", "grr/table4.3"),
    *("grr/figure4.4", "grr/figure4.5", "grr/figure4.6", "grr/table4.4"),
    *("unmf/figure1", "unmf/figure2"),
)

__all__ = ["NAMES", "Column", "Goal", "Picture", "Result", "Study", "Table", "chosen", "study"]


def study(name: str) -> Study:
    """The study of this name: one of a paper's tables, or one of its figures."""
    paper, _, item = name.partition("/")
    module = import_module(f"halfseen.studies.{paper}.{'tables' if item.startswith('table') else 'figures'}")
    return {one.name: one for one in module.STUDIES}[name]


def chosen(word: str) -> tuple[str, ...]:
    """The names that a word stands for: a study, a paper (all its studies), or "all"."""
    word = word.lower()
    papers = list(dict.fromkeys(name.partition("/")[0] for name in NAMES))
    if word == "all":
        return NAMES
    if word in papers:
        return tuple(name for name in NAMES if name.startswith(f"{word}/"))
    if word in NAMES:
        return (word,)
    near = did_you_mean(word, [*NAMES, *papers, "all"])
    hint = f"Did you mean {near!r}?" if near else "Choose one of these."
    raise ParameterError(f"A study must be one of {', '.join([*NAMES, *papers, 'all'])}. Found {word!r}. {hint}")

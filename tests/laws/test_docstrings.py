"""Whatever is public says what it does, what each of its parameters is, and shows it where an example helps."""

import doctest
import inspect
import re
from enum import Enum
from pkgutil import resolve_name

import pytest

from tests.laws.public import building_blocks, fields_told_of, listed_names, members_of, methods_of

LISTED = listed_names()
CLASSES = [(name, thing) for name, thing in LISTED if inspect.isclass(thing)]
#: What is passed by itself, and what is handed on to a method that tells of it.
NOT_TOLD = ("self", "cls", "args", "kwargs")
#: What shows an example in its docstring.
SHOWN = (
    "BernoulliPoisson",
    "Blend",
    "Checkpoint",
    "CompoundPoisson",
    "ImplicitMF",
    "ItemGraph",
    "OrdNMF",
    "OrdinalMF",
    "PoissonFactorization",
    "Popularity",
    "Quantizer",
    "RankOneNMF",
    "RankSearch",
    "RoundMF",
    "Search",
    "SquaredOrdNMF",
    "SquaredPoisson",
    "TableImputer",
    "Uncoupled",
    "UncoupledNMF",
    "WeightedNMF",
    "data.split_cells",
    "data.split_rows",
    "evaluate",
    "load",
    "make_report",
    "metrics.ranking_scores",
    "metrics.standard_error",
    "observe",
    "rank.approximate_rank",
    "rank.cells_needed",
    "rank.certainty",
    "rank.complete_by_orders",
    "rank.round_rank",
    "rank.sign_rank",
    "rank_one",
    "rank_one_nmtf",
)


def callables():
    """Every public function, constructor and method, by name."""
    for name, thing in (*LISTED, *building_blocks()):
        if not inspect.isclass(thing) or _has_parameters(thing):
            yield name, thing
    for name, kind in CLASSES:
        for method_name, method in methods_of(kind).items():
            yield f"{name}.{method_name}", method


def _has_parameters(kind):
    """Whether it has parameters of its own: errors have a text, enumerations are chosen from."""
    return not issubclass(kind, BaseException | Enum)


def parameters_of(thing):
    return [name for name in inspect.signature(thing).parameters if name not in NOT_TOLD]


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*one, id=one[0]) for one in callables()])
def test_a_docstring_names_every_parameter(name, thing):
    told = inspect.getdoc(thing) or ""
    own = [base for base in getattr(thing, "__mro__", ()) if base.__module__.startswith("halfseen.")]
    described = set().union(*map(fields_told_of, own))
    absent = [one for one in parameters_of(thing) if one not in described and not re.search(rf"\b{one}\b", told)]
    assert not absent, f"{name} does not tell of {', '.join(absent)}"


@pytest.mark.parametrize(("name", "kind"), [pytest.param(*one, id=one[0]) for one in CLASSES])
def test_every_member_has_a_docstring(name, kind):
    silent = [member for member, thing in members_of(kind).items() if not inspect.getdoc(thing)]
    assert not silent, f"{name} has members that say nothing: {', '.join(silent)}"


@pytest.mark.parametrize("name", SHOWN)
def test_the_example_of_a_docstring_gives_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = resolve_name(f"halfseen:{name}")
    (example,) = doctest.DocTestFinder(recurse=False).find(thing, name, module=False, globs={})
    assert 3 <= len(example.examples) <= 6
    wrong = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=wrong.append)
    assert outcome.failed == 0, "".join(wrong)
    assert any(one.want for one in example.examples)


def test_whatever_shows_an_example_is_run():
    shown = {name.removeprefix("halfseen.") for name, thing in LISTED if ">>>" in (inspect.getdoc(thing) or "")}
    assert shown == set(SHOWN)

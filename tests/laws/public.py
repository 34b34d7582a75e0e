"""What people may call: the names that `halfseen` and its public modules list, and those on the pages of reference."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, NamedTuple

import halfseen

REFERENCE = Path(__file__).parents[2] / "docs" / "api"
#: Members for other modules of the library, and what scikit-learn adds; the site leaves both out, too (mkdocs.yml).
INNER = (
    *("parameter_rules", "factor_type", "score_is_log_likelihood", "objective_name", "set_.*_request"),
    *("offers", "record", "more_state", "state", "levels_to_read", "finds", "step_name"),
)


class Named(NamedTuple):
    """Something public, by the name under which it is had."""

    name: str
    thing: Any


def listed_names() -> list[Named]:
    """Everything that halfseen and its public modules list, under the first of its names."""
    first: dict[int, Named] = {}
    for one in sorted(_listed_in(halfseen), key=lambda one: one.name.count(".")):
        first.setdefault(id(one.thing), one)
    return list(first.values())


def _listed_in(module: ModuleType) -> Iterator[Named]:
    for name in getattr(module, "__all__", None) or _defined_in(module):
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            yield from _listed_in(thing)
        else:
            yield Named(f"{module.__name__}.{name}", thing)


def _defined_in(module: ModuleType) -> list[str]:
    own = (name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__)
    return [name for name in own if not name.startswith("_")]


@cache
def reference() -> dict[str, str]:
    """What its pages ask for, single names or whole modules, and with which options."""
    pages = (page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md")))
    return dict(re.findall(r"^::: ([\w.]+)\n((?:    .*\n)*)", "\n".join(pages), re.MULTILINE))


def building_blocks() -> Iterator[Named]:
    """What the reference has beside the names that are listed."""
    listed = {id(thing) for _, thing in listed_names()}
    for name in reference():
        thing = resolve_name(name)
        if not isinstance(thing, ModuleType) and id(thing) not in listed:
            yield Named(name, thing)


def members_of(kind: type) -> dict[str, Any]:
    """The methods and properties of a class that halfseen itself gives it, by name."""
    own = (base for base in kind.__mro__ if base.__module__.startswith("halfseen."))
    found = dict.fromkeys(name for base in own for name, thing in vars(base).items() if hasattr(thing, "__get__"))
    inner = re.compile(rf"_.*|{'|'.join(INNER)}")
    public = (name for name in found if not inner.fullmatch(name) and name not in fields_of(kind))
    return {name: inspect.getattr_static(kind, name) for name in public}


def methods_of(kind: type) -> dict[str, Any]:
    """Those members that can be called."""
    return {name: getattr(kind, name) for name in members_of(kind) if callable(getattr(kind, name))}


def fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a record, the values of an enumeration."""
    if issubclass(kind, Enum):
        return tuple(kind.__members__)
    names = (field.name for field in fields(kind)) if is_dataclass(kind) else getattr(kind, "_fields", ())
    return tuple(name for name in names if not name.startswith("_"))


def fields_told_of(kind: type) -> set[str]:
    """Fields that a text of their own follows in the source."""
    (body,) = (node.body for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body)  # type: ignore[attr-defined]
    told = set()
    for before, after in pairwise(body):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            target = before.target if isinstance(before, ast.AnnAssign) else getattr(before, "targets", [None])[0]
            told.add(getattr(target, "id", ""))
    return told


def is_on_the_site(kind: type, name: str) -> bool:
    """Whether a member has a text of its own in the source, without which the site leaves it out."""
    base = next(base for base in kind.__mro__ if name in {**vars(base), **getattr(base, "__annotations__", {})})
    member = vars(base).get(name)
    if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod | property | cached_property):
        return bool(member.__doc__)
    if hasattr(member, "fn"):  # available where the model can do it
        return bool(member.fn.__doc__)
    _, _, attributes = (base.__doc__ or "").partition("Attributes\n")
    documented = {one for line in re.findall(r"^ +([\w, ]+) : ", attributes, re.MULTILINE) for one in line.split(", ")}
    return name in documented or name in fields_told_of(base)

"""Parameter checks, declared next to each estimator and run at the start of every fit."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from halfseen.errors import ParameterError

#: Says what is wrong with a value, as "what must hold" and "what to do", or nothing if all is well.
Rule = Callable[[Any], tuple[str, str] | None]

#: What people call our parameters elsewhere.
OTHER_WORDS = {
    "k": "n_components",
    "rank": "n_components",
    "factors": "n_components",
    "n_factors": "n_components",
    "num_factors": "n_components",
    "no_components": "n_components",
    "epochs": "max_iter",
    "n_epochs": "max_iter",
    "n_iter": "max_iter",
    "maxiter": "max_iter",
    "tolerance": "tol",
    "iterations": "max_iter",
    "seed": "random_state",
    "random_seed": "random_state",
    "beta_loss": "loss",
    "n_threads": "n_jobs",
    "num_threads": "n_jobs",
    "ncores": "n_jobs",
}

#: More components than arrays can have.
MOST_COMPONENTS = 2**31 - 1


def check_parameters(values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Refuse the first value that breaks its rule."""
    for name, rule in rules.items():
        if complaint := rule(values[name]):
            must, remedy = complaint
            raise ParameterError(f"{name} must be {must}. Found {values[name]!r}. {remedy}")


def check_names(names: Iterable[str], known: Iterable[str], whose: str) -> None:
    """Refuse the first unknown parameter name, with the one that was probably meant."""
    known = sorted(known)
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known)
            hint = f"Did you mean {meant!r}?" if meant else f"Valid parameters are: {', '.join(known)}."
            raise ParameterError(f"Invalid parameter {name!r} for estimator {whose}. {hint}")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` probably stands for: another library's word for it, or a near spelling."""
    known = list(known)
    if OTHER_WORDS.get(name) in known:
        return OTHER_WORDS[name]
    near = get_close_matches(name, known, n=1)
    return near[0] if near else None


def whole(minimum: int, maximum: float = float("inf")) -> Rule:
    """A whole number of at least `minimum`, and at most `maximum`."""

    def rule(value: Any) -> tuple[str, str] | None:
        is_whole = isinstance(value, Integral) and not isinstance(value, bool)
        if is_whole and minimum <= int(value) <= maximum:
            return None
        if is_whole and int(value) > maximum:
            return f"a whole number of at most {maximum:,}", "Use a smaller one."
        return f"a whole number of at least {minimum}", f"Use {minimum} or more."

    return rule


def number(minimum: float, *, above: bool = False, or_none: bool = False) -> Rule:
    """A finite number of at least `minimum`, or `above` it; None too, if `or_none`."""

    def rule(value: Any) -> tuple[str, str] | None:
        if value is None and or_none:
            return None
        if _is_number(value) and minimum <= value < float("inf") and (value > minimum or not above):
            return None
        bound = f"above {minimum:g}" if above else f"of at least {minimum:g}"
        return f"a finite number {bound}{' or None' if or_none else ''}", "Choose such a number."

    return rule


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def between(low: float, high: float, *, or_none: bool = False) -> Rule:
    """A number above `low` and below `high`; None too, if `or_none`."""

    def rule(value: Any) -> tuple[str, str] | None:
        if (value is None and or_none) or (_is_number(value) and low < value < high):
            return None
        none = " or None" if or_none else ""
        return f"a number between {low:g} and {high:g}, both excluded{none}", "Choose such a number."

    return rule


def one_of(*names: str, or_none: bool = False) -> Rule:
    """One of these `names`; None too, if `or_none`."""

    def rule(value: Any) -> tuple[str, str] | None:
        if (isinstance(value, str) and value in names) or (value is None and or_none):
            return None
        near = did_you_mean(str(value), names)
        none = " or None" if or_none else ""
        return (
            f"one of {', '.join(map(repr, names))}{none}",
            f"Did you mean {near!r}?" if near else "Choose one of these.",
        )

    return rule


def flag() -> Rule:
    """True or False."""

    def rule(value: Any) -> tuple[str, str] | None:
        return None if isinstance(value, bool | np.bool_) else ("True or False", "Choose one of the two.")

    return rule


def threads() -> Rule:
    """A number of threads: None for all processors, a whole number other than 0."""

    def rule(value: Any) -> tuple[str, str] | None:
        if value is None or (isinstance(value, Integral) and not isinstance(value, bool) and value != 0):
            return None
        return "None or a whole number other than 0", "Use None for all processors, 1 for one thread."

    return rule


def seed() -> Rule:
    """None, a whole number, or a RandomState."""

    def rule(value: Any) -> tuple[str, str] | None:
        if value is None or isinstance(value, np.random.RandomState):
            return None
        if isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**32:
            return None
        return "None, a whole number from 0 to 2**32 - 1, or a RandomState", "Use 0 for a start that can be repeated."

    return rule


def start(*names: str) -> Rule:
    """A start by one of these `names`, or a pair of arrays; their shapes are checked when the data are known."""

    def rule(value: Any) -> tuple[str, str] | None:
        if (isinstance(value, str) and value in names) or (isinstance(value, tuple | list) and len(value) == 2):
            return None
        allowed = " or ".join(map(repr, names))
        return f"{allowed} or a pair of arrays (W0, H0)", "W0 has a row for each row of X, H0 one for each column."

    return rule


def rising(above: float | None = None) -> Rule:
    """None, or numbers of which each is larger than the one before, the first larger than `above`."""

    def rule(value: Any) -> tuple[str, str] | None:
        if value is None:
            return None
        try:
            numbers = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.empty((0, 0))
        bounded = above is None or (numbers > above).all()
        if (
            numbers.ndim == 1
            and numbers.size
            and np.isfinite(numbers).all()
            and (np.diff(numbers) > 0).all()
            and bounded
        ):
            return None
        return f"None or rising numbers{'' if above is None else f' above {above:g}'}", "List them in their order."

    return rule

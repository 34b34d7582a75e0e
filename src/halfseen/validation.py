"""Validation of parameters: rules declared next to each estimator and run at the start of every fit."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from halfseen.errors import ParameterError

#: Returns what a value must be and what to do (for the command line, too, where that differs); None if it is valid.
Rule = Callable[[Any], tuple[str, ...] | None]
#: What `random_state` may be.
Seed = int | np.random.RandomState | None

#: Names of our parameters in other libraries.
OTHER_WORDS = {
    **dict.fromkeys(("k", "rank", "factors", "n_factors", "num_factors", "no_components"), "n_components"),
    **dict.fromkeys(("epochs", "n_epochs", "n_iter", "maxiter", "iterations"), "max_iter"),
    **dict.fromkeys(("seed", "random_seed"), "random_state"),
    **dict.fromkeys(("n_threads", "num_threads", "ncores"), "n_jobs"),
    "tolerance": "tol",
    "beta_loss": "loss",
}

MOST_COMPONENTS = 2**31 - 1  # that arrays can have


def check_parameters(values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Refuse the first value that breaks its rule."""
    for name, rule in rules.items():
        if complaint := rule(values[name]):
            must, remedy, *cli = complaint
            found, remedy_cli = repr(values[name]), cli[0] if cli else None
            raise ParameterError(f"must be {must}.", parameter=name, found=found, remedy=remedy, remedy_cli=remedy_cli)


def check_names(names: Iterable[str], known: Iterable[str], whose: str) -> None:
    """Refuse the first unknown parameter name, and suggest the one that was probably meant."""
    known = sorted(known)
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known)
            remedy = f"Did you mean {meant!r}?" if meant else f"Valid parameters are: {', '.join(known)}."
            raise ParameterError(f"Invalid parameter {name!r} for estimator {whose}.", parameter=name, remedy=remedy)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` probably stands for: another library's word for it, or a near spelling."""
    known = list(known)
    if OTHER_WORDS.get(name) in known:
        return OTHER_WORDS[name]
    near = get_close_matches(name, known, n=1)
    return near[0] if near else None


def whole(minimum: int, maximum: float = float("inf"), *, or_none: bool = False) -> Rule:
    """A whole number of at least `minimum` and at most `maximum`; None too, if `or_none`."""
    else_none = " or None" if or_none else ""

    def rule(value: Any) -> tuple[str, ...] | None:
        if (_is_whole(value) and minimum <= value <= maximum) or (value is None and or_none):
            return None
        if _is_whole(value) and value > maximum:
            return f"a whole number of at most {maximum:,}{else_none}", "Use a smaller one."
        return f"a whole number of at least {minimum}{else_none}", f"Use {minimum} or more."

    return rule


def or_else(rule: Rule, other: str | None) -> Rule:
    """What `rule` takes, or this name or None."""

    def either(value: Any) -> tuple[str, ...] | None:
        complaint = None if value is other or (isinstance(value, str) and value == other) else rule(value)
        return complaint and (f"{complaint[0]} or {other!r}", *complaint[1:])

    return either


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _rule(is_valid: Callable[[Any], bool], must: str, *remedies: str) -> Rule:
    return lambda value: None if is_valid(value) else (must, *remedies)


def number(minimum: float, *, above: bool = False, or_none: bool = False) -> Rule:
    """A finite number of at least `minimum`, or `above` it; None too, if `or_none`."""

    def is_valid(value: Any) -> bool:
        if value is None:
            return or_none
        return _is_number(value) and minimum <= value < float("inf") and (value > minimum or not above)

    bound = f"above {minimum:g}" if above else f"of at least {minimum:g}"
    return _rule(is_valid, f"a finite number {bound}{' or None' if or_none else ''}", "Choose such a number.")


def between(low: float, high: float, *, or_none: bool = False) -> Rule:
    """A number above `low` and below `high`; None too, if `or_none`."""

    def is_valid(value: Any) -> bool:
        return or_none if value is None else _is_number(value) and low < value < high

    none = " or None" if or_none else ""
    return _rule(is_valid, f"a number between {low:g} and {high:g}, both excluded{none}", "Choose such a number.")


def one_of(*names: str, or_none: bool = False) -> Rule:
    """One of these `names`; None too, if `or_none`."""

    def rule(value: Any) -> tuple[str, ...] | None:
        if (isinstance(value, str) and value in names) or (value is None and or_none):
            return None
        near = did_you_mean(str(value), names)
        must = f"one of {', '.join(map(repr, names))}{' or None' if or_none else ''}"
        return must, f"Did you mean {near!r}?" if near else "Choose one of these."

    return rule


def flag() -> Rule:
    """True or False."""
    return _rule(lambda value: isinstance(value, bool | np.bool_), "True or False", "Choose one of the two.")


def threads() -> Rule:
    """A number of threads: None for all processors, a whole number other than 0."""
    return _rule(
        lambda value: value is None or (_is_whole(value) and value != 0),
        "None or a whole number other than 0",
        "Use None for all processors, 1 for one thread.",
        "Leave it out for all processors, or use 1 for one thread.",
    )


def seed() -> Rule:
    """None, a whole number, or a RandomState."""

    def is_valid(value: Any) -> bool:
        return value is None or isinstance(value, np.random.RandomState) or (_is_whole(value) and 0 <= value < 2**32)

    must = "None, a whole number from 0 to 2**32 - 1, or a RandomState"
    return _rule(is_valid, must, "Use 0 for a start that can be repeated.")


def start(*names: str) -> Rule:
    """A start by one of these `names`, or a pair of arrays; their shapes are checked when the data are known."""

    def is_valid(value: Any) -> bool:
        return (isinstance(value, str) and value in names) or (isinstance(value, tuple | list) and len(value) == 2)

    must = f"{' or '.join(map(repr, names))} or a pair of arrays (W0, H0)"
    return _rule(is_valid, must, "W0 has a row for each row of X, H0 one for each column.")


def rising(above: float | None = None) -> Rule:
    """None, or numbers of which each is larger than the one before, the first larger than `above`."""

    def is_valid(value: Any) -> bool:
        if value is None:
            return True
        try:
            numbers = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        is_finite_list = numbers.ndim == 1 and numbers.size > 0 and np.isfinite(numbers).all()
        return bool(is_finite_list and (np.diff(numbers) > 0).all() and (above is None or (numbers > above).all()))

    must = f"None or rising numbers{'' if above is None else f' above {above:g}'}"
    return _rule(is_valid, must, "List them in their order.")

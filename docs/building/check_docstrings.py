"""Validate the docstrings of all public names by numpydoc: every parameter with its type, a description, in order.

python docs/building/check_docstrings.py
"""

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from enum import Enum

from numpydoc.validate import Validator, validate

import halfseen

#: Codes of numpydoc's checks that must hold: parameters (PR), a docstring (GL08) with a summary (SS01).
CODES = ("GL08", "PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR10", "SS01")


def public_names() -> Iterator[str]:
    """Public functions, classes and their methods, and those of public modules."""
    for name in halfseen.__all__:
        thing = getattr(halfseen, name)
        if inspect.ismodule(thing):
            yield from (f"halfseen.{name}.{member}" for member in getattr(thing, "__all__", ()))
            continue
        yield f"halfseen.{name}"
        if inspect.isclass(thing):
            for member, value in inspect.getmembers(thing, callable):
                if not member.startswith("_") and str(getattr(value, "__module__", "")).startswith("halfseen"):
                    yield f"halfseen.{name}.{member}"


def is_record(name: str) -> bool:
    """Whether a name is a record or an enumeration, which document their fields, or forwards its arguments."""
    thing = Validator._load_obj(name)
    if inspect.isclass(thing):
        return dataclasses.is_dataclass(thing) or issubclass(thing, tuple | Enum)
    return set(inspect.signature(thing).parameters) == {"self", "args", "kwargs"}


def main() -> int:
    """Print what is wrong; the exit code says whether anything is."""
    wrong = [
        f"{name}: {code} {message}"
        for name in dict.fromkeys(public_names())
        for code, message in validate(name)["errors"]
        if code in CODES and not (code == "PR01" and is_record(name))
    ]
    print("\n".join(wrong) or "All public docstrings are valid.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

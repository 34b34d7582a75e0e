"""Errors and warnings of halfseen.

Every message has one shape: what must hold; what was found, and where first; what to do.

    Ordinal levels must be integers 0..V. Found 3.5 at row 17, column 4. Round the values, or use WeightedNMF.

The parts are fields of the exception, so that a program need not parse the sentence. Settings in `must` and `remedy`
stand in backquotes, as Python code: "Pass `duplicates="mean"`." `str(error)` shows them without the backquotes; the
command line shows its own options instead.
"""

import re
from collections.abc import Callable
from typing import Any

#: Python code in backquotes: a name, a setting, a call.
CODE = re.compile(r"`([^`\n]*)`")


class Described(Exception):
    """Message of an exception or a warning, kept as fields.

    Parameters
    ----------
    must : str
        What must hold: a sentence with its full stop. If it begins with "must" and there is a `parameter`, the
        parameter is its subject.
    found : str, optional
        What was found instead, as it follows "Found".
    where : str, optional
        Where, as it follows `found`: "at row 17, column 4", "in line 3 of 'ratings.csv'".
    remedy : str, optional
        What to do: a sentence or more.
    parameter : str, optional
        Name of the parameter or argument at fault.
    remedy_cli : str, optional
        What to do on the command line, where that is something else.
    """

    def __init__(
        self,
        must: str,
        *,
        found: str = "",
        where: str = "",
        remedy: str = "",
        parameter: str | None = None,
        remedy_cli: str | None = None,
    ) -> None:
        self.must = must
        self.found = found
        self.where = where
        self.remedy = remedy
        self.parameter = parameter
        self.remedy_cli = remedy_cli
        super().__init__(self.render())

    def render(self, code: Callable[[str], str] = str, *, cli: bool = False) -> str:
        """Return the message as one text.

        Parameters
        ----------
        code : callable, default=str
            Called with each piece of Python code in backquotes, and with `parameter`; returns the text to show.
        cli : bool, default=False
            Whether to show `remedy_cli`, where there is one.
        """
        must = f"{code(self.parameter)} {self.must}" if self.parameter and self.must.startswith("must ") else self.must
        remedy = self.remedy_cli if cli and self.remedy_cli is not None else self.remedy
        found = " ".join(filter(None, ("Found", self.found, self.where))) + "." if self.found or self.where else ""
        must, remedy = (CODE.sub(lambda match: code(match[1]), text) for text in (must, remedy))
        return " ".join(filter(None, (must, found, remedy)))

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


def _rebuild(cls: type, fields: dict[str, Any]) -> Any:
    """Make an exception from its fields, for pickle, which knows positional arguments only."""
    error = cls(fields["must"])
    error.__dict__.update(fields)
    return error


class HalfseenError(Described):
    """Base of all errors that halfseen raises on purpose; the command line shows it as one line."""


class ParameterError(HalfseenError, ValueError):
    """A parameter is unknown, of the wrong type or outside its range."""


class DataError(HalfseenError, ValueError):
    """The data, a file of data, or a requested label cannot be used as given."""


class ModelFileError(HalfseenError, OSError):
    """A model file cannot be written, is damaged, foreign, or newer than this version of halfseen."""


class EngineError(HalfseenError, RuntimeError):
    """The requested engine cannot run here."""


class DataWarning(Described, UserWarning):
    """The data were used, but something in them deserves a look, such as a row without an observed cell."""

"""Everything halfseen raises, in one place.

Every message has one shape: what must hold; what was found, and where first; what to do.

    Ordinal levels must be integers 0..V. Found 3.5 at row 17, column 4. Round the values, or use WeightedNMF.
"""


class HalfseenError(Exception):
    """The base of all errors that halfseen raises on purpose; the command line shows it as one line."""


class ParameterError(HalfseenError, ValueError):
    """A parameter is unknown, of the wrong type or outside its range."""


class DataError(HalfseenError, ValueError):
    """The data, a file of data, or a label asked for can't be used as given."""


class ModelFileError(HalfseenError, OSError):
    """A model file can't be written, is damaged, foreign, or newer than this version of halfseen."""


class EngineError(HalfseenError, RuntimeError):
    """The engine asked for can't run here."""


class DataWarning(UserWarning):
    """The data were used, but something in them deserves a look, such as a row without a seen cell."""

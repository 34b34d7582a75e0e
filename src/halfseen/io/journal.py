"""Journals: finished pieces of a long computation in a text file, from which a later run of the same goes on."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from halfseen.errors import DataError
from halfseen.io.tables import FilePath

#: What a line has beside the fields of its key.
RESULT = ("score", "seconds", "converged")


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays and tuples are lists, models their class and parameters, others their text."""
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if hasattr(value, "get_params"):
        params = {name: one for name, one in value.get_params(deep=False).items() if name not in ("n_jobs", "verbose")}
        return {"class": type(value).__name__, **plain(params)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    return name if name != "." and callable(value) else repr(value)


class Journal:
    """A file of JSON lines: first what the run is of, then a line for each finished piece.

    A line is written at once and is complete when its end is there: what was cut off by a killed process is written
    again. Only one process may write a journal at a time.

    Parameters
    ----------
    path : str or path-like
        The file; made if it does not exist.
    data : str
        Fingerprint of the data.
    settings : dict
        Everything else that the results depend on.
    """

    def __init__(self, path: FilePath, data: str, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._head = {"journal": 1, "data": data, "settings": plain(settings)}
        head = json.dumps(self._head, ensure_ascii=False).encode() + b"\n"
        self._run = blake2b(head, digest_size=8).hexdigest()
        try:
            text = self.path.read_bytes() if self.path.exists() else b""
            lines = text.split(b"\n")
            if not head.startswith(text):
                self._check_head(lines[0])
            self._done = dict(self._read(number, line) for number, line in enumerate(lines[1:-1], start=2))
            whole = text[: text.rfind(b"\n") + 1] or head
            if whole != text:  # new, or the last line was cut
                with self.path.open("ab") as file:
                    file.truncate(min(len(whole), len(text)))
                    file.write(whole[len(text) :])
        except OSError as error:
            raise self._not_writable(error) from None

    def _check_head(self, line: bytes) -> None:
        """Refuse a file that is no journal, or one of other data or settings."""
        try:
            there = json.loads(line)
            data, settings = there["data"], dict(there["settings"])
        except (ValueError, KeyError, TypeError):
            raise DataError(
                "A journal must be a file that a search wrote.",
                found=f"another one, {str(self.path)!r}",
                remedy="Name a new file.",
                parameter="journal",
            ) from None
        if there == self._head:
            return
        here: dict[str, Any] = self._head["settings"]
        other = next((name for name in {**settings, **here} if settings.get(name) != here.get(name)), "journal")
        found = "evaluations of other data"
        if data == self._head["data"]:
            found = f"{other}={json.dumps(settings.get(other))} where {json.dumps(here.get(other))} is asked for"
        raise DataError(
            "A journal must be of the same data and settings.",
            found=found,
            where=f"in {str(self.path)!r}",
            remedy="Search with those, name another journal, or delete this one to begin again.",
            parameter="journal",
        )

    def _read(self, number: int, line: bytes) -> tuple[str, dict[str, Any]]:
        """The key and the fields of a line."""
        try:
            fields = json.loads(line)
            if fields.pop("run") == self._run and {"seconds", "converged"} < fields.keys():
                float(fields["score"])
                return self._key(fields), fields
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise DataError(
            "A line of a journal must hold an evaluation of its run.",
            found="another line",
            where=f"in line {number} of {str(self.path)!r}",
            remedy="Remove this line; its evaluation will be done again.",
            parameter="journal",
        )

    def _not_writable(self, error: OSError) -> DataError:
        return DataError(
            f"A journal must have a writable place with room enough. Could not write {str(self.path)!r}: "
            f"{error.strerror or error}.",
            remedy="Choose another place.",
            parameter="journal",
        )

    def _key(self, fields: Mapping[str, Any]) -> str:
        return json.dumps({name: one for name, one in plain(fields).items() if name not in RESULT}, sort_keys=True)

    def find(self, **key: Any) -> dict[str, Any] | None:
        """The fields of a finished piece, None if it is not there.

        Parameters
        ----------
        **key : object
            What it is.
        """
        return self._done.get(self._key(key))

    def append(self, **fields: Any) -> None:
        """Write a finished piece.

        Parameters
        ----------
        **fields : object
            What it is, and its score, seconds, and whether it converged.
        """
        line = json.dumps({"run": self._run, **plain(fields)}, ensure_ascii=False).encode() + b"\n"
        try:
            with self._lock, self.path.open("ab", buffering=0) as file:
                file.write(line)
        except OSError as error:
            raise self._not_writable(error) from None

    def where_to_go_on(self) -> str:
        """What there is, and how a run goes on from it."""
        count = self.path.read_bytes().count(b"\n") - 1
        return (
            f"{count} {'fit is' if count == 1 else 'fits are'} in {str(self.path)!r}: the same search goes on from it"
        )

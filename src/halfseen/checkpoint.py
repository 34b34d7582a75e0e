"""Checkpoints: what a fit has reached, in files of a folder, from which the same fit goes on with the same numbers.

A folder holds a manifest, a lock, and files of arrays. What is saved is a tree of plain values, arrays, random
generators and the records that model files may hold; small arrays lie in the manifest. Every save writes its arrays to
new files, then puts a new manifest in the place of the old one, then deletes the files which no manifest names any
more: whenever a process is killed, there is one whole state. The manifest names what it is of: class, parameters and a
fingerprint of the data. Nothing in it can name code to be run.
"""

import base64
import json
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from halfseen import archive
from halfseen.array_files import ArrayFile, is_temporary, lock_file, remove_leftovers, write_array
from halfseen.arrays import Array
from halfseen.engines import Engine, Side
from halfseen.errors import DataError, DataWarning, EngineError, HalfseenError, ParameterError
from halfseen.io.journal import plain
from halfseen.io.sources import as_frame
from halfseen.io.tables import FilePath
from halfseen.model import Status
from halfseen.validation import Rule, number, whole

#: "Resuming from iteration 212 of run/." and "Saved iteration 212 in run/; ..." are of level INFO.
log = logging.getLogger("halfseen.checkpoint")

FORMAT, VERSION = "halfseen-checkpoint", 1
#: To be raised by a release in which fits give other numbers: those of an earlier one can't go on to the same end.
NUMBERS = 1
MANIFEST, LOCK = "checkpoint.json", "checkpoint.lock"
#: Where a search that precedes a fit keeps its journal.
JOURNAL = "search.jsonl"
#: Files that checkpoints write, and drafts of theirs: no others are ever deleted.
_ARRAY = re.compile(r"state-\d{8}-[\w.-]+")
_ARRAYS = re.compile(rf"{_ARRAY.pattern}|\.({_ARRAY.pattern}|checkpoint\.json)\.[0-9a-f]{{16}}\.part")
#: Types of arrays in them.
_DTYPES = re.compile(r"[<>][iuf][248]|\|[biu]1")
#: Bytes of an array at most that lies in the manifest.
_LARGEST_INLINE = 1 << 14
#: The largest share of the time that saves may take.
SHARE_OF_TIME = 0.02
#: Parameters in which a fit may differ from the one that it goes on from.
MAY_DIFFER = ("checkpoint", "max_iter", "n_jobs", "verbose")
#: Ends after which nothing is left to do, whatever `max_iter` is.
ENDS = (Status.CONVERGED, Status.NOT_FINITE, Status.WORSENED)

#: What the first axis of an array is along; arrays of the "host" are no engine's.
Along = Side | Literal["cells", "host"] | None


@dataclass(frozen=True)
class Checkpoint:
    """Where, and how often, a fit saves what it has reached.

    A fit that was killed, and is started again with the same parameters and data, goes on from there, and ends with
    the same numbers, to the last bit, as one that nothing has stopped. Saves take at most 2 % of the time. SIGTERM and
    SIGHUP, as from a scheduler that takes a machine back, save before the process ends. After the end the folder keeps
    the fit: the same call returns it at once, and one with a larger `max_iter` goes on. Delete the folder to free its
    space, or to begin again.

    Parameters
    ----------
    folder : str or path-like
        A folder of its own for each fit; made if it does not exist.
    seconds : float, default=60.0
        Shortest time between two saves.
    iterations : int or None, default=None
        Save after so many iterations, whatever time that takes; None goes by `seconds`.

    Examples
    --------
    >>> import tempfile, halfseen as hs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = hs.WeightedNMF(1, checkpoint=hs.Checkpoint(folder, iterations=10), random_state=0)
    ...     first = model.fit([[1.0, 2.0], [2.0, 4.0]]).n_iter_
    ...     again = model.fit([[1.0, 2.0], [2.0, 4.0]]).n_iter_  # read from the folder
    >>> first == again
    True
    """

    folder: FilePath
    seconds: float = 60.0
    iterations: int | None = None

    def __post_init__(self) -> None:
        rules: dict[str, Rule] = {
            "folder": lambda value: None if is_path(value) else ("the path of a folder", "Name one for each fit."),
            "seconds": number(0.0),
            "iterations": whole(1, or_none=True),
        }
        for name, rule in rules.items():
            if complaint := rule(getattr(self, name)):
                must, found = f"must be {complaint[0]}.", repr(getattr(self, name))
                raise ParameterError(must, parameter=name, found=found, remedy=complaint[1])

    @classmethod
    def of(cls, given: Any) -> "Checkpoint | None":
        """What the parameter `checkpoint` of an estimator stands for.

        Parameters
        ----------
        given : str, path-like, Checkpoint or None
            Its value.

        Returns
        -------
        Checkpoint or None
        """
        return given if given is None or isinstance(given, Checkpoint) else cls(given)

    def make_folder(self) -> bool:
        """Make the folder; refuse one with something else in it, or that has lost its manifest.

        Returns
        -------
        bool
            Whether something was saved there.
        """
        path = Path(self.folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            names = sorted(os.listdir(path))
        except OSError as error:
            raise self.not_writable(error) from None
        if MANIFEST in names:
            return True
        if any(name.startswith("state-") and _ARRAYS.fullmatch(name) for name in names):
            raise self.damaged(MANIFEST)
        ours = (LOCK, JOURNAL)
        others = [name for name in names if not (name in ours or _ARRAYS.fullmatch(name) or is_temporary(name))]
        if others:
            raise DataError(
                "A checkpoint must have a folder of its own.",
                found=f"{others[0]!r}",
                where=f"in {str(self)!r}",
                remedy="Name a new folder, or an empty one.",
                parameter="checkpoint",
            )
        return False

    def damaged(self, name: str) -> DataError:
        """The error of a file that is not as it was written.

        Parameters
        ----------
        name : str
            Of the file.

        Returns
        -------
        DataError
        """
        return DataError(
            "A checkpoint must be whole.",
            found="missing, cut off or changed bytes",
            where=f"in {os.path.join(self.folder, name)!r}",
            remedy="Restore the folder from a backup, or delete it to begin again.",
            parameter="checkpoint",
        )

    def not_writable(self, error: OSError | EngineError) -> DataError:
        """The error of a folder that can't be written.

        Parameters
        ----------
        error : OSError or EngineError
            The system's, or that of an engine whose workers can't write.

        Returns
        -------
        DataError
        """
        why = (isinstance(error, OSError) and error.strerror) or str(getattr(error, "found", error))
        return DataError(
            f"A checkpoint must have a writable folder with room enough. Could not write {str(self)!r}: {why}.",
            remedy="Choose another place.",
            parameter="checkpoint",
        )

    def __str__(self) -> str:
        return os.fspath(self.folder)


def is_path(value: Any) -> bool:
    """Whether a value can be the path of a folder."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    return isinstance(path, str) and path != "" and "\0" not in path


def rule(value: Any) -> tuple[str, ...] | None:
    """Validation rule of the parameter `checkpoint`."""
    if value is None or isinstance(value, Checkpoint) or is_path(value):
        return None
    return "None, the path of a folder, or a Checkpoint", "Name a folder of its own for each fit."


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP ended a fit in the middle, as Ctrl-C does; the folder turns it into the end of the process."""


class Placed(NamedTuple):
    """An array of an engine in what is to be saved, and what its first axis is along."""

    array: Any
    along: Along


class Lasting(NamedTuple):
    """An array that never changes: later saves of the stage leave it in the file that it is in."""

    key: str
    """Its name in the stage."""
    nbytes: int
    make: Callable[[], Array]
    """Returns the array, when it is to be written."""


class Record(NamedTuple):
    """What is saved of a stage of a fit."""

    iteration: int
    status: Status | None
    """Why the stage ended; None if it has not, and if it was stopped from outside."""
    random: Any
    """The states of its random generators."""
    value: Any
    """Everything else, packed."""


# ---------------------------------------------------------------------------------------------------------------------
# trees of values


class _Draft:
    """Trees as JSON, and the arrays that are to be written to files for them, each once."""

    def __init__(self, prefix: str, written: Mapping[str, str]) -> None:
        self._prefix, self._written = prefix, written
        self._name_of: dict[int, str] = {}
        self.arrays: dict[str, Placed] = {}
        self.keys: dict[str, str] = {}

    def pack(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Placed):
            name = self._name_of.setdefault(id(value.array), f"{self._prefix}-{len(self.arrays)}")
            self.arrays[name] = value
            return {"$file": name}
        if isinstance(value, Lasting):
            if value.nbytes <= _LARGEST_INLINE:
                return self.pack(value.make())
            name = self._written.get(value.key, f"{self._prefix}-{len(self.arrays)}")
            if value.key not in self._written:
                self.arrays[name], self.keys[name] = Placed(value, "host"), value.key
            return {"$file": name}
        if isinstance(value, np.ndarray):
            if value.nbytes > _LARGEST_INLINE:
                return self.pack(Placed(value, "host"))
            text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return {"$array": [value.dtype.str, list(value.shape), text]}
        if isinstance(value, Mapping):
            return {str(name): self.pack(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.pack(one) for one in value]
        arrays: dict[str, Array] = {}
        record = archive.pack(value, "record", arrays)
        return {"$record": record, "$arrays": self.pack(arrays)}


def described(value: Any) -> Any:
    """A parameter as it is told apart from others: arrays, frames and generators by a hash of all that is in them."""
    frame = as_frame(value)
    parts: list[Any] | None = None
    if isinstance(value, np.random.RandomState):
        _, keys, *others = value.get_state()
        parts = [np.asarray(keys), np.array(others, np.float64)]
    elif sparse.issparse(value):
        value = value.tocsr()
        parts = [value.indptr, value.indices, value.data, np.array(value.shape)]
    elif frame is not None:
        parts = [np.frombuffer(repr((name, frame[name].to_list())).encode(), np.uint8) for name in frame.columns]
    elif isinstance(value, np.ndarray) and value.size > 64 and value.dtype.kind != "O":
        parts = [value]
    elif isinstance(value, list | tuple):
        return [described(one) for one in value]
    if parts is None:
        return plain(value)
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{part.dtype} {part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return f"{type(value).__name__} {digest.hexdigest()}"


def header_of(estimator: Any, fingerprint: str, *, fixed: Sequence[str] = ()) -> dict[str, Any]:
    """What a checkpoint is of.

    Parameters
    ----------
    estimator : estimator
        Its class and parameters, but for those that may differ.
    fingerprint : str
        Of the data.
    fixed : sequence of str, default=()
        Parameters of `MAY_DIFFER` that may not, in this fit.

    Returns
    -------
    dict
    """
    given = estimator.get_params(deep=False)
    names = [name for name in given if name not in MAY_DIFFER or name in fixed]
    parameters = {name: described(given[name]) for name in names}
    if parameters.get("engine") == "dask":  # the same numbers
        parameters["engine"] = "cpu"
    return {"class": type(estimator).__name__, "numbers": NUMBERS, "data": fingerprint, "parameters": parameters}


# ---------------------------------------------------------------------------------------------------------------------
# the folder


@dataclass
class _Handlers:
    """Signals that are waited for, with what was done about them before."""

    previous: dict[int, Any] = field(default_factory=dict)
    came: int | None = None
    """The signal that has come."""
    interrupts: bool = False
    """Whether a signal ends what is done at once."""

    def on_signal(self, signum: int, _: Any) -> None:
        self.came = signum
        if self.interrupts:
            raise Terminated

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():  # which alone may, and gets them
            return
        for name in ("SIGTERM", "SIGHUP"):
            if not hasattr(signal, name):
                continue
            signum: int = getattr(signal, name)
            previous = signal.getsignal(signum)
            if previous is not None and previous is not signal.SIG_IGN:  # nohup
                signal.signal(signum, self.on_signal)
                self.previous[signum] = previous

    def restore(self) -> None:
        for signum, previous in self.previous.items():
            signal.signal(signum, previous)


class CheckpointFolder:
    """An open folder of a checkpoint: what a fit can go on from, and where it saves.

    Use it as a context. A fit consists of stages with names, which are saved one after the other.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where, and how often.
    header : dict
        What it is of, as `header_of` has it.
    """

    def __init__(self, checkpoint: Checkpoint, header: Mapping[str, Any]) -> None:
        self.checkpoint = checkpoint
        self.path = Path(checkpoint.folder).resolve()  # as workers of a cluster need it
        self._header = json.loads(json.dumps(header))
        self._lock: IO[bytes] | None = None
        self._handlers = _Handlers()
        self._records: dict[str, dict[str, Any]] = {}
        self._files: dict[str, dict[str, Any]] = {}
        self._generation = 0
        self._unsaved: Callable[[], None] | None = None
        self._last_save, self._cost, self._since = perf_counter(), 0.0, 0
        self._has_logged = False
        self._saved = 0
        self.seed = 0
        """Of all draws, where `random_state` is None."""

    # -----------------------------------------------------------------------------------------------------------------
    # open and close

    def __enter__(self) -> Self:
        has_manifest = self.checkpoint.make_folder()
        try:
            try:
                self._lock = lock_file(self.path / LOCK)
            except BlockingIOError:
                raise DataError(
                    "A checkpoint must be of one fit at a time.",
                    found=f"another fit that writes to {str(self.checkpoint)!r}",
                    remedy="Wait for its end, or name another folder.",
                    parameter="checkpoint",
                ) from None
            if has_manifest:
                self._read(self.path / MANIFEST)
                self._clean()
            else:
                self._clean()
                if self._header["parameters"].get("random_state", 0) is None:
                    self.seed = int(check_random_state(None).randint(2**31))
                self._write_manifest(self._records, self._files)
        except OSError as error:
            self._close()
            raise self.checkpoint.not_writable(error) from None
        except BaseException:
            self._close()
            raise
        self._handlers.install()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._handlers.restore()
        self._close()
        came = self._handlers.came
        if came is None:
            return
        if self._saved:
            log.info("Saved iteration %d in %s; the same command resumes.", self._saved, self.checkpoint)
        else:
            log.info("Ended before the first iteration; the same command begins again.")
        previous = self._handlers.previous[came]
        if not callable(previous):
            raise SystemExit(128 + came) from None
        previous(came, None)

    def _close(self) -> None:
        self._unsaved = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _clean(self) -> None:
        """Remove what killed processes, and saves before the last one, have left."""
        used = {Path(piece["path"]).name for entry in self._files.values() for piece in entry["pieces"]}
        with suppress(OSError):  # the folder is gone, or not ours any more: the next save says so
            for name in os.listdir(self.path):
                if _ARRAYS.fullmatch(name) and name not in used:
                    with suppress(OSError):
                        (self.path / name).unlink()
        remove_leftovers(self.path)

    # -----------------------------------------------------------------------------------------------------------------
    # read

    def _read(self, path: Path) -> None:
        """What the manifest names, checked, and its arrays too."""
        body, _, checksum = path.read_bytes().rstrip(b"\n").rpartition(b"\n")
        if not body or blake2b(body, digest_size=16).hexdigest().encode() != checksum:
            raise self.checkpoint.damaged(MANIFEST)
        with self.unpacking():
            manifest = json.loads(body)
            if manifest["format"] != FORMAT or type(manifest["version"]) is not int:
                raise ValueError
            is_of_format = manifest["version"] == VERSION
            if not is_of_format or manifest["header"].get("numbers") != NUMBERS:
                found = "other numbers" if is_of_format else f"format {manifest['version']}"
                raise DataError(
                    f"A checkpoint must be of a version of halfseen that has format {VERSION} and the same numbers.",
                    found=f"{found}, written by halfseen {manifest['halfseen']}",
                    where=f"in {str(self.checkpoint)!r}",
                    remedy="Go on with that version of halfseen, or delete the folder to begin again.",
                    parameter="checkpoint",
                )
            self._check_header(manifest["header"])
            self._check_fields(manifest)
        self._generation, self.seed = manifest["generation"], manifest["seed"]
        self._records, self._files = manifest["stages"], manifest["arrays"]
        for entry in self._files.values():
            for piece in self._pieces(entry):
                try:
                    piece.check()
                except DataError:
                    raise self.checkpoint.damaged(Path(piece.path).name) from None

    @contextmanager
    def unpacking(self) -> Iterator[None]:
        """Where a manifest is taken apart: what fails there, fails because it says what no fit has saved."""
        try:
            yield
        except HalfseenError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self.checkpoint.damaged(MANIFEST) from error

    def _check_fields(self, manifest: Mapping[str, Any]) -> None:
        """Raise a ValueError, or what Python raises, unless all but the trees is as it is written; nothing is read."""
        stages, entries = manifest["stages"].values(), manifest["arrays"].values()
        pieces = [piece for entry in entries for piece in entry["pieces"]]
        sizes = [number for piece in pieces for number in piece["shape"]]
        iterations, checksums = [one["iteration"] for one in stages], [piece["crc"] for piece in pieces]
        numbers = [manifest["generation"], manifest["seed"], *sizes, *iterations, *checksums]
        kinds = [{(piece["dtype"], *piece["shape"][1:]) for piece in entry["pieces"]} for entry in entries]
        if not (
            all(type(number) is int and number >= 0 for number in numbers)
            and manifest["seed"] < 1 << 32
            and all(one.keys() == {"iteration", "status", "random", "value"} for one in stages)
            and all(one["status"] is None or one["status"] in Status.__members__ for one in stages)
            and all(entry["along"] in ("rows", "columns", "cells", "host", None) for entry in entries)
            and all(len(kind) == 1 for kind in kinds)
            and all([type(part) for part in entry.get("key", ["", ""])] == [str, str] for entry in entries)
            and all(_ARRAY.fullmatch(piece["path"]) and _DTYPES.fullmatch(piece["dtype"]) for piece in pieces)
            and all(isinstance(piece["shape"], list) and piece["shape"] for piece in pieces)
        ):
            raise ValueError

    def _check_header(self, there: dict[str, Any]) -> None:
        """Refuse the checkpoint of another fit, and say in what it differs."""
        here = self._header
        if json.dumps(there) == json.dumps(here):  # NaN equals no other
            return
        found = "a checkpoint of other data"
        if there["class"] != here["class"]:
            found = f"a checkpoint of {there['class']} where {here['class']} is fitted"
        elif there["parameters"] != here["parameters"]:
            before, now = there["parameters"], here["parameters"]
            other = next(name for name in {**before, **now} if before.get(name) != now.get(name))
            found = f"{other}={json.dumps(before.get(other))} where {json.dumps(now.get(other))} is asked for"
        raise DataError(
            "A checkpoint must be of the same method, parameters and data.",
            found=found,
            where=f"in {str(self.checkpoint)!r}",
            remedy="Fit with those, name another folder, or delete this one to begin again.",
            parameter="checkpoint",
        )

    def _pieces(self, entry: Mapping[str, Any]) -> list[ArrayFile]:
        return [
            ArrayFile(str(self.path / one["path"]), 0, one["dtype"], tuple(one["shape"]), one["crc"])
            for one in entry["pieces"]
        ]

    def unpack(self, packed: Any, engine: Engine[Any] | None = None, lengths: Mapping[str, int] | None = None) -> Any:
        """The tree that was saved; arrays of an engine are put on this one, or stay NumPy's without one.

        Tuples come back as lists. Arrays along "rows", "columns" or "cells" must have these `lengths`.
        """
        with self.unpacking():
            return self._unpack(packed, engine, lengths or {})

    def _unpack(self, packed: Any, engine: Engine[Any] | None, lengths: Mapping[str, int]) -> Any:
        if isinstance(packed, list):
            return [self._unpack(one, engine, lengths) for one in packed]
        if not isinstance(packed, dict):
            return packed
        if packed.keys() == {"$file"}:
            entry = self._files[packed["$file"]]
            pieces = self._pieces(entry)
            length = sum(piece.shape[0] for piece in pieces)
            if length != lengths.get(entry["along"], length):
                raise ValueError
            if engine is None or entry["along"] == "host":
                return pieces[0].read() if len(pieces) == 1 else np.concatenate([piece.read() for piece in pieces])
            along = entry["along"]
            return engine.restore(pieces, Side(along) if along in ("rows", "columns") else along)
        if packed.keys() == {"$array"}:
            dtype, shape, text = packed["$array"]
            if not _DTYPES.fullmatch(dtype) or not all(type(size) is int and size >= 0 for size in shape):
                raise ValueError
            return np.frombuffer(base64.b64decode(text), dtype).reshape(shape).copy()
        if packed.keys() == {"$record", "$arrays"}:
            arrays = self._unpack(packed["$arrays"], None, {})
            return archive.unpack(packed["$record"], object, "record", arrays, {})
        return {name: self._unpack(one, engine, lengths) for name, one in packed.items()}

    def check_arrays(self, found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
        """Refuse arrays of other names, types or shapes than those whose place they are to take.

        Parameters
        ----------
        found : dict of ndarray
            What was saved.
        expected : dict of ndarray
            Arrays of this fit.
        """
        kinds = [{name: (one.dtype, one.shape) for name, one in arrays.items()} for arrays in (found, expected)]
        if kinds[0] != kinds[1]:
            raise DataError(
                "A checkpoint must have the arrays that this version of halfseen asks for.",
                found="others",
                where=f"in {str(self.checkpoint)!r}",
                remedy="Go on with the version that wrote it, or delete the folder to begin again.",
                parameter="checkpoint",
            )

    # -----------------------------------------------------------------------------------------------------------------
    # write

    def stage(self, name: str, *generators: Any) -> "Stage":
        """A stage of the fit, with the random generators that it uses."""
        return Stage(self, name, generators)

    def once(self, name: str, find: Callable[[], Any], *generators: Any) -> Any:
        """What `find` returns, a tree without arrays of an engine; found once, and read from the folder after that."""
        stage = self.stage(name, *generators)
        record = stage.load()
        if record is None:
            with self.interruptible():
                value = find()
            stage.end(0, Status.DIRECT, lambda: value)
            return value
        return self.unpack(record.value)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Where a signal, or Ctrl-C, may end the work at once: the last step that was kept is saved."""
        handlers = self._handlers
        outer = handlers.interrupts
        try:
            handlers.interrupts = True
            if handlers.came is not None:
                raise Terminated
            yield
        except KeyboardInterrupt:
            handlers.interrupts = False
            self.flush()
            raise
        finally:
            handlers.interrupts = outer

    def flush(self) -> None:
        """Save the last step that was kept, if it is not saved yet; end the fit, if a signal has come."""
        if self._unsaved is not None:
            self._unsaved()
        if self._handlers.came is not None:
            raise Terminated

    def _is_due(self) -> bool:
        if self.checkpoint.iterations is not None:
            return self._since >= self.checkpoint.iterations
        return perf_counter() - self._last_save >= max(self.checkpoint.seconds, self._cost / SHARE_OF_TIME)

    def _write(self, name: str, record: Record, engine: Engine[Any] | None) -> None:
        """Put a record in the place of the one before."""
        interrupts, self._handlers.interrupts = self._handlers.interrupts, False
        started = perf_counter()
        try:
            written = {tuple(entry["key"]): file for file, entry in self._files.items() if "key" in entry}
            of_stage = {key: file for (stage, key), file in written.items() if stage == name}
            draft = _Draft(f"state-{self._generation + 1:08d}", of_stage)
            records = {key: one for key, one in self._records.items() if key != name}
            if record.value is None:
                records = {key: one for key, one in records.items() if not key.startswith(f"{name}, ")}
            status = None if record.status is None else record.status.name
            packed = {"iteration": record.iteration, "status": status, "random": draft.pack(record.random)}
            records[name] = packed | {"value": draft.pack(record.value)}
            pieces: dict[str, list[ArrayFile]] = {}
            for key, (array, _) in draft.arrays.items():
                if isinstance(array, np.ndarray | Lasting) or engine is None:
                    content = array.make() if isinstance(array, Lasting) else array
                    pieces[key] = [write_array(content, self.path / key)]
            others = {key: placed.array for key, placed in draft.arrays.items() if key not in pieces}
            if others and engine is not None:
                pieces |= engine.store(others, self.path)
            new = {
                key: {
                    "along": placed.along.value if isinstance(placed.along, Side) else placed.along,
                    "pieces": [
                        {"path": Path(one.path).name, "dtype": one.dtype, "shape": list(one.shape), "crc": one.crc}
                        for one in pieces[key]
                    ],
                }
                | ({"key": [name, draft.keys[key]]} if key in draft.keys else {})
                for key, placed in draft.arrays.items()
            }
            text = json.dumps(records)
            kept = {key: entry for key, entry in self._files.items() if f'{{"$file": "{key}"}}' in text}
            self._generation += 1
            self._write_manifest(records, kept | new)
            self._records, self._files = records, kept | new
            self._saved = record.iteration
            self._clean()
        except (OSError, EngineError) as error:
            self._clean()
            if isinstance(error, EngineError) and str(self.path) not in error.found:  # it is not about the folder
                raise
            if self._handlers.came is not None:
                raise self.checkpoint.not_writable(error) from None
            # a full disk is no reason to lose the fit: the state before is still there
            self._warn(error)
        finally:
            self._last_save, self._since = perf_counter(), 0
            self._cost = self._last_save - started
            self._unsaved = None
            self._handlers.interrupts = interrupts

    def _warn(self, error: OSError | EngineError) -> None:
        import warnings

        problem = self.checkpoint.not_writable(error)
        remedy = "Make room, or bring it back: the fit goes on, and what was saved there before is kept."
        warnings.warn(DataWarning(problem.must, remedy=remedy, parameter="checkpoint"), stacklevel=2)

    def _write_manifest(self, records: Mapping[str, Any], files: Mapping[str, Any]) -> None:
        import halfseen

        body = json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "halfseen": halfseen.__version__,
                "generation": self._generation,
                "seed": self.seed,
                "header": self._header,
                "stages": records,
                "arrays": files,
            }
        ).encode()
        self._sync()  # the names of the arrays' files
        draft = self.path / f".{MANIFEST}.{os.urandom(8).hex()}.part"
        try:
            with draft.open("wb") as file:
                file.write(body + b"\n" + blake2b(body, digest_size=16).hexdigest().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path / MANIFEST)
        finally:
            draft.unlink(missing_ok=True)
        self._sync()

    def _sync(self) -> None:
        """Make sure that the folder's names are on the disk."""
        with suppress(OSError):  # where folders can't be opened
            handle = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


class Stage:
    """A stage of a fit in a checkpoint.

    Parameters
    ----------
    folder : CheckpointFolder
        Where it is saved.
    name : str
        Its name in the fit.
    generators : sequence of RandomState or Generator
        Random generators that it uses, whose states are saved with it.
    """

    def __init__(self, folder: CheckpointFolder, name: str, generators: Sequence[Any] = ()) -> None:
        self.folder, self.name, self.generators = folder, name, generators

    @property
    def _random(self) -> list[Any]:
        """The states of the generators."""
        return [
            one.get_state() if isinstance(one, np.random.RandomState) else one.bit_generator.state
            for one in self.generators
        ]

    def load(self) -> Record | None:
        """What was saved, with the generators set to that time; None if nothing was."""
        packed = self.folder._records.get(self.name)
        if packed is None:
            return None
        random = self.folder.unpack(packed["random"])
        with self.folder.unpacking():
            for generator, state in zip(self.generators, random, strict=True):
                if not isinstance(generator, np.random.RandomState):
                    generator.bit_generator.state = state
                elif state[2] in range(625):  # the place in its 624 numbers, which NumPy trusts
                    generator.set_state(tuple(state))
                else:
                    raise ValueError
        iteration, status = packed["iteration"], packed["status"]
        self.folder._saved = iteration
        if iteration and not self.folder._has_logged:
            self.folder._has_logged = True
            log.info("Resuming from iteration %d of %s.", iteration, self.folder.checkpoint)
        return Record(iteration, None if status is None else Status[status], random, packed["value"])

    def step(self, iteration: int, value: Callable[[], Any], engine: Engine[Any] | None = None) -> None:
        """Keep what an iteration has reached, and save it if that is due.

        Parameters
        ----------
        iteration : int
            Number of iterations that are done.
        value : callable
            Returns the tree that is to be saved. It is called later, unless the save is due: what it refers to must
            not change. Where that can't be, call `step_in_place`.
        engine : Engine, default=None
            Of the arrays in `Placed`; those of NumPy need none.
        """
        folder, random = self.folder, self._random
        folder._since += 1

        def save() -> None:
            folder._write(self.name, Record(iteration, None, random, value()), engine)

        folder._unsaved = save
        if folder._is_due():
            save()
            if folder._handlers.came is not None and folder._handlers.interrupts:  # while it was written
                raise Terminated

    def step_in_place(self, iteration: int, value: Callable[[], Any], engine: Engine[Any] | None = None) -> None:
        """The same for states that the next iteration changes: after a signal, save and end. It must not be called
        where a signal interrupts, in `CheckpointFolder.interruptible`."""
        self.step(iteration, value, engine)
        if self.folder._handlers.came is not None:
            self.folder.flush()
        self.folder._unsaved = None

    def end(
        self, iteration: int, status: Status | None, value: Callable[[], Any], engine: Engine[Any] | None = None
    ) -> None:
        """Save the end of the stage, with why it ended; None if it may go on another time."""
        before = self.folder._records.get(self.name)
        name = None if status is None else status.name
        if before is not None and (before["iteration"], before["status"]) == (iteration, name):
            self.folder._unsaved = None
            return
        record = Record(iteration, status, self._random, value())
        self.folder._write(self.name, record, engine)

    @property
    def was_dropped(self) -> bool:
        """Whether it has ended, and nothing is left of it."""
        packed = self.folder._records.get(self.name)
        return packed is not None and packed["value"] is None

    def drop(self) -> None:
        """Keep no more of it, and of its parts "name, ...", than that it has ended, and the states of generators."""
        packed = self.folder._records[self.name]
        status = None if packed["status"] is None else Status[packed["status"]]
        self.folder._write(
            self.name, Record(packed["iteration"], status, self.folder.unpack(packed["random"]), None), None
        )


@contextmanager
def opened(
    checkpoint: Any, estimator: Any, fingerprint: str, *, fixed: Sequence[str] = ()
) -> Iterator[CheckpointFolder | None]:
    """The folder of an estimator's checkpoint, open during a fit; None without one.

    Parameters
    ----------
    checkpoint : Checkpoint, str, path-like or None
        The parameter.
    estimator : estimator
        Which fits.
    fingerprint : str
        Of the data.
    fixed : sequence of str, default=()
        Parameters that must not differ, as for `header_of`.
    """
    given = Checkpoint.of(checkpoint)
    if given is None:
        yield None
        return
    with CheckpointFolder(given, header_of(estimator, fingerprint, fixed=fixed)) as folder:
        yield folder


def interruptible(folder: CheckpointFolder | None) -> Any:
    """`CheckpointFolder.interruptible`, also without a folder."""
    return nullcontext() if folder is None else folder.interruptible()


def seed_of(random_state: Any, folder: CheckpointFolder | None) -> Any:
    """The parameter `random_state`; with a checkpoint, a fit without a seed goes on with the same draws."""
    return folder.seed if folder is not None and random_state is None else random_state

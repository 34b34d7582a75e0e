"""A model as a server: JSON over HTTP for recommendations and similar items, with a new model file taken in while it runs.

Three layers. `read_query` and `read_json` turn what came over the network into checked fields, or refuse it with a
`RequestError`. `ServedModel` answers checked fields from one loaded model file. `Service` holds the model that answers
now and exchanges it, and counts; `application` is the thin shell around it that speaks HTTP, by Starlette.
"""

import asyncio
import datetime
import hashlib
import json
import logging
import math
import os
import re
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import hold_blas, release_blas
from halfseen.engines.topk import DenseScores, best_columns
from halfseen.errors import CODE, DataError, HalfseenError, ParameterError
from halfseen.io import read_table
from halfseen.io.numbers import NotANumber, Scale
from halfseen.labels import Index, is_plain_integer
from halfseen.observed import Observed
from halfseen.validation import did_you_mean

log = logging.getLogger("halfseen.serving")

#: Routes, the methods of each, and what it does.
ROUTES = {
    "/": (("GET",), "This list of routes."),
    "/recommend": (("GET", "POST"), "The best items for users of the fit, or for new users with a history."),
    "/similar": (("GET", "POST"), "The most similar items to items, or users to users."),
    "/model": (("GET",), "What is served: the model, its size, and the limits of a request."),
    "/health": (("GET",), "Whether the server is well, and whether the last new model file could be read."),
    "/openapi.json": (("GET",), "These routes for programs, as OpenAPI."),
}
#: Scores computed between two looks at the clock.
SCORES_AT_A_TIME = 1 << 22
#: Rows computed between two looks at the clock.
ROWS_AT_A_TIME = 64
#: Bytes of a body that is read at once, rather than by a thread.
SMALL_BODY = 1 << 13
#: A body this many times as long as allowed is read to its end, so that its sender gets the answer.
PATIENCE = 8
#: Seconds between two looks at the model file.
POLL = 1.0
#: Names under which a browser reaches this machine itself.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class RequestError(HalfseenError):
    """A request that is refused, with the HTTP status of the answer.

    Parameters
    ----------
    must : str
        What must hold.
    status : int, default=400
        HTTP status.
    **fields : str
        Further fields of the message.
    """

    def __init__(self, must: str, *, status: int = 400, **fields: Any) -> None:
        super().__init__(must, **fields)
        self.status = status


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most.

    Parameters
    ----------
    bytes : int, default=1,048,576
        Bytes of a body.
    n : int, default=1000
        Items per user.
    users : int, default=1000
        Users, histories or items asked about.
    answers : int, default=100,000
        Users times items per user.
    cells : int, default=10,000
        Cells of all histories together.
    seconds : float, default=10
        Time for an answer.
    threads : int, default=2
        Requests computed at the same time.
    waiting : int, default=64
        Requests that may wait for a thread.
    """

    bytes: int = 1 << 20
    n: int = 1000
    users: int = 1000
    answers: int = 100_000
    cells: int = 10_000
    seconds: float = 10.0
    threads: int = 2
    waiting: int = 64


# ---------------------------------------------------------------------------------------------------------------------
# requests: what came over the network, as checked fields


def read_json(body: bytes) -> dict[str, Any]:
    """The object in a body, by the letter of the standard: no name twice, no NaN, no number that is not finite.

    Parameters
    ----------
    body : bytes
        As it came.

    Returns
    -------
    dict
        Names and values.
    """

    def no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named = dict(pairs)
        if len(named) < len(pairs):
            name = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise RequestError("Names of a JSON object must differ.", found=f"{name!r} twice", remedy="Leave one out.")
        return named

    def finite(text: str) -> float:
        value = float(text) if text[-1] not in "yN" else math.inf  # Infinity, NaN
        if not math.isfinite(value):
            must, remedy = "Numbers must be finite, and fit in double precision.", "Use null for what is unknown."
            raise RequestError(must, found=text[:40], remedy=remedy)
        return value

    def whole(text: str) -> int:
        if len(text) > 20:
            must, remedy = "Whole numbers must have at most 20 digits.", "Send the id as text."
            raise RequestError(must, found=f"{len(text)} characters", remedy=remedy)
        return int(text)

    remedy = 'Send an object such as {"users": ["bob"], "n": 10}.'
    try:
        text = body.decode()
        value = json.loads(
            text, object_pairs_hook=no_name_twice, parse_constant=finite, parse_float=finite, parse_int=whole
        )
    except UnicodeDecodeError as error:
        found = f"byte 0x{body[error.start]:02x}"
        remedy = "Encode the text as UTF-8."
        raise RequestError("A body must be UTF-8.", found=found, where=f"at {error.start}", remedy=remedy) from None
    except json.JSONDecodeError as error:
        found, where = f"{error.msg[:1].lower()}{error.msg[1:]}", f"at character {error.pos}"
        raise RequestError("A body must be JSON.", found=found, where=where, remedy=remedy) from None
    except RecursionError:
        must = "A body must be an object of a few levels."
        raise RequestError(must, found="brackets within brackets", remedy=remedy) from None
    if not isinstance(value, dict):
        raise RequestError("A body must be a JSON object.", found=_kind(value), remedy=remedy)
    return value


def read_query(query: bytes, fields: Iterable[str]) -> dict[str, Any]:
    """The fields of a query string, of the types that a JSON body would have; ids stay text.

    Parameters
    ----------
    query : bytes
        What follows the question mark.
    fields : iterable of str
        Names of the fields of this route.

    Returns
    -------
    dict
        Names and values. Lists are given by repeating a name; user stands for users, and item for items.
    """
    remedy = "Write name=value&name=value, with other characters percent-encoded as UTF-8."
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:  # UnicodeError, too
        found = ascii(query[:40].decode("latin-1"))
        raise RequestError("A query must be readable.", found=found, remedy=remedy) from None
    asked: dict[str, Any] = {}
    for name, text in pairs:
        name = {"user": "users", "item": "items"}.get(name, name)
        if name in ("users", "items", "filter_items", "exclude") and name in fields:
            asked.setdefault(name, []).append(text)
        elif name in asked:
            must = "A parameter that is no list must be given once."
            raise RequestError(must, found=f"{name!r} twice", remedy="Leave one out.")
        elif name == "n":
            asked[name] = int(text) if is_plain_integer(text) else text
        elif name == "histories":
            raise RequestError("Histories must come in a body.", found="a query", remedy="POST a JSON object.")
        else:
            asked[name] = {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
    return asked


def check_fields(route: str, asked: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Fields of a request whose types and sizes are right.

    Parameters
    ----------
    route : {"/recommend", "/similar"}
        Route.
    asked : dict
        Fields as they came.
    limits : Limits
        What may be asked for at most.

    Returns
    -------
    dict
        With `n` in any case, and either "users", "items" or "histories".
    """
    subjects = ("users", "histories") if route == "/recommend" else ("items", "users")
    fields = {*subjects, "n", "filter_items", "exclude", *(["exclude_seen"] if route == "/recommend" else [])}
    for name in asked:
        if name not in fields:
            near = did_you_mean(name, fields)
            remedy = f"Did you mean {near!r}?" if near else f"The fields are {', '.join(sorted(fields))}."
            raise RequestError("A field must be known.", found=repr(name[:40]), remedy=remedy)
    given = [name for name in subjects if name in asked]
    if len(given) != 1:
        must = f"A request must have either {subjects[0]} or {subjects[1]}."
        raise RequestError(must, found="both" if given else "neither", remedy="Give one of the two.")
    (subject,) = given
    checked: dict[str, Any] = {"n": asked.get("n", 10), "exclude_seen": asked.get("exclude_seen", True)}
    n = checked["n"]
    if type(n) is not int or not 1 <= n <= limits.n:
        must = f"must be a whole number from 1 to {limits.n:,}."
        raise RequestError(must, parameter="n", found=_shown(n), remedy="Ask for fewer.")
    if type(checked["exclude_seen"]) is not bool:
        found = _shown(checked["exclude_seen"])
        raise RequestError("must be true or false.", parameter="exclude_seen", found=found, remedy="Use one of these.")
    for name in (subject, "filter_items", "exclude"):
        if name not in asked:
            continue
        if not isinstance(asked[name], list) or (name == subject and not asked[name]):
            must, remedy = f"must be a list{' with something in it' * (name == subject)}.", "Write [...]."
            raise RequestError(must, parameter=name, found=_shown(asked[name]), remedy=remedy)
        for position, one in enumerate(asked[name]):
            if subject == name == "histories":
                _check_history(one, position)
            elif type(one) not in (str, int, float) or (type(one) is str and _SURROGATE.search(one)):
                must = "must hold ids: valid text, or numbers."
                where, remedy = f"at position {position}", "Write the ids as the model has them."
                raise RequestError(must, parameter=name, found=_shown(one), where=where, remedy=remedy)
        checked[name] = asked[name]
    asked_about = len(checked[subject])
    if asked_about > limits.users or asked_about * n > limits.answers:
        must = f"must be at most {limits.users:,}, and at most {limits.answers:,} with n to each."
        found = f"{asked_about:,} with n = {n:,}"
        raise RequestError(must, status=413, parameter=subject, found=found, remedy="Split the request.")
    cells = sum(map(len, checked["histories"])) if subject == "histories" else 0
    if cells > limits.cells:
        must = f"must have at most {limits.cells:,} cells together."
        raise RequestError(must, status=413, parameter=subject, found=f"{cells:,}", remedy="Split the request.")
    return checked


def _check_history(history: Any, position: int) -> None:
    """Refuse a history that is no object from ids to numbers, texts or null."""
    where, remedy = f"at position {position}", 'Write it as {"an item": 5, "another": 3}.'
    if not isinstance(history, dict):
        must, found = "must hold objects from items to values.", _shown(history)
        raise RequestError(must, parameter="histories", found=found, where=where, remedy=remedy)
    for item, value in history.items():
        if _SURROGATE.search(item):
            found = ascii(item[:40])
            raise RequestError("Items must be valid text.", found=found, where=where, remedy="Encode it as UTF-8.")
        if isinstance(value, bool | list | dict) or (isinstance(value, str) and _SURROGATE.search(value)):
            must, found = "Values of a history must be numbers, texts or null.", _shown(value)
            raise RequestError(must, found=found, where=f"{where}, item {item[:40]!r}", remedy=remedy)


def _kind(value: Any) -> str:
    """The kind of a JSON value, in JSON's words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds[type(value)]


def _shown(value: Any) -> str:
    """A JSON value as a message shows it: scalars cut to a line, else its kind."""
    return _kind(value) if isinstance(value, dict | list) else ascii(value)[:60]


# ---------------------------------------------------------------------------------------------------------------------
# answers from one model file


class Ids:
    """Ids of one side of the model: those of requests, which are JSON, to positions; labels to JSON.

    Text finds the number that it spells, and a number the text.
    """

    def __init__(self, index: Index | None, size: int) -> None:
        self.index, self.size = index, size
        self.kind = "i" if index is None else index.labels.dtype.kind

    def find(self, ids: Sequence[Any]) -> Array:
        """The position of each id, -1 where the model does not know it."""
        places = np.full(len(ids), -1, np.int64)
        if self.kind in "OM" and self.index is not None:
            positions = self.index.positions if self.kind == "O" else self._dates
            texts = [str(int(one) if isinstance(one, float) and one.is_integer() else one) for one in ids]
            places[:] = [positions.get(text, -1) for text in texts]
            return places
        labels = [self._as_label(one) for one in ids]
        known = [position for position, label in enumerate(labels) if label is not None]
        if known:
            wanted = np.array([labels[position] for position in known], "i8" if self.index is None else self.dtype)
            places[known] = wanted if self.index is None else self.index.find(wanted)
        return places

    @property
    def dtype(self) -> Any:
        """dtype of the labels; of positions, where there are none."""
        return np.dtype(np.int64) if self.index is None else self.index.labels.dtype

    @cached_property
    def _dates(self) -> dict[str, int]:
        return {text: place for place, text in enumerate(self.as_json(self.index.labels))} if self.index else {}

    def _as_label(self, one: Any) -> Any:
        """An id as a number of the labels' type, None if it can't be one."""
        if self.kind == "b":
            return {"true": True, "false": False}.get(str(one).lower())
        if isinstance(one, str):
            one = one.strip()
            if is_plain_integer(one):
                one = int(one)
            elif self.kind == "f" and re.fullmatch(r"[-+.0-9eE]{1,40}", one):
                with suppress(ValueError):
                    one = float(one)
        if isinstance(one, str):
            return None
        if self.kind == "f":
            return float(one)
        if one != int(one):
            return None
        low, high = (0, self.size - 1) if self.index is None else (np.iinfo(self.dtype).min, np.iinfo(self.dtype).max)
        return int(one) if low <= one <= high else None

    def as_json(self, labels: Array) -> list[Any]:
        """Labels as JSON has them: integers stay integers, dates become text."""
        if self.kind == "M":
            return [None if one is None or one != one else str(np.datetime64(one)) for one in labels]
        plain: list[Any] = labels.tolist()
        return plain


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One loaded model file, and what it answers.

    Parameters
    ----------
    path : Path
        The model file.
    estimator : estimator
        What it holds.
    titles : dict
        Titles of items, by id.
    fingerprint : str
        Of the bytes of the file.
    loaded_at : str
        When, in ISO 8601.
    """

    path: Path
    estimator: Any
    titles: Mapping[Any, str]
    fingerprint: str
    loaded_at: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))

    @classmethod
    def load(cls, path: Any, names: Any = None, engine: str | None = None) -> "ServedModel":
        """Read a model file, and try it: what can't recommend is refused, and the first request finds all compiled.

        Parameters
        ----------
        path : str or path-like
            The model file.
        names : str or path-like, default=None
            A table whose first column holds ids of items, and another their titles.
        engine : {"cpu", "cuda"}, default=None
            Where to compute. None: where the model was fitted.

        Returns
        -------
        ServedModel
        """
        import halfseen

        path = Path(path)
        estimator = halfseen.load(path)
        if not hasattr(estimator, "recommend"):
            found, remedy = f"a {type(estimator).__name__}", "Serve a model that recommends, such as `SquaredOrdNMF`."
            raise ParameterError(
                "A served model must recommend.", found=found, where=f"in {path.name!r}", remedy=remedy
            )
        if engine is not None:
            estimator.set_params(engine=engine)
        with path.open("rb") as file:
            fingerprint = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        model = cls(path, estimator, {}, fingerprint)
        if names is not None:
            object.__setattr__(model, "titles", read_titles(names, model.items))
        limits = Limits()
        if model.shape[0]:
            user = model.users.as_json(model.record.labels_at(np.zeros(1, np.int64), "row"))
            model.recommend(check_fields("/recommend", {"users": user, "n": 1}, limits))
        item = model.items.as_json(model.record.labels_at(np.zeros(1, np.int64), "column"))
        levels = model.record.encoder.levels_to_read
        history = {str(item[0]): 1 if levels is None else levels[-1]}
        with suppress(HalfseenError):  # a model may not take histories, or no ones
            model.recommend(check_fields("/recommend", {"histories": [history], "n": 1}, limits))
        return model

    @property
    def record(self) -> Any:
        """The fitted record."""
        return self.estimator.model_

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        shape: tuple[int, int] = self.record.shape
        return shape

    @cached_property
    def users(self) -> Ids:
        """Ids of the rows."""
        return Ids(self.record.index[0], self.shape[0])

    @cached_property
    def items(self) -> Ids:
        """Ids of the columns."""
        return Ids(self.record.index[1], self.shape[1])

    @cached_property
    def popularity(self) -> tuple[Array, Array]:
        """How often each item was seen in the fit, and the items from the most to the least frequent."""
        seen = self.record.seen
        counts = np.bincount(seen.indices, minlength=self.shape[1])
        if seen.lists_holes:
            counts = self.shape[0] - counts
        return counts, np.argsort(-counts, kind="stable")

    def recommend(self, asked: Mapping[str, Any], deadline: float = math.inf) -> dict[str, Any]:
        """The best items for users of the fit or for histories; popular ones for those of whom nothing is known.

        Parameters
        ----------
        asked : dict
            What `check_fields` returned.
        deadline : float, default=inf
            When to give up, as `time.monotonic` counts.

        Returns
        -------
        dict
            "recommendations", one for each user or history, "notes" and "model".
        """
        notes: list[str] = []
        n, m = asked["n"], self.shape[1]
        excluded, candidates = self._choice(asked, notes)
        excluded_here = excluded if candidates.size == m else excluded[:0]
        answers: list[dict[str, Any]] = []
        if "users" in asked:
            positions = self.users.find(asked["users"])
            known = np.flatnonzero(positions >= 0)
            answers = [{"user": user, "known": False} for user in asked["users"]]
            named = self.users.as_json(self.record.labels_at(positions[known], "row"))
            for place, user in zip(known, named, strict=True):
                answers[place]["user"] = user

            def rows_of(part: Array) -> tuple[Any, tuple[Array, Array]]:
                rows = positions[part]
                return self.record.known_rows(rows), self.record.seen.in_rows(rows)

        else:
            cells = self._read_histories(asked["histories"], notes)
            is_known = np.bincount(cells[0], minlength=len(asked["histories"])) > 0
            known = np.flatnonzero(is_known)
            answers = [{"history": place, "known": False} for place in range(len(is_known))]

            def rows_of(part: Array) -> tuple[Any, tuple[Array, Array]]:
                lowest, highest = np.searchsorted(cells[0], [part[0], part[-1] + 1])
                rows = np.searchsorted(part, cells[0][lowest:highest])
                observed = Observed.from_cells(
                    rows, cells[1][lowest:highest], cells[2][lowest:highest], (part.size, m),
                    unseen=self.record.unseen, column_labels=self.record.labels.column_labels, allow_empty=True,
                )  # fmt: skip
                name = type(self.estimator).__name__
                served = self.record.served_rows(observed, self.estimator.engine, 1, name)
                return served, (observed.indptr, observed.indices)

        for part in self._blocks(known, deadline):
            rows, seen = rows_of(part)
            hidden = seen if asked["exclude_seen"] else (np.zeros(part.size + 1, np.int64), excluded[:0])
            if excluded_here.size:
                lists = [hidden[1][hidden[0][row] : hidden[0][row + 1]] for row in range(part.size)]
                ends = np.cumsum([0, *(one.size + excluded_here.size for one in lists)])
                hidden = ends, np.concatenate([side for one in lists for side in (one, excluded_here)])
            ids, scores = self.record.recommend(rows, hidden, n, candidates, self.estimator.engine, 1)
            for place, best, x in zip(part.tolist(), ids, scores, strict=True):
                answers[place] |= {"known": True, "items": self._listed("item", self.items.as_json(best), x.tolist())}
        if known.size < len(answers):
            counts, order = self.popularity
            allowed = np.zeros(m, bool)
            allowed[candidates] = True
            allowed[excluded] = False
            popular = order[allowed[order]][:n]
            names = self.items.as_json(self.record.labels_at(popular, "column"))
            best = self._listed("item", names, counts[popular].tolist())
            for answer in answers:
                answer.setdefault("items", best)
        return self._with_notes("recommendations", answers, notes)

    def recommend_together(self, many: Sequence[Mapping[str, Any]], deadline: float = math.inf) -> list[dict[str, Any]]:
        """Answers of `recommend` to requests that differ in their users alone: items are read once for all.

        Parameters
        ----------
        many : list of dict
            What `check_fields` returned, each with "users".
        deadline : float, default=inf
            When to give up, as `time.monotonic` counts.

        Returns
        -------
        list of dict
            An answer for each request. A score may differ in its last digit from that of the request alone.
        """
        answers = self.recommend({**many[0], "users": [user for asked in many for user in asked["users"]]}, deadline)
        parts, first = [], 0
        for asked in many:
            part = answers["recommendations"][first : first + len(asked["users"])]
            parts.append(self._with_notes("recommendations", part, []))
            first += len(part)
        return parts

    def _with_notes(self, what: str, answers: list[dict[str, Any]], notes: list[str]) -> dict[str, Any]:
        """An answer, with a note on what the model does not know."""
        unknown = sum(not answer["known"] for answer in answers)
        if unknown:
            popular = ": they got the most popular items, whose scores are how often these were seen"
            told = popular if what == "recommendations" else ""
            notes = [*notes, f"{unknown} of the {len(answers)} asked about are not known to the model{told}."]
        return {what: answers, "notes": notes, "model": self.fingerprint}

    def similar(self, asked: Mapping[str, Any], deadline: float = math.inf) -> dict[str, Any]:
        """The most similar items to items, or users to users, by the cosine of their factors.

        Parameters
        ----------
        asked : dict
            What `check_fields` returned.
        deadline : float, default=inf
            When to give up, as `time.monotonic` counts.

        Returns
        -------
        dict
            "similar", one for each item or user, "notes" and "model".
        """
        notes: list[str] = []
        one, side, ids = ("item", "column", self.items) if "items" in asked else ("user", "row", self.users)
        if one == "user" and ("filter_items" in asked or "exclude" in asked):
            must = "Among similar users, no items are chosen."
            raise RequestError(must, found="filter_items or exclude", remedy="Leave it out.")
        factor, norms = self._directions[0 if one == "user" else 1]
        excluded, candidates = self._choice(asked, notes) if one == "item" else (np.empty(0, np.int64), None)
        if candidates is None or candidates.size == len(factor):
            candidates = None
        else:
            excluded = excluded[:0]
        wanted = asked[f"{one}s"]
        positions = ids.find(wanted)
        known = np.flatnonzero(positions >= 0)
        answers: list[dict[str, Any]] = [{one: name, "known": False, f"{one}s": []} for name in wanted]
        for place, name in zip(known, ids.as_json(self.record.labels_at(positions[known], side)), strict=True):
            answers[place][one] = name
        for part in self._blocks(known, deadline, len(factor)):
            rows = positions[part]
            cosines = (factor[rows] @ factor.T) / np.outer(norms[rows], norms)
            ends = np.arange(part.size + 1) * (1 + excluded.size)
            hidden = ends, np.column_stack([rows, np.tile(excluded, (part.size, 1))]).astype(np.int64).reshape(-1)
            best = best_columns(DenseScores(cosines), asked["n"], hidden, candidates, n_jobs=1)
            for place, columns, x in zip(part.tolist(), best.columns, best.scores, strict=True):
                found = columns >= 0
                names = ids.as_json(self.record.labels_at(columns[found], side))
                answers[place] |= {"known": True, f"{one}s": self._listed(one, names, x[found].tolist())}
        return self._with_notes("similar", answers, notes)

    @cached_property
    def _directions(self) -> list[tuple[Array, Array]]:
        """Factors of users and of items, and the length of each."""
        factors = (self.record.W, self.record.H)
        lengths = (np.sqrt(np.einsum("ik,ik->i", factor, factor)) for factor in factors)
        tiny = np.finfo(np.float32).tiny
        return [(factor, np.maximum(norms, tiny)) for factor, norms in zip(factors, lengths, strict=True)]

    @cached_property
    def _all_items(self) -> Array:
        return np.arange(self.shape[1])

    def _choice(self, asked: Mapping[str, Any], notes: list[str]) -> tuple[Array, Array]:
        """Positions of excluded items, and of those among which is chosen; what is unknown is noted."""
        found = {}
        for name in ("exclude", "filter_items"):
            positions = self.items.find(asked.get(name, ()))
            found[name] = np.unique(positions[positions >= 0])
            unknown = int((positions < 0).sum())
            if unknown:
                notes.append(f"{unknown} of {positions.size} items in {name} are not in the model, and were left out.")
        if "filter_items" in asked:
            return found["exclude"], np.setdiff1d(found["filter_items"], found["exclude"], assume_unique=True)
        return found["exclude"], self._all_items

    def _read_histories(self, histories: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[Array, Array, Array]:
        """Cells of histories as history, column and value; items that are unknown are left out, and noted."""
        if not self.record.can_fold_in:
            must, found = "The model must take new users.", f"a {type(self.estimator).__name__}"
            raise RequestError(must, status=422, found=found, remedy="Ask for users of the fit.")
        items = [item for history in histories for item in history]
        scale = Scale.of(self.record.encoder.levels_to_read)
        try:
            values = scale.numbers([value for history in histories for value in history.values()])
        except NotANumber as error:
            where, remedy = f"for item {items[error.position][:40]!r}", f"{scale.hint}Use null if it is unknown."
            found = _shown(error.field)
            raise RequestError(scale.must, status=422, found=found, where=where, remedy=remedy) from None
        columns = self.items.find(items)
        rows = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
        unknown = int((columns < 0).sum())
        if unknown:
            notes.append(f"{unknown} of {len(items)} items in histories are not in the model, and were left out.")
        keep = (columns >= 0) & ~np.isnan(values)
        return rows[keep], columns[keep], values[keep]

    def _blocks(self, rows: Array, deadline: float, width: int | None = None) -> Iterator[Array]:
        """Rows in blocks, with a look at the clock before each."""
        height = min(ROWS_AT_A_TIME, max(1, SCORES_AT_A_TIME // max(1, width or self.shape[1])))
        for first in range(0, rows.size, height):
            if time.monotonic() > deadline:
                raise too_slow()
            yield rows[first : first + height]

    def _listed(self, one: str, names: Sequence[Any], scores: Sequence[float]) -> list[dict[str, Any]]:
        """Names and scores as JSON lists them, with titles; scores that are not finite have no place in JSON."""
        pairs = [pair for pair in zip(names, scores, strict=True) if math.isfinite(pair[1])]
        if one == "user" or not self.titles:
            return [{one: name, "score": score} for name, score in pairs]
        return [{one: name, "title": self.titles.get(name), "score": score} for name, score in pairs]

    def facts(self) -> dict[str, Any]:
        """What is served."""
        record, estimator = self.record, self.estimator
        levels = estimator.levels_.tolist() if record.encoder.has_levels else None
        return {
            "file": self.path.name,
            "fingerprint": self.fingerprint,
            "loaded_at": self.loaded_at,
            "model": type(estimator).__name__,
            "users": self.shape[0],
            "items": self.shape[1],
            "n_components": int(record.H.shape[1]),
            "unseen": record.unseen,
            "levels": levels,
            "takes_histories": bool(record.can_fold_in),
            "titles": len(self.titles),
        }


def read_titles(path: Any, items: Ids) -> dict[Any, str]:
    """Titles of items, by id: the first column of a table is the id; the title is "title" or "name", or the second.

    Parameters
    ----------
    path : str or path-like
        The table.
    items : Ids
        Ids of the items of the model.

    Returns
    -------
    dict
        Titles of items of the model.
    """
    table = read_table(path)
    if len(table.names) < 2:
        must, found = "A table of names must have two columns: ids of items, and titles.", f"{len(table.names)}"
        raise DataError(must, found=found, where=f"in {str(path)!r}", remedy="Check the separator.")
    spelled = {str(name).strip().lower(): name for name in table.names[1:]}
    title = next((spelled[word] for word in ("title", "name") if word in spelled), table.names[1])
    ids = [one.item() if hasattr(one, "item") else one for one in table.texts(table.names[0])]
    titles = ["" if one is None else str(one) for one in table.texts(title)]
    known = [one is not None for one in ids]
    positions = items.find([one if isinstance(one, str | int | float) else str(one) for one in ids])
    lines = [line for line in np.flatnonzero(positions >= 0).tolist() if known[line]]
    if not lines:
        must, remedy = "A table of names must list items of the model.", "Check the ids in its first column."
        raise DataError(must, found="none of them", where=f"in {str(path)!r}", remedy=remedy)
    labels = positions[lines] if items.index is None else items.index.labels[positions[lines]]
    return dict(zip(items.as_json(labels), [titles[line] for line in lines], strict=True))


def too_slow() -> RequestError:
    """The error of a request that takes too long."""
    must, remedy = "An answer must be found in the time allowed.", "Ask for fewer users at a time, or try again later."
    return RequestError(must, status=503, found="more work than that", remedy=remedy)


# ---------------------------------------------------------------------------------------------------------------------
# the service: the model that answers now, and its exchange


@dataclass(frozen=True, eq=False)
class Job:
    """A request that waits for a thread: fields that are checked, or a body that is still to be read."""

    path: str
    deadline: float
    checked: Mapping[str, Any] | None
    body: bytes = b""
    done: Future[bytes] = field(default_factory=Future)

    @cached_property
    def kind(self) -> Any:
        """What jobs have in common that can be answered together; None of one that can't be."""
        checked = self.checked
        if self.path != "/recommend" or checked is None or checked.keys() != {"users", "n", "exclude_seen"}:
            return None
        return checked["n"], checked["exclude_seen"]


class Service:
    """A model file that is served, and taken in anew when it changes.

    Parameters
    ----------
    path : str or path-like
        The model file.
    names : str or path-like, default=None
        A table of titles.
    engine : {"cpu", "cuda"}, default=None
        Where to compute. None: where the model was fitted.
    limits : Limits, default=Limits()
        What a request may ask for.
    hosts : tuple of str, default=None
        Names under which the server may be addressed, without ports. None: any.
    """

    def __init__(
        self,
        path: Any,
        names: Any = None,
        engine: str | None = None,
        limits: Limits | None = None,
        hosts: Sequence[str] | None = None,
    ) -> None:
        self.path, self.names, self.engine, self.hosts = path, names, engine, hosts
        self.limits = limits or Limits()
        self.counts: Counter[str] = Counter()
        self.started = time.monotonic()
        self.reloads = 0
        self.last_reload_error: dict[str, Any] | None = None
        self.pending = 0
        self._queue: deque[Job] = deque()
        self._lock = threading.Lock()
        self._signature = self._look()
        self.model = ServedModel.load(path, names, engine)

    def _look(self) -> tuple[Any, ...]:
        """What tells one version of the files from another: time, size and number on disk; None where there is none."""
        looks: list[Any] = []
        for path in filter(None, (self.path, self.names)):
            try:
                found = os.stat(path)
                looks.append((found.st_mtime_ns, found.st_size, found.st_ino))
            except OSError:
                looks.append(None)
        return tuple(looks)

    def reload_if_changed(self, force: bool = False) -> bool:
        """Load the model file beside the present model and exchange the two, if the file is another one.

        A file that can't be served leaves the present model in its place; the error is logged and kept.

        Parameters
        ----------
        force : bool, default=False
            Load it even if it looks the same.

        Returns
        -------
        bool
            Whether a model was exchanged.
        """
        now = self._look()
        if now == self._signature and not force:
            return False
        self._signature = now
        try:
            model = ServedModel.load(self.path, self.names, self.engine)
        except (Exception, MemoryError) as error:  # whatever a file brings about
            message = str(error) if isinstance(error, HalfseenError) else f"{type(error).__name__}: {error}"
            when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            self.last_reload_error = {"at": when, "message": message}
            log.error("The new model file is not served, the old one is. %s", message)
            return False
        self.model = model
        self.reloads += 1
        self.last_reload_error = None
        log.info("Loaded the new model %s (%s).", model.path.name, model.fingerprint)
        return True

    def answer(self, path: str, asked: Mapping[str, Any], deadline: float = math.inf) -> dict[str, Any]:
        """What a request is answered; a `RequestError` if it can't be.

        Parameters
        ----------
        path : str
            The route.
        asked : dict
            Fields as they came.
        deadline : float, default=inf
            When to give up, as `time.monotonic` counts.

        Returns
        -------
        dict
            To be sent as JSON.
        """
        if path in ("/recommend", "/similar"):
            return self._compute(path, [check_fields(path, asked, self.limits)], deadline)[0]
        model = self.model
        if asked:
            must, found = "This route must be asked without parameters.", repr(next(iter(asked))[:40])
            raise RequestError(must, found=found, remedy="Leave them out.")
        if path == "/health":
            return {
                "status": "ok",
                "model": model.fingerprint,
                "model_loaded_at": model.loaded_at,
                "reloads": self.reloads,
                "last_reload_error": self.last_reload_error,
                "requests": dict(self.counts),
                "pending": self.pending,
                "seconds_up": round(time.monotonic() - self.started, 1),
                "process": os.getpid(),
            }
        if path == "/model":
            return model.facts() | {"limits": vars(self.limits)}
        if path == "/openapi.json":
            return openapi(self.limits)
        return {"routes": {path: {"methods": methods, "does": does} for path, (methods, does) in ROUTES.items()}}

    def _compute(self, path: str, many: Sequence[Mapping[str, Any]], deadline: float) -> list[dict[str, Any]]:
        """Answers to checked requests; of several if they differ in their users alone."""
        model = self.model  # which answers to the end, even if another one comes meanwhile
        try:
            with np.errstate(all="ignore"):
                if len(many) > 1:
                    return model.recommend_together(many, deadline)
                return [(model.recommend if path == "/recommend" else model.similar)(many[0], deadline)]
        except (DataError, ParameterError) as error:  # such as a value that the model does not take
            fields = {name: getattr(error, name) for name in ("found", "where", "remedy", "parameter")}
            raise RequestError(error.must, status=422, **fields) from error
        except MemoryError:
            must, remedy = "The computation must fit into memory.", "Ask for fewer users at a time."
            raise RequestError(must, status=503, found="too little", remedy=remedy) from None

    def put(self, job: Job) -> None:
        """Let a job wait for `work`."""
        self._queue.append(job)

    def work(self) -> None:
        """Answer the job that waits longest, and those right behind it that can be answered together with it."""
        with self._lock:
            jobs: list[Job] = []
            users = 0
            while self._queue and (not jobs or (jobs[0].kind is not None and self._queue[0].kind == jobs[0].kind)):
                users += len((self._queue[0].checked or {}).get("users", ()))
                if jobs and users > ROWS_AT_A_TIME:
                    break
                jobs.append(self._queue.popleft())
        jobs = [job for job in jobs if job.done.set_running_or_notify_cancel()]
        if not jobs:
            return
        try:
            deadline = min(job.deadline for job in jobs)
            if time.monotonic() > deadline:
                raise too_slow()
            checked = [job.checked or check_fields(job.path, read_json(job.body), self.limits) for job in jobs]
            for job, payload in zip(jobs, self._compute(jobs[0].path, checked, deadline), strict=True):
                job.done.set_result(as_bytes(payload))
        except BaseException as error:  # which is the request's own
            for job in jobs:
                if not job.done.done():
                    job.done.set_exception(error)


def openapi(limits: Limits) -> dict[str, Any]:
    """The routes in OpenAPI's form.

    Parameters
    ----------
    limits : Limits
        What a request may ask for.

    Returns
    -------
    dict
    """
    from halfseen import __version__

    one_id: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]}
    ids = {"type": "array", "items": one_id, "maxItems": limits.users}
    value = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}
    choice = {
        "n": {"type": "integer", "minimum": 1, "maximum": limits.n, "default": 10},
        "filter_items": {"type": "array", "items": one_id, "description": "Only these items."},
        "exclude": {"type": "array", "items": one_id, "description": "None of these items."},
    }
    histories = {
        "type": "array", "maxItems": limits.users, "description": "New users: objects from items to values.",
        "items": {"type": "object", "additionalProperties": value},
    }  # fmt: skip
    fields = {
        "/recommend": {
            "users": ids, "histories": histories, "exclude_seen": {"type": "boolean", "default": True}, **choice,
        },
        "/similar": {"items": ids, "users": ids, **choice},
    }  # fmt: skip
    good = {"description": "The answer.", "content": {"application/json": {"schema": {"type": "object"}}}}
    names = ("must", "found", "where", "remedy", "message")
    described = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    error = {"type": "object", "properties": {"error": described}}
    bad = {"description": "What must hold, what was found, and what to do.",
           "content": {"application/json": {"schema": error}}}  # fmt: skip
    paths: dict[str, Any] = {}
    for path, (methods, does) in ROUTES.items():
        paths[path] = {}
        for method in methods:
            about: dict[str, Any] = {"summary": does, "responses": {"200": good, "4XX": bad, "503": bad}}
            about["operationId"] = f"{method.lower()}_{path[1:].partition('.')[0] or 'routes'}"
            own = fields.get(path, {})
            if method == "POST":
                about["requestBody"] = {
                    "required": True,
                    "content": {"application/json": {"schema": {"type": "object", "properties": own}}},
                }
            elif own:
                about["parameters"] = [
                    {"name": {"users": "user", "items": "item"}.get(name, name), "in": "query", "schema": schema}
                    for name, schema in own.items()
                    if name != "histories"
                ]
            paths[path][method.lower()] = about
    return {"openapi": "3.1.0", "info": {"title": "halfseen", "version": __version__}, "paths": paths}


# ---------------------------------------------------------------------------------------------------------------------
# HTTP


def error_payload(error: HalfseenError) -> dict[str, Any]:
    """An error as an answer: the fields that are not empty, and the whole message.

    Parameters
    ----------
    error : HalfseenError
        Why a request is refused.

    Returns
    -------
    dict
    """
    names = ("parameter", "must", "found", "where", "remedy")
    fields = {name: CODE.sub(r"\1", str(getattr(error, name))) for name in names if getattr(error, name)}
    return {"error": fields | {"message": str(error)}}


def application(service: Service) -> Any:
    """The application that a server such as uvicorn runs.

    Parameters
    ----------
    service : Service
        What answers.

    Returns
    -------
    starlette.applications.Starlette
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

    limits = service.limits
    pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="halfseen-serving")

    def respond(payload: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        service.counts[f"{status // 100}xx"] += 1
        content = payload if isinstance(payload, bytes) else as_bytes(payload)
        return Response(content, status, {"cache-control": "no-store", **(headers or {})}, "application/json")

    def refuse(error: RequestError) -> Response:
        headers = {503: {"retry-after": "1"}, 413: {"connection": "close"}, 408: {"connection": "close"}}
        return respond(error_payload(error), error.status, headers.get(error.status))

    async def read_body(request: Request) -> bytes:
        """The body, up to the allowed number of bytes; a longer one is read on for a while, so that it can be answered."""
        declared = request.headers.get("content-length", "0")
        length = int(declared) if declared.isdecimal() else 0
        parts, size = [], 0
        if length <= PATIENCE * limits.bytes:
            async for chunk in request.stream():
                size += len(chunk)
                if size <= limits.bytes:
                    parts.append(chunk)
                elif size > PATIENCE * limits.bytes:
                    break
        if max(size, length) > limits.bytes:
            must = f"A body must have at most {limits.bytes:,} bytes."
            found = f"{max(size, length):,}"
            raise RequestError(must, status=413, found=found, remedy="Split the request.")
        return b"".join(parts)

    async def compute(job: Job) -> bytes:
        """The result of a job, from a thread; refused if too many wait, or if it takes too long."""
        if service.pending >= limits.threads + limits.waiting:
            must, found = "There must be room for a request.", f"{service.pending} at work or waiting"
            raise RequestError(must, status=503, found=found, remedy="Try again later.")
        service.pending += 1
        loop = asyncio.get_running_loop()

        def done(_: Any) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(lambda: setattr(service, "pending", service.pending - 1))

        job.done.add_done_callback(done)
        service.put(job)
        pool.submit(service.work)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.done), max(0.0, job.deadline - time.monotonic()))
        except TimeoutError:
            raise too_slow() from None

    async def endpoint(request: Request) -> Response:
        path = request.scope["path"]
        methods = ROUTES[path][0]
        deadline = time.monotonic() + limits.seconds
        try:
            host = re.sub(r":\d*$", "", request.headers.get("host", ""))
            if service.hosts is not None and host and host.lower() not in service.hosts:
                must = f"The server must be addressed as {' or '.join(service.hosts)}."
                remedy = "Use one of these, or allow the name: halfseen serve --server-name NAME."
                raise RequestError(must, status=421, found=ascii(host[:60]), remedy=remedy)
            if request.method == "OPTIONS":
                return Response(None, 204, {"allow": ", ".join((*methods, "HEAD", "OPTIONS"))})
            query = request.scope["query_string"]
            is_post = request.method == "POST"
            body = b""
            if is_post:
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    must = "The content type of a body must be application/json."
                    found, remedy = ascii(kind[:60] or "none"), 'Send the header "content-type: application/json".'
                    raise RequestError(must, status=415, found=found, remedy=remedy)
                if query:
                    must, remedy = "A request with a body must have no query.", "Put all fields into the body."
                    raise RequestError(must, found=ascii(query[:40].decode("latin-1")), remedy=remedy)
                try:
                    body = await asyncio.wait_for(read_body(request), limits.seconds)
                except TimeoutError:
                    must, remedy = "A body must arrive in the time allowed.", "Send it again."
                    raise RequestError(must, status=408, found="a part of it", remedy=remedy) from None

            if is_post and len(body) > SMALL_BODY:
                return respond(await compute(Job(path, deadline, None, body)))
            names = ("users", "items", "filter_items", "exclude")
            asked = read_json(body) if is_post else read_query(query, names)
            if path not in ("/recommend", "/similar"):  # answered even while all threads are at work
                return respond(service.answer(path, asked))
            return respond(await compute(Job(path, deadline, check_fields(path, asked, limits))))
        except RequestError as error:
            return refuse(error)
        except ClientDisconnect:
            return Response(None, 400)

    async def no_such(request: Request, error: Exception) -> Response:
        """Answer of unknown routes and methods."""
        status = getattr(error, "status_code", 400)
        if status == 405:
            path = request.scope["path"]
            allowed = ", ".join((*ROUTES[path][0], "HEAD", "OPTIONS"))
            must, found = f"The method of {path} must be one of {allowed}.", ascii(request.method[:20])
            answer = refuse(RequestError(must, status=405, found=found, remedy="Use one of these."))
            answer.headers["allow"] = allowed
            return answer
        near = did_you_mean(request.scope["path"], ROUTES)
        remedy = f"Did you mean {near!r}?" if near else f"The routes are {', '.join(ROUTES)}."
        found = ascii(request.scope["path"][:60])
        return refuse(RequestError("A route must be known.", status=status, found=found, remedy=remedy))

    async def failed(_: Request, error: Exception) -> Response:
        """Answer of a request that met a defect of ours: it is logged, not shown."""
        return respond({"error": {"message": "The server failed; its log has the reason."}}, 500)

    async def watch(wake: asyncio.Event) -> None:
        """Look at the model file each second, and at once when told to."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), POLL)
            force = wake.is_set()
            wake.clear()
            await asyncio.to_thread(service.reload_if_changed, force)

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        hold_blas()  # requests share the processors as threads
        wake, loop = asyncio.Event(), asyncio.get_running_loop()
        is_main = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP")
        if is_main:
            loop.add_signal_handler(signal.SIGHUP, wake.set)
        watching = asyncio.create_task(watch(wake))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            if is_main:
                loop.remove_signal_handler(signal.SIGHUP)
            pool.shutdown(wait=False, cancel_futures=True)
            release_blas()

    routes = [Route(path, endpoint, methods=[*methods, "OPTIONS"]) for path, (methods, _) in ROUTES.items()]
    handlers: Any = {HTTPException: no_such, Exception: failed}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


def as_bytes(payload: Any) -> bytes:
    """A payload as JSON."""
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")

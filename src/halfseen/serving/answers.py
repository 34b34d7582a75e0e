"""Answers: what one loaded model file says to checked requests."""

import datetime
import hashlib
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.topk import Cosines, Products, Scores, best_columns
from halfseen.errors import DataError, HalfseenError, ParameterError
from halfseen.io.numbers import NotANumber, Scale
from halfseen.io.reader import read_titles
from halfseen.labels import Index, is_plain_integer
from halfseen.observed import Observed
from halfseen.serving.requests import Limits, RequestError, check_fields, shown, too_slow

#: Scores computed between two looks at the clock.
SCORES_AT_A_TIME = 1 << 22
#: Rows computed between two looks at the clock.
ROWS_AT_A_TIME = 64


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
            return np.datetime_as_string(labels).tolist()
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
    titles : ndarray of shape (n_items,) or None
        Titles of items, None where there is none.
    fingerprint : str
        Of the bytes of the file.
    loaded_at : str
        When, in ISO 8601.
    """

    path: Path
    estimator: Any
    titles: Array | None
    fingerprint: str
    _cosines: dict[str, Cosines] = field(default_factory=dict)
    loaded_at: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))

    @classmethod
    def load(cls, path: Any, names: Any = None, engine: str | None = None) -> "ServedModel":
        """Read a model file, and try it: what can't recommend is refused, and the first request finds all compiled.

        Parameters
        ----------
        path : str or path-like
            The model file.
        names : str or path-like, default=None
            A table of ids of items and their titles.
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
        model = cls(path, estimator, None, fingerprint)
        if names is not None:
            model = replace(model, titles=model.read_titles(names))
        limits = Limits()
        if model.shape[0]:
            user = model.users.as_json(model.record.labels_at(np.zeros(1, np.int64), "row"))
            model.recommend(check_fields("/recommend", {"users": user, "n": 1}, limits))
        item = model.items.as_json(model.record.labels_at(np.zeros(1, np.int64), "column"))
        levels = model.record.levels_to_read
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

    @property
    def engine(self) -> str:
        """Where the model computes."""
        engine: str = getattr(self.estimator, "engine", "cpu")
        return engine

    @cached_property
    def terms(self) -> float:
        """Products of numbers in the scores of one user; inf for a model that has no factors."""
        scores = self.record.scores(self.record.known_rows(np.empty(0, np.int64)))
        return scores.H.size if isinstance(scores, Products) else math.inf

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
        counts = self.record.seen.per_column()
        return counts, np.argsort(-counts, kind="stable")

    def read_titles(self, path: Any) -> Array:
        """Titles of the items from a table; refused if it has none of them."""

        def find(ids: list[Any]) -> Array:
            return self.items.find([one if isinstance(one, str | int | float) else str(one) for one in ids])

        titles = read_titles(path, find, self.shape[1])
        if all(title is None for title in titles):
            must, remedy = "A table of names must list items of the model.", "Check the ids in it."
            raise DataError(must, found="none of them", where=f"in {str(path)!r}", remedy=remedy)
        return titles

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
        excluded_here = excluded if candidates is None else excluded[:0]
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
                    unseen=self.record.unseen, row_labels=part, column_labels=self.record.labels.column_labels,
                    allow_empty=True,
                )  # fmt: skip
                name = type(self.estimator).__name__
                served = self.record.served_rows(observed, self.engine, 1, name)
                return served, (observed.indptr, observed.indices)

        for part in self._blocks(known, deadline):
            rows, seen = rows_of(part)
            hidden = seen if asked["exclude_seen"] else (np.zeros(part.size + 1, np.int64), excluded[:0])
            if excluded_here.size:
                lists = [hidden[1][hidden[0][row] : hidden[0][row + 1]] for row in range(part.size)]
                ends = np.cumsum([0, *(one.size + excluded_here.size for one in lists)])
                hidden = ends, np.concatenate([side for one in lists for side in (one, excluded_here)])
            best = self._best(self.record.scores(rows), n, hidden, candidates)
            for place, columns, x in zip(part.tolist(), *best, strict=True):
                answers[place] |= {"known": True, "items": self._listed("item", columns, x)}
        if known.size < len(answers):
            counts, order = self.popularity
            allowed = np.full(m, candidates is None)
            if candidates is not None:
                allowed[candidates] = True
            allowed[excluded] = False
            popular = order[allowed[order]][:n]
            items = self._listed("item", popular, counts[popular])
            for answer in answers:
                answer.setdefault("items", items)
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
            instead = popular if what == "recommendations" else ""
            notes = [*notes, f"{unknown} of the {len(answers)} asked about are not known to the model{instead}."]
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
        excluded, candidates = self._choice(asked, notes) if one == "item" else (np.empty(0, np.int64), None)
        if candidates is not None:
            excluded = excluded[:0]
        wanted = asked[f"{one}s"]
        positions = ids.find(wanted)
        known = np.flatnonzero(positions >= 0)
        answers: list[dict[str, Any]] = [{one: name, "known": False, f"{one}s": []} for name in wanted]
        for place, name in zip(known, ids.as_json(self.record.labels_at(positions[known], side)), strict=True):
            answers[place][one] = name
        for part in self._blocks(known, deadline, ids.size):
            rows = positions[part]
            ends = np.arange(part.size + 1) * (1 + excluded.size)
            hidden = ends, np.column_stack([rows, np.tile(excluded, (part.size, 1))]).astype(np.int64).reshape(-1)
            best = self._best(self._similarities(rows, side), asked["n"], hidden, candidates)
            for place, columns, x in zip(part.tolist(), *best, strict=True):
                answers[place] |= {"known": True, f"{one}s": self._listed(one, columns, x)}
        return self._with_notes("similar", answers, notes)

    def _best(self, scores: Scores, n: int, hidden: Any, candidates: Array | None) -> Any:
        """Columns and scores of the best of each row; requests share the processors, so one has one thread."""
        return best_columns(scores, n, hidden, candidates, n_jobs=1, engine=self.engine)

    def _similarities(self, positions: Array, side: str) -> Scores:
        """How alike rows or columns are; vectors that were scaled to length 1 for this are kept."""
        if side in self._cosines:
            return self._cosines[side].of(positions)
        scores: Scores = self.record.similarities(positions, side)
        if isinstance(scores, Cosines):
            self._cosines[side] = scores.of(positions[:0])
        return scores

    def _choice(self, asked: Mapping[str, Any], notes: list[str]) -> tuple[Array, Array | None]:
        """Positions of excluded items, and of those among which is chosen (None: all); what is unknown is noted."""
        found = {}
        for name in ("exclude", "filter_items"):
            positions = self.items.find(asked.get(name, ()))
            found[name] = np.unique(positions[positions >= 0])
            unknown = int((positions < 0).sum())
            if unknown:
                notes.append(f"{unknown} of {positions.size} items in {name} are not in the model, and were left out.")
        if "filter_items" in asked:
            return found["exclude"], np.setdiff1d(found["filter_items"], found["exclude"], assume_unique=True)
        return found["exclude"], None

    def _read_histories(self, histories: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[Array, Array, Array]:
        """Cells of histories as history, column and value; items that are unknown are left out, and noted."""
        if not self.record.can_fold_in:
            must, found = "The model must take new users.", f"a {type(self.estimator).__name__}"
            raise RequestError(must, status=422, found=found, remedy="Ask for users of the fit.")
        items = [item for history in histories for item in history]
        scale = Scale.of(self.record.levels_to_read)
        try:
            values = scale.numbers([value for history in histories for value in history.values()])
        except NotANumber as error:
            where, remedy = f"for item {items[error.position][:40]!r}", f"{scale.hint}Use null if it is unknown."
            found = shown(error.field)
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

    def _listed(self, one: str, positions: Array, scores: Array) -> list[dict[str, Any]]:
        """Ids and scores as JSON lists them, with titles; scores that are not finite have no place in JSON."""
        listed = (positions >= 0) & np.isfinite(scores)
        ids, side = (self.items, "column") if one == "item" else (self.users, "row")
        names = ids.as_json(self.record.labels_at(positions[listed], side))
        if one == "user" or self.titles is None:
            pairs = zip(names, scores[listed].tolist(), strict=True)
            return [{one: name, "score": score} for name, score in pairs]
        titled = zip(names, self.titles[positions[listed]], scores[listed].tolist(), strict=True)
        return [{one: name, "title": title, "score": score} for name, title, score in titled]

    def facts(self) -> dict[str, Any]:
        """What is served."""
        record, estimator = self.record, self.estimator
        levels = getattr(estimator, "levels_", None)
        return {
            "file": self.path.name,
            "fingerprint": self.fingerprint,
            "loaded_at": self.loaded_at,
            "model": type(estimator).__name__,
            "users": self.shape[0],
            "items": self.shape[1],
            "n_components": record.H.shape[1] if hasattr(record, "H") else None,
            "unseen": record.unseen,
            "levels": None if levels is None else levels.tolist(),
            "takes_histories": bool(record.can_fold_in),
            "titles": 0 if self.titles is None else sum(title is not None for title in self.titles),
        }

"""What came of a study, kept as JSON beside its tables: for programs, and for a run that goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from halfseen import __version__
from halfseen.cli.jsonout import as_json
from halfseen.cli.results import Drawn, path_of, written
from halfseen.studies import Column, Goal, Result, Study, Table

NOT_RUN = "not run"


@dataclass(frozen=True)
class Outcome:
    """What came of a study: a result after so many seconds, with pictures in files; or the reason why there is none."""

    study: Study
    result: Result | None = None
    seconds: float = 0.0
    pictures: Sequence[Drawn] = field(default=())
    reason: str = ""

    @property
    def verdict(self) -> str:
        """pass, short, not run; a dash where there is nothing to judge."""
        return NOT_RUN if self.result is None else self.result.verdict or "-"

    @property
    def mark(self) -> str:
        """The verdict's first word, for its colour."""
        return self.verdict.partition(" ")[0]

    @property
    def time(self) -> str:
        return "-" if self.result is None else f"{self.seconds:.1f} s"

    @property
    def anchor(self) -> str:
        return self.study.name.replace("/", "-").replace(".", "-")


class Terms(NamedTuple):
    """What a study was run with: of other terms it may come out otherwise."""

    quick: bool
    seed: int

    def of(self, study: Study) -> dict[str, Any]:
        """These, with the version and the data that were not there."""
        return {"quick": self.quick, "seed": self.seed, "halfseen": __version__, "absent": study.absent()}


def facts(outcome: Outcome, terms: Terms) -> dict[str, Any]:
    """What is known of an outcome, for programs; the reason of what has not run."""
    study, result = outcome.study, outcome.result
    told = {"study": study.name, "title": study.title, "paper": study.paper, "terms": terms.of(study)}
    if result is None:
        return told | {"verdict": NOT_RUN, "reason": outcome.reason}
    return told | {
        "seconds": outcome.seconds,
        "verdict": result.verdict,
        "summary": result.summary,
        "goals": [goal._asdict() for goal in result.goals],
        "tables": [asdict(table) for table in result.tables],
        "pictures": [{"title": title, "file": path.name} for title, path in outcome.pictures],
    }


def keep(folder: Path, outcome: Outcome, terms: Terms) -> Path:
    """Write what is known of an outcome; last, when its tables and pictures are there."""
    if outcome.result is None:
        raise ValueError("only what has run can be kept")
    path = path_of(folder, outcome.study, "", "json")
    with written(path) as draft:
        draft.write_text(as_json(facts(outcome, terms)) + "\n", encoding="utf-8")
    return path


def kept(folder: Path, study: Study, terms: Terms) -> Outcome | None:
    """What an earlier run on the same terms has left of a study, if it is whole."""
    try:
        told = json.loads(path_of(folder, study, "", "json").read_text(encoding="utf-8"))
        if told["terms"] != terms.of(study):
            return None
        tables = [
            Table(**{**table, "columns": [Column(**column) for column in table["columns"]]}) for table in told["tables"]
        ]
        pictures = [Drawn(picture["title"], folder / picture["file"]) for picture in told["pictures"]]
        result = Result(told["summary"], tables, goals=[Goal(**goal) for goal in told["goals"]])
        seconds = float(told["seconds"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, cut short, or something else
        return None
    return Outcome(study, result, seconds, pictures) if all(picture.path.is_file() for picture in pictures) else None

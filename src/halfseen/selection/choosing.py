"""Which of several ranks to take, by their scores on the same folds."""

from typing import Any

import numpy as np

from halfseen.arrays import Array

_ERROR = "std. error of distance to best"  # which is 0 at the best itself
RULES = ("one-standard-error", "best")


def standard_errors(scores: Array) -> Array:
    """How uncertain each rank's distance to the best is:  std over folds of (best score - score) / sqrt(folds).

    Folds differ in difficulty, and all ranks alike feel it. So the distance within folds is what counts: its spread is
    smaller than that of the scores themselves, by which too small ranks would pass.
    """
    distances = _distances(scores)
    errors: Array = distances.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    return errors


def chosen(scores: Array, rule: str) -> int:
    """The place of the rank to take, of `scores` by ascending rank (first axis) and fold.

    "best" takes the highest mean score; "one-standard-error" the first rank that is no farther from it than the
    standard error of that distance: what more components gain is then within what chance explains.
    """
    if rule == "best":
        return int(np.argmax(scores.mean(axis=1)))
    near = _distances(scores).mean(axis=1) <= standard_errors(scores)
    return int(np.argmax(near))


def _distances(scores: Array) -> Array:
    """How far below the best rank's score each score is, fold by fold; 0 everywhere at the best rank."""
    return scores[np.argmax(scores.mean(axis=1))] - scores


class Results(dict[str, Any]):
    """Arrays by name, with an entry for each rank, ascending; shown as a table with a star at the rank chosen.

    "n_components"; "mean", the mean score over folds; "standard_error", of the distance to the best mean, which is
    therefore 0 at the best; "scores", ranks by folds; "seconds", of all fits at this rank together. With further
    parameters also "parameters", their best values at each rank, from which the scores are.
    """

    def __init__(self, place: int, **columns: Any) -> None:
        super().__init__(**columns)
        self.place = place

    def __repr__(self) -> str:
        lines = [f"{'n_components':>12}  {'mean score':>12}  {_ERROR}  {'seconds':>8}"]
        columns = (self[name] for name in ("n_components", "mean", "standard_error", "seconds"))
        for place, (rank, mean, error, seconds) in enumerate(zip(*columns, strict=True)):
            line = f"{rank:>12}  {mean:>12.5g}  {error:>{len(_ERROR)}.2g}  {seconds:>8.2f}"
            line += "".join(f"  {name}={value}" for name, value in self._further(place).items())
            lines.append(f"{line}  *" if place == self.place else line)
        return "\n".join(lines)

    def _further(self, place: int) -> dict[str, Any]:
        further: dict[str, Any] = self["parameters"][place] if "parameters" in self else {}
        return further

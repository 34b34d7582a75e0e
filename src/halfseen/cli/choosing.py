"""-k auto: the number of components chosen by held-out cells."""

import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import click

from halfseen.cli.summaries import count
from halfseen.observed import Observed


class Components(click.ParamType):
    """A whole number; "auto", as an empty list; or "auto:5,10,20", as a list of the numbers to choose from."""

    name = "number or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        word, colon, listed = str(value).partition(":")
        try:
            if word != "auto":
                return int(value)
            return [int(one) for one in listed.split(",")] if colon else []
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor auto, nor a list such as auto:5,10,20.", param, ctx)


class Choice(NamedTuple):
    """A fitted search, or None if the number was given, and the seconds it took."""

    search: Any = None
    seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        """The scores of all numbers tried, as text."""
        search = self.search
        if search is None:
            return
        ranks, means = search.results_["n_components"], search.results_["mean"]
        yield f"Tried {count(ranks.size, 'number')} of components on {search.n_folds} folds by {search.metric_}:"
        yield str(search.results_)
        yield (
            f"Chose {count(search.best_n_components_, 'component')}, the fewest within one standard error of the best, "
            f"in {self.seconds:.2f} s."
        )
        if ranks.size > 1 and means.argmax() == ranks.size - 1:
            larger = ",".join(str(factor * ranks[-1]) for factor in (1, 2, 4))
            yield f"The most components did best, so more may do better: try -k auto:{larger}."

    def facts(self) -> dict[str, Any]:
        """The same for --json."""
        search = self.search
        if search is None:
            return {}
        columns = [search.results_[name].tolist() for name in ("n_components", "mean", "standard_error", "seconds")]
        names = ("n_components", "mean_score", "standard_error_of_distance", "seconds")
        tried = [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]
        facts = {"metric": search.metric_, "folds": search.n_folds, "tried": tried}
        return {"choice": {**facts, "chosen": search.best_n_components_, "seconds": self.seconds}}


def choose(model: Any, observed: Observed, ranks: int | list[int] | None, n_jobs: int | None, quiet: bool) -> Choice:
    """Set the model's n_components to the best of a list; without a list, leave the model as it is."""
    import halfseen

    if not isinstance(ranks, list):
        return Choice()
    search = halfseen.RankSearch(
        model, ranks or None, refit=False, random_state=model.random_state, n_jobs=n_jobs, verbose=0 if quiet else 1
    )
    started = perf_counter()
    try:
        search.fit(observed)
    except KeyboardInterrupt:
        click.echo("Interrupted while choosing the number of components; nothing was saved.", err=True)
        sys.exit(130)
    model.set_params(**search.best_params_)
    return Choice(search, perf_counter() - started)

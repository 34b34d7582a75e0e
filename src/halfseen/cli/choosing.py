"""-k auto: the number of components by held-out cells, and an account of what was tried."""

import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import click

from halfseen.cli import accounts
from halfseen.data import Observed

AUTO = "auto"


class Components(click.ParamType):
    """A whole number; "auto"; or "auto:5,10,20", a list of numbers to choose from. The latter two become lists, the
    empty one for the usual numbers."""

    name = "number or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        word, colon, listed = str(value).partition(":")
        try:
            if word != AUTO:
                return int(value)
            return [int(one) for one in listed.split(",")] if colon else []
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor auto, nor a list such as auto:5,10,20.", param, ctx)


class Choice(NamedTuple):
    """A search that has chosen, and how long it took."""

    search: Any
    seconds: float

    def told(self) -> Iterator[str]:
        """All that was tried, in words."""
        search = self.search
        ranks, means = search.results_["n_components"], search.results_["mean"]
        tried = accounts.count(ranks.size, "number")
        yield f"Tried {tried} of components on {search.n_folds} folds by {search.metric_}:"
        yield str(search.results_)
        yield (
            f"Chose {accounts.count(search.best_n_components_, 'component')}, the fewest within one standard error of "
            f"the best, in {self.seconds:.2f} s."
        )
        if ranks.size > 1 and means.argmax() == ranks.size - 1:
            larger = ",".join(str(factor * ranks[-1]) for factor in (1, 2, 4))
            yield f"The most components did best, so more may do better: try -k auto:{larger}."

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        found = self.search.results_
        columns = [found[name].tolist() for name in ("n_components", "mean", "standard_error", "seconds")]
        names = ("n_components", "mean_score", "standard_error_of_distance", "seconds")
        tried = [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]
        return {
            "metric": self.search.metric_,
            "folds": self.search.n_folds,
            "tried": tried,
            "chosen": self.search.best_n_components_,
            "seconds": self.seconds,
        }


def choose(model: Any, observed: Observed, ranks: list[int], n_jobs: int | None, quiet: bool) -> Choice:
    """Set the model's n_components to the best of `ranks`."""
    import halfseen

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

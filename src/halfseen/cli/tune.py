"""halfseen tune: a model whose parameters are chosen by held-out cells."""

import sys
from time import perf_counter
from typing import Any

import click

from halfseen import validation
from halfseen.cli import options, streams, summaries
from halfseen.cli.app import Command
from halfseen.cli.fit import METHODS
from halfseen.cli.messages import render
from halfseen.cli.streams import JSON
from halfseen.cli.summaries import count

#: Candidates in the table at the end.
LEADING = 10


class Values(click.ParamType):
    """name=low:high as a pair in a dict, name=a,b,c as a list; the name may be given beforehand, as for -k."""

    name = "values"

    def __init__(self, parameter: str | None = None) -> None:
        self.parameter = parameter

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        name, equals, text = (self.parameter, "=", value) if self.parameter else value.partition("=")
        words = [word.strip() for word in text.split(",")]
        if not (name and equals and all(words)):
            self.fail(f"{value!r} must be name=low:high, or name=value,value,...", param, ctx)
        if ":" not in text:
            return name, [self._plain(word) for word in words]
        try:
            low, high = map(float, text.split(":"))
        except ValueError:
            low = high = 0.0
        if not 0 < low < high < float("inf"):
            self.fail(f"{text!r} must be two numbers above 0, the lower one first: 0.1:10.", param, ctx)
        return name, (low, high)

    @staticmethod
    def _plain(word: str) -> Any:
        """A number, true, false or none as such; other words as they are."""
        words = {"none": None, "true": True, "false": False}
        if word.lower() in words:
            return words[word.lower()]
        try:
            number = float(word)
        except ValueError:
            return word
        return int(word) if word.lstrip("+-").isdecimal() else number


@click.command(cls=Command)
@options.DATA
@click.option("--method", type=click.Choice(list(METHODS)), default="poisson", help="As in fit.")
@click.option("-k", "--n-components", type=Values("n_components"), metavar="LOW:HIGH|NUMBER,...",
              help="Numbers of components: from a range, or of a list; one number leaves no choice.")  # fmt: skip
@click.option("--param", type=Values(), multiple=True, metavar="NAME=LOW:HIGH|NAME=A,B,...",
              help="A parameter of the model: from a range, on a logarithmic scale, or one of a list; may be given "
              "again. By default, good ranges of l2, prior_shape and loss, where the model has them.")  # fmt: skip
@click.option("-o", "--output", default="model.hs", type=click.Path(), help="File for the model.")
@click.option("--metric", help="Score on held-out cells: ndcg@K, precision@K, recall@K, map@K, rmse, mae, "
              "log-likelihood, divergence. By default ndcg@100 where unseen cells are zeros.")  # fmt: skip
@click.option("--relevant", type=float, default=1.0, help="For ranking: from which value on a cell is relevant.")
@click.option("--candidates", type=click.IntRange(1), metavar="NUMBER",
              help="Number of candidates; by default 20, or all combinations of lists.")  # fmt: skip
@click.option("--folds", type=click.IntRange(2), default=5, help="Number of folds.")
@click.option("--factor", type=int, default=3,
              help="One candidate in so many goes on from each rung to the next, with as many times the resource; 1 "
              "tries all of them on all folds.")  # fmt: skip
@click.option("--resource", default="folds",
              help="What there is less of at first: folds, rows, or a parameter such as max_iter.")  # fmt: skip
@click.option("--journal", type=click.Path(),
              help="File to which each evaluation is appended; the same command goes on from it.")  # fmt: skip
@options.UNSEEN
@options.LEVELS
@options.READING
@options.FITTING
@options.ENGINE
@JSON
def tune(data: str, method: str, n_components: tuple[str, Any] | None, param: tuple[tuple[str, Any], ...], output: str,
         metric: str | None, relevant: float, candidates: int | None, folds: int, factor: int, resource: str,
         journal: str | None, unseen: str | None, levels: list[Any] | None, max_iter: int | None, tol: float | None,
         seed: int, n_jobs: int | None, quiet: bool, engine: str | None, as_json: bool, **reading: Any,
         ) -> None:  # fmt: skip
    """Choose the parameters of a model of DATA by held-out cells, together; fit it with them, and save it.

    Candidates are spread evenly over the ranges. All are tried on the first fold or two, the best third on more, and so
    on; the best of those that were tried on all folds is fitted. Ctrl-C keeps what is in the journal.

    \b
    halfseen tune train.csv --method squared-ordnmf -o best.hs
    halfseen tune train.csv --method squared-ordnmf -k 50:300 --param l2=20:200 --candidates 30 -o best.hs
    halfseen tune train.csv --method ordnmf -k 50,100 --metric ndcg@10 --journal tune.jsonl -o best.hs
    halfseen tune table.csv --method nmf --param loss=frobenius,kullback-leibler --metric rmse -o best.hs
    """
    import halfseen
    from halfseen.selection.search import default_parameters, log_range

    streams.check_output(output)
    streams.check_apart([output, journal], [data])
    if journal is not None:
        streams.check_output(journal)
    model = getattr(halfseen, METHODS[method])()
    known = model.get_params(deep=False)
    params = options.given(levels=levels, unseen=unseen, max_iter=max_iter, tol=tol, engine=engine, n_jobs=n_jobs)
    params |= {"random_state": seed} if "random_state" in known else {}
    given = dict([*([n_components] if n_components else []), *param])
    validation.check_names([*params, *given], known, METHODS[method])
    model.set_params(**params)
    validation.check_parameters(model.get_params(deep=False), getattr(model, "parameter_rules", {}))
    options.check_engine(engine)
    search = halfseen.Search(
        model, n_candidates=candidates, metric=metric, relevant=relevant,
        factor=factor if factor != 1 else None, resource=resource, n_folds=folds, journal=journal,
        refit=False, random_state=seed, n_jobs=n_jobs, verbose=0 if quiet else 1,
    )  # fmt: skip
    started = perf_counter()
    with streams.signals_interrupt() as exit_code:
        try:
            observed = halfseen.observe(
                data, unseen=getattr(model, "unseen", "zero"), levels=getattr(model, "levels_to_read", None),
                **options.reader(reading),
            )  # fmt: skip
            ranges = default_parameters(model, observed) | {
                name: log_range(*values) if isinstance(values, tuple) else values for name, values in given.items()
            }
            search.set_params(parameters=ranges or None).fit(observed)
            took = perf_counter() - started
            model.set_params(
                **search.best_params_, **({} if "verbose" not in known else {"verbose": 0 if quiet else 1})
            )
            model.fit(observed)
        except KeyboardInterrupt as interrupt:
            advice = " With --journal FILE the same command would go on." if journal is None else ""
            click.echo(f"{render(str(interrupt) or 'Interrupted; nothing was saved.')}{advice}", err=True)
            sys.exit(exit_code())
    model.save(output)
    results = search.results_
    names = ("parameters", "mean", "distance", "standard_error", "resource", "seconds")
    tried = [dict(zip(names, line, strict=True)) for line in zip(*(results[name] for name in names), strict=True)]
    if as_json:
        facts = {"metric": search.metric_, "folds": folds, "resource": resource, "tried": tried, "seconds": took}
        facts |= {"best": search.best_params_, "best_score": search.best_score_, "at_edge": search.at_edge_}
        about = {"method": method, **summaries.fit_facts(model), "search": facts}
        streams.print_json(
            {"data": summaries.data_facts(data, observed), **about, "file": streams.display_name(output)}
        )
        return
    heads = [*search.best_params_, "mean score", "distance to best", "std. error", resource, "seconds", ""]
    rows = [
        [
            *(f"{value:.4g}" if isinstance(value, float) else str(value) for value in one["parameters"].values()),
            f"{one['mean']:.5g}",
            *(f"{one[name]:.2g}".replace("nan", "-") for name in ("distance", "standard_error")), str(one["resource"]),
            f"{one['seconds']:.2f}", "" if number else "*",
        ]
        for number, one in enumerate(tried[:LEADING])
    ]  # fmt: skip
    lines = [
        f"Tried {count(len(tried), 'candidate')} on up to {folds} folds by {search.metric_} in {took:.2f} s:",
        *streams.table_lines(rows, heads),
    ]
    for name, edge in search.at_edge_.items():
        best = search.best_params_[name]
        low, high = (0.25, 2) if edge == "smallest" else (0.5, 4)
        option = "-k " if name == "n_components" else f"--param {name}="
        beyond = f"{max(1, round(low * best))}:{round(high * best)}"
        beyond = beyond if isinstance(best, int) else f"{low * best:.3g}:{high * best:.3g}"
        advice = f": try {option}{beyond}" if best > 0 else ""
        lines.append(f"The best {name} is the {edge} of those tried, so a better one may lie beyond{advice}.")
    lines += [summaries.describe_model(model), summaries.describe_end(model), summaries.describe_objective(model)]
    lines.append(summaries.describe_file(output))
    streams.print_lines(summaries.describe_data(data, observed), *lines, quiet=quiet)

"""halfseen fit: from a file to a model file; the number of components given, or chosen by held-out cells."""

import os
import sys
from time import perf_counter
from typing import Any

import click
from click.core import ParameterSource

from halfseen import validation
from halfseen.cli import options, streams, summaries
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON
from halfseen.cli.summaries import count
from halfseen.observed import Observed

METHODS = {
    "nmf": "WeightedNMF", "rank-one": "RankOneNMF", "poisson": "PoissonFactorization", "ordnmf": "OrdNMF",
    "bernoulli": "BernoulliPoisson", "compound": "CompoundPoisson", "squared-ordnmf": "SquaredOrdNMF",
    "squared-poisson": "SquaredPoisson", "implicit-mf": "ImplicitMF", "item-graph": "ItemGraph", "blend": "Blend",
    "popularity": "Popularity", "round": "RoundMF", "ordinal": "OrdinalMF",
}  # fmt: skip

#: Methods that are found without iterating.
DIRECT = ("item-graph", "blend", "popularity")


@click.command(cls=Command)
@options.DATA
@click.option("--method", type=click.Choice(list(METHODS)), default="poisson",
              help="nmf: non-negative values; rank-one: one component, exactly. Bayesian: poisson: counts and clicks; "
              "ordnmf: stars and other levels; bernoulli: present or not; compound: counts with a few large ones. Best "
              "for ranking: squared-ordnmf: levels; squared-poisson: counts and clicks; implicit-mf: any of "
              "them, fastest; item-graph: columns that speak for columns; blend: these three, weighted by held-out "
              "cells; popularity: the same for all rows. Best for missing levels: ordinal: with probabilities; round: "
              "by rounding, also exact.")  # fmt: skip
@click.option("-k", "--n-components", type=options.Components(), metavar="NUMBER|auto|auto:5,10,20",
              help="Number of components, by default 10 (squared methods: up to 200, implicit-mf: 128); "
              "auto chooses it by held-out cells, after a colon from these numbers.")  # fmt: skip
@click.option("-o", "--output", default="model.hs", type=click.Path(), help="File for the model.")
@options.LOSS
@click.option("--link", help="For ordinal: logit (default), probit, cloglog, loglog, cauchit.")
@options.UNSEEN
@options.LEVELS
@click.option(
    "--own-thresholds", type=click.Choice(["rows", "columns"]), help="For ordinal: thresholds per row or column."
)
@click.option("--inference", type=click.Choice(["map", "gibbs"]),
              help="For ordinal: map, a point estimate (default), or gibbs, draws from the posterior, which predict "
              "better and take longer.")  # fmt: skip
@click.option("--implicit", is_flag=True, default=None,
              help="For ordinal with --inference gibbs: learn from which cells were seen, too.")  # fmt: skip
@click.option("--sweeps", type=int, help="For --inference gibbs: number of sweeps; by default 200.")
@click.option("--burn", type=int, help="For --inference gibbs: number of discarded first sweeps; by default 40.")
@click.option("--l2", type=float, help="The penalty l2 / 2 * (sum of squares) on both factors.")
@click.option("--early-stopping", is_flag=True, default=None,
              help="For round and ordinal: stop when the loss of a held-out tenth no longer falls.")  # fmt: skip
@options.READING
@options.FITTING
@options.CLUSTER
@options.CHECKPOINT
@JSON
def fit(data: str, method: str, n_components: int | list[int] | None, output: str, loss: str | float | None,
        link: str | None, unseen: str | None, levels: list[Any] | None, own_thresholds: str | None,
        inference: str | None, implicit: bool | None, sweeps: int | None, burn: int | None,
        l2: float | None, early_stopping: bool | None, max_iter: int | None, tol: float | None, seed: int,
        n_jobs: int | None, quiet: bool, engine: str | None, scheduler: str | None, workers: int | None,
        memory: str | None, checkpoint: str | None, as_json: bool, **reading: Any) -> None:  # fmt: skip
    """Fit a model to DATA and save it.

    DATA is a text, Parquet, Feather, JSON lines or Excel file, also compressed, or a pattern for several: lines of row,
    column, value (such as user, item, rating) or a table with holes. Ctrl-C keeps the iterations done so far.
    With --checkpoint, a fit that was killed goes on where it last saved, and ends with the same numbers.

    \b
    halfseen fit ratings.csv --method poisson -k 50 -o model.hs
    halfseen fit ratings.csv --method squared-ordnmf -k 200 -o model.hs
    halfseen fit ratings.csv --method blend -o model.hs
    halfseen fit ratings.csv --method ordnmf -k auto -o model.hs
    halfseen fit ratings.csv --method ordinal --inference gibbs --implicit -k 20 -o model.hs
    halfseen fit answers.csv --method ordinal --levels bad,fair,good -o model.hs
    halfseen fit table.csv --method nmf --loss frobenius -k 5 -o model.hs
    halfseen fit "logs/part-*.parquet" -o model.hs
    halfseen fit ratings.parquet --method ordnmf -k 128 --engine cuda -o model.hs
    halfseen fit ratings.parquet --method ordnmf -k 128 --checkpoint run/ -o model.hs
    halfseen fit "logs/part-*.parquet" --engine dask --workers 4 --memory 2GB -o model.hs
    halfseen fit "logs/part-*.parquet" --engine dask --scheduler tcp://10.0.0.1:8786 -o model.hs
    halfseen fit ratings.csv -k auto --json -o model.hs | jq .n_components
    """
    import halfseen
    from halfseen.checkpoint import Checkpoint
    from halfseen.engines import check_is_cpu

    streams.check_output(output)
    streams.check_apart([output], [data])
    params = options.given(loss=loss, link=link, levels=levels, own_thresholds=own_thresholds, l2=l2)
    params |= options.given(early_stopping=early_stopping, inference=inference, implicit=implicit)
    known = {name: getattr(halfseen, estimator)().get_params() for name, estimator in METHODS.items()} if params else {}
    owners = {param: [name for name in known if param in known[name]] for param in params}
    options.check_owners(params, method, owners)
    of_chains = options.given(sweeps=sweeps, burn=burn)
    options.check_owners(of_chains, method, {"sweeps": ["ordinal"], "burn": ["ordinal"]})
    if method == "ordinal":
        owners = {"sweeps": ["gibbs"], "burn": ["gibbs"], "max_iter": ["map"], "tol": ["map"]}
        options.check_owners(
            of_chains | options.given(max_iter=max_iter, tol=tol), inference or "map", owners, "inference"
        )
    params |= options.given(n_sweeps=sweeps, n_burn=burn)
    params |= options.given(unseen=unseen, max_iter=max_iter, tol=tol, engine=engine, n_jobs=n_jobs)
    params |= options.given(checkpoint=checkpoint)
    is_auto = isinstance(n_components, list)
    model = getattr(halfseen, METHODS[method])()
    own = set(model.get_params(deep=False))
    for name in options.given(n_components=n_components, unseen=unseen, max_iter=max_iter, tol=tol):
        if method in DIRECT and name not in own:
            raise click.UsageError(f"--method {method} has no --{name.replace('_', '-')}. Leave it out.")
    if checkpoint is not None and "checkpoint" not in own:
        raise click.UsageError(f"--method {method} has no --checkpoint. Leave it out.")
    if method in DIRECT:
        params |= {"random_state": seed} if "random_state" in own else {}
    elif method != "rank-one":
        params |= {**options.given(n_components=None if is_auto else n_components), "random_state": seed}
    elif n_components not in (None, 1):
        number = "auto" if is_auto else n_components
        raise click.UsageError(f"--method rank-one has 1 component, not {number}. Use --method nmf.")
    elif not quiet and click.get_current_context().get_parameter_source("seed") is not ParameterSource.DEFAULT:
        click.echo("note: --seed changes nothing: --method rank-one has no random start.", err=True)
    model.set_params(**params, **({"verbose": 0 if quiet else 1} if "verbose" in own else {}))
    validation.check_parameters(model.get_params(deep=False), model.parameter_rules)
    if method == "rank-one":
        check_is_cpu(model.engine, METHODS[method])
    options.check_engine(engine)
    if checkpoint is not None:
        Checkpoint(checkpoint).make_folder()
    client = click.get_current_context().with_resource(
        options.on_cluster(engine, scheduler, workers, memory, quiet or as_json)
    )
    try:
        is_slow = os.path.isfile(data) and os.path.getsize(data) > 20_000_000  # bytes: about a second
        with streams.byte_bar("Reading", is_slow and not quiet, transient=True) as progress:
            arguments = {"unseen": model.unseen, "levels": model.levels_to_read, "progress": progress}
            arguments |= options.reader(reading)
            is_remote = client is not None
            observed = read_in_parts(data, checkpoint, arguments) if is_remote else halfseen.observe(data, **arguments)
        scores, chosen = choose(model, observed, n_components, n_jobs, quiet)
        with streams.logged("halfseen.checkpoint"):
            model.fit(observed)
    except KeyboardInterrupt:
        if getattr(model, "n_iter_", 0):
            model.save(output)
            text = f"Interrupted after {count(model.n_iter_, 'iteration')}; the fit so far is in {output}."
        else:
            text = "Interrupted before the first iteration; nothing was saved."
        text += "" if checkpoint is None else f" The same command resumes from {checkpoint}."
        click.echo(text, err=True)
        sys.exit(130)
    model.save(output)
    if as_json:
        facts = {"method": method, **summaries.fit_facts(model), **chosen, "file": streams.display_name(output)}
        streams.print_json({"data": summaries.data_facts(data, observed), **facts})
        return
    lines = [summaries.describe_data(data, observed), *scores, summaries.describe_model(model)]
    lines += [
        summaries.describe_end(model, getattr(model, "step_name", "iteration")),
        summaries.describe_objective(model),
        summaries.describe_file(output),
    ]
    streams.print_lines(*lines, quiet=quiet)


def read_in_parts(data: str, folder: str | None, arguments: dict[str, Any]) -> Observed:
    """Read long files on the workers of the current cluster; their cells stay in files, in the folder of the fit."""
    from halfseen.engines.cluster import on_dask
    from halfseen.io.partitioned import observe_files

    return observe_files(data, **on_dask(folder), **arguments)


def choose(
    model: Any, observed: Observed, ranks: int | list[int] | None, n_jobs: int | None, quiet: bool
) -> tuple[list[str], dict[str, Any]]:
    """Set n_components to the best of a list, if it is one; return the scores as lines, and as facts for --json."""
    import halfseen
    from halfseen.checkpoint import JOURNAL

    if not isinstance(ranks, list):
        return [], {}
    journal = None if getattr(model, "checkpoint", None) is None else os.path.join(model.checkpoint, JOURNAL)
    search = halfseen.RankSearch(
        model, ranks or None, refit=False, random_state=model.random_state, n_jobs=n_jobs, verbose=0 if quiet else 1,
        journal=journal,
    )  # fmt: skip
    started = perf_counter()
    with streams.signals_interrupt() as exit_code:
        try:
            search.fit(observed)
        except KeyboardInterrupt as interrupt:
            text = "Interrupted while choosing the number of components; nothing was saved."
            click.echo(text if journal is None else str(interrupt), err=True)
            sys.exit(exit_code())
    took, best, results = perf_counter() - started, search.best_n_components_, search.results_
    model.set_params(**search.best_params_)
    names = ("n_components", "mean_score", "standard_error_of_distance", "seconds")
    columns = [results[name].tolist() for name in ("n_components", "mean", "standard_error", "seconds")]
    scores = list(zip(*columns, strict=True))
    rows = [
        (str(rank), f"{mean:.5g}", f"{error:.2g}", f"{seconds:.2f}", "*" if rank == best else "")
        for rank, mean, error, seconds in scores
    ]
    heads = ("n_components", "mean score", "std. error of distance to best", "seconds", "")
    lines = [
        f"Tried {count(len(scores), 'number')} of components on {search.n_folds} folds by {search.metric_}:",
        *streams.table_lines(rows, heads),
        f"Chose {count(best, 'component')}, the fewest within one standard error of the best, in {took:.2f} s.",
    ]
    if len(scores) > 1 and results["mean"].argmax() == len(scores) - 1:
        larger = ",".join(str(factor * scores[-1][0]) for factor in (1, 2, 4))
        lines.append(f"The most components did best, so more may do better: try -k auto:{larger}.")
    tried = [dict(zip(names, line, strict=True)) for line in scores]
    facts = {"metric": search.metric_, "folds": search.n_folds, "tried": tried, "chosen": best, "seconds": took}
    return lines, {"choice": facts}

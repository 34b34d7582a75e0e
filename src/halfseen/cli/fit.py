"""halfseen fit: from a file to a model file."""

import sys
from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

from halfseen.cli import accounts, choosing, facts, options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, tell_json

METHODS = {
    "nmf": "WeightedNMF",
    "rank-one": "RankOneNMF",
    "poisson": "PoissonFactorization",
    "ordnmf": "OrdNMF",
    "bernoulli": "BernoulliPoisson",
    "compound": "CompoundPoisson",
    "squared-ordnmf": "SquaredOrdNMF",
    "squared-poisson": "SquaredPoisson",
    "round": "RoundMF",
    "ordinal": "OrdinalMF",
}


def _listed(_: click.Context, __: click.Parameter, value: str | None) -> list[Any] | None:
    """Levels as numbers if all of them are, else as words."""
    if value is None:
        return None
    words = [word.strip() for word in value.split(",")]
    try:
        return [float(word) for word in words]
    except ValueError:
        return words


@click.command(cls=Command)
@options.DATA
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="poisson",
    show_default=True,
    help="nmf: any non-negative values, with holes; rank-one: one component, exactly; Bayesian ones: poisson: counts "
    "and clicks; ordnmf: stars and other levels; bernoulli: there or not; compound: counts with a few large ones; for "
    "the best ranking: squared-ordnmf: levels; squared-poisson: counts and clicks; for the best guess of a missing "
    "level: ordinal: with probabilities; round: by rounding, also exact.",
)
@click.option(
    "-k",
    "--n-components",
    type=choosing.Components(),
    default=None,
    metavar="NUMBER|auto|auto:5,10,20",
    help="The number of components; by default 10, for the squared methods 50. auto chooses it by cells held out; "
    "after a colon, from which numbers.",
)
@click.option("-o", "--output", default="model.hs", show_default=True, type=click.Path(), help="Where the model goes.")
@options.LOSS
@click.option("--link", default=None, help="For ordinal: logit (default), probit, cloglog, loglog, cauchit.")
@click.option(
    "--unseen",
    type=click.Choice(["missing", "zero"]),
    default=None,
    help="What an unseen cell means; by default missing for nmf, rank-one, round and ordinal, zero for the others.",
)
@click.option(
    "--levels",
    callback=_listed,
    default=None,
    metavar="LOWEST,...,HIGHEST",
    help="For the methods of levels: the levels in their order, needed if they are words.",
)
@click.option(
    "--own-thresholds",
    type=click.Choice(["rows", "columns"]),
    default=None,
    help="For ordinal: each row, or each column, has thresholds of its own.",
)
@click.option("--l2", type=float, default=None, help="The penalty l2 / 2 * (sum of squares) on both factors.")
@click.option(
    "--early-stopping",
    is_flag=True,
    default=None,
    help="For round and ordinal: hold a tenth of the cells out, and stop when they are foretold no better.",
)
@options.READING
@options.FITTING
@JSON
def command(data: str, method: str, n_components: int | list[int] | None, output: str, loss: str | float | None,
            link: str | None, unseen: str | None, levels: list[Any] | None, own_thresholds: str | None,
            l2: float | None, early_stopping: bool | None, layout: str, columns: Any, header: bool | None,
            duplicates: str, max_iter: int | None, tol: float | None, seed: int, n_jobs: int | None,
            quiet: bool, as_json: bool) -> None:  # fmt: skip
    """Fit a model to DATA and save it.

    DATA is a CSV, TSV or Parquet file, also gzipped: lines of row, column, value (such as user, item, rating) or a
    table with holes. Ctrl-C keeps the iterations done so far.

    \b
    halfseen fit ratings.csv --method poisson -k 50 -o model.hs
    halfseen fit ratings.csv --method squared-ordnmf -k 200 -o model.hs
    halfseen fit ratings.csv --method ordnmf -k auto -o model.hs
    halfseen fit answers.csv --method ordinal --levels bad,fair,good -o model.hs
    halfseen fit table.csv --method nmf --loss frobenius -k 5 -o model.hs
    halfseen fit ratings.csv -k auto --json -o model.hs | jq .n_components
    """
    import halfseen

    accounts.check_output(output)
    accounts.check_apart([output], [data])
    wishes = options.given(
        loss=loss, link=link, levels=levels, own_thresholds=own_thresholds, l2=l2, early_stopping=early_stopping
    )
    _refuse_strangers(wishes, method)
    wishes |= options.given(unseen=unseen, max_iter=max_iter, tol=tol, n_jobs=n_jobs)
    ranks = n_components if isinstance(n_components, list) else None
    if method != "rank-one":
        wishes |= {**options.given(n_components=None if ranks is not None else n_components), "random_state": seed}
    elif n_components not in (None, 1):
        wanted = choosing.AUTO if ranks is not None else n_components
        raise click.UsageError(f"--method rank-one has 1 component, not {wanted}. Use --method nmf.")
    elif not quiet and _is_given("seed"):
        click.echo("note: --seed changes nothing: --method rank-one has no random start.", err=True)
    model = getattr(halfseen, METHODS[method])().set_params(verbose=0 if quiet else 1, **wishes)
    try:
        reading: dict[str, Any] = {"layout": layout, "columns": columns, "header": header, "duplicates": duplicates}
        observed = halfseen.observe(data, unseen=model.unseen, levels=model._levels_to_read(), **reading)
        choice = None if ranks is None else choosing.choose(model, observed, ranks, n_jobs, quiet)
        model.fit(observed)
    except KeyboardInterrupt:
        _keep_what_there_is(model, output)
    model.save(output)
    if as_json:
        chosen = {} if choice is None else {"choice": choice.facts()}
        told = {"method": method, **facts.of_fit(model), **chosen}
        tell_json({"data": facts.of_data(data, observed), **told, "file": facts.of_file(output)})
        return
    accounts.tell(
        accounts.of_data(data, observed),
        *(() if choice is None else choice.told()),
        accounts.of_model(model),
        accounts.of_end(model),
        accounts.of_objective(model),
        accounts.of_file(output),
        quiet=quiet,
    )


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def _refuse_strangers(wishes: dict[str, Any], method: str) -> None:
    """Refuse an option that is no parameter of the method's estimator; say of which it is."""
    for name in wishes:
        owners = [one for one in METHODS if name in _parameters(one)]
        if method not in owners:
            *others, last = owners
            whose = f"{', '.join(others)} and {last}" if others else last
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} belongs to --method {whose}; {method} has no such option.")


def _parameters(method: str) -> Collection[str]:
    import halfseen

    parameters: dict[str, Any] = getattr(halfseen, METHODS[method])().get_params()
    return parameters


def _keep_what_there_is(model: Any, output: str) -> None:
    """After Ctrl-C: save the iterations that are whole, if there are any, and end as an interrupted program does."""
    if getattr(model, "n_iter_", 0):
        model.save(output)
        click.echo(
            f"Interrupted after {accounts.count(model.n_iter_, 'iteration')}; the fit so far is in {output}.", err=True
        )
    else:
        click.echo("Interrupted before the first iteration; nothing was saved.", err=True)
    sys.exit(130)

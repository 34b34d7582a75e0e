"""halfseen uncouple: from three lists, collected apart, to a table of who answered what, and how sure that is."""

import sys
from typing import Any

import click

from halfseen.cli import accounts, facts, options, uncoupled_accounts
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, check_alone, tell_json
from halfseen.cli.streams import In, Out, said

#: Which methods an option is for; what is not here is for all.
OWNERS = {
    "loss": ("unmf", "decode"),
    "balance": ("unmf", "bayes"),
    "scale": ("gibbs",),
    "trust": ("gibbs",),
    "sweeps": ("gibbs",),
    "burn": ("gibbs",),
    "level": ("gibbs",),
}


@click.command(cls=Command)
@click.option(
    "--asked", required=True, type=In(), help="Who was asked what: a file of question, respondent; - reads it."
)
@click.option("--answers", required=True, type=In(), help="The answers without the names: question, value.")
@click.option(
    "--comparisons",
    type=In(),
    default=None,
    help="Who is above whom: question, higher, lower; an empty field for who is not known.",
)
@click.option("-o", "--output", required=True, type=Out(), help="A CSV or Parquet file for the result; - shows it.")
@click.option("--model", type=click.Path(), default=None, help="A file for the model, for halfseen predict.")
@click.option(
    "--method",
    type=click.Choice(["gibbs", "unmf", "bayes", "decode"]),
    default="gibbs",
    show_default=True,
    help="gibbs: samples who gave which answer, and alone tells how sure it is; unmf: the paper's; bayes: the same for "
    "counts and amounts, with priors; decode: answers in the order of comparisons won, fast.",
)
@click.option("-k", "--n-components", type=int, default=None, help="The number of components; by default 5.")
@click.option(
    "--loss",
    callback=options.number_or_name,
    default=None,
    help="For unmf and decode: frobenius (default), kullback-leibler, itakura-saito, or a number beta.",
)
@click.option(
    "--balance",
    type=click.Choice(["zero", "half", "full"]),
    default=None,
    help="For unmf and bayes: the share of w1 + w2 that lambda is; by default full.",
)
@click.option(
    "--scale",
    type=click.Choice(["auto", "all", "question"]),
    default=None,
    help="For gibbs: answers in units of all, or of their question's own; by default auto, as they look.",
)
@click.option("--trust", type=float, default=None, help="For gibbs: how much a comparison is believed; by default 12.")
@click.option("--sweeps", type=int, default=None, help="For gibbs: how many sweeps are drawn; by default 400.")
@click.option("--burn", type=int, default=None, help="For gibbs: how many of the first are left out; by default 100.")
@click.option("--level", type=float, default=None, help="For gibbs: how sure intervals are; by default 0.9.")
@click.option("--only-asked", is_flag=True, help="No prediction where nobody was asked.")
@click.option("--wide", is_flag=True, help="A table of the values alone, with a line for each row of the matrix.")
@options.LISTS
@click.option(
    "--questions-are",
    type=click.Choice(["rows", "columns"]),
    default="rows",
    show_default=True,
    help="Whether questions are rows or columns, in a wide table and in the model.",
)
@click.option(
    "--faults",
    type=click.Choice(["report", "refuse"]),
    default="report",
    show_default=True,
    help="Leave out and tell what does not fit what was asked, or stop at the first.",
)
@options.FITTING
@JSON
def command(
    asked: str, answers: str, comparisons: str | None, output: str, model: str | None, method: str,
    n_components: int | None, loss: str | float | None, balance: str | None, scale: str | None, trust: float | None,
    sweeps: int | None, burn: int | None, level: float | None, only_asked: bool, wide: bool, questions_are: str,
    faults: str, max_iter: int | None, tol: float | None, seed: int, n_jobs: int | None, quiet: bool, as_json: bool,
    **columns: Any,
) -> None:  # fmt: skip
    """Find out who answered what, as far as three lists tell that were collected apart.

    The result has a line for every question and respondent: the value predicted, its interval, whether they were
    asked, and where they were the likeliest answer and its probability, which is how far the lists disclose it. Ctrl-C
    keeps the sweeps drawn so far.

    \b
    halfseen uncouple --asked a.csv --answers b.csv --comparisons c.csv -o filled.csv
    halfseen uncouple --asked a.csv --answers b.csv --comparisons c.csv --wide -o matrix.csv --model model.hs
    gunzip -c answers.gz | halfseen uncouple --asked a.csv --answers - -o - > filled.csv
    """
    import halfseen
    from halfseen.cli import uncoupled_tables

    accounts.check_table(output)
    if model is not None:
        accounts.check_output(model)
    accounts.check_apart([output, model], [asked, answers, comparisons])
    check_alone(as_json)
    wishes = options.given(loss=loss, balance=balance, scale=scale, trust=trust, sweeps=sweeps, burn=burn, level=level)
    _refuse_strangers(wishes, method)
    level = _checked_level(wishes.pop("level", 0.9))
    wishes = {{"sweeps": "n_sweeps", "burn": "n_burn"}.get(name, name): value for name, value in wishes.items()}
    wishes |= options.given(n_components=n_components, max_iter=max_iter, tol=tol, n_jobs=n_jobs)
    fitted = halfseen.UncoupledNMF().set_params(method=method, random_state=seed, verbose=0 if quiet else 1, **wishes)
    named = options.given(**columns)
    collected = halfseen.Uncoupled(asked, answers, comparisons, questions_are=questions_are, faults=faults, **named)
    uncoupled_tables.check_size(collected, only_asked, wide)
    interrupted = False
    try:
        fitted.fit(collected)
    except KeyboardInterrupt:
        if not getattr(fitted, "n_iter_", 0):
            raise
        interrupted = True
    if model is not None:
        fitted.save(model)
    uncoupled_tables.write(output, fitted, collected, level=level, only_asked=only_asked, wide=wide)
    if interrupted:
        _end_interrupted(fitted, [output, model])
    accounts.tell(
        *uncoupled_accounts.of_lists({"asked": asked, "answers": answers, "comparisons": comparisons}, named),
        str(collected.account),
        *uncoupled_accounts.of_fit(fitted),
        *(accounts.of_file(path) for path in (output, model) if path is not None),
        quiet=quiet,
        err=True,
    )
    if as_json:
        files = {"file": facts.of_file(output), "model_file": facts.of_file(model)}
        tell_json({**facts.of_uncoupled(fitted, collected), **files})


def _refuse_strangers(wishes: dict[str, Any], method: str) -> None:
    for name in wishes:
        if method not in OWNERS[name]:
            whose = " and ".join(OWNERS[name])
            raise click.UsageError(f"--{name} belongs to --method {whose}; {method} has no such option.")


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise click.UsageError(f"--level must be above 0 and below 1, not {level:g}.")
    return level


def _end_interrupted(fitted: Any, paths: list[str | None]) -> None:
    done = accounts.count(fitted.n_iter_, uncoupled_accounts.step_of(fitted))
    places = " and ".join(said(path) for path in paths if path is not None)
    click.echo(f"Interrupted after {done}; what they tell is in {places}.", err=True)
    sys.exit(130)

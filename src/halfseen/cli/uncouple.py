"""halfseen uncouple: from three lists, collected apart, to a table of who answered what, with probabilities."""

import sys
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from halfseen.arrays import Array
from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, In, Out
from halfseen.cli.summaries import count, describe_end, describe_file, fit_facts
from halfseen.errors import DataError

#: Parameters of each method beside the common ones.
PARAMETERS = {"gibbs": ("trust", "scale"), "unmf": ("loss", "balance"), "bayes": ("balance",), "decode": ("loss",)}
#: The most lines of a long table, or cells of a wide one.
MAX_CELLS = 10_000_000
#: Digits that are written, relative to the largest answer, so that means of equal answers look like these.
DIGITS = 12
#: From this probability on an answer counts as one that can be guessed.
CERTAIN = 0.9


def _role(name: str, what: str) -> options.Decorator:
    help_text = f"Header of the column of {what}, if it is not recognised; its number from 0 without a header."
    return click.option(f"--{name}", callback=options.column, metavar="COLUMN", help=help_text)


@click.command(cls=Command)
@click.option( "--asked", required=True, type=In(),
              help="A file of question, respondent: who was asked what; - reads it." )  # fmt: skip
@click.option("--answers", required=True, type=In(), help="A file of question, value: the answers without names.")
@click.option("--comparisons", type=In(),
              help="A file of question, higher, lower: who is above whom; empty for unknown people.")  # fmt: skip
@click.option("-o", "--output", required=True, type=Out(), help="CSV or Parquet file for the result; - shows it.")
@click.option("--model", type=click.Path(), help="A file for the model, for halfseen predict.")
@click.option("--method", type=click.Choice(["gibbs", "unmf", "bayes", "decode"]), default="gibbs",
              help="gibbs: samples who gave which answer, alone with intervals and probabilities; unmf: the paper's; "
              "bayes: the same for counts and amounts, with priors; decode: by comparisons won.")  # fmt: skip
@click.option("-k", "--n-components", type=options.Components(), metavar="NUMBER|auto",
              help="Number of components, by default 5; for gibbs, auto chooses it by hidden comparisons.")  # fmt: skip
@click.option("--loss", callback=options.number_or_name,
              help="For unmf, decode: frobenius (default), kullback-leibler, itakura-saito, or a number.")  # fmt: skip
@click.option("--balance", type=click.Choice(["zero", "half", "full"]),
              help="For unmf and bayes: the share of w1 + w2 that lambda is; by default full.")  # fmt: skip
@click.option("--scale", type=click.Choice(["auto", "all", "question"]),
              help="For gibbs: one scale for all answers, or one per question; by default auto.")  # fmt: skip
@click.option("--trust", type=float, help="For gibbs: weight of a comparison; by default 12.")
@click.option("--sweeps", type=int, help="For gibbs: number of sweeps of each chain; by default 300.")
@click.option("--burn", type=int, help="For gibbs: number of discarded first sweeps; by default 100.")
@click.option("--chains", type=int, help="For gibbs: number of chains; by default 2.")
@click.option("--level", type=float, help="For gibbs: probability of the intervals; by default 0.9.")
@click.option("--only-asked", is_flag=True, help="Predict only cells that were asked.")
@click.option("--wide", is_flag=True, help="Write a matrix of the values alone.")
@_role("question", "questions, in all lists")
@_role("respondent", "respondents, in --asked")
@_role("value", "values, in --answers")
@_role("higher", "those who are above, in --comparisons")
@_role("lower", "those who are below, in --comparisons")
@click.option("--questions-are", type=click.Choice(["rows", "columns"]), default="rows",
              help="Whether questions are rows or columns, in a wide table and in the model.")  # fmt: skip
@click.option("--faults", type=click.Choice(["report", "refuse"]), default="report",
              help="Leave out and report what does not fit the asked cells, or stop at the first.")  # fmt: skip
@options.FITTING
@options.CHECKPOINT
@JSON
def uncouple(asked: str, answers: str, comparisons: str | None, output: str, model: str | None, method: str,
             n_components: int | list[int] | None, loss: str | float | None, balance: str | None, scale: str | None,
             trust: float | None, sweeps: int | None, burn: int | None, chains: int | None, level: float | None,
             only_asked: bool, wide: bool, questions_are: str, faults: str, max_iter: int | None, tol: float | None,
             seed: int, n_jobs: int | None, quiet: bool, checkpoint: str | None, as_json: bool,
             **columns: Any) -> None:  # fmt: skip
    """Estimate who answered what, from three lists that were collected apart.

    The result has a line for every question and respondent: the predicted value, its interval, whether they were
    asked, and if so the likeliest answer and its probability, which is how far the lists disclose it. Ctrl-C keeps the
    sweeps drawn so far. With --checkpoint, a run that was killed goes on where it last saved, and ends with the same
    numbers.

    \b
    halfseen uncouple --asked a.csv --answers b.csv --comparisons c.csv -o filled.csv
    halfseen uncouple --asked a.csv --answers b.csv --comparisons c.csv --wide -o matrix.csv --model model.hs
    gunzip -c answers.gz | halfseen uncouple --asked a.csv --answers - -o - > filled.csv
    """
    import halfseen
    from halfseen.checkpoint import Checkpoint
    from halfseen.io import write_table

    streams.check_table(output)
    if model is not None:
        streams.check_output(model)
    streams.check_apart([output, model], [asked, answers, comparisons])
    streams.check_json(as_json)
    of_chains = options.given(sweeps=sweeps, burn=burn, chains=chains)
    params = options.given(loss=loss, balance=balance, scale=scale, trust=trust, level=level) | of_chains
    owners = {name: [one for one, names in PARAMETERS.items() if name in names] or ["gibbs"] for name in params}
    options.check_owners(params, method, owners)
    level = params.pop("level", 0.9)
    if not 0 < level < 1:
        raise click.UsageError(f"--level must be above 0 and below 1, not {level:g}.")
    params = {f"n_{name}" if name in of_chains else name: value for name, value in params.items()}
    if isinstance(n_components, list) and n_components:
        raise click.UsageError("-k auto takes no list here: it chooses from 1 to 8.")
    k = "auto" if isinstance(n_components, list) else n_components
    params |= options.given(n_components=k, max_iter=max_iter, tol=tol, n_jobs=n_jobs, checkpoint=checkpoint)
    fitted = halfseen.UncoupledNMF().set_params(method=method, random_state=seed, verbose=0 if quiet else 1, **params)
    if checkpoint is not None:
        Checkpoint(checkpoint).make_folder()
    roles = options.given(**columns)
    collected = halfseen.Uncoupled(asked, answers, comparisons, questions_are=questions_are, faults=faults, **roles)
    size = (collected.n_questions, collected.n_respondents)
    cells = collected.n_asked if only_asked and not wide else size[0] * size[1]
    if cells > MAX_CELLS:
        found = f"{cells:,} of {size[0]:,} questions and {size[1]:,} respondents"
        remedy = "Use --only-asked without --wide, or fewer questions."
        raise DataError(f"A table must have at most {MAX_CELLS:,} cells.", found=found, remedy=remedy)
    interrupted, resumes = False, "" if checkpoint is None else f" The same command resumes from {checkpoint}."
    try:
        with streams.logged("halfseen.checkpoint"):
            fitted.fit(collected)
    except KeyboardInterrupt:
        if not getattr(fitted, "n_iter_", 0):
            click.echo(f"Interrupted; nothing was saved.{resumes}", err=True)
            sys.exit(130)
        interrupted = True
    if model is not None:
        fitted.save(model)
    write_table(output, *_table(fitted, collected, level, only_asked, wide))
    step = "sweep" if method == "gibbs" else "iteration"
    if interrupted:
        places = " and ".join(streams.display_name(path) for path in (output, model) if path is not None)
        click.echo(f"Interrupted after {count(fitted.n_iter_, step)}; their result is in {places}.{resumes}", err=True)
        sys.exit(130)
    facts = {"data": asdict(collected.summary), "method": method, **fit_facts(fitted)}
    if "loss" not in PARAMETERS[method]:
        del facts["loss"]
    lines = []
    for name, path in (("asked", asked), ("answers", answers), ("comparisons", comparisons)):
        if path is not None and name in collected.summary.columns:
            named = (f"{role} from {column}" for role, column in collected.summary.columns[name].items())
            lines.append(f"Read {streams.display_name(path)}: {', '.join(named)}.")
    chosen = ", ".join(f"{name} {getattr(fitted, name)}" for name in ("method", *PARAMETERS[method]))
    lines += [str(collected.summary), f"UncoupledNMF: {count(fitted.n_components_, 'component')}, {chosen}."]
    clipped = f" {count(fitted.n_clipped_, 'value')} below 0 counted as 0 in W and H." if fitted.n_clipped_ else ""
    nothing = "Nothing was drawn: without comparisons, a question's answers are all that is known of its cells."
    lines.append(describe_end(fitted, step) + clipped if fitted.n_iter_ else nothing)
    if method in ("unmf", "bayes"):
        bounds, labels = fitted.error_bounds_, np.asarray(collected.question_labels)
        worst = int(np.nanargmax(bounds))
        question = str(labels[worst])
        middle, largest = float(np.nanmedian(bounds)), float(bounds[worst])
        facts["error_bounds"] = {"median": middle, "largest": largest, "question": question}
        lines.append(
            f"Error bounds of the questions (Theorem 4.2): median {middle:.3g}, largest {largest:.3g} for question "
            f"{question!r}. 0 means uniformly distributed answers, for which the method is exact; otherwise the loss "
            "of a question is off by at most a multiple of its bound."
        )
    if method == "gibbs":
        diagnostics, risk = fitted.diagnostics_, fitted.disclosure_risk()
        certain = int((risk >= CERTAIN).sum())
        facts["diagnostics"] = {name: one._asdict() for name, one in diagnostics.items()}
        disclosure = {"answers": risk.size, "mean_probability": risk.mean(), "certain_from": CERTAIN}
        facts["disclosure"] = disclosure | {"certain": certain}
        rows = [(name, f"{one[0]:.5g}", f"{one[1]:.3f}", f"{one[2]:,.0f}") for name, one in diagnostics.items()]
        lines += streams.table_lines(rows, ("", "mean", "R-hat", "effective draws"), left=1) if rows else []
        guessed = f"{certain:,} can be guessed with at least {100 * CERTAIN:.0f} % certainty"
        average = f"on average a guess is right {100 * risk.mean():.0f} % of the time"
        lines.append(f"Of {count(risk.size, 'answer')} asked for, {guessed}; {average}.")
    saved = (describe_file(path) for path in (output, model) if path is not None)
    streams.print_lines(*lines, *saved, quiet=quiet, err=True)
    if as_json:
        model_file = None if model is None else streams.display_name(model)
        streams.print_json({**facts, "file": streams.display_name(output), "model_file": model_file})


def _table(model: Any, seen: Any, level: float, only_asked: bool, wide: bool) -> tuple[list[str], list[Any]]:
    """Header and columns of the result: the matrix of values, or a line for each question and respondent.

    Models that were sampled also have intervals, and the likeliest answer of cells that were asked.
    """
    if only_asked:
        questions, respondents, asked = seen.row_of_cell(), seen.respondents, np.ones(seen.n_asked, bool)
    else:
        is_asked = np.zeros((seen.n_questions, seen.n_respondents), bool)
        is_asked[seen.row_of_cell(), seen.respondents] = True
        questions, respondents = np.indices(is_asked.shape).reshape(2, -1)
        asked = is_asked.reshape(-1)
    pairs = seen.question_labels[questions], seen.respondent_labels[respondents]
    lines: dict[str, Array] = dict(zip(("question", "respondent"), pairs, strict=True))
    pairs = pairs if seen.questions_are == "rows" else pairs[::-1]
    largest = np.abs(seen.answers).max()
    digits = DIGITS - int(np.ceil(np.log10(largest))) if largest > 0 else DIGITS
    predicted = np.round(model.predict(*pairs), digits)
    if wide:
        values = np.full((seen.n_questions, seen.n_respondents), np.nan)  # NaN: not to be predicted
        values[questions, respondents] = predicted
        rows, columns, corner = seen.question_labels, seen.respondent_labels, "question"
        if seen.questions_are == "columns":
            values, rows, columns, corner = values.T, columns, rows, "respondent"
        return [corner, *map(str, columns)], [rows, *map(np.ascontiguousarray, values.T)]
    lines["value"] = predicted
    if model.method == "gibbs":
        lines["low"], lines["high"] = (np.round(end, digits) for end in model.predict_interval(*pairs, level=level))
    lines["asked"] = np.where(asked, "yes", "no")
    if model.method == "gibbs":
        coupling = model.coupling()  # of the cells asked, in the order of `questions`
        likeliest = {"likeliest answer": coupling.answer, "probability": np.round(coupling.probability, DIGITS)}
        for name, of_asked in likeliest.items():
            lines[name] = np.full(asked.size, np.nan)
            lines[name][asked] = of_asked
    return list(lines), list(lines.values())

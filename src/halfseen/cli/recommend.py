"""halfseen recommend: the best columns for rows."""

from typing import Any

import click

from halfseen.cli import accounts, options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, check_one_way, tell_json
from halfseen.cli.naming import as_labels
from halfseen.cli.streams import In


@click.command(cls=Command)
@options.MODEL
@click.option("-u", "--user", "users", multiple=True, help="A row of the fit, by its id; may be given several times.")
@click.option("--history", type=In(), default=None, help="A file with histories of new rows instead; - reads it.")
@click.option("-n", type=int, default=10, show_default=True, help="How many a row.")
@click.option("--include-seen", is_flag=True, help="Also what the row has seen already.")
@click.option("--exclude", multiple=True, help="An item never to recommend; may be given several times.")
@options.OUTPUT
@JSON
@options.QUIET
def command(model: str, users: tuple[str, ...], history: str | None, n: int, include_seen: bool,
            exclude: tuple[str, ...], output: str | None, as_json: bool, quiet: bool) -> None:  # fmt: skip
    """Recommend the best items of MODEL to users.

    \b
    halfseen recommend model.hs --user bob -n 10
    halfseen recommend model.hs --history new.csv -o recommended.csv
    halfseen recommend model.hs --user bob --json
    """
    import halfseen
    from halfseen.data import write_table

    if bool(users) == bool(history):
        raise click.UsageError("Say for whom: either --user (once or more), or --history FILE.")
    check_one_way(as_json, output)
    if output is not None:
        accounts.check_table(output)
        accounts.check_apart([output], [model, history])
    fitted = halfseen.load(model)
    accounts.check_ranks(fitted, model)
    asked, rows = _rows(fitted, users, history)
    if history is not None:
        accounts.tell(accounts.of_data(history, rows), quiet=quiet, err=output is None)
    excluded = as_labels(exclude, fitted.column_labels_)
    ids, scores = fitted.recommend(rows, n=n, exclude_seen=not include_seen, exclude=excluded)
    lines = [
        (user, rank + 1, ids[place][rank], scores[place][rank])
        for place, user in enumerate(asked)
        for rank in range(ids.shape[1])
        if scores[place][rank] == scores[place][rank]
    ]
    names = ["row", "rank", "column", "score"]
    if as_json:
        tell_json([dict(zip(names, line, strict=True)) for line in lines])
    elif output is not None:
        write_table(output, names, list(zip(*lines, strict=True)) or [[]] * 4)
        accounts.tell(accounts.of_file(output), quiet=quiet)
    else:
        _show(lines)


def _rows(fitted: Any, users: tuple[str, ...], history: str | None) -> tuple[list[Any], Any]:
    """The names under which the answers are shown, and the rows to recommend for."""
    if history is None:
        labels = as_labels(users, fitted.row_labels_)
        return labels, labels
    from halfseen.estimators.features import observe_rows

    observed = observe_rows(fitted, history)
    names = range(observed.shape[0]) if observed.row_labels is None else observed.row_labels.tolist()
    return list(names), observed


def _show(lines: list[tuple[Any, int, Any, float]]) -> None:
    for row, rank, column, score in lines:
        if rank == 1:
            click.echo(f"{row}:")
        click.echo(f"  {rank:>3}  {score:<10.4g}  {column}")
    if not lines:
        click.echo("Nothing is left to recommend: everything was seen or excluded.")

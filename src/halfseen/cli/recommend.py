"""halfseen recommend: the best columns for rows."""

from typing import Any

import click

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.models import as_labels, load_recommender
from halfseen.cli.streams import JSON, In, check_apart, check_one_way, check_table, print_json, print_lines
from halfseen.cli.summaries import describe_data, describe_file


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
    from halfseen.io import write_table

    if bool(users) == bool(history):
        raise click.UsageError("Say for whom: either --user (once or more), or --history FILE.")
    check_one_way(as_json, output)
    if output is not None:
        check_table(output)
        check_apart([output], [model, history])
    fitted = load_recommender(model)
    rows: Any
    if history is None:
        rows = names = as_labels(users, fitted.row_labels_)
    else:
        from halfseen.estimators.inputs import observe_rows

        rows = observe_rows(fitted, history)
        names = list(range(rows.shape[0]) if rows.row_labels is None else rows.row_labels.tolist())
        print_lines(describe_data(history, rows), quiet=quiet, err=output is None)
    excluded = as_labels(exclude, fitted.column_labels_)
    ids, scores = fitted.recommend(rows, n=n, exclude_seen=not include_seen, exclude=excluded)
    lines = [
        (user, rank + 1, ids[place][rank], scores[place][rank])
        for place, user in enumerate(names)
        for rank in range(ids.shape[1])
        if scores[place][rank] == scores[place][rank]  # NaN where nothing is left
    ]
    heads = ["row", "rank", "column", "score"]
    if as_json:
        print_json([dict(zip(heads, line, strict=True)) for line in lines])
    elif output is not None:
        write_table(output, heads, list(zip(*lines, strict=True)) or [[]] * 4)
        print_lines(describe_file(output), quiet=quiet)
    else:
        for row, rank, column, score in lines:
            if rank == 1:
                click.echo(f"{row}:")
            click.echo(f"  {rank:>3}  {score:<10.4g}  {column}")
        if not lines:
            click.echo("Nothing is left to recommend: everything was seen or excluded.")

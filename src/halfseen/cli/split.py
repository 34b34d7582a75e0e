"""halfseen split: a file split into training and test cells."""

from typing import Any

import click

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, check_apart, check_table, display_name, print_json, print_lines
from halfseen.cli.summaries import count, describe_file


@click.command(cls=Command)
@options.DATA
@click.option("-o", "--output", required=True, type=click.Path(), help="File for the training cells.")
@click.option("--held-out", required=True, type=click.Path(), help="File for the test cells.")
@click.option("--share", type=float, default=0.2, help="Share of the cells that are held out, 0 < share < 1.")
@click.option("--by", type=click.Choice(["random", "row", "time", "user"]), default="random",
              help="random: any cells; row: the share of every row (user); time: the latest cells; user: the share of "
              "some rows, of which training has nothing.")  # fmt: skip
@click.option("--held-out-users", type=float, help="With --by user: how many, or the share of all. By default 0.1.")
@click.option("--min-cells", type=int, help="With --by user: those with fewer cells are not held out. By default 5.")
@click.option("--history", type=click.Path(), help="With --by user: file for the rest of their cells.")
@click.option("--last", type=int, help="With --by time: the last so many cells of every row instead.")
@click.option("--time", callback=options.column, metavar="COLUMN", help="The column of times, if it is not recognised.")
@click.option("--folds", type=int, help="Hold out one of so many folds instead.")
@click.option("--fold", type=int, default=0, help="Which fold, from 0.")
@options.SEED
@options.together(options.LAYOUT, options.COLUMNS, options.TEXT)
@JSON
@options.QUIET
def split(data: str, output: str, held_out: str, share: float, by: str, last: int | None, time: str | int | None,
          held_out_users: float | None, min_cells: int | None, history: str | None, folds: int | None, fold: int,
          seed: int, as_json: bool, quiet: bool, **reading: Any) -> None:  # fmt: skip
    """Split the cells of DATA into training and test cells.

    Each line of a long file goes unchanged to one of the two. Of a wide table both get all rows and columns, and every
    cell is empty in one of them. Then fit the one, and evaluate on the other. All files are written, or none; a record
    beside the test file lets evaluate refuse another training file.

    With --by user some users are held out of training: evaluate folds their history in, and tests by the rest.

    \b
    halfseen split ratings.csv -o train.csv --held-out held_out.csv
    halfseen split ratings.csv --by time --last 1 -o train.csv --held-out test.csv
    halfseen split table.csv --share 0.1 -o train.csv --held-out held.csv
    halfseen split ratings.csv --by user --held-out-users 1000 -o train.csv --history history.csv --held-out test.csv
    """
    from halfseen.io.splits import SIDECAR, split_file

    if not 0 < share < 1:
        raise click.UsageError(f"--share must be above 0 and below 1, not {share:g}.")
    if by == "user" and history is None:
        raise click.UsageError("--by user needs a third file: --history FILE.")
    if by != "user" and (held_out_users, min_cells, history) != (None, None, None):
        raise click.UsageError("--held-out-users, --min-cells and --history belong to --by user.")
    for path in filter(None, (output, history, held_out)):
        check_table(path)
    check_apart([output, history, held_out], [data])
    users = held_out_users if held_out_users is None or held_out_users < 1 else int(held_out_users)
    parts = split_file(
        data, output, held_out, test_size=share, random_state=seed, by=by, last=last, time=time, folds=folds, fold=fold,
        history=history, **options.given(test_rows=users, min_cells=min_cells), **options.reader(reading),
    )  # fmt: skip
    if as_json:
        files = {"train": output, "held_out": held_out, "record": f"{held_out}{SIDECAR}"}
        facts: dict[str, Any] = {"seed": seed, "by": by, "layout": parts.layout, "held_out": parts.n_test}
        if history is not None:
            files["history"] = history
            facts |= {"history": parts.n_history, "users": parts.n_rows}
        print_json({**facts, "files": files})
        return
    chosen = "by time" if by == "time" else f"by seed {seed}"
    cells = f"{count(parts.n_test, 'cell')} held out {chosen}, {parts.n_train:,} left for training"
    if history is not None:
        cells = f"{count(parts.n_rows, 'user')} held out {chosen}: {count(parts.n_test, 'cell')} of theirs to test by, "
        cells += f"{parts.n_history:,} as their history, {parts.n_train:,} of others left for training"
    text = f"Of {display_name(data)}, a {parts.layout} table, {cells}."
    print_lines(text, *map(describe_file, filter(None, (output, history, held_out))), quiet=quiet)

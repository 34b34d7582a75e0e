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
@click.option("--by", type=click.Choice(["random", "row", "time"]), default="random",
              help="random: any cells; row: the share of every row (user); time: the latest cells.")  # fmt: skip
@click.option("--last", type=int, help="With --by time: the last so many cells of every row instead.")
@click.option("--time", callback=options.column, metavar="COLUMN", help="The column of times, if it is not recognised.")
@click.option("--folds", type=int, help="Hold out one of so many folds instead.")
@click.option("--fold", type=int, default=0, help="Which fold, from 0.")
@options.SEED
@options.together(options.LAYOUT, options.COLUMNS, options.TEXT)
@JSON
@options.QUIET
def split(data: str, output: str, held_out: str, share: float, by: str, last: int | None, time: str | int | None,
          folds: int | None, fold: int, seed: int, as_json: bool, quiet: bool, **reading: Any) -> None:  # fmt: skip
    """Split the cells of DATA into training and test cells.

    Each line of a long file goes unchanged to one of the two. Of a wide table both get all rows and columns, and every
    cell is empty in one of them. Then fit the one, and evaluate on the other. Both files are written, or none; a record
    beside the test file lets evaluate refuse another training file.

    \b
    halfseen split ratings.csv -o train.csv --held-out held_out.csv
    halfseen split ratings.csv --by time --last 1 -o train.csv --held-out test.csv
    halfseen split table.csv --share 0.1 -o train.csv --held-out held.csv
    """
    from halfseen.io.splits import SIDECAR, split_file

    if not 0 < share < 1:
        raise click.UsageError(f"--share must be above 0 and below 1, not {share:g}.")
    check_table(output)
    check_table(held_out)
    check_apart([output, held_out], [data])
    parts = split_file(
        data, output, held_out, test_size=share, random_state=seed, by=by, last=last, time=time, folds=folds, fold=fold,
        **options.reader(reading),
    )  # fmt: skip
    if as_json:
        files = {"train": output, "held_out": held_out, "record": f"{held_out}{SIDECAR}"}
        print_json({"seed": seed, "by": by, "layout": parts.layout, "held_out": parts.n_test, "files": files})
        return
    chosen = "by time" if by == "time" else f"by seed {seed}"
    cells = f"{count(parts.n_test, 'cell')} held out {chosen}, {parts.n_train:,} left for training"
    text = f"Of {display_name(data)}, a {parts.layout} table, {cells}."
    print_lines(text, describe_file(output), describe_file(held_out), quiet=quiet)

"""halfseen split: a file parted into what a model learns from and what it is judged by."""

from typing import Any

import click

from halfseen.cli import accounts, options
from halfseen.cli.app import Command
from halfseen.cli.jsonout import JSON, tell_json
from halfseen.cli.streams import In, said


@click.command(cls=Command)
@click.argument("data", type=In())
@click.option("-o", "--output", required=True, type=click.Path(), help="Where the cells to learn from go.")
@click.option("--held-out", required=True, type=click.Path(), help="Where the cells to test by go.")
@click.option(
    "--share", type=float, default=0.2, show_default=True, help="How many of the cells are held out, 0 < share < 1."
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the lots.")
@options.LAYOUT
@options.COLUMNS
@options.HEADER
@JSON
@options.QUIET
def command(
    data: str, output: str, held_out: str, share: float, seed: int, layout: str, columns: Any, header: bool | None,
    as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Part the cells of DATA at random: most of them to learn from, the others to test by.

    Lines of a long file go to one of the two as they are. Of a wide table both get all rows and columns, and every cell
    is empty in one of them. Then fit the one, and evaluate by the other.

    \b
    halfseen split ratings.csv -o train.csv --held-out held_out.csv
    halfseen split table.csv --share 0.1 -o train.csv --held-out held.csv
    """
    from halfseen.data import write_table
    from halfseen.data.parting import part_table

    if not 0 < share < 1:
        raise click.UsageError(f"--share must be above 0 and below 1, not {share:g}.")
    accounts.check_table(output)
    accounts.check_table(held_out)
    accounts.check_apart([output, held_out], [data])
    train, test, n_test = part_table(data, share, seed, layout=layout, columns=columns, header=header)
    for path, table in ((output, train), (held_out, test)):
        names = table.names if table.has_header else None
        write_table(path, names, table.cells, delimiter=table.delimiter)
    if as_json:
        tell_json({"seed": seed, "held_out": n_test, "files": {"train": output, "held_out": held_out}})
        return
    accounts.tell(
        f"Of {said(data)}, {accounts.count(n_test, 'cell')} held out by seed {seed}.",
        accounts.of_file(output),
        accounts.of_file(held_out),
        quiet=quiet,
    )

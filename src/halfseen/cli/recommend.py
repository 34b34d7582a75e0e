"""halfseen recommend and halfseen similar: the best columns for rows, and rows or columns that are alike.

A model's record is loaded alone, and users are served in blocks that are written as they come: so a list for one user
takes no more start than it must, and lists for everybody no more memory than a block.
"""

import csv
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from halfseen.archive import load_record
from halfseen.array_files import lock_file
from halfseen.arrays import Array
from halfseen.cli import options, streams
from halfseen.cli.app import Command
from halfseen.cli.messages import render
from halfseen.cli.streams import JSON, In, Out
from halfseen.cli.summaries import count, describe_data, describe_file
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.labels import parse_labels, text_array, uniform
from halfseen.ranking import Ranker, Recommendations, unknown_rows

#: Rows that are served and written at a time; and those of a file in a folder of lists.
ROWS_AT_A_TIME, ROWS_OF_PART = 1 << 11, 1 << 15
#: Locked by the command that writes to a folder of lists.
LOCK = "_lists.lock"
HEADS = ("row", "rank", "column", "score")


class Served(NamedTuple):
    """A model that recommends, and where it computes."""

    model: Ranker
    how: dict[str, Any]
    """Engine, threads, and the name of the estimator."""


@click.command(cls=Command)
@options.MODEL
@click.option("-u", "--user", "users", multiple=True, help="A row of the fit, by its id; may be given several times.")
@click.option("--users", "users_file", type=In(), help="A file with ids of rows, one in a line or in the first column.")
@click.option("--all", "everybody", is_flag=True, help="Every row of the fit.")
@click.option("--history", type=In(), help="A file with histories of new rows instead; - reads it.")
@click.option("-n", type=int, default=10, help="Number of items per row.")
@click.option("--include-seen", is_flag=True, help="Include items that the row has seen already.")
@click.option("--items", type=In(), help="A file of items, one in a line or in the first column: the only candidates.")
@click.option("--exclude", multiple=True, help="An item never to recommend; may be given several times.")
@click.option("--exclude-items", type=In(), help="A file of items never to recommend.")
@click.option("--strict", is_flag=True, help="Refuse unknown users and items. By default, unknown users get popular "
              "items, and unknown items are left out.")  # fmt: skip
@click.option("--approximate", is_flag=True, help="Look for items in an index, for millions of items: some of the best "
              "may be missing. Needs usearch.")  # fmt: skip
@options.NAMES
@options.CLUSTER
@click.option(
    "-o",
    "--output",
    type=Out(),
    help="CSV or Parquet file for the result; - shows it. For --all also a "
    "folder, as lists/: it gets Parquet files of some rows each, and the same line again goes on with those that "
    "are missing.",
)
@JSON
@options.QUIET
def recommend(model: str, users: tuple[str, ...], users_file: str | None, everybody: bool, history: str | None, n: int,
              include_seen: bool, items: str | None, exclude: tuple[str, ...], exclude_items: str | None, strict: bool,
              approximate: bool, names: str | None, engine: str | None, scheduler: str | None, workers: int | None,
              memory: str | None, output: str | None, as_json: bool, quiet: bool) -> None:  # fmt: skip
    """Recommend the best items of MODEL to users.

    \b
    halfseen recommend model.hs --user bob -n 10
    halfseen recommend model.hs --all -n 50 --names titles.csv -o recommended.parquet
    halfseen recommend model.hs --all --engine dask --workers 4 -o lists/
    halfseen recommend model.hs --users members.csv --items in_stock.csv -o recommended.csv
    halfseen recommend model.hs --history new.csv -o recommended.csv
    halfseen recommend model.hs --user bob --json
    """
    if sum(map(bool, (users, users_file, everybody, history))) != 1:
        raise click.UsageError("Name the users: --user (once or more), --users FILE, --all, or --history FILE.")
    check_n(n)
    streams.check_json(as_json, output)
    to_folder = everybody and output is not None and (output.endswith(("/", os.sep)) or os.path.isdir(output))
    if engine == "dask" and not to_folder:
        raise click.UsageError("--engine dask is for the lists of all rows in a folder: --all -o lists/.")
    if output is not None:
        (streams.check_output_folder if to_folder else streams.check_table)(output)
        streams.check_apart([output], [model, users_file, history, items, exclude_items, names])
    cluster = options.on_cluster(engine, scheduler, workers, memory, quiet or as_json)
    client = click.get_current_context().with_resource(cluster)
    paths = tuple(None if path is None else os.path.abspath(path) for path in (model, items, exclude_items, names))
    asked_for = Asked(paths, n, include_seen, exclude, strict, approximate, engine)
    if to_folder:
        end(write_folder(asked_for, Path(str(output)), client, quiet), None, quiet)
        return
    served, candidates, titles, notes = prepare(asked_for)
    ranker, row_labels = served.model, served.model.labels.row_labels
    rows: Any
    asked: Array | None = None  # names of rows of which some are unknown, of one kind in all blocks
    if history is not None:
        rows, of_history = _read_history(model, history, strict)
        notes = [*of_history, *notes]
        streams.print_lines(describe_data(history, rows), quiet=quiet, err=output is None)
    elif everybody:
        rows = np.arange(ranker.shape[0]) if row_labels is None else row_labels
    else:
        rows = parse_labels(users if users_file is None else read_ids(users_file), row_labels)
        positions = ranker.positions(rows, "row", strict)
        if (positions < 0).any():
            notes.insert(0, unknown_rows(rows, positions, ranker.shape[0]))
            try:
                asked = uniform(rows, "row")
            except DataError:  # numbers beside text
                asked = text_array(rows)

    def blocks() -> Iterator[Recommendations]:
        n_rows = len(rows) if history is None else rows.shape[0]
        shown = output is not None and not quiet and n_rows > ROWS_AT_A_TIME
        with streams.row_bar("Recommending", n_rows, shown) as advance:
            for top in range(0, n_rows, ROWS_AT_A_TIME):
                part = slice(top, min(top + ROWS_AT_A_TIME, n_rows))
                some = rows[part] if history is None else rows.select_rows(np.arange(part.start, part.stop))
                found = ranker.recommend(some, n, not include_seen, candidates, approximate=approximate, **served.how)
                found.rows = found.rows if asked is None else asked[part]
                yield found
                advance(part.stop - part.start)

    n_lines = put(blocks(), HEADS, titles, output, as_json, has_unknown=asked is not None)
    if not n_lines and output is None and not as_json:
        click.echo("Nothing is left to recommend: everything was seen or excluded.")
    end(notes, output, quiet)


class Asked(NamedTuple):
    """What makes the lists of a command, but the rows."""

    paths: tuple[str | None, ...]
    """Of the model, of items that are candidates, of others that are none, and of titles."""
    n: int
    include_seen: bool
    exclude: tuple[str, ...]
    strict: bool
    approximate: bool
    engine: str | None


def prepare(asked: Asked) -> tuple[Served, Any, Array | None, list[DataWarning]]:
    """The model, the candidates and titles of the columns, and notes of what was unknown among these and left out."""
    model, items, exclude_items, names = asked.paths
    served, notes = load_served(str(model), asked.engine), list[DataWarning]()
    ranker, labels, candidates = served.model, served.model.labels.column_labels, None
    if items is not None or asked.exclude or exclude_items is not None:
        is_candidate = np.full(ranker.shape[1], items is None)
        if items is not None:
            wanted = parse_labels(read_ids(items), labels)
            is_candidate[ranker.known_columns(wanted, "`items`", asked.strict, notes)] = True
        unwanted = parse_labels([*asked.exclude, *([] if exclude_items is None else read_ids(exclude_items))], labels)
        is_candidate[ranker.known_columns(unwanted, "`exclude`", asked.strict, notes)] = False
        candidates = ranker.labels_at(np.flatnonzero(is_candidate), "column")
    return served, candidates, None if names is None else titles_of(names, ranker, "column"), notes


@lru_cache(maxsize=1)
def prepare_once(asked: Asked, digest: str) -> tuple[Served, Any, Array | None, list[DataWarning]]:
    """The same, once in a process for files of this digest."""
    return prepare(asked)


def write_part(asked: Asked, digest: str, first: int, stop: int, path: Path) -> int:
    """Write the lists of some rows of the fit to a file, whole or not at all; return the number of rows."""
    served, candidates, titles, _ = prepare_once(asked, digest)
    ranker = served.model
    labels = ranker.labels.row_labels
    blocks = (np.arange(top, min(top + ROWS_AT_A_TIME, stop)) for top in range(first, stop, ROWS_AT_A_TIME))
    lists = (
        ranker.recommend(
            rows if labels is None else labels[rows], asked.n, not asked.include_seen, candidates,
            approximate=asked.approximate, **served.how,
        )
        for rows in blocks
    )  # fmt: skip
    put(lists, HEADS, titles, str(path), False)
    return stop - first


def write_folder(asked: Asked, folder: Path, client: Any, quiet: bool) -> list[DataWarning]:
    """Write the lists of all rows to the parts of a folder that are not there yet, on the workers of a client."""
    of_files = []
    for path in asked.paths:
        if path is not None and os.path.isfile(path):  # else it is refused when it is read
            with open(path, "rb") as file:
                of_files.append(file_digest(file, lambda: blake2b(digest_size=16)).hexdigest())
    digest = blake2b(repr((of_files, *asked[1:-1])).encode(), digest_size=16).hexdigest()
    served, _, _, notes = prepare_once(asked, digest)
    n_rows, folder = served.model.shape[0], Path(os.path.abspath(folder))
    record, known = folder / "_lists.txt", f"halfseen recommend {digest}\n"
    there = {path.name for path in folder.iterdir()} - {LOCK} if folder.is_dir() else set()
    if there and (record.name not in there or record.read_text(encoding="utf-8") != known):
        must, remedy = "A folder of lists must be new, or hold some of the same lists.", "Name another folder."
        raise DataError(must, found="other files or lists", where=f"in {str(folder)!r}", remedy=remedy)
    folder.mkdir(exist_ok=True)
    try:
        lock = lock_file(folder / LOCK)
    except BlockingIOError:
        must, remedy = "A folder of lists must be of one command at a time.", "Wait for its end."
        found = f"another one that writes to {str(folder)!r}"
        raise DataError(must, found=found, remedy=remedy) from None
    click.get_current_context().with_resource(lock or nullcontext())
    there = {path.name for path in folder.iterdir()}
    streams.write_text(record, known)
    for name in there:
        if name.endswith(".part"):  # of a command that was killed
            (folder / name).unlink()
    starts = range(0, n_rows, ROWS_OF_PART)
    parts = [(first, min(first + ROWS_OF_PART, n_rows), f"part-{at:06}.parquet") for at, first in enumerate(starts)]
    missing = [(first, stop, folder / name) for first, stop, name in parts if name not in there]
    with streams.row_bar("Recommending", n_rows, not quiet) as advance:
        advance(n_rows - sum(stop - first for first, stop, _ in missing))
        if client is None:
            for one in missing:
                advance(write_part(asked, digest, *one))
        elif missing:
            from halfseen.engines.cluster import Workers

            n_shown = 0

            def show(n_done: int, _: int) -> None:
                nonlocal n_shown
                advance(n_done - n_shown)
                n_shown = n_done

            with Workers("The same command goes on with the parts that are missing.") as workers:
                workers.on_progress = show
                sizes = [stop - first for first, stop, _ in missing]
                workers.run(partial(write_part, asked, digest), *zip(*missing, strict=True), sizes=sizes)
    found = f" ({len(parts) - len(missing)} of them were there)" if len(missing) < len(parts) else ""
    streams.print_lines(f"Saved {folder}: {count(len(parts), 'part')}{found}.", quiet=quiet)
    return notes


@click.command(cls=Command)
@options.MODEL
@click.option(
    "-i", "--item", "items", multiple=True, help="A column of the fit, by its id; may be given several times."
)
@click.option("-u", "--user", "users", multiple=True, help="Or a row of the fit, by its id.")
@click.option("-n", type=int, default=10, help="Number of similar ones for each.")
@click.option("--strict", is_flag=True, help="Refuse unknown ids, which are else left out where others are known.")
@options.NAMES
@options.ENGINE
@options.OUTPUT
@JSON
@options.QUIET
def similar(model: str, items: tuple[str, ...], users: tuple[str, ...], n: int, strict: bool, names: str | None,
            engine: str | None, output: str | None, as_json: bool, quiet: bool) -> None:  # fmt: skip
    """Show which items, or users, of MODEL are most like some: by the cosine of their factors, where it has factors.

    \b
    halfseen similar model.hs --item 1214 -n 10 --names titles.csv
    halfseen similar model.hs --user bob -o similar.csv
    """
    if bool(items) == bool(users):
        raise click.UsageError("Name what to look for: either --item or --user, once or more.")
    check_n(n)
    streams.check_json(as_json, output)
    if output is not None:
        streams.check_table(output)
        streams.check_apart([output], [model, names])
    served = load_served(model, engine)
    side = "column" if items else "row"
    labels = served.model.labels.column_labels if items else served.model.labels.row_labels
    notes: list[DataWarning] = []
    positions = served.model.known(parse_labels(items or users, labels), side, strict, notes)
    found = served.model.similar(positions, side, n, served.how["engine"], served.how["n_jobs"])
    titles = None if names is None else titles_of(names, served.model, side)
    put([found], (side, "rank", "similar", "score"), titles, output, as_json)
    end(notes, output, quiet)


def check_n(n: int) -> None:
    """Refuse lists without a line."""
    if n < 1:
        raise ParameterError("must be a whole number, 1 or larger.", parameter="n", found=str(n))


def load_served(path: str, engine: str | None) -> Served:
    """Load the record of a model, to compute on another engine if one is given; refuse one that can't recommend."""
    record, name, parameters = load_record(path)
    if record is None:
        found, remedy = f"a {name}", "Use halfseen predict for its values."
        raise ParameterError("MODEL must be one that recommends.", found=found, where=f"in {path!r}", remedy=remedy)
    engine = parameters["engine"] if engine is None else engine
    engine = "cpu" if engine == "dask" else engine  # workers rank on their processors
    return Served(record, {"engine": engine, "n_jobs": parameters["n_jobs"], "name": name})


def _read_history(model: str, history: str, strict: bool) -> tuple[Any, list[DataWarning]]:
    """Histories of new rows over the columns of a model; unless `strict`, their oddities are settled, with notes."""
    import halfseen
    from halfseen.estimators.inputs import observe_histories

    fitted = halfseen.load(model)
    observed, notes = observe_histories(fitted, history, strict)
    observed = observed if strict else fitted.model_.at_nearest_levels(observed, notes)
    if observed.row_labels is None:
        return replace(observed, row_labels=np.arange(observed.shape[0])), notes
    if fitted.model_.index[0] is not None:
        n_known = int((fitted.model_.positions(observed.row_labels, "row", strict=False) >= 0).sum())
        must, remedy = "Rows of --history should be new ones.", "They are served by this history alone."
        found = f"{n_known} of {observed.shape[0]} that the model knows"
        notes += [DataWarning(must, found=found, remedy=remedy)] if n_known else []
    return observed, notes


def read_ids(path: str) -> list[str]:
    """Ids of a file: its lines, or its first column if it is a table; a usual header is none of them."""
    from halfseen.io import read_table
    from halfseen.io.schema import IDS, plain_spelling

    ending = Path(path).suffix.lower()
    if ending in (".txt", ".csv", ".tsv", ""):
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                lines = file.read().splitlines() if ending in (".txt", "") else None
                file.seek(0)
                records = csv.reader(file, delimiter="\t" if ending == ".tsv" else ",") if lines is None else ()
                ids = [line[0] for line in records if line] if lines is None else lines
        except (OSError, UnicodeError, csv.Error) as error:
            must, found = "A file of ids must be text in UTF-8.", str(getattr(error, "strerror", None) or error)
            raise DataError(
                must, found=found, where=f"in {path!r}", remedy="Check the path, or save it again."
            ) from None
        ids = [one.strip() for one in ids if one.strip()]
        return ids[1:] if ids and plain_spelling(ids[0]) in IDS else ids

    table = read_table(path)
    return [str(one) for one in table.texts(table.names[0])]


def titles_of(path: str, ranker: Ranker, side: str) -> Array:
    """Title of each row or column of a model from a file of ids and titles; None where it has none."""
    from halfseen.io.reader import read_titles

    labels = ranker.labels.column_labels if side == "column" else ranker.labels.row_labels

    def find(texts: list[Any]) -> Array:
        ids = parse_labels(texts, labels)
        ids = [one if isinstance(one, int) else -1 for one in ids] if labels is None else ids
        return ranker.positions(ids, side, strict=False)

    titles = read_titles(path, find, ranker.shape[0 if side == "row" else 1])
    if all(title is None for title in titles):
        must, remedy = "A file of names should have the ids of the model.", "No title is shown."
        warnings.warn(DataWarning(must, found="none of them", remedy=remedy), stacklevel=2)
    return titles


def put(found: Iterable[Recommendations], heads: Sequence[str], titles: Array | None, output: str | None, as_json: bool,
        has_unknown: bool = False) -> int:  # fmt: skip
    """Show lists, or write them as they come; return the number of lines. `heads` are the names of their columns."""
    names = [*heads, *(["known"] if has_unknown else []), *(["title"] if titles is not None else [])]
    n_lines, collected = 0, []
    if output is not None:
        from halfseen.io.write import write_blocks
    with nullcontext(None) if output is None else write_blocks(output, names) as write:
        for lists in found:
            rows, ranks = np.nonzero(lists.scores == lists.scores)
            if not rows.size:
                continue
            ids = uniform(lists.ids[rows, ranks], "column")  # of None and numbers, numbers are left
            columns = [lists.rows[rows], ranks + 1, ids, lists.scores[rows, ranks]]
            columns += [lists.is_known[rows]] if has_unknown else []
            columns += [titles[lists.positions[rows, ranks]]] if titles is not None else []
            n_lines += rows.size
            if write is not None:
                write(columns)
                continue
            lines = zip(*(column.tolist() for column in columns), strict=True)
            if as_json:
                collected += [dict(zip(names, line, strict=True)) for line in lines]
                continue
            for row, rank, column, score, *more in lines:
                if rank == 1:
                    click.echo(f"{streams.printable(row)}:")
                title = f"  {more[-1]}" if titles is not None and more[-1] is not None else ""
                click.echo(f"  {rank:>3}  {score:<10.4g}  {streams.printable(f'{column}{title}')}")
    if as_json:
        streams.print_json(collected)
    return n_lines


def end(notes: Iterable[DataWarning], output: str | None, quiet: bool) -> None:
    """Print what was left out, and where the result is."""
    for note in notes:
        click.echo(f"note: {render(note)}", err=True)
    if output is not None:
        streams.print_lines(describe_file(output), quiet=quiet)

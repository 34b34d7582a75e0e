"""halfseen impute: a table with its holes filled."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from halfseen.cli import options, streams, summaries
from halfseen.cli.app import Command
from halfseen.cli.fit import choose
from halfseen.cli.messages import render
from halfseen.cli.streams import JSON, In, Out
from halfseen.errors import DataError, DataWarning
from halfseen.likelihoods import likelihood_for

BLEND = "blend"
#: Factorizations that fill a table, beside the blend of `TableImputer`.
FACTORIZATIONS = {"rank-one": "RankOneNMF", "nmf": "WeightedNMF", "round": "RoundMF", "ordinal": "OrdinalMF"}
#: Which methods have which options.
OWNERS = {
    "n_components": ("nmf", "round", "ordinal"),
    "loss": ("nmf", "round"),
    "scale": ("rank-one", "nmf"),
    "decimals": (BLEND, "rank-one", "nmf"),
    **dict.fromkeys(("clip", "max_iter", "tol", "engine", "n_jobs"), tuple(FACTORIZATIONS)),
    **dict.fromkeys(("levels", "category", "number", "draws", "fast"), (BLEND,)),
}


@click.command(cls=Command)
@click.argument("table", type=In())
@click.option("-o", "--output", required=True, type=Out(), help="File for the filled table; - shows it.")
@click.option("--method", type=click.Choice([BLEND, *FACTORIZATIONS]),
              help="blend (default): any table. nmf, rank-one: amounts and counts that rise and fall together. "
              "ordinal, round: answers on one scale, such as 1 to 5.")  # fmt: skip
@click.option("--skip", multiple=True, metavar="NAME",
              help="A column to leave as it is, such as an id; may be given several times.")  # fmt: skip
@click.option("--levels", multiple=True, metavar="[NAME=]LOWEST,...,HIGHEST",
              help='Words of an ordered scale, "never,rarely,often", for the columns that hold them or for one, '
              '"q1=never,rarely,often"; may be given several times. Common scales are found.')  # fmt: skip
@click.option("--category", multiple=True, metavar="NAME",
              help="A column of categories without an order, though it holds numbers or one was found.")  # fmt: skip
@click.option("--number", multiple=True, metavar="NAME",
              help="A column of amounts whose name looks like an id, or with few values.")  # fmt: skip
@click.option("--decimals", type=click.Choice(["auto", "all"]),
              help="auto (default): as many as the column has; all: as computed.")  # fmt: skip
@click.option("--draws", type=click.IntRange(1),
              help="Also write so many drawn tables, FILE-1, FILE-2, ..., for multiple imputation.")  # fmt: skip
@click.option("--fast", is_flag=True, default=None, help="Leave out the slowest candidates, boosting and random trees.")
@click.option("--mask", type=click.Path(), help="Table with 1 where a cell was filled and 0 elsewhere.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("-k", "--n-components", type=options.Components(), metavar="NUMBER|auto|auto:1,2,5",
              help="Components of a factorization, by default 5 of nmf; auto chooses by held-out cells.")  # fmt: skip
@options.LOSS
@click.option("--scale/--no-scale", default=None,
              help="For nmf: scale columns to mean 1 for the fit, so that large units do not dominate.")  # fmt: skip
@click.option("--clip/--no-clip", default=None, help="Keep what a factorization fills within the range of its column.")
@options.TEXT
@options.FITTING
@options.ENGINE
@JSON
def impute(table: str, output: str, method: str | None, mask: str | None, force: bool, skip: tuple[str, ...],
           levels: tuple[str, ...], category: tuple[str, ...], number: tuple[str, ...], decimals: str | None,
           draws: int | None, fast: bool | None, n_components: int | list[int] | None, loss: str | float | None,
           scale: bool | None, clip: bool | None, max_iter: int | None, tol: float | None, seed: int,
           n_jobs: int | None, quiet: bool, engine: str | None, as_json: bool, **reading: Any) -> None:  # fmt: skip
    """Fill the holes of a TABLE: numbers, ordered levels, categories, booleans.

    Every column is filled by what predicts it best on cells that are seen and were hidden for a test: a Gaussian model
    of all columns, similar rows, trees, a blend of these, or the column's mean. The table that is printed
    shows the error of each column beside the mean's, and by how much it is smaller. Ids, codes, dates and free text are
    left unchanged; observed values stay as written, and a CSV file keeps its separator and its decimal marks.

    \b
    halfseen impute table.csv -o filled.csv
    halfseen impute survey.csv --levels "never,rarely,often" --mask filled-cells.csv -o filled.csv
    halfseen impute survey.csv --levels "q1=bad,fair,good" --levels "q2=no,perhaps,yes" -o filled.csv
    halfseen impute table.csv --skip id --draws 5 -o filled.csv
    halfseen impute excel.csv --decimal , --thousands . --na "-,k.A." -o filled.csv
    halfseen impute amounts.csv --method rank-one -o filled.csv
    halfseen impute amounts.csv --method nmf -k auto -o filled.csv
    zcat table.csv.gz | halfseen impute - -q -o - | head
    """
    method = method or (BLEND if n_components is None else "nmf")
    given = options.given(
        n_components=n_components, loss=loss, scale=scale, clip=clip, max_iter=max_iter, tol=tol, engine=engine,
        n_jobs=n_jobs, levels=levels or None, category=category or None, number=number or None, draws=draws,
        decimals=decimals, fast=fast,
    )  # fmt: skip
    options.check_owners(given, method, OWNERS)
    path = Path(output)
    drawn = [str(path.with_name(f"{path.name.partition('.')[0]}-{i}{''.join(path.suffixes)}"))
             for i in range(1, (draws or 0) + 1)]  # fmt: skip
    if drawn and streams.stdout_is_taken():
        raise click.UsageError("--draws needs a file to name the others after: -o FILE.")
    outputs = [output, *drawn, *([mask] if mask else [])]
    for one in outputs:
        streams.check_table(one)
    streams.check_apart(outputs, [table])
    streams.check_new(outputs, force)
    streams.check_json(as_json)
    options.check_engine(engine)

    from halfseen.io import read_wide_table, write_table

    wide = read_wide_table(table, skip, mixed=method == BLEND, **options.reader(reading))

    def write(place: str, columns: Sequence[Any]) -> None:
        names = wide.names if wide.has_header else None
        write_table(place, names, columns, delimiter=wide.delimiter, decimal=wide.decimal, thousands=wide.thousands)

    if method == BLEND:
        tables, facts, lines, notes = _blend(wide, given, seed)
    else:
        tables, facts, lines, notes = _factorize(wide, method, given, seed, quiet)
    columns, is_filled = wide.with_fills(tables[0])
    write(output, columns)
    for place, fills in zip(drawn, tables[1:], strict=True):
        write(place, wide.with_fills(fills)[0])
    if mask:
        write(mask, [[int(one) for one in column] for column in is_filled])
    streams.print_lines(*(f"note: {render(note)}" for note in (*wide.notes, *notes)), quiet=quiet, err=True)
    n_filled, n_columns = sum(map(sum, is_filled)), sum(map(any, is_filled))
    kept = [name for name in wide.names if name not in tables[0]]
    data = summaries.data_facts(table, wide.observed) | {"columns": len(wide.names), "numeric": len(wide.numeric)}
    if as_json:
        found = {"holes": n_filled, "filled": list(tables[0]), "kept": kept, "method": method}
        found |= {"notes": list(map(str, (*wide.notes, *notes))), **facts, "file": streams.display_name(output)}
        streams.print_json({"data": data, **found})
        return
    others = f"; kept as they are: {', '.join(name or 'the first column' for name in kept)}" if kept else ""
    filled = f"{summaries.count(n_filled, 'hole')} in {summaries.count(n_columns, 'column')}"
    read = summaries.describe_data(table, wide.observed)
    if method == BLEND:  # whose values are of many kinds
        size = f"{summaries.count(data['rows'], 'row')}, {summaries.count(data['columns'], 'column')}"
        of = f"{data['numeric']} of numbers, {len(wide.texts)} of text"
        read = f"Read {data['file']}: {size}, {of}{'' if wide.has_header else ', without a header'}."
    streams.print_lines(read, f"Filled {filled}{others}.", *lines, *map(summaries.describe_file, outputs), quiet=quiet)


#: The filled columns by name, of the result and of each draw; facts for --json; lines; notes.
Filling = tuple[list[dict[str, Sequence[Any]]], dict[str, Any], list[str], Sequence[Any]]


def _blend(wide: Any, given: dict[str, Any], seed: int) -> Filling:
    """Fill by `TableImputer`."""
    import halfseen
    from halfseen.estimators.table_imputer import order_notes, unused_scales
    from halfseen.imputation.columns import choose_scale
    from halfseen.io.numbers import is_number
    from halfseen.io.schema import check_present

    table = wide.to_arrow()
    scales, by_name = [], {}
    for text in given.get("levels", ()):
        name, equals, words = text.partition("=")
        name = name.strip() if equals and "," not in name else ""
        if name and name not in table.column_names:  # unless it is the start of a word
            first = text.split(",")[0].strip()
            if any(first in table[one].to_pylist() for one in wide.texts):
                name = ""
            else:
                check_present(name, table.column_names)
        scale = [one.strip() for one in (words if name else text).split(",")]
        if name:
            by_name[name] = [float(one) if name in wide.numeric and is_number(one) else one for one in scale]
        else:
            scales.append(scale)
    if by_name:
        for name in (one for one in wide.texts if one not in by_name and one not in given.get("category", ())):
            scale_of_all = choose_scale(np.array(table[name].to_pylist(), dtype=object), scales)
            by_name |= {} if scale_of_all is None else {name: scale_of_all}
    imputer = halfseen.TableImputer(
        levels=by_name or scales or None, categories=given.get("category", ()), numbers=given.get("number", ()),
        decimals="auto" if given.get("decimals", "auto") == "auto" else None,
        trees=not given.get("fast", False), random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # `notes_` has all of them
        filled = imputer.fit(table).transform(table)
    kinds = {column.name: column for column in imputer.columns_}
    used = [name for name in table.column_names if kinds[name].width]

    levels_are_whole = {name: all(isinstance(x, float) and x == round(x) for x in kinds[name].values) for name in used}
    is_whole = {name: kinds[name].decimals == 0 or (kinds[name].order and levels_are_whole[name]) for name in used}

    def fills(one: Any) -> dict[str, Sequence[Any]]:
        cells = {name: one[name].to_pylist() for name in used}
        return {
            name: [int(x) if is_whole[name] and x is not None and x == round(x) else x for x in values]
            for name, values in cells.items()
        }

    drawn = imputer.sample(table, given["draws"], seed) if "draws" in given else []
    tables = [fills(one) for one in (filled, *drawn)]
    holes = {name: table[name].null_count for name in used}
    quality = imputer.quality_
    columns, rows, behind = [], [], []
    for place, name in enumerate(quality["column"]):
        if name not in holes:
            continue
        facts = {key: quality[key][place].item() for key in quality if key != "column"}
        facts = {key: None if one != one else one for key, one in facts.items()}
        facts |= {"values": list(kinds[name].values), "order": kinds[name].order} if kinds[name].values else {}
        columns.append({"column": name, "holes": holes[name], **facts})
        if holes[name]:
            error, ratio, sure = facts["error"], facts["ratio"], facts["standard_error"]
            shown = ("-", "-") if error is None else (f"{error:.2f}", f"{facts['mean_error']:.2f}")
            better = (
                "-" if ratio is None else f"{100 * (1 - ratio):.0f} % ± {100 * sure:.0f}" if ratio < 0.995 else "no"
            )
            both = [facts["accuracy"], facts["mode_accuracy"]]
            right = "" if None in both else f"{100 * both[0]:.0f} % ({100 * both[1]:.0f} %)"
            rows.append((name, facts["kind"], f"{holes[name]:,}", *shown, better, right, facts["used"]))
            behind += [name] if ratio is not None and ratio + 2 * sure >= 1 else []
    heads = ("column", "kind", "holes", "error", "of the mean", "better by", "right (mode)", "filled by")
    lines = streams.table_lines(rows, heads, left=2) if rows else []
    if rows:
        lines.append("Errors are of seen cells that were hidden for a test, in standard deviations of the column; for "
                     "categories, of the 0/1 indicators of their values.")  # fmt: skip
    if any(row[6] for row in rows):
        lines.append(
            "Right: how many of the hidden cells got their own value; in brackets, by the most frequent value."
        )
    if any("-" in row for row in rows):
        lines.append("-: too few cells are seen to hide some, or all have the same value.")
    if behind:
        lines.append(f"Not clearly predicted better than by the mean: {', '.join(behind)}.")
    n_ends = 0  # nothing is filled beyond the lowest and highest number of a column
    for name in (one for one in wide.numeric if holes.get(one) and kinds[one].kind in ("continuous", "count")):
        column = table[name].to_numpy()
        ends, at_holes = (
            (np.nanmin(column), np.nanmax(column)),
            np.array(tables[0][name], dtype=float)[np.isnan(column)],
        )
        n_ends += int(((at_holes <= ends[0]) | (at_holes >= ends[1])).sum())
    if n_ends:
        are = "is" if n_ends == 1 else "are"
        lines.append(f"{summaries.count(n_ends, 'filled number')} {are} the lowest or highest of the column: none goes "
                     "beyond.")  # fmt: skip
    orders = {str(note): render(note) for note in order_notes(imputer.columns_)}
    notes = [note for note in imputer.notes_ if str(note) not in orders]
    notes += unused_scales(scales if by_name else (), imputer.columns_)
    return tables, {"columns": columns}, [*orders.values(), *lines], notes


def _factorize(wide: Any, method: str, given: dict[str, Any], seed: int, quiet: bool) -> Filling:
    """Fill by a factorization of the columns of numbers."""
    import halfseen
    from halfseen.imputation.columns import recognise_numbers

    observed, loss = wide.observed, given.get("loss")
    params: dict[str, Any] = {"verbose": 0 if quiet else 1}
    params |= {name: given[name] for name in ("max_iter", "tol", "engine", "n_jobs") if name in given}
    model = getattr(halfseen, FACTORIZATIONS[method])().set_params(**params)
    units = np.ones(observed.shape[1])
    if method in ("nmf", "rank-one"):
        try:  # before scaling: errors name values as they are written
            likelihood_for(loss or "kullback-leibler").check(observed, "impute")
        except DataError as error:
            error.remedy_cli = f"{error.remedy} --skip leaves a column as it is; --method blend takes any numbers."
            raise
        if given.get("scale", True):  # the mean of each column; 1 where there are no values, or it is 0
            sums = np.bincount(observed.indices, weights=observed.values, minlength=observed.shape[1])
            means = sums / np.maximum(observed.seen_per_column(), 1)
            units = np.where(means > 0, means, 1.0)
    scaled = replace(observed, values=observed.values / units[observed.indices])
    predict = "predict_level" if method in ("ordinal", "round") else "predict"
    scores: list[str] = []
    chosen: dict[str, Any] = {}
    if method != "rank-one":
        n_components = given.get("n_components", 5)
        model.set_params(random_state=seed, **options.given(loss=loss))
        if isinstance(n_components, int):
            model.set_params(n_components=n_components)
        scores, chosen = choose(model, scaled, n_components, given.get("n_jobs"), quiet)
        if method == "nmf" and model.n_components == 1 and loss in (None, "kullback-leibler", 1.0):
            model = halfseen.RankOneNMF().set_params(**params)
    columns, lines = _held_out_errors(model, predict, scaled, seed)
    model.fit(scaled)
    if predict == "predict_level":  # the predicted level in every hole, 0 elsewhere; integers if all levels are
        are_whole = np.all(model.levels_ == np.floor(model.levels_))
        values = np.zeros(observed.shape, np.int64 if are_whole else np.float64)
        rows, places = np.nonzero(np.isnan(observed.to_dense()))
        values[rows, places] = model.predict_level(rows, observed.column_labels[places])
    else:
        values = model.inverse_transform(model.W_) * units
    lines = [*scores, summaries.describe_model(model), summaries.describe_end(model), *lines]
    if given.get("clip", True):  # to the range of each column; without limits where there are no values
        low, high = np.full(observed.shape[1], np.inf), np.full(observed.shape[1], -np.inf)
        np.minimum.at(low, observed.indices, observed.values)
        np.maximum.at(high, observed.indices, observed.values)
        seen = high >= low
        within = np.clip(values, np.where(seen, low, -np.inf), np.where(seen, high, np.inf)).astype(values.dtype)
        n_clipped = int(((within != values) & np.isnan(observed.to_dense())).sum())
        values = within
        if n_clipped:
            was = "was" if n_clipped == 1 else "were"
            lines.append(
                f"{summaries.count(n_clipped, 'fill')} {was} cut to the range of the column; --no-clip keeps it."
            )
    filled: dict[str, Sequence[Any]] = dict(zip(wide.numeric, values.T, strict=True))
    if predict == "predict" and given.get("decimals", "auto") == "auto":  # as many as the column's own numbers have
        for j, name in enumerate(wide.numeric):
            own = recognise_numbers(name, observed.values[observed.indices == j], named=False, amount=True)
            if own.decimals is not None:
                rounded = np.round(values[:, j], own.decimals).tolist()
                filled[name] = list(map(int, rounded)) if own.decimals == 0 else rounded
    tables = [filled]
    return tables, {**summaries.fit_facts(model), **chosen, "columns": columns}, lines, ()


def _held_out_errors(model: Any, predict: str, observed: Any, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Errors of a tenth of the cells of each column with holes, which the model did not see, beside the mean's."""
    from sklearn.base import clone

    from halfseen.estimators.table_imputer import ratio_error
    from halfseen.io import split_cells

    with warnings.catch_warnings(action="ignore"):
        try:
            train, test = split_cells(observed, 0.1, seed)
            fitted = clone(model).set_params(verbose=0).fit(train)
            found = getattr(fitted, predict)(test.row_of_cell(), observed.column_labels[test.indices])
        except DataError:  # too few cells are left
            return [], []
    columns, rows, behind, size = [], [], [], observed.shape[1]
    sums, counts = (np.bincount(train.indices, of, size) for of in (train.values, np.ones(train.nnz)))
    means = sums / np.maximum(counts, 1)
    holes = observed.shape[0] - observed.seen_per_column()
    for j in np.flatnonzero(holes):
        here, own = test.indices == j, observed.values[observed.indices == j]
        name, spread = str(observed.column_labels[j]), own.std() if own.size else 0.0
        facts: dict[str, Any] = {"column": name, "holes": int(holes[j]), "held_out": int(here.sum())}
        facts |= dict.fromkeys(("error", "mean_error", "ratio"))
        if spread > 0 and here.any():
            error, by_mean = (
                float(np.sqrt(np.mean((of - test.values[here]) ** 2))) / spread for of in (found[here], means[j])
            )
            facts |= {"error": error, "mean_error": by_mean, "ratio": error / by_mean if by_mean > 0 else None}
        columns.append(facts)
        ratio, better = facts["ratio"], "-"
        if ratio is not None:
            sure = float(ratio_error(ratio, facts["held_out"]))
            better = f"{100 * (1 - ratio):.0f} % ± {100 * sure:.0f}" if ratio < 0.995 else "no"
            behind += [name] if ratio + 2 * sure >= 1 else []
        shown = ("-", "-") if facts["error"] is None else (f"{facts['error']:.2f}", f"{facts['mean_error']:.2f}")
        rows.append((name, f"{holes[j]:,}", *shown, better))
    if not rows:
        return columns, []
    lines = streams.table_lines(rows, ("column", "holes", "error", "of the mean", "better by"), left=1)
    lines.append("Errors are of a tenth of the cells, hidden for a test, in standard deviations of the column.")
    if behind:
        lines.append(f"Not clearly predicted better than by the mean: {', '.join(behind)}.")
    return columns, lines

"""The sections of a report; None where the model or the data have nothing for one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from halfseen import plots
from halfseen.arrays import Array
from halfseen.metrics import predictive_check
from halfseen.plots.axes import format_distinct
from halfseen.plots.data_plots import value_histogram
from halfseen.plots.model_plots import component_strengths, discarded_sweeps, has_free_scale, is_signed, strongest
from halfseen.plots.ordinal_plots import level_names
from halfseen.report import page
from halfseen.report.context import ReportContext
from halfseen.report.figures import draw_svg
from halfseen.report.page import Block, Facts, Group, Groups, Picture, Section, Table, count, format_value

#: A matrix with a smaller share of seen cells is drawn with the fullest rows and columns first.
_SPARSE = 0.3
_UNSEEN = {
    "missing": "missing: they carry no information",
    "zero": "zeros: they count as observed zeros",
    None: "cells in which nobody was asked",
}
#: Fitted attributes to show, where a model has them.
_FITTED = {
    "l2_": "Ridge penalty",
    "increase_rate_": "Cells treated as missing, relative to holes",
    "n_parts_": "Connected components of the seen cells",
    "n_clipped_": "Values below 0 that counted as 0",
}
#: The most components that are listed, and the names of each in the overview.
_MAX_COMPONENTS, _NAMES_IN_OVERVIEW = 40, 3
#: The most cells drawn for a predictive check, which takes a few seconds, and the most and fewest data sets.
_MAX_CELLS_DRAWN, _MAX_SETS, _MIN_SETS = 1e8, 10, 3
#: The couplings listed, the questions drawn, and the most respondents of a question drawn.
_COUPLINGS, _QUESTIONS, _MAX_RESPONDENTS = 30, 3, 40
#: The example rows with their recommended columns and highest values, and the example cells with their interval.
_ROWS, _COLUMNS, _FAVOURITES, _HOLES, _LEVEL = 4, 8, 5, 12, 0.9


def observed_data(context: ReportContext) -> Section:
    """Shape, holes and values."""
    seen, train, (n, m) = context.seen, context.train, context.record.shape
    n_seen = n * m - seen.n_unobserved
    word = "asked" if context.unseen is None else "seen"
    facts: dict[str, Any] = {"Rows": n, "Columns": m}
    facts[f"Cells {word}"] = f"{n_seen:,} of {n * m:,} ({page.percent(n_seen / (n * m))})"
    facts["Unseen cells are"] = _UNSEEN[context.unseen]
    for side, counts in (("row", seen.seen_per_row()), ("column", seen.seen_per_column())):
        facts[f"Cells {word} per {side}"] = f"{counts.min():,} to {counts.max():,}, median {np.median(counts):,.4g}"
    if train is not None and not context.has_text_levels:
        facts["Values"] = f"{_range(train.values)}, mean {format_value(float(train.values.mean()))}"
    if train is not None and train.weights is not None:
        facts["Weights"] = _range(train.weights)
    blocks: list[Block] = [Facts(facts), *context.train_warnings]
    if not context.is_training_data:
        blocks.append("These are not exactly the cells that the model was fitted on.")
    if context.uncoupled is not None:
        blocks.append(str(context.uncoupled.summary))

    share = seen.nnz / (n * m)
    is_sparse = share < _SPARSE
    order = ", those with the most cells first" if is_sparse else ""
    alt = f"Map of {n:,} rows by {m:,} columns{order}: {page.percent(share)} of all cells are {word}."
    svg = draw_svg(lambda ax: plots.holes(seen, sort=is_sparse, bins=120, ax=ax))
    blocks.append(Picture(svg, alt, f"Cells that were {word}; the darker the blue, the larger their share."))

    X: Any = train if context.uncoupled is None else context.uncoupled
    if X is None and context.answers is not None:
        X = context.answers[0][None]  # a sampled model keeps the answers
    if X is None:
        blocks.append("Pass the training data to see their values here.")
    else:
        counts, names, edges = value_histogram(X)
        what, verb = ("answer", "given") if context.unseen is None else ("cell", "seen")
        bars = names or [f"{low} to {high}" for low, high in pairwise(format_distinct(edges.tolist(), 4))]
        total, most = count(int(counts.sum()), what), bars[int(np.argmax(counts))]
        alt = f"Histogram of {total} by value, from {bars[0]} to {bars[-1]}; most have {most}."
        rows = [[bar, int(number)] for bar, number in zip(page.in_order(bars), counts, strict=True)]
        table = Table(f"Numbers of {what}s by value", ["Value", f"{what.capitalize()}s"], rows, bar=1)
        svg = draw_svg(lambda ax: plots.values(X, ax=ax).set_ylabel(f"{what}s"))
        blocks.append(Picture(svg, alt, f"How often each value was {verb}.", table))
    return Section("data", "Observed data", blocks)


def _range(values: Array) -> str:
    return f"{format_value(float(values.min()))} to {format_value(float(values.max()))}"


def fit(context: ReportContext) -> Section:
    """Status, trace, diagnostics and parameters."""
    model, name = context.model, context.model.objective_name
    objective = model.trace_["objective"]
    step = "sweep" if getattr(model, "method", None) == "gibbs" else "iteration"
    facts = {"Status": model.status_.name, f"{step.capitalize()}s": int(model.n_iter_)}
    if model.n_iter_:
        facts |= {"Seconds": float(model.trace_["seconds"][-1]), f"{name} at the end": float(objective[-1])}
        facts[f"After the first {step}"] = float(objective[0])
    facts |= {text: getattr(model, name) for name, text in _FITTED.items() if hasattr(model, name)}
    blocks: list[Block] = [Facts(facts), model.status_.message]
    if model.n_iter_:
        n_discarded = discarded_sweeps(model)
        step = "sweep" if n_discarded else "iteration"
        alt = (
            f"Line of the {name.lower()} after each {step}: {objective[0]:,.6g} at first, "
            f"{objective[-1]:,.6g} after {count(objective.size, step)}."
        )
        if n_discarded:
            alt += f" The first {n_discarded} were discarded and are shaded; violated comparisons are a second line."
        caption = f"{name} after each {step}{'; shaded: discarded' if n_discarded else ''}."
        blocks.append(Picture(draw_svg(lambda ax: plots.trace(model, ax=ax)), alt, caption))
    if getattr(model, "diagnostics_", None):
        rows = [[name, *map(float, numbers)] for name, numbers in model.diagnostics_.items()]
        caption, heads = "Convergence: a split R-hat near 1 is good", ["Mean", "Split R-hat", "Effective draws"]
        blocks.append(Table(caption, ["Quantity", *heads], rows, is_wide=False))
    parameters = [[name, page.label_text(value)] for name, value in sorted(model.get_params(deep=False).items())]
    blocks.append(Table("Parameters of the model", ["Parameter", "Value"], parameters, summary="All parameters"))
    return Section("fit", "Fit", blocks)


def components(context: ReportContext, top: int) -> Section:
    """All components with their strongest columns and rows; biases, where there are any."""
    model = context.model
    strengths = {side: component_strengths(model, f"{side}s") for side in ("column", "row")}

    def strongest_table(values: Array, side: str, caption: str, head: str) -> Table:
        best = strongest(values, top)
        rows = [[name, float(values[at])] for name, at in zip(context.names(best, side), best, strict=True)]
        return Table(caption, [side.capitalize(), head], rows, bar=1)

    # share of each component: of the sums over all cells; of any sign, of the roots of the sums of squares
    columns = strengths["column"]
    sizes = np.sqrt((columns**2).mean(axis=0)) if is_signed(model) else columns.sum(axis=0)
    shares = sizes / max(sizes.sum(), np.finfo(float).tiny)
    listed = np.argsort(-shares, kind="stable")[:_MAX_COMPONENTS]

    unit = ", the lowest threshold being the unit" if has_free_scale(model) else ""
    rows_and_sizes = (
        f"an average row, and in a row what it adds for an average column{unit}. Its size is its share of all."
    )
    if is_signed(model):
        rows_and_sizes = (
            "a typical row (root mean square); row and column of the same sign raise each other. Its size is its share "
            "of the root mean squares of all."
        )
    some = f" The {listed.size} largest of {shares.size} are listed." if listed.size < shares.size else ""
    text = (
        "The product of a cell is a sum over components. A component's strength in a column is what it adds there for"
    )
    numbering = "Components are counted from 0, as the columns of W_ and H_ are."
    blocks: list[Block] = [f"{text} {rows_and_sizes} {numbering}{some}"]
    if listed.size > 1:
        rows = []
        for one in listed:
            best = {side: strongest(values[:, one], _NAMES_IN_OVERVIEW) for side, values in strengths.items()}
            names = ["; ".join(context.names(positions, side)) for side, positions in best.items()]
            rows.append([int(one), float(shares[one]), *names])
        heads = ["Component", "Size", "Strongest columns", "Strongest rows"]
        blocks.append(Table("All components", heads, rows, bar=1))
    groups = []
    for one in listed:
        tables = [
            strongest_table(values[:, one], side, f"Strongest {side}s of component {one}", "Strength")
            for side, values in strengths.items()
        ]
        groups.append(Group(f"Component {one}", f"{page.percent(shares[one])} of all", tables))
    blocks.append(Groups(groups))
    if getattr(model, "row_biases_", None) is not None:
        biases = {"column": model.column_biases_, "row": model.row_biases_}
        tables = [
            strongest_table(np.asarray(values, dtype=np.float64), side, f"Largest biases of {side}s", "Bias")
            for side, values in biases.items()
        ]
        blocks.append(Groups([Group("Biases", "what a row or a column adds by itself", tables)]))
    return Section("components", "Components", blocks)


def thresholds(context: ReportContext) -> Section | None:
    """Thresholds between levels."""
    model = context.model
    if not context.record.encoder.has_levels:
        return None
    cuts = np.asarray(model.thresholds_, dtype=np.float64).tolist()
    names = level_names(model.levels_, page.MAX_LABEL_LENGTH)
    columns: dict[str, list[Any]] = {"Level": page.in_order(names)[1:], "Begins at": cuts}
    if has_free_scale(model):
        columns["Relative to the lowest"] = [cut / cuts[0] for cut in cuts]
    alt = f"Bars of the {len(names)} levels from {names[0]} to {names[-1]}, each from its threshold to the next."
    caption = "Interval of each level, in units of the product of a row's and a column's factors."
    rows = list(zip(*columns.values(), strict=True))
    table = Table("Thresholds, in units of the product", list(columns), rows, is_wide=False)
    picture = Picture(draw_svg(lambda ax: plots.thresholds(model, ax=ax)), alt, caption)
    return Section("thresholds", "Thresholds between levels", [picture, table])


def posterior_predictive(context: ReportContext) -> Section | None:
    """A posterior predictive check, where data can be drawn and the data of the fit are given."""
    model, train = context.model, context.train
    if train is None or "likelihood" not in model.offers:
        return None
    title = "Posterior predictive check"
    cells = np.prod(context.record.shape, dtype=float) if context.unseen == "zero" else float(train.nnz)
    sets = int(min(_MAX_SETS, _MAX_CELLS_DRAWN // cells))
    if sets < _MIN_SETS:
        text = "The data are too large to draw whole sets of them here. See halfseen.metrics.predictive_check."
        return Section("check", title, [text])
    check = predictive_check(model, train, sets)
    names = level_names(check.levels, page.MAX_LABEL_LENGTH)
    counts = zip(page.in_order(names), check.observed, check.mean, check.low, check.high, strict=True)
    rows = [[name, *map(float, numbers)] for name, *numbers in counts]
    inside = int(np.count_nonzero((check.low <= check.observed) & (check.observed <= check.high)))
    alt = (
        f"Bars of the data's number of cells by level, points of the mean number in {sets} data sets drawn from the "
        f"model; {inside} of {len(names)} bars end within the interval of the draws."
    )
    caption = f"Cells of the data (bars) and of {sets} data sets drawn from the model (points), by level."
    heads = ["Level", "Data", "Draws, mean", "Low", "High"]
    svg = draw_svg(lambda ax: plots.level_histograms({type(model).__name__: check}, ax=ax))
    table = Table("Cells by level", heads, rows, is_wide=False)
    note = "If the model is right, the points are near the ends of the bars."
    return Section("check", title, [note, Picture(svg, alt, caption), table])


def coupling(context: ReportContext) -> Section | None:
    """Disclosure risk of uncoupled data, the likeliest couplings, and pictures of some questions."""
    if context.unseen is not None:
        return None
    model, title = context.model, "Coupling of answers"
    if model.posterior_ is None:
        sentence = f'Method {model.method!r} does not estimate who gave which answer; fit with "gibbs" for that.'
        bounds = getattr(model, "error_bounds_", None)  # files of 0.1 have none
        if bounds is None:
            return Section("coupling", title, [sentence])
        exact = (
            "The loss of a question is exact if its answers are uniformly distributed. Else it is off by at most a "
            "multiple of its error bound (Theorem 4.2 of Kohjima, 2022): how far its answers are on average from those "
            "of a uniform distribution, in their units."
        )
        worst = np.argsort(-bounds, kind="stable")[: min(_COUPLINGS, np.count_nonzero(~np.isnan(bounds)))]
        labels = context.names(worst, "row" if context.questions_are_rows else "column")
        caption = "Questions with the largest error bounds" if worst.size < bounds.size else "Error bounds of questions"
        rows = [[name, float(bound)] for name, bound in zip(labels, bounds[worst], strict=True)]
        return Section("coupling", title, [sentence, exact, Table(caption, ["Question", "Error bound"], rows, bar=1)])
    risk, alone = model.disclosure_risk(), model.disclosure_risk(comparisons=False)
    facts = {
        "A guess of an answer is right": f"{page.percent(risk.mean())} of the time on average",
        "Without any comparisons": f"{page.percent(alone.mean())} of the time",
        "Cells disclosed with near certainty": f"{np.count_nonzero(risk > 0.95):,} of {risk.size:,} (above 0.95)",
    }
    alt = (
        f"Histogram of the disclosure risk of {risk.size:,} asked cells, mean {risk.mean():.3g}; without comparisons "
        f"it would be {alone.mean():.3g}."
    )
    caption = "How probable the best guess of each asked cell's answer is, with the comparisons and without."
    blocks: list[Block] = [Facts(facts), Picture(draw_svg(lambda ax: plots.disclosure(model, ax=ax)), alt, caption)]

    likeliest = model.coupling()
    best = np.argsort(-risk, kind="stable")[:_COUPLINGS]
    names = ([page.label_text(label) for label in labels[best]] for labels in (likeliest.row, likeliest.column))
    columns = (likeliest.answer, risk, likeliest.mean)
    numbers = (np.asarray(values)[best].astype(float).tolist() for values in columns)
    caption = f"The {best.size} likeliest couplings" if best.size < risk.size else "All couplings, the likeliest first"
    heads = ["Row", "Column", "Likeliest answer", "Probability", "Mean"]
    blocks.append(Table(caption, heads, list(zip(*names, *numbers, strict=True)), bar=3))

    # the questions with the highest mean risk, of those with few enough respondents to be read
    asked = np.diff(model.asked_.indptr)
    sums = np.bincount(model.asked_.rows(), risk, asked.size)
    drawable = np.flatnonzero((asked > 1) & (asked <= _MAX_RESPONDENTS))
    questions = drawable[np.argsort(-(sums[drawable] / asked[drawable]), kind="stable")[:_QUESTIONS]]
    side = "row" if context.questions_are_rows else "column"
    for label, name in zip(context.record.labels_at(questions, side), context.names(questions, side), strict=True):
        svg = draw_svg(lambda ax, label=label: plots.coupling(model, label, ax=ax), height=4.2)  # type: ignore[misc]
        alt = f"Heat map for question {name}: how probable each answer is for each respondent."
        blocks.append(Picture(svg, alt, f"Who may have given which answer to {name}."))
    return Section("coupling", title, blocks)


def recommendations(context: ReportContext) -> Section | None:
    """The best unseen columns for some rows, where unseen cells are zeros, or values are levels such as stars."""
    model, train, (n, m) = context.model, context.train, context.record.shape
    has_ratings = context.unseen == "zero" or context.record.encoder.has_levels
    if not has_ratings or context.inner_shape is not None:
        return None

    # rows with some but not all columns seen, from few to many
    counts = np.diff(model.seen_.in_rows(np.arange(n))[0])
    rows = np.argsort(counts, kind="stable")
    rows = rows[(counts[rows] > 0) & (counts[rows] < m)]
    if rows.size == 0:
        return None
    if rows.size > _ROWS:
        rows = rows[np.unique((np.linspace(0.3, 0.95, _ROWS) * (rows.size - 1)).astype(np.int64))]

    groups = []
    for row, name in zip(rows, context.names(rows, "row"), strict=True):
        found = model.recommend(context.record.labels_at(np.array([row]), "row"), n=_COLUMNS)
        is_there = found.positions[0] >= 0
        best = context.names(found.positions[0][is_there], "column")
        pairs = list(zip(best, found.scores[0][is_there].tolist(), strict=True))
        note = ""
        if train is not None:
            cells = slice(*train.indptr[row : row + 2])
            highest = np.argsort(-train.values[cells], kind="stable")[:_FAVOURITES]
            note = f"Highest observed values: {'; '.join(context.names(train.indices[cells][highest], 'column'))}"
        table = Table(f"Recommended to row {name}", ["Column", "Score"], pairs, bar=1)
        groups.append(Group(f"Row {name}", note, [table]))
    text = "The best unseen columns for some rows, from rows with few seen cells to rows with many."
    return Section("recommendations", "Examples of recommendations", [text, Groups(groups)])


def completions(context: ReportContext) -> Section | None:
    """Predictions of some holes, where unseen cells are missing, or nobody was asked."""
    model, train, (n, m) = context.model, context.train, context.record.shape
    if context.unseen == "zero":
        return None
    random = np.random.default_rng(0)
    holes: list[tuple[int, int]] = []
    for row in random.permutation(n)[: 20 * _HOLES]:
        unseen = np.setdiff1d(np.arange(m), model.seen_.in_rows(np.array([row]))[1])
        if unseen.size and len(holes) < _HOLES:
            holes.append((row, random.choice(unseen)))
    if not holes:
        return None
    blocks: list[Block] = []
    if train is not None and not context.has_text_levels:
        alt = f"Two heat maps of up to 20 of {n:,} rows and {m:,} columns: as seen, and with holes filled and marked."
        X: Any = train if context.inner_shape is None else train.to_dense().reshape(-1, *context.inner_shape)
        by_column = context.units is not None
        svg = draw_svg(lambda ax: plots.completion(model, X, most=20, by_column=by_column, ax=ax), height=4.0)
        blocks.append(Picture(svg, alt, "Part of the table as observed and completed; dots mark filled cells."))
    if context.has_text_levels:
        blocks.append(f"Predicted values are means of levels counted 0, 1, ... from {context.lowest_level}.")

    rows, columns = np.array(holes, np.int64).T
    heads = ["Row", "Column", "Predicted"]
    cells: list[list[Any]] = [context.names(rows, "row"), context.names(columns, "column")]
    if context.inner_shape is not None:
        cells.append([float(w[0] * h[0]) for w, h in zip(model.W_[rows], model.H_[columns], strict=True)])
    else:
        at = context.cell_labels(rows, columns)
        cells.append(model.predict(*at).tolist())
        if hasattr(model, "predict_level"):
            cells.append(context.ordered_levels(model.predict_level(*at)))
            heads.append("Level")
        if hasattr(model, "predict_interval") and getattr(model, "posterior_", True) is not None:
            ends = model.predict_interval(*at, _LEVEL)
            has_levels = context.record.encoder.has_levels
            cells += [context.ordered_levels(end) if has_levels else end.tolist() for end in ends]
            heads += [f"{_LEVEL:.0%} from", "to"]
    has_picture = any(isinstance(block, Picture) for block in blocks)
    table = Table("Predictions of some missing cells", heads, list(zip(*cells, strict=True)), is_wide=not has_picture)
    return Section("completions", "Examples of completions", [*blocks, table])

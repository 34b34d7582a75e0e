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
from halfseen.plots.model_plots import component_strengths, discarded_sweeps, is_signed, strongest
from halfseen.plots.ordinal_plots import level_names
from halfseen.report.blocks import (
    MAX_LETTERS,
    Block,
    Component,
    Components,
    Facts,
    Fold,
    Note,
    Picture,
    Section,
    Table,
    counted,
    label_text,
    percent,
    placed,
)
from halfseen.report.context import ReportContext
from halfseen.report.figures import draw_svg
from halfseen.report.rendering import number

#: A matrix with a smaller share of seen cells is drawn with the fullest rows and columns first.
_SPARSE = 0.3
_UNSEEN = {
    "missing": "missing: they may be anything, and say nothing",
    "zero": "zeros: they count as observations of nothing",
    None: "cells in which nobody was asked",
}
#: Fitted attributes to show, where a model has them.
_FITTED = {
    "l2_": "Strength of the ridge",
    "increase_rate_": "Cells treated as missing, over holes",
    "n_parts_": "Parts that no seen cell connects",
    "n_clipped_": "Values below 0 that counted as 0",
}
#: The most components that are listed, and the names of each in the overview.
_MAX_COMPONENTS, _NAMES_IN_OVERVIEW = 40, 3
_COUNTED = "Components are counted from 0, as the columns of W_ and H_ are."
#: The most cells drawn for a predictive check, which takes a few seconds, and the most and fewest data sets.
_MAX_CELLS_DRAWN, _MAX_SETS, _MIN_SETS = 1e8, 10, 3
#: The couplings listed, the questions drawn, and the most respondents of a question drawn.
_COUPLINGS, _QUESTIONS, _MAX_RESPONDENTS = 30, 3, 40
#: The example rows with their recommended columns and highest values, and the example cells with their interval.
_ROWS, _COLUMNS, _FAVOURITES, _HOLES, _LEVEL = 4, 8, 5, 12, 0.9


def observed_data(context: ReportContext) -> Section:
    """Shape, holes and values."""
    seen, train, (n, m) = context.seen, context.train, context.shape
    n_seen = n * m - seen.n_unobserved
    word = "asked" if context.is_uncoupled else "seen"
    pairs: list[tuple[str, Any]] = [
        ("Rows", n),
        ("Columns", m),
        (f"Cells {word}", f"{n_seen:,} of {n * m:,} ({percent(n_seen / (n * m))})"),
        ("Unseen cells are", _UNSEEN[getattr(context.model, "unseen", None)]),
    ]
    for side, counts in (("row", seen.seen_per_row()), ("column", seen.seen_per_column())):
        text = f"{counts.min():,} to {counts.max():,}, median {np.median(counts):,.4g}"
        pairs.append((f"Cells {word} a {side}", text))
    if train is not None and not context.has_words:
        pairs.append(("Values", f"{_range(train.values)}, {number(float(train.values.mean()))} in the mean"))
    if train is not None and train.weights is not None:
        pairs.append(("Weights", _range(train.weights)))
    blocks: list[Block] = [Facts(pairs), *(Note(text) for text in context.train_warnings)]
    if not context.is_of_fit:
        blocks.append(Note("These are not exactly the cells that the model was fitted on; the model remembers others."))
    if context.collected is not None:
        blocks.append(Note(str(context.collected.summary)))

    share = seen.nnz / (n * m)
    is_sparse = share < _SPARSE
    order = ", those of which most is seen first" if is_sparse else ""
    alt = f"Map of {n:,} rows by {m:,} columns{order}: {percent(share)} of all cells are {word}."
    svg = draw_svg(lambda ax: plots.holes(seen, sort=is_sparse, bins=120, ax=ax))
    blocks.append(Picture(svg, alt, f"Which cells were {word}: the bluer, the more of a place."))

    X: Any = train if context.collected is None else context.collected
    if X is None and context.answers is not None:
        X = context.answers[0][None]  # a sampled model keeps the answers
    blocks.append(
        Note("Give the data of the fit to see their values here.") if X is None else _histogram(X, context.is_uncoupled)
    )
    return Section("seen", "What was seen", blocks)


def _range(values: Array) -> str:
    return f"{number(float(values.min()))} to {number(float(values.max()))}"


def _histogram(X: Any, is_uncoupled: bool) -> Picture:
    counts, names, edges = value_histogram(X)
    what, verb = ("answer", "given") if is_uncoupled else ("cell", "seen")
    bars = names or [f"{low} to {high}" for low, high in pairwise(format_distinct(edges.tolist(), 4))]
    total, most = counted(int(counts.sum()), what), bars[int(np.argmax(counts))]
    alt = f"Histogram of {total} by value, from {bars[0]} to {bars[-1]}; most have {most}."
    rows = [[bar, int(count)] for bar, count in zip(placed(bars), counts, strict=True)]
    table = Table(f"Numbers of {what}s by value", ["Value", f"{what.capitalize()}s"], rows, bar=1)
    svg = draw_svg(lambda ax: plots.values(X, ax=ax).set_ylabel(f"{what}s"))
    return Picture(svg, alt, f"How often each value was {verb}.", table)


def fit(context: ReportContext) -> Section:
    """Status, trace, diagnostics and parameters."""
    model = context.model
    objective = model.trace_["objective"]
    step = "sweep" if getattr(model, "method", None) == "gibbs" else "iteration"
    pairs: list[tuple[str, Any]] = [("Status", model.status_.name), (f"{step.capitalize()}s", int(model.n_iter_))]
    if model.n_iter_:
        pairs += [
            ("Seconds", float(model.trace_["seconds"][-1])),
            (f"{model.objective_name} at the end", float(objective[-1])),
            (f"After the first {step}", float(objective[0])),
        ]
    pairs += [(text, getattr(model, name)) for name, text in _FITTED.items() if hasattr(model, name)]
    blocks: list[Block] = [Facts(pairs), Note(model.status_.value)]
    if model.n_iter_:
        blocks.append(_trace(model))
    if getattr(model, "diagnostics_", None):
        rows = [
            [name, float(one.mean), float(one.r_hat), float(one.effective)] for name, one in model.diagnostics_.items()
        ]
        heads = ["Quantity", "Mean", "Split R-hat", "Effective draws"]
        caption = "Whether the chain has drawn enough: a split R-hat near 1 is good"
        blocks.append(Table(caption, heads, rows, is_wide=False))
    parameters = [[name, label_text(value)] for name, value in sorted(model.get_params(deep=False).items())]
    blocks.append(Fold("All parameters", Table("Parameters of the model", ["Parameter", "Value"], parameters)))
    return Section("fit", "How the fit went", blocks)


def _trace(model: Any) -> Picture:
    objective = model.trace_["objective"]
    burned = discarded_sweeps(model)
    step = "sweep" if burned else "iteration"
    alt = (
        f"Line of the {model.objective_name.lower()} after each {step}: {objective[0]:,.6g} at first, "
        f"{objective[-1]:,.6g} after {counted(objective.size, step)}."
    )
    if burned:
        alt += f" The first {burned} were discarded and are shaded; violated comparisons are a second line."
    caption = f"{model.objective_name} after each {step}{'; what is shaded was discarded' if burned else ''}."
    return Picture(draw_svg(lambda ax: plots.trace(model, ax=ax)), alt, caption)


def components(context: ReportContext, top: int) -> Section:
    """All components with their strongest columns and rows; biases, where there are any."""
    model = context.model
    strength = {"column": component_strengths(model, "columns"), "row": component_strengths(model, "rows")}

    # share of each component: of the sums over all cells; of any sign, of the roots of the sums of squares
    columns = strength["column"]
    sizes = np.sqrt((columns**2).mean(axis=0)) if is_signed(model) else columns.sum(axis=0)
    shares = sizes / max(sizes.sum(), np.finfo(float).tiny)
    listed = np.argsort(-shares, kind="stable")[:_MAX_COMPONENTS]

    some = f" The {listed.size} largest of {shares.size} are listed." if listed.size < shares.size else ""
    if is_signed(model):
        text = (
            "The product of a cell is a sum over components. A component's strength in a column is what it adds there "
            "for a typical row (root mean square); row and column of the same sign raise each other. Its size is its "
            f"share of the root mean squares of all. {_COUNTED}{some}"
        )
    else:
        unit = (
            ", the lowest threshold being the unit"
            if "levels" in model.offers and model.likelihood_.x_is_positive
            else ""
        )
        text = (
            "The product of a cell is a sum over components. A component's strength in a column is what it adds there "
            f"for an average row, and in a row what it adds for an average column{unit}. Its size is its share of all. "
            f"{_COUNTED}{some}"
        )
    blocks: list[Block] = [Note(text)]
    if listed.size > 1:
        rows = []
        for one in listed:
            best = {side: strongest(values[:, one], _NAMES_IN_OVERVIEW) for side, values in strength.items()}
            names = ["; ".join(context.names(places, side)) for side, places in best.items()]
            rows.append([int(one), float(shares[one]), *names])
        heads = ["Component", "Size", "Strongest columns", "Strongest rows"]
        blocks.append(Table("All components", heads, rows, bar=1))
    parts = []
    for one in listed:
        tables = [
            _strongest(context, values[:, one], side, f"Strongest {side}s of component {one}", "Strength", top)
            for side, values in strength.items()
        ]
        parts.append(Component(f"Component {one}", f"{percent(shares[one])} of all", tables))
    blocks.append(Components(parts))
    if getattr(model, "row_biases_", None) is not None:
        biases = {"column": model.column_biases_, "row": model.row_biases_}
        tables = [
            _strongest(context, np.asarray(values, dtype=np.float64), side, f"Largest biases of {side}s", "Bias", top)
            for side, values in biases.items()
        ]
        blocks.append(Components([Component("Biases", "what a row or a column adds by itself", tables)]))
    return Section("parts", "What was found", blocks)


def _strongest(context: ReportContext, values: Array, side: str, caption: str, head: str, top: int) -> Table:
    best = strongest(values, top)
    rows = [[name, float(values[place])] for name, place in zip(context.names(best, side), best, strict=True)]
    return Table(caption, [side.capitalize(), head], rows, bar=1)


def thresholds(context: ReportContext) -> Section | None:
    """Thresholds between levels."""
    model = context.model
    if "levels" not in model.offers:
        return None
    cuts = np.asarray(model.thresholds_, dtype=np.float64).tolist()
    names = level_names(model.levels_, MAX_LETTERS)
    heads, rows = ["Level", "Begins at"], [[name, cut] for name, cut in zip(placed(names)[1:], cuts, strict=True)]
    if "levels" in model.offers and model.likelihood_.x_is_positive:  # whose scale is free
        heads, rows = [*heads, "Over the lowest"], [[*row, cut / cuts[0]] for row, cut in zip(rows, cuts, strict=True)]
    alt = f"Bars of the {len(names)} levels from {names[0]} to {names[-1]}, each from its threshold to the next."
    caption = "Where each level is, by the product of a row's and a column's factors."
    table = Table("Thresholds, in units of the product", heads, rows, is_wide=False)
    picture = Picture(draw_svg(lambda ax: plots.thresholds(model, ax=ax)), alt, caption)
    return Section("levels", "Where levels begin", [picture, table])


def posterior_predictive(context: ReportContext) -> Section | None:
    """A posterior predictive check, where data can be drawn and the data of the fit are given."""
    model, train = context.model, context.train
    if train is None or "likelihood" not in model.offers:
        return None
    title = "Whether the model draws such data"
    cells = np.prod(context.shape, dtype=float) if model.unseen == "zero" else float(train.nnz)
    sets = int(min(_MAX_SETS, _MAX_CELLS_DRAWN // cells))
    if sets < _MIN_SETS:
        sentence = "The data are too large to draw whole sets of them here. See halfseen.metrics.predictive_check."
        return Section("drawn", title, [Note(sentence)])
    check = predictive_check(model, train, sets)
    names = level_names(check.levels, MAX_LETTERS)
    counts = zip(placed(names), check.observed, check.mean, check.low, check.high, strict=True)
    rows = [[name, *map(float, numbers)] for name, *numbers in counts]
    inside = int(np.count_nonzero((check.low <= check.observed) & (check.observed <= check.high)))
    alt = (
        f"Bars of the data's number of cells by level, points of the mean number in {sets} data sets drawn from the "
        f"model; {inside} of {len(names)} bars end within the interval of the draws."
    )
    caption = f"Cells of the data (bars) and of {sets} data sets drawn from the model (points), by level."
    heads = ["Level", "In the data", "Drawn, mean", "Low", "High"]
    svg = draw_svg(lambda ax: plots.level_histograms({type(model).__name__: check}, ax=ax))
    table = Table("Cells by level", heads, rows, is_wide=False)
    note = Note("Where the model is right, bars end about where points are.")
    return Section("drawn", title, [note, Picture(svg, alt, caption), table])


def coupling(context: ReportContext) -> Section | None:
    """Disclosure risk of uncoupled data, the likeliest couplings, and pictures of some questions."""
    if not context.is_uncoupled:
        return None
    model, title = context.model, "Whose answers"
    if model.posterior_ is None:
        sentence = f'Method {model.method!r} does not tell whose an answer may be; fit with "gibbs" for that.'
        return Section("coupling", title, [Note(sentence)])
    risk, alone = model.disclosure_risk(), model.disclosure_risk(comparisons=False)
    pairs = [
        ("A guess of an answer is right", f"{percent(risk.mean())} of the time in the mean"),
        ("Without any comparisons", f"{percent(alone.mean())} of the time"),
        ("Cells disclosed almost surely", f"{np.count_nonzero(risk > 0.95):,} of {risk.size:,} (above 0.95)"),
    ]
    alt = (
        f"Histogram of the disclosure risk of {risk.size:,} asked cells, mean {risk.mean():.3g}; without comparisons "
        f"it would be {alone.mean():.3g}."
    )
    caption = "How probable the best guess of each asked cell's answer is, with the comparisons and without."
    blocks: list[Block] = [Facts(pairs), Picture(draw_svg(lambda ax: plots.disclosure(model, ax=ax)), alt, caption)]

    found = model.coupling()
    best = np.argsort(-risk, kind="stable")[:_COUPLINGS]
    names = ([label_text(label) for label in labels[best]] for labels in (found.row, found.column))
    numbers = (np.asarray(values)[best].astype(float).tolist() for values in (found.answer, risk, found.mean))
    caption = f"The {best.size} likeliest couplings" if best.size < risk.size else "All couplings, the likeliest first"
    heads = ["Row", "Column", "Likeliest answer", "Probability", "Mean"]
    blocks.append(Table(caption, heads, list(zip(*names, *numbers, strict=True)), bar=3))

    # the questions with the highest mean risk, of those with few enough respondents to be read
    asked = np.diff(model.asked_.indptr)
    sums = np.bincount(model.asked_.rows(), risk, asked.size)
    drawable = np.flatnonzero((asked > 1) & (asked <= _MAX_RESPONDENTS))
    questions = drawable[np.argsort(-(sums[drawable] / asked[drawable]), kind="stable")[:_QUESTIONS]]
    side = "column" if model.questions_are_ == "columns" else "row"
    for label, name in zip(model.model_.labels_at(questions, side), context.names(questions, side), strict=True):

        def draw(ax: Any, label: Any = label) -> None:
            plots.coupling(model, label, ax=ax)

        alt = f"Heat map for question {name}: how probable each answer is for each respondent."
        blocks.append(Picture(draw_svg(draw, height=4.2), alt, f"Who may have given which answer to {name}."))
    return Section("coupling", title, blocks)


def recommendations(context: ReportContext) -> Section | None:
    """The best unseen columns for some rows, where unseen cells are zeros, or values are levels such as stars."""
    model, train, (n, m) = context.model, context.train, context.shape
    has_ratings = getattr(model, "unseen", None) == "zero" or "levels" in model.offers
    if not has_ratings or context.inner_shape is not None or not hasattr(model, "recommend"):
        return None

    # rows with some but not all columns seen, from few to many
    counts = np.diff(model.seen_.in_rows(np.arange(n))[0])
    rows = np.argsort(counts, kind="stable")
    rows = rows[(counts[rows] > 0) & (counts[rows] < m)]
    if rows.size == 0:
        return None
    if rows.size > _ROWS:
        rows = rows[np.unique((np.linspace(0.3, 0.95, _ROWS) * (rows.size - 1)).astype(np.int64))]

    parts = []
    for row, name in zip(rows, context.names(rows, "row"), strict=True):
        found = model.recommend(model.model_.labels_at(np.array([row]), "row"), n=_COLUMNS)
        scored = zip(found.ids[0], found.scores[0], strict=True)
        pairs = [(label_text(label), float(score)) for label, score in scored if score == score]
        note = ""
        if train is not None:
            cells = slice(*train.indptr[row : row + 2])
            best = np.argsort(-train.values[cells], kind="stable")[:_FAVOURITES]
            note = f"Highest of what was seen: {'; '.join(context.names(train.indices[cells][best], 'column'))}"
        table = Table(f"Recommended to row {name}", ["Column", "Score"], pairs, bar=1)
        parts.append(Component(f"Row {name}", note, [table]))
    text = "The best unseen columns for some rows, from those of which little is seen to those of which much is."
    return Section("recommended", "Examples of recommendations", [Note(text), Components(parts)])


def completions(context: ReportContext) -> Section | None:
    """Predictions of some holes, where unseen cells are missing, or nobody was asked."""
    model, train, (n, m) = context.model, context.train, context.shape
    if getattr(model, "unseen", "missing") != "missing":
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
    has_picture = train is not None and not context.has_words
    if train is not None and has_picture:
        alt = (
            f"Two heat maps of up to 20 of {n:,} rows and {m:,} columns: as seen, and with the holes filled and marked."
        )
        X: Any = train if context.inner_shape is None else train.to_dense().reshape(-1, *context.inner_shape)
        by_column = context.units is not None
        svg = draw_svg(lambda ax: plots.completion(model, X, most=20, by_column=by_column, ax=ax), height=4.0)
        blocks.append(Picture(svg, alt, "A part of the table as it was seen, and filled; dots mark what were holes."))
    if context.has_words:
        blocks.append(Note(f"Predicted values are means of levels counted 0, 1, ... from {context.lowest}."))

    rows, columns = np.array(holes, np.int64).T
    heads = ["Row", "Column", "Predicted"]
    cells: list[list[Any]] = [context.names(rows, "row"), context.names(columns, "column")]
    if context.inner_shape is not None:
        cells.append([float(w[0] * h[0]) for w, h in zip(model.W_[rows], model.H_[columns], strict=True)])
    else:
        at = context.labels(rows, columns)
        cells.append(model.predict(*at).tolist())
        if hasattr(model, "predict_level"):
            cells.append(context.levels(model.predict_level(*at)))
            heads.append("Level")
        if hasattr(model, "predict_interval") and getattr(model, "posterior_", True) is not None:
            ends = model.predict_interval(*at, _LEVEL)
            cells += [context.levels(end) if hasattr(model, "levels_") else end.tolist() for end in ends]
            heads += [f"{_LEVEL:.0%} from", "to"]
    lines = list(zip(*cells, strict=True))
    blocks.append(Table("What some holes may hold", heads, lines, is_wide=not has_picture))
    return Section("completed", "Examples of completions", blocks)

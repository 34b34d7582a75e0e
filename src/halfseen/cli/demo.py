"""halfseen demo: the built-in ratings, a table and a survey, fitted and shown on a page."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from halfseen.cli import options
from halfseen.cli.app import Command
from halfseen.cli.streams import JSON, check_output_folder, print_json, write_text
from halfseen.cli.summaries import describe_end
from halfseen.errors import HalfseenError
from halfseen.io import split_cells, write_table

TITLE = "halfseen: the demo"
SUBTITLE = "Partially observed matrices: missing values, ordered levels, and values of unknown places."


class Part(NamedTuple):
    """One kind of data and its results."""

    name: str
    title: str
    description: str
    facts: dict[str, str]
    tables: Sequence[tuple[str, list[str], list[list[str]]]]  # caption, heads, rows
    pictures: Sequence[tuple[Any, str]]  # function of Axes, caption
    reported: tuple[Any, Any, Any]  # model, training and test cells of its report


@click.command(cls=Command)
@click.option("-o", "--output", type=click.Path(), default="halfseen-demo", help="A folder.")
@options.SEED
@options.quiet("Print nothing and show no progress bars.")
@JSON
def demo(output: str, seed: int, quiet: bool, as_json: bool) -> None:
    """Fit the built-in film ratings, a table with holes and a survey without names; show the results.

    Everything is saved in a folder: report.html to view, a full report of each model, the models, the tables.

    \b
    halfseen demo
    halfseen demo -o shown --seed 1
    """
    check_output_folder(output)
    folder = Path(output)
    folder.mkdir(exist_ok=True)
    try:
        parts = [make(folder, seed, quiet) for make in (films, table, survey)]
    except KeyboardInterrupt:
        click.echo(f"Interrupted; the models that were finished are in {folder}, without a report.", err=True)
        sys.exit(130)
    lines = list(_lines(parts))
    write_text(folder / "report.md", "\n".join([f"# {TITLE}", "", *lines, ""]))
    page = _write_page(folder, parts)
    if as_json:
        facts = [{"part": part.name, "title": part.title, "facts": part.facts} for part in parts]
        print_json({"parts": facts, "file": str(page)})
    elif not quiet:
        click.echo("\n".join([*lines, f"See {page}; models and tables are beside it."]))


def _lines(parts: Sequence[Part]) -> Iterator[str]:
    """The page as Markdown."""
    for part in parts:
        yield from (f"## {part.title}", "", part.description, "")
        yield from (f"- {name}: {text}" for name, text in part.facts.items())
        yield ""
        for caption, heads, rows in part.tables:
            yield from (f"{caption}:", "")
            for first, *texts in rows:
                named = (f"{head}: {text}" for head, text in zip(heads[1:], texts, strict=True))
                yield f"- {'. '.join([first, *named])}."
            yield ""


def _write_page(folder: Path, parts: Sequence[Part]) -> Path:
    """Write report.html, and a report of each model beside it; without matplotlib and jinja2, report.md is the page."""
    from halfseen import make_report
    from halfseen.report import check_tools
    from halfseen.report.figures import draw_svg
    from halfseen.report.page import render_page

    try:
        check_tools()
    except HalfseenError as error:
        click.echo(f"note: {error} The content of the page is in report.md.", err=True)
        return folder / "report.md"
    for part in parts:
        make_report(*part.reported, title=part.title).save(folder / f"{part.name}.html")
    page = render_page(
        "halfseen.cli", "demo.html", {"drawn": draw_svg}, title=TITLE, subtitle=SUBTITLE, kind="report",
        anchors=[(part.name, part.title) for part in parts], parts=parts,
    )  # fmt: skip
    return Path(write_text(folder / "report.html", page))


def films(folder: Path, seed: int, quiet: bool) -> Part:
    """Fit OrdNMF to nine tenths of the built-in ratings, and recommend films to three users."""
    import halfseen
    from halfseen.metrics import ranking_scores

    ratings = halfseen.observe(halfseen.datasets.load_movietweetings(), unseen="zero")
    train, test = split_cells(ratings, 0.1, random_state=seed)
    model = halfseen.OrdNMF(n_components=12, random_state=seed, verbose=0 if quiet else 1).fit(train)
    model.save(folder / "films.hs")
    # recommend to users of middling activity
    order, labels = np.argsort(train.seen_per_row(), kind="stable"), np.asarray(train.row_labels)
    users = labels[order[[int(len(order) * share) for share in np.linspace(0.6, 0.95, 3)]]].tolist()
    ids, scores = model.recommend(users, n=5)
    columns = [[user for user in users for _ in range(5)], ids.reshape(-1).tolist(), scores.reshape(-1)]
    write_table(folder / "recommended.csv", ["user", "film", "score"], columns)
    # popularity as factors of rank one
    popularity = np.ones((train.shape[0], 1)), train.seen_per_column()[:, None].astype(float)
    ndcg = np.nanmean(ranking_scores(model, None, test, k=10).ndcg)
    popular = np.nanmean(ranking_scores(popularity, train, test, k=10).ndcg)
    # the films whose expected ratings come from each component the most
    share = model.H_ * model.W_.sum(axis=0)
    share = share / share.sum(axis=1, keepdims=True) * np.sqrt(share.sum(axis=1, keepdims=True))
    strongest = model.column_labels_[np.argsort(-share, axis=0)[:4].T]
    typical = [[str(number), "; ".join(map(str, films))] for number, films in enumerate(strongest, 1)]
    # the films that each user rated highest, beside the recommended ones
    rows = []
    for user, best in zip(users, ids, strict=True):
        row = int(np.flatnonzero(labels == user)[0])
        cells = slice(*train.indptr[row : row + 2])
        highest = train.indices[cells][np.argsort(-train.values[cells], kind="stable")[:4]]
        rows.append([str(user), "; ".join(map(str, model.column_labels_[highest])), "; ".join(best)])
    return Part(
        "films", "Film ratings",
        "Real ratings from 0 to 10, built in: 1.3% of a matrix of users and films. The model learns components of "
        "taste, and the thresholds between the ten levels.",
        {
            "Users and films": " x ".join(f"{size:,}" for size in ratings.shape),
            "Ratings": f"{train.nnz:,} to learn from, {test.nnz:,} held out",
            "Model": "OrdNMF, 12 components", "Fit": describe_end(model).partition(". ")[0],
            "NDCG@10 on held-out ratings": f"{ndcg:.3f} (the most popular films: {popular:.3f})",
        },
        [("The strongest films of each component", ["Component", "Films"], typical),
         ("Films for three users", ["User", "Rated highest", "Recommended"], rows)],
        [
            (lambda ax: halfseen.plots.posterior_predictive(model, train, ax=ax), "Levels of data and of draws."),
            (lambda ax: halfseen.plots.thresholds(model, ax=ax), "Thresholds between the levels, as learned."),
        ],
        (model, train, test),
    )  # fmt: skip


def table(folder: Path, seed: int, quiet: bool) -> Part:
    """Fill the holes of a table, and compare with what was hidden."""
    import halfseen

    n, m, k = 300, 12, 3
    seen, W, H = halfseen.datasets.planted(n, m, k, seen=0.67, noise="gaussian", random_state=seed)
    holes, truth = seen.to_dense(), W @ H.T
    names = [f"column {number + 1}" for number in range(m)]
    model = halfseen.WeightedNMF(k, loss="frobenius", max_iter=1000, tol=1e-7, random_state=seed)
    model.set_params(verbose=0 if quiet else 1).fit(holes).save(folder / "table.hs")
    filled = model.complete(holes)
    write_table(folder / "table-with-holes.csv", names, list(holes.T))
    write_table(folder / "table-filled.csv", names, list(filled.T))
    hidden = np.isnan(holes)
    means = np.broadcast_to(np.nanmean(holes, axis=0), holes.shape)
    error, baseline = (np.sqrt(np.mean((guess - truth)[hidden] ** 2)) for guess in (filled, means))
    cells = np.argwhere(hidden)[:6].tolist()
    first = [[f"row {i + 1}, {names[j]}", f"{filled[i, j]:.2f}", f"{truth[i, j]:.2f}"] for i, j in cells]
    return Part(
        "table", "A table with holes",
        f"A noisy table of {n} rows and rank {k}, a third of it hidden. The hidden values are known here, so that the "
        "filled cells can be compared with them.",
        {
            "Rows and columns": f"{n} x {m}", "Cells hidden": f"{hidden.sum():,} of {hidden.size:,}",
            "Model": f"WeightedNMF, {k} components, squared error", "Fit": describe_end(model).partition(". ")[0],
            "Error in the hidden cells": f"{error:.3f} (column means: {baseline:.3f})",
        },
        [("The first hidden cells", ["Cell", "Filled in", "Truth"], first)],
        [
            (lambda ax: halfseen.plots.completion(model, holes, ax=ax), "Some rows as observed, and completed."),
            (lambda ax: halfseen.plots.trace(model, ax=ax), "Objective of the fit."),
        ],
        (model, holes, np.where(hidden, truth, np.nan)),
    )  # fmt: skip


def survey(folder: Path, seed: int, quiet: bool) -> Part:
    """Sample who gave which answer, and compare with the truth."""
    import halfseen

    n_questions, n_respondents, n_comparisons = 40, 25, 40
    collected, truth = halfseen.datasets.make_survey(n_questions, n_respondents, n_comparisons, random_state=seed)
    model = halfseen.UncoupledNMF(2, n_sweeps=1000, random_state=seed, verbose=0 if quiet else 1).fit(collected)
    model.save(folder / "survey.hs")
    guess = np.asarray(model.complete(collected))
    coupling = model.coupling()
    names, columns = zip(*coupling._asdict().items(), strict=True)
    write_table(folder / "survey-coupling.csv", list(names), list(columns))
    means = np.broadcast_to(truth.mean(axis=1, keepdims=True), truth.shape)
    error, baseline = (np.abs(values - truth).mean() for values in (guess, means))
    risk, alone = model.disclosure_risk().mean(), model.disclosure_risk(comparisons=False).mean()
    answered = truth[collected.row_of_cell(), collected.respondents]  # in the order of the coupling
    hits = np.mean(coupling.answer == answered)
    # the cells whose likeliest answers are the most probable, one per question
    order = np.argsort(-coupling.probability, kind="stable")
    _, firsts = np.unique(coupling.row[order], return_index=True)
    surest = [
        [f"{coupling.column[at]}, {coupling.row[at]}", f"{coupling.answer[at]:.1f}", f"{coupling.probability[at]:.2f}",
         f"{answered[at]:.1f}"] for at in order[np.sort(firsts)[:6]]
    ]  # fmt: skip
    right = f"{hits:.0%} of the time (the model says {risk:.0%}; without comparisons {alone:.0%})"
    return Part(
        "survey", "A survey without names",
        f"{n_questions} questions to {n_respondents} people: the answers were collected without names, and at each "
        f"question {n_comparisons} pairs of people were compared. From this the model samples who gave which answer, "
        "and estimates how far the comparisons disclose it.",
        {
            "Questions and respondents": f"{n_questions} x {n_respondents}",
            "Answers and comparisons": f"{collected.n_answers:,} and {collected.n_comparisons:,}",
            "Model": "UncoupledNMF, 2 components, sampled", "Fit": describe_end(model).partition(". ")[0],
            "Mean error of an answer": f"{error:.2f} (the question's mean: {baseline:.2f})", "A guess is right": right,
        },
        [("The most certain answers", ["Respondent and question", "Likeliest", "Probability", "Truth"], surest)],
        [
            (lambda ax: halfseen.plots.disclosure(model, ax=ax), "Probability of the best guess of each answer."),
            (lambda ax: halfseen.plots.coupling(model, "question 1", ax=ax), "Who may have given which answer."),
        ],
        (model, collected, None),
    )  # fmt: skip

"""The parts of the demo: film ratings, a table with holes, and a survey without names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.cli.summaries import describe_end

#: The caption, the heads and the rows of a small table.
Listing = tuple[str, list[str], list[list[str]]]
#: A drawing on Axes, and what it shows.
Picture = tuple[Callable[[Any], Any], str]


@dataclass(frozen=True)
class Part:
    """One kind of data, what was done with it, and the model, the training and the test cells of its report."""

    name: str
    title: str
    description: str
    facts: Sequence[tuple[str, str]]
    listings: Sequence[Listing]
    pictures: Sequence[Picture]
    reported: tuple[Any, Any, Any]


def films(folder: Path, seed: int, quiet: bool) -> Part:
    """Fit OrdNMF to nine tenths of the built-in ratings, and recommend films to three users."""
    import halfseen
    from halfseen.data import load_movietweetings
    from halfseen.io import split_cells, write_table
    from halfseen.metrics import ranking_scores

    ratings = halfseen.observe(load_movietweetings(), unseen="zero")
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
    typical = [
        [str(number), "; ".join(str(model.column_labels_[film]) for film in np.argsort(-column)[:4])]
        for number, column in enumerate(share.T, 1)
    ]

    def favourites(user: int) -> str:
        """The films that a user rated highest."""
        row = int(np.flatnonzero(labels == user)[0])
        cells = slice(train.indptr[row], train.indptr[row + 1])
        best = np.argsort(-train.values[cells], kind="stable")[:4]
        return "; ".join(str(title) for title in model.column_labels_[train.indices[cells][best]])

    return Part(
        "films",
        "Film ratings",
        "Real ratings from 0 to 10, that come with the library: 1.3% of a matrix of users and films. The model learns "
        "parts of taste, and where the ten levels begin.",
        [
            ("Users and films", " x ".join(f"{size:,}" for size in ratings.shape)),
            ("Ratings", f"{train.nnz:,} to learn from, {test.nnz:,} held out"),
            ("Model", "OrdNMF, 12 components"),
            ("Fit", describe_end(model).partition(". ")[0]),
            ("NDCG@10 on held-out ratings", f"{ndcg:.3f} (the most popular films: {popular:.3f})"),
        ],
        [
            ("The films in which each part is strongest", ["Part", "Films"], typical),
            ("Films for three users", ["User", "Rated highest", "Recommended"],
             [[str(user), favourites(user), "; ".join(best)] for user, best in zip(users, ids, strict=True)]),
        ],
        [
            (lambda ax: halfseen.plots.posterior_predictive(model, train, ax=ax),
             "How often each level is there, and how often in data that the model draws."),
            (lambda ax: halfseen.plots.thresholds(model, ax=ax),
             "Where the levels begin, as the model has learned."),
        ],
        (model, train, test),
    )  # fmt: skip


def table(folder: Path, seed: int, quiet: bool) -> Part:
    """Fill the holes of a table, and compare with what was hidden."""
    import halfseen
    from halfseen.data import planted
    from halfseen.io import write_table

    n, m, k = 300, 12, 3
    seen, W, H = planted(n, m, k, seen=0.67, noise="gaussian", random_state=seed)
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
    first = [
        [f"row {i + 1}, {names[j]}", f"{filled[i, j]:.2f}", f"{truth[i, j]:.2f}"] for i, j in np.argwhere(hidden)[:6]
    ]
    return Part(
        "table",
        "A table with holes",
        f"A noisy table of {n} rows whose columns rise and fall together in {k} ways, a third of it hidden. What was "
        "hidden is known here, so that the filled cells can be judged.",
        [
            ("Rows and columns", f"{n} x {m}"),
            ("Cells hidden", f"{hidden.sum():,} of {hidden.size:,}"),
            ("Model", f"WeightedNMF, {k} components, squared error"),
            ("Fit", describe_end(model).partition(". ")[0]),
            ("Error in the hidden cells", f"{error:.3f} (column means: {baseline:.3f})"),
        ],
        [("The first hidden cells", ["Cell", "Filled in", "Truth"], first)],
        [
            (lambda ax: halfseen.plots.completion(model, holes, ax=ax),
             "Some rows as they were seen, and with their holes filled."),
            (lambda ax: halfseen.plots.trace(model, ax=ax), "How the fit went."),
        ],
        (model, holes, np.where(hidden, truth, np.nan)),
    )  # fmt: skip


def survey(folder: Path, seed: int, quiet: bool) -> Part:
    """Sample who gave which answer, and compare with the truth."""
    import halfseen
    from halfseen.datasets import make_survey
    from halfseen.io import write_table

    n_questions, n_respondents, n_comparisons = 40, 25, 40
    collected, truth = make_survey(n_questions, n_respondents, n_comparisons, random_state=seed)
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
        "survey",
        "A survey without names",
        f"{n_questions} questions to {n_respondents} people: the answers were collected without names, and at each "
        f"question {n_comparisons} pairs of people were compared. From this the model samples who gave which answer, "
        "and tells how far the comparisons disclose it.",
        [
            ("Questions and respondents", f"{n_questions} x {n_respondents}"),
            ("Answers and comparisons", f"{collected.n_answers:,} and {collected.n_comparisons:,}"),
            ("Model", "UncoupledNMF, 2 components, sampled"),
            ("Fit", describe_end(model).partition(". ")[0]),
            ("Mean error of an answer", f"{error:.2f} (the question's mean: {baseline:.2f})"),
            ("A guess is right", right),
        ],
        [("The surest answers, of different questions",
          ["Who, and what", "Likeliest", "Probability", "Truth"], surest)],
        [
            (lambda ax: halfseen.plots.disclosure(model, ax=ax),
             "How probable the best guess of each answer is, with the comparisons and without."),
            (lambda ax: halfseen.plots.coupling(model, "question 1", ax=ax),
             "Who may have given which answer to the first question."),
        ],
        (model, collected, None),
    )  # fmt: skip

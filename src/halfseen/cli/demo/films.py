"""The built-in film ratings: parts one can name, and films for three users."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.cli import accounts
from halfseen.cli.demo.parts import Listing, Part, Picture, Whole

COMPONENTS, USERS, TOP = 12, 3, 5


def part(folder: Path, seed: int, quiet: bool) -> Part:
    """Fit OrdNMF to nine tenths of the ratings, and recommend."""
    import halfseen
    from halfseen.data import load_movietweetings, split_cells, write_table
    from halfseen.metrics import ranking_scores

    ratings = halfseen.observe(load_movietweetings(), unseen="zero")
    train, test = split_cells(ratings, 0.1, random_state=seed)
    model = halfseen.OrdNMF(n_components=COMPONENTS, random_state=seed, verbose=0 if quiet else 1).fit(train)
    model.save(folder / "films.hs")
    users = active_users(train)
    ids, scores = model.recommend(users, n=TOP)
    columns = [[user for user in users for _ in range(TOP)], ids.reshape(-1).tolist(), scores.reshape(-1)]
    write_table(folder / "recommended.csv", ["user", "film", "score"], columns)
    ndcg = float(np.nanmean(ranking_scores(model, None, test, k=10).ndcg))
    popular = float(np.nanmean(ranking_scores(popularity(train), train, test, k=10).ndcg))
    n, m = ratings.shape
    return Part(
        "films",
        "Film ratings",
        "Real ratings from 0 to 10, that come with the library: 1.3% of a matrix of users and films. The model learns "
        "parts of taste, and where the ten levels begin.",
        [
            ("Users and films", f"{n:,} x {m:,}"),
            ("Ratings", f"{train.nnz:,} to learn from, {test.nnz:,} held out"),
            ("Model", f"OrdNMF, {COMPONENTS} components"),
            ("Fit", accounts.of_end(model).partition(". ")[0]),
            ("NDCG@10 on held-out ratings", f"{ndcg:.3f} (the most popular films: {popular:.3f})"),
        ],
        [
            Listing("The films in which each part is strongest", ["Part", "Films"], list(_typical(model))),
            Listing(
                "Films for three users",
                ["User", "Rated highest", "Recommended"],
                [
                    [str(user), "; ".join(favourites(train, user)), "; ".join(films)]
                    for user, films in zip(users, ids, strict=True)
                ],
            ),
        ],
        [
            Picture(
                lambda ax: halfseen.plots.posterior_predictive(model, train, ax=ax),
                "How often each level is there, and how often in data that the model draws.",
            ),
            Picture(
                lambda ax: halfseen.plots.thresholds(model, ax=ax), "Where the levels begin, as the model has learned."
            ),
        ],
        Whole(model, train, test),
    )


def popularity(train: Any) -> tuple[Any, Any]:
    """Factors of rank one that rank films by how often they were rated."""
    n, _ = train.shape
    return np.ones((n, 1)), train.seen_per_column()[:, None].astype(float)


def _typical(model: Any, count: int = 4) -> Iterator[list[str]]:
    """For each component the films whose expected ratings come from it the most."""
    part = model.H_ * model.W_.sum(axis=0)
    part = part / part.sum(axis=1, keepdims=True) * np.sqrt(part.sum(axis=1, keepdims=True))
    for number, strength in enumerate(part.T, 1):
        films = [str(model.column_labels_[film]) for film in np.argsort(-strength)[:count]]
        yield [str(number), "; ".join(films)]


def active_users(ratings: Any) -> list[int]:
    """Users of middling activity, spread over the data."""
    order = np.argsort(ratings.seen_per_row(), kind="stable")
    places = order[[int(len(order) * share) for share in np.linspace(0.6, 0.95, USERS)]]
    users: list[int] = ratings.row_labels[places].tolist()
    return users


def favourites(ratings: Any, user: int, count: int = 4) -> list[str]:
    """The films that a user rated highest."""
    row = int(np.flatnonzero(ratings.row_labels == user)[0])
    cells = slice(ratings.indptr[row], ratings.indptr[row + 1])
    best = np.argsort(-ratings.values[cells], kind="stable")[:count]
    return [str(title) for title in ratings.column_labels[ratings.indices[cells][best]]]

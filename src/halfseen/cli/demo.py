"""halfseen demo: the built-in data, factorized, recommended from, filled, and told of in a small report."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from halfseen.cli import accounts
from halfseen.cli.app import Command
from halfseen.errors import DataError


@click.command(cls=Command)
@click.option("-o", "--output", type=click.Path(), default="halfseen-demo", show_default=True, help="A folder.")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the random starts."
)
def command(output: str, seed: int) -> None:
    """Factorize the built-in film ratings, recommend films, and fill a table with holes.

    Everything is shown, and kept in a folder: a report, the model, the recommendations, the tables.
    """
    folder = Path(output)
    accounts.check_folder(str(folder))
    if folder.exists() and not folder.is_dir():
        raise DataError(f"The place of the demo must be a folder. Found a file at {output!r}. Name another.")
    folder.mkdir(exist_ok=True)
    lines = [*_films(folder, seed), *_table(folder, seed)]
    report = folder / "report.md"
    report.write_text("\n".join(["# halfseen: the demo", "", *lines, ""]), encoding="utf-8")
    click.echo("\n".join(lines))
    click.echo(f"\nThis report, the model and the tables are in {folder}.")


def _films(folder: Path, seed: int) -> Iterator[str]:
    """Ratings of films: factors one can name, and films for three users."""
    import halfseen
    from halfseen.data import load_movietweetings, write_table

    ratings = halfseen.observe(load_movietweetings(), unseen="zero")
    model = halfseen.PoissonFactorization(n_components=12, random_state=seed, verbose=1).fit(ratings)
    model.save(folder / "films.hs")
    yield "## Film ratings"
    yield ""
    yield f"- {accounts.of_data('MovieTweetings (built in)', ratings)}"
    yield f"- {accounts.of_model(model)}"
    yield f"- {accounts.of_end(model)}"
    yield f"- {accounts.of_objective(model)}"
    yield ""
    yield "The films in which each component is strongest, relative to how much they are watched:"
    yield ""
    for component, films in enumerate(_typical_films(model)):
        yield f"{component + 1:>3}. {'; '.join(films)}"
    users = _active_users(ratings)
    ids, scores = model.recommend(users, n=5)
    columns = [[user for user in users for _ in range(5)], ids.reshape(-1).tolist(), scores.reshape(-1)]
    write_table(folder / "recommended.csv", ["user", "film", "score"], columns)
    for user, films in zip(users, ids, strict=True):
        yield ""
        yield f"User {user} rated highest: {'; '.join(_favourites(ratings, user))}."
        yield f"Recommended: {'; '.join(films)}."
    yield ""


def _typical_films(model: Any, count: int = 4) -> Iterator[list[str]]:
    """For each component the films whose expected ratings come from it the most."""
    import numpy as np

    part = model.H_ * model.W_.sum(axis=0)
    part = part / part.sum(axis=1, keepdims=True) * np.sqrt(part.sum(axis=1, keepdims=True))
    for strength in part.T:
        yield [str(model.column_labels_[film]) for film in np.argsort(-strength)[:count]]


def _active_users(ratings: Any, count: int = 3) -> list[int]:
    """Users of middling activity, spread over the data."""
    import numpy as np

    order = np.argsort(ratings.seen_per_row(), kind="stable")
    places = order[[int(len(order) * part) for part in np.linspace(0.6, 0.95, count)]]
    users: list[int] = ratings.row_labels[places].tolist()
    return users


def _favourites(ratings: Any, user: int, count: int = 4) -> list[str]:
    import numpy as np

    row = int(np.flatnonzero(ratings.row_labels == user)[0])
    cells = slice(ratings.indptr[row], ratings.indptr[row + 1])
    best = np.argsort(-ratings.values[cells], kind="stable")[:count]
    return [str(title) for title in ratings.column_labels[ratings.indices[cells][best]]]


def _table(folder: Path, seed: int) -> Iterator[str]:
    """A table with a known truth, a third of it hidden, filled again."""
    import numpy as np

    import halfseen
    from halfseen.data import planted, write_table

    seen, W, H = planted(300, 12, 3, seen=0.67, noise="gaussian", random_state=seed)
    holes, truth = seen.to_dense(), W @ H.T
    model = halfseen.WeightedNMF(3, loss="frobenius", max_iter=1000, tol=1e-7, random_state=seed).fit(holes)
    filled = model.complete(holes)
    names = [f"column {j + 1}" for j in range(holes.shape[1])]
    write_table(folder / "table-with-holes.csv", names, list(holes.T))
    write_table(folder / "table-filled.csv", names, list(filled.T))
    hidden = np.isnan(holes)
    means = np.broadcast_to(np.nanmean(holes, axis=0), holes.shape)

    def error(guess: Any) -> float:
        return float(np.sqrt(np.mean((guess - truth)[hidden] ** 2)))

    yield "## A table with holes"
    yield ""
    yield f"- {holes.shape[0]} x {holes.shape[1]}, {hidden.sum()} cells hidden, true rank 3, noisy."
    yield f"- {accounts.of_end(model)}"
    yield f"- Error in the hidden cells: {error(filled):.3f}; with column means: {error(means):.3f}."

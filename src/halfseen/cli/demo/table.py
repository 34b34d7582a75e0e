"""A table with a known truth, a third of it hidden, filled again."""

from pathlib import Path

import numpy as np

from halfseen.cli import accounts
from halfseen.cli.demo.parts import Listing, Part, Picture, Whole

SHAPE, RANK = (300, 12), 3


def part(folder: Path, seed: int, quiet: bool) -> Part:
    """Fill the holes, and compare with what was hidden."""
    import halfseen
    from halfseen.data import planted, write_table

    seen, W, H = planted(*SHAPE, RANK, seen=0.67, noise="gaussian", random_state=seed)
    holes, truth = seen.to_dense(), W @ H.T
    names = [f"column {number + 1}" for number in range(SHAPE[1])]
    model = halfseen.WeightedNMF(
        RANK, loss="frobenius", max_iter=1000, tol=1e-7, random_state=seed, verbose=0 if quiet else 1
    ).fit(holes)
    model.save(folder / "table.hs")
    filled = model.complete(holes)
    write_table(folder / "table-with-holes.csv", names, list(holes.T))
    write_table(folder / "table-filled.csv", names, list(filled.T))
    hidden = np.isnan(holes)
    means = np.broadcast_to(np.nanmean(holes, axis=0), holes.shape)

    def error(guess: np.ndarray) -> float:
        return float(np.sqrt(np.mean((guess - truth)[hidden] ** 2)))

    return Part(
        "table",
        "A table with holes",
        f"A noisy table of {SHAPE[0]} rows whose columns rise and fall together in {RANK} ways, a third of it hidden. "
        "What was hidden is known here, so that the filled cells can be judged.",
        [
            ("Rows and columns", f"{SHAPE[0]} x {SHAPE[1]}"),
            ("Cells hidden", f"{hidden.sum():,} of {hidden.size:,}"),
            ("Model", f"WeightedNMF, {RANK} components, squared error"),
            ("Fit", accounts.of_end(model).partition(". ")[0]),
            ("Error in the hidden cells", f"{error(filled):.3f} (column means: {error(means):.3f})"),
        ],
        [
            Listing(
                "The first hidden cells",
                ["Cell", "Filled in", "Truth"],
                [
                    [f"row {i + 1}, {names[j]}", f"{filled[i, j]:.2f}", f"{truth[i, j]:.2f}"]
                    for i, j in np.argwhere(hidden)[:6]
                ],
            )
        ],
        [
            Picture(
                lambda ax: halfseen.plots.completion(model, holes, ax=ax),
                "Some rows as they were seen, and with their holes filled.",
            ),
            Picture(lambda ax: halfseen.plots.trace(model, ax=ax), "How the fit went."),
        ],
        Whole(model, holes, np.where(hidden, truth, np.nan)),
    )

"""A survey that keeps names and answers apart: who answered what, as far as it can be told."""

from pathlib import Path
from typing import Any

import numpy as np

from halfseen.cli import accounts
from halfseen.cli.demo.parts import Listing, Part, Picture, Whole

QUESTIONS, RESPONDENTS, COMPARISONS = 40, 25, 40


def part(folder: Path, seed: int, quiet: bool) -> Part:
    """Sample who gave which answer, and compare with the truth."""
    import halfseen
    from halfseen.data import write_table
    from halfseen.data.datasets import make_survey

    collected, truth = make_survey(QUESTIONS, RESPONDENTS, COMPARISONS, random_state=seed)
    model = halfseen.UncoupledNMF(2, n_sweeps=1000, random_state=seed, verbose=0 if quiet else 1).fit(collected)
    model.save(folder / "survey.hs")
    guess = np.asarray(model.complete(collected))
    coupling = model.coupling()
    names, columns = zip(*coupling._asdict().items(), strict=True)
    write_table(folder / "survey-coupling.csv", list(names), list(columns))
    means = np.broadcast_to(truth.mean(axis=1, keepdims=True), truth.shape)
    risk, alone = model.disclosure_risk().mean(), model.disclosure_risk(comparisons=False).mean()
    answered = truth[collected.row_of_cell(), collected.respondents]  # in the order of the coupling
    hits = float(np.mean(coupling.answer == answered))

    def told(at: int) -> list[str]:
        who = f"{coupling.column[at]}, {coupling.row[at]}"
        return [who, f"{coupling.answer[at]:.1f}", f"{coupling.probability[at]:.2f}", f"{answered[at]:.1f}"]

    return Part(
        "survey",
        "A survey without names",
        f"{QUESTIONS} questions to {RESPONDENTS} people: the answers were collected without names, and at each "
        f"question {COMPARISONS} pairs of people were compared. From this the model samples who gave which answer, and "
        "tells how far the comparisons disclose it.",
        [
            ("Questions and respondents", f"{QUESTIONS} x {RESPONDENTS}"),
            ("Answers and comparisons", f"{collected.n_answers:,} and {collected.n_comparisons:,}"),
            ("Model", "UncoupledNMF, 2 components, sampled"),
            ("Fit", accounts.of_end(model).partition(". ")[0]),
            ("Mean error of an answer", f"{_mae(guess, truth):.2f} (the question's mean: {_mae(means, truth):.2f})"),
            (
                "A guess is right",
                f"{hits:.0%} of the time (the model says {risk:.0%}; without comparisons {alone:.0%})",
            ),
        ],
        [
            Listing(
                "The surest answers, of different questions",
                ["Who, and what", "Likeliest", "Probability", "Truth"],
                [told(at) for at in surest(coupling)],
            )
        ],
        _pictures(model),
        Whole(model, collected, None),
    )


def _pictures(model: Any) -> list[Picture]:
    from halfseen import plots

    return [
        Picture(
            lambda ax: plots.disclosure(model, ax=ax),
            "How probable the best guess of each answer is, with the comparisons and without.",
        ),
        Picture(
            lambda ax: plots.coupling(model, "question 1", ax=ax),
            "Who may have given which answer to the first question.",
        ),
    ]


def surest(coupling: Any, count: int = 6) -> list[int]:
    """The cells whose likeliest answers are the most probable, one of a question."""
    order = np.argsort(-coupling.probability, kind="stable")
    _, first = np.unique(coupling.row[order], return_index=True)
    best: list[int] = order[np.sort(first)[:count]].tolist()
    return best


def _mae(guess: np.ndarray, truth: np.ndarray) -> float:
    return float(np.abs(guess - truth).mean())

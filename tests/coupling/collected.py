"""Collections of uncoupled data as three lists, and the same as the library numbers them."""

from types import SimpleNamespace

import numpy as np


def lists(seed=0, shape=(5, 7), *, repeats=0, unknown=0.0, comparisons=6, floor=0.0):
    """Cells asked for (each row and column has some, some may be asked again), answers, comparisons."""
    rng = np.random.default_rng(seed)
    X = floor + rng.gamma(4, 1, shape)
    asked = [(i, j) for i in range(shape[0]) for j in range(shape[1]) if (i + j) % 3 or rng.random() < 0.3]
    answers = [(i, X[i, j]) for i, j in asked]
    compared = []
    for i in range(shape[0]):
        of_row = [j for one, j in asked if one == i]
        for _ in range(comparisons):
            a, b = sorted(rng.choice(of_row, 2, replace=False), key=lambda j: -X[i, j])
            hidden = rng.choice([None, "high", "low"], p=[1 - unknown, unknown / 2, unknown / 2])
            compared.append((i, None if hidden == "high" else int(a), None if hidden == "low" else int(b)))
    asked += [asked[k] for k in rng.integers(0, len(asked), repeats)]
    return asked, answers, compared


def seen_of(asked, answers, comparisons, shape, labels=(None, None)):
    """What `Uncoupled` makes of three lists of numbers, also of a cell compared with itself, which it would drop."""
    cells = sorted(set(asked))
    number = {cell: p for p, cell in enumerate(cells)}
    answers = sorted(answers)
    sides = [tuple(-1 if j is None else number[i, j] for j in pair) for i, *pair in sorted(comparisons, key=str)]
    wins, losses = np.zeros(len(cells)), np.zeros(len(cells))
    for high, low in sides:
        if high >= 0:
            wins[high] += 1
        if low >= 0:
            losses[low] += 1
    times = np.array([asked.count(cell) for cell in cells], float)
    questions = sorted(i for i, *_ in comparisons)
    rows = np.array([i for i, _ in cells])
    return SimpleNamespace(
        n_questions=shape[0],
        n_respondents=shape[1],
        indptr=np.searchsorted(rows, np.arange(shape[0] + 1)),
        respondents=np.array([j for _, j in cells]),
        times=None if (times == 1).all() else times,
        answers=np.array([x for _, x in answers]),
        answer_indptr=np.searchsorted([i for i, _ in answers], np.arange(shape[0] + 1)),
        comparison_indptr=np.searchsorted(questions, np.arange(shape[0] + 1)),
        n_comparisons=len(comparisons),
        question_labels=labels[0],
        respondent_labels=labels[1],
        row_of_cell=lambda: rows,
        wins=lambda: wins,
        losses=lambda: losses,
    )

"""Collections to fit UncoupledNMF on, all that a fitted model says, and collections as three lists and loops."""

import warnings
from types import SimpleNamespace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen import Uncoupled, UncoupledNMF

METHODS = ("gibbs", "unmf", "bayes", "decode")
#: Few iterations, for laws that hold after any number of them.
SHORT = {
    "gibbs": {"n_sweeps": 30, "n_burn": 10, "max_sweeps": 30, "n_draws": 10, "max_iter": 30},
    "unmf": {"max_iter": 20},
    "bayes": {"max_iter": 20},
    "decode": {"max_iter": 20, "loss": "kullback-leibler"},
}


def planted(seed, shape, *, rank=2, noise=0.4, hidden=0.2, level=0.0):
    """A matrix of low rank with noise, and the same with some cells hidden (NaN), but none of the first row.

    Ids are numbered as they appear: so they are their positions.
    """
    random = np.random.default_rng(seed)
    X = level + random.normal(size=(shape[0], rank)) @ random.normal(size=(rank, shape[1]))
    X += noise * random.normal(size=shape)
    seen = X.copy()
    seen[1:][random.random(shape)[1:] < hidden] = np.nan
    return X, seen


def three_lists(X, n_comparisons, seed=0):
    """Who was asked, the answers, and comparisons of random pairs, of a matrix with holes."""
    random = np.random.default_rng(seed)
    asked = [(int(i), int(j)) for i, j in zip(*np.nonzero(~np.isnan(X)), strict=True)]
    answers = [(i, float(X[i, j])) for i, j in asked]
    compared = []
    for i, row in enumerate(X):
        present = np.flatnonzero(~np.isnan(row))
        for _ in range(n_comparisons if present.size > 1 else 0):
            one, other = random.choice(present, 2, replace=False)
            higher, lower = (one, other) if row[one] >= row[other] else (other, one)
            compared.append((i, int(higher), int(lower)))
            if row[one] == row[other]:
                compared.append((i, int(lower), int(higher)))
    return asked, answers, compared


def odd_lists(seed=0):
    """Lists with all that may be odd: lost answers, too many, equal ones, half-known comparisons, asked twice."""
    X = np.round(planted(seed, (12, 7), level=6.0)[1], 0)
    asked, answers, compared = three_lists(X, 8, seed)
    answers = [answer for place, answer in enumerate(answers) if place % 9]
    answers += [(2, 5.0), (5, 6.5)]
    for place in range(3, len(compared), 7):
        compared[place] = (*compared[place][:2], None)
    for place in range(5, len(compared), 7):
        compared[place] = (compared[place][0], None, compared[place][2])
    return asked + asked[5:8], answers, compared


def labelled(lists):
    """The same with names: questions q0, q1, ..., respondents r0, r1, ..."""
    asked, answers, compared = lists

    def name(j):
        return None if j is None else f"r{j}"

    return (
        [(f"q{i}", name(j)) for i, j in asked], [(f"q{i}", x) for i, x in answers],
        [(f"q{i}", name(high), name(low)) for i, high, low in compared],
    )  # fmt: skip


def fitted(seen, method="gibbs", n_components=2, **how):
    """A model that may have stopped too early to have settled."""
    model = UncoupledNMF(n_components, method=method, **{"random_state": 0, "n_jobs": 1, **how})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(seen)


def said(model, seen):
    """All that a model says, but for the time it took."""
    rows, columns = (places.reshape(-1) for places in np.indices(seen.shape))
    if model.row_labels_ is not None:
        rows, columns = model.row_labels_[rows], model.column_labels_[columns]
    told = {
        "W": model.W_, "H": model.H_, "predict": model.predict(rows, columns), "complete": model.complete(seen),
        "status": model.status_.name, "n_iter": model.n_iter_, "clipped": model.n_clipped_,
    }  # fmt: skip
    told |= {f"trace {name}": values for name, values in model.trace_.items() if name != "seconds"}
    told |= {name: getattr(model, name) for name in ("w_", "balance_", "error_bounds_") if hasattr(model, name)}
    if model.method == "gibbs":
        low, high = model.predict_interval(rows, columns, 0.8)
        told |= {"low": low, "high": high, "risk": model.disclosure_risk()}
        told |= {f"coupling {name}": values for name, values in model.coupling()._asdict().items()}
        told |= {f"diagnostics {name}": np.array(mixing) for name, mixing in model.diagnostics_.items()}
    return told


def assert_same(one, other, but=()):
    """Bit by bit, but for what is named."""
    assert one.keys() == other.keys()
    for name in one.keys() - set(but):
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def collected(lists, **how):
    """What was collected, whatever is odd about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Uncoupled(*lists, **how)


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

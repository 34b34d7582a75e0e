"""Collections to fit UncoupledNMF on, and all that a fitted model says, to be compared bit by bit."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen import Uncoupled, UncoupledNMF

METHODS = ("gibbs", "unmf", "bayes", "decode")
#: Few iterations, for laws that hold after any number of them.
SHORT = {
    "gibbs": {"n_sweeps": 30, "n_burn": 10, "n_draws": 10, "max_iter": 30},
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
    told |= {name: getattr(model, name) for name in ("w_", "balance_") if hasattr(model, name)}
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

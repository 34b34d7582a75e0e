"""The whole chain: what is drawn from the model stays so under its sweeps.

Parameters are drawn from the priors, values from the parameters, and what a collection would keep from the values.
Started from the truth, a right chain leaves the joint distribution as it is, whatever it does to single draws: over
many such starts, the mean of anything before a sweep is its mean after it. (Geweke's test, each run by itself, so that
no draw depends on another.)

Comparisons are part of it: with trust t, each tells the truth with the chance 1 / (1 + exp(-t)).
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from halfseen.coupling.sampling.chain import Chain, Noise
from halfseen.coupling.sampling.layout import Layout
from halfseen.engines.threads import Threads
from tests.coupling import sampling_oracle as oracle

#: Further from 0 than this, a mean is not 0 by chance: one test in 150,000.
DEVIATIONS = 4.5
TRUST = 1.0
#: Columns that answered. Of row 1 an answer is lost; of row 2 nobody wrote down who the last one was; column 2 was
#: asked question 3 twice, and compared as it answered first.
ANSWERED = [[0, 1, 2, 3], [0, 1, 3], [1, 2, 3, 4], [0, 2, 2]]
N_KNOWN_COLUMNS = 4
LOST = [0, 1, 0, 0]
PAIRS = [[(0, 1), (1, 2), (0, 1)], [(0, 3)], [(1, 2), (2, 3)], [(0, 2)]]
#: Columns that are compared with others nobody named.
HALF_KNOWN = [[3], [1], [3, 3], [2]]
#: Below this the common noise s0 does not go: so high that a third of its prior would lie there. (The library takes it
#: from the data; a prior must not know them.)
LEAST_NOISE = 0.4


@pytest.fixture(autouse=True)
def one_thread():
    """Thousands of small products are slower on many threads."""
    with threadpool_limits(1):
        yield


def collect(drawn, random, compared):
    """What would be collected, and the coupling: the token of every asking, the unknown values, all values."""
    rows = [[drawn.value(random, i, j) for j in columns] for i, columns in enumerate(ANSWERED)]
    cells, answers, tokens, unknown, higher, lower = [], [], [], [], [], []
    for i, (columns, values) in enumerate(zip(ANSWERED, rows, strict=True)):
        lost = list(random.permutation(len(values))[: LOST[i]])
        order = sorted(set(range(len(values))) - set(lost), key=lambda place: values[place]) + lost
        tokens += [order.index(place) for place in range(len(values))]
        answers.append([values[place] for place in order[: len(values) - len(lost)]])
        unknown += [values[place] for place in lost]
        asked = sorted({j for j in columns if j < N_KNOWN_COLUMNS})
        number = {j: len(cells) + place for place, j in enumerate(asked)}
        cells += [(i, j, columns.count(j)) for j in asked]
        value = {j: values[columns.index(j)] for j in asked}
        for a, b in PAIRS[i] if compared else ():
            true = (value[a] >= value[b]) == (random.random() < 1 / (1 + np.exp(-TRUST)))
            higher.append(number[a if true else b])
            lower.append(number[b if true else a])
        for j in HALF_KNOWN[i] if compared else ():
            won = random.random() < oracle.standing(value[j], answers[-1])
            higher.append(number[j] if won else -1)
            lower.append(-1 if won else number[j])
    i, j, times = np.array(cells).T
    seen = SimpleNamespace(
        indptr=np.searchsorted(i, np.arange(5)), respondents=j, times=times.astype(float), n_asked=len(cells),
        n_respondents=N_KNOWN_COLUMNS, answers=np.concatenate(answers),
        answer_indptr=np.append(0, np.cumsum([len(row) for row in answers])),
        higher=np.array(higher, np.int64), lower=np.array(lower, np.int64),
    )  # fmt: skip
    return seen, np.array(tokens), np.array(unknown), np.concatenate(rows)


def started(drawn, random, compared):
    """A chain that stands at the truth, its values in their own units."""
    seen, tokens, unknown, values = collect(drawn, random, compared)
    layout = replace(Layout.of(seen), least_noise=LEAST_NOISE)
    layout.tokens[:] = np.where(layout.is_answer, layout.told(layout.tokens), 0.0)
    chain = Chain(layout, drawn.A.shape[1], TRUST, random, Threads(1))
    assert layout.rows.indices.tolist() == [j for columns in ANSWERED for j in columns]
    chain.A, chain.B = drawn.A.copy(), drawn.B.copy()
    chain.noise = Noise(drawn.row_noise.copy(), drawn.column_noise.copy(), drawn.common)
    chain.tokens[~layout.is_answer] = unknown
    chain.token_of_cell = tokens + layout.rows.indptr[layout.row_of_cell]
    chain.cell_of_token = np.argsort(chain.token_of_cell)
    chain.mean = drawn.mean[layout.row_of_cell, layout.rows.indices]
    assert np.abs(chain.x - values).max() <= 1e-9 * np.abs(values).max()
    return chain


def features(chain):
    """What is compared before and after: bounded, or with thin tails, because the priors have none of thinner ones."""
    layout, (rows, columns, common) = chain.layout, chain.noise
    row, column, x = layout.row_of_cell, layout.rows.indices, chain.x
    means = np.einsum("ck,ck->c", chain.A[row], chain.B[column])
    assert np.abs(chain.mean - means).max() <= 1e-9 * np.abs(means).max()
    residual = (x - chain.mean) / np.sqrt(rows[row] * columns[column])
    sizes = [np.log1p((factor**2).sum(axis=1)) for factor in (chain.A, chain.B)]
    log_rows, log_columns = np.log(rows), np.log(columns)
    told = {
        "log rho": log_rows.mean(), "log rho squared": (log_rows**2).mean(),
        "log s": log_columns.mean(), "log s squared": (log_columns**2).mean(), "log s of nobody": log_columns[4],
        "log s0": np.log(common), "log s0 squared": np.log(common) ** 2,
        "s0 near its bound": float(common < 1.5 * LEAST_NOISE),
        "s0 with s": np.log(common) * log_columns.mean(),
        "a": np.tanh(chain.A).mean(), "size of a": sizes[0].mean(), "size of a squared": (sizes[0] ** 2).mean(),
        "b": np.tanh(chain.B).mean(), "size of b": sizes[1].mean(), "size of b squared": (sizes[1] ** 2).mean(),
        "a of a row": np.tanh(chain.A[0] - chain.A[1])[0], "b of nobody": sizes[1][4],
        "spread of a": np.log(np.var(chain.A[:, 0])), "spread of b": np.log(np.var(chain.B[:, 0])),
        "mean of cells": np.tanh(chain.mean / 2).mean(), "size of means": np.log1p(chain.mean**2).mean(),
        "residual": residual.mean(), "residual squared": (residual**2).mean(),
        "residual of a cell": residual[5] ** 2, "of nobody": residual[row == 2][3] ** 2,
        "residual with mean": (residual * np.tanh(chain.mean)).mean(),
        "residual with rho": (residual**2 * log_rows[row]).mean(),
        "residual with s": (residual**2 * log_columns[column]).mean(),
        "residual with a": (residual**2 * sizes[0][row]).mean(),
        "residual with b": (residual**2 * sizes[1][column]).mean(),
        "value and mean": (np.tanh(x) * np.tanh(chain.mean)).mean(), "two values": np.tanh(x[0] - x[1]),
        "unknown": np.tanh(chain.tokens[~layout.is_answer]).mean(),
        "size of unknown": np.log1p(chain.tokens[~layout.is_answer] ** 2).mean(),
        "who lost": float(chain.token_of_cell[4] == 6) + 2.0 * (chain.token_of_cell[5] == 6),
    }  # fmt: skip
    if layout.beaten.cells.size:
        told["violated"] = chain.violations()
        answers = [chain.tokens[(row == i) & layout.is_answer].tolist() for i in range(4)]
        standings = np.array([oracle.standing(value, answers[i]) for value, i in zip(x.tolist(), row, strict=True)])
        won, lost = layout.alone.T
        told["half known"] = np.sum(won * np.log(standings) + lost * np.log(1 - standings))
    return np.array(list(told.values())), list(told)


@pytest.mark.parametrize(
    ("compared", "k", "starts"), [(False, 1, 800), (True, 2, 1500)], ids=["couplings alike", "compared"]
)
def test_sweeps_leave_the_joint_distribution_as_it_is(compared, k, starts):
    random = np.random.default_rng([compared, k])
    differences = []
    for _ in range(starts):
        chain = started(oracle.Drawn(random, (4, 5), k, LEAST_NOISE), random, compared)
        before, names = features(chain)
        for _ in range(5):
            chain.sweep(2)
        differences.append(features(chain)[0] - before)
    differences = np.array(differences)
    spread = differences.std(axis=0, ddof=1)
    assert (spread > 0).all(), np.array(names)[spread == 0]
    found = differences.mean(axis=0) / (spread / np.sqrt(starts))
    worst = np.argmax(np.abs(found))
    assert abs(found[worst]) < DEVIATIONS, (names[worst], found[worst])

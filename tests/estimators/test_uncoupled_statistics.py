"""UncoupledNMF on planted data: honest intervals and risks, and how near it comes to coupled data.

Bounds are those that were promised before anything was measured, or differ from what is expected by four standard
errors.
"""

import numpy as np
import pytest

from halfseen import Uncoupled
from tests.estimators.uncoupled_cases import fitted, planted

SHAPE, NOISE = (150, 16), 0.4
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def runs():
    """Of every seed: the whole matrix, what was seen of it, the collection of 12 comparisons a row, and its fit."""
    found = []
    for seed in SEEDS:
        X, cells = planted(seed, SHAPE, noise=NOISE)
        seen = Uncoupled.from_coupled(cells, 12, random_state=seed)
        found.append((X, cells, seen, fitted(seen, n_components=3, random_state=seed)))
    return found


def test_intervals_of_hidden_cells_cover_what_they_should(runs):
    for level, least, most in ((0.9, 0.85, 0.95), (0.5, 0.42, 0.58)):
        covered = []
        for X, cells, _, model in runs:
            hidden = np.nonzero(np.isnan(cells))
            low, high = model.predict_interval(*hidden, level)
            covered.append((X[hidden] >= low) & (X[hidden] <= high))
            assert least - 0.03 < covered[-1].mean() < most + 0.03
        assert least < np.concatenate(covered).mean() < most


def test_intervals_of_asked_cells_cover_at_least_what_they_should(runs):
    """Their ends are answers, rounded outward."""
    for _, cells, _, model in runs:
        asked = np.nonzero(~np.isnan(cells))
        low, high = model.predict_interval(*asked, 0.9)
        assert ((cells[asked] >= low) & (cells[asked] <= high)).mean() > 0.88
        assert np.isin([low, high], cells).all()


def test_the_disclosure_risk_is_how_often_the_guess_is_right(runs):
    """In all, and of cells of little and of much risk; within four standard errors of so many guesses, and 0.03."""
    risk, right = [], []
    for _, cells, _, model in runs:
        coupling = model.coupling()
        risk.append(model.disclosure_risk())
        right.append(coupling.answer == cells[coupling.row, coupling.column])
    risk, right = np.concatenate(risk), np.concatenate(right)
    for part in (risk >= 0, risk < 0.4, (risk >= 0.4) & (risk < 0.7), risk >= 0.7):
        guesses = right[part]
        assert guesses.size > 200
        error = np.sqrt(guesses.mean() * (1 - guesses.mean()) / guesses.size)
        assert abs(guesses.mean() - risk[part].mean()) < 4 * error + 0.03


def errors(X, cells, *predictions):
    hidden = np.isnan(cells)
    return [np.abs(predicted - X)[hidden].mean() for predicted in predictions]


def test_sampling_comes_near_to_coupled_data_and_leaves_the_others_behind(runs):
    """Coupled: every pair compared, and believed. The way from the row mean to it is gone for nine tenths."""
    for seed, (X, cells, seen, model) in zip(SEEDS, runs, strict=True):
        every_pair = Uncoupled.from_coupled(cells, 999, random_state=0)
        known = fitted(every_pair, n_components=3, trust=60.0, random_state=seed)
        assert (known.disclosure_risk() == 1).all()
        decode = fitted(seen, "decode", n_components=3, random_state=seed)
        row_means = np.broadcast_to(np.nanmean(cells, axis=1)[:, None], SHAPE)
        predictions = (model.complete(seen), decode.complete(seen), row_means, known.complete(every_pair))
        sampled, by_decoding, by_row, coupled = errors(X, cells, *predictions)
        assert sampled < min(by_decoding, by_row)
        assert sampled - coupled < 0.1 * (by_row - coupled)


def test_more_comparisons_leave_less_in_doubt(runs):
    _, cells, _, model = runs[0]
    few = fitted(Uncoupled.from_coupled(cells, 3, random_state=0), n_components=3)
    assert few.disclosure_risk().mean() < model.disclosure_risk().mean()
    hidden = np.nonzero(np.isnan(cells))
    assert (
        np.diff(few.predict_interval(*hidden), axis=0).mean() > np.diff(model.predict_interval(*hidden), axis=0).mean()
    )


def test_the_noise_that_was_planted_is_found(runs):
    """A cell's typical deviation, within a quarter."""
    for _, _, _, model in runs:
        draws = model._posterior.draws
        rows = draws.scale[:, None] ** 2 * draws.row_noise
        variances = np.einsum("id,jd->ijd", rows, draws.column_noise)
        assert abs(np.exp(np.log(variances).mean() / 2) / NOISE - 1) < 0.25

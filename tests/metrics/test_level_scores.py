"""Scores of ordinal probabilities against plain Python, scikit-learn and known truths."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss, mean_absolute_error

from halfseen.errors import DataError, ParameterError
from halfseen.metrics import calibration, log_score, ranked_probability_score
from tests.data.strategies import CALM
from tests.estimators.models import refused

SCORES = (ranked_probability_score, log_score, calibration)


def forecasts(seed=0, n=50, n_levels=4):
    """Probabilities, and levels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_levels), n)
    return np.array([rng.choice(n_levels, p=row) for row in p]), p


def plain_rps(level, row):
    return sum((sum(row[: v + 1]) - (level <= v)) ** 2 for v in range(len(row) - 1))


@CALM
@given(st.integers(0, 1000), st.integers(1, 20), st.integers(2, 7), st.booleans())
def test_against_plain_python(seed, n, n_levels, weighted):
    levels, p = forecasts(seed, n, n_levels)
    w = np.random.default_rng(seed).random(n) if weighted else np.ones(n)
    weights = w if weighted else None
    rps = sum(w * [plain_rps(y, row) for y, row in zip(levels.tolist(), p.tolist(), strict=True)]) / sum(w)
    logs = sum(w * [math.log(row[y]) for y, row in zip(levels.tolist(), p.tolist(), strict=True)]) / sum(w)
    assert_allclose(ranked_probability_score(levels, p, weights=weights), rps, rtol=1e-12)
    assert_allclose(log_score(levels, p, weights=weights), logs, rtol=1e-12)


def test_log_score_is_minus_scikit_learns_log_loss():
    levels, p = forecasts()
    w = np.arange(1.0, 51)
    assert_allclose(log_score(levels, p, weights=w), -log_loss(levels, p, sample_weight=w), rtol=1e-12)


def test_a_certain_forecast_is_off_by_as_many_levels():
    rng = np.random.default_rng(0)
    seen, said = rng.integers(0, 5, (2, 40))
    assert_allclose(ranked_probability_score(seen, np.eye(5)[said]), mean_absolute_error(seen, said), rtol=1e-12)
    assert ranked_probability_score(seen, np.eye(5)[seen]) == log_score(seen, np.eye(5)[seen]) == 0


def test_the_ranked_probability_score_of_two_levels_is_briers():
    levels, p = forecasts(n_levels=2)
    assert_allclose(ranked_probability_score(levels, p), np.mean((p[:, 1] - levels) ** 2), rtol=1e-12)


@pytest.mark.parametrize("score", [ranked_probability_score, lambda *cells, **how: -log_score(*cells, **how)])
def test_honest_probabilities_are_best(score):
    """The expected score under p itself, by weights, against that of every other forecast tried."""
    rng = np.random.default_rng(0)
    for p in rng.dirichlet(np.ones(4), 20):
        honest = score(np.arange(4), np.tile(p, (4, 1)), weights=p)
        for q in rng.dirichlet(np.ones(4), 20):
            assert score(np.arange(4), np.tile(q, (4, 1)), weights=p) > honest


def test_a_level_that_was_said_to_be_impossible():
    p = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert log_score([0, 1], p) == -np.inf
    assert log_score([0, 1], p, weights=[0, 3]) == np.log(0.5)


def test_levels_by_their_labels():
    levels, p = forecasts()
    for labels in (np.array([0.5, 1.0, 1.5, 2.0]), ["low", "middle", "high", "top"], [10, 20, 30, 40]):
        named = np.asarray(labels)[levels]
        for score in (ranked_probability_score, log_score):
            assert score(named, p, labels=labels) == score(levels, p)
        assert_array_equal(calibration(named, p, labels=labels).found, calibration(levels, p).found)
        assert set(calibration(named, p, labels=labels).level.tolist()) == set(labels)


def test_levels_as_floats_are_levels():
    levels, p = forecasts()
    assert ranked_probability_score(levels.astype(float), p) == ranked_probability_score(levels, p)


def plain_calibration(levels, p, edges, w):
    """Lines (level, lower, upper, cells, predicted, found)."""
    for level in range(len(p[0])):
        for lower, upper in itertools.pairwise(edges):
            last = upper == edges[-1]
            here = [u for u, row in enumerate(p) if lower <= row[level] and (row[level] < upper or last)]
            if cells := sum(w[u] for u in here):
                predicted = sum(w[u] * p[u][level] for u in here) / cells
                yield level, lower, upper, cells, predicted, sum(w[u] * (levels[u] == level) for u in here) / cells


@CALM
@given(st.integers(0, 1000), st.sampled_from([1, 4, 10, [0, 0.1, 0.5, 1], (0.0, 1.0)]), st.booleans())
def test_calibration_against_plain_python(seed, bins, weighted):
    levels, p = forecasts(seed, 30)
    p[:3] = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.25, 0.25, 0.5]]  # on the edges of bins
    w = np.random.default_rng(seed).integers(0, 3, 30) if weighted else np.ones(30)
    w[0] = 1
    edges = np.linspace(0, 1, bins + 1) if isinstance(bins, int) else bins
    table = calibration(levels, p, bins, weights=w if weighted else None)
    expected = list(plain_calibration(levels.tolist(), p.tolist(), list(edges), w.tolist()))
    assert_allclose(np.array(table).T, expected, rtol=1e-12)


def test_calibration_is_scikit_learns():
    levels, p = forecasts(n=500)
    table = calibration(levels, p, bins=8)
    for level in range(4):
        found, predicted = calibration_curve(levels == level, p[:, level], n_bins=8)
        assert_allclose(table.found[table.level == level], found, rtol=1e-12)
        assert_allclose(table.predicted[table.level == level], predicted, rtol=1e-12)


def test_true_probabilities_are_calibrated():
    levels, p = forecasts(n=20_000)
    table = calibration(levels, p, bins=5)
    spread = np.sqrt(table.predicted * (1 - table.predicted) / table.cells)
    assert np.all(np.abs(table.found - table.predicted) < 5 * spread)
    frame = pd.DataFrame(table._asdict())
    assert list(frame) == ["level", "lower", "upper", "cells", "predicted", "found"]
    assert frame.groupby("level")["cells"].sum().tolist() == [20_000] * 4


@pytest.mark.parametrize("score", SCORES)
def test_single_precision_sums_to_one_nearly(score):
    levels, p = forecasts()
    assert_allclose(np.array(score(levels, p.astype(np.float32))), np.array(score(levels, p)), rtol=1e-5)


@pytest.mark.parametrize("score", SCORES)
def test_invalid_forecasts_are_refused(score):
    levels, p = forecasts()
    for wrong in (p[0], p[:0], p[:, :1], p.astype(str), 2 * p, np.where(p > 0.5, np.nan, p), p - [0.5, -0.5, 0, 0]):
        with refused(DataError, "probabilities"):
            score(levels, wrong)
    with refused(DataError, "levels", found="(49,)"):
        score(levels[1:], p)
    for wrong in (4, -1, 1.5, np.nan):
        with refused(DataError, "levels", found=f"{float(wrong)}", where="at position 7"):
            score(np.where(np.arange(50) == 7, wrong, levels * 1.0), p)
    with refused(DataError, "labels", found="(3,)"):
        score(levels, p, labels=[1, 2, 3])
    for wrong in (np.ones(49), -np.ones(50), np.full(50, np.nan), np.zeros(50), ["a"] * 50):
        with refused(DataError, "weights"):
            score(levels, p, weights=wrong)


@pytest.mark.parametrize("bins", [0, -1, 2.5, None, [0, 0.5], [0.1, 1], [0, 0.5, 0.5, 1], "ten", [], True])
def test_invalid_bins_are_refused(bins):
    with refused(ParameterError, "bins"):
        calibration(*forecasts(), bins)

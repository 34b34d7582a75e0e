"""UncoupledNMF on planted data: honest intervals and risks, how near it comes to coupled data, and answers that are
hard on a sampler: few levels, no noise at all, no variation, huge and tiny numbers.

Bounds are those that were promised before anything was measured, or differ from what is expected by four standard
errors. Where couplings can be found that fit exactly, noise has nothing to keep it from 0: predictions must stay right.
"""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import Uncoupled, UncoupledNMF
from halfseen.sampling.coupling_chain import SCALE_DEVIATION
from tests.uncoupled.cases import METHODS, SHORT, collected, fitted, planted, said, three_lists

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


def test_intervals_cover_what_they_should(runs):
    for level, least, most in ((0.9, 0.85, 0.95), (0.5, 0.42, 0.58)):
        covered = []
        for X, cells, _, model in runs:
            hidden = np.nonzero(np.isnan(cells))
            low, high = model.predict_interval(*hidden, level)
            covered.append((X[hidden] >= low) & (X[hidden] <= high))
            assert least - 0.03 < covered[-1].mean() < most + 0.03
        assert least < np.concatenate(covered).mean() < most
    # Their ends are answers, rounded outward.
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


def test_more_comparisons_leave_less_in_doubt_and_the_planted_noise_is_found(runs):
    _, cells, _, model = runs[0]
    few = fitted(Uncoupled.from_coupled(cells, 3, random_state=0), n_components=3)
    assert few.disclosure_risk().mean() < model.disclosure_risk().mean()
    hidden = np.nonzero(np.isnan(cells))
    assert (
        np.diff(few.predict_interval(*hidden), axis=0).mean() > np.diff(model.predict_interval(*hidden), axis=0).mean()
    )
    # A cell's typical deviation, within a quarter.
    for _, _, _, model in runs:
        draws = model.posterior_.draws
        rows = draws.scale[:, None] ** 2 * draws.row_noise
        variances = np.einsum("id,jd->ijd", rows, draws.column_noise)
        assert abs(np.exp(np.log(variances).mean() / 2) / NOISE - 1) < 0.25


HARD_SHAPE = (60, 14)


def some_constant(X):
    """One row in twenty has the same answer everywhere, one that is never summed exactly."""
    X = X.copy()
    X[::20] = np.where(np.isnan(X[::20]), np.nan, 10 / 3)
    return X


#: How the matrix is made, the noise in it, and how far from the row mean's error the sampler's must be.
HARD = {
    "levels 1..5": (lambda X: np.clip(np.round(3 + 1.1 * X), 1, 5), 0.5, 0.8),
    "exact low rank, rounded": (lambda X: np.round(3 + 1.1 * X), 0.0, 0.5),
    "exact low rank": (np.array, 0.0, 0.1),
    "constant rows": (some_constant, 0.4, 0.8),
}


@pytest.mark.parametrize("scale", ["auto", "question"])
@pytest.mark.parametrize("case", HARD.values(), ids=HARD)
def test_what_is_said_stays_within_reason(case, scale):
    """Intervals of 90 % hold at least 87 % of hidden cells, within four standard errors, and risks are within a tenth
    of what they should be; noise may only be thought larger than it is, where there is none."""
    make, noise, most = case
    covered, risk, right, errors, by_row = [], [], [], [], []
    for seed in SEEDS:
        X, cells = (make(matrix) for matrix in planted(seed, HARD_SHAPE, noise=noise))
        seen = Uncoupled.from_coupled(cells, 12, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = fitted(seen, n_components=3, random_state=seed, scale=scale)
        hidden = np.nonzero(np.isnan(cells))
        low, high = model.predict_interval(*hidden)
        covered.append((X[hidden] >= low) & (X[hidden] <= high))
        coupling = model.coupling()
        risk.append(coupling.probability)
        right.append(coupling.answer == cells[coupling.row, coupling.column])
        errors.append(np.abs(model.predict(*hidden) - X[hidden]))
        by_row.append(np.abs(np.nanmean(cells, axis=1)[hidden[0]] - X[hidden]))
        # s0 stays above 1e-4. Of s_j^2 and rho_i it leaves, where nothing deviates, these parts on average, and of the
        # scale of a question, in units of its own, a factor of exp(-cells * 0.5^2).
        least = 3e-4 / (3 + HARD_SHAPE[0] / 2) * 2 / (2 + HARD_SHAPE[1] / 2) / 2
        assert (model.trace_["noise"] ** 2 > least * np.exp(-2 * HARD_SHAPE[1] * SCALE_DEVIATION**2)).all()
    covered, risk, right, errors, by_row = map(np.concatenate, (covered, risk, right, errors, by_row))
    assert covered.mean() > 0.87 - 4 * np.sqrt(0.87 * 0.13 / covered.size)
    assert abs(risk.mean() - right.mean()) < 0.1
    assert errors.mean() < most * by_row.mean()


def test_questions_that_all_answered_alike_make_others_no_surer():
    """Ten of sixty, in units of their own: intervals of the others hold what they should, and so does their noise."""
    covered = []
    for seed in SEEDS:
        X, cells = planted(seed, HARD_SHAPE, noise=0.7)
        constant = np.arange(len(X)) % 6 == 0
        cells[constant] = np.where(np.isnan(cells[constant]), np.nan, np.round(X[constant, :1], 1))
        model = fitted(
            Uncoupled.from_coupled(cells, 8, random_state=seed), n_components=3, scale="question", random_state=seed
        )
        hidden = np.nonzero(np.isnan(cells) & ~constant[:, None])
        low, high = model.predict_interval(*hidden)
        covered.append((X[hidden] >= low) & (X[hidden] <= high))
        draws = model.posterior_.draws
        variances = np.einsum("id,jd->ijd", draws.scale[:, None] ** 2 * draws.row_noise, draws.column_noise)[~constant]
        assert abs(np.exp(np.log(variances).mean() / 2) / 0.7 - 1) < 0.25
    covered = np.concatenate(covered)
    assert covered.mean() > 0.87 - 4 * np.sqrt(0.87 * 0.13 / covered.size)


def test_where_nothing_varies_all_is_known():
    """One answer a question, given by all: every interval is about it, and every guess is right."""
    rows = np.array([10 / 3, 1.0, 5.0, 0.1])
    cells = np.tile(rows[:, None], (1, 8))
    cells[1:, 2] = np.nan
    seen = Uncoupled.from_coupled(cells, 6, random_state=0)
    for scale in ("all", "question", "auto"):
        model = fitted(seen, n_components=2, scale=scale)
        assert_array_equal(model.disclosure_risk(), 1.0)
        low, high = model.predict_interval(np.arange(1, 4), [2] * 3)
        assert ((low < rows[1:]) & (rows[1:] < high)).all()
        asked = np.nonzero(~np.isnan(cells))
        assert_allclose(model.predict(*asked), rows[asked[0]], rtol=1e-14)


def scaled(factor):
    """Answers that were not rounded, some lost: where a lost answer starts, at the mean of the others, is none of them,
    whatever the unit."""
    asked, answers, compared = three_lists(planted(0, (12, 7), level=6.0)[1], 8)
    return collected((asked, [(i, factor * x) for place, (i, x) in enumerate(answers) if place % 9], compared))


@pytest.fixture(scope="module")
def unscaled():
    seen = scaled(1.0)
    assert seen.n_answers < seen.n_asked
    return {method: said(fitted(seen, method, **SHORT[method]), seen) for method in METHODS}


SCALED = ("predict", "complete", "low", "high", "coupling answer", "coupling mean", "diagnostics predicted cells")
UNSCALED = ("risk", "trace violated", "trace objective", "trace noise", "trace spread", "diagnostics noise")


def silently(seen, method, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", "UncoupledNMF: (Stopped at max_iter|All sweeps were drawn)"
        )  # too few, and meant so
        return said(UncoupledNMF(2, method=method, random_state=0, n_jobs=1, **SHORT[method], **how).fit(seen), seen)


@pytest.mark.parametrize("factor", [2.0**60, 2.0**-84, 1e18, 1e-25, 3.0])
def test_a_factor_changes_nothing_but_the_unit(unscaled, factor):
    """Answers of 1e18 or 1e-25. Of powers of two, to the last bit; else rounding alone, carried through 30 sweeps."""
    found, rtol = silently(scaled(factor), "gibbs"), 1e-6 if factor in (1e18, 1e-25, 3.0) else 0.0
    for name in SCALED:
        unit = [factor, 1.0, 1.0] if name.startswith("diagnostics") else factor
        assert_allclose(found[name] / unit, unscaled["gibbs"][name], rtol=rtol, err_msg=name)
    for name in UNSCALED:
        assert_allclose(found[name], unscaled["gibbs"][name], rtol=rtol, err_msg=name)


@pytest.mark.parametrize("factor", [2.0**60, 2.0**-84, 1e18, 1e-25])
@pytest.mark.parametrize("method", ["unmf", "decode"])
def test_losses_follow_the_unit(unscaled, method, factor):
    found = silently(scaled(factor), method)
    assert_allclose(found["predict"] / factor, unscaled[method]["predict"], rtol=1e-6)
    assert found["clipped"] == unscaled[method]["clipped"]


def test_gamma_priors_take_any_numbers():
    """They know a unit, so predictions need not follow it; large answers outweigh the priors, and are found."""
    seen = scaled(1e18)
    found = silently(seen, "bayes")
    assert_allclose(found["predict"].mean(), seen.answers.mean(), rtol=0.3)
    assert np.abs(silently(scaled(1e-25), "bayes")["predict"]).max() < 1.0

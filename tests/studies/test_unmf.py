"""How the study of uncoupled data measures: folds, collections, baselines, calibration, goals."""

from dataclasses import replace

import numpy as np
import pytest

from halfseen.datasets import unmf_synthetic
from halfseen.engines.threads import Threads
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.studies.unmf import methods
from halfseen.studies.unmf.figures import goals_table
from halfseen.studies.unmf.measuring import EARLIER, LARGEST, Measured, calibrated, judgements
from halfseen.studies.unmf.methods import (
    BASELINES,
    GIBBS,
    HALF,
    KS,
    METHODS,
    NAMES,
    RANDOM,
    ROW_MEAN,
    WHOLE,
    ZERO,
    best_k,
    coupled_bayes,
    coupled_nmf,
    known_chain,
    row_means,
)
from halfseen.studies.unmf.protocol import FULL, GRID, MOVIELENS, QUICK, SETS, SUSHI, SYNTHETIC, Fold, folds
from tests.studies.data import needs_data_of


@pytest.fixture(scope="module")
def holey():
    """A matrix with ties and holes, 12 x 7."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 6, (12, 7)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.fixture(scope="module")
def fold(holey):
    return folds(observe(holey), 3)[1]


# The paper's settings.


def test_the_settings_are_those_of_section_5():
    assert tuple(range(6, 29, 2)) == GRID == FULL.grid
    assert [of.k for of in SETS] == [2, 3, 3]
    assert [of.guesses for of in SETS] == [(0.5, 6.5), (1.0, 5.0), (0.0, 4.0)]
    assert [of.letter for of in SETS] == ["a", "b", "c"]
    assert [(method.how["balance"], method.k) for method in (ZERO, HALF)] == [("zero", None), ("half", None)]


def test_the_synthetic_matrix_is_drawn_anew_for_every_number():
    for draw in (0, 3):
        np.testing.assert_array_equal(SYNTHETIC.load(draw).to_dense(), unmf_synthetic(draw))


@needs_data_of("unmf/figure1")
def test_the_real_matrices_go_by_positions():
    shapes = {MOVIELENS: (943, 18), SUSHI: (5000, 12)}  # the paper has 11 groups of sushi, the file 12
    for of, shape in shapes.items():
        X = of.load(0)
        assert X.shape == shape
        assert X.row_labels is None is X.column_labels
        assert of.guesses[0] <= X.values.min() < X.values.max() <= of.guesses[1]


# Folds.


def test_every_cell_is_for_test_once_and_for_training_in_the_other_folds(holey):
    parts = folds(observe(holey), 3)
    assert len(parts) == 5
    tests = np.array([~np.isnan(part.test.to_dense()) for part in parts])
    np.testing.assert_array_equal(tests.sum(axis=0), ~np.isnan(holey))
    sizes = tests.sum(axis=(1, 2))
    assert sizes.max() - sizes.min() <= 1
    for part, is_test in zip(parts, tests, strict=True):
        train = part.train.to_dense()
        np.testing.assert_array_equal(np.isnan(train), np.isnan(holey) | is_test)
        np.testing.assert_array_equal(train[~np.isnan(train)], holey[~np.isnan(train)])
        np.testing.assert_array_equal(part.test.to_dense()[is_test], holey[is_test])


def test_folds_are_consecutive_parts_of_one_order_of_the_seen_cells(holey):
    order = np.random.default_rng(8).permutation((~np.isnan(holey)).sum())
    seen = np.flatnonzero(~np.isnan(holey))
    start = 0
    for part in folds(observe(holey), 8):
        rows, columns = part.places
        np.testing.assert_array_equal(rows * 7 + columns, np.sort(seen[order[start : start + rows.size]]))
        start += rows.size


def test_every_fold_has_a_seed_of_its_own(holey):
    assert [part.seed for part in folds(observe(holey), 4)] == [4, 5, 6, 7, 8]


def test_the_error_is_the_mean_absolute_one(fold):
    truth = fold.test.to_dense()
    assert fold.error(np.full(fold.test.nnz, 2.0)) == pytest.approx(np.nanmean(np.abs(truth - 2.0)))


# What is collected.


def test_only_training_cells_are_asked_answered_and_compared(fold):
    seen, train = fold.taken_apart(6, 0), fold.train.to_dense()
    rows, columns = seen.row_of_cell(), seen.respondents
    np.testing.assert_array_equal(np.stack([rows, columns]), np.nonzero(~np.isnan(train)))
    for row in range(12):
        answers = seen.answers[seen.answer_indptr[row] : seen.answer_indptr[row + 1]]
        np.testing.assert_array_equal(answers, np.sort(train[row][~np.isnan(train[row])]))
    values = train[rows, columns]
    assert np.all(values[seen.higher] >= values[seen.lower])
    np.testing.assert_array_equal(rows[seen.higher], rows[seen.lower])


def test_a_row_of_l_cells_has_as_many_pairs_as_wanted_or_all(fold):
    sizes = (~np.isnan(fold.train.to_dense())).sum(axis=1)
    for n_per in (6, 28):
        seen = fold.taken_apart(n_per, 0)
        pairs = {(row, *sorted(pair)) for row, *pair in _compared(seen)}
        counts = np.bincount([row for row, *_ in pairs], minlength=12)
        np.testing.assert_array_equal(counts, np.minimum(n_per, sizes * (sizes - 1) // 2))


def _compared(seen):
    return zip(seen.row_of_cell()[seen.higher], seen.higher, seen.lower, strict=True)


# No test value reaches a prediction.


@pytest.fixture(scope="module")
def blind(fold):
    """The same fold with other values at its test cells."""
    return fold._replace(test=replace(fold.test, values=fold.test.values + 1e6))


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_do_not_know_the_test_values(name, fold, blind):
    answers = [BASELINES[name](one, MOVIELENS, QUICK) for one in (fold, blind)]
    np.testing.assert_array_equal(*answers)
    assert answers[0].shape == fold.test.values.shape


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_methods_do_not_know_the_test_values(method, fold, blind):
    answers = [method.fit(one.taken_apart(6, 0), 2, QUICK, one.seed).predict(*one.places) for one in (fold, blind)]
    np.testing.assert_array_equal(*answers)


def test_methods_have_the_components_and_the_length_they_say(fold):
    seen = fold.taken_apart(6, 0)
    models = {method.name: method.fit(seen, 2, QUICK, 0) for method in METHODS}
    components = {name: model.W_.shape[1] for name, model in models.items()}
    assert components == {method.name: method.k or 2 for method in METHODS}
    assert components[GIBBS.name] == 5
    assert len(models[GIBBS.name].trace_["objective"]) == QUICK.sweeps
    assert models[HALF.name].n_iter_ == QUICK.iterations


# Baselines.


def test_the_row_mean_by_hand(fold):
    train = fold.train.to_dense()
    train[5] = np.nan
    without = fold._replace(train=observe(train))
    expected = [np.nanmean(train) if row == 5 else np.nanmean(train[row]) for row in range(12)]
    np.testing.assert_allclose(row_means(without.train), expected, rtol=1e-12)
    predicted = BASELINES[ROW_MEAN](without, MOVIELENS, QUICK)
    np.testing.assert_allclose(predicted, np.array(expected)[fold.places[0]], rtol=1e-12)


@pytest.mark.parametrize("of", SETS, ids=lambda of: of.title)
def test_random_guesses_are_uniform_in_the_paper_s_range(of):
    many = Observed.from_cells(np.arange(20_000), np.zeros(20_000, int), np.ones(20_000), (20_000, 1))
    drawn = BASELINES[RANDOM](Fold(many, many, 0), of, QUICK)
    low, high = of.guesses
    assert low <= drawn.min() < drawn.max() < high
    np.testing.assert_allclose(np.quantile((drawn - low) / (high - low), [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


def test_coupled_nmf_finds_planted_factors():
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(40, 2)) @ rng.gamma(2.0, size=(2, 15))
    part = folds(observe(X), 0)[0]
    predicted = coupled_nmf(part.train, part.places, 2, FULL._replace(iterations=2000), 0)
    np.testing.assert_allclose(predicted, X[part.places], rtol=0.05)


def test_k_is_the_one_with_the_lowest_error_over_folds_of_the_training_cells(fold, monkeypatch):
    """A factorization that is wrong by a known amount for each k, and remembers what it was given."""
    given, train = [], fold.train.to_dense()
    off = {1: 0.9, 2: 0.5, 3: 0.1, 5: 0.4}

    def known(fitted, places, k, effort, seed):
        given.append((k, fitted.to_dense(), places))
        return train[places] + off[k] * (-1) ** np.arange(places[0].size)

    monkeypatch.setattr(methods, "coupled_nmf", known)
    assert best_k(fold.train, KS, QUICK, 0) == 3
    judged = {k: np.zeros(train.shape, int) for k in KS}
    for k, fitted, places in given:
        judged[k][places] += 1
        assert np.isnan(fitted[places]).all()  # what judges is not fitted
        assert (~np.isnan(fitted)).sum() + places[0].size == fold.train.nnz
    for times in judged.values():
        np.testing.assert_array_equal(times, ~np.isnan(train))


# The sampler with the coupling known.


def test_every_cell_keeps_its_own_value(fold):
    with Threads(1) as threads:
        chain = known_chain(fold.train, 2, 0, threads)
        for _ in range(3):
            np.testing.assert_allclose(chain.layout.in_answer_units(chain.x), fold.train.values, rtol=1e-12)
            chain.sweep(0)
    np.testing.assert_array_equal(chain.token_of_cell[chain.cell_of_token], np.arange(fold.train.nnz))


def test_coupled_bayes_is_as_good_as_least_squares_with_the_true_columns():
    """Planted factors: who knows the columns can do no better than least squares in each row."""
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
    part = folds(observe(5 + A @ B.T + rng.normal(scale=0.3, size=(60, 20))), 0)[0]
    train = part.train.to_dense()
    known = np.empty((60, 20))
    for row, values in enumerate(train):
        at = ~np.isnan(values)
        known[row] = 5 + B @ np.linalg.lstsq(B[at], values[at] - 5, rcond=None)[0]
    whole = coupled_bayes(part.train, 2, 400, 100, 0)
    assert whole.shape == (60, 20)
    assert part.error(whole[part.places]) < 1.1 * part.error(known[part.places])


# Calibration.


class Told:
    """A model that says what it is told."""

    def __init__(self, low, high, answer, risk):
        self.low, self.high, self.answer, self.risk = low, high, answer, risk

    def predict_interval(self, rows, columns, level):
        assert level == 0.9
        return self.low[rows, columns], self.high[rows, columns]

    def coupling(self):
        return self

    def disclosure_risk(self):
        return self.risk


def test_coverage_and_hits_are_counted_by_the_truth(fold, holey):
    rng = np.random.default_rng(5)
    low = rng.uniform(0, 4, holey.shape)
    high = low + rng.uniform(0, 3, holey.shape)
    train, (rows, columns) = fold.train.to_dense(), fold.places
    answer = np.where(rng.random(fold.train.nnz) < 0.4, fold.train.values, 77.0)
    found = calibrated(Told(low, high, answer, np.linspace(0, 1, 5)), fold)
    inside = [low[i, j] <= holey[i, j] <= high[i, j] for i, j in zip(rows, columns, strict=True)]
    assert found.coverage == pytest.approx(np.mean(inside))
    assert 0 < found.coverage < 1
    assert found.width == pytest.approx(np.mean([high[i, j] - low[i, j] for i, j in zip(rows, columns, strict=True)]))
    assert found.risk == pytest.approx(0.5)
    assert found.hits == pytest.approx(np.mean(answer == train[~np.isnan(train)]))


def test_with_all_pairs_compared_and_distinct_values_all_guesses_hit():
    X = observe(np.random.default_rng(0).normal(5, 1, (6, 6)))
    part = folds(X, 0)[0]
    found = calibrated(GIBBS.fit(part.taken_apart(28, 0), 2, QUICK, 0), part)
    assert (found.risk, found.hits) == (1.0, 1.0)


# Goals.


def invented(of, **means):
    """Measurements with these means at every number of comparisons, two runs around them."""
    errors = {name: np.full((2, 12), 1.0) for name in NAMES}
    for name, mean in means.items():
        errors[name] = np.array([[0.9], [1.1]]) * np.broadcast_to(mean, 12)
    return Measured(of, FULL, (2, 2), errors, {})


def verdicts(found):
    return {(one.method, one.comparisons): one.reached for one in judgements(found)}


def test_means_and_spreads_are_over_runs():
    found = invented(MOVIELENS, **{HALF.name: np.arange(12.0)})
    np.testing.assert_allclose(found.means(HALF.name), np.arange(12))
    np.testing.assert_allclose(found.spreads(HALF.name), np.arange(12) * 0.1 * np.sqrt(2))
    assert found.at(HALF.name, 10) == pytest.approx(2.0)


def test_a_largest_error_is_reached_up_to_itself():
    errors = np.full(12, 0.39)
    errors[GRID.index(28)] = 0.389
    found = verdicts(invented(MOVIELENS, **{GIBBS.name: errors, ROW_MEAN: 0.439}))
    assert found[GIBBS.name, 12]
    assert not found[GIBBS.name, 28]
    assert LARGEST["SUSHI groups"] == {12: 0.905, 28: 0.9}


def test_the_worst_place_against_the_row_mean_decides():
    errors = np.full(12, 0.5)
    errors[4] = 1.03
    (worst,) = [one for one in judgements(invented(SYNTHETIC, **{GIBBS.name: errors})) if "row mean" in one.wanted]
    assert (worst.comparisons, worst.reached) == (GRID[4], False)
    assert worst.ours == pytest.approx(1.03)
    errors[4] = 1.01
    (worst,) = [one for one in judgements(invented(SYNTHETIC, **{GIBBS.name: errors})) if "row mean" in one.wanted]
    assert (worst.comparisons, worst.reached) == (GRID[4], True)


def test_figures_of_before_are_met_within_five_percent():
    earlier = EARLIER[WHOLE.name, SUSHI.title]
    errors = np.ones(12)
    for n_per, factor in ((6, 1.049), (12, 0.951), (20, 1.06), (28, 0.94)):
        errors[GRID.index(n_per)] = factor * earlier[n_per]
    found = verdicts(invented(SUSHI, **{WHOLE.name: errors}))
    assert [found[WHOLE.name, n_per] for n_per in (6, 12, 20, 28)] == [True, True, False, False]


def test_the_table_says_reached_or_short():
    good = invented(SYNTHETIC, **{GIBBS.name: 0.6})
    bad = invented(SYNTHETIC, **{GIBBS.name: 0.7})
    assert goals_table([good]).column("reached") == ["yes", "yes"]
    assert goals_table([good, bad]).column("reached") == ["yes", "yes", "short", "yes"]
    assert goals_table([good]).column("goal")[0] == "at most 0.660"

"""Folds, uncoupled training cells, baselines, calibration and claims of the study of uncoupled data."""

import pickle

import numpy as np
import pytest

from halfseen import Uncoupled
from halfseen.datasets import unmf_synthetic
from halfseen.engines.threads import Threads
from halfseen.io import observe
from halfseen.model import Status
from halfseen.observed import Observed
from halfseen.studies import unmf_methods as unmf
from halfseen.studies.framework import MIN_DRAWS, PASS, SHORT
from halfseen.studies.unmf_methods import DATASETS, FULL, GIBBS, GRID, HALF, METHODS, QUICK, ROW_MEAN, ZERO, make_folds
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
    return make_folds(observe(holey), 3)[1]


def test_the_settings_are_those_of_section_5():
    assert tuple(range(6, 29, 2)) == GRID == FULL.grid
    assert [dataset.k for dataset in DATASETS] == [2, 3, 3]
    np.testing.assert_array_equal(unmf.SYNTHETIC.load(3).to_dense(), unmf_synthetic(3))
    assert [dataset.guesses for dataset in DATASETS] == [(0.5, 6.5), (1.0, 5.0), (0.0, 4.0)]
    assert [dataset.letter for dataset in DATASETS] == ["a", "b", "c"]
    for of_loss, loss in ((METHODS[:3], None), (METHODS[3:6], "kullback-leibler")):
        assert [method.parameters["balance"] for method in of_loss] == ["zero", "half", "full"]
        assert {(method.parameters["method"], method.parameters.get("loss"), method.k) for method in of_loss} == {
            ("unmf", loss, None)
        }
    assert all(dataset.draws * FULL.folds >= MIN_DRAWS for dataset in DATASETS)


@needs_data_of("unmf/figure1")
def test_the_real_matrices_go_by_positions():
    shapes = {unmf.MOVIELENS: (943, 18), unmf.SUSHI: (5000, 12)}  # the paper has 11 groups of sushi, the file 12
    for dataset, shape in shapes.items():
        X = dataset.load(0)
        assert X.shape == shape
        assert X.row_labels is None is X.column_labels
        assert dataset.guesses[0] <= X.values.min() < X.values.max() <= dataset.guesses[1]


def test_folds(holey):
    parts = make_folds(observe(holey), 3)
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
        assert part.mae(np.full(part.test.nnz, 2.0)) == pytest.approx(np.mean(np.abs(holey[is_test] - 2.0)))
    assert [part.seed for part in parts] == [3, 4, 5, 6, 7]
    order = np.random.default_rng(8).permutation((~np.isnan(holey)).sum())
    seen = np.flatnonzero(~np.isnan(holey))
    start = 0
    for part in make_folds(observe(holey), 8):
        rows, columns = part.test_cells
        np.testing.assert_array_equal(rows * 7 + columns, np.sort(seen[order[start : start + rows.size]]))
        start += rows.size


def test_only_training_cells_are_asked_answered_and_compared(fold):
    seen, train = fold.uncouple(6, 0), fold.train.to_dense()
    rows, columns = seen.row_of_cell(), seen.respondents
    np.testing.assert_array_equal(np.stack([rows, columns]), np.nonzero(~np.isnan(train)))
    for row in range(12):
        answers = seen.answers[seen.answer_indptr[row] : seen.answer_indptr[row + 1]]
        np.testing.assert_array_equal(answers, np.sort(train[row][~np.isnan(train[row])]))
    values = train[rows, columns]
    assert np.all(values[seen.higher] >= values[seen.lower])
    np.testing.assert_array_equal(rows[seen.higher], rows[seen.lower])


def test_no_prediction_depends_on_a_test_value(holey, monkeypatch):
    """A whole fold of the study, and the same one with other values at its test cells."""
    other = holey.copy()
    other[make_folds(observe(holey), 3)[1].test_cells] += 1e6
    seen: dict[int, list] = {0: [], 1: []}
    monkeypatch.setattr(unmf.Fold, "mae", lambda fold, predicted: seen[number].append(predicted) or 0.0)
    for number, X in enumerate((holey, other)):
        task = unmf.FoldTask(unmf.MOVIELENS, QUICK._replace(grid=(6,)), 3, 1, observe(X))
        unmf.fold_errors(task)
        assert (task.fold.test.values.max() > 1e6) == (number == 1)
    assert len(seen[0]) == len(unmf.BASELINES) + len(METHODS) + 8
    for first, second in zip(*seen.values(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_methods_have_the_components_and_the_length_they_say_and_the_row_mean_is_one(fold):
    seen = fold.uncouple(6, 0)
    models = {method.name: method.fit(seen, 2, QUICK, 0) for method in METHODS}
    components = {name: model.W_.shape[1] for name, model in models.items()}
    assert components == {method.name: method.k or 2 for method in METHODS}
    assert components[GIBBS.name] == 5
    assert len(models[GIBBS.name].trace_["objective"]) in (QUICK.sweeps, 2 * QUICK.sweeps)
    longer = HALF.fit(seen, 2, FULL, 0)
    assert models[HALF.name].n_iter_ == QUICK.max_iter < longer.n_iter_ < FULL.max_iter
    assert longer.status_ is Status.CONVERGED
    train = fold.train.to_dense()
    train[5] = np.nan
    without = fold._replace(train=observe(train))
    expected = [np.nanmean(train) if row == 5 else np.nanmean(train[row]) for row in range(12)]
    predicted = unmf.predict_baseline(ROW_MEAN, without, unmf.MOVIELENS, QUICK)
    assert 5 in fold.test_cells[0]
    np.testing.assert_allclose(predicted, np.array(expected)[fold.test_cells[0]], rtol=1e-12)
    with Threads(1) as threads:
        chain = unmf.known_chain(fold.train, 2, 0, threads)
        for _ in range(3):
            np.testing.assert_allclose(chain.layout.in_answer_units(chain.x), fold.train.values, rtol=1e-12)
            chain.sweep(0)
    np.testing.assert_array_equal(chain.token_of_cell[chain.cell_of_token], np.arange(fold.train.nnz))


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.title)
def test_random_guesses_are_uniform_in_the_paper_s_range(dataset):
    many = Observed.from_cells(np.arange(20_000), np.zeros(20_000, int), np.ones(20_000), (20_000, 1))
    drawn = unmf.predict_baseline(unmf.RANDOM, unmf.Fold(many, many, 0), dataset, QUICK)
    low, high = dataset.guesses
    assert low <= drawn.min() < drawn.max() < high
    np.testing.assert_allclose(np.quantile((drawn - low) / (high - low), [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


def test_coupled_baselines_find_planted_factors():
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(40, 2)) @ rng.gamma(2.0, size=(2, 15))
    part = make_folds(observe(X), 0)[0]
    predicted = unmf.coupled_nmf(part.train, part.test_cells, 2, FULL._replace(max_iter=2000, tol=0.0), 0)
    np.testing.assert_allclose(predicted, X[part.test_cells], rtol=0.05)
    # Planted factors: given the columns, nothing is better than least squares in each row.
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
    part = make_folds(observe(5 + A @ B.T + rng.normal(scale=0.3, size=(60, 20))), 0)[0]
    train = part.train.to_dense()
    known = np.empty((60, 20))
    for row, values in enumerate(train):
        at = ~np.isnan(values)
        known[row] = 5 + B @ np.linalg.lstsq(B[at], values[at] - 5, rcond=None)[0]
    whole = unmf.coupled_bayes(part.train, 2, 400, 100, 0)
    assert whole.shape == (60, 20)
    assert part.mae(whole[part.test_cells]) < 1.1 * part.mae(known[part.test_cells])


def test_k_is_the_one_with_the_lowest_error_over_folds_of_the_training_cells(fold, monkeypatch):
    """A factorization that is wrong by a known amount for each k, and remembers what it was given."""
    given, train = [], fold.train.to_dense()
    off = {1: 0.9, 2: 0.5, 3: 0.1, 5: 0.4}

    def known(fitted, places, k, config, seed):
        given.append((k, fitted.to_dense(), places))
        return train[places] + off[k] * (-1) ** np.arange(places[0].size)

    monkeypatch.setattr(unmf, "coupled_nmf", known)
    assert unmf.best_k(fold.train, unmf.KS, QUICK, 0) == 3
    judged = {k: np.zeros(train.shape, int) for k in unmf.KS}
    for k, fitted, places in given:
        judged[k][places] += 1
        assert np.isnan(fitted[places]).all()  # what judges is not fitted
        assert (~np.isnan(fitted)).sum() + places[0].size == fold.train.nnz
    for times in judged.values():
        np.testing.assert_array_equal(times, ~np.isnan(train))


# The sampler with the coupling known.


class Fixed:
    """A model with given intervals, answers and risks."""

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
    train, (rows, columns) = fold.train.to_dense(), fold.test_cells
    answer = np.where(rng.random(fold.train.nnz) < 0.4, fold.train.values, 77.0)
    ours = unmf.calibrate(Fixed(low, high, answer, np.linspace(0, 1, 5)), fold)
    inside = [low[i, j] <= holey[i, j] <= high[i, j] for i, j in zip(rows, columns, strict=True)]
    assert ours.coverage == pytest.approx(np.mean(inside))
    assert 0 < ours.coverage < 1
    assert ours.width == pytest.approx(np.mean([high[i, j] - low[i, j] for i, j in zip(rows, columns, strict=True)]))
    assert ours.risk == pytest.approx(0.5)
    assert ours.hits == pytest.approx(np.mean(answer == train[~np.isnan(train)]))


def invented(few, many, oracle=(0.5,) * 10, **spread):
    """Errors of ten folds: of λ zero and λ half with the fewest and the most comparisons, and of the oracle."""
    grid = QUICK._replace(grid=(6, 28))
    errors = {name: np.full((10, 2), 2.0) for name in unmf.NAMES}
    around = np.linspace(-1, 1, 10)
    for name, first, last in zip((ZERO.name, HALF.name), few, many, strict=True):
        width = spread.get("zero" if name == ZERO.name else "half", 0.01)
        errors[name] = np.stack([first + width * around, np.full(10, last)], axis=1)
    errors[unmf.ORACLE] = np.stack([oracle, oracle], axis=1)
    curves = unmf.ErrorCurves(unmf.MOVIELENS, grid, (2, 2), errors, {}, {})
    return [goal.state for goal in unmf.claims(curves)]


def test_claims():
    """Of each λ: improves, approaches the oracle, below RANDOM (2.0 here); then λ half is the stable one."""
    oracle = np.linspace(0.4, 0.7, 10)
    good = invented((1.5, 0.9), (0.65, 0.6), oracle, zero=0.3, half=0.1)  # the mean 0.55 and the S.D. 0.101 make 0.651
    assert good == [PASS] * 7
    assert invented((1.5, 0.9), (0.66, 0.6), oracle, zero=0.3) == [PASS, SHORT, PASS, *[PASS] * 4]
    assert invented((0.6, 0.9), (0.65, 0.6), oracle, zero=0.3)[:3] == [SHORT, SHORT, PASS]  # gets worse
    assert invented((2.5, 0.9), (2.1, 0.6), oracle, zero=0.3)[:3] == [PASS, SHORT, SHORT]  # no better than guesses
    assert invented((1.5, 0.9), (0.6, 0.6), oracle, zero=0.1, half=0.2)[-1] == SHORT  # larger S.D.
    assert invented((0.8, 0.9), (0.6, 0.6), oracle, zero=0.3, half=0.2)[-1] == SHORT  # larger mean


def test_one_fold_that_diverges_is_no_improvement_of_most_folds():
    errors = {name: np.full((10, 2), 2.0) for name in unmf.NAMES}
    errors[HALF.name] = np.full((10, 2), 0.6)
    errors[HALF.name][0, 0], errors[HALF.name][1:, 0] = 50.0, 0.5  # the mean falls, nine folds rise
    curves = unmf.ErrorCurves(unmf.SYNTHETIC, QUICK._replace(grid=(6, 28)), (2, 2), errors, {}, {})
    assert curves.at(HALF.name, 6) > curves.at(HALF.name, 28)
    assert curves.medians(HALF.name)[0] == pytest.approx(0.5)
    improves = [goal for goal in unmf.claims(curves) if HALF.name in goal.words and "improves" in goal.words]
    assert [goal.state for goal in improves] == [SHORT]


@pytest.mark.parametrize("balance", ["zero", "half"])
def test_with_equal_shares_all_pairs_give_each_row_its_own_level(balance):
    """Answers a + (b - a) r / n have w = (b, a) / 2; of all pairs the r-th of n wins r - 1 and loses n - r. So with
    equal shares y = a + (b - a) (r - 1) / (n - 1). In Eq. 4 as printed, what comparisons add is off by the ratio."""
    X, expected, sizes = np.full((2, 8), np.nan), np.full((2, 8), np.nan), np.array([4, 8])
    for row, (n, a, b) in enumerate(((4, 1.0, 3.0), (8, 2.0, 6.0))):
        X[row, :n] = a + (b - a) * np.arange(1, n + 1) / n
        expected[row, :n] = np.linspace(a, b, n)
    printed, equal = unmf.row_shares(Uncoupled.from_coupled(observe(X), 100, random_state=0), balance)
    np.testing.assert_allclose(equal.to_dense(), expected, rtol=1e-12)
    n_pairs = sizes * (sizes - 1) / 2
    ratio = (n_pairs / n_pairs.sum()) / (sizes / sizes.sum())
    level = np.array([2.0, 4.0]) * (0.0 if balance == "zero" else 0.5)  # lambda
    off = (expected - level[:, None]) * ratio[:, None] + level[:, None]
    np.testing.assert_allclose(printed.to_dense(), off, rtol=1e-12)


def test_a_fold_can_be_sent_to_another_process(holey):
    config = QUICK._replace(grid=(6,), sweeps=12, burn=4)
    task = unmf.FoldTask(unmf.SYNTHETIC, config, 0, 1, observe(holey))
    assert unmf.fold_errors(pickle.loads(pickle.dumps(task))) == unmf.fold_errors(task)
